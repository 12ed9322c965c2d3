"""Loads of shortest, hashed, least loaded, detoured and up*/down* paths, against enumeration."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.direct import FIGURE_3, hyperx, torus
from mapping.cost.metrics import evaluate
from mapping.distances.cost_model import CostModel
from mapping.routing import shortest_paths
from mapping.routing.catalog import build_routes
from mapping.routing.kernels.paths import Goals
from mapping.routing.network import end_points, transit_network
from mapping.routing.shortest_paths import hops_to, spread
from mapping.routing.spread import _extremes, range_over_share
from mapping.selfcheck import oracles
from mapping.selfcheck.oracles import shortest_path_route
from registry.errors import DisconnectedAllocation, InvalidValue
from registry.model import Allocation, Fabric, Floats, Profile
from tests.support import flow_checks, small_fabrics
from tests.support.flow_checks import check_flows, check_loads, on_links, on_paths
from tests.support.infiniband_data import infiniband
from tests.support.small_fabrics import adapter_fabrics, any_fabrics, cabled, given_placement, plain_fabrics
from tests.support.sure import sure


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
    fabric = small_fabrics.dumbbell(p)
    routes = shortest_paths.build(fabric, np.arange(p))
    both = np.r_[source, target], np.r_[target, source]
    loads = routes.link_bytes(place[both[0]], place[both[1]], np.r_[size, size])
    congestion = (loads / fabric.links.capacity).max()
    if {int(place[0]), int(place[1])} == {0, p // 2}:
        cut = sum((place[a] < p // 2) != (place[b] < p // 2) for a, b in edges)
        assert congestion == pytest.approx(p**3 + cut / p)
    else:
        assert congestion >= p**4


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
        monkeypatch.setattr("mapping.deadline.cores", lambda cores=cores: cores)
        found.append(spread(network.arcs, goals, start, goal, amount))
        found.append(spread(network.arcs, goals, start, goal, amount, known))
    for loads, length in found[1:]:
        np.testing.assert_array_equal(np.r_[loads, length], np.r_[found[0]])


def single_ways(fabric: Fabric, source: int, target: int) -> list[list[int]]:
    """All shortest ways cable by cable (one port a host)."""
    links, found = fabric.links, []
    for path in flow_checks.shortest_ways(fabric, source, target):
        steps = [
            np.flatnonzero((links.source == a) & (links.target == b)).tolist()
            for a, b in itertools.pairwise(path)
        ]
        found += [list(way) for way in itertools.product(*steps)]
    return found


@pytest.mark.parametrize("paths", [1, 3])
def test_each_flow_takes_one_shortest_way(paths: int) -> None:
    fabric = small_fabrics.ring_of_switches(6)
    routes = build_routes(f"ecmp:paths={paths},seed=5", fabric, fabric.hosts)
    for i, j in itertools.permutations(range(12), 2):
        found = routes.load([i], [j], [6.0])
        ways = single_ways(fabric, int(fabric.hosts[i]), int(fabric.hosts[j]))
        assert found.hops[0] == len(ways[0])
        every = itertools.combinations_with_replacement(ways, paths)
        loads = (on_links(fabric, [(row, 6.0 / paths) for way in chosen for row in way]) for chosen in every)
        assert any(np.allclose(sure(load), found.link_bytes) for load in loads)


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


SHARES = st.sampled_from([0.0, 0.25, 0.6, 1.0])


def detour(fabric: Fabric, source: int, target: int, rails: str) -> oracles.Route:
    """What a host sends to another by way of every switch alike, by enumeration (adapters only)."""
    links, middle = fabric.links, fabric.switches.tolist()
    channels: dict[tuple[int, int], list[list[oracles.Route]]] = defaultdict(list)
    for a, b in oracles._rail_pairs(fabric, source, target, rails):
        for p, q in itertools.product(oracles._ports(fabric, source, a), oracles._ports(fabric, target, b)):
            (up,) = [row for row in range(len(links)) if oracles._leaves(fabric, row) == p]
            (down,) = [row for row in range(len(links)) if oracles._enters(fabric, row) == q]
            parts: dict[int, float] = defaultdict(float, {up: 1.0, down: 1.0})
            first, last = int(links.target[up]), int(links.source[down])
            for w in middle if first != last else []:
                for tail, head in ((first, w), (w, last)):
                    ends = oracles.EndPoint(tail, -1, -1), oracles.EndPoint(head, -1, -1)
                    ways = oracles._all_shortest(fabric, oracles._graph(fabric), *ends)
                    for row, part in itertools.chain(*ways):
                        parts[row] += part / len(ways) / len(middle)
            channels[a, b].append([list(parts.items())])
    return sure(oracles._combine(channels))


@pytest.mark.parametrize("minimal", ["shortest-paths", "tables"])
@given(data=st.data(), share=SHARES, rails=st.sampled_from(["all-connected", "same-rail"]))
def test_loads_are_those_of_all_ways(minimal: str, data: st.DataObject, share: float, rails: str) -> None:
    fabric = data.draw(small_fabrics.table_fabrics() if minimal == "tables" else adapter_fabrics())
    find = oracles.table_route if minimal == "tables" else oracles.shortest_path_route
    routes = build_routes(f"ugal:share={share},minimal={minimal}", fabric, fabric.hosts, rails=rails)

    def byte_between(i: int, j: int) -> Floats:
        straight = sure(on_links(fabric, find(fabric, i, j, rails)))
        return (1 - share) * straight + share * sure(on_links(fabric, detour(fabric, i, j, rails)))

    check_loads(routes, byte_between, DisconnectedAllocation)


@given(fabric=small_fabrics.plain_fabrics(), data=st.data())
def test_each_pair_loads_a_least_loaded_shortest_path(fabric: Fabric, data: st.DataObject) -> None:
    routes = build_routes("least-loaded", fabric, fabric.hosts)
    connected = np.argwhere(np.isfinite(routes.distances) & (routes.distances > 0))
    if not len(connected):
        return
    chosen = connected[data.draw(st.lists(st.integers(0, len(connected) - 1), min_size=1, max_size=10))]
    count = len(chosen)
    sizes = np.array(data.draw(st.lists(st.integers(1, 9), min_size=count, max_size=count)), float)
    before, links = np.zeros(len(fabric.links)), fabric.links
    for turn, (i, j) in enumerate(chosen.tolist()):
        pairs = chosen[: turn + 1]
        load = routes.load(pairs[:, 0], pairs[:, 1], sizes[: turn + 1])
        every = flow_checks.shortest_ways(fabric, int(routes.hosts[i]), int(routes.hosts[j]))
        seconds = before / links.capacity
        cost = [
            sum(seconds[(links.source == a) & (links.target == b)][0] for a, b in itertools.pairwise(way))
            for way in every
        ]
        carried = (sizes[turn] * on_paths(fabric, [way]) for way in every)
        taken = [np.allclose(load.link_bytes, before + one, atol=1e-9) for one in carried]
        assert any(took and cost[w] <= min(cost) + 1e-9 for w, took in enumerate(taken))
        assert load.hops[turn] == len(every[0]) - 1
        before = load.link_bytes


def loads(text: str, sizes: list[float]) -> list[float]:
    """Bytes on 0-2 and 0-3 where 0 sends to 1, by way of 2 or 3, once for each size."""
    fabric, pairs = cabled("0-2 2-1 0-3 3-1", 2), len(sizes)
    found = build_routes(text, fabric, [0, 1]).link_bytes([0] * pairs, [1] * pairs, sizes)
    return [float(found[(fabric.links.source == 0) & (fabric.links.target == v)].sum()) for v in (2, 3)]


def test_pairs_take_their_turn_as_given_or_heaviest_first() -> None:
    assert loads("least-loaded", [1.0, 2.0, 3.0]) == [4.0, 2.0]
    assert loads("least-loaded:order=heaviest", [1.0, 2.0, 3.0]) == [3.0, 3.0]


def test_small_loads_count_beside_any_number_of_hops() -> None:
    """What the paper's large weight on every link loses in 64 bits."""
    assert loads("least-loaded", [0.2, 0.2, 1e17, 0.2]) == [0.2 + 1e17, 0.4]


@given(fabric=adapter_fabrics(), profile=small_fabrics.profiles(min_ranks=2), data=st.data())
def test_the_range_holds_what_any_share_gives(fabric: Fabric, profile: Profile, data: st.DataObject) -> None:
    placement, shares = data.draw(small_fabrics.placements(fabric, profile)), np.linspace(0, 1, 5)
    found = range_over_share(fabric, profile, placement, shares)
    chosen = [f"ugal:share={share}" for share in (*shares, found.least_share, found.least_network_share)]
    every = [evaluate(fabric, profile, placement, costs=CostModel(routing=one)) for one in chosen]
    at, network = ([getattr(one, f"{of}congestion_seconds") for one in every] for of in ("", "network_"))
    for given_shares, values, least, most, own in (
        (found.congestion_seconds, at, found.least_seconds, found.most_seconds, at[-2]),
        (
            *(found.network_congestion_seconds, network),
            *(found.least_network_seconds, found.most_network_seconds, network[-1]),
        ),
    ):
        np.testing.assert_allclose(given_shares, values[:-2])
        assert least <= min(values) * (1 + 1e-9) + 1e-12
        assert most >= max(values) * (1 - 1e-9) - 1e-12
        assert least == pytest.approx(own, abs=1e-12)


def test_a_worst_pattern_is_best_served_by_some_non_minimal_ways() -> None:
    """On six switches all joined to all, everyone sends to the next: one link of five is used, until
    detours use the others. Way by way: the direct link has 2 (1 - x) + 2 x 2/6, others 4 x / 6.
    """
    fabric = hyperx((6,), 2)
    allocation = Allocation.of(fabric, fabric.hosts.tolist())
    on = given_placement(allocation, allocation.hosts)
    at = np.arange(12)
    profile = Profile.from_edges(at, (at + 2) % 12, np.ones(12))
    found = range_over_share(fabric, profile, on)
    assert found.network_congestion_seconds[0] == 2.0
    assert (found.most_network_share, found.least_network_share) == (0.0, 1.0)
    assert found.least_network_seconds == pytest.approx(2 / 3)
    with pytest.raises(InvalidValue, match="from 0 to 1"):
        range_over_share(fabric, profile, on, shares=[2.0])


def test_of_equal_worst_links_the_smallest_share_is_returned() -> None:
    ends = np.array([[2.0, 1.0], [2.0, 2.0]])  # seconds of two links at the shares 0 and 1
    assert _extremes(ends) == (2.0, 0.0, 2.0, 0.0)


def autonet() -> Fabric:
    """The network of Figure 3 of the 2004 paper: ten switches, taken as hosts themselves."""
    ends = np.array(FIGURE_3)
    return Fabric.from_arcs(map(str, range(10)), ends.flatten(), ends[:, ::-1].flatten(), 1.0)


def levels(graph: nx.Graph[Any], root: int | None) -> dict[int, int]:
    """Links from the roots: the one given, else in each part the vertex with most neighbours, the first."""
    found: dict[int, int] = {}
    for part in nx.connected_components(graph):
        best = min(part, key=lambda v: (-graph.degree(v), v)) if root not in part else root
        found |= nx.single_source_shortest_path_length(graph.subgraph(part), best)
    return found


def legal_paths(fabric: Fabric, source: int, target: int, root: int | None = None) -> list[list[int]]:
    """All simple paths that go up no more once they went down, over vertices that forward."""
    graph = flow_checks.graph_between(fabric, source, target)
    inner: nx.Graph[Any] = nx.Graph(flow_checks.graph_between(fabric, -1, -1))
    level = levels(inner, root)

    def up(a: int, b: int) -> bool:
        far = len(fabric)
        return (level.get(b, far), b) < (level.get(a, far), a)

    found = []
    for path in nx.all_simple_paths(graph, source, target):
        turns = [up(a, b) for a, b in itertools.pairwise(path)]
        if turns == sorted(turns, reverse=True):
            found.append(path)
    return found


@given(fabric=plain_fabrics(), data=st.data())
def test_loads_are_those_of_all_shortest_legal_paths(fabric: Fabric, data: st.DataObject) -> None:
    root = data.draw(st.sampled_from([None, *np.flatnonzero(fabric.forwards).tolist()]))
    routes = build_routes(f"up-down:root=v{root}" if root is not None else "up-down", fabric, fabric.hosts)

    def byte_between(i: int, j: int) -> Floats | None:
        paths = legal_paths(fabric, i, j, root)
        shortest = [path for path in paths if len(path) == min(map(len, paths))]
        return on_paths(fabric, shortest) if shortest else None

    check_loads(routes, byte_between, DisconnectedAllocation)


@given(fabric=any_fabrics(), rails=st.sampled_from(["all-connected", "same-rail"]))
def test_flows_sum_to_the_loads(fabric: Fabric, rails: str) -> None:
    check_flows(build_routes("up-down", fabric, fabric.hosts, rails=rails))


def test_table_1_of_the_2004_paper() -> None:
    paths = {"-".join(map(str, path)) for path in legal_paths(autonet(), 0, 1, 6)}
    assert paths == {"0-2-6-4-1", "0-2-1", "0-4-6-2-1", "0-4-1"}
    routes = build_routes("up-down:root=6", autonet(), np.arange(10))
    links = autonet().links
    loads = routes.link_bytes([0], [1], [1.0])
    used = {f"{links.source[row]}-{links.target[row]}": loads[row] for row in np.flatnonzero(loads)}
    assert used == {"0-2": 0.5, "2-1": 0.5, "0-4": 0.5, "4-1": 0.5}


def test_the_default_root_is_the_first_vertex_with_most_neighbours() -> None:
    """A ring of six, where vertices 2 and 5 are linked, too."""
    ends = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (2, 5)])
    fabric = Fabric.from_arcs(map(str, range(6)), ends.flatten(), ends[:, ::-1].flatten(), 1.0)
    i, j = np.array(list(itertools.permutations(range(6), 2))).T
    by_default, *by_root = (
        build_routes(f"up-down{root}", fabric, np.arange(6)).link_bytes(i, j, np.arange(len(i)))
        for root in ("", ":root=2", ":root=5", ":root=0")
    )
    assert [np.array_equal(by_default, one) for one in by_root] == [True, False, False]
