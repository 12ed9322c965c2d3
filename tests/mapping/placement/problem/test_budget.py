"""How long a search goes on, and that its schedule begins when it does."""

from __future__ import annotations

import numpy as np
import pytest

from ingest.generate import nas
from ingest.generate.tori import torus
from mapping.placement.problem.budget import Budget
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import congestion_descent, pair_exchange, threshold_accepting
from mapping.placement.refine.state.load_search import LoadSearch
from registry.model import Allocation
from tests.support.search_problems import problem_on


def sixteen() -> Problem:
    fabric = torus((2, 2, 4))
    allocation = Allocation.of(fabric, fabric.hosts.tolist(), 1)
    return problem_on(fabric, nas.cg(16), allocation, "shortest-paths")


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("mapping.placement.problem.budget.time.perf_counter", lambda: self.now)


def test_what_is_left_after_preparations_is_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    budget = Budget(seconds=10.0)
    clock.now += 6.0
    assert budget.fraction == pytest.approx(0.6)
    budget.prepared()
    assert budget.fraction == 0.0
    clock.now += 3.0
    assert budget.fraction == pytest.approx(0.75)
    assert budget.claim(7) == 7
    clock.now += 1.0
    assert (budget.fraction, budget.claim(7)) == (1.0, 0)


def test_preparations_that_take_all_of_it_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    budget = Budget(seconds=1.0)
    clock.now += 5.0
    budget.prepared()
    assert (budget.fraction, budget.claim(7)) == (1.0, 0)


def test_a_budget_of_steps_does_not_know_of_preparations(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    budget = Budget(steps=10)
    clock.now += 5.0
    budget.prepared()
    assert (budget.claim(20), budget.fraction) == (1, 0.1)


def test_a_search_that_takes_long_to_set_up_begins_its_schedule_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fabric = torus((2, 2, 4))
    problem = problem_on(
        fabric, nas.cg(16), Allocation.of(fabric, fabric.hosts.tolist(), 1), "shortest-paths"
    )
    clock, fractions = Clock(monkeypatch), []
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
    list(congestion_descent.refine(problem, start, Budget(seconds=10.0), np.random.default_rng(0)))
    assert fractions == pytest.approx([0.0, 0.25, 0.5, 0.75])


@pytest.mark.parametrize("refiner", [pair_exchange, threshold_accepting])
def test_every_annealing_search_tells_when_it_is_prepared(
    refiner: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    fabric = torus((2, 2, 4))
    problem = problem_on(
        fabric, nas.cg(16), Allocation.of(fabric, fabric.hosts.tolist(), 1), "shortest-paths"
    )
    told = []
    monkeypatch.setattr(Budget, "prepared", lambda self: told.append(self.taken))
    start = np.arange(16, dtype=np.int32)
    list(refiner.refine(problem, start, Budget(steps=100), np.random.default_rng(0)))  # type: ignore[attr-defined]
    assert told == [0]
