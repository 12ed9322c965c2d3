"""Flows hashed onto single shortest paths, pair by pair."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mapping.routing.catalog import build_routes
from registry.model import Fabric, Floats
from tests.support.flow_checks import shortest_ways
from tests.support.small_fabrics import cabled, ring_of_switches


def single_ways(fabric: Fabric, source: int, target: int) -> list[list[int]]:
    """All shortest ways cable by cable (one port a host)."""
    links, found = fabric.links, []
    for path in shortest_ways(fabric, source, target):
        steps = [
            np.flatnonzero((links.source == a) & (links.target == b)).tolist()
            for a, b in itertools.pairwise(path)
        ]
        found += [list(way) for way in itertools.product(*steps)]
    return found


@pytest.mark.parametrize("paths", [1, 3])
def test_each_flow_takes_one_shortest_way(paths: int) -> None:
    fabric = ring_of_switches(6)
    routes = build_routes(f"ecmp:paths={paths},seed=5", fabric, fabric.hosts)
    for i, j in itertools.permutations(range(12), 2):
        found = routes.load([i], [j], [6.0])
        ways = single_ways(fabric, int(fabric.hosts[i]), int(fabric.hosts[j]))
        assert found.hops[0] == len(ways[0])
        chosen = [
            counts
            for counts in itertools.combinations_with_replacement(range(len(ways)), paths)
            if np.allclose(carried(fabric, [ways[c] for c in counts], 6.0 / paths), found.link_bytes)
        ]
        assert chosen


def carried(fabric: Fabric, ways: list[list[int]], size: float) -> Floats:
    loads = np.zeros(len(fabric.links))
    for way in ways:
        loads[way] += size
    return loads


def test_hashed_flows_spread_evenly_in_the_mean_and_change_with_the_seed() -> None:
    """Two switches joined by four cables: one flow takes one, many take all alike."""
    fabric = cabled("0-2 1-3 2-3 2-3 2-3 2-3", 2)
    between = np.flatnonzero((fabric.links.source == 2) & (fabric.links.target == 3))
    ones = [build_routes(f"ecmp:seed={s}", fabric, [0, 1]).link_bytes([0], [1], [1.0]) for s in range(40)]
    assert all(sorted(one[between].tolist()) == [0, 0, 0, 1] for one in ones)
    assert len({int(np.argmax(one[between])) for one in ones}) == 4
    many = build_routes("ecmp:paths=4000", fabric, [0, 1]).link_bytes([0], [1], [1.0])
    np.testing.assert_allclose(many[between], 0.25, atol=0.03)


def test_pairs_of_one_leaf_pair_are_hashed_each_for_itself() -> None:
    leaves = " ".join(f"{host}-{8 + host // 4}" for host in range(8))
    fabric = cabled(f"{leaves} 8-10 9-10 8-11 9-11 8-12 9-12 8-13 9-13", 8)
    routes = build_routes("ecmp", fabric, fabric.hosts)
    ups = np.flatnonzero((fabric.links.source == 8) & (fabric.links.target >= 10))
    taken = {int(np.argmax(routes.link_bytes([i], [j], [1.0])[ups])) for i in range(4) for j in range(4, 8)}
    assert len(taken) > 1
