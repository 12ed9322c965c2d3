"""The loop and its edge swaps (section 3.3) from its first topologies (3.1), and the true optimum."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any
from unittest.mock import MagicMock

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.papers.circuits.enumeration import MOST_NODES, maximal_topologies, optimum
from ingest.generate.streams import stream_graph
from mapping.circuits import paper, paper_seeds
from mapping.circuits import paper_seeds as seeds
from mapping.circuits.bounds import throughput_bound
from mapping.circuits.paper import LoopOptions, bottleneck_cut, co_optimise, next_swap, swap_pair
from mapping.circuits.paper_seeds import (
    LoadedTopology,
    chordal_ring,
    ring,
    satisfy_max_degree,
    seed_topology,
    torus,
)
from mapping.circuits.problem import Application, Machine, Topology
from mapping.circuits.solution import COMMUNICATION, COMPUTE, Solution, bottleneck
from registry.errors import InvalidValue, UnknownName
from tests.support import reconfigure_problems
from tests.support.reconfigure_problems import applications, graph_of, links_of, machine, machines, topologies
from tests.support.sure import sure


def streams(vertices: int, seed: int = 0) -> Application:
    of = stream_graph(vertices, seed=seed)
    return Application.from_edges(of.source, of.target, of.edge_weight, vertex_weight=of.vertex_weight)


PAPER = Machine(nodes=16, max_degree=4, max_edges=32, compute_speed=1000.0, link_speed=10.0)
"""Of the paper's Table 2, row 9."""


@given(applications(), machines(), st.integers(0, 3), st.sampled_from(["condensed", "torus", "ring"]))
def test_what_is_found_keeps_limits(application: Application, limits: Machine, seed: int, name: str) -> None:
    options = LoopOptions(seed_topology=name, seed=seed, patience=3)
    found = co_optimise(application, limits, options)
    reconfigure_problems.check_search(application, limits, found)
    assert found.complete
    assert found.throughput <= throughput_bound(application, limits).throughput * (1 + 1e-9)
    assert reconfigure_problems.same_search(found, co_optimise(application, limits, options))


def test_the_trail_has_every_iteration_and_ends_after_so_many_without_gain() -> None:
    found = co_optimise(streams(100), PAPER, LoopOptions(patience=6, seed=1))
    trail = found.trail
    assert (trail[0].removed, trail[0].inserted) == ((), ())
    best = itertools.accumulate((one.throughput for one in trail), max)
    assert [one.best for one in trail] == pytest.approx(list(best))
    assert found.throughput == trail[-1].best == trail[found.best_iteration].throughput
    assert len(trail) == found.best_iteration + 1 + 6
    assert found.improvement == found.throughput / trail[0].throughput >= 1.0
    for one in trail:
        assert one.throughput == min(one.compute_throughput, one.communication_throughput)
        slower = "compute" if one.compute_throughput <= one.communication_throughput else "communication"
        assert one.bottleneck == slower
        assert one.seconds >= 0


def test_each_topology_is_the_one_before_after_its_swap() -> None:
    seeds = chordal_ring(16, 4)
    found = co_optimise(streams(100), PAPER, LoopOptions(seed_topology=seeds, patience=5, seed=2))
    links: set[Any] = links_of(seeds)
    for one in found.trail:
        gone = {tuple(sorted(pair)) for pair in one.removed}
        come = {tuple(sorted(pair)) for pair in one.inserted}
        assert gone <= links
        assert not come & links
        links = links - gone | come
        assert len(links) == one.links == 32
        if one.number == found.best_iteration:
            assert links == links_of(found.topology)
    other = co_optimise(streams(100), PAPER, LoopOptions(seed_topology=seeds, patience=5, seed=3))
    assert not reconfigure_problems.same_search(found, other)


def test_no_patience_is_the_seed_topology_alone_and_no_time_begins_no_iteration() -> None:
    found = co_optimise(streams(60), PAPER, LoopOptions(seed_topology=torus(4, 4), patience=0))
    assert (len(found.trail), found.improvement) == (1, 1.0)
    assert links_of(found.topology) == links_of(torus(4, 4))
    assert len(co_optimise(streams(60), PAPER, LoopOptions(seconds=0.0)).trail) == 1


def test_an_interrupt_keeps_the_best_so_far_and_marks_it_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[float] = []

    def interrupt(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        reports.append(done)
        if done == 2:
            raise KeyboardInterrupt

    whole = co_optimise(streams(100), PAPER, LoopOptions(patience=2, seed=1))
    found = co_optimise(streams(100), PAPER, LoopOptions(patience=50, seed=1), progress=interrupt)
    assert not found.complete
    assert reports == [0, 1, 2]
    assert whole.trail[:3] == found.trail
    assert found.throughput == found.trail[-1].best
    found.topology.require(PAPER)
    monkeypatch.setattr(paper, "place_and_route", MagicMock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):  # before anything was found
        co_optimise(streams(60), PAPER)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patience": -1}, "patience: is -1"),
        ({"skip": 1.0}, "skip: is 1.0"),
        ({"skip": math.nan}, "skip: is nan"),
        ({"seed": -1}, "seed: is -1"),
        ({"seconds": math.nan}, "seconds: is nan"),
        ({"seed_topology": torus(3, 3)}, "has 9 nodes, the machine has 16"),
        ({"seed_topology": "kautz"}, "there is no seed topology 'kautz'"),
    ],
)
def test_parameters_that_cannot_be_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidValue, UnknownName), match=message):
        co_optimise(streams(20), PAPER, LoopOptions(**options))


def test_one_node_does_all_two_share_and_some_stay_empty_where_links_are_too_slow() -> None:
    """The rule of section 4.1: as links slow down, few partitions with little traffic across are best."""
    line = Application.from_edges([0], [1], [1.0], vertex_weight=[3.0, 1.0])
    alone = co_optimise(line, machine(1, max_degree=0, max_edges=0))
    assert (alone.throughput, alone.solution.communication_throughput) == (0.25, math.inf)
    shared = co_optimise(line, machine(2, max_degree=1, max_edges=1, link_speed=5.0))
    assert shared.throughput == pytest.approx(1 / 3)
    slow = replace(PAPER, compute_speed=100.0, link_speed=1e-6)
    found = co_optimise(streams(100), slow, LoopOptions(patience=3))
    assert len(np.unique(found.solution.node_of_vertex)) < 16


@given(applications(max_vertices=6, max_more=3), machines(max_nodes=4), st.integers(0, 2))
def test_no_search_beats_the_true_optimum(application: Application, limits: Machine, seed: int) -> None:
    best = optimum(application, limits)
    best.topology.require(limits)
    found = co_optimise(application, limits, LoopOptions(seed=seed, patience=4))
    assert found.throughput <= best.solution.throughput * (1 + 1e-9)
    assert best.solution.throughput <= throughput_bound(application, limits).throughput * (1 + 1e-9)


def test_the_optimum_of_too_large_an_instance_is_refused() -> None:
    for application, nodes, message in (
        (streams(4), 6, f"6 are more than the {MOST_NODES}"),
        (streams(9), 4, "vertex_weight: 9 are more than the 8"),
        (reconfigure_problems.every_pair(6), 4, "source: 15 are more than the 12"),
    ):
        with pytest.raises(InvalidValue, match=message):
            optimum(application, machine(nodes))


@given(machines(max_nodes=4))
def test_maximal_topologies_are_within_the_limits_and_take_no_link_more(limits: Machine) -> None:
    found = maximal_topologies(limits)
    assert found
    assert len({frozenset(links_of(topology)) for topology in found}) == len(found)
    for topology in found:
        topology.require(limits)
        for one, other in itertools.combinations(range(limits.nodes), 2):
            if topology.link_between(one, other) < 0:
                with pytest.raises(InvalidValue):
                    topology.changed(added=[(one, other)]).require(limits)


LOADS = st.sampled_from([0.0, 1.0, 2.0, 5.0])


def solution(
    node_load: list[float], link_load: list[float], *, compute: float = 1.0, link: float = 1.0
) -> Solution:
    """A solution of which only loads count: speeds over the largest of each."""
    fields: dict[str, Any] = dict.fromkeys(("node_of_vertex", "route_ptr", "route"), np.zeros(0, np.int32))
    fields |= {"node_load": np.array(node_load), "link_load": np.array(link_load)}
    return Solution(
        **fields,
        compute_throughput=compute / max(node_load),
        communication_throughput=link / max(link_load) if max(link_load) > 0 else np.inf,
        throughput=0.0,
    )


@st.composite
def loaded(draw: st.DrawFn) -> tuple[Topology, Solution]:
    topology = draw(topologies(min_nodes=4, max_nodes=8))
    nodes = draw(st.lists(LOADS, min_size=topology.nodes, max_size=topology.nodes).filter(any))
    links = draw(st.lists(LOADS, min_size=topology.links, max_size=topology.links).filter(any))
    return topology, solution(nodes, links, compute=draw(st.sampled_from([0.1, 1.0, 10.0])))


def test_the_slower_of_compute_and_communication_is_the_bottleneck() -> None:
    found = [bottleneck(solution([node], [link])) for node, link in ((2, 1), (1, 2), (1, 1), (1, 0))]
    assert found == [COMPUTE, COMMUNICATION, COMPUTE, COMPUTE]


def test_for_compute_the_lowest_expansion_meets_the_lowest_vertex_product() -> None:
    """Figure 3: heavy nodes 0 and 1, light ones 4 and 5, joined afterwards."""
    topology = ring(6)  # rows: 0-1, 0-5, 1-2, 2-3, 3-4, 4-5
    found = solution([10.0, 9.0, 5.0, 4.0, 2.0, 1.0], [1.0, 6.0, 6.0, 6.0, 6.0, 1.0])
    first = next(paper.compute_candidates(topology, found))
    assert [tuple(topology.pairs[row].tolist()) for row in first] == [(0, 1), (4, 5)]
    swap = sure(next_swap(topology, found, np.random.default_rng(0), skip=0.0))
    assert swap.removed == ((0, 1), (4, 5))
    made = {frozenset(pair) for pair in swap.inserted}
    assert made == {frozenset((0, 4)), frozenset((1, 5))}  # 0-5 is there
    # a link at an empty node is never the first choice of heavy nodes
    line = Topology.of(4, [(0, 1), (1, 2), (2, 3)])
    assert next(paper.compute_candidates(line, solution([0.0, 3.0, 3.0, 3.0], [0.0, 1.0, 2.0]))) == (1, 0)


def test_for_communication_light_links_of_both_sides_of_the_cut_are_swapped() -> None:
    """Triangles joined by links 2-3 and 1-4: as in Figure 5, both go before the graph falls apart."""
    topology = Topology.of(6, [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (2, 3), (1, 4)])
    load = [3.0] * 8
    for pair, value in {(2, 3): 9.0, (1, 4): 8.0, (0, 1): 1.0, (3, 5): 0.5}.items():
        load[topology.link_between(*pair)] = value
    assert bottleneck_cut(topology, np.array(load)).tolist() == [False] * 3 + [True] * 3
    swap = sure(next_swap(topology, solution([1.0] * 6, load), np.random.default_rng(0), skip=0.0))
    assert swap.removed == ((0, 1), (3, 5))
    crossing = [pair for pair in links_of(swap.topology) if (pair[0] < 3) != (pair[1] < 3)]
    assert len(crossing) == 4


def test_where_a_side_of_the_cut_has_no_link_the_lightest_pair_is_swapped() -> None:
    """Node 0 sends all: the cut is around it."""
    topology = Topology.of(5, [(0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 4)])
    found = solution([1.0] * 5, [9.0, 8.0, 1.0, 2.0, 3.0, 1.5])
    assert bottleneck_cut(topology, found.link_load).tolist() == [False, True, True, True, True]
    candidates = list(paper.communication_candidates(topology, found))
    assert candidates[0] == (2, 5)
    swap = sure(next_swap(topology, found, np.random.default_rng(0), skip=0.0))
    allowed = (pair for pair in candidates if swap_pair(topology, *pair, crossed=False) is not None)
    assert swap.removed == tuple(tuple(topology.pairs[row].tolist()) for row in next(allowed))


@given(loaded())
def test_communication_candidates_rise_in_weight_on_both_sides(problem: tuple[Topology, Solution]) -> None:
    topology, found = problem
    side = bottleneck_cut(topology, found.link_load)
    pairs = list(paper.communication_candidates(topology, found))
    ends = side[topology.pairs]
    within = [np.flatnonzero((ends == part).all(axis=1)) for part in (False, True)]
    first = len(within[0]) * len(within[1])
    expected = itertools.product(*(rows.tolist() for rows in within))
    assert set(pairs[:first]) == set(expected)
    assert len(pairs) - first == topology.links * (topology.links - 1) // 2
    for part in (pairs[:first], pairs[first:]):
        weight = [found.link_load[one] + found.link_load[other] for one, other in part]
        assert weight == sorted(weight)


@given(loaded(), st.integers(0, 3), st.sampled_from([0.0, 0.5, 0.9]))
def test_a_swap_keeps_all_degrees(problem: tuple[Topology, Solution], seed: int, skip: float) -> None:
    topology, found = problem
    swap = next_swap(topology, found, np.random.default_rng(seed), skip=skip)
    again = next_swap(topology, found, np.random.default_rng(seed), skip=skip)
    if swap is None:
        rows = range(topology.links)
        assert again is None
        assert all(swap_pair(topology, i, j, crossed=False) is None for i in rows for j in rows)
        return
    assert (swap.removed, swap.inserted) == (sure(again).removed, sure(again).inserted)
    assert swap.topology.degree.tolist() == topology.degree.tolist()
    assert swap.topology.connected()
    gone = {tuple(sorted(pair)) for pair in swap.removed}
    come = {tuple(sorted(pair)) for pair in swap.inserted}
    assert links_of(swap.topology) == links_of(topology) - gone | come
    assert not come & links_of(topology)


@given(topologies(min_nodes=4, max_nodes=7), st.booleans())
def test_a_pair_is_swapped_where_any_of_both_ways_is_allowed(topology: Topology, crossed: bool) -> None:
    for one in range(topology.links):
        for other in range(topology.links):
            (u, v), (x, z) = topology.pairs[[one, other]].tolist()
            allowed = 0
            for made in (((u, x), (v, z)), ((u, z), (v, x))):
                graph = reconfigure_problems.graph_of(topology)
                graph.remove_edges_from([(u, v), (x, z)])
                fresh = not any(topology.link_between(*pair) >= 0 for pair in made)
                graph.add_edges_from(made)
                allowed += len({u, v, x, z}) == 4 and fresh and nx.is_connected(graph)
            assert (swap_pair(topology, one, other, crossed=crossed) is not None) == (allowed > 0)


def test_skipping_finds_other_swaps_and_a_triangle_has_none() -> None:
    found = solution([1.0] * 8, [float(row + 1) for row in range(8)])
    swaps = [next_swap(ring(8), found, np.random.default_rng(seed), skip=0.5) for seed in range(20)]
    assert None not in swaps
    assert len({swap.removed for swap in swaps if swap is not None}) > 1
    found = solution([1.0] * 3, [1.0] * 3)
    assert next_swap(ring(3), found, np.random.default_rng(0), skip=0.5) is None


@pytest.mark.parametrize(
    ("chord", "width", "bound", "mean"),
    [(2, 6, 3, 2.4), (3, 8, 6, 2.133), (4, 8, 8, 2.0), (5, 8, 6, 2.133), (6, 10, 8, 1.933), (7, 8, 5, 2.267)],
)
def test_graphs_of_16_nodes_measure_as_published(chord: int, width: int, bound: int, mean: float) -> None:
    """C(16; 2 .. 7) in Ajwani et al. 2013, section 5: bisection widths by trying all, bounds, paths."""
    ks = np.arange(1, 16)  # a = min over k of 4 - 2 cos(2 pi k / n) - 2 cos(2 pi k q / n); bound: n a / 4
    eigenvalues = 4 - 2 * np.cos(2 * np.pi * ks / 16) - 2 * np.cos(2 * np.pi * ks * chord / 16)
    published = {chordal_ring(16, chord): (width, mean), torus(4, 4): (8, 2.133)}
    for topology, measures in published.items():
        assert (topology.links, set(topology.degree.tolist())) == (32, {4})
        graph = graph_of(topology)
        assert (bisection_width(graph), round(nx.average_shortest_path_length(graph), 3)) == measures
    laplacian = nx.laplacian_matrix(graph_of(chordal_ring(16, chord))).toarray().astype(float)
    assert np.linalg.eigvalsh(laplacian)[1] == pytest.approx(eigenvalues.min())
    assert math.ceil(16 * eigenvalues.min() / 4 - 1e-9) == bound


def bisection_width(graph: nx.Graph[int]) -> int:
    """Fewest links between two halves of the nodes, by trying all with the last node on the other side."""
    half = np.array(list(itertools.combinations(range(len(graph) - 1), len(graph) // 2)))
    inside = np.zeros((len(half), len(graph)), bool)
    np.put_along_axis(inside, half, True, axis=1)
    return int(sum(inside[:, one] != inside[:, other] for one, other in graph.edges).min())


def test_chords_of_several_lengths_are_added_to_the_ring() -> None:
    """C(8; 2, 4): two links of the ring, two chords of 2, and one of 4, half the ring, at each node."""
    found = chordal_ring(8, 2, 4)
    assert (found.links, set(found.degree.tolist())) == (8 + 8 + 4, {5})
    assert links_of(found) == links_of(chordal_ring(8, 2)) | links_of(chordal_ring(8, 4))
    with pytest.raises(InvalidValue, match="twice"):
        chordal_ring(8, 3, 3)
    with pytest.raises(InvalidValue, match="is 5"):
        chordal_ring(8, 2, 5)


def test_rings_of_chords_3_and_5_are_the_same_graph() -> None:
    """Nodes times 5 modulo 16: their rows in the paper's Table 3 differ by noise alone."""
    relabel_nodes = Topology.of(16, chordal_ring(16, 3).pairs * 5 % 16)
    assert links_of(relabel_nodes) == links_of(chordal_ring(16, 5))


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 9])
def test_rings_of_any_size_join_all_nodes(nodes: int) -> None:
    found = seeds.ring(nodes)
    assert found.connected()
    assert found.links == {1: 0, 2: 1}.get(nodes, nodes)


@pytest.mark.parametrize(
    ("rows", "columns", "links"), [(1, 1, 0), (1, 5, 5), (2, 2, 4), (2, 3, 9), (3, 3, 18), (4, 4, 32)]
)
def test_a_torus_has_the_links_of_networkx_grid(rows: int, columns: int, links: int) -> None:
    found = torus(rows, columns)
    assert found.links == links
    grid: nx.Graph[tuple[int, int]] = nx.Graph(nx.grid_2d_graph(rows, columns, periodic=True))
    grid.remove_edges_from(nx.selfloop_edges(grid))
    expected = {tuple(sorted((a * columns + b, c * columns + d))) for (a, b), (c, d) in grid.edges}
    assert links_of(found) == expected
    squares = [seeds.squarest(nodes) for nodes in (1, 7, 12, 16, 32)]
    assert squares == [(1, 1), (1, 7), (3, 4), (4, 4), (4, 8)]  # a ring for a prime number of nodes


def test_links_above_max_edges_are_removed_at_random() -> None:
    limits = machine(16, max_edges=22)
    found = [
        seeds.repair_topology(chordal_ring(16, 4), limits, np.random.default_rng(seed)) for seed in range(8)
    ]
    assert {topology.links for topology in found} == {22}
    assert all(links_of(topology) < links_of(chordal_ring(16, 4)) for topology in found)
    assert len({frozenset(links_of(topology)) for topology in found}) > 1


PAIR = Application.from_edges([0], [1], [1.0])


@pytest.mark.parametrize(
    ("name", "links"),
    [("torus", 32), ("ring", 16), ("chordal-ring-6", 32), ("chordal-ring-8", 24), ("chordal-ring-3-8", 32)],
)
def test_seeds_are_found_by_name(name: str, links: int) -> None:
    assert seed_topology(name, PAIR, machine(16), np.random.default_rng(0)).links == links


def test_seeds_that_there_are_not_or_that_do_not_fit_are_refused() -> None:
    generator = np.random.default_rng(0)
    unknown = ("toros", "chordal-ring", "chordal-ring-", "chordal-ring-x", "chordal-ring-3-", "")
    for name in (*unknown, "a-chordal-ring-3"):
        with pytest.raises(UnknownName, match="there is no seed topology"):
            seed_topology(name, PAIR, machine(16), generator)
    for chord in (1, 9, 999_999_999_999):
        with pytest.raises(InvalidValue, match=r"not within 2 \.\. 8 for 16 nodes"):
            seed_topology(f"chordal-ring-{chord}", PAIR, machine(16), generator)
    with pytest.raises(InvalidValue, match="has 9 nodes, the machine has 16"):
        seed_topology(torus(3, 3), PAIR, machine(16), generator)
    with pytest.raises(InvalidValue, match="0 x 3"):
        torus(0, 3)


SEEDS = st.integers(0, 3)


def grid(side: int) -> Application:
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side))
    one, other = zip(*graph.edges, strict=True)
    return Application.from_edges(one, other, np.ones(len(one)))


def test_the_partition_is_balanced_cuts_little_and_follows_its_seed() -> None:
    mesh = grid(12)
    found = seeds.oblivious_partition(mesh, 4, np.random.default_rng(0))
    assert np.bincount(found, minlength=4).max() <= np.ceil(seeds.IMBALANCE * 36)
    cut = np.count_nonzero(found[mesh.source] != found[mesh.target])
    assert seeds.condensed_graph(mesh, found, 4).load.sum() == cut <= 2 * 24  # four squares cut 24 edges
    made = [seeds.oblivious_partition(mesh, 7, np.random.default_rng(seed)).tolist() for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]


def test_few_heavy_and_unconnected_vertices_are_balanced() -> None:
    generator = np.random.default_rng(0)
    line = Application.from_edges([0, 1], [1, 2], [1.0, 1.0])
    assert seeds.oblivious_partition(line, 5, generator).tolist() == [0, 1, 2]  # a node each
    assert seeds.oblivious_partition(line, 1, generator).tolist() == [0, 0, 0]
    mesh, weight = grid(12), np.ones(144)
    weight[[17, 90]] = 500.0, 60.0  # the first more than a share of all
    heavy = Application.from_edges(mesh.source, mesh.target, mesh.weight, vertex_weight=weight)
    found = seeds.oblivious_partition(heavy, 4, np.random.default_rng(0))
    assert np.bincount(found, minlength=4)[found[17]] == 1
    load = np.bincount(found, weights=weight, minlength=4)
    assert sorted(load)[-2] <= np.ceil(seeds.IMBALANCE * 202 / 3)
    star = Application.from_edges([0] * 5, range(1, 6), [0.0] * 5, vertex_weight=[5, 4, 3, 3, 2, 1])
    found = seeds.oblivious_partition(star, 2, np.random.default_rng(0))
    assert np.bincount(found, weights=star.vertex_weight).tolist() == [9.0, 9.0]
    idle = Application.from_edges([0, 1, 2], [1, 2, 3], [1.0] * 3, vertex_weight=[0.0] * 4)
    assert seeds.oblivious_partition(idle, 2, np.random.default_rng(0)).tolist() == [1, 1, 0, 0]


@given(applications(max_vertices=20), st.integers(1, 6), SEEDS)
def test_the_condensed_graph_has_edges_of_parts(application: Application, nodes: int, seed: int) -> None:
    part = np.random.default_rng(seed).integers(0, nodes, application.vertices).astype(np.int32)
    found = seeds.condensed_graph(application, part, nodes)
    weight: dict[tuple[int, int], float] = {}
    for one, other, size in zip(application.source, application.target, application.weight, strict=True):
        low, high = sorted((int(part[one]), int(part[other])))
        if low != high:
            weight[low, high] = weight.get((low, high), 0.0) + float(size)
    assert found.topology.connected()
    assert weight.keys() <= links_of(found.topology)
    for (one, other), size in zip(found.topology.pairs.tolist(), found.load.tolist(), strict=True):
        assert size == pytest.approx(weight.get((one, other), 0.0))
    apart = nx.empty_graph(nodes)
    apart.add_edges_from(weight)
    assert found.topology.links == len(weight) + nx.number_connected_components(apart) - 1


@given(applications(max_vertices=30, max_more=40), machines(max_nodes=6), SEEDS)
def test_the_initial_topology_keeps_the_limits(application: Application, limits: Machine, seed: int) -> None:
    case = "condensed", application, limits
    found, again = (seed_topology(*case, np.random.default_rng(seed)) for _ in "ab")
    found.require(limits)
    assert links_of(found) == links_of(again)


@given(topologies(max_nodes=9, connected=False), st.data())
def test_components_are_joined_by_as_few_links_as_can_be_and_the_whole_is_cut_to_the_limits(
    topology: Topology, data: st.DataObject
) -> None:
    joined = paper_seeds.connect(topology)
    assert joined.connected()
    assert links_of(topology) <= links_of(joined)
    assert joined.links - topology.links == nx.number_connected_components(graph_of(topology)) - 1
    limits, seed = data.draw(machines(min_nodes=topology.nodes, max_nodes=topology.nodes)), data.draw(SEEDS)
    found, again = (seeds.repair_topology(topology, limits, np.random.default_rng(seed)) for _ in range(2))
    found.require(limits)
    assert links_of(found) == links_of(again)


@given(topologies(min_nodes=3, max_nodes=9), st.data())
def test_any_graph_is_cut_to_the_limits_with_its_flows(topology: Topology, data: st.DataObject) -> None:
    limits = data.draw(machines(min_nodes=topology.nodes, max_nodes=topology.nodes))
    rows = data.draw(st.lists(st.integers(0, topology.links - 1), max_size=12))
    flow = data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=len(rows), max_size=len(rows)))
    ends = topology.pairs[rows].reshape(-1, 2)
    ends = ends[:, ::-1] if data.draw(st.booleans()) else ends
    loaded = LoadedTopology(topology, ends, flow)
    satisfy_max_degree(loaded, limits)
    assert loaded.topology.degree.max() <= limits.max_degree
    assert loaded.topology.connected()
    assert loaded.topology.links <= topology.links
    paper_seeds.satisfy_max_edges(loaded, limits)
    loaded.topology.require(limits)
    load = np.zeros(loaded.topology.links)
    for one, (here, end) in enumerate(ends.tolist()):
        load[loaded.route(one)] += flow[one]
        for row in loaded.route(one).tolist():
            pair = loaded.topology.pairs[row].tolist()
            assert here in pair
            here = sum(pair) - here
        assert here == end
    assert loaded.load == pytest.approx(load)


def test_the_lightest_strongly_heavy_links_go_first() -> None:
    """Of a complete graph on four nodes two opposite links go where nodes have two ports."""
    complete = Topology.of(4, [*itertools.combinations(range(4), 2)])
    flow = [5.0, 1.0, 5.0, 5.0, 1.5, 5.0]
    loaded = LoadedTopology(complete, complete.pairs, flow)
    satisfy_max_degree(loaded, machine(4, max_degree=2))
    assert links_of(loaded.topology) == {(0, 1), (0, 3), (1, 2), (2, 3)}
    assert loaded.load.sum() == 20.0 + 2 * 2.5  # each of the two takes two links now


def test_the_edge_swap_of_figure_2_joins_two_parts() -> None:
    """Four bridges from a node of three ports to triangles: one goes, and two links exchange ends."""
    triangles = [[(a, a + 1), (a, a + 2), (a + 1, a + 2), (0, a)] for a in (1, 4, 7, 10)]
    topology = Topology.of(13, [link for links in triangles for link in links])
    loaded = LoadedTopology(topology, (), ())
    satisfy_max_degree(loaded, machine(13, max_degree=3))
    assert loaded.topology.connected()
    assert links_of(topology) - links_of(loaded.topology) == {(0, 4), (1, 2)}
    assert links_of(loaded.topology) - links_of(topology) == {(2, 4)}
    assert sorted(loaded.topology.degree.tolist()) == [2] * 9 + [3] * 4
