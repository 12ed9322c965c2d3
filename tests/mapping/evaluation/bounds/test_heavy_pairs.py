"""Pairs of ranks with many bytes on hosts with fast paths, against every placement of few ranks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.distances.distances import Distances
from mapping.evaluation.bounds.cables import cables
from mapping.evaluation.bounds.heavy_pairs import _Pairs, heavy_pairs
from mapping.routing import shortest_paths
from registry.model import Fabric, Profile
from tests.support.small_fabrics import profiles


def directly_connected(capacity: list[list[float]]) -> Fabric:
    """Hosts with a cable from each to each other one, of this capacity."""
    source, target = np.nonzero(~np.eye(len(capacity), dtype=bool))
    names = [f"n{host}" for host in range(len(capacity))]
    return Fabric.from_arcs(names, source, target, np.array(capacity)[source, target])


def proved(fabric: Fabric, profile: Profile, above: float = 0.0) -> float:
    routes = shortest_paths.build(fabric, fabric.hosts)
    slots = np.ones(len(fabric.hosts), np.int32)
    return heavy_pairs(profile, routes, cables(routes, None), slots, above).value


def test_the_three_pairs_of_a_triangle_need_one_cable_each() -> None:
    """8, 6 and 4 bytes at 4, 2 and 1 bytes/s take at least 2, 3 and 4 s, since each has its own cable."""
    fabric = directly_connected([[0, 4, 2], [4, 0, 1], [2, 1, 0]])
    profile = Profile.from_edges([0, 1, 2], [1, 2, 0], [8.0, 6.0, 4.0])
    assert proved(fabric, profile) == pytest.approx(4.0)
    assert proved(fabric, profile, above=100.0) == 0.0


def test_a_rank_with_two_heavy_partners_needs_a_host_with_two_fast_cables() -> None:
    """The second pair takes a cable with 1 byte/s; the faster of both directions counts."""
    fabric = directly_connected([[0, 9, 1, 1], [9, 0, 1, 1], [1, 1, 0, 3], [1, 1, 9, 0]])
    profile = Profile.from_edges([0, 0], [1, 2], [5.0, 7.0])
    assert proved(fabric, profile) == pytest.approx(5.0)


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
    routes, least = shortest_paths.build(fabric, fabric.hosts), np.inf
    for placed in itertools.permutations(range(number), profile.ranks):
        at = np.array(placed)
        loads = routes.link_bytes(at[profile.sender], at[profile.partner], profile.bytes)
        least = min(least, float((loads / fabric.links.capacity).max(initial=0.0)))
    assert proved(fabric, profile) <= least * (1 + 1e-9)
