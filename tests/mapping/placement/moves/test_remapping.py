"""Moving few ranks of a present placement; each placement is scored exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import mapping
from mapping.placement.problem.objective import better
from mapping.placement.search.options import SearchOptions
from mapping.placement.strategies.baselines import in_order
from registry.errors import InvalidPlacement, InvalidValue
from registry.model import Allocation, Fabric, Placement, Profile
from tests.support.search_problems import ring


def nearly_perfect(wrong: int) -> tuple[Fabric, Profile, Allocation, Placement]:
    """A circle of ranks on a circle of hosts, of which so many have changed places."""
    fabric, profile, _ = ring(16, 16)
    allocation = Allocation.of(fabric, list(range(16)))
    hosts = np.arange(16, dtype=np.int32)
    hosts[:wrong] = np.roll(hosts[:wrong], 1)
    return fabric, profile, allocation, replace(in_order(16, allocation), host_of_rank=hosts)


def moved(point: Placement, present: Placement) -> int:
    return int((point.host_of_rank != present.host_of_rank).sum())


@pytest.mark.parametrize("objective", ["hop-bytes", "congestion", "2*congestion+hop-bytes"])
def test_the_curve_moves_more_and_is_better_from_point_to_point(objective: str) -> None:
    fabric, profile, allocation = ring(12, 12)
    present = in_order(12, allocation)
    curve = mapping.remap_few(
        fabric, profile, allocation, present=present, options=SearchOptions(objective=objective, steps=6000)
    )
    assert curve.points[0].placement.host_of_rank.tobytes() == present.host_of_rank.tobytes()
    assert len(curve.points) > 1
    for one, two in zip(curve.points, curve.points[1:], strict=False):
        assert one.moved < two.moved
        assert better(curve.objective, two.score, one.score)
    for point in curve.points:
        assert point.moved == moved(point.placement, present)
        known = mapping.evaluate(fabric, profile, point.placement)
        assert known.hop_bytes == pytest.approx(point.score.hop_bytes)
        assert known.congestion_seconds == pytest.approx(point.score.congestion_seconds)


def test_two_ranks_that_changed_places_change_back() -> None:
    fabric, profile, allocation, present = nearly_perfect(2)
    curve = mapping.remap_few(
        fabric, profile, allocation, present=present, options=SearchOptions(objective="hop-bytes", steps=4000)
    )
    assert [point.moved for point in curve.points] == [0, 2]
    assert curve.points[1].placement.host_of_rank.tolist() == list(range(16))
    assert curve.metric == "hop_bytes"
    assert curve.gain(curve.points[1]) == 2.0  # two of the 16 edges were two hops long


@pytest.mark.parametrize("moves", [0, 1, 2, 3, 5])
def test_no_more_ranks_move_than_are_allowed(moves: int) -> None:
    fabric, profile, allocation, present = nearly_perfect(8)
    curve = mapping.remap_few(
        fabric,
        profile,
        allocation,
        present=present,
        options=SearchOptions(moves=moves, objective="hop-bytes", steps=4000),
    )
    assert all(point.moved <= moves for point in curve.points)
    assert curve.within(moves).moved <= moves


def test_a_perfect_placement_stays() -> None:
    fabric, profile, allocation, present = nearly_perfect(0)
    curve = mapping.remap_few(fabric, profile, allocation, present=present, options=SearchOptions(steps=3000))
    assert [point.moved for point in curve.points] == [0]
    assert curve.chosen() is curve.points[0]
    assert mapping.advise(curve) == ()


def test_a_free_host_takes_a_rank_without_moving_another() -> None:
    fabric, profile, _ = ring(16, 8)
    allocation = Allocation.of(fabric, list(range(16)))
    hosts = np.array([0, 1, 2, 3, 12, 5, 6, 7], np.int32)  # rank 4 sits far off, its place is free
    present = replace(in_order(8, allocation), host_of_rank=hosts)
    curve = mapping.remap_few(
        fabric,
        profile,
        allocation,
        present=present,
        options=SearchOptions(moves=1, objective="hop-bytes", steps=4000),
    )
    assert [point.moved for point in curve.points] == [0, 1]
    assert curve.points[1].placement.host_of_rank.tolist() == list(range(8))


def test_pins_hold_and_count_as_moved_where_they_move() -> None:
    fabric, profile, allocation, present = nearly_perfect(4)
    pins: dict[int, str | int] = {0: "n09", 3: int(present.host_of_rank[3])}
    curve = mapping.remap_few(
        fabric,
        profile,
        allocation,
        present=present,
        options=SearchOptions(objective="hop-bytes", steps=4000),
        pins=pins,
    )
    assert curve.points[0].moved == 2  # rank 0, and who made room for it
    for point in curve.points:
        assert point.placement.host_of_rank[0] == 9
        assert point.placement.host_of_rank[3] == present.host_of_rank[3]


def test_the_same_seed_and_steps_give_the_same_curve() -> None:
    fabric, profile, allocation = ring(12, 12)
    one, two = (
        mapping.remap_few(
            fabric, profile, allocation, present=in_order(12, allocation), options=SearchOptions(steps=3000)
        )
        for _ in "ab"
    )
    assert [p.placement.host_of_rank.tobytes() for p in one.points] == [
        p.placement.host_of_rank.tobytes() for p in two.points
    ]


def test_an_interrupt_leaves_what_was_found() -> None:
    fabric, profile, allocation = ring(12, 12)
    calls = 0

    def progress(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        nonlocal calls
        calls += 1
        if calls == 150:
            raise KeyboardInterrupt

    present = in_order(12, allocation)
    curve = mapping.remap_few(
        fabric,
        profile,
        allocation,
        present=present,
        options=SearchOptions(objective="hop-bytes", steps=6000),
        progress=progress,
    )
    assert not curve.complete
    assert curve.points[0].moved == 0
    assert not any(point.placement.complete for point in curve.points)


def test_a_present_placement_elsewhere_is_refused() -> None:
    fabric, profile, allocation, present = nearly_perfect(2)
    fewer = Allocation.of(fabric, list(range(1, 16)), 2)
    with pytest.raises(InvalidPlacement):
        mapping.remap_few(fabric, profile, fewer, present=present)
    with pytest.raises(InvalidValue):
        mapping.remap_few(fabric, profile, allocation, present=present, options=SearchOptions(moves=-1))
