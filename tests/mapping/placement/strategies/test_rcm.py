"""Reverse Cuthill-McKee order, and the strategy by it (Hoefler and Snir 2011, section 3.3)."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.placement.kernels.rcm import reverse_cuthill_mckee
from mapping.placement.problem.objective import score
from mapping.placement.problem.problem import Problem
from mapping.placement.strategies import rcm
from registry.model import Allocation, Fabric, Ints, Profile
from tests.support.search_problems import problem_on, problems
from tests.support.strategy_problems import assert_fits, cliques, leaves, rng


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


def test_rcm_puts_a_chain_of_ranks_along_a_chain_of_hosts() -> None:
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
