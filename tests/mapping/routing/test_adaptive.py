"""Adaptive routing with a given share of non-minimal traffic, pair by pair."""

from __future__ import annotations

import itertools
from collections import defaultdict

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.routing.catalog import build_routes
from mapping.selfcheck.oracles import (
    Route,
    _all_shortest,
    _combine,
    _graph,
    _leaves,
    _node,
    _ports,
    _rail_pairs,
    shortest_path_route,
    table_route,
)
from registry.errors import DisconnectedAllocation, InvalidValue, UnknownName
from registry.model import Fabric
from tests.support.small_fabrics import (
    adapter_fabrics,
    plain_fabrics,
    ring_of_switches,
    table_fabrics,
)

SHARES = st.sampled_from([0.0, 0.25, 0.6, 1.0])


def detour(fabric: Fabric, source: int, target: int, rails: str) -> Route:
    """What a host sends to another by way of every switch alike, by enumeration (adapters only)."""
    graph, links = _graph(fabric), fabric.links
    middle = fabric.switches.tolist()
    channels: dict[tuple[int, int], list[list[Route]]] = defaultdict(list)
    for a, b in _rail_pairs(fabric, source, target, rails):
        for p, q in itertools.product(_ports(fabric, source, a), _ports(fabric, target, b)):
            (up,) = [row for row in range(len(links)) if _leaves(fabric, row) == p]
            (down,) = [
                row
                for row in range(len(links))
                if (links.target[row], links.target_adapter[row], links.target_port[row]) == q
            ]
            parts: dict[int, float] = defaultdict(float, {up: 1.0, down: 1.0})
            first, last = int(links.target[up]), int(links.source[down])
            for w in middle if first != last else []:
                for tail, head in ((first, w), (w, last)):
                    ways = switch_ways(fabric, graph, tail, head)
                    for way in ways:
                        for row, part in way:
                            parts[row] += part / len(ways) / len(middle)
            channels[a, b].append([list(parts.items())])
    route = _combine(channels)
    assert route is not None
    return route


def switch_ways(fabric: Fabric, graph: nx.DiGraph, tail: int, head: int) -> list[Route]:  # type: ignore[type-arg]
    from mapping.selfcheck.oracles import EndPoint

    ends = EndPoint(tail, -1, -1), EndPoint(head, -1, -1)
    assert [_node(fabric, end) for end in ends] == [tail, head]
    return _all_shortest(fabric, graph, *ends)


@pytest.mark.parametrize("minimal", ["shortest-paths", "tables"])
@given(data=st.data(), share=SHARES, rails=st.sampled_from(["all-connected", "same-rail"]))
def test_adaptive_loads_are_those_of_enumerated_ways(
    minimal: str, data: st.DataObject, share: float, rails: str
) -> None:
    fabric = data.draw(table_fabrics() if minimal == "tables" else adapter_fabrics())
    find = table_route if minimal == "tables" else shortest_path_route
    routes = build_routes(f"ugal:share={share},minimal={minimal}", fabric, fabric.hosts, rails=rails)
    group, between = routes.grouped_hops()
    for i, j in itertools.permutations(range(len(fabric.hosts)), 2):
        source, target = int(fabric.hosts[i]), int(fabric.hosts[j])
        wanted = np.zeros(len(fabric.links))
        straight = find(fabric, source, target, rails)
        assert straight is not None
        for route, part_of_all in ((straight, 1 - share), (detour(fabric, source, target, rails), share)):
            for row, part in route:
                wanted[row] += 3.0 * part * part_of_all
        found = routes.load([i], [j], [3.0])
        np.testing.assert_allclose(found.link_bytes, wanted, atol=1e-12)
        assert found.hops[0] == pytest.approx(wanted.sum() / 3.0)
        assert between[group[i], group[j]] == pytest.approx(wanted.sum() / 3.0)


@given(fabric=st.one_of(adapter_fabrics(), plain_fabrics()), data=st.data(), share=SHARES)
def test_adaptive_loads_add_up_over_pairs(fabric: Fabric, data: st.DataObject, share: float) -> None:
    routes = build_routes(f"valiant:share={share}", fabric, fabric.hosts)
    if not routes.connected:
        return
    hosts = st.integers(0, len(fabric.hosts) - 1)
    pairs = data.draw(st.lists(st.tuples(hosts, hosts, st.integers(0, 9)), max_size=6))
    try:
        apart = [routes.load([i], [j], [size]) for i, j, size in pairs]
    except DisconnectedAllocation:  # from some host no switch is reached, or from no switch some host
        return
    i, j, size = (np.array([pair[k] for pair in pairs], np.int64) for k in range(3))
    found = routes.load(i, j, size)
    np.testing.assert_allclose(found.link_bytes, sum(one.link_bytes for one in apart), atol=1e-12)
    np.testing.assert_allclose(found.hops, [one.hops[0] for one in apart])


def test_a_share_of_nothing_is_minimal_and_hosts_of_one_switch_stay_there() -> None:
    fabric = ring_of_switches(6)
    pairs = ([0, 2, 5], [1, 9, 11], [1.0, 2.0, 4.0])
    minimal = build_routes("shortest-paths", fabric, fabric.hosts).link_bytes(*pairs)
    same = build_routes("ugal:share=0", fabric, fabric.hosts).link_bytes(*pairs)
    np.testing.assert_allclose(same, minimal)
    valiant = build_routes("valiant", fabric, fabric.hosts)
    assert valiant.load([0], [1], [1.0]).hops[0] == 2.0
    assert valiant.load([0], [4], [1.0]).hops[0] == pytest.approx(2 + 2 * 1.5)


def test_a_share_outside_zero_to_one_and_an_unknown_minimal_routing_are_refused() -> None:
    fabric = ring_of_switches(3)
    with pytest.raises(InvalidValue, match="from 0 to 1"):
        build_routes("ugal:share=1.5", fabric, fabric.hosts)
    with pytest.raises(InvalidValue, match=r"valiant\.share"):
        build_routes("valiant:share=nan", fabric, fabric.hosts)
    with pytest.raises(UnknownName, match="shortest-paths"):
        build_routes("ugal:minimal=shortest", fabric, fabric.hosts)
    with pytest.raises(InvalidValue, match="forwarding tables"):
        build_routes("ugal:minimal=tables", fabric, fabric.hosts)


@pytest.mark.parametrize("routing", ["valiant", "ugal"])
def test_hosts_that_no_way_joins_are_named(routing: str) -> None:
    fabric = Fabric.from_arcs(list("abcd"), [0, 1, 2, 3], [1, 0, 3, 2], 1.0)
    routes = build_routes(routing, fabric, [0, 3])
    with pytest.raises(DisconnectedAllocation, match="'a' to host 'd'"):
        routes.load([0], [1], [1.0])
