"""Searches behind the pages: each in a thread of its own, seen by every session, stopped by a button.

A search outlives the page that began it: a rerun, a reload or another browser finds it by its job. It opens a
registry for itself, because the pages' one is closed where the database was lost. What it found is saved
when it ends; when it is stopped the best so far is saved, marked incomplete.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace

from mapping.evaluation.report import PlacementReport
from registry import units
from registry.progress import Progress
from registry.registry import Registry

AT_ONCE = 2
"""Searches that run at a time, of all jobs; more wait for their turn."""
KEPT = 200
"""Searches that ended and are still told of."""
PATIENCE = 5.0
"""Seconds that `Searches.close` waits for a search to save what it has."""

WAITING, RUNNING, STOPPING = "waiting", "running", "stopping"
DONE, STOPPED, FAILED = "done", "stopped", "failed"
"""How a search ended: with a placement that is saved, before it had any, with an error."""

Work = Callable[[Registry, Progress], PlacementReport]
"""Finds a placement and saves it; after a KeyboardInterrupt from its progress the best so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a search ended with.

    Attributes
    ----------
    placement : str
        Its id in the history.
    complete : bool
        False where the search was stopped.
    congestion_seconds : float
        Worst link of the placement.
    in_order_seconds : float
        The same with the ranks in order.
    """

    placement: str
    complete: bool
    congestion_seconds: float
    in_order_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a search stands at one moment.

    Attributes
    ----------
    state : str
        `WAITING`, `RUNNING`, `STOPPING`, `DONE`, `STOPPED` or `FAILED`.
    phase : str
        What it is at.
    done, total : float
        Units of the budget that are spent and that there are.
    best : float or None
        Lowest value of the objective so far.
    base : str
        Its unit, of `registry.units`.
    found : Found or None
        Where it is done.
    error : Exception or None
        Where it failed.
    """

    state: str = WAITING
    phase: str = ""
    done: float = 0.0
    total: float = 0.0
    best: float | None = None
    base: str = units.SECONDS
    found: Found | None = None
    error: Exception | None = None

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in (DONE, STOPPED, FAILED)

    @property
    def share(self) -> float:
        """Part of the budget that is spent, 0 to 1."""
        return min(max(self.done / self.total, 0.0), 1.0) if self.total > 0 else 0.0


class Searches:
    """All searches of this server, one at a time a job.

    Parameters
    ----------
    connect : callable
        Opens a registry; each search opens and closes one.
    """

    def __init__(self, connect: Callable[[], Registry]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._turn = threading.BoundedSemaphore(AT_ONCE)
        self._runs: dict[str, _Run] = {}
        _at_exit(weakref.WeakMethod(self.close))

    def start(self, job: str, work: Work, *, base: str = units.SECONDS) -> bool:
        """Begin a search for a job; False where one is under way already, which goes on.

        Parameters
        ----------
        base : str
            Unit of its objective, of `registry.units`.
        """
        with self._lock:
            running = self._runs.get(job)
            if running is not None and not running.standing().ended:
                return False
            run = self._runs[job] = _Run(base)
            self._drop_oldest()
        name = f"search {job}"
        threading.Thread(
            target=run.go, args=(self._connect, self._turn, work), name=name, daemon=True
        ).start()
        return True

    def standing(self, job: str) -> Standing | None:
        """How the last search for a job stands; None where there was none."""
        with self._lock:
            run = self._runs.get(job)
        return None if run is None else run.standing()

    def stop(self, job: str) -> None:
        """Have a search end soon and save the best so far; nothing where none is under way."""
        with self._lock:
            run = self._runs.get(job)
        if run is not None:
            run.stop()

    def forget(self, job: str) -> None:
        """Tell of a search that ended no more."""
        with self._lock:
            run = self._runs.get(job)
            if run is not None and run.standing().ended:
                del self._runs[job]

    def close(self) -> None:
        """Stop all, and wait a little for what they save."""
        with self._lock:
            runs = list(self._runs.values())
        for run in runs:
            run.stop()
        for run in runs:
            run.ended.wait(PATIENCE)

    def _drop_oldest(self) -> None:
        ended = [job for job, run in self._runs.items() if run.standing().ended]
        for job in ended[: max(len(ended) - KEPT, 0)]:
            del self._runs[job]


class _Run:
    """One search: its thread writes how it stands, pages read it."""

    def __init__(self, base: str) -> None:
        self._lock = threading.Lock()
        self._standing = Standing(base=base)
        self._stop = threading.Event()
        self._told = False
        self.ended = threading.Event()

    def standing(self) -> Standing:
        with self._lock:
            return self._standing

    def stop(self) -> None:
        self._stop.set()
        with self._lock:
            if self._standing.state == WAITING:
                self._standing = replace(self._standing, state=STOPPED)
            elif not self._standing.ended:
                self._standing = replace(self._standing, state=STOPPING)

    def go(self, connect: Callable[[], Registry], turn: threading.BoundedSemaphore, work: Work) -> None:
        """The thread: wait for a turn, search, save."""
        try:
            with turn:
                if self._begin():
                    self._end(work, connect)
        finally:
            self.ended.set()

    def _begin(self) -> bool:
        """Whether nobody stopped it while it waited."""
        with self._lock:
            if self._standing.ended:
                return False
            self._standing = replace(self._standing, state=RUNNING)
            return True

    def _end(self, work: Work, connect: Callable[[], Registry]) -> None:
        try:
            with connect() as registry:
                found = _found(work(registry, self._progress))
        except KeyboardInterrupt:  # the search was stopped before it had anything to keep
            self._set(state=STOPPED)
        except Exception as error:  # the page tells it; what was not raised on purpose is a bug there, too
            self._set(state=FAILED, error=error)
        else:
            self._set(state=DONE, found=found)

    def _progress(
        self, phase: str, done: float, total: float | None = None, best: float | None = None
    ) -> None:
        """Take down how far it is; interrupt the search, once, where it shall stop.

        A search ends in order after a KeyboardInterrupt wherever one meets it, as Ctrl-C does on a terminal.
        """
        with self._lock:
            now = self._standing
            self._standing = replace(
                now,
                phase=phase or now.phase,
                done=done,
                total=total or 0.0,
                best=now.best if best is None else best,
            )
        if self._stop.is_set() and not self._told:
            self._told = True
            raise KeyboardInterrupt

    def _set(self, **changes: object) -> None:
        with self._lock:
            self._standing = replace(self._standing, **changes)  # type: ignore[arg-type]


def _found(report: PlacementReport) -> Found:
    assert report.in_order is not None
    return Found(
        placement=report.record_id,
        complete=report.placement.complete,
        congestion_seconds=report.evaluation.congestion_seconds,
        in_order_seconds=report.in_order.congestion_seconds,
    )


def _at_exit(close: weakref.WeakMethod[Callable[[], None]]) -> None:
    """Stop searches before the interpreter waits for their pools, which would search to the end.

    Python has no public call for that moment: what `atexit` calls, and threads that wait for the main one to
    end, go on only when those pools have ended. Without the call the server ends when its searches have.
    """

    def ending() -> None:
        method = close()
        if method is not None:
            method()

    register: Callable[[Callable[[], None]], None] | None = getattr(threading, "_register_atexit", None)
    if register is not None:
        register(ending)
