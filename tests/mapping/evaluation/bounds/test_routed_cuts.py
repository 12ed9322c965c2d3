"""Bounds by cuts: which cables limit them, all together on the paths of a routing, and work that is saved."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.patterns import all_to_all
from mapping.evaluation.bounds import routed_cuts as module
from mapping.evaluation.bounds.cable_bounds import cut_bounds
from mapping.evaluation.bounds.cables import Cables, cables
from mapping.evaluation.bounds.catalog import every_bound
from mapping.evaluation.bounds.cut_groups import Groups
from mapping.evaluation.bounds.partition import Crossings
from mapping.evaluation.bounds.routed_cuts import routed_cuts
from mapping.routing import shortest_paths
from mapping.routing.routes import Routes
from registry.model import Allocation, Fabric, Longs, Profile
from tests.mapping.evaluation.bounds.test_catalog import least_of_all_placements
from tests.support.small_fabrics import adapter_fabrics, allocations, cabled, profiles


def two_planes() -> Fabric:
    """Four hosts on two planes, each of two switches; the first plane's cable has 1 byte/s, the other's 3."""
    return cabled("0-4 1-4 2-5 3-5 0-6 1-6 2-7 3-7 4-5 6-7", 4, [9] * 8 + [1, 3])


def proved(routes: Routes, profile: Profile, slots: list[int], groupings: list[Longs]) -> float:
    held = np.array(slots, np.int32)
    return routed_cuts(Crossings(profile), routes, cables(routes, None), held, groupings).value


def test_bytes_that_are_divided_evenly_cannot_all_take_the_fast_plane() -> None:
    """Four bytes cross each way, two on each plane: 2 s. The average of both planes takes half of that."""
    fabric = two_planes()
    routes, profile = shortest_paths.build(fabric, range(4)), all_to_all(4)
    found = every_bound(routes, profile, Allocation.of(fabric, range(4)))["network_congestion_seconds"]
    best = {bound.name: bound.value for bound in found}
    assert (best["total-work"], best["routed-cuts"]) == pytest.approx((1.0, 2.0))
    loads = routes.link_bytes(profile.sender, profile.partner, profile.bytes)
    assert (loads / fabric.links.capacity)[fabric.network_link].max() == pytest.approx(2.0)


def test_free_slots_are_used_where_paths_are_fast() -> None:
    """Three of five ranks are on one switch and two on the other, or four and one: 6 bytes cross, or 4."""
    fabric = cabled("0-4 1-4 2-5 3-5 4-5", 4, slots=2)
    routes, sides = shortest_paths.build(fabric, range(4)), np.array([0, 0, 1, 1])
    assert proved(routes, all_to_all(5), [2] * 4, [sides]) == pytest.approx(4.0)
    assert proved(routes, all_to_all(5), [2, 1, 1, 1], [sides]) == pytest.approx(6.0)


@given(fabric=adapter_fabrics(), profile=profiles(), data=st.data())
def test_no_placement_is_below_with_any_groups(fabric: Fabric, profile: Profile, data: st.DataObject) -> None:
    allocation = data.draw(allocations(fabric, profile.ranks))
    routes = shortest_paths.build(fabric, allocation.hosts)
    labels = data.draw(st.lists(st.integers(0, 1), min_size=len(allocation), max_size=len(allocation)))
    found = proved(routes, profile, allocation.slots.tolist(), [np.array(labels)])
    least = least_of_all_placements(routes, profile, allocation)["network_congestion_seconds"]
    assert found <= least * (1 + 1e-9)


def test_too_many_kinds_and_routings_by_loads_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    routes, sides = shortest_paths.build(two_planes(), range(4)), [np.array([0, 0, 1, 1])]
    profile = all_to_all(4)
    assert proved(routes, profile, [1] * 4, sides) == pytest.approx(2.0)
    assert proved(routes, Profile.from_edges([], [], [], ranks=4), [1] * 4, sides) == 0.0
    monkeypatch.setattr(module, "MAX_KINDS", 1)
    assert proved(routes, profile, [1] * 4, sides) == 0.0
    monkeypatch.undo()
    routes.name = "ecmp"
    assert proved(routes, profile, [1] * 4, sides) == 0.0


class Flows:
    """Replacement of `Crossings`: 6 bytes cross, which are found only if this is more than `above`."""

    def __init__(self) -> None:
        self.above: list[float] = []

    def least(self, slots: Longs, *, above: float = 0.0) -> tuple[float, str]:
        self.above.append(above)
        return (6.0 if above < 6.0 else 0.0), "flows"


@pytest.mark.parametrize(
    ("capacity", "above", "values"), [((4, 1), 5.0, [1.5, 6]), ((1, 4), 5.0, [6, 1.5]), ((4, 1), 7.0, [0, 0])]
)
def test_a_cut_is_searched_for_as_far_as_the_narrower_direction_can_give_more(
    capacity: tuple[float, float], above: float, values: list[float]
) -> None:
    """Six bytes take 1.5 s over the wide cables and 6 s over the narrow ones: more than 5 s, less than 7."""
    first, none, flows = np.array([True, False]), np.zeros(2), Flows()
    groups = Groups(
        name="switch-cut",
        place="leaf switch",
        group=np.arange(2),
        slots=np.ones(2, np.int64),
        outwards=none,
        inwards=none,
        leaving=first,
        entering=~first,
        within_network=True,
    )
    cables = Cables(usable=np.ones(2, bool), capacity=np.array(capacity, np.float64), background=none)
    found = cut_bounds(cast(Crossings, flows), groups, cables, above=above)
    assert sorted((bound.value, bound.name) for bound in found) == [(v, "switch-cut") for v in sorted(values)]
    assert flows.above == [above * 1.0]
