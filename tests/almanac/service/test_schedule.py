"""When tasks run, by a clock that only the test moves."""

from __future__ import annotations

from random import Random
from threading import Event
from typing import cast

from almanac.service.configuration import Task
from almanac.service.schedule import repeat


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


def starts(clock: Clock, interval: float, jitter: float = 0.0, seed: int = 0) -> list[float]:
    task = Task(name="t", command=("true",), interval=interval, timeout=1, jitter=jitter)
    repeat(task, clock.work, cast(Event, clock), Random(seed), lambda: clock.now)
    return clock.starts


def test_a_task_starts_at_once_and_at_every_interval() -> None:
    assert starts(Clock(35), 10) == [0, 10, 20, 30]


def test_starts_that_pass_while_a_task_runs_are_left_out() -> None:
    assert starts(Clock(75, (4, 25, 0, 20)), 10) == [0, 10, 40, 50, 70]


def test_delays_are_random_and_do_not_add_up() -> None:
    found = starts(Clock(1005), 10, jitter=4)
    delays = [start - 10 * turn for turn, start in enumerate(found)]
    assert len(found) == 101
    assert 0 <= min(delays) < 0.5
    assert 3.5 < max(delays) <= 4
    assert found == starts(Clock(1005), 10, jitter=4)
    assert found != starts(Clock(1005), 10, jitter=4, seed=1)
