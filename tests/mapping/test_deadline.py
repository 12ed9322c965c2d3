"""Limits in seconds and steps, interrupts, and schedules that begin when the search does."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

from ingest.generate import nas
from ingest.generate.tori import torus
from mapping.deadline import Deadline, check_limit
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import congestion_descent, pair_exchange, threshold_accepting
from mapping.placement.refine.link_loads import LoadSearch
from registry.errors import InvalidValue
from registry.model import Allocation
from tests.support.search_problems import problem_on


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("mapping.deadline.time.perf_counter", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def sixteen() -> Problem:
    fabric = torus((2, 2, 4))
    allocation = Allocation.of(fabric, fabric.hosts.tolist(), 1)
    return problem_on(fabric, nas.cg(16), allocation, "shortest-paths")


def test_what_is_left_after_preparations_is_the_whole(clock: Clock) -> None:
    deadline = Deadline(seconds=10.0)
    clock.now += 6.0
    assert deadline.fraction == pytest.approx(0.6)
    deadline.restart()
    assert deadline.fraction == 0.0
    clock.now += 3.0
    assert deadline.fraction == pytest.approx(0.75)
    assert deadline.claim(7) == 7
    clock.now += 1.0
    assert (deadline.fraction, deadline.claim(7)) == (1.0, 0)


def claims(deadline: Deadline, clock: Clock, most: int, seconds_each: Callable[[int], float]) -> list[int]:
    """Return all claims of a search, whose n-th round takes ``seconds_each(n)`` seconds for each step."""
    found: list[int] = []
    while steps := deadline.claim(most):
        clock.now += steps * seconds_each(len(found))
        found.append(steps)
    return found


def test_a_limit_in_seconds_ends_with_the_clock(clock: Clock) -> None:
    deadline = Deadline(seconds=3.5)
    assert claims(deadline, clock, 10, lambda _: 2.0**-4) == [10, 10, 10, 10, 10, 6]
    assert (deadline.taken, deadline.fraction) == (56, 1.0)


def test_no_claim_takes_longer_than_is_left_nor_much_longer_than_a_second(clock: Clock) -> None:
    assert claims(Deadline(seconds=4.0), clock, 10**6, lambda _: 2.0**-10) == [1024, 1024, 1024, 1024]
    assert clock.now == 104.0
    deadline = Deadline(seconds=10.0)
    taken = claims(deadline, clock, 10**6, lambda number: 2.0**-10 if number < 3 else 2.0**-13)
    assert taken == [1024, 1024, 1024, 1024] + [8192] * 6 + [7168]
    assert clock.now == 114.0


def test_claims_of_slow_steps_become_small_at_once(clock: Clock) -> None:
    assert claims(Deadline(seconds=9.0), clock, 500, lambda _: 2.0**-7) == [500] + [128] * 5 + [12]
    assert claims(Deadline(seconds=9.0), clock, 500, lambda _: 4.0) == [500]
    assert claims(Deadline(seconds=2.5), clock, 1, lambda _: 1.0) == [1, 1, 1]


def test_preparations_do_not_count_as_steps(clock: Clock) -> None:
    deadline = Deadline(seconds=100.0)
    assert deadline.claim(100) == 100
    clock.now += 50.0
    deadline.restart()
    assert deadline.claim(100) == 100
    clock.now += 10.0
    assert deadline.claim(100) == 10


def test_steps_and_deadlines_without_limit_are_claimed_whole(clock: Clock) -> None:
    endless = Deadline()
    for deadline in (Deadline(steps=10**8), endless):
        for _ in range(3):
            assert deadline.claim(10**5) == 10**5
            clock.now += 100.0
    assert (endless.left, endless.fraction, endless.over) == (np.inf, 0.0, False)


def test_preparations_take_seconds_and_no_steps(clock: Clock) -> None:
    seconds, steps = Deadline(seconds=1.0), Deadline(steps=10)
    clock.now += 5.0
    seconds.restart()
    steps.restart()
    assert (seconds.fraction, seconds.claim(7)) == (1.0, 0)
    assert (steps.claim(20), steps.fraction) == (1, 0.1)


def test_a_search_with_long_set_up_begins_at_its_start(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    fractions = []
    begin, look = LoadSearch.__init__, LoadSearch.round

    def slow(self: LoadSearch, *given: object) -> None:
        begin(self, *given)  # type: ignore[arg-type]
        clock.now += 8.0

    def watched(self: LoadSearch, team: object, proposals: int, schedule: object, fraction: float) -> int:
        fractions.append(fraction)
        clock.now += 0.5
        return look(self, team, proposals, schedule, fraction)  # type: ignore[arg-type]

    monkeypatch.setattr(LoadSearch, "__init__", slow)
    monkeypatch.setattr(LoadSearch, "round", watched)
    start = np.arange(16, dtype=np.int32)
    list(congestion_descent.refine(sixteen(), start, Deadline(seconds=10.0), np.random.default_rng(0)))
    assert fractions == pytest.approx([0.0, 0.25, 0.5, 0.75])


@pytest.mark.parametrize("refiner", [pair_exchange, threshold_accepting])
def test_every_search_restarts_the_clock_once(refiner: object, monkeypatch: pytest.MonkeyPatch) -> None:
    restarts = []
    monkeypatch.setattr(Deadline, "restart", lambda self: restarts.append(self.taken))
    start = np.arange(16, dtype=np.int32)
    list(refiner.refine(sixteen(), start, Deadline(steps=100), np.random.default_rng(0)))  # type: ignore[attr-defined]
    assert restarts == [0]


def test_an_interrupt_ends_the_block_and_the_search() -> None:
    deadline, found = Deadline(seconds=60.0), [1]
    with deadline.interruptible():
        found.append(2)
        raise KeyboardInterrupt
    assert found == [1, 2]
    assert (deadline.interrupted, deadline.over, deadline.claim(9)) == (True, True, 0)


def test_a_pickled_deadline_goes_on_elsewhere(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mapping.deadline.time.time", lambda: clock.now + 1e9)
    deadline = Deadline(seconds=10.0, workers=3)
    clock.now += 4.0
    sent = pickle.dumps(deadline)
    clock.now += 2.0
    other = pickle.loads(sent)
    assert other.left == pytest.approx(4.0)
    assert (other.workers, other.steps) == (3, None)
    monkeypatch.setattr("mapping.deadline.time.time", lambda: 0.0)  # the clock was set back, or differs
    assert pickle.loads(sent).left == pytest.approx(6.0)


def test_stages_take_their_share_of_the_steps_or_end_at_their_part_of_the_time(clock: Clock) -> None:
    whole = Deadline(seconds=12.0, workers=2)
    clock.now += 2.0
    stage = whole.stage(1 / 3, 0.5)
    assert stage.seconds == pytest.approx(4.0)
    assert stage.workers == 2
    assert whole.time_until(0.1).over
    steps = Deadline(steps=100)
    assert (steps.stage(0.25, 0.9).steps, steps.stage(1.0, 1.0, taken=30).steps) == (25, 70)
    assert steps.time_until(0.5).left == np.inf


@pytest.mark.parametrize(("seconds", "steps"), [(-1.0, None), (np.inf, None), (np.nan, None), (1.0, -1)])
def test_limits_below_zero_or_without_end_are_errors(seconds: float, steps: int | None) -> None:
    with pytest.raises(InvalidValue):
        check_limit(seconds, steps)
