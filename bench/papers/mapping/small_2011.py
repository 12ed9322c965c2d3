"""Reproduce Hoefler and Snir 2011, Figures 1 and 3, Theorem 1, and groups of ranks (section 3.4)."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import combinations, permutations, product

import numpy as np
from scipy.sparse import csr_matrix

from bench.papers.mapping.mapping_2011 import (
    MATRICES,
    READINGS,
    STRATEGIES,
    Effort,
    first_hosts,
    guest,
    hosts_of_ranks,
)
from bench.support.papers import Figure, Row, has_plots
from bench.support.plots import draw_matrices
from bench.support.searches import problem_of
from ingest.generate.direct import torus
from mapping.placement.methods.multicore import PARTITIONS, cut_bytes, group_ranks
from mapping.placement.methods.rcm import PERIPHERAL, order_vertices
from mapping.placement.objective import score
from mapping.placement.problem import Problem, arc_tails
from registry.model import Allocation, Fabric, Ints, Profile

MAPPINGS = {"Figure 1(c)": "000 111 101 100", "Figure 1(d)": "101 111 000 100"}
PATH = ((0, 1), (0, 3), (2, 3))
"""The guest of Figure 1(b), each edge in both directions."""
P_RANKS = 6
"""P in Theorem 1: few enough to try all mappings."""
EDGES = ((0, 2), (0, 3), (1, 4), (2, 3), (2, 4), (3, 5), (4, 5))
"""The graph to cut; s is 0 and t is 1."""


def examples(effort: Effort) -> Figure:
    """Evaluate the two mappings of Figure 1 and greedy's, and all mappings of Theorem 1's construction."""
    return Figure(
        title="2011, Figure 1 and Theorem 1",
        setting="The cube with routing in x, y, z order; greedy on all shortest paths from vertex 100. "
        f"Theorem 1's dumbbell for P = {P_RANKS} and the graph {' '.join(f'{u}-{v}' for u, v in EDGES)} "
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
    return problem_of(fabric, profile, allocation, routing)


def _measured(name: str, problem: Problem, hosts: np.ndarray) -> list[Row]:
    found = score(problem, hosts)
    return [
        Row(what=f"{name}: congestion", ours=found.congestion_seconds),
        Row(what=f"{name}: largest dilation", ours=found.max_dilation),
    ]


def _theorem_1() -> list[Row]:
    """Return the lowest congestion over all mappings, and what the smallest cut predicts."""
    half, names = P_RANKS // 2, [f"v{v}" for v in range(P_RANKS)]
    arcs = [(a, b) for a in range(P_RANKS) for b in range(P_RANKS) if a != b and a // half == b // half]
    capacity = [1.0] * len(arcs) + [float(P_RANKS)] * 2
    source, target = zip(*arcs, (0, half), (half, 0), strict=True)
    fabric = Fabric.from_arcs(names, source, target, capacity)
    weighted = {(0, 1): float(P_RANKS**4), **dict.fromkeys(EDGES, 1.0)}
    one, other = np.array(sorted(weighted)).T
    size = np.array([weighted[edge] for edge in sorted(weighted)])
    profile = Profile.from_edges(np.r_[one, other], np.r_[other, one], np.r_[size, size])
    problem = _problem(fabric, profile, names, "shortest-paths")
    found = {True: np.inf, False: np.inf}
    for mapping in permutations(range(P_RANKS)):
        on_bar = {mapping[0], mapping[1]} == {0, half}
        value = score(problem, np.array(mapping, np.int32)).congestion_seconds
        found[on_bar] = min(found[on_bar], value)
    cut = min(
        sum((u in side) != (v in side) for u, v in EDGES)
        for side in map(set, combinations(range(P_RANKS), half))
        if 0 in side and 1 not in side
    )
    return [
        Row(what="Theorem 1: lowest congestion of all mappings", ours=min(found.values())),
        Row(what="Theorem 1: P^3 + L / P with the smallest cut L", ours=P_RANKS**3 + cut / P_RANKS),
        Row(what="Theorem 1: lowest congestion with s or t off the bar", ours=found[False]),
        Row(what="Theorem 1: P^4", ours=float(P_RANKS**4)),
    ]


def matrices(effort: Effort) -> Figure:
    """Order the F1-like guest and the torus as the strategy ``rcm`` does, and draw both."""
    side = 4 if effort.small else 8
    ranks = side**3
    profile, fabric = guest("F1", ranks, effort.small), torus((side,) * 3)
    number = np.full(len(fabric), -1)
    number[first_hosts(fabric, ranks).hosts] = np.arange(ranks)
    edges = {
        f"G: F1 on {ranks} ranks": (profile.sender, profile.partner),
        f"H: {side} x {side} x {side} torus": (number[arc_tails(fabric)], number[fabric.neighbour]),
    }
    rows, drawn = list[Row](), list[tuple[str, csr_matrix]]()
    for name, (source, target) in edges.items():
        order = order_vertices(source, target, ranks, PERIPHERAL)
        place = np.empty(ranks, np.int64)
        place[order] = np.arange(ranks)
        for when, one, other in (("before", source, target), ("after", place[source], place[target])):
            bandwidth, profile_size = bandwidth_and_profile(one, other, ranks)
            drawn.append(
                (f"{name}, {when} RCM", csr_matrix((np.ones(len(one)), (one, other)), (ranks, ranks)))
            )
            rows += [
                Row(what=f"{name}: bandwidth {when} RCM", ours=float(bandwidth), baseline="positions"),
                Row(what=f"{name}: profile {when} RCM", ours=float(profile_size), baseline="entries"),
            ]
    return Figure(
        title="2011, Figure 3: matrices before and after RCM",
        setting=f"The traffic of a product with an F1-like matrix on {ranks} ranks in METIS's order, and a "
        f"{side} x {side} x {side} torus in lexicographic order; the paper prints pictures without numbers. "
        "Bandwidth: greatest distance of an entry from the diagonal; profile: sum over the rows of the "
        "distance from the first entry to the diagonal.",
        rows=tuple(rows),
        picture=draw_matrices(drawn, 2) if has_plots() else b"",
    )


def bandwidth_and_profile(source: Ints, target: Ints, vertices: int) -> tuple[int, int]:
    """Return the bandwidth and the profile (envelope size) of a graph's matrix, both directions counted."""
    low, high = np.minimum(source, target), np.maximum(source, target)
    first = np.arange(vertices)
    np.minimum.at(first, high, low)
    return int((high - low).max(initial=0)), int((np.arange(vertices) - first).sum())


CORES = (4, 8, 16)
GROUPED_RANKS = 1024
SEEDS = 5


def multicore(effort: Effort) -> Figure:
    """Group the ranks of all guests, and compare the bytes between groups."""
    ranks, rows = 64 if effort.small else GROUPED_RANKS, list[Row]()
    for name in MATRICES:
        profile = guest(name, ranks, effort.small)
        for cores in CORES:
            blocks = cut_bytes(profile, np.arange(ranks, dtype=np.int32) // cores)
            cuts = {way: _cuts(profile, cores, way) for way in PARTITIONS}
            case = f"{name}, {ranks} ranks, {cores} a host"
            for way, (cut, seconds) in cuts.items():
                rows += [
                    Row(f"{case}: {way}, bytes between hosts", cut / blocks - 1.0, "blocks"),
                    Row(f"{case}: {way}, time", seconds, "seconds"),
                ]
            ratio = cuts["paper"][0] / cuts["improved"][0] - 1.0
            rows.append(Row(what=f"{case}: paper, bytes between hosts", ours=ratio, baseline="improved"))
    return Figure(
        title="2011, section 3.4: groups of ranks for hosts with several slots",
        setting=f"Mean of {SEEDS} seeds; blocks of ranks in METIS's order are the baseline. paper: METIS's "
        "k-way partition with 5% slack, corrected by moving the lightest ranks; improved: our default. The "
        "paper gives no numbers.",
        rows=tuple(rows),
    )


def _cuts(profile: Profile, cores: int, way: str) -> tuple[float, float]:
    """Return the mean bytes between groups, and the mean processor seconds of a grouping."""
    sizes = np.full(profile.ranks // cores, cores)
    group_ranks(profile, sizes, np.random.default_rng(0), way)  # loads kernels
    begin = time.process_time()
    cuts = [
        cut_bytes(profile, group_ranks(profile, sizes, np.random.default_rng(seed), way))
        for seed in range(SEEDS)
    ]
    return float(np.mean(cuts)), (time.process_time() - begin) / SEEDS
