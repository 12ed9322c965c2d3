"""Hoefler and Snir's (2011) recursive bisection, METIS and its repair, and RCM."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from mapping.placement.kernels.rcm import reverse_cuthill_mckee
from mapping.placement.partition.bisection import MOST, bisect, repaired, subgraph, weighted_graph
from mapping.placement.problem.objective import score
from mapping.placement.problem.problem import Problem
from mapping.placement.strategies import rcm, recursive_bisection
from registry.errors import InvalidValue, UnknownName
from registry.model import Allocation, Fabric, Ints, Profile
from tests.support.search_problems import problem_on, problems, ring
from tests.support.strategy_problems import assert_fits, cliques, leaves, rng, silent

# Recursive bisection: Algorithm 2


@pytest.mark.parametrize("variant", recursive_bisection.VARIANTS)
@given(problem=problems())
def test_recursive_bisection_seats_every_rank_in_every_variant(variant: str, problem: Problem) -> None:
    found = recursive_bisection.place_ranks(problem, rng(), variant=variant)
    assert_fits(problem, found)
    assert found.tobytes() == recursive_bisection.place_ranks(problem, rng(), variant=variant).tobytes()


@pytest.mark.parametrize("variant", ["paper", "whole"])
def test_recursive_bisection_puts_each_cluster_on_one_switch(variant: str) -> None:
    fabric, (profile, group) = leaves(4, 4, top=1), cliques(4, 4)
    hosts = np.random.default_rng(2).permutation(16)
    problem = problem_on(fabric, profile, Allocation.of(fabric, hosts.tolist()), "shortest-paths")
    leaf = hosts[recursive_bisection.place_ranks(problem, rng(), variant=variant)] // 4
    assert len({(int(g), int(one)) for g, one in zip(group, leaf, strict=True)}) == 4


def test_recursive_bisection_cuts_unequal_slots_to_fit() -> None:
    fabric = leaves(2, 3)
    sizes = [5, 3]
    ranks = np.repeat(np.arange(2), sizes)
    pairs = np.argwhere((ranks[:, None] == ranks[None, :]) & ~np.eye(8, dtype=bool))
    profile = Profile.from_edges(pairs[:, 0], pairs[:, 1], np.ones(len(pairs)))
    allocation = Allocation.of(fabric, range(6), [1, 1, 1, 2, 2, 1])
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    found = recursive_bisection.place_ranks(problem, rng())
    assert (found[ranks == 0] >= 3).all()
    assert (found[ranks == 1] < 3).all()


def test_recursive_bisection_cuts_a_dumbbell_at_its_bar() -> None:
    # Theorem 1: two complete graphs joined by one link; here the guest has two clusters of that size.
    half = 6
    hosts = np.random.default_rng(3).permutation(2 * half)
    side = np.argsort(hosts) // half
    inside = (side[:, None] == side[None, :]) & ~np.eye(2 * half, dtype=bool)
    bar = hosts[0], hosts[half]
    ends = [*np.argwhere(inside).tolist(), bar, bar[::-1]]
    tail, head = np.array(ends).T
    fabric = Fabric.from_arcs([f"v{v:02}" for v in range(2 * half)], tail, head, 1.0)
    profile, group = cliques(half, 2)
    problem = problem_on(fabric, profile, Allocation.of(fabric, range(2 * half)), "shortest-paths")
    found = side[recursive_bisection.place_ranks(problem, rng())]
    assert len({(int(g), int(s)) for g, s in zip(group, found, strict=True)}) == 2


def test_recursive_bisection_takes_the_slots_closest_to_the_first_host() -> None:
    fabric = leaves(4, 3)
    order = [7, 0, 6, 3, 9, 8, 1, 2, 4, 5, 10, 11]
    problem = problem_on(fabric, silent(3), Allocation.of(fabric, order), "shortest-paths")
    found = problem.allocation.hosts[recursive_bisection.place_ranks(problem, rng())]
    assert sorted(found.tolist()) == [6, 7, 8]


@pytest.mark.parametrize("options", [{"cuts": 0}, {"slack": -1.0}, {"variant": "hole"}])
def test_recursive_bisection_refuses_options_that_make_no_sense(options: dict[str, int | str]) -> None:
    problem = problem_on(*ring(9, 8), "shortest-paths")
    with pytest.raises((InvalidValue, UnknownName)):
        recursive_bisection.place_ranks(problem, rng(), **options)  # type: ignore[arg-type]


@st.composite
def weighted(draw: st.DrawFn, weights: st.SearchStrategy[float]) -> csr_matrix:
    n = draw(st.integers(2, 9))
    ends = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1), weights), max_size=20))
    one, other, size = zip(*ends, strict=True) if ends else ((), (), ())
    return weighted_graph(np.array(one, int), np.array(other, int), np.array(size, float), n)


@given(graph=weighted(st.integers(1, 50).map(float)), data=st.data())
def test_the_repair_moves_the_lightest_vertex_until_the_parts_fit(
    graph: csr_matrix, data: st.DataObject
) -> None:
    n = graph.shape[0]
    first = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    size = data.draw(st.integers(0, n))
    total, expected = graph.toarray().sum(axis=1), first.copy()
    while expected.sum() != size:
        too_large = expected.sum() > size
        lightest = min(np.flatnonzero(expected == too_large), key=lambda v: (total[v], v))
        expected[lightest] = not too_large
        if expected.sum() == size:
            break
        total = np.where(expected == first, total, np.inf)  # who has moved does not move back
    assert repaired(graph, first, size).tolist() == expected.tolist()


@given(graph=weighted(st.floats(1e-3, 1e12)), data=st.data())
def test_subgraphs_are_those_of_networkx(graph: csr_matrix, data: st.DataObject) -> None:
    n = graph.shape[0]
    kept = sorted(data.draw(st.sets(st.integers(0, n - 1))))
    slow = nx.from_scipy_sparse_array(graph).subgraph(kept)
    dense = nx.to_numpy_array(slow, nodelist=kept) if kept else np.zeros((0, 0))
    assert np.array_equal(subgraph(graph, np.array(kept, int)).toarray(), dense)


def test_whole_weights_are_kept_and_others_scaled_to_a_sum_that_metis_can_hold() -> None:
    ends = np.array([0, 1, 2]), np.array([1, 2, 0])
    assert weighted_graph(*ends, np.array([3.0, 5.0, 7.0]), 3).sum() == 30
    both_ways = weighted_graph([0, 1, 1], [1, 0, 1], np.array([3.0, 5.0, 9.0]), 2)
    assert both_ways.toarray().tolist() == [[0, 8], [8, 0]]
    scaled = weighted_graph(*ends, np.array([0.5, 1.5, 1e-30]), 3).toarray()
    assert scaled[0, 1] * 3 == pytest.approx(scaled[1, 2], rel=1e-8)
    assert scaled[0, 2] == 1
    assert scaled.sum() == pytest.approx(MOST, rel=1e-8)


def test_bisection_meets_the_share_and_depends_on_nothing_but_the_seed() -> None:
    graph = nx.grid_2d_graph(6, 6)
    ends = np.array([(6 * a + b, 6 * c + d) for (a, b), (c, d) in graph.edges])
    grid = weighted_graph(ends[:, 0], ends[:, 1], np.ones(len(ends)), 36)
    for share in (0.5, 1 / 3):
        found = bisect(grid, np.ones(36, np.int64), share, seed=4)
        assert abs(int(found.sum()) - 36 * share) <= 1
        assert found.tobytes() == bisect(grid, np.ones(36, np.int64), share, seed=4).tobytes()
    cut = bisect(grid, np.ones(36, np.int64), 0.5, seed=4, cuts=4)
    assert sum(cut[a] != cut[b] for a, b in ends.tolist()) == 6


# RCM: section 3.3


def cuthill_mckee(graph: nx.Graph[int]) -> list[int]:
    """Reverse Cuthill-McKee with a root found as George and Liu do, on Python lists."""
    degree, placed = dict(graph.degree), []
    for vertex in graph:
        if vertex in placed:
            continue
        component = nx.node_connected_component(graph, vertex)

        def ordered(root: int) -> list[int]:
            queue = [root]
            for u in queue:
                new = [v for v in graph[u] if v not in queue]
                queue += sorted(new, key=lambda v: (degree[v], v))
            return queue

        def depths(root: int) -> dict[int, int]:
            return nx.single_source_shortest_path_length(graph, root)

        root = min(component, key=lambda v: (degree[v], v))
        while True:
            deepest = max(depths(root).values())
            last = [v for v, depth in depths(root).items() if depth == deepest]
            other = min(last, key=lambda v: (degree[v], v))
            if max(depths(other).values()) <= deepest:
                break
            root = other
        placed += ordered(root)
    return placed[::-1]


def csr(graph: nx.Graph[int]) -> tuple[np.ndarray, Ints]:
    matrix = nx.to_scipy_sparse_array(graph, nodelist=range(len(graph)), format="csr")
    matrix.sort_indices()
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)


@given(seed=st.integers(0, 300), edges=st.integers(0, 30))
def test_the_order_is_reverse_cuthill_mckee_from_a_peripheral_vertex(seed: int, edges: int) -> None:
    graph = nx.gnm_random_graph(12, edges, seed=seed)
    assert reverse_cuthill_mckee(*csr(graph), True).tolist() == cuthill_mckee(graph)


def bandwidth(graph: nx.Graph[int], order: Ints) -> int:
    at = np.argsort(order)
    return max(abs(int(at[a]) - int(at[b])) for a, b in graph.edges)


@pytest.mark.parametrize("peripheral", [True, False])
def test_the_order_narrows_a_shuffled_band_again(peripheral: bool) -> None:
    number = np.random.default_rng(0).permutation(60)
    band = nx.Graph(
        [(int(number[i]), int(number[j])) for i in range(60) for j in range(i + 1, min(i + 4, 60))]
    )
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(60))
    graph.add_edges_from(band.edges)
    assert bandwidth(graph, np.arange(60, dtype=np.int32)) > 30
    assert bandwidth(graph, reverse_cuthill_mckee(*csr(graph), peripheral)) <= 4


def test_rcm_lays_a_chain_of_ranks_along_a_chain_of_hosts() -> None:
    at = np.arange(19)
    host, rank = np.random.default_rng(1).permutation(20), np.random.default_rng(2).permutation(20)
    fabric = Fabric.from_arcs(
        [f"v{v:02}" for v in range(20)], np.r_[host[at], host[at + 1]], np.r_[host[at + 1], host[at]], 1.0
    )
    profile = Profile.from_edges(rank[at], rank[at + 1], np.ones(19))
    problem = problem_on(fabric, profile, Allocation.of(fabric, range(20)), "shortest-paths")
    assert score(problem, rcm.place_ranks(problem, rng())).max_dilation == 1.0


def test_rcm_by_the_papers_rule_sees_no_edge_between_the_hosts_of_a_switched_fabric() -> None:
    fabric, hosts = leaves(3, 3), [4, 1, 0, 8, 3, 2, 5, 7, 6]
    profile, _ = cliques(3, 3, shuffled=False)
    problem = problem_on(fabric, profile, Allocation.of(fabric, hosts), "shortest-paths")
    paper = rcm.place_ranks(problem, rng(), variant="paper")
    ranks = reverse_cuthill_mckee(*csr(nx.disjoint_union_all([nx.complete_graph(3)] * 3)), True)
    assert paper[ranks].tolist() == list(range(9))[::-1]
    whole = problem.allocation.hosts[rcm.place_ranks(problem, rng(), variant="whole")] // 3
    assert [len(set(whole[3 * one : 3 * one + 3].tolist())) for one in range(3)] == [1, 1, 1]


@given(problem=problems())
def test_rcm_decides_by_edges_between_hosts_and_else_by_hop_bytes(problem: Problem) -> None:
    fabric, hosts = problem.routes.fabric, problem.allocation.hosts
    found = {v: rcm.place_ranks(problem, rng(), variant=v) for v in rcm.VARIANTS}
    for placement in found.values():
        assert_fits(problem, placement)
    inside: nx.DiGraph[int] = nx.DiGraph()
    inside.add_nodes_from(hosts.tolist())
    tail = np.repeat(np.arange(len(fabric)), np.diff(fabric.indptr))
    inside.add_edges_from(
        (a, b)
        for a, b in zip(tail.tolist(), fabric.neighbour.tolist(), strict=True)
        if {a, b} <= set(hosts.tolist())
    )
    joined = sum(inside.degree(host) > 0 for host in hosts.tolist())
    if 2 * joined >= len(hosts):
        assert found["auto"].tolist() == found["paper"].tolist()
    else:
        least = min(problem.hop_bytes(found["paper"]), problem.hop_bytes(found["whole"]))
        assert problem.hop_bytes(found["auto"]) == least
