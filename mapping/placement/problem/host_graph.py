"""The fabric as a graph for the strategies of the 2011 paper: arcs, and connections between hosts."""

from __future__ import annotations

import numpy as np

from mapping.placement.problem.problem import Problem
from registry.model import Fabric, Floats, Ints


def arc_tails(fabric: Fabric) -> Ints:
    """Return int32[arcs]: the vertex at which each arc begins; it ends at ``fabric.neighbour``."""
    return np.repeat(np.arange(len(fabric), dtype=np.int32), np.diff(fabric.indptr))


def arc_capacities(problem: Problem) -> Floats:
    """Return float64[arcs]: bytes/s of each arc, parallel cables summed, that other jobs leave."""
    fabric = problem.routes.fabric
    total = np.bincount(fabric.arc_of_link, problem.link_capacity, len(fabric.neighbour))
    return total.astype(np.float64)


def hosts_are_neighbours(fabric: Fabric, hosts: Ints) -> bool:
    """Return True if at least half of the given hosts (vertices) have an edge to another of them.

    True for direct networks, even if an allocation has holes; False for switched ones.
    """
    kept = np.zeros(len(fabric), bool)
    kept[hosts] = True
    tail, head = arc_tails(fabric), fabric.neighbour
    inside = kept[tail] & kept[head] & (tail != head)
    joined = np.zeros(len(fabric), bool)
    joined[tail[inside]] = joined[head[inside]] = True
    return bool(2 * np.count_nonzero(joined) >= len(hosts))
