"""Strategies by their rules and oracles, and the 2011 paper's against each other; greedy by Algorithm 1."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.direct import irregular
from ingest.generate.nas import sp
from ingest.generate.stencils import shuffled, stencil
from ingest.generate.trees import extended_generalised_fat_tree
from mapping.distances.distances import distances
from mapping.placement.kernels.rcm import reverse_cuthill_mckee
from mapping.placement.methods import baselines, bisection, greedy, multicore, rcm, spectral
from mapping.placement.methods import baselines as random_search
from mapping.placement.methods.baselines import place_at_random, place_in_turn, search
from mapping.placement.methods.bisection import weighted_graph
from mapping.placement.objective import better, score
from mapping.placement.problem import Problem
from mapping.routing.catalog import build_routes
from mapping.routing.network import packets
from registry.model import Allocation, Fabric, Ints, Profile
from tests.support.search_problems import on_all_hosts, problem_on, problems, ring, torus8
from tests.support.strategy_problems import assert_fits, cliques, leaves, rng, silent


@given(problem=problems(), block=st.integers(1, 3))
def test_round_robin_is_dealing_one_block_after_the_other(problem: Problem, block: int) -> None:
    room, host = problem.allocation.slots.tolist(), 0
    dealt: list[int] = []
    while len(dealt) < problem.ranks:
        given_now = min(room[host], block)
        room[host] -= given_now
        dealt += [host] * given_now
        host = (host + 1) % len(room)
    assert place_in_turn(problem, rng(), block=block).tolist() == dealt[: problem.ranks]


def test_round_robin_over_switches_sends_neighbouring_ranks_to_different_switches() -> None:
    fabric = leaves(3, 2)
    problem = problem_on(fabric, silent(6), Allocation.of(fabric, [2, 3, 0, 4, 5, 1]))
    found = problem.allocation.hosts[place_in_turn(problem, rng(), over="switches")]
    assert found.tolist() == [2, 0, 4, 3, 1, 5]


def test_random_with_locality_puts_the_heaviest_ranks_on_one_random_switch_and_the_rest_anywhere() -> None:
    fabric, (profile, group) = leaves(4, 3), cliques(3, 4)
    problem = on_all_hosts(fabric, profile)

    def switches(seed: int, share: float) -> list[tuple[int, ...]]:
        """Return the switches of each group; the last group communicates most."""
        found = baselines.place_random_local(problem, np.random.default_rng(seed), share=share) // 3
        return [tuple(sorted(set(found[group == one].tolist()))) for one in range(4)]

    whole = [switches(seed, 1.0) for seed in range(20)]
    assert all(len(one) == 1 for found in whole for one in found)
    assert len(set(map(tuple, whole))) > 10
    together = np.sum([[len(one) == 1 for one in switches(seed, 0.25)] for seed in range(40)], axis=0)
    assert together[3] == 40
    assert (together[:3] < 20).all()


def test_random_with_locality_in_blocks_keeps_pairs_on_neighbours_of_a_ring() -> None:
    fabric, _, _ = ring(12, 12)
    profile, _ = cliques(2, 6)
    problem = on_all_hosts(fabric, profile)
    placed = [baselines.place_random_local(problem, np.random.default_rng(s), block=2) for s in range(10)]
    anywhere = [place_at_random(problem, np.random.default_rng(s)) for s in range(10)]
    near, far = (np.mean([problem.hop_bytes(one) for one in found]) for found in (placed, anywhere))
    assert near < 0.75 * far


def test_on_a_torus_the_strategies_gain_what_the_paper_says() -> None:
    """Section 5.3.1 and Figure 5a, on 8^3; "initial" behaves like random there.

    Dilation 9.00 initially, 7.02 by RCM (-22%), 4.50 by recursive bisection (-50%). Greedy takes congestion
    down by 27 to 32%, of which threshold accepting has 2 to 9; it is the best of many starts (section 4.2).
    Its dilation is 9.03, which is that of ``near=start``.
    """
    fabric, profile, allocation = torus8()
    problem = problem_on(fabric, shuffled(profile, 0), allocation)
    initial = score(problem, problem.slot_host[: problem.ranks])
    by_rcm = score(problem, rcm.place_ranks(problem, rng()))
    recursive = score(problem, bisection.place_ranks(problem, rng()))
    many = score(problem, greedy.place_greedily(problem, rng(), starts=32, by="congestion"))
    assert 0.73 < by_rcm.hop_bytes / initial.hop_bytes < 0.83
    assert recursive.hop_bytes / initial.hop_bytes < 0.50
    assert recursive.congestion_seconds < 0.90 * initial.congestion_seconds
    assert 0.68 < many.congestion_seconds / initial.congestion_seconds < 0.80
    assert many.hop_bytes < 0.60 * initial.hop_bytes
    start = score(problem, greedy.place_greedily(problem, rng(), near="start"))
    assert 0.95 < start.hop_bytes / initial.hop_bytes < 1.05  # 9.03 of 9.00, in the authors' library


@pytest.mark.parametrize("variant", ["paper", "whole"])
def test_recursive_bisection_puts_each_cluster_on_one_switch(variant: str) -> None:
    fabric, (profile, group) = leaves(4, 4, top=1), cliques(4, 4)
    hosts = np.random.default_rng(2).permutation(16)
    problem = problem_on(fabric, profile, Allocation.of(fabric, hosts.tolist()))
    leaf = hosts[bisection.place_ranks(problem, rng(), variant=variant)] // 4
    assert len({(int(g), int(one)) for g, one in zip(group, leaf, strict=True)}) == 4


def test_recursive_bisection_cuts_unequal_slots_to_fit() -> None:
    fabric, ranks = leaves(2, 3), np.repeat([0, 1], [5, 3])
    pairs = np.argwhere((ranks[:, None] == ranks[None, :]) & ~np.eye(8, dtype=bool))
    profile = Profile.from_edges(pairs[:, 0], pairs[:, 1], np.ones(len(pairs)))
    problem = problem_on(fabric, profile, Allocation.of(fabric, range(6), [1, 1, 1, 2, 2, 1]))
    found = bisection.place_ranks(problem, rng())
    assert ((found >= 3) == (ranks == 0)).all()


def test_recursive_bisection_cuts_a_dumbbell_at_its_bar() -> None:
    # Theorem 1: two complete graphs joined by one link; here the guest has two clusters of that size.
    hosts = np.random.default_rng(3).permutation(12)
    side = np.argsort(hosts) // 6
    inside = (side[:, None] == side[None, :]) & ~np.eye(12, dtype=bool)
    bar = hosts[0], hosts[6]
    tail, head = np.array([*np.argwhere(inside).tolist(), bar, bar[::-1]]).T
    fabric = Fabric.from_arcs([f"v{v:02}" for v in range(12)], tail, head, 1.0)
    profile, group = cliques(6, 2)
    problem = on_all_hosts(fabric, profile)
    found = side[bisection.place_ranks(problem, rng())]
    assert len({(int(g), int(s)) for g, s in zip(group, found, strict=True)}) == 2


def test_recursive_bisection_takes_the_slots_closest_to_the_first_host() -> None:
    fabric, order = leaves(4, 3), [7, 0, 6, 3, 9, 8, 1, 2, 4, 5, 10, 11]
    problem = problem_on(fabric, silent(3), Allocation.of(fabric, order))
    found = problem.allocation.hosts[bisection.place_ranks(problem, rng())]
    assert sorted(found.tolist()) == [6, 7, 8]


def test_a_part_is_cut_with_the_switches_between_its_vertices_only() -> None:
    # Units 0 and 1 are 2 apart, by switch 2; switch 3 is attached to unit 0, switch 4 is behind it.
    path = weighted_graph(np.array([4, 3, 0, 2]), np.array([3, 0, 2, 1]), np.ones(4), 5)
    part = bisection._Part(
        np.arange(2), path[:2, :2], [np.zeros(1, np.int32)] * 2, np.ones(2, np.int64), path
    )
    assert bisection._between(part).toarray().tolist() == path.toarray()[:4, :4].tolist()


def test_parts_have_exactly_the_room_of_branches_roomiest_first() -> None:
    assert multicore.fill(np.array([2, 4, 3, 4]), 9).tolist() == [0, 4, 1, 4]
    assert multicore.fill(np.array([2, 4]), 6).tolist() == [2, 4]


def test_cliques_are_cut_apart_at_leaf_switches() -> None:
    fabric, (profile, _) = leaves(4, 4, top=1), cliques(4, 4)
    order = np.random.default_rng(1).permutation(16).tolist()
    problem = problem_on(fabric, profile, Allocation.of(fabric, order))
    found = multicore.place_multilevel(problem, np.random.default_rng(0))
    assert problem.hop_bytes(found) == 2.0 * profile.bytes.sum()


@pytest.mark.parametrize("partners", [4, 45])
def test_eigenvectors_have_the_smallest_eigenvalues_with_few_or_many_partners(partners: int) -> None:
    ranks, generator = 120, np.random.default_rng(3)
    a = np.repeat(np.arange(ranks), partners)
    b = (a + 1 + generator.integers(0, ranks - 1, len(a))) % ranks
    graph = weighted_graph(a, b, generator.uniform(1, 9, len(a)), ranks)
    assert (graph.nnz > spectral.MANY_PARTNERS * ranks) is (partners == 45)
    degree = np.asarray(graph.sum(axis=1), float).reshape(-1)
    laplacian = np.eye(ranks) - graph.toarray() / np.sqrt(np.outer(degree, degree))
    vectors = spectral.laplacian_eigenvectors(graph, 3, generator) * np.sqrt(degree)[:, None]
    found = [float(vector @ laplacian @ vector) for vector in vectors.T]
    assert found == pytest.approx(np.linalg.eigvalsh(laplacian)[1:4], rel=1e-6)


@pytest.mark.parametrize(
    ("sides", "leaves", "borders"),
    [((12, 8), 6, 2 * 8 + 12), ((12, 12), 9, 4 * 12)],  # blocks of 4 x 4; of a square the axes must be found
)
def test_a_shuffled_grid_is_cut_into_blocks(sides: tuple[int, int], leaves: int, borders: int) -> None:
    fabric = extended_generalised_fat_tree((16, leaves), (1, 4))
    profile = shuffled(stencil(sides, 5), 1)
    problem = on_all_hosts(fabric, profile)
    leaf = spectral.place_ranks(problem, np.random.default_rng(0)) // 16
    cut = np.count_nonzero(leaf[problem.source] != leaf[problem.target])
    assert cut == 2 * borders  # both directions


@given(problem=problems())
def test_a_seed_ends_after_so_many_failures_in_a_row_and_the_best_is_returned(problem: Problem) -> None:
    found = search(problem, rng(), seeds=4, failures=7)
    assert len(found.coefficients) == 4
    for curve in found.coefficients:
        falls = np.flatnonzero(np.diff(curve) < 0)
        assert not (np.diff(curve) > 0).any()
        if len(problem.slot_host) > 1:
            assert len(curve) - 1 == (falls[-1] + 1 if len(falls) else 0) + 7
        assert (np.diff(np.r_[-1, falls]) <= 7).all()
    ends = [curve[-1] for curve in found.coefficients]
    assert found.best == ends.index(min(ends))
    assert problem.hop_bytes(found.host_of_rank) == pytest.approx(min(ends), rel=1e-9, abs=1e-9)


def test_a_rank_can_move_to_a_free_slot() -> None:
    fabric, _, allocation = ring(9, 9)
    pair = Profile.from_edges([0], [1], [1.0])
    problem = problem_on(fabric, pair, allocation)
    assert problem.hop_bytes(random_search.place_by_random_search(problem, rng(), failures=200)) == 1.0


def test_packets_are_counted_if_their_size_is_given() -> None:
    fabric, profile, allocation = ring(8, 8)
    sizes = [1.0, 2048.0, 5000.0, 1.0, 1.0, 1.0, 100.0, 1024.0]
    profile = Profile.from_edges(profile.sender, profile.partner, sizes)
    problem = problem_on(fabric, profile, allocation)
    found = search(problem, rng(), packet_bytes=1024.0)
    source, target, _ = problem.host_traffic(found.host_of_rank)
    coefficient = packets(profile, 1024.0) @ problem.distances.of(source, target)
    assert found.coefficients[found.best][-1] == pytest.approx(coefficient)


def on_figure_7s_setting(seed: int) -> Problem:
    """SP on 64 processes, 16 switches of 4 workstations, up*/down*, equivalent distances (section 5.1)."""
    fabric = irregular(16, seed=seed)
    allocation = Allocation.of(fabric, fabric.hosts.tolist())
    routes = build_routes("up-down", fabric, allocation.hosts)
    own = distances("equivalent+2", routes)
    return Problem(profile=sp(64), allocation=allocation, routes=routes, own_distances=own)


@pytest.mark.parametrize("seed", range(5))
def test_the_coefficient_falls_within_a_few_iterations_as_in_figure_7(seed: int) -> None:
    """Section 4.2: "M_c rapidly decreases in the first few iterations after a starting point".

    Three seeds reach its minimum there; 40 failures in a row end in different minima (docs/explanation).
    """
    found = search(on_figure_7s_setting(seed), rng())
    falls = [curve[0] - curve[-1] for curve in found.coefficients]
    early = [curve[0] - curve[len(curve) // 3] for curve in found.coefficients]
    assert sum(early) > 0.5 * sum(falls)
    assert all(fall > 0.05 * curve[0] for fall, curve in zip(falls, found.coefficients, strict=True))
    ends = np.array([curve[-1] for curve in found.coefficients])
    assert (ends <= ends.min() * (1 + 1e-9)).sum() == 1
    assert (ends <= ends.min() * 1.2).all()


def cuthill_mckee(graph: nx.Graph[int], peripheral: bool) -> list[int]:
    """Reverse Cuthill-McKee, with a root of least degree or found as George and Liu do, on lists."""
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
        while peripheral:
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


@given(seed=st.integers(0, 300), edges=st.integers(0, 30), peripheral=st.booleans())
def test_the_order_is_reverse_cuthill_mckee(seed: int, edges: int, peripheral: bool) -> None:
    graph = nx.gnm_random_graph(12, edges, seed=seed)
    assert reverse_cuthill_mckee(*csr(graph), peripheral).tolist() == cuthill_mckee(graph, peripheral)


def test_rcm_by_the_papers_rule_sees_no_edge_between_the_hosts_of_a_switched_fabric() -> None:
    fabric, hosts = leaves(3, 3), [4, 1, 0, 8, 3, 2, 5, 7, 6]
    profile, _ = cliques(3, 3, shuffled=False)
    problem = problem_on(fabric, profile, Allocation.of(fabric, hosts))
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
    tail = np.repeat(np.arange(len(fabric)), np.diff(fabric.indptr))
    inside = np.isin(tail, hosts) & np.isin(fabric.neighbour, hosts)
    joined = np.isin(hosts, np.r_[tail[inside], fabric.neighbour[inside]])
    if 2 * joined.sum() >= len(hosts):
        assert found["auto"].tolist() == found["paper"].tolist()
    else:
        least = min(problem.hop_bytes(found["paper"]), problem.hop_bytes(found["whole"]))
        assert problem.hop_bytes(found["auto"]) == least


def least_loaded(problem: Problem, load: dict[int, float], source: int) -> dict[int, tuple[int, float, int]]:
    """Links, load and last arc of the least loaded shortest way from a vertex to every other."""
    fabric = problem.routes.fabric
    arcs = [
        (int(u), int(fabric.neighbour[arc]), arc)
        for u in range(len(fabric))
        for arc in range(fabric.indptr[u], fabric.indptr[u + 1])
        if fabric.forwards[u] or u == source
    ]
    graph = nx.DiGraph([(u, v) for u, v, _ in arcs])
    graph.add_node(source)
    hops = nx.single_source_shortest_path_length(graph, source)
    found = {source: (0, 0.0, -1)}
    for v in sorted(hops, key=lambda v: hops[v]):
        before = [(u, arc) for u, w, arc in arcs if w == v and hops.get(u) == hops[v] - 1]
        if before:
            found[v] = (hops[v], *min((found[u][1] + load.get(arc, 0.0), arc) for u, arc in before))
    return found


def algorithm_1(problem: Problem, *, start: int = 0, near: str = "sender", ties: str = "load") -> list[int]:
    """Hoefler and Snir 2011, Algorithm 1, line by line on lists; with near=start as LibTopoMap runs it."""
    profile, room, fabric = problem.profile, problem.allocation.slots.tolist(), problem.routes.fabric
    vertex = problem.allocation.hosts.tolist()
    edges = [
        (float(w), int(u), int(m))
        for u, m, w in zip(profile.sender, profile.partner, profile.bytes, strict=True)
        if w > 0
    ]
    unmapped, s, queued = set(range(profile.ranks)), start, set[int]()
    gamma: dict[int, int] = {}
    load: dict[int, float] = {}
    arc_tail = np.repeat(np.arange(len(fabric)), np.diff(fabric.indptr))

    def closest(anchor: int) -> int:
        free = [t for t in range(len(room)) if room[t] > 0]
        if ties == "lowest":
            return min(free, key=lambda t: (problem.routes.distances[anchor, t], t))
        ways = least_loaded(problem, load, vertex[anchor])
        return min(free, key=lambda t: (*ways[vertex[t]][:2], t))

    def put(rank: int, sender: int, weight: float, queue: list[tuple[float, int, int]]) -> None:
        nonlocal s, start
        if near == "sender" and sender >= 0:
            s = gamma[sender]
        if near == "start":
            while sender < 0 and room[start] == 0:
                start = start + 1 if start + 1 < len(room) else 0
            s = start
        if room[s] == 0:
            s = closest(s)
        gamma[rank] = s
        unmapped.discard(rank)
        room[s] -= 1
        if ties == "load" and sender >= 0:
            begin = vertex[start if near == "start" else gamma[sender]]
            ways, at = least_loaded(problem, load, begin), vertex[s]
            while at != begin:
                arc = ways[at][2]
                load[arc] = load.get(arc, 0.0) + weight / fabric.capacity[arc]
                at = int(arc_tail[arc])
        for edge in edges:
            if edge[1] == rank and edge[2] in unmapped and not (near == "start" and edge[2] in queued):
                queue.append(edge)
                queued.add(edge[2])

    while unmapped:
        queue: list[tuple[float, int, int]] = []
        out = {rank: sum(w for w, u, _ in edges if u == rank) for rank in unmapped}
        put(min(unmapped, key=lambda rank: (-out[rank], rank)), -1, 0.0, queue)
        while queue:
            heaviest = min(queue, key=lambda edge: (-edge[0], edge[1], edge[2]))
            queue.remove(heaviest)
            if heaviest[2] in unmapped:
                put(heaviest[2], heaviest[1], heaviest[0], queue)
    return [gamma[rank] for rank in range(profile.ranks)]


NEAR, TIES = st.sampled_from(tuple(greedy.NEAR)), st.sampled_from(greedy.TIES)


@given(problem=problems(), near=NEAR, ties=TIES, start=st.integers(0, 5))
def test_greedy_is_algorithm_1_of_the_paper(problem: Problem, near: str, ties: str, start: int) -> None:
    start %= problem.hosts
    found = greedy.place_greedily(problem, rng(), near=near, ties=ties, start=start)
    assert found.tolist() == algorithm_1(problem, near=near, ties=ties, start=start)


@pytest.mark.parametrize("near", greedy.NEAR)
def test_greedy_is_algorithm_1_where_many_ways_are_shortest(near: str) -> None:
    fabric, random = extended_generalised_fat_tree((4, 4), (1, 3)), rng()
    ends, sizes = random.integers(16, size=(2, 80)), random.random(80)
    problem = on_all_hosts(fabric, Profile.from_edges(ends[0], ends[1], sizes, ranks=16))
    assert greedy.place_greedily(problem, rng(), near=near).tolist() == algorithm_1(problem, near=near)


def cube(hosts: list[int]) -> Problem:
    """Figure 1: vertex xyz of a cube has number 4x + 2y + z; the guest is the path 1-0-3-2."""
    ends = np.array([(u, u ^ bit) for u in range(8) for bit in (1, 2, 4)])
    fabric = Fabric.from_arcs([f"{u:03b}" for u in range(8)], ends[:, 0], ends[:, 1], 1.0)
    profile = Profile.from_edges([0, 1, 0, 3, 2, 3], [1, 0, 3, 0, 3, 2], np.ones(6))
    return problem_on(fabric, profile, Allocation.of(fabric, hosts))


@pytest.mark.parametrize("near", greedy.NEAR)
def test_greedy_from_vertex_100_solves_figure_1_of_the_paper(near: str) -> None:
    problem = cube([0b000, 0b111, 0b101, 0b100])
    found = score(problem, greedy.place_greedily(problem, rng(), start=3, near=near))
    assert (found.congestion_seconds, found.max_dilation) == (1.0, 1.0)


def test_greedy_near_the_start_fills_hosts_around_it_and_queues_each_rank_once() -> None:
    """By hand: hosts 0 to 6 in a line, ranks from host 3.

    Rank 0 sends most. It queues 1 (6), 2 (5), 3 (1). Rank 1 queues none: 3 is queued already, by its lightest
    edge, although 1 sends 9 to it. Ranks 1 and 2 go to hosts 2 and 4, one link from 3. Rank 3: 1 and 5 are
    two links away, and the way to 5 carries 5, that to 1 carries 6. Rank 4, to which 3 sends, goes to 1. Rank
    5 begins anew: host 3 is full, 6 is the next with room. Rank 6 goes to 0.
    """
    ends = np.array([(u, v) for u in range(7) for v in (u - 1, u + 1) if 0 <= v < 7])
    fabric = Fabric.from_arcs([f"h{u}" for u in range(7)], ends[:, 0], ends[:, 1], 1.0)
    sends = [(0, 1, 6.0), (0, 2, 5.0), (0, 3, 1.0), (1, 3, 9.0), (3, 4, 1.0), (5, 6, 0.5)]
    profile = Profile.from_edges(*map(np.array, zip(*sends, strict=True)))
    problem = problem_on(fabric, profile, Allocation.of(fabric, range(7)))
    found = greedy.place_greedily(problem, rng(), start=3, near="start")
    assert found.tolist() == [3, 2, 4, 5, 1, 6, 0]
    other = greedy.place_greedily(problem, rng(), start=3, near="sender")
    assert other.tolist() != found.tolist()


def test_greedy_takes_the_less_loaded_of_two_equally_close_hosts() -> None:
    # Hosts b and c are two links from a, each by a switch of its own; edges are followed 9, 8, 7.
    fabric = Fabric.from_arcs(
        list("abcst"), [0, 0, 3, 4, 3, 1, 4, 2], [3, 4, 1, 2, 0, 3, 0, 4], 1.0, slots=[1, 2, 2, 0, 0]
    )
    profile = Profile.from_edges([0, 0, 0], [1, 2, 3], [9.0, 8.0, 7.0])
    problem = problem_on(fabric, profile, Allocation.of(fabric, list("abc"), [1, 2, 2]))
    assert greedy.place_greedily(problem, rng()).tolist() == [0, 1, 2, 2]
    assert greedy.place_greedily(problem, rng(), ties="lowest").tolist() == [0, 1, 1, 2]
    links = fabric.links
    slower = np.where((links.source == 4) | (links.target == 4), 0.5, 1.0)  # by others' traffic
    reduced = replace(problem, link_capacity=slower)
    assert greedy.place_greedily(reduced, rng()).tolist() == [0, 1, 2, 1]


@pytest.mark.parametrize("by", ["hop-bytes", "congestion"])
def test_greedy_from_many_starts_is_the_best_of_them(by: str) -> None:
    fabric, profile, allocation = ring(9, 8)
    weighted = Profile.from_edges(profile.sender, profile.partner, 1.0 + np.arange(8) % 3, ranks=8)
    problem = problem_on(fabric, weighted, allocation)
    best = greedy.place_greedily(problem, rng(), starts=4, start=2, by=by)
    singles = [greedy.place_greedily(problem, rng(), start=start) for start in (2, 4, 6, 8)]
    scores = [score(problem, found) for found in singles]
    assert not any(better(by, found, score(problem, best)) for found in scores)
    assert best.tolist() in [found.tolist() for found in singles]
