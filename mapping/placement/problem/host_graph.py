"""The fabric as the graph that the 2011 paper's strategies look at: arcs, and how hosts hang together."""

from __future__ import annotations

import numpy as np

from mapping.placement.problem.problem import Problem
from registry.model import Fabric, Floats, Ints


def arc_tails(fabric: Fabric) -> Ints:
    """int32[arcs]: the vertex that each arc leaves; it enters ``fabric.neighbour``."""
    return np.repeat(np.arange(len(fabric), dtype=np.int32), np.diff(fabric.indptr))


def arc_capacities(problem: Problem) -> Floats:
    """float64[arcs]: bytes/s of each arc, parallel cables taken together, as other jobs leave them."""
    fabric = problem.routes.fabric
    total = np.bincount(fabric.arc_of_link, problem.link_capacity, len(fabric.neighbour))
    return total.astype(np.float64)


def hosts_are_neighbours(fabric: Fabric, hosts: Ints) -> bool:
    """Whether at least half of the given hosts (vertices) have an edge to another of them.

    True for direct networks, also where an allocation has holes; false for switched ones.
    """
    kept = np.zeros(len(fabric), bool)
    kept[hosts] = True
    tail, head = arc_tails(fabric), fabric.neighbour
    inside = kept[tail] & kept[head] & (tail != head)
    joined = np.zeros(len(fabric), bool)
    joined[tail[inside]] = joined[head[inside]] = True
    return bool(2 * np.count_nonzero(joined) >= len(hosts))
