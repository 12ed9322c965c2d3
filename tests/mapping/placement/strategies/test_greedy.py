"""Hoefler and Snir's (2011) greedy strategy."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.placement.problem.objective import better, score
from mapping.placement.problem.problem import Problem
from mapping.placement.strategies import greedy
from registry.model import Allocation, Fabric, Profile
from tests.support.search_problems import problem_on, problems, ring
from tests.support.strategy_problems import rng


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
    found = greedy.place_ranks(problem, rng(), near=near, ties=ties, start=start)
    assert found.tolist() == algorithm_1(problem, near=near, ties=ties, start=start)


def cube(hosts: list[int]) -> Problem:
    """Figure 1: vertex xyz of a cube has number 4x + 2y + z; the guest is the path 1-0-3-2."""
    ends = np.array([(u, u ^ bit) for u in range(8) for bit in (1, 2, 4)])
    fabric = Fabric.from_arcs([f"{u:03b}" for u in range(8)], ends[:, 0], ends[:, 1], 1.0)
    profile = Profile.from_edges([0, 1, 0, 3, 2, 3], [1, 0, 3, 0, 3, 2], np.ones(6))
    return problem_on(fabric, profile, Allocation.of(fabric, hosts))


@pytest.mark.parametrize("near", greedy.NEAR)
def test_greedy_from_vertex_100_solves_figure_1_of_the_paper(near: str) -> None:
    problem = cube([0b000, 0b111, 0b101, 0b100])
    found = score(problem, greedy.place_ranks(problem, rng(), start=3, near=near))
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
    found = greedy.place_ranks(problem, rng(), start=3, near="start")
    assert found.tolist() == [3, 2, 4, 5, 1, 6, 0]
    other = greedy.place_ranks(problem, rng(), start=3, near="sender")
    assert other.tolist() != found.tolist()


def test_greedy_takes_the_less_loaded_of_two_equally_close_hosts() -> None:
    # Hosts b and c are two links from a, each by a switch of its own; edges are followed 9, 8, 7.
    fabric = Fabric.from_arcs(
        list("abcst"), [0, 0, 3, 4, 3, 1, 4, 2], [3, 4, 1, 2, 0, 3, 0, 4], 1.0, slots=[1, 2, 2, 0, 0]
    )
    profile = Profile.from_edges([0, 0, 0], [1, 2, 3], [9.0, 8.0, 7.0])
    problem = problem_on(fabric, profile, Allocation.of(fabric, list("abc"), [1, 2, 2]))
    assert greedy.place_ranks(problem, rng()).tolist() == [0, 1, 2, 2]
    assert greedy.place_ranks(problem, rng(), ties="lowest").tolist() == [0, 1, 1, 2]
    links = fabric.links
    slower = np.where((links.source == 4) | (links.target == 4), 0.5, 1.0)  # by others' traffic
    reduced = replace(problem, link_capacity=slower)
    assert greedy.place_ranks(reduced, rng()).tolist() == [0, 1, 2, 1]


@pytest.mark.parametrize("by", ["hop-bytes", "congestion"])
def test_greedy_from_many_starts_is_the_best_of_them(by: str) -> None:
    fabric, profile, allocation = ring(9, 8)
    weighted = Profile.from_edges(profile.sender, profile.partner, 1.0 + np.arange(8) % 3, ranks=8)
    problem = problem_on(fabric, weighted, allocation)
    best = greedy.place_ranks(problem, rng(), starts=4, start=2, by=by)
    singles = [greedy.place_ranks(problem, rng(), start=start) for start in (2, 4, 6, 8)]
    scores = [score(problem, found) for found in singles]
    assert not any(better(by, found, score(problem, best)) for found in scores)
    assert best.tolist() in [found.tolist() for found in singles]
