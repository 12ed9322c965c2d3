"""All shortest paths of a graph, and the load that they share.

The graph has no parallel arcs. A vertex that does not forward can start and end paths but is not inside one.
A place can be two vertices (`Goals.twin`): layered graphs have a vertex for each state of a path. Divisions
follow numpy's rules (no test for zero); no division by zero occurs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from registry.model import Bools, Floats, Ints, Longs

HopArray = NDArray[np.signedinteger[Any]]
"""Links of shortest paths; `NO_PATH` if there is none. Bytes, unless a path is longer than 127 links."""
NO_PATH = -1
"""Number of hops of a pair without a path."""


class ArcArrays(NamedTuple):
    """The arcs of a directed graph by tail and by head.

    Attributes
    ----------
    out_ptr : int64[v + 1], head : int32[arcs]
        CSR by tail.
    in_ptr : int64[v + 1], tail : int32[arcs]
        CSR by head: the start of each arc.
    forwards : bool[v]
        True if paths may use the vertex inside.
    """

    out_ptr: Longs
    head: Ints
    in_ptr: Longs
    tail: Ints
    forwards: Bools


class Goals(NamedTuple):
    """Places where paths start and end.

    Attributes
    ----------
    vertex : int32[k]
        Vertex where paths start and end.
    twin : int32[k]
        Another vertex where they may end; -1 if none.
    """

    vertex: Ints
    twin: Ints


class Spread(NamedTuple):
    """Working memory of `trace` for a graph of v vertices, one per thread; made by `new_spread`.

    Attributes
    ----------
    amount : float64[v]
        Bytes that leave each vertex; zero between calls.
    paths : float64[v]
        Number of shortest paths from each vertex of `order`.
    order : int32[v]
        Vertices on paths, farthest from the goal first.
    first : int64[v + 1], arc : int32[arcs]
        Arcs on paths out of each vertex of `order`.
    known : bool[v]
        False between calls.
    level : int32[levels], later : int32[v]
        Linked lists of vertices to start from, by hops; -1 between calls.
    """

    amount: Floats
    paths: Floats
    order: Ints
    first: Longs
    arc: Ints
    known: Bools
    level: Ints
    later: Ints


def new_spread(vertices: int, arcs: int) -> Spread:
    """Return working memory for `trace`."""
    return Spread(
        amount=np.zeros(vertices),
        paths=np.zeros(vertices),
        order=np.zeros(vertices, np.int32),
        first=np.zeros(vertices + 1, np.int64),
        arc=np.zeros(arcs, np.int32),
        known=np.zeros(vertices, np.bool_),
        level=np.full(vertices + 1, -1, np.int32),
        later=np.full(vertices, -1, np.int32),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def trace(
    out_ptr: Longs,
    head: Ints,
    forwards: Bools,
    hops: NDArray[np.signedinteger],
    furthest: int,
    spread: Spread,
) -> int:
    """Find and count the shortest paths to a goal from all vertices in the lists of ``spread.level``.

    Parameters
    ----------
    hops : int8[v] or int16[v]
        Links to the goal.
    furthest : int
        Highest level with a list.

    Returns
    -------
    int
        Number of vertices on paths; ``spread.known`` is true for these, and the lists are empty afterwards.
    """
    order, first, arcs, known = spread.order, spread.first, spread.arc, spread.known
    level, later = spread.level, spread.later
    count, done, listed = 0, 0, 0
    for far in range(furthest, -1, -1):
        v = level[far]
        level[far] = -1
        while v >= 0:
            if not known[v]:
                known[v], order[count] = True, v
                count += 1
            onward = later[v]
            later[v] = -1
            v = onward
        end = count
        while done < end:
            v = order[done]
            first[done] = listed
            done += 1
            for arc in range(out_ptr[v], out_ptr[v + 1]):
                u = head[arc]
                if hops[u] == far - 1 and far > 0 and (far == 1 or forwards[u]):
                    arcs[listed] = arc
                    listed += 1
                    if not known[u]:
                        known[u], order[count] = True, u
                        count += 1
    first[count] = listed
    _count(head, hops, count, spread)
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def _count(head: Ints, hops: HopArray, count: int, spread: Spread) -> None:
    """Count the paths from each vertex in the list of `trace`."""
    order, first, arcs, paths = spread.order, spread.first, spread.arc, spread.paths
    for k in range(count - 1, -1, -1):
        v = order[k]
        total = 1.0 if hops[v] == 0 else 0.0
        for e in range(first[k], first[k + 1]):
            total += paths[head[arcs[e]]]
        paths[v] = total


@njit(cache=True, nogil=True, error_model="numpy")
def carry(
    arcs: ArcArrays,
    hops: HopArray,
    demand_ptr: Longs,
    start: Ints,
    amount: Floats,
    spread: Spread,
    arc_load: Floats,
    length: Ints,
) -> None:
    """Divide demands evenly over all their shortest paths.

    Goal by goal, arcs on paths are listed once; then paths are counted backwards from the goal and amounts
    are carried forwards (Brandes, "A faster algorithm for betweenness centrality", 2001, with demands as
    start values), over the vertices on paths only.

    Parameters
    ----------
    hops : int8[n, v] or int16[n, v]
        Links to each goal.
    demand_ptr : int64[n + 1]
        Demands of each goal.
    start : int32[d]
        Vertex where each starts.
    amount : float64[d]
        Bytes.
    arc_load : float64[arcs]
        Increased.
    length : int32[d]
        Filled with the length of each demand's paths; -1 if there is none.
    """
    out_ptr, head, forwards = arcs.out_ptr, arcs.head, arcs.forwards
    level, later, rest = spread.level, spread.later, spread.amount
    order, first, listed, known, paths = spread.order, spread.first, spread.arc, spread.known, spread.paths
    for row in range(len(hops)):
        near, furthest = hops[row], int(np.int64(-1))
        for d in range(demand_ptr[row], demand_ptr[row + 1]):
            v = start[d]
            far = int(np.int64(near[v]))
            length[d] = far
            if far >= 0 and amount[d] > 0.0:
                if rest[v] == 0.0:
                    later[v], level[far] = level[far], v
                    if far > furthest:
                        furthest = far
                rest[v] += amount[d]
        for k in range(trace(out_ptr, head, forwards, near, furthest, spread)):
            v = order[k]
            known[v] = False
            per_path = rest[v] / paths[v]
            rest[v] = 0.0
            for e in range(first[k], first[k + 1]):
                u = head[listed[e]]
                part = per_path * paths[u]
                arc_load[listed[e]] += part
                rest[u] += part
