"""Advice whether a running job should move ranks."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import mapping
from mapping.placement.moves.advice import Advice, best
from mapping.placement.moves.remapping import Curve
from mapping.placement.search.options import SearchOptions
from mapping.placement.strategies.baselines import in_order
from registry.errors import InvalidValue
from registry.model import Allocation
from tests.support.search_problems import ring


def curve_of(seconds: dict[int, float]) -> Curve:
    """A curve whose points have these worst links."""
    fabric, profile, _ = ring(4, 4)
    allocation = Allocation.of(fabric, [0, 1, 2, 3])
    curve = mapping.remap_few(
        fabric, profile, allocation, present=in_order(4, allocation), options=SearchOptions(steps=10)
    )
    (point,) = curve.points
    points = tuple(
        replace(point, moved=n, score=point.score._replace(congestion_seconds=s)) for n, s in seconds.items()
    )
    return replace(curve, points=points)


def test_advice_weighs_seconds_saved_against_ranks_to_migrate() -> None:
    curve = curve_of({0: 10.0, 2: 8.0, 8: 7.0})
    two, eight = mapping.advise(curve, iterations=10, rank_seconds=3.0, iterations_left=50)
    assert (two.point.moved, eight.point.moved) == (2, 8)
    assert (two.seconds_saved, eight.seconds_saved) == pytest.approx((0.2, 0.3))
    assert (two.saved_per_rank, eight.saved_per_rank) == pytest.approx((0.1, 0.0375))
    assert (two.migration_seconds, eight.migration_seconds) == (6.0, 24.0)
    assert (two.break_even_iterations, eight.break_even_iterations) == pytest.approx((30.0, 80.0))
    assert (two.worth_it, eight.worth_it) == (True, False)
    assert curve.chosen().moved == 8  # two ranks bring two thirds


def test_the_best_advice_leaves_most_after_migration() -> None:
    advice = mapping.advise(curve_of({0: 10.0, 2: 8.0, 8: 7.0}), rank_seconds=1.0)

    def pick(iterations_left: float) -> Advice | None:
        return best(advice, iterations_left, 1.0)

    assert pick(0.5) is None
    assert pick(3.0) is advice[0]
    assert pick(100.0) is advice[1]


def test_unknown_costs_leave_the_advice_open() -> None:
    (one,) = mapping.advise(curve_of({0: 10.0, 2: 8.0}))
    assert (one.migration_seconds, one.break_even_iterations, one.worth_it) == (None, None, None)
    (none,) = mapping.advise(curve_of({0: 10.0, 2: 10.0}), rank_seconds=1.0, iterations_left=1e9)
    assert none.break_even_iterations == math.inf
    assert none.worth_it is False
    for wrong in ({"iterations": 0.0}, {"rank_seconds": -1.0}, {"iterations_left": math.nan}):
        with pytest.raises(InvalidValue):
            mapping.advise(curve_of({0: 1.0}), **wrong)
