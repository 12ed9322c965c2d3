"""When tasks ran: kept over restarts, and never a reason to fail."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from almanac.service.configuration import Task
from almanac.service.task_states import TaskState, TaskStates
from ingest.options import Options

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def task(name: str, format: str | None = None) -> Task:
    options = Options(cluster="c", format=format)
    return Task(name=name, command=("true",), interval=1, timeout=1, jitter=0, options=options)


def test_states_are_kept_over_restarts(tmp_path: Path) -> None:
    path = tmp_path / "states"
    first = TaskStates(path, [task("a"), task("b")])
    first.started("a", NOON)
    first.succeeded("a", NOON, ("x", "y"))
    first.failed("b", NOON, "why\x1b")
    first.failed("gone", NOON, "is no task of this service")
    again = TaskStates(path, [task("a"), task("b"), task("c", "z")])
    assert again.all() == {
        "a": TaskState(started_at=NOON, succeeded_at=NOON, formats=("x", "y")),
        "b": TaskState(failed_at=NOON, error="why\x1b"),
        "c": TaskState(),
    }
    assert [again.formats(task(name)) for name in "abc"] == [("x", "y"), (), ()]
    assert again.formats(task("c", "z")) == ("z",)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "[]", "null", '{"a": 1}', '{"a": {"started_at": 5}}', '{"a": {}}'])
def test_a_damaged_file_is_ignored(tmp_path: Path, text: str) -> None:
    path = tmp_path / "states"
    path.write_text(text)
    states = TaskStates(path, [task("a")])
    assert states.all() == {"a": TaskState()}
    states.succeeded("a", NOON)
    assert TaskStates(path, [task("a")]).all()["a"].succeeded_at == NOON


def test_a_full_disk_does_not_stop_a_task(tmp_path: Path) -> None:
    states = TaskStates(tmp_path / "nosuch" / "states", [task("a")])
    states.started("a", NOON)
    assert states.all()["a"].started_at == NOON
