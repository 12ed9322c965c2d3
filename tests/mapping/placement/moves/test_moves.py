"""Exchanges near a placement and from one placement to another, and advice whether a job should move."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mapping
from mapping.deadline import Deadline
from mapping.placement.moves.advice import Advice, best
from mapping.placement.moves.best_exchanges import best_exchanges
from mapping.placement.moves.path_relinking import nearest, relink
from mapping.placement.moves.remapping import Curve
from mapping.placement.problem.objective import score
from mapping.placement.strategies.baselines import in_order
from registry.errors import InvalidValue
from registry.model import Allocation, Profile
from tests.support.search_problems import Placed, on_all_hosts, pinned, placed_problems, ring
from tests.support.strategy_problems import leaves


def curve_of(seconds: dict[int, float]) -> Curve:
    """A curve whose points have these worst links."""
    fabric, profile, _ = ring(4, 4)
    allocation = Allocation.of(fabric, [0, 1, 2, 3])
    curve = mapping.remap_few(fabric, profile, allocation, present=in_order(4, allocation), steps=10)
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


@given(case=pinned(), most=st.integers(0, 4))
def test_best_exchanges_gain_each_time_and_keep_to_their_number(case: Placed, most: int) -> None:
    problem, start = case
    value, far = problem.hop_bytes(start), problem.hop_bytes(start)
    for ranks, hosts in best_exchanges(problem, start, most=most, deadline=Deadline()):
        value, before = problem.hop_bytes(hosts), value
        assert value < before
        assert set(np.flatnonzero(hosts != start).tolist()) == ranks
        assert len(ranks) <= most
        assert (hosts == problem.pins)[problem.pinned].all()
        assert (np.bincount(hosts, minlength=problem.hosts) <= problem.allocation.slots).all()
    assert value <= far


@given(case=placed_problems())
def test_the_first_exchange_is_the_best_of_all(case: Placed) -> None:
    problem, start = case
    best, room = 0.0, problem.allocation.slots - np.bincount(start, minlength=problem.hosts)
    for rank in range(problem.ranks):
        for host in np.flatnonzero(room):
            hosts = start.copy()
            hosts[rank] = host
            best = max(best, problem.hop_bytes(start) - problem.hop_bytes(hosts))
        for other in range(rank):
            hosts = start.copy()
            hosts[[rank, other]] = start[[other, rank]]
            best = max(best, (problem.hop_bytes(start) - problem.hop_bytes(hosts)) / 2)
    first = next(best_exchanges(problem, start, most=2, deadline=Deadline()), None)
    if first is None:
        assert best == pytest.approx(0.0)
    else:
        gain = problem.hop_bytes(start) - problem.hop_bytes(first[1])
        assert gain / len(first[0]) == pytest.approx(best)


@given(case=placed_problems(), seed=st.integers(0, 5), by_load=st.booleans())
def test_exchanges_lead_to_the_target_and_each_prefix_fits(case: Placed, seed: int, by_load: bool) -> None:
    problem, start = case
    slots = np.random.default_rng(seed).permutation(len(problem.slot_host))[: problem.ranks]
    target = problem.slot_host[slots]
    reached = start
    path = relink(problem, start, target, by_load=by_load, most=problem.ranks, deadline=Deadline())
    for ranks, hosts in path:
        assert (np.bincount(hosts, minlength=problem.hosts) <= problem.allocation.slots).all()
        assert set(np.flatnonzero(hosts != start).tolist()) <= ranks
        reached = hosts
    assert reached.tolist() == target.tolist()


@given(case=pinned(), seed=st.integers(0, 5))
def test_the_nearest_of_equal_placements_costs_the_same_and_moves_no_more(case: Placed, seed: int) -> None:
    problem, start = case
    slots = np.random.default_rng(seed).permutation(len(problem.slot_host))[: problem.ranks]
    target = problem.apply_pins(problem.slot_host[slots])
    found = nearest(problem, start, target)
    assert (found != start).sum() <= (target != start).sum()
    assert (found == problem.pins)[problem.pinned].all()
    assert score(problem, found).hop_bytes == pytest.approx(score(problem, target).hop_bytes)


def test_hosts_on_one_switch_are_not_exchanged_for_nothing() -> None:
    profile = Profile.from_edges([0, 1, 2], [1, 2, 0], [1.0, 1.0, 1.0], ranks=6)
    problem = on_all_hosts(leaves(1, 6, top=0), profile)
    start = np.arange(6, dtype=np.int32)
    assert nearest(problem, start, start[::-1].copy()).tolist() == start.tolist()
