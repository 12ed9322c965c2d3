"""Exchanges near a placement and from one to another, curves of few moves, and advice whether to move."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mapping
from mapping.deadline import Deadline
from mapping.placement import moves as remapping
from mapping.placement.methods.baselines import in_order
from mapping.placement.moves import Advice, Curve, best, best_exchanges
from mapping.placement.objective import better, score
from mapping.placement.relinking import nearest, relink
from registry.errors import InvalidPlacement, InvalidValue
from registry.model import Allocation, Profile
from tests.support.search_problems import InterruptAt, Placed, on_all_hosts, pinned, placed_problems, ring
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


def test_the_first_point_is_kept_beside_a_better_one_with_as_many_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def found(self: Any, most: int) -> None:
        hosts, first = self._found[0]
        self._found += [
            (hosts, first._replace(congestion_seconds=first.congestion_seconds * part)) for part in (0.9, 0.8)
        ]

    monkeypatch.setattr(remapping._CurveSearch, "_search", found)
    fabric, profile, _ = ring(4, 4)
    allocation = Allocation.of(fabric, [0, 1, 2, 3])
    pins = {0: fabric.names[1]}
    curve = mapping.remap_few(
        fabric, profile, allocation, present=in_order(4, allocation), pins=pins, steps=10
    )
    first, better = curve.points
    assert (first.moved, better.moved) == (2, 2)
    assert better.score.congestion_seconds == 0.8 * first.score.congestion_seconds


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
    assert (none.break_even_iterations, none.worth_it) == (math.inf, False)
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


def curve_from(start: list[int] | None = None, *, hosts: int = 16, **options: Any) -> Curve:
    """The curve of a circle of ranks on a circle of hosts; default: ranks in order, hosts mixed."""
    fabric, profile, allocation = ring(hosts, hosts if start is None else len(start))
    present = in_order(profile.ranks, allocation)
    if start is not None:
        allocation = Allocation.of(fabric, list(range(hosts)))
        present = replace(present, allocation=allocation, host_of_rank=np.array(start, np.int32))
    return mapping.remap_few(fabric, profile, allocation, present=present, **options)


def nearly_perfect(wrong: int) -> list[int]:
    """A circle of 16 ranks, of which so many have changed places."""
    return [(rank - 1) % wrong if rank < wrong else rank for rank in range(16)]


@pytest.mark.parametrize("objective", ["hop-bytes", "congestion", "2*congestion+hop-bytes"])
def test_the_curve_moves_more_and_is_better_from_point_to_point(objective: str) -> None:
    fabric, profile, allocation = ring(12, 12)
    curve, again = (curve_from(hosts=12, objective=objective, steps=3000) for _ in "ab")
    assert curve.points[0].placement.host_of_rank.tolist() == allocation.hosts.tolist()
    assert len(curve.points) > 1
    for one, two in zip(curve.points, curve.points[1:], strict=False):
        assert one.moved < two.moved
        assert better(curve.objective, two.score, one.score)
    for point in curve.points:
        assert point.moved == (point.placement.host_of_rank != allocation.hosts).sum()
        known = mapping.evaluate(fabric, profile, point.placement)
        assert known.hop_bytes == pytest.approx(point.score.hop_bytes)
        assert known.congestion_seconds == pytest.approx(point.score.congestion_seconds)
    first, second = ([p.placement.host_of_rank.tolist() for p in of.points] for of in (curve, again))
    assert first == second


def test_two_ranks_that_changed_places_change_back() -> None:
    curve = curve_from(nearly_perfect(2), objective="hop-bytes", steps=4000)
    assert [point.moved for point in curve.points] == [0, 2]
    assert curve.points[1].placement.host_of_rank.tolist() == list(range(16))
    assert curve.metric == "hop_bytes"
    assert curve.gain(curve.points[1]) == 2.0  # two of the 16 edges were two hops long


def test_of_placements_that_move_as_many_ranks_the_best_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def change_back(search: Any, most: int) -> None:
        for pair in ([0, 1], [8, 10]):
            hosts = search._start.copy()
            hosts[pair] = hosts[pair[::-1]]
            search._record(hosts)

    monkeypatch.setattr(remapping._CurveSearch, "_search", change_back)
    start = [1, 0, *range(2, 8), 10, 9, 8, *range(11, 16)]
    curve = curve_from(start, objective="hop-bytes", steps=1)
    assert [point.moved for point in curve.points] == [0, 2]
    assert curve.gain(curve.points[1]) == 4.0


@pytest.mark.parametrize("moves", [0, 1, 2, 3, 5])
def test_no_more_ranks_move_than_are_allowed(moves: int) -> None:
    curve = curve_from(nearly_perfect(8), moves=moves, objective="hop-bytes", steps=4000)
    assert all(point.moved <= moves for point in curve.points)
    assert curve.within(moves).moved <= moves


def test_a_perfect_placement_stays_and_a_free_host_takes_a_rank_without_moving_another() -> None:
    curve = curve_from(nearly_perfect(0), steps=3000)
    assert [point.moved for point in curve.points] == [0]
    assert curve.chosen() is curve.points[0]
    assert mapping.advise(curve) == ()
    start = [0, 1, 2, 3, 12, 5, 6, 7]  # rank 4 is far off, its place is free
    curve = curve_from(start, moves=1, objective="hop-bytes", steps=4000)
    assert [point.moved for point in curve.points] == [0, 1]
    assert curve.points[1].placement.host_of_rank.tolist() == list(range(8))


def test_pins_hold_and_count_as_moved_where_they_move() -> None:
    start = nearly_perfect(4)
    curve = curve_from(start, objective="hop-bytes", steps=4000, pins={0: "n09", 3: start[3]})
    assert curve.points[0].moved == 2  # rank 0, and the rank that made room for it
    for point in curve.points:
        assert point.placement.host_of_rank[[0, 3]].tolist() == [9, start[3]]


def test_an_interrupt_leaves_what_was_found() -> None:
    curve = curve_from(hosts=12, objective="hop-bytes", steps=6000, progress=InterruptAt(150))
    assert not curve.complete
    assert curve.points[0].moved == 0
    assert not any(point.placement.complete for point in curve.points)


def test_a_present_placement_elsewhere_is_refused() -> None:
    fabric, profile, allocation = ring(16, 16)
    fewer = Allocation.of(fabric, list(range(1, 16)), 2)
    with pytest.raises(InvalidPlacement):
        mapping.remap_few(fabric, profile, fewer, present=in_order(16, allocation))
    with pytest.raises(InvalidValue, match="strategies"):
        curve_from(strategies=["greedy"])


def test_gains_are_in_the_first_metric_that_the_moves_lower() -> None:
    points = curve_of({0: 4.0, 2: 4.0}).points
    for hop_bytes, metric, gain in ((7.0, "hop_bytes", 2.0), (9.0, "congestion_seconds", 0.0)):
        last = replace(points[1], score=points[1].score._replace(hop_bytes=hop_bytes))
        first = replace(points[0], score=points[0].score._replace(hop_bytes=9.0))
        curve = replace(curve_of({0: 4.0}), points=(first, last))
        assert (curve.metric, curve.gain(last)) == (metric, gain)
