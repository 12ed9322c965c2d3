"""Pairs of ranks with many bytes on fast paths or on several, against every placement of few ranks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.generate.tori import hypercube, mesh, torus
from mapping.distances.distances import LINKS, Distances, distances
from mapping.evaluation.bounds import detours as module
from mapping.evaluation.bounds.cables import cables
from mapping.evaluation.bounds.detours import detours
from mapping.evaluation.bounds.heavy_pairs import _Pairs, heavy_pairs
from mapping.evaluation.kernels.detours import least_hop_bytes
from mapping.routing import shortest_paths
from mapping.routing.catalog import build_routes
from mapping.routing.routes import Routes
from registry.model import Allocation, Bound, Fabric, Profile
from tests.mapping.evaluation.bounds.test_catalog import least_of_all_placements
from tests.support.small_fabrics import profiles


def directly_connected(capacity: list[list[float]]) -> Fabric:
    """Hosts with a cable from each to each other one, of this capacity."""
    source, target = np.nonzero(~np.eye(len(capacity), dtype=bool))
    names = [f"n{host}" for host in range(len(capacity))]
    return Fabric.from_arcs(names, source, target, np.array(capacity)[source, target])


def by_pairs(fabric: Fabric, profile: Profile, above: float = 0.0) -> float:
    routes = shortest_paths.build(fabric, fabric.hosts)
    slots = np.ones(len(fabric.hosts), np.int32)
    return heavy_pairs(profile, routes, cables(routes, None), slots, above).value


def test_the_three_pairs_of_a_triangle_need_one_cable_each() -> None:
    """8, 6 and 4 bytes at 4, 2 and 1 bytes/s take at least 2, 3 and 4 s, since each has its own cable."""
    fabric = directly_connected([[0, 4, 2], [4, 0, 1], [2, 1, 0]])
    profile = Profile.from_edges([0, 1, 2], [1, 2, 0], [8.0, 6.0, 4.0])
    assert by_pairs(fabric, profile) == pytest.approx(4.0)
    assert by_pairs(fabric, profile, above=100.0) == 0.0


def test_a_rank_with_two_heavy_partners_needs_a_host_with_two_fast_cables() -> None:
    """The second pair takes a cable with 1 byte/s; the faster of both directions counts."""
    fabric = directly_connected([[0, 9, 1, 1], [9, 0, 1, 1], [1, 1, 0, 3], [1, 1, 9, 0]])
    profile = Profile.from_edges([0, 0], [1, 2], [5.0, 7.0])
    assert by_pairs(fabric, profile) == pytest.approx(5.0)


def test_a_chain_that_no_fast_group_holds_uses_a_slow_path() -> None:
    """Two squares of fast paths, and a chain of five ranks: one of its pairs is not within a square."""
    near = np.full((8, 8), 1.0)
    for first in (0, 4):
        near[first : first + 4, first : first + 4] = 0.1
    np.fill_diagonal(near, 0.0)
    hosts = Distances(name="seconds", group=np.arange(8, dtype=np.int32), between=near)
    slots = np.ones(8, np.int32)
    five = _Pairs(Profile.from_edges([0, 1, 2, 3], [1, 2, 3, 4], [7.0, 6.0, 8.0, 9.0]))
    assert five.groups(hosts, slots) == pytest.approx(6.0)
    assert five.stars(hosts, slots) == pytest.approx(0.9)
    assert five.all_together(hosts, slots) == pytest.approx(0.9)
    four = _Pairs(Profile.from_edges([0, 1, 2], [1, 2, 3], [7.0, 6.0, 8.0]))
    assert four.groups(hosts, slots) == pytest.approx(0.8)


def test_slots_of_one_host_need_no_path() -> None:
    """Two hosts of two slots hold two pairs; the third pair is between them."""
    hosts = Distances(name="seconds", group=np.array([0, 0], np.int32), between=np.array([[2.0]]))
    slots = np.array([2, 2], np.int32)
    pairs = _Pairs(Profile.from_edges([0, 1, 2], [1, 2, 3], [7.0, 5.0, 6.0]))
    assert pairs.all_together(hosts, slots) == pytest.approx(10.0)
    assert pairs.groups(hosts, slots) == pytest.approx(10.0)
    assert pairs.stars(hosts, slots) == pytest.approx(10.0)


@given(profile=profiles(min_ranks=3, max_ranks=5), data=st.data())
def test_no_placement_on_direct_cables_is_below(profile: Profile, data: st.DataObject) -> None:
    number = data.draw(st.integers(profile.ranks, 5))
    speed = st.lists(st.sampled_from([1.0, 2.0, 5.0]), min_size=number, max_size=number)
    fabric = directly_connected(data.draw(st.lists(speed, min_size=number, max_size=number)))
    allocation = Allocation.of(fabric, fabric.hosts)
    least = least_of_all_placements(shortest_paths.build(fabric, fabric.hosts), profile, allocation)
    assert by_pairs(fabric, profile) <= least["congestion_seconds"] * (1 + 1e-9)


def proved(routes: Routes, profile: Profile, above: float = 0.0) -> Bound:
    slots = routes.fabric.slots[routes.hosts]
    found, near = cables(routes, None), distances(LINKS, routes)
    usable = found.usable & routes.fabric.network_link
    return detours(profile, routes, found, usable, slots, near=near, above=above)


def seconds(routes: Routes, profile: Profile, at: np.ndarray) -> float:
    loads = routes.link_bytes(at[profile.sender], at[profile.partner], profile.bytes)
    return float((loads / routes.fabric.links.capacity).max(initial=0.0))


def on_all(fabric: Fabric, routing: str = "shortest-paths") -> Routes:
    return build_routes(routing, fabric, fabric.hosts)


def test_four_pairs_on_a_cube_meet_it() -> None:
    """Neighbours have one path, which takes 1 s; corners of a face two paths of two links, half a second.

    A time below that allows only opposite corners: 12 links on 24 cables, half a second again.
    """
    routes = on_all(hypercube(3, capacity=1.0))
    profile = Profile.from_edges([0, 2, 4, 6], [1, 3, 5, 7], np.ones(4))
    found = proved(routes, profile)
    assert found.value == pytest.approx(0.5)
    assert found.proof == (
        "detours: faster, pairs with many bytes need several paths, and all bytes times links of the network"
        " are at least 12"
    )
    assert seconds(routes, profile, np.array([0, 3, 1, 4, 6, 5, 7, 2])) == pytest.approx(0.5)
    assert proved(routes, profile, above=0.49).value == pytest.approx(0.5)
    assert proved(routes, profile, above=0.6).value == 0.0


def test_a_pair_that_sends_both_ways_has_its_own_cables_each_way() -> None:
    """The same pairs send back: corners of a face still take half a second, 16 links on 24 cables more."""
    first, second = np.array([0, 2, 4, 6]), np.array([1, 3, 5, 7])
    both = Profile.from_edges(np.r_[first, second], np.r_[second, first], np.ones(8))
    assert proved(on_all(hypercube(3, capacity=1.0)), both).value == pytest.approx(16 / 24)


def test_slots_around_hosts_are_counted_by_links_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte takes the faster of both ways: 1/4 s between the first two, 1/2 s and 1 s.

    Of hosts beyond the nearest ones nothing is known: a byte to them may take no time.
    """
    routes = on_all(directly_connected([[0, 4, 2], [1, 0, 1], [2, 1, 0]]))
    given = routes, cables(routes, None), np.ones(3, np.int32), distances(LINKS, routes), np.arange(3)
    around = module._around(*given)
    np.testing.assert_allclose(around.seconds, [0, 0.25, 0.5, 1])
    np.testing.assert_array_equal(around.slots, [[0, 0, 0, 0], [0, 1, 2, 2]])
    monkeypatch.setattr(module, "NEAREST", 1)
    around = module._around(*given)
    np.testing.assert_array_equal(around.slots[:, [0, -1]], [[0, 0], [1, 2]])


def test_partners_on_the_same_host_need_no_link() -> None:
    routes = on_all(torus((4, 4), capacity=1.0, slots=2))
    first = np.arange(0, 32, 2)
    pairs = Profile.from_edges(first, first + 1, np.ones(16), ranks=32)
    assert proved(routes, pairs).value == 0.0
    ring = Profile.from_edges(np.arange(32), np.roll(np.arange(32), -1), np.ones(32))
    assert proved(routes, ring).value > 0.0


def test_routings_whose_paths_depend_on_load_prove_nothing() -> None:
    fabric, profile = hypercube(3, capacity=1.0), Profile.from_edges([0], [1], [1.0], ranks=8)
    assert proved(on_all(fabric), profile).value > 0.0
    assert proved(on_all(fabric, "least-loaded"), profile).value == 0.0


FABRICS = [torus((6,)), torus((2, 3)), mesh((2, 3)), hypercube(2, slots=2)]


@settings(max_examples=120)
@given(few=st.booleans(), fabric=st.sampled_from(FABRICS), profile=profiles(min_ranks=2, max_ranks=4))
def test_no_placement_goes_below(few: bool, fabric: Fabric, profile: Profile) -> None:
    """Nor do few hosts and values, with all others rounded down, prove too much."""
    routes = on_all(fabric)
    least = least_of_all_placements(routes, profile, Allocation.of(fabric, fabric.hosts))
    with pytest.MonkeyPatch.context() as patch:
        if few:
            patch.setattr(module, "NEAREST", 2)
            patch.setattr(module, "VALUES", 2)
        assert proved(routes, profile).value <= least["network_congestion_seconds"] * (1 + 1e-8)


def dearest(bytes: list[int], allowed: list[int], near: np.ndarray, links: np.ndarray) -> float:
    """The least cost of one rank level by level, over every set of partners that its slots have room for."""
    total = 0.0
    for level in range(len(links) - 1):
        room = [int(near[level, one]) if one >= 0 else 0 for one in allowed]
        most = 0
        for size in range(len(bytes) + 1):
            for chosen in itertools.combinations(range(len(bytes)), size):
                if all(sum(room[x] <= room[y] for x in chosen) <= room[y] for y in chosen):
                    most = max(most, sum(bytes[x] for x in chosen))
        total += (sum(bytes) - most) * (links[level + 1] - links[level]) / 2
    return total


@given(data=st.data())
def test_partners_are_chosen_as_well_as_the_slots_allow(data: st.DataObject) -> None:
    """Heaviest first, each as late as possible, is the best of all sets of partners."""
    count, columns, levels = (data.draw(st.integers(1, 5)) for _ in range(3))
    bytes = sorted(data.draw(st.lists(st.integers(1, 9), min_size=count, max_size=count)), reverse=True)
    allowed = data.draw(st.lists(st.integers(-1, columns - 1), min_size=count, max_size=count))
    cells = st.lists(st.integers(0, 2), min_size=columns, max_size=columns)
    table = np.array(data.draw(st.lists(cells, min_size=levels, max_size=levels)), np.int64)
    near = table.cumsum(axis=0).cumsum(axis=1)
    steps = data.draw(st.lists(st.integers(1, 3), min_size=levels - 1, max_size=levels - 1))
    links = np.cumsum([0.0, *steps])
    found = least_hop_bytes(np.array([0, count]), np.array(bytes, np.float64), np.array(allowed), near, links)
    assert found == pytest.approx(dearest(bytes, allowed, near, links))
