"""When each task of the service last ran and how that ended; kept in a file over restarts."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from almanac.service.configuration import Task
from almanac.service.entries import private


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState:
    """State of a task.

    Attributes
    ----------
    started_at, succeeded_at, failed_at : datetime or None
        Last start, last success (of a collector: its output is saved) and last failure.
    error : str
        Why the last run failed; empty if it did not.
    formats : tuple of str
        Formats of a collector's output that was saved last.
    """

    started_at: datetime | None = None
    succeeded_at: datetime | None = None
    failed_at: datetime | None = None
    error: str = ""
    formats: tuple[str, ...] = ()


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
