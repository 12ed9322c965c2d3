"""When tasks run, what is remembered of it, and locks that keep others away."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from threading import Event
from typing import cast

from almanac.service.configuration import Task
from almanac.service.locks import locked
from almanac.service.schedule import repeat
from almanac.service.task_states import TaskState, TaskStates
from ingest.options import Options


class Clock:
    """Time that passes only while the schedule waits and the task works."""

    def __init__(self, end: float, work: tuple[float, ...] = ()) -> None:
        self.now, self.end, self.works, self.starts = 1000.0, 1000.0 + end, list(work), list[float]()

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return self.now > self.end

    def work(self, task: Task) -> None:
        self.starts.append(self.now - 1000.0)
        self.now += self.works.pop(0) if self.works else 0.0


def starts_of(clock: Clock, interval: float, jitter: float = 0.0, seed: int = 0) -> list[float]:
    task = Task(name="t", command=("true",), interval=interval, timeout=1, jitter=jitter)
    repeat(task, clock.work, cast(Event, clock), Random(seed), lambda: clock.now)
    return clock.starts


def test_a_task_starts_at_once_and_at_every_interval() -> None:
    assert starts_of(Clock(35), 10) == [0, 10, 20, 30]


def test_starts_that_pass_while_a_task_runs_are_left_out() -> None:
    assert starts_of(Clock(75, (4, 25, 0, 20)), 10) == [0, 10, 40, 50, 70]


def test_delays_are_random_and_do_not_add_up() -> None:
    found = starts_of(Clock(1005), 10, jitter=4)
    delays = [start - 10 * turn for turn, start in enumerate(found)]
    assert len(found) == 101
    assert 0 <= min(delays) < 0.5
    assert 3.5 < max(delays) <= 4
    assert found == starts_of(Clock(1005), 10, jitter=4)
    assert found != starts_of(Clock(1005), 10, jitter=4, seed=1)


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def task_named(name: str, format: str | None = None) -> Task:
    options = Options(cluster="c", format=format)
    return Task(name=name, command=("true",), interval=1, timeout=1, jitter=0, options=options)


def test_states_are_kept_over_restarts(tmp_path: Path) -> None:
    path = tmp_path / "states"
    first = TaskStates(path, [task_named("a"), task_named("b")])
    first.started("a", NOON)
    first.succeeded("a", NOON, ("x", "y"))
    first.failed("b", NOON, "why\x1b")
    first.failed("gone", NOON, "is no task of this service")
    again = TaskStates(path, [task_named("a"), task_named("b"), task_named("c", "z")])
    assert again.all() == {
        "a": TaskState(started_at=NOON, succeeded_at=NOON, formats=("x", "y")),
        "b": TaskState(failed_at=NOON, error="why\x1b"),
        "c": TaskState(),
    }
    assert [again.formats(task_named(name)) for name in "abc"] == [("x", "y"), (), ()]
    assert again.formats(task_named("c", "z")) == ("z",)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_damaged_file_and_a_full_disk_do_not_stop_a_task(tmp_path: Path) -> None:
    path = tmp_path / "states"
    for text in ("", "[]", "null", '{"a": 1}', '{"a": {"started_at": 5}}', '{"a": {}}'):
        path.write_text(text)
        states = TaskStates(path, [task_named("a")])
        assert states.all() == {"a": TaskState()}
        states.succeeded("a", NOON)
        assert TaskStates(path, [task_named("a")]).all()["a"].succeeded_at == NOON
    states = TaskStates(tmp_path / "nosuch" / "states", [task_named("a")])
    states.started("a", NOON)
    assert states.all()["a"].started_at == NOON


HOLD = """
import subprocess, sys, time
from pathlib import Path
from almanac.service.locks import locked
with locked(Path(sys.argv[1]), wait=False) as lock:
    child = subprocess.Popen(["sleep", "3000"], pass_fds=(lock,))
    print(child.pid, flush=True)
    time.sleep(3000)
"""


def is_free(path: Path) -> bool:
    with locked(path, wait=False) as lock:
        return lock is not None


def test_a_lock_is_held_by_one_and_free_after_the_block(tmp_path: Path) -> None:
    with locked(tmp_path / "lock") as lock:
        assert lock is not None
        assert not is_free(tmp_path / "lock")
    assert is_free(tmp_path / "lock")


def test_a_lock_is_held_until_the_command_of_a_killed_process_ends(tmp_path: Path, processes: None) -> None:
    path = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    child = int(holder.stdout.readline())
    try:
        assert not is_free(path)
        holder.kill()
        holder.wait()
        holder.stdout.close()
        assert not is_free(path)
    finally:
        subprocess.run(["kill", "-9", str(child)], check=True)
    with locked(path, wait=True) as lock:
        assert lock is not None
