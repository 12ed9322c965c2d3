"""Placement searches in the background: each has a thread, every session sees it, a button stops it.

A search does not end with the page that started it: a rerun, a reload or another browser finds it by its job.
It opens its own registry, because the registry of the pages is closed when the database connection is lost.
Its result is saved when it ends. A search that is stopped saves its best placement so far, marked incomplete.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace

from mapping.cost.report import PlacementReport
from registry import units
from registry.progress import Progress
from registry.registry import Registry

AT_ONCE = 2
"""Number of searches that run at the same time; others wait."""
MOST_ENDED = 200
"""Number of ended searches whose result stays available."""
PATIENCE = 5.0
"""Seconds that `Searches.close` waits for a search to save its result."""

WAITING, RUNNING, STOPPING = "waiting", "running", "stopping"
DONE, STOPPED, FAILED = "done", "stopped", "failed"
"""How a search ended: with a saved placement, stopped before it had one, or with an error."""

Work = Callable[[Registry, Progress], PlacementReport]
"""Finds and saves a placement; saves the best so far if its progress function raises KeyboardInterrupt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Result of a search."""

    placement: str
    """Id of the saved placement; empty if it could not be saved."""
    unsaved: str = ""
    """Why it could not be saved; empty if it was."""
    complete: bool
    """False if the search was stopped early."""
    congestion_seconds: float
    """Time of the worst link of the placement."""
    in_order_seconds: float
    """Time of the worst link if the ranks are placed in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchStatus:
    """State and progress of a search at one moment."""

    state: str = WAITING
    """`WAITING`, `RUNNING`, `STOPPING`, `DONE`, `STOPPED` or `FAILED`."""
    phase: str = ""
    """Current phase of the search, as text."""
    done: float = 0.0
    total: float = 0.0
    """Used and total units of the search's budget."""
    best: float | None = None
    """Lowest value of the objective so far."""
    base: str = units.SECONDS
    """Unit of `best`, of `registry.units`."""
    result: SearchResult | None = None
    """Result, if the state is `DONE`."""
    error: Exception | None = None
    """Error, if the state is `FAILED`."""

    @property
    def ended(self) -> bool:
        """True if the search is done, stopped or failed."""
        return self.state in (DONE, STOPPED, FAILED)

    @property
    def share(self) -> float:
        """Used part of the budget, 0 to 1."""
        return min(max(self.done / self.total, 0.0), 1.0) if self.total > 0 else 0.0


class Searches:
    """All searches of this server, at most one at a time for each job.

    Args:
        connect: Opens a registry; each search opens and closes its own.
    """

    def __init__(self, connect: Callable[[], Registry]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(AT_ONCE)
        self._runs: dict[str, _Run] = {}
        _at_exit(weakref.WeakMethod(self.close))

    def start(self, job: str, work: Work, *, base: str = units.SECONDS) -> bool:
        """Start a search for a job; return False if one is already running, which then continues.

        Args:
            base: Unit of the objective, of `registry.units`.
        """
        with self._lock:
            running = self._runs.get(job)
            if running is not None and not running.status().ended:
                return False
            run = self._runs[job] = _Run(base)
            self._drop_oldest()
        name = f"search {job}"
        threading.Thread(
            target=run.go, args=(self._connect, self._places, work), name=name, daemon=True
        ).start()
        return True

    def status(self, job: str) -> SearchStatus | None:
        """Return the status of the last search for a job, or None if there was none."""
        with self._lock:
            run = self._runs.get(job)
        return None if run is None else run.status()

    def stop(self, job: str) -> None:
        """Stop a job's search, which then saves its best placement; do nothing if none is running."""
        with self._lock:
            run = self._runs.get(job)
        if run is not None:
            run.stop()

    def forget(self, job: str) -> None:
        """Remove an ended search from the list."""
        with self._lock:
            run = self._runs.get(job)
            if run is not None and run.status().ended:
                del self._runs[job]

    def close(self) -> None:
        """Stop all searches, and wait up to `PATIENCE` seconds each until they have saved their results."""
        with self._lock:
            runs = list(self._runs.values())
        for run in runs:
            run.stop()
        for run in runs:
            run.ended.wait(PATIENCE)

    def _drop_oldest(self) -> None:
        ended = [job for job, run in self._runs.items() if run.status().ended]
        for job in ended[: max(len(ended) - MOST_ENDED, 0)]:
            del self._runs[job]


class _Run:
    """One search: its thread writes the status, pages read it."""

    def __init__(self, base: str) -> None:
        self._lock = threading.Lock()
        self._status = SearchStatus(base=base)
        self._stop = threading.Event()
        self._interrupted = False
        self.ended = threading.Event()

    def status(self) -> SearchStatus:
        with self._lock:
            return self._status

    def stop(self) -> None:
        self._stop.set()
        with self._lock:
            if self._status.state == WAITING:
                self._status = replace(self._status, state=STOPPED)
            elif not self._status.ended:
                self._status = replace(self._status, state=STOPPING)

    def go(self, connect: Callable[[], Registry], places: threading.BoundedSemaphore, work: Work) -> None:
        """Run the thread: wait for a free place, search, save."""
        try:
            with places:
                if self._begin():
                    self._end(work, connect)
        finally:
            self.ended.set()

    def _begin(self) -> bool:
        """Set the state to running; return False if the search was stopped while it waited."""
        with self._lock:
            if self._status.ended:
                return False
            self._status = replace(self._status, state=RUNNING)
            return True

    def _end(self, work: Work, connect: Callable[[], Registry]) -> None:
        """Do the search and store how it ended."""
        try:
            with connect() as registry:
                result = _result(work(registry, self._progress))
        except KeyboardInterrupt:  # the search was stopped before it had a placement
            self._set(state=STOPPED)
        except Exception as error:  # the page shows it, unexpected errors too
            self._set(state=FAILED, error=error)
        else:
            self._set(state=DONE, result=result)

    def _progress(
        self, phase: str, done: float, total: float | None = None, best: float | None = None
    ) -> None:
        """Store the progress; raise KeyboardInterrupt, once, if the search is to stop.

        A search ends in an orderly way after a KeyboardInterrupt at any point, as after Ctrl-C in a terminal.
        """
        with self._lock:
            now = self._status
            self._status = replace(
                now,
                phase=phase or now.phase,
                done=now.done if total is None else done,  # a phase without a measure keeps the last one
                total=now.total if total is None else total,
                best=now.best if best is None else best,
            )
        if self._stop.is_set() and not self._interrupted:
            self._interrupted = True
            raise KeyboardInterrupt

    def _set(self, **changes: object) -> None:
        with self._lock:
            self._status = replace(self._status, **changes)  # type: ignore[arg-type]


def _result(report: PlacementReport) -> SearchResult:
    assert report.in_order is not None
    return SearchResult(
        placement=report.record_id,
        unsaved=report.unsaved,
        complete=report.placement.complete,
        congestion_seconds=report.evaluation.congestion_seconds,
        in_order_seconds=report.in_order.congestion_seconds,
    )


def _at_exit(close: weakref.WeakMethod[Callable[[], None]]) -> None:
    """Stop the searches before the interpreter waits for their process pools, which would search to the end.

    Python has no public hook for that moment: functions registered with `atexit` run only after those pools
    have ended. Without the private hook the server ends only when its searches have ended.
    """

    def ending() -> None:
        method = close()
        if method is not None:
            method()

    register: Callable[[Callable[[], None]], None] | None = getattr(threading, "_register_atexit", None)
    if register is not None:
        register(ending)
