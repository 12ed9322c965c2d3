"""Adaptive routing with a stated non-minimal share, and flows hashed onto single ways, pair by pair."""

from __future__ import annotations

import itertools
from collections import defaultdict

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.distances.cost_model import CostModel
from mapping.evaluation.metrics import evaluate
from mapping.routing.catalog import build_routes
from mapping.routing.routes import Routes
from mapping.routing.share_range import range_over_share
from registry.errors import DisconnectedAllocation, InvalidValue, UnknownName
from registry.model import Allocation, Fabric, Floats, Placement, Profile
from tests.support.oracles import (
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
from tests.support.small_fabrics import adapter_fabrics, plain_fabrics, profiles, table_fabrics

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
    from tests.support.oracles import EndPoint

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


def ring_of_switches(switches: int) -> Fabric:
    """Two hosts on every switch of a ring."""
    s, h = np.arange(switches), switches + np.arange(2 * switches)
    tails, heads = np.r_[s, h], np.r_[(s + 1) % switches, np.repeat(s, 2)]
    return Fabric.from_arcs(
        [f"s{i}" for i in s] + [f"h{i}" for i in h],
        np.r_[tails, heads],
        np.r_[heads, tails],
        1.0,
        slots=np.r_[np.zeros(switches, int), np.ones(2 * switches, int)],
        forwards=False,
    )


def switches_all_joined(switches: int) -> Fabric:
    """Two hosts on every switch, every switch cabled to every other."""
    s, h = np.arange(switches), switches + np.arange(2 * switches)
    a, b = np.nonzero(~np.eye(switches, dtype=bool))
    leaf = np.repeat(s, 2)
    return Fabric.from_arcs(
        [f"s{i}" for i in s] + [f"h{i}" for i in h],
        np.r_[a, h, leaf],
        np.r_[b, leaf, h],
        1.0,
        slots=np.r_[np.zeros(switches, int), np.ones(2 * switches, int)],
        forwards=False,
    )


def shifted(fabric: Fabric, by: int) -> tuple[Profile, Placement]:
    """Each host sends one byte so many hosts on."""
    n = len(fabric.hosts)
    at = np.arange(n)
    allocation = Allocation.of(fabric, fabric.hosts.tolist())
    profile = Profile.from_edges(at, (at + by) % n, np.ones(n))
    return profile, Placement(host_of_rank=allocation.hosts, allocation=allocation, strategy="given")


@given(fabric=adapter_fabrics(), profile=profiles(min_ranks=2), data=st.data())
def test_the_range_over_the_share_holds_what_any_share_gives(
    fabric: Fabric, profile: Profile, data: st.DataObject
) -> None:
    from tests.support.small_fabrics import allocations

    allocation = data.draw(allocations(fabric, profile.ranks))
    host_of_rank = allocation.host_of_slot[: profile.ranks]
    placement = Placement(host_of_rank=host_of_rank, allocation=allocation, strategy="given")
    shares = np.linspace(0, 1, 11)
    found = range_over_share(fabric, profile, placement, shares)
    for name, least, most in (
        ("congestion_seconds", found.least_seconds, found.most_seconds),
        ("network_congestion_seconds", found.least_network_seconds, found.most_network_seconds),
    ):
        at = [
            getattr(evaluate(fabric, profile, placement, CostModel(routing=f"ugal:share={share}")), name)
            for share in (*shares, found.least_share, found.least_network_share)
        ]
        np.testing.assert_allclose(getattr(found, name), at[:11])
        assert least <= min(at) * (1 + 1e-9) + 1e-12
        assert most >= max(at) * (1 - 1e-9) - 1e-12
        own = at[11] if name == "congestion_seconds" else at[12]
        assert least == pytest.approx(own, abs=1e-12)


def test_a_worst_pattern_is_best_served_by_some_non_minimal_ways() -> None:
    """On six switches all joined to all, everyone sends to the next: one link of five is used, until
    detours use the others. Way by way: the direct link has 2 (1 - x) + 2 x 2/6, others 4 x / 6.
    """
    fabric = switches_all_joined(6)
    found = range_over_share(fabric, *shifted(fabric, 2))
    assert found.network_congestion_seconds[0] == 2.0
    assert found.most_network_share == 0.0
    assert found.least_network_share == 1.0
    assert found.least_network_seconds == pytest.approx(2 / 3)


def test_shares_and_flows_that_make_no_sense_are_refused() -> None:
    fabric = ring_of_switches(3)
    with pytest.raises(InvalidValue, match="from 0 to 1"):
        build_routes("ugal:share=1.5", fabric, fabric.hosts)
    with pytest.raises(InvalidValue, match=r"valiant\.share"):
        build_routes("valiant:share=nan", fabric, fabric.hosts)
    with pytest.raises(UnknownName, match="shortest-paths"):
        build_routes("ugal:minimal=shortest", fabric, fabric.hosts)
    with pytest.raises(InvalidValue, match="forwarding tables"):
        build_routes("ugal:minimal=tables", fabric, fabric.hosts)
    with pytest.raises(InvalidValue, match="below 1"):
        build_routes("ecmp:paths=0", fabric, fabric.hosts)
    with pytest.raises(InvalidValue, match="seed"):
        build_routes("ecmp:seed=-1", fabric, fabric.hosts)
    with pytest.raises(InvalidValue, match="from 0 to 1"):
        range_over_share(fabric, *shifted(fabric, 1), shares=[2.0])


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
    fabric = Fabric.from_arcs("abst", a + b, b + a, 1.0, slots=[1, 1, 0, 0], forwards=False)
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


@pytest.mark.parametrize("routing", ["valiant", "ugal", "ecmp"])
def test_hosts_that_no_way_joins_are_named(routing: str) -> None:
    fabric = Fabric.from_arcs("abcd", [0, 1, 2, 3], [1, 0, 3, 2], 1.0)
    routes = build_routes(routing, fabric, [0, 3])
    with pytest.raises(DisconnectedAllocation, match="'a' to host 'd'"):
        routes.load([0], [1], [1.0])
