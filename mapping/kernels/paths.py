"""All hop-shortest paths of a graph: counting them, and the load that they share.

The graph has no parallel arcs. A vertex that does not forward starts and ends paths but lies inside none.
Divisions follow numpy's rules (no test for zero): nothing here divides by zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from registry.model import Bools, Floats, Ints, Longs

HopArray = NDArray[np.uint16]
NO_PATH = np.uint16(65535)
"""Number of hops of a pair that no path joins."""


class ArcArrays(NamedTuple):
    """The arcs of a directed graph by tail and by head.

    Attributes
    ----------
    out_ptr : int64[v + 1], head : int32[arcs]
        CSR by tail.
    in_ptr : int64[v + 1], tail, in_arc : int32[arcs]
        CSR by head: where each arc comes from, and its place in the CSR by tail.
    forwards : bool[v]
        Whether paths may lead through the vertex.
    """

    out_ptr: Longs
    head: Ints
    in_ptr: Longs
    tail: Ints
    in_arc: Ints
    forwards: Bools


@njit(cache=True, error_model="numpy")
def count_paths(
    out_ptr: Longs,
    head: Ints,
    forwards: Bools,
    source: int,
    wanted: Bools,
    missing: int,
    hops: Ints,
    paths: Floats,
    order: Ints,
) -> int:
    """Breadth-first search from `source` that stops once all paths to the wanted vertices are counted.

    Parameters
    ----------
    wanted : bool[v]
        Vertices that are looked for; `missing` is their number.
    hops : int32[v]
        -1 before the call; filled for the vertices reached.
    paths : float64[v]
        Filled with the number of shortest paths from the source.
    order : int32[v]
        Filled with the vertices reached, in order.

    Returns
    -------
    int
        Number of vertices reached.
    """
    hops[source], paths[source], order[0] = 0, 1.0, source
    missing -= wanted[source]
    last = -1
    reached, at = 1, 0
    while at < reached:
        u = order[at]
        at += 1
        if missing == 0 and last < 0:
            last = hops[order[reached - 1]]
        if hops[u] == last:
            break
        if u != source and not forwards[u]:
            continue
        for arc in range(out_ptr[u], out_ptr[u + 1]):
            v = head[arc]
            if hops[v] < 0:
                hops[v], paths[v], order[reached] = hops[u] + 1, 0.0, v
                reached += 1
                missing -= wanted[v]
            if hops[v] == hops[u] + 1:
                paths[v] += paths[u]
    return reached


@njit(cache=True, error_model="numpy")
def carry(
    arcs: ArcArrays, start: Ints, demand_ptr: Longs, goal: Ints, amount: Floats, arc_load: Floats
) -> Ints:
    """Spread demands evenly over all their shortest paths.

    One search a start counts paths, one pass back from its goals accumulates loads (Brandes, "A faster
    algorithm for betweenness centrality", 2001, with demands as end values).

    Parameters
    ----------
    start : int32[k]
        Vertex where the demands ``demand_ptr[r]:demand_ptr[r + 1]`` start.
    goal : int32[d]
        Vertex where each ends.
    amount : float64[d]
        Bytes.
    arc_load : float64[arcs]
        Added to.

    Returns
    -------
    int32[d]
        Length of each demand's paths; -1 where there is none.
    """
    out_ptr, head, forwards = arcs.out_ptr, arcs.head, arcs.forwards
    in_ptr, tail, in_arc = arcs.in_ptr, arcs.tail, arcs.in_arc
    vertices = len(forwards)
    hops, order = np.full(vertices, -1, np.int32), np.empty(vertices, np.int32)
    paths, rest = np.zeros(vertices), np.zeros(vertices)
    wanted, length = np.zeros(vertices, np.bool_), np.empty(len(goal), np.int32)
    for r in range(len(start)):
        first, end = demand_ptr[r], demand_ptr[r + 1]
        missing = 0
        for d in range(first, end):
            missing += not wanted[goal[d]]
            wanted[goal[d]] = True
        reached = count_paths(out_ptr, head, forwards, start[r], wanted, missing, hops, paths, order)
        for d in range(first, end):
            v = goal[d]
            wanted[v], length[d] = False, hops[v]
            if hops[v] >= 0:
                rest[v] += amount[d] / paths[v]
        # rest[v]: bytes that end at or beyond v, by path that leads to it
        for at in range(reached - 1, -1, -1):
            v = order[at]
            if rest[v] > 0.0:
                for e in range(in_ptr[v], in_ptr[v + 1]):
                    u = tail[e]
                    if hops[u] >= 0 and hops[u] + 1 == hops[v] and (hops[u] == 0 or forwards[u]):
                        arc_load[in_arc[e]] += paths[u] * rest[v]
                        rest[u] += rest[v]
            rest[v], hops[v] = 0.0, -1
    return length


@njit(cache=True, error_model="numpy")
def paths_to(arcs: ArcArrays, goals: Ints, hops: HopArray, paths: Floats) -> None:
    """Shortest paths from every vertex to each goal.

    Parameters
    ----------
    goals : int32[k]
    hops : uint16[k, v]
        Filled; `NO_PATH` where no path leads.
    paths : float64[k, v]
        Filled with their number; 0 where no path leads. May have no columns: then only hops are told.
    """
    in_ptr, tail, forwards = arcs.in_ptr, arcs.tail, arcs.forwards
    counted = paths.shape[1] > 0
    order = np.empty(len(forwards), np.int32)
    hops[:, :] = NO_PATH
    paths[:, :] = 0.0
    for t in range(len(goals)):
        goal = goals[t]
        hops[t, goal], order[0] = 0, goal
        if counted:
            paths[t, goal] = 1.0
        reached, at = 1, 0
        while at < reached:
            v = order[at]
            at += 1
            if v != goal and not forwards[v]:
                continue
            near = hops[t, v] + 1
            for e in range(in_ptr[v], in_ptr[v + 1]):
                u = tail[e]
                if hops[t, u] == NO_PATH:
                    hops[t, u], order[reached] = near, u
                    reached += 1
                if counted and hops[t, u] == near:
                    paths[t, u] += paths[t, v]
