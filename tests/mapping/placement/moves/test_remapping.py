"""Moving few ranks of a present placement; each placement is scored exactly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mapping
from mapping.placement.moves import remapping
from mapping.placement.moves.remapping import Curve
from mapping.placement.problem.objective import better
from mapping.placement.strategies.baselines import in_order
from registry.errors import InvalidPlacement, InvalidValue
from registry.model import Allocation, Placement
from tests.support.search_problems import InterruptAt, ring


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


def hosts_of(placement: Placement) -> list[int]:
    return [int(host) for host in placement.host_of_rank]


@pytest.mark.parametrize("objective", ["hop-bytes", "congestion", "2*congestion+hop-bytes"])
def test_the_curve_moves_more_and_is_better_from_point_to_point(objective: str) -> None:
    fabric, profile, allocation = ring(12, 12)
    curve, again = (curve_from(hosts=12, objective=objective, steps=3000) for _ in "ab")
    assert hosts_of(curve.points[0].placement) == allocation.hosts.tolist()
    assert len(curve.points) > 1
    for one, two in zip(curve.points, curve.points[1:], strict=False):
        assert one.moved < two.moved
        assert better(curve.objective, two.score, one.score)
    for point in curve.points:
        assert point.moved == (point.placement.host_of_rank != allocation.hosts).sum()
        known = mapping.evaluate(fabric, profile, point.placement)
        assert known.hop_bytes == pytest.approx(point.score.hop_bytes)
        assert known.congestion_seconds == pytest.approx(point.score.congestion_seconds)
    assert [hosts_of(p.placement) for p in curve.points] == [hosts_of(p.placement) for p in again.points]


def test_two_ranks_that_changed_places_change_back() -> None:
    curve = curve_from(nearly_perfect(2), objective="hop-bytes", steps=4000)
    assert [point.moved for point in curve.points] == [0, 2]
    assert hosts_of(curve.points[1].placement) == list(range(16))
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


def test_a_perfect_placement_stays() -> None:
    curve = curve_from(nearly_perfect(0), steps=3000)
    assert [point.moved for point in curve.points] == [0]
    assert curve.chosen() is curve.points[0]
    assert mapping.advise(curve) == ()


def test_a_free_host_takes_a_rank_without_moving_another() -> None:
    start = [0, 1, 2, 3, 12, 5, 6, 7]  # rank 4 is far off, its place is free
    curve = curve_from(start, moves=1, objective="hop-bytes", steps=4000)
    assert [point.moved for point in curve.points] == [0, 1]
    assert hosts_of(curve.points[1].placement) == list(range(8))


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
