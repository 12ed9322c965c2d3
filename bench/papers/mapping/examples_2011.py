"""Reproduce Hoefler and Snir 2011, Figure 1 and the construction in the proof of Theorem 1."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations, product

import numpy as np

from bench.papers.mapping.mapping_2011 import READINGS, STRATEGIES, Effort, hosts_of_ranks
from bench.support.papers import Figure, Row
from mapping.placement.problem.objective import score
from mapping.placement.problem.problem import Problem
from mapping.routing.catalog import build_routes
from registry.model import Allocation, Fabric, Profile

MAPPINGS = {"Figure 1(c)": "000 111 101 100", "Figure 1(d)": "101 111 000 100"}
PATH = ((0, 1), (0, 3), (2, 3))
"""The guest of Figure 1(b), each edge in both directions."""
RANKS = 6
"""P in Theorem 1: few enough to try all mappings."""
EDGES = ((0, 2), (0, 3), (1, 4), (2, 3), (2, 4), (3, 5), (4, 5))
"""The graph to cut; s is 0 and t is 1."""


def run(effort: Effort) -> Figure:
    """Evaluate the two mappings of Figure 1 and greedy's, and all mappings of Theorem 1's construction."""
    return Figure(
        title="2011, Figure 1 and Theorem 1",
        setting="The cube with routing in x, y, z order; greedy on all shortest paths from vertex 100. "
        f"Theorem 1's dumbbell for P = {RANKS} and the graph {' '.join(f'{u}-{v}' for u, v in EDGES)} "
        "with s = 0, t = 1: all mappings.",
        rows=(*_figure_1(), *_theorem_1()),
    )


def _figure_1() -> list[Row]:
    """Return congestion and largest dilation of the mappings of Figure 1."""
    corners = ["".join(bits) for bits in product("01", repeat=3)]
    ends = np.array([(u, u ^ bit) for u in range(8) for bit in (1, 2, 4)])
    fabric = replace(
        Fabric.from_arcs(corners, ends[:, 0], ends[:, 1], 1.0),
        coordinates=np.array([list(map(int, corner)) for corner in corners], np.int32),
    )
    both = np.array([*PATH, *(edge[::-1] for edge in PATH)])
    profile = Profile.from_edges(both[:, 0], both[:, 1], np.ones(len(both)))
    rows = []
    for name, text in MAPPINGS.items():
        problem = _problem(fabric, profile, text.split(), "dimension-order:order=xyz")
        rows += _measured(name, problem, np.arange(4, dtype=np.int32))
    problem = _problem(fabric, profile, MAPPINGS["Figure 1(c)"].split(), "shortest-paths")
    for name in READINGS:
        text = STRATEGIES[name].replace("starts=8", "start=3")
        rows += _measured(f"{name} from vertex 100", problem, hosts_of_ranks(text, problem))
    return rows


def _problem(fabric: Fabric, profile: Profile, hosts: list[str], routing: str) -> Problem:
    allocation = Allocation.of(fabric, hosts)
    return Problem(
        profile=profile, allocation=allocation, routes=build_routes(routing, fabric, allocation.hosts)
    )


def _measured(name: str, problem: Problem, hosts: np.ndarray) -> list[Row]:
    found = score(problem, hosts)
    return [
        Row(what=f"{name}: congestion", ours=found.congestion_seconds),
        Row(what=f"{name}: largest dilation", ours=found.max_dilation),
    ]


def _theorem_1() -> list[Row]:
    """Return the lowest congestion over all mappings, and what the smallest cut predicts."""
    half, names = RANKS // 2, [f"v{v}" for v in range(RANKS)]
    arcs = [(a, b) for a in range(RANKS) for b in range(RANKS) if a != b and a // half == b // half]
    capacity = [1.0] * len(arcs) + [float(RANKS)] * 2
    source, target = zip(*arcs, (0, half), (half, 0), strict=True)
    fabric = Fabric.from_arcs(names, source, target, capacity)
    weighted = {(0, 1): float(RANKS**4), **dict.fromkeys(EDGES, 1.0)}
    one, other = np.array(sorted(weighted)).T
    size = np.array([weighted[edge] for edge in sorted(weighted)])
    profile = Profile.from_edges(np.r_[one, other], np.r_[other, one], np.r_[size, size])
    problem = _problem(fabric, profile, names, "shortest-paths")
    found = {True: np.inf, False: np.inf}
    for mapping in permutations(range(RANKS)):
        on_bar = {mapping[0], mapping[1]} == {0, half}
        value = score(problem, np.array(mapping, np.int32)).congestion_seconds
        found[on_bar] = min(found[on_bar], value)
    cut = min(
        sum((u in side) != (v in side) for u, v in EDGES)
        for side in map(set, combinations(range(RANKS), half))
        if 0 in side and 1 not in side
    )
    return [
        Row(what="Theorem 1: lowest congestion of all mappings", ours=min(found.values())),
        Row(what="Theorem 1: P^3 + L / P with the smallest cut L", ours=RANKS**3 + cut / RANKS),
        Row(what="Theorem 1: lowest congestion with s or t off the bar", ours=found[False]),
        Row(what="Theorem 1: P^4", ours=float(RANKS**4)),
    ]
