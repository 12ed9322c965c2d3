"""Reproduce Hoefler and Snir 2011, Figure 3: matrices of the guest and of a torus before and after RCM."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from bench.papers.mapping.mapping_2011 import first_hosts, guest
from bench.support.figures import Effort, Figure, Row
from bench.support.output import has_plots
from bench.support.plots import draw_matrices
from ingest.generate.direct import torus
from mapping.placement.methods.rcm import PERIPHERAL, order_vertices
from mapping.placement.problem import arc_tails
from registry.model import Ints


def run(effort: Effort) -> Figure:
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
