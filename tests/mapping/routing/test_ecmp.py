"""Flows hashed onto single shortest paths, pair by pair."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.routing.catalog import build_routes
from mapping.routing.routes import Routes
from registry.errors import DisconnectedAllocation, InvalidValue
from registry.model import Fabric, Floats
from tests.support.small_fabrics import (
    adapter_fabrics,
    plain_fabrics,
    ring_of_switches,
)


def single_ways(fabric: Fabric, source: int, target: int) -> list[list[int]]:
    """All shortest ways cable by cable (one port a host)."""
    graph = nx.DiGraph(
        (int(a), int(b)) for a, b in zip(fabric.links.source, fabric.links.target, strict=True)
    )
    hosts = set(fabric.hosts.tolist()) - {source, target}
    found = []
    for path in nx.all_shortest_paths(graph.subgraph(set(graph) - hosts), source, target):
        steps = [
            np.flatnonzero((fabric.links.source == a) & (fabric.links.target == b)).tolist()
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
    a, b = [0, 1] + [2] * 4, [2, 3] + [3] * 4
    fabric = Fabric.from_arcs(list("abst"), a + b, b + a, 1.0, slots=[1, 1, 0, 0], forwards=False)
    between = np.flatnonzero((fabric.links.source == 2) & (fabric.links.target == 3))
    ones = [build_routes(f"ecmp:seed={s}", fabric, [0, 1]).link_bytes([0], [1], [1.0]) for s in range(40)]
    assert all(sorted(one[between].tolist()) == [0, 0, 0, 1] for one in ones)
    assert len({int(np.argmax(one[between])) for one in ones}) == 4
    many = build_routes("ecmp:paths=4000", fabric, [0, 1]).link_bytes([0], [1], [1.0])
    np.testing.assert_allclose(many[between], 0.25, atol=0.03)


def test_pairs_of_one_leaf_pair_are_hashed_each_for_itself() -> None:
    hosts = np.arange(8)
    leaf = 8 + hosts // 4
    spine = np.repeat([10, 11, 12, 13], 2)
    a, b = np.r_[hosts, np.tile([8, 9], 4)], np.r_[leaf, spine]
    fabric = Fabric.from_arcs(
        [f"v{v:02}" for v in range(14)],
        np.r_[a, b],
        np.r_[b, a],
        1.0,
        slots=[1] * 8 + [0] * 6,
        forwards=False,
    )
    routes: Routes = build_routes("ecmp", fabric, hosts)
    ups = np.flatnonzero((fabric.links.source == 8) & (fabric.links.target >= 10))
    taken = {int(np.argmax(routes.link_bytes([i], [j], [1.0])[ups])) for i in range(4) for j in range(4, 8)}
    assert len(taken) > 1


@given(fabric=st.one_of(adapter_fabrics(), plain_fabrics()), data=st.data())
def test_hashed_loads_add_up_and_keep_their_hops(fabric: Fabric, data: st.DataObject) -> None:
    routes = build_routes("ecmp:paths=2,seed=9", fabric, fabric.hosts)
    if not routes.connected:
        return
    hosts = st.integers(0, len(fabric.hosts) - 1)
    pairs = data.draw(st.lists(st.tuples(hosts, hosts, st.integers(0, 9)), max_size=6))
    i, j, size = (np.array([pair[k] for pair in pairs], np.int64) for k in range(3))
    found = routes.load(i, j, size)
    apart = [routes.link_bytes([a], [b], [c]) for a, b, c in pairs]
    np.testing.assert_allclose(found.link_bytes, sum(apart), atol=1e-12)
    straight = build_routes("shortest-paths", fabric, fabric.hosts)
    np.testing.assert_allclose(found.hops, straight.distances[i, j])
    assert found.link_bytes.sum() == pytest.approx(size @ found.hops)


def test_a_number_of_flows_below_one_and_a_negative_seed_are_refused() -> None:
    fabric = ring_of_switches(3)
    with pytest.raises(InvalidValue, match="below 1"):
        build_routes("ecmp:paths=0", fabric, fabric.hosts)
    with pytest.raises(InvalidValue, match="seed"):
        build_routes("ecmp:seed=-1", fabric, fabric.hosts)


def test_hosts_without_a_path_are_named() -> None:
    fabric = Fabric.from_arcs(list("abcd"), [0, 1, 2, 3], [1, 0, 3, 2], 1.0)
    routes = build_routes("ecmp", fabric, [0, 3])
    with pytest.raises(DisconnectedAllocation, match="'a' to host 'd'"):
        routes.load([0], [1], [1.0])
