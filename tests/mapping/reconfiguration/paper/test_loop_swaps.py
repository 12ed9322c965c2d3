"""Edge swaps for the two bottlenecks (section 3.3)."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mapping.reconfiguration.model.solution import COMMUNICATION, COMPUTE, Solution, bottleneck
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper.loop import (
    bottleneck_cut,
    communication_candidates,
    compute_candidates,
    next_swap,
    swap_pair,
)
from mapping.reconfiguration.paper.seed_topology import ring
from tests.support.reconfigure_problems import graph_of, links_of, topologies

LOADS = st.sampled_from([0.0, 1.0, 2.0, 5.0])


def solution(
    node_load: list[float], link_load: list[float], *, compute: float = 1.0, link: float = 1.0
) -> Solution:
    """A solution of which only loads count: speeds over the largest of each."""
    return Solution(
        node_of_vertex=np.zeros(1, np.int32),
        route_ptr=np.zeros(1, np.int64),
        route=np.zeros(0, np.int32),
        node_load=np.array(node_load),
        link_load=np.array(link_load),
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
    assert bottleneck(solution([2.0], [1.0])) == COMPUTE
    assert bottleneck(solution([1.0], [2.0])) == COMMUNICATION
    assert bottleneck(solution([1.0], [1.0])) == COMPUTE
    assert bottleneck(solution([1.0], [0.0])) == COMPUTE


def test_for_compute_the_lowest_expansion_meets_the_lowest_vertex_product() -> None:
    """Figure 3: heavy nodes 0 and 1, light ones 4 and 5, joined afterwards."""
    topology = ring(6)  # rows: 0-1, 0-5, 1-2, 2-3, 3-4, 4-5
    found = solution([10.0, 9.0, 5.0, 4.0, 2.0, 1.0], [1.0, 6.0, 6.0, 6.0, 6.0, 1.0])
    first = next(compute_candidates(topology, found))
    assert [tuple(topology.pairs[row].tolist()) for row in first] == [(0, 1), (4, 5)]
    swap = next_swap(topology, found, np.random.default_rng(0), skip=0.0)
    assert swap is not None
    assert swap.removed == ((0, 1), (4, 5))
    made = {frozenset(pair) for pair in swap.inserted}
    assert made == {frozenset((0, 4)), frozenset((1, 5))}  # 0-5 is there


def test_a_link_at_an_empty_node_is_never_the_first_choice_of_heavy_nodes() -> None:
    line = Topology.of(4, [(0, 1), (1, 2), (2, 3)])
    found = solution([0.0, 3.0, 3.0, 3.0], [0.0, 1.0, 2.0])
    assert next(compute_candidates(line, found)) == (1, 0)


def two_triangles() -> Topology:
    """Triangles 0 1 2 and 3 4 5, joined by links 2-3 and 1-4."""
    return Topology.of(6, [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (2, 3), (1, 4)])


def test_the_bottleneck_cut_is_what_falls_apart_when_the_heaviest_links_go() -> None:
    """As in Figure 5: the heaviest link alone disconnects nothing, with the next it does."""
    topology = two_triangles()
    load = np.ones(8)
    heaviest = [topology.link_between(*pair) for pair in ((2, 3), (1, 4), (0, 1))]
    load[heaviest] = 9.0, 8.0, 7.0
    assert bottleneck_cut(topology, load).tolist() == [False] * 3 + [True] * 3


def test_for_communication_light_links_of_both_sides_of_the_cut_are_swapped() -> None:
    topology = two_triangles()
    load = [3.0] * 8
    for pair, value in {(2, 3): 9.0, (1, 4): 8.0, (0, 1): 1.0, (3, 5): 0.5}.items():
        load[topology.link_between(*pair)] = value
    found = solution([1.0] * 6, load)
    swap = next_swap(topology, found, np.random.default_rng(0), skip=0.0)
    assert swap is not None
    assert swap.removed == ((0, 1), (3, 5))
    crossing = [pair for pair in links_of(swap.topology) if (pair[0] < 3) != (pair[1] < 3)]
    assert len(crossing) == 4


def test_where_a_side_of_the_cut_has_no_link_the_lightest_pair_is_swapped() -> None:
    """Node 0 sends all: the cut is around it."""
    topology = Topology.of(5, [(0, 1), (0, 2), (1, 2), (1, 3), (2, 4), (3, 4)])
    load = [9.0, 8.0, 1.0, 2.0, 3.0, 1.5]
    assert bottleneck_cut(topology, np.array(load)).tolist() == [False, True, True, True, True]
    found = solution([1.0] * 5, load)
    assert next(communication_candidates(topology, found)) == (2, 5)
    swap = next_swap(topology, found, np.random.default_rng(0), skip=0.0)
    assert swap is not None
    expected = next(
        pair
        for pair in communication_candidates(topology, found)
        if swap_pair(topology, *pair, crossed=False) is not None
    )
    assert swap.removed == tuple(tuple(topology.pairs[row].tolist()) for row in expected)


@given(loaded())
def test_communication_candidates_rise_in_weight_on_both_sides_and_then_over_all(
    problem: tuple[Topology, Solution],
) -> None:
    topology, found = problem
    side = bottleneck_cut(topology, found.link_load)
    pairs = list(communication_candidates(topology, found))
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
def test_a_swap_keeps_degrees_and_joins_all_nodes(
    problem: tuple[Topology, Solution], seed: int, skip: float
) -> None:
    topology, found = problem
    swap = next_swap(topology, found, np.random.default_rng(seed), skip=skip)
    again = next_swap(topology, found, np.random.default_rng(seed), skip=skip)
    if swap is None:
        rows = range(topology.links)
        assert again is None
        assert all(swap_pair(topology, i, j, crossed=False) is None for i in rows for j in rows)
        return
    assert again is not None
    assert (swap.removed, swap.inserted) == (again.removed, again.inserted)
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
                graph = graph_of(topology)
                graph.remove_edges_from([(u, v), (x, z)])
                fresh = not any(topology.link_between(*pair) >= 0 for pair in made)
                graph.add_edges_from(made)
                allowed += len({u, v, x, z}) == 4 and fresh and nx.is_connected(graph)
            assert (swap_pair(topology, one, other, crossed=crossed) is not None) == (allowed > 0)


def test_skipping_finds_other_swaps() -> None:
    topology = ring(8)
    found = solution([1.0] * 8, [float(row + 1) for row in range(8)])
    made = set()
    for seed in range(20):
        swap = next_swap(topology, found, np.random.default_rng(seed), skip=0.5)
        assert swap is not None
        made.add(swap.removed)
    assert len(made) > 1


def test_nothing_can_be_swapped_in_a_triangle() -> None:
    found = solution([1.0] * 3, [1.0] * 3)
    assert next_swap(ring(3), found, np.random.default_rng(0), skip=0.5) is None
