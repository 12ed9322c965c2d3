"""Section 3.2 of Ajwani et al. (2013): coarsening, dual bisection, refinement, routes against slow ones."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.circuits import paper_partition
from mapping.circuits import paper_partition as refinement
from mapping.circuits.kernels import local_update
from mapping.circuits.kernels.routes import PartitionState, new_search, route_shortest
from mapping.circuits.kernels.workspace import NONE, Step, compare, new_workspace
from mapping.circuits.paper_partition import (
    Refinement,
    Scale,
    build_guest,
    coarsen,
    dual_bisection,
    matching,
    place_and_route,
    refine,
    route_unsplit,
)
from mapping.circuits.paper_seeds import ring, torus
from mapping.circuits.problem import Application, Level, Topology
from mapping.circuits.solution import evaluate
from mapping.placement.methods.bisection import Adjacency, weighted_graph
from registry.errors import InvalidValue, UnknownName
from registry.model import Ints
from tests.support import slow_local_update
from tests.support.reconfigure_problems import graph_of
from tests.support.slow_local_update import Case, Slow, Start, machine_of, started


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def sparse(vertices: int, seed: int = 0) -> Application:
    draw = rng(seed)
    tree = [(int(draw.integers(max(0, v - 20), v)), v) for v in range(1, vertices)]
    more = draw.integers(0, vertices, (vertices // 3, 2))
    ends = np.concatenate((np.array(tree), more)).T
    weight = draw.integers(1, 20, ends.shape[1])
    return Application.from_edges(ends[0], ends[1], weight, vertex_weight=draw.integers(1, 30, vertices))


# Coarsening (3.2.1)


def slow_matching(level: Level, most: int, expansion: str) -> list[int]:
    def key(e: int) -> float:
        product = float(level.vertex_weight[level.source[e]] * level.vertex_weight[level.target[e]])
        weight = float(level.weight[e])
        value = 0.0 if weight == 0 else np.inf if product == 0 else weight / product
        return value if expansion == paper_partition.LOWEST else -value

    mate = list(range(len(level.vertex_weight)))
    pairs = 0
    for e in sorted(range(len(level.weight)), key=key):
        one, other = int(level.source[e]), int(level.target[e])
        if pairs < most and mate[one] == one and mate[other] == other:
            mate[one], mate[other] = other, one
            pairs += 1
    return mate


@pytest.mark.parametrize("expansion", paper_partition.EXPANSIONS)
@given(application=slow_local_update.applications(), most=st.integers(0, 9))
def test_a_matching_takes_edges_by_expansion(expansion: str, application: Application, most: int) -> None:
    level = Level.of(application)
    found = matching(level, most, expansion=expansion)
    assert found.tolist() == slow_matching(level, most, expansion)
    free = matching(level, len(found)) == np.arange(len(found))  # an unbounded matching is maximal
    assert not (free[level.source] & free[level.target]).any()


@pytest.mark.parametrize(("nodes", "fewest"), [(1, 100), (16, 100), (22, 103), (32, 181), (64, 512)])
def test_graphs_are_coarsened_to_the_power_of_three_halves(nodes: int, fewest: int) -> None:
    assert paper_partition.fewest_vertices(nodes) == fewest
    levels = coarsen(sparse(1500), nodes, expansion="highest")
    assert len(levels[-1].vertex_weight) == fewest
    assert len(coarsen(sparse(90), nodes)) == 1


@pytest.mark.parametrize("expansion", paper_partition.EXPANSIONS)
def test_contraction_is_that_of_networkx(expansion: str) -> None:
    levels = coarsen(sparse(300), 16, expansion=expansion)
    for fine, coarse in itertools.pairwise(levels):
        assert len(coarse.vertex_weight) >= len(fine.vertex_weight) / 2
        graph: nx.Graph[int] = nx.Graph()
        graph.add_weighted_edges_from(zip(fine.source, fine.target, fine.weight, strict=True))
        blocks = [set(np.flatnonzero(coarse.vertex == v)) for v in range(len(coarse.vertex_weight))]
        whole = nx.quotient_graph(graph, blocks, relabel=True)
        pairs = zip(coarse.source.tolist(), coarse.target.tolist(), strict=True)
        found = dict(zip(pairs, coarse.weight.tolist(), strict=True))
        assert found == {(min(pair), max(pair)): whole.edges[pair]["weight"] for pair in whole.edges}
        inside = coarse.edge < 0
        assert (coarse.vertex[fine.source] == coarse.vertex[fine.target])[inside].all()
        edge = coarse.edge[~inside]
        ends = np.where(coarse.backwards[~inside], coarse.target[edge], coarse.source[edge])
        assert (ends == coarse.vertex[fine.source[~inside]]).all()
    assert all(level.vertex_weight.sum() == levels[0].vertex_weight.sum() for level in levels)


def test_a_star_is_not_contracted_leaf_by_leaf_to_the_end() -> None:
    star = Application.from_edges(np.zeros(4999, int), np.arange(1, 5000), np.ones(4999))
    assert len(coarsen(star, 16)) == 2
    nothing = Application.from_edges([], [], [], vertices=300, connected=False)
    assert len(coarsen(nothing, 16)) == 1
    with pytest.raises(UnknownName, match="middle"):
        coarsen(sparse(20), 2, expansion="middle")


# The initial partition (3.2.2)


def slow_cut(weight: list[int], edges: dict[tuple[int, int], int], share: float) -> tuple[float, float]:
    """How far beyond balance the best cut is (0 within 5%), and what it cuts."""
    total, found = sum(weight), []
    for inside in itertools.product((False, True), repeat=len(weight)):
        first = sum(w for w, within in zip(weight, inside, strict=True) if within)
        above = max(first / share, (total - first) / (1 - share)) / total - 1
        between = sum(size for (a, b), size in edges.items() if inside[a] != inside[b])
        found.append((0.0 if above <= paper_partition.SLACK else round(above, 9), between))
    return min(found)


@given(data=st.data(), size=st.integers(1, 7), share=st.sampled_from([0.5, 2 / 3, 0.6, 4 / 7]))
def test_small_graphs_are_cut_as_by_trying_all_cuts(data: st.DataObject, size: int, share: float) -> None:
    weight = data.draw(st.lists(st.integers(1, 6), min_size=size, max_size=size))
    pairs = [(a, b) for b in range(size) for a in range(b)]
    edges = {pair: data.draw(st.integers(0, 5)) for pair in pairs}
    ends = np.array(pairs, int).reshape(-1, 2)
    graph = weighted_graph(ends[:, 0], ends[:, 1], np.array(list(edges.values()), float), size)
    inside = paper_partition.cut_small(Adjacency.of(graph), np.array(weight, float), share)
    first = sum(w for w, within in zip(weight, inside, strict=True) if within)
    above = max(first / share, (sum(weight) - first) / (1 - share)) / sum(weight) - 1
    between = sum(one for (a, b), one in edges.items() if inside[a] != inside[b])
    assert (0.0 if above <= paper_partition.SLACK else round(above, 9), between) == slow_cut(
        weight, edges, share
    )


def clusters(sizes: list[int], heavy: float = 9.0) -> tuple[Application, Ints]:
    """Complete graphs in a row, neighbours joined by one light edge, and the one that each vertex is in."""
    of = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    same = [(a, b) for b in range(len(of)) for a in range(b) if of[a] == of[b]]
    starts = np.cumsum([0, *sizes[:-1]])
    row = list(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True))
    weight = [heavy] * len(same) + [1.0] * len(row)
    ends = np.array(same + row)
    return Application.from_edges(ends[:, 0], ends[:, 1], weight), of


def test_clusters_get_nodes_neighbouring_ones_neighbouring_halves_and_the_bigger_the_bigger() -> None:
    application, of = clusters([6, 6, 6, 6])
    node = dual_bisection(Level.of(application), Topology.of(4, [[0, 1], [1, 2], [2, 3]]), rng())
    assert len({(int(a), int(b)) for a, b in zip(of, node, strict=True)}) == 4
    assert len({int(n) // 2 for n in node[of < 2]}) == 1
    application, of = clusters([8, 4])
    node = dual_bisection(Level.of(application), Topology.of(3, [[0, 1], [1, 2]]), rng())
    assert [len(set(node[of == number].tolist())) for number in (0, 1)] == [2, 1]


def test_of_parts_of_the_same_load_that_with_more_edges_goes_to_that_with_more_links() -> None:
    # A triangle with a tail and a path, four vertices each; nodes alike, the denser half being 4 to 7.
    ends = np.array([(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (4, 6), (6, 7), (3, 7)])
    guest = Application.from_edges(ends[:, 0], ends[:, 1], [5, 5, 5, 5, 5, 5, 5, 1])
    flipped = Topology.of(8, 7 - ends)
    node = dual_bisection(Level.of(guest), flipped, rng(1))
    assert [sorted(half.tolist()) for half in (node[:4], node[4:])] == [[4, 5, 6, 7], [0, 1, 2, 3]]


@given(
    application=slow_local_update.applications(),
    topology=slow_local_update.topologies(most=12),
    seed=st.integers(0, 9),
)
def test_every_vertex_gets_a_node_by_seed(application: Application, topology: Topology, seed: int) -> None:
    node = dual_bisection(Level.of(application), topology, rng(seed))
    assert ((node >= 0) & (node < topology.nodes)).all()
    assert node.tobytes() == dual_bisection(Level.of(application), topology, rng(seed)).tobytes()


# All of it


@given(case=slow_local_update.cases(whole=False), depth=st.none() | st.integers(1, 9))
def test_every_application_is_placed_and_routed_on_every_topology(case: Case, depth: int | None) -> None:
    solution = place_and_route(*case, rng(), refinement=Refinement(depth=depth))
    again = evaluate(*case, solution.node_of_vertex, solution.route_ptr, solution.route)
    assert again.throughput == solution.throughput


@pytest.mark.parametrize("options", [{}, {"refinement": Refinement(depth=1)}])
def test_the_same_seed_gives_the_same_bytes_whether_levels_are_given_or_not(options: dict[str, Any]) -> None:
    case = sparse(700), torus(4, 4), machine_of(16, 100, 100)
    every = (None, coarsen(case[0], 16))
    one, other = (place_and_route(*case, rng(5), levels=levels, **options) for levels in every)
    assert one.route.tobytes() == other.route.tobytes()
    assert one.node_of_vertex.tobytes() == other.node_of_vertex.tobytes()


def test_fast_links_balance_and_slow_links_leave_nodes_empty() -> None:
    application, topology = sparse(600), torus(4, 4)
    total = float(application.vertex_weight.sum())
    fast = place_and_route(application, topology, machine_of(16, 1, 1e6), rng())
    assert fast.node_load.max() <= 1.05 * total / 16
    slow = place_and_route(application, topology, machine_of(16, 1e6, 1), rng())
    middle = place_and_route(application, topology, machine_of(16, 1, 1), rng())
    assert slow.link_load.max() < min(middle.link_load.max(), fast.link_load.max())
    assert (slow.node_load == 0).any()


def test_clusters_on_a_ring_are_found_whole_and_one_node_takes_all() -> None:
    application, of = clusters([30] * 8, heavy=50.0)
    solution = place_and_route(application, ring(8), machine_of(8, 1, 1), rng())
    assert solution.node_load.tolist() == [30.0] * 8
    assert len({(int(a), int(b)) for a, b in zip(of, solution.node_of_vertex, strict=True)}) == 8
    alone = place_and_route(application, Topology.of(1, []), machine_of(1, 10), rng())
    assert (alone.communication_throughput, alone.throughput) == (np.inf, 10 / 240)


def test_a_topology_that_falls_apart_or_is_of_another_machine_is_refused() -> None:
    with pytest.raises(InvalidValue, match="no path of links"):
        place_and_route(sparse(150), Topology.of(4, [[0, 1], [2, 3]]), machine_of(4), rng())
    with pytest.raises(InvalidValue, match="depth"):
        place_and_route(sparse(150), torus(3, 3), machine_of(9), rng(), refinement=Refinement(depth=-1))
    with pytest.raises(InvalidValue, match="the machine has 4"):
        place_and_route(sparse(150), torus(3, 3), machine_of(4), rng())


def test_metis_cuts_larger_graphs_within_the_slack() -> None:
    application = sparse(200)
    graph = weighted_graph(application.source, application.target, application.weight, 200)
    inside = paper_partition.cut(graph, application.vertex_weight, 0.5, seed=1)
    part = float(application.vertex_weight[inside].sum()) / float(application.vertex_weight.sum())
    assert abs(part - 0.5) <= 0.5 * (paper_partition.SLACK + 0.01)
    between = application.weight[inside[application.source] != inside[application.target]].sum()
    assert between < 0.25 * application.weight.sum()
    line = weighted_graph([0, 1, 2], [1, 2, 3], np.ones(3), 4)
    assert (
        paper_partition.cut(Adjacency.of(line), np.zeros(4), 0.5, seed=0).sum() == 2
    )  # without weight, by number


def refined(start: Start, depth: int | None, thorough: bool, steps: int = 1 << 62) -> int:
    """Return the number of steps of a refinement that does, or does not, route moved flows again."""
    work = new_workspace(*start, thorough)
    return int(local_update.refine(work, len(start.state.load) if depth is None else depth, steps))


@pytest.mark.parametrize("thorough", [False, True])
@given(given_case=started(), depth=st.integers(1, 4))
def test_a_bounded_search_begins_as_full(thorough: bool, given_case: tuple[Case, Start], depth: int) -> None:
    _, (net, guest, state) = given_case
    node, route, length, load = state
    whole = PartitionState(node.copy(), route.copy(), length.copy(), load.copy())
    made = refined(Start(net, guest, state), depth, thorough)
    assert refined(Start(net, guest, whole), None, thorough, made) == made
    assert all(np.array_equal(getattr(state, one), getattr(whole, one)) for one in PartitionState._fields)


def vector_of(case: Case, state: PartitionState) -> list[float]:
    ptr = np.concatenate(([0], np.cumsum(state.length)))
    solution = evaluate(*case, state.node, ptr, refinement.flat_routes(state))
    return [float(one) for one in slow_local_update.performance_vector(solution, case.machine)]


@pytest.mark.parametrize("thorough", [False, True])
@given(given_case=started(whole=False), depth=st.none() | st.integers(1, 4))
def test_whatever_the_weights_a_refinement_ends_with_true_loads_and_no_worse_throughput(
    thorough: bool, given_case: tuple[Case, Start], depth: int | None
) -> None:
    case, (net, guest, state) = given_case
    before = vector_of(case, state)
    refined(Start(net, guest, state), depth, thorough)
    kept = state.load.copy()
    refinement.set_loads(net, guest, state)
    assert kept.tobytes() == state.load.tobytes()
    assert vector_of(case, state)[0] >= before[0] * (1 - 1e-12)


@given(case=slow_local_update.cases(whole=False))
def test_seconds_on_the_grid_are_those_of_the_weights(case: Case) -> None:
    scale = Scale.of(case.application, case.machine)
    guest = build_guest(Level.of(case.application), scale)
    ratio = case.machine.compute_speed / case.machine.link_speed
    total = max(case.application.vertex_weight.sum(), case.application.weight.sum() * ratio)
    for value, weight in (
        (guest.vertex, case.application.vertex_weight),
        (guest.flow, case.application.weight * ratio),
    ):
        np.testing.assert_allclose(value / scale.vertex, weight, rtol=1e-12, atol=1e-15 * total)
        assert (np.rint(value / scale.unit) * scale.unit == value).all()
    assert max(guest.vertex.sum(), guest.flow.sum()) <= scale.unit * (2.0**52 + 32)


def test_whole_weights_are_not_rounded_and_edges_of_a_vertex_are_listed_from_the_heaviest() -> None:
    application = Application.from_edges([0, 1], [1, 2], [11, 13], vertex_weight=[3, 5, 7])
    scale = Scale.of(application, machine_of(2, compute_speed=100, link_speed=500))
    guest = build_guest(Level.of(application), scale)
    assert (guest.vertex * 11 * 100 == guest.flow[0] * np.array([3, 5, 7.0]) * 500).all()
    application = Application.from_edges([0, 0, 0, 1], [1, 2, 3, 2], [1, 5, 5, 9])
    guest = build_guest(Level.of(application), Scale.of(application, machine_of(2)))
    assert guest.edge[: guest.first[1]].tolist() == [1, 2, 0]
    assert guest.edge[guest.first[1] : guest.first[2]].tolist() == [3, 0]


def circle(rng: np.random.Generator, size: int) -> Application:
    vertex = np.arange(size)
    return Application.from_edges(vertex, (vertex + 1) % size, rng.integers(1, 9, size).astype(float))


@pytest.mark.parametrize("expansion", ["lowest", "highest"])
def test_projection_keeps_every_load(expansion: str) -> None:
    rng = np.random.default_rng(1)
    application = circle(rng, 400)
    topology, machine = Topology.of(4, [[0, 1], [1, 2], [2, 3], [0, 3], [0, 2]]), machine_of(4)
    levels = coarsen(application, 4, expansion=expansion)
    assert len(levels[-1].vertex_weight) == 100
    net, scale = refinement.build_net(topology), Scale.of(application, machine)
    node = rng.integers(0, 4, 100).astype(np.int32)
    state = route_unsplit(net, build_guest(levels[-1], scale), node, refinement.longest_route(topology))
    before = state.load
    for fine, coarse in zip(reversed(levels[:-1]), reversed(levels[1:]), strict=True):
        state = refinement.project(net, build_guest(fine, scale), state, coarse)
        assert (state.load == before).all()
    ptr = np.concatenate(([0], np.cumsum(state.length)))
    evaluate(application, topology, machine, state.node, ptr, refinement.flat_routes(state))  # routes join


def test_a_vertex_leaves_the_heavy_node_and_a_flow_the_hot_link() -> None:
    application = Application.from_edges([0, 1], [1, 2], [4, 4], vertex_weight=[5, 5, 5])
    case = Case(application, ring(3), machine_of(3))
    net, guest, state = slow_local_update.start(case, np.zeros(3, np.int32))
    assert vector_of(case, state)[0] == 1 / 15
    for wrong in ({"depth": -1}, {"steps": -1}):
        with pytest.raises(InvalidValue, match="-1, must"):
            refine(net, guest, state, Refinement(**wrong))
    assert refine(net, guest, state, Refinement(depth=None)) == 2
    assert sorted(state.node.tolist()) == [0, 1, 2]
    assert vector_of(case, state)[0] == 1 / 5


@pytest.mark.parametrize(
    ("vertices", "same_as"), [(refinement.WHOLE, None), (refinement.WHOLE + 1, refinement.BOUND)]
)
def test_by_default_large_graphs_are_searched_to_a_bound(vertices: int, same_as: int | None) -> None:
    rng = np.random.default_rng(3)
    application = circle(rng, vertices)
    net, scale = refinement.build_net(ring(6)), Scale.of(application, machine_of(6, link_speed=50))
    guest, node = build_guest(Level.of(application), scale), rng.integers(0, 6, vertices).astype(np.int32)
    found = [route_unsplit(net, guest, node.copy(), 5) for _ in range(3)]
    other = None if same_as else refinement.BOUND
    depths = (0, same_as, other)
    made = [refine(net, guest, *pair) for pair in zip(found, map(Refinement, depths), strict=True)]
    assert made[0] == made[1]
    assert found[0].route.tobytes() == found[1].route.tobytes()
    assert (made[0] < made[2]) == (same_as == refinement.BOUND)


def routes_of(state: PartitionState) -> list[list[int]]:
    return [state.route[e, :count].tolist() for e, count in enumerate(state.length.tolist())]


@pytest.mark.parametrize("thorough", [True, False])
@given(given_case=started())
def test_each_step_is_the_best_until_none_is_better(thorough: bool, given_case: tuple[Case, Start]) -> None:
    case, (net, guest, state) = given_case
    slow = Slow(case, state, thorough)
    work = new_workspace(net, guest, state, thorough)
    for _ in range(15):
        found = bool(local_update.find_best(work, len(state.load)))
        number = slow.make_best()
        assert (int(work.best.number[0]) if found else NONE) == number
        if not found:
            break
        local_update.make_best(work)
        assert slow.node == state.node.tolist()
        assert slow.routes == routes_of(state)


@pytest.mark.parametrize("thorough", [True, False])
@pytest.mark.parametrize("link_speed", [1.0, 4.0, 30.0])
@pytest.mark.parametrize("seed", range(2))
def test_what_is_known_to_be_stuck_changes_no_step(thorough: bool, link_speed: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ends, weight = rng.integers(0, 120, (2, 260)), rng.lognormal(0, 1, 260)
    weights: dict[str, Any] = {"vertex_weight": rng.lognormal(0, 1, 120), "connected": False}
    application = Application.from_edges(ends[0], ends[1], weight, **weights)
    nodes = np.arange(9)
    topology = Topology.of(9, np.concatenate([np.stack((nodes, (nodes + by) % 9), 1) for by in (1, 3)]))
    net = refinement.build_net(topology)
    scale = Scale.of(application, machine_of(9, link_speed=link_speed))
    guest, node = build_guest(Level.of(application), scale), rng.integers(0, 9, 120).astype(np.int32)
    made = []
    for known in (True, False):
        state = route_unsplit(net, guest, node.copy(), 8)
        work = new_workspace(net, guest, state, thorough)
        if not known:
            work = work._replace(memo=work.memo._replace(until=np.zeros((0, 0))))
        steps: list[int] = []
        while len(steps) < 60 and local_update.find_best(work, len(state.load)):
            steps.append(int(work.best.number[0]))
            local_update.make_best(work)
        made.append(steps)
    assert made[0] == made[1]
    assert made[0]


def step_of(before: list[int], after: list[int]) -> Step:
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    old = np.array(sorted((old for old, _ in changed), reverse=True), float)
    new = np.array(sorted((new for _, new in changed), reverse=True), float)
    return Step(np.zeros(1, np.int64), np.full(1, len(changed)), old, new)


@given(data=st.data(), size=st.integers(1, 8))
def test_comparing_what_changes_is_comparing_whole_sorted_vectors(data: st.DataObject, size: int) -> None:
    loads = st.lists(st.integers(0, 4), min_size=size, max_size=size)
    now, one, other = data.draw(loads), data.draw(loads), data.draw(loads)
    first, second = sorted(one, reverse=True), sorted(other, reverse=True)
    sign = int(compare(step_of(now, one), step_of(now, other)))
    assert np.sign(sign) == (first > second) - (first < second)


@given(data=st.data(), topology=slow_local_update.topologies(least=2, most=7), flow=st.integers(0, 4))
def test_the_least_congested_path_is_the_best(data: st.DataObject, topology: Topology, flow: int) -> None:
    size, last = len(topology.source), topology.nodes - 1
    load = data.draw(st.lists(st.integers(0, 6), min_size=size, max_size=size))
    source, target = data.draw(st.integers(0, last)), data.draw(st.integers(0, last))
    found = refinement.least_congested_path(topology, load, source, target, flow)
    slow = slow_local_update.path_by_trying_all(
        topology, [Fraction(one) for one in load], source, target, Fraction(flow)
    )
    assert found.tolist() == slow
    assert found.dtype == np.int32


RING = Topology.of(4, [[0, 1], [1, 2], [2, 3], [0, 3]])  # rows 01, 03, 12, 23


@pytest.mark.parametrize(
    ("topology", "load", "source", "target", "message"),
    [
        (RING, [0, 0, 0], 0, 1, "has shape"),
        (RING, [0, 0, 0, 0], 0, 4, "target: is 4, not within 0 .. 3"),
        (RING, [0, 0, 0, 0], -1, 1, "source: is -1"),
        (Topology.of(3, [[0, 1]]), [0], 0, 2, "no path of links connects node 0 and node 2"),
    ],
)
def test_a_path_that_cannot_be_is_refused(
    topology: Topology, load: list[float], source: int, target: int, message: str
) -> None:
    with pytest.raises(InvalidValue, match=message):
        refinement.least_congested_path(topology, load, source, target, 1)


def slowly_routed(case: Case, node: list[int]) -> list[list[int]]:
    """Section 3.2.2: shortest paths, then each edge, heaviest first, where the throughput rises."""
    state = slow_local_update.start(case, np.array(node, np.int32)).state
    slow = Slow(case, state, True)
    free = [Fraction(0)] * len(case.topology.source)
    slow.routes = [
        slow_local_update.path_by_trying_all(case.topology, free, node[one], node[other], Fraction(0))
        for one, other in slow.ends
    ]
    for e in sorted(range(len(slow.ends)), key=lambda e: (-slow.flow[e], e)):
        routes = slow.rerouted(e)
        if slow.vector(slow.node, routes)[0] < slow.vector(slow.node, slow.routes)[0]:
            slow.routes = routes
    return slow.routes


@given(given_case=started())
def test_unsplit_routing_is_shortest_paths_relieved_by_falling_weight(given_case: tuple[Case, Start]) -> None:
    case, (net, guest, state) = given_case
    assert routes_of(state) == slowly_routed(case, state.node.tolist())
    search = new_search(case.topology.nodes, len(case.topology.source), state.route.shape[1])
    assert route_shortest(net, guest, state, search) == -1
    far = dict(nx.all_pairs_shortest_path_length(graph_of(case.topology)))
    for e, (one, other) in enumerate(zip(guest.source, guest.target, strict=True)):
        assert state.length[e] == far[int(state.node[one])][int(state.node[other])]


def test_flows_between_nodes_that_no_links_join_are_refused() -> None:
    apart = Case(Application.from_edges([0], [1], [1]), Topology.of(3, [[0, 1]]), machine_of(3))
    with pytest.raises(InvalidValue, match="node 1 and node 2"):
        slow_local_update.start(apart, np.array([1, 2], np.int32))


@pytest.mark.parametrize(("nodes", "room"), [(1, 1), (2, 1), (64, 63), (65, 63), (200, 199)])
def test_routes_have_room_for_the_diameter(nodes: int, room: int) -> None:
    node = np.arange(1, nodes)
    before = node - 1 if nodes > 100 else np.zeros(nodes - 1, int)  # a line, or a star
    assert refinement.longest_route(Topology.of(nodes, np.stack((before, node), axis=1))) == room
