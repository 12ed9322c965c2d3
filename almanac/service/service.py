"""The service: runs tasks at their intervals, ingests their output, and holds the connection for requests."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from random import Random

from almanac.output.service import applied_text
from almanac.service.collectors import StillRunning, Surroundings, run_task
from almanac.service.configuration import Task
from almanac.service.schedule import repeat
from almanac.service.spool import Applied, Spool
from almanac.service.task_states import TaskStates
from almanac.settings import Settings, environment_of
from registry.database.schema import current_version
from registry.errors import AlmanacError, DatabaseError, DatabaseUnavailable
from registry.registry import Registry
from registry.store.ingest_runs import Attempt

PROBE_SECONDS = 5.0
"""Time between two checks of the database and the spool."""
MAX_PAUSE = 30.0
"""Longest time between two tries to reach a database that is away."""
STOP_SECONDS = 60.0
"""Longest wait for the present ingest when the service stops; its entry stays in the spool after that."""


class Service:
    """Threads of one service: one for each task, and one that ingests.

    Attributes
    ----------
    spool : Spool
    limits : ErrorLimits
        From which growth errors of ports are reported.
    states : TaskStates
        When each task ran, and how that ended.
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

        Raises
        ------
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

        Raises
        ------
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
