"""The service: runs tasks at their intervals, ingests their output, and holds the connection for requests.

When each task of the service last ran and how that ended; kept in a file over restarts.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

from almanac.serve.collectors import Surroundings, run_task
from almanac.serve.configuration import Task
from almanac.settings import Settings, environment_of
from almanac.spool import Applied, Spool, applied_text, private
from registry.database.schema import current_version
from registry.errors import AlmanacError, DatabaseError, DatabaseUnavailable, StillRunning
from registry.registry import Registry
from registry.store.ingest_runs import Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState:
    """State of a task."""

    started_at: datetime | None = None
    succeeded_at: datetime | None = None
    failed_at: datetime | None = None
    """Last start, last success (of a collector: its output is saved) and last failure."""
    error: str = ""
    """Why the last run failed; empty if it did not."""
    formats: tuple[str, ...] = ()
    """Formats of a collector's output that was saved last."""


class TaskStates:
    """States of all tasks; threads may change them at the same time."""

    def __init__(self, path: Path, tasks: Iterable[Task]) -> None:
        self._path, self._lock = path, threading.Lock()
        stored = _read(path)
        self._states = {task.name: stored.get(task.name, TaskState()) for task in tasks}

    def all(self) -> dict[str, TaskState]:
        """Return the state of each task by its name."""
        with self._lock:
            return dict(self._states)

    def started(self, name: str, time: datetime) -> None:
        """Record a start."""
        self._change(name, started_at=time)

    def failed(self, name: str, time: datetime, error: str) -> None:
        """Record a failure."""
        self._change(name, failed_at=time, error=error)

    def succeeded(self, name: str, time: datetime, formats: tuple[str, ...] = ()) -> None:
        """Record a success."""
        self._change(name, succeeded_at=time, error="", formats=formats)

    def formats(self, task: Task) -> tuple[str, ...]:
        """Return the formats that a collector's output has as far as known: those of its last success."""
        configured = task.options.format if task.options is not None else None
        return (configured,) if configured else self.all()[task.name].formats

    def _change(self, name: str, **values: Any) -> None:
        """Change a state, here and in the file; a full disk does not stop the service."""
        with self._lock:
            if name not in self._states:
                return
            self._states[name] = replace(self._states[name], **values)
            text = json.dumps({task: asdict(state) for task, state in self._states.items()}, default=str)
            part = self._path.with_suffix(".part")
            with suppress(OSError):
                with open(part, "w", encoding="utf-8", opener=private) as file:
                    file.write(text)
                os.replace(part, self._path)


def _read(path: Path) -> dict[str, TaskState]:
    """Return the stored states; none if the file is missing or damaged, as they are only for display."""
    try:
        return {name: _state(fields) for name, fields in json.loads(path.read_text("utf-8")).items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _state(stored: Mapping[str, Any]) -> TaskState:
    times = {name: value and datetime.fromisoformat(value) for name, value in stored.items() if "_at" in name}
    return TaskState(**times, error=str(stored["error"]), formats=tuple(map(str, stored["formats"])))


PROBE_SECONDS = 5.0
"""Time between two checks of the database and the spool."""
MAX_PAUSE = 30.0
"""Longest time between two tries to reach a database that is away."""
STOP_SECONDS = 60.0
"""Longest wait for the present ingest when the service stops; its entry stays in the spool after that."""


class Service:
    """Threads of one service: one for each task, and one that ingests.

    Attributes:
        limits: From which growth errors of ports are reported.
        states: When each task ran, and how that ended.
    """

    def __init__(
        self, settings: Settings, tasks: tuple[Task, ...], spool: Spool, log: Callable[[str], None]
    ) -> None:
        self.spool, self.tasks, self.log = spool, tasks, log
        self.limits = settings.error_limits()
        self.states = TaskStates(spool.folder / ".tasks.json", tasks)
        # Requests and ingests must not wait for a database that restarts: they fail, or stay in the spool.
        self._settings = replace(settings, wait_seconds=0.0)
        self._stop, self._wake = threading.Event(), threading.Event()
        self._around = Surroundings(spool=spool, stop=self._stop, environment=environment_of(settings))
        self._registry: Registry | None = None
        self._away = "it is being opened"
        self._last_logged = ""
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start all threads."""
        loops: list[tuple[str, Callable[[], None]]] = [("ingest", self._ingest_until_stopped)]
        for task in self.tasks:
            delays = Random(f"{task.name} {time.time_ns()}")  # noqa: S311 - spreads load, hides nothing
            loops.append(
                (task.name, lambda task=task, delays=delays: repeat(task, self._run, self._stop, delays))  # type: ignore[misc]
            )
        self._threads = [threading.Thread(target=loop, name=name, daemon=True) for name, loop in loops]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End all commands, wait for the present ingest, and close the connection."""
        self._stop.set()
        self._wake.set()
        limit = time.monotonic() + STOP_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, limit - time.monotonic()))
        if any(thread.is_alive() for thread in self._threads):
            self.log("the present ingest has not ended; it stays in the spool")
        elif self._registry is not None:
            self._registry.close()

    def registry(self) -> Registry:
        """Return the open registry.

        Raises:
            DatabaseUnavailable
        """
        registry = self._registry
        if registry is None:
            raise DatabaseUnavailable(
                self._settings.db or str(self._settings.home), self._away, "it is tried again by itself"
            )
        return registry

    def check_soon(self) -> None:
        """Check the database at once: a request found it away."""
        self._wake.set()

    @property
    def away(self) -> str | None:
        """Why the database cannot be used; None if it can."""
        return self._away if self._registry is None else None

    def _run(self, task: Task) -> None:
        """Run a task and record how it ended."""
        started_at = datetime.now(UTC)
        self.states.started(task.name, started_at)
        try:
            name = run_task(task, self._around)
        except StillRunning as error:
            self.log(f"{task.name}: not started: {error}")
        except Exception as error:  # of whatever kind: the other runs of the task must go on
            if not self._stop.is_set():
                self._record_failure(task, started_at, error)
        else:
            if name is None:
                self.states.succeeded(task.name, datetime.now(UTC))
                self.log(f"{task.name}: done")
            self._wake.set()

    def _record_failure(self, task: Task, started_at: datetime, error: Exception) -> None:
        """Log a failed task; of a collector also as a failed ingest run, for doctor and metrics."""
        self.states.failed(task.name, datetime.now(UTC), str(error))
        self.log(f"{task.name}: {error}")
        if task.options is None or self._registry is None:
            return
        attempt = Attempt(
            started_at=started_at,
            cluster=task.options.cluster,
            formats=self.states.formats(task),
            files=(task.name,),
        )
        self._registry.failed(attempt, error)

    def _ingest_until_stopped(self) -> None:
        """Keep the connection open and apply the spool, until the service stops."""
        failures = 0
        while not self._stop.is_set():
            self._wake.clear()
            failures = 0 if self._ingest_waiting() else failures + 1
            self._wake.wait(PROBE_SECONDS if failures == 0 else min(2.0 ** (failures - 1), MAX_PAUSE))

    def _ingest_waiting(self) -> bool:
        """Apply the spool; return False if the database is away or refuses, for a later try."""
        try:
            for applied in self.spool.apply(self._open(), wait=False):
                self._note_applied(applied)
                if applied.waits:
                    return False
                if self._stop.is_set():
                    return True
        except AlmanacError as error:
            self._set_away(error.reason)
            return False
        except Exception as error:  # of whatever kind: a service without this thread would be useless
            self._log_once(f"unexpected error: {type(error).__name__}: {error}")
            return False
        self._last_logged = ""
        return True

    def _open(self) -> Registry:
        """Return the registry if its database answers, else open it again.

        Raises:
            DatabaseError
        """
        if self._registry is not None:
            try:
                current_version(self._registry.database)
                return self._registry
            except DatabaseError as error:
                self._set_away(error.reason)
        registry = self._settings.open_registry()
        self._registry = registry
        self.log(f"database: {registry.database.kind} at {registry.database.uri}")
        return registry

    def _set_away(self, reason: str) -> None:
        """Close the connection and log why."""
        self._log_once(f"database away: {reason}; ingests wait in {self.spool.folder}")
        registry, self._registry, self._away = self._registry, None, reason
        if registry is not None:
            registry.close()

    def _note_applied(self, applied: Applied) -> None:
        """Log what became of an entry, and record it for the collector that it is from."""
        self._log_once(applied_text(applied))
        now = datetime.now(UTC)
        if applied.report is not None:
            formats = tuple(applied.report.intake.source.split(", "))
            self.states.succeeded(applied.collector, now, formats)
        elif not applied.waits:
            self.states.failed(applied.collector, now, str(applied.error))

    def _log_once(self, text: str) -> None:
        """Log a text unless it repeats the last one."""
        if text != self._last_logged:
            self._last_logged = text
            self.log(text)


def repeat(
    task: Task,
    work: Callable[[Task], None],
    stop: Event,
    random: Random,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Call `work` at the interval of a task until `stop` is set; the first time at once, plus the delay.

    Starts that pass while `work` runs are left out, so it never runs twice at the same time.

    Args:
        clock: Seconds that only grow: changes of the system's time have no effect.
    """
    begin, turn = clock(), 0
    while True:
        due = begin + turn * task.interval + random.uniform(0.0, task.jitter)
        if stop.wait(max(0.0, due - clock())):
            return
        work(task)
        turn = max(turn + 1, math.ceil((clock() - begin) / task.interval))
