"""All cuts together on the paths of a routing: where single cuts are weak, and that no placement is below."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.evaluation.bounds import routed_cuts as module
from mapping.evaluation.bounds.cables import cables
from mapping.evaluation.bounds.catalog import every_bound
from mapping.evaluation.bounds.partition import Crossings
from mapping.evaluation.bounds.routed_cuts import routed_cuts
from mapping.routing import forwarding_tables, shortest_paths
from mapping.routing.routes import Routes
from mapping.selfcheck.oracles import every_placement
from registry.model import Allocation, Fabric, Longs, Profile
from tests.support.small_fabrics import adapter_fabrics, allocations, profiles, table_fabrics


def two_planes() -> Fabric:
    """Four hosts on two planes, each of two switches; the first plane's cable has 1 byte/s, the other's 3."""
    low = [0, 1, 2, 3, 0, 1, 2, 3, 4, 6]
    high = [4, 4, 5, 5, 6, 6, 7, 7, 5, 7]
    capacity = np.r_[np.full(8, 9.0), 1.0, 3.0]
    return Fabric.from_arcs(
        [f"v{v}" for v in range(8)],
        low + high,
        high + low,
        np.r_[capacity, capacity],
        slots=[1] * 4 + [0] * 4,
        forwards=False,
    )


def all_to_all(ranks: int) -> Profile:
    source, target = np.nonzero(~np.eye(ranks, dtype=bool))
    return Profile.from_edges(source, target, np.ones(len(source)))


def proved(routes: Routes, profile: Profile, slots: list[int], groupings: list[Longs]) -> float:
    held = np.array(slots, np.int32)
    return routed_cuts(Crossings(profile), routes, cables(routes, None), held, groupings).value


def test_bytes_that_are_divided_evenly_cannot_all_take_the_fast_plane() -> None:
    """Four bytes cross each way, two on each plane: 2 s. The average of both planes takes half of that."""
    fabric = two_planes()
    routes, profile = shortest_paths.build(fabric, range(4)), all_to_all(4)
    allocation = Allocation.of(fabric, range(4))
    found = every_bound(routes, profile, allocation)["network_congestion_seconds"]
    best = {bound.name: bound.value for bound in found}
    assert best["total-work"] == pytest.approx(1.0)
    assert best["routed-cuts"] == pytest.approx(2.0)
    loads = routes.link_bytes(profile.sender, profile.partner, profile.bytes)
    assert (loads / fabric.links.capacity)[fabric.network_link].max() == pytest.approx(2.0)


def test_free_slots_are_used_where_paths_are_fast() -> None:
    """Three of five ranks are on one switch and two on the other, or four and one: 6 bytes cross, or 4."""
    low, high = [0, 1, 2, 3, 4], [4, 4, 5, 5, 5]
    fabric = Fabric.from_arcs(
        [f"v{v}" for v in range(6)], low + high, high + low, 1.0, slots=[2] * 4 + [0] * 2, forwards=False
    )
    routes, sides = shortest_paths.build(fabric, range(4)), np.array([0, 0, 1, 1])
    assert proved(routes, all_to_all(5), [2] * 4, [sides]) == pytest.approx(4.0)
    assert proved(routes, all_to_all(5), [2, 1, 1, 1], [sides]) == pytest.approx(6.0)


def check(routes: Routes, profile: Profile, allocation: Allocation, groupings: list[Longs]) -> None:
    fabric, least = routes.fabric, np.inf
    for placed in every_placement(range(len(allocation)), allocation.slots.tolist(), profile.ranks):
        at = np.array(placed)
        loads = routes.link_bytes(at[profile.sender], at[profile.partner], profile.bytes)
        least = min(least, float((loads / fabric.links.capacity)[fabric.network_link].max(initial=0.0)))
    found = proved(routes, profile, allocation.slots.tolist(), groupings)
    assert found <= least * (1 + 1e-9)


@given(fabric=adapter_fabrics(), profile=profiles(), data=st.data())
def test_no_placement_on_shortest_paths_is_below(
    fabric: Fabric, profile: Profile, data: st.DataObject
) -> None:
    allocation = data.draw(allocations(fabric, profile.ranks))
    routes = shortest_paths.build(fabric, allocation.hosts)
    if routes.connected:
        labels = st.lists(st.integers(0, 1), min_size=len(allocation), max_size=len(allocation))
        check(routes, profile, allocation, [np.array(data.draw(labels))])


@given(fabric=table_fabrics(), profile=profiles(), data=st.data())
def test_no_placement_on_tables_is_below(fabric: Fabric, profile: Profile, data: st.DataObject) -> None:
    allocation = data.draw(allocations(fabric, profile.ranks))
    check(forwarding_tables.build(fabric, allocation.hosts), profile, allocation, [])


def test_nothing_is_proved_with_too_many_kinds_or_by_a_routing_that_looks_at_loads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    routes, sides = shortest_paths.build(two_planes(), range(4)), [np.array([0, 0, 1, 1])]
    profile = all_to_all(4)
    assert proved(routes, profile, [1] * 4, sides) == pytest.approx(2.0)
    assert proved(routes, Profile.from_edges([], [], [], ranks=4), [1] * 4, sides) == 0.0
    monkeypatch.setattr(module, "MAX_KINDS", 1)
    assert proved(routes, profile, [1] * 4, sides) == 0.0
    monkeypatch.undo()
    routes.name = "ecmp"
    assert proved(routes, profile, [1] * 4, sides) == 0.0
