"""Loads over all hop-shortest paths or a hashed one, against enumeration; searches of many goals at once."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.tori import torus
from mapping.routing import shortest_paths
from mapping.routing.catalog import build_routes
from mapping.routing.kernels.paths import Goals
from mapping.routing.network import end_points, transit_network
from mapping.routing.paths import hops_to, spread
from mapping.selfcheck.oracles import shortest_path_route
from registry.errors import DisconnectedAllocation, InvalidValue
from registry.model import Fabric, Floats
from tests.support.flow_checks import check_flows, check_loads, on_links, shortest_ways
from tests.support.infiniband_data import infiniband
from tests.support.small_fabrics import any_fabrics, cabled, dumbbell, ring_of_switches


@given(fabric=any_fabrics(), rails=st.sampled_from(["all-connected", "same-rail"]))
def test_loads_hops_and_flows_are_those_of_enumerated_paths(fabric: Fabric, rails: str) -> None:
    routes = shortest_paths.build(fabric, fabric.hosts, rails=rails)

    def byte_between(i: int, j: int) -> Floats | None:
        return on_links(fabric, shortest_path_route(fabric, i, j, rails))

    check_loads(routes, byte_between, DisconnectedAllocation)
    check_flows(routes)


@pytest.mark.parametrize("name", ["ndr-dgx-minhop", "irregular-16sw-updown"])
def test_flows_on_real_fabrics_sum_to_the_loads(name: str) -> None:
    fabric = infiniband(name)
    check_flows(shortest_paths.build(fabric, np.random.default_rng(2).choice(fabric.hosts, 8, replace=False)))


@given(p=st.sampled_from([4, 6, 8]), data=st.data())
def test_theorem_1_dumbbell_of_the_2011_paper(p: int, data: st.DataObject) -> None:
    """Congestion is P^3 + (edges cut) / P with s and t at the ends of the bar, else at least P^4."""
    pairs = st.tuples(st.integers(0, p - 1), st.integers(0, p - 1))
    edges = data.draw(st.sets(pairs.filter(lambda pair: pair[0] < pair[1])))
    place = np.array(data.draw(st.permutations(range(p))))  # vertex of each process; s = 0, t = 1
    if data.draw(st.booleans()):
        for process, end in ((0, 0), (1, p // 2)):
            place[[process, place.tolist().index(end)]] = end, place[process]
    weights = dict.fromkeys(edges, 1.0)
    weights[0, 1] = weights.get((0, 1), 0.0) + p**4
    source, target = np.array(sorted(weights)).T
    size = np.array([weights[edge] for edge in sorted(weights)])
    fabric = dumbbell(p)
    routes = shortest_paths.build(fabric, np.arange(p))
    both = np.r_[source, target], np.r_[target, source]
    loads = routes.link_bytes(place[both[0]], place[both[1]], np.r_[size, size])
    congestion = (loads / fabric.links.capacity).max()
    if {int(place[0]), int(place[1])} == {0, p // 2}:
        cut = sum((place[a] < p // 2) != (place[b] < p // 2) for a, b in edges)
        assert congestion == pytest.approx(p**3 + cut / p)
    else:
        assert congestion >= p**4


def test_the_diamond_splits_in_half_and_parallel_cables_by_capacity() -> None:
    # 0 -> 1, 2 -> 3, and 1 -> 3 by two cables of 1 and 3 bytes/s
    fabric = Fabric.from_arcs(list("abcd"), [0, 0, 1, 1, 2], [1, 2, 3, 3, 3], [1, 1, 1, 3, 1])
    routes = shortest_paths.build(fabric, [0, 3])
    loads = routes.link_bytes([0], [1], [16.0])
    links = fabric.links
    rows = zip(links.source.tolist(), links.target.tolist(), links.capacity.tolist(), strict=True)
    by_link = dict(zip(rows, loads.tolist(), strict=True))
    assert by_link == {(0, 1, 1): 8, (0, 2, 1): 8, (1, 3, 1): 2, (1, 3, 3): 6, (2, 3, 1): 8}


def test_hosts_do_not_carry_others_traffic() -> None:
    """Host 2 is on the switches of both others; the way around over three switches is longer."""
    routes = shortest_paths.build(cabled("0-3 3-2 2-4 4-1 3-5 5-4", 3), [0, 1, 2])
    assert routes.distances[0, [1, 2]].tolist() == [4, 2]


def random_fabric(vertices: int, arcs: int, seed: int, *, forwards: float = 1.0) -> Fabric:
    rng = np.random.default_rng(seed)
    arc = rng.integers(0, vertices, (2, arcs))
    ends, some = arc[:, arc[0] != arc[1]], rng.random(vertices) < forwards
    return Fabric.from_arcs([f"v{v:03}" for v in range(vertices)], ends[0], ends[1], 1.0, forwards=some)


@given(seed=st.integers(0, 999), arcs=st.integers(90, 600), forwards=st.sampled_from([1.0, 0.7]))
def test_hops_of_more_goals_than_bits_are_those_of_networkx(seed: int, arcs: int, forwards: float) -> None:
    fabric = random_fabric(90, arcs, seed, forwards=forwards)
    network = transit_network(fabric, end_points(fabric, np.arange(90, dtype=np.int32)))
    vertices = len(network.arcs.forwards)
    goals = Goals(np.arange(vertices, dtype=np.int32), np.full(vertices, -1, np.int32))
    found = hops_to(network.arcs, goals)
    assert found.dtype == np.int8
    tails = np.repeat(np.arange(vertices), np.diff(network.arcs.out_ptr)).tolist()
    graph: nx.DiGraph[Any] = nx.DiGraph(zip(tails, network.arcs.head.tolist(), strict=True))
    graph.add_nodes_from(range(vertices))
    inner = [v for v in range(vertices) if network.arcs.forwards[v]]
    for goal in range(0, vertices, 7):
        inside = graph.subgraph([*inner, goal]).reverse(copy=False)
        near = nx.single_source_shortest_path_length(inside, goal)
        expected = [near.get(v, -1) for v in range(vertices)]
        for start in set(range(vertices)) - {*inner, goal}:
            expected[start] = 1 + min((near[v] for v in graph.successors(start) if v in near), default=-2)
        np.testing.assert_array_equal(found[goal], expected)


@pytest.mark.parametrize("vertices", [255, 256])
def test_lengths_too_long_for_a_byte_are_stored_in_two(vertices: int) -> None:
    at = np.arange(vertices)
    routes = shortest_paths.build(torus((vertices,)), at)
    ahead = (at - at[:, None]) % vertices
    np.testing.assert_array_equal(routes.distances, np.minimum(ahead, vertices - ahead))
    load = routes.load([0, 3], [vertices // 2, 2], [4.0, 1.0])
    assert load.hops.tolist() == [vertices // 2, 1]
    assert load.link_bytes.sum() == 4 * (vertices // 2) + 1
    assert routes.flows.hops.dtype == (np.int8 if vertices // 2 <= 127 else np.int16)


def test_more_paths_than_can_be_counted_are_refused() -> None:
    """A chain of 1,100 diamonds, each with two ways: 2 ** 1,100 paths."""
    at = 3 * np.arange(1_100)
    tails, heads = np.r_[at, at, at + 1, at + 2], np.r_[at + 1, at + 2, at + 3, at + 3]
    chain = Fabric.from_arcs([f"v{v:04}" for v in range(3_301)], tails, heads, 1.0)
    with pytest.raises(InvalidValue, match="more paths than"):
        shortest_paths.build(chain, [0, 3_300]).link_bytes([0], [1], [1.0])


def test_loads_are_the_same_to_the_last_bit_with_any_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    fabric = random_fabric(700, 4_000, 1)
    network = transit_network(fabric, end_points(fabric, np.arange(700, dtype=np.int32)))
    rng = np.random.default_rng(2)
    goals = Goals(np.arange(700, dtype=np.int32), np.full(700, -1, np.int32))
    start, goal = rng.integers(0, 700, (2, 5_000)).astype(np.int32)
    amount = rng.random(5_000)
    known = hops_to(network.arcs, goals)
    found = []
    for cores in (1, 2, 5):
        monkeypatch.setattr("mapping.threads.cores", lambda cores=cores: cores)
        found.append(spread(network.arcs, goals, start, goal, amount))
        found.append(spread(network.arcs, goals, start, goal, amount, known))
    for loads, length in found[1:]:
        np.testing.assert_array_equal(np.r_[loads, length], np.r_[found[0]])


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
