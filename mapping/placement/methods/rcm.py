"""RCM: both graphs in reverse Cuthill-McKee order, and the k-th rank on the k-th host.

Source: Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel architectures",
2011, section 3.3: orders pi_G and pi_H of the ranks and of the hosts, and the placement
pi_H o pi_G^-1. "All vertices v with C(v) = 0 are removed from H" first, which leaves no edge between the
hosts of a switched fabric, and so the order of their numbers. The variant ``whole`` orders hosts and
switches together, then keeps the hosts. Weights and capacities are ignored; an edge counts in
both directions. A host is repeated for each of its slots; slots that are left over stay free.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from mapping.placement.kernels.rcm import reverse_cuthill_mckee
from mapping.placement.problem import Problem, arc_tails, hosts_are_neighbours
from registry.errors import UnknownName
from registry.model import Fabric, Ints

AUTO, PAPER, WHOLE = "auto", "paper", "whole"
VARIANTS = (AUTO, PAPER, WHOLE)
PERIPHERAL, LEAST_DEGREE = "peripheral", "least-degree"
ROOTS = (PERIPHERAL, LEAST_DEGREE)


def place_ranks(
    problem: Problem, generator: np.random.Generator, *, variant: str = AUTO, root: str = PERIPHERAL
) -> Ints:
    """Place ranks in the order of the hosts.

    Args:
        variant: ``paper`` orders the hosts of the allocation by the edges among them; ``whole`` orders them
            together with all vertices that forward; ``auto`` uses ``paper`` if at least half of the hosts
            have an edge to another host of the allocation, else the order with fewer hop-bytes: reversed
            machine order is often a good order of a switched fabric.
        root: Start of an ordering: a ``peripheral`` vertex, found as by George and Liu (1979), or one of
            ``least-degree``. The paper does not specify it.
    """
    for option, value, known in (("variant", variant, VARIANTS), ("root", root, ROOTS)):
        if value not in known:
            raise UnknownName(f"rcm.{option}", value, known)
    fabric, hosts = problem.routes.fabric, problem.allocation.hosts
    if variant == AUTO and hosts_are_neighbours(fabric, hosts):
        variant = PAPER
    ranks = order_vertices(problem.source, problem.target, problem.ranks, root)
    found = [
        _in_both_orders(problem, ranks, _host_order(fabric, hosts, way, root))
        for way in ((PAPER, WHOLE) if variant == AUTO else (variant,))
    ]
    return found[0] if len(found) == 1 else min(found, key=problem.hop_bytes)


def _in_both_orders(problem: Problem, ranks: Ints, hosts: Ints) -> Ints:
    """Return int32[ranks]: the ordered ranks on the slots of the ordered hosts."""
    host_of_rank = np.empty(problem.ranks, np.int32)
    host_of_rank[ranks] = np.repeat(hosts, problem.allocation.slots[hosts])[: problem.ranks]
    return host_of_rank


def _host_order(fabric: Fabric, hosts: Ints, variant: str, root: str) -> Ints:
    """Return int32[h]: host indices in reverse Cuthill-McKee order."""
    number = np.full(len(fabric), -1, np.int32)
    number[hosts] = np.arange(len(hosts))
    if variant == WHOLE:
        others = np.flatnonzero(fabric.forwards & (number < 0))
        number[others] = len(hosts) + np.arange(len(others))
    tail = number[arc_tails(fabric)]
    head = number[fabric.neighbour]
    inside = (tail >= 0) & (head >= 0)
    order = order_vertices(tail[inside], head[inside], int(number.max()) + 1, root)
    return order[order < len(hosts)]


def order_vertices(source: Ints, target: Ints, vertices: int, root: str) -> Ints:
    """Return int32[n]: vertices of a graph in reverse Cuthill-McKee order.

    Args:
        source, target (int[e]): Edges, in any direction; loops are ignored.
        root: As in `place_ranks`.
    """
    apart = source != target
    ends = np.r_[source[apart], target[apart]], np.r_[target[apart], source[apart]]
    graph = csr_matrix((np.ones(len(ends[0]), np.int8), ends), shape=(vertices, vertices))
    graph.sum_duplicates()
    graph.sort_indices()
    return reverse_cuthill_mckee(
        graph.indptr.astype(np.int64), graph.indices.astype(np.int32), root == PERIPHERAL
    )
