"""Shortest paths of a graph: their lengths, for many goals at once, and the load that they share.

The graph has no parallel arcs. A vertex that does not forward can start and end paths but is not inside one.
A place can be two vertices (`Goals.twin`): layered graphs have a vertex for each state of a path. Divisions
follow numpy's rules (no test for zero); no division by zero occurs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapping.kernels.decorators import allocating, kernel
from registry.model import Bools, Floats, Ints, Longs

HopArray = NDArray[np.signedinteger[Any]]
"""Links of shortest paths; `NO_PATH` if there is none. Bytes, unless a path is longer than 127 links."""
NO_PATH = -1
"""Number of hops of a pair without a path."""
AT_ONCE = 64
"""Goals of one search for lengths, one per bit of a word."""
Words = NDArray[np.uint64]
_FURTHEST = 127
_BITS = np.array([[byte >> bit & 1 for bit in range(8)] for byte in range(256)], np.uint8)
_BYTES = np.ascontiguousarray(_BITS).view("<u8").reshape(-1).astype(np.uint64)
"""uint64[256]: each bit of a byte as a byte of a word."""


class ArcArrays(NamedTuple):
    """The arcs of a directed graph by tail and by head."""

    out_ptr: Longs
    head: Ints
    """int64[v + 1] and int32[arcs]: CSR by tail."""
    in_ptr: Longs
    tail: Ints
    """int64[v + 1] and int32[arcs]: CSR by head: the start of each arc."""
    forwards: Bools
    """bool[v]: True if paths may use the vertex inside."""


class Goals(NamedTuple):
    """Places where paths start and end."""

    vertex: Ints
    """int32[k]: Vertex where paths start and end."""
    twin: Ints
    """int32[k]: Another vertex where they may end; -1 if none."""


def fill_hops(arcs: ArcArrays, vertex: Ints, twin: Ints, hops: HopArray) -> bool:
    """Fill the lengths of the shortest paths from every vertex to each of at most `AT_ONCE` goals.

    Args:
        vertex, twin (int32[n]): As in `Goals`.
        hops (int8[n, v] or int16[n, v]): Filled.

    Returns:
        False if `hops` has bytes and a path is too long for a byte.
    """
    if hops.dtype == np.int8:
        return bool(_fill_bytes(arcs, vertex, twin, _BYTES, hops))
    _fill_words(arcs, vertex, twin, hops)
    return True


@allocating
def _fill_bytes(arcs: ArcArrays, vertex: Ints, twin: Ints, as_bytes: Words, hops: HopArray) -> bool:
    """Search against the arcs from all goals at once; each goal is a bit of a word.

    Source: Then et al., "The more the merrier: efficient multi-source graph traversal", 2014.
    """
    vertices, none = len(arcs.forwards), np.uint64(0)
    seen, front, fresh = np.zeros((3, vertices), np.uint64)
    now, soon = np.empty((2, vertices), np.int32)
    levels = np.full((vertices, 8), ~none)
    count = 0
    for bit in range(len(vertex)):
        for goal in (vertex[bit], twin[bit]):
            if goal >= 0:
                if front[goal] == none:
                    now[count] = goal
                    count += 1
                front[goal] |= np.uint64(1) << np.uint64(bit)
    level = 0
    while count > 0:
        if level > _FURTHEST:
            return False
        _write_level(level, now[:count], front, as_bytes, seen, levels)
        found = _advance(arcs, level, now[:count], front, seen, fresh, soon)
        now, soon, count = soon, now, found
        front, fresh = fresh, front
        level += 1
    by_vertex = levels.view(np.int8)
    for begin in range(0, vertices, AT_ONCE):
        for row in range(len(vertex)):
            for v in range(begin, min(begin + AT_ONCE, vertices)):
                hops[row, v] = by_vertex[v, row]
    return True


@kernel
def _write_level(level: int, now: Ints, front: Words, as_bytes: Words, seen: Words, levels: Words) -> None:
    """Write the level of the vertices reached now: a byte of `levels` per goal, -1 before."""
    none, code = np.uint64(0), np.uint64(255 ^ level)
    for v in now:
        bits = front[v]
        seen[v] |= bits
        for byte in range(8):
            part = (bits >> np.uint64(8 * byte)) & np.uint64(255)
            if part != none:
                levels[v, byte] ^= as_bytes[part] * code


@kernel
def _advance(
    arcs: ArcArrays, level: int, now: Ints, front: Words, seen: Words, fresh: Words, soon: Ints
) -> int:
    """Go one link back from the vertices reached now; return the number of vertices reached next.

    Clears `front` of the vertices reached now.
    """
    in_ptr, tail, forwards, none, found = arcs.in_ptr, arcs.tail, arcs.forwards, np.uint64(0), 0
    for v in now:
        bits = front[v]
        front[v] = none
        if level > 0 and not forwards[v]:
            continue
        for e in range(in_ptr[v], in_ptr[v + 1]):
            u = tail[e]
            more = bits & ~seen[u]
            if more != none:
                if fresh[u] == none:
                    soon[found] = u
                    found += 1
                fresh[u] |= more
    return found


@allocating
def _fill_words(arcs: ArcArrays, vertex: Ints, twin: Ints, hops: HopArray) -> None:
    """Search against the arcs from each goal in turn, for paths of more than 127 links."""
    in_ptr, tail, forwards = arcs.in_ptr, arcs.tail, arcs.forwards
    order = np.empty(len(forwards), np.int32)
    hops[:, :] = NO_PATH
    for row in range(len(vertex)):
        near, reached = hops[row], 0
        for goal in (vertex[row], twin[row]):
            if goal >= 0:
                near[goal], order[reached] = 0, goal
                reached += 1
        k = 0
        while k < reached:
            v = order[k]
            k += 1
            if near[v] > 0 and not forwards[v]:
                continue
            for e in range(in_ptr[v], in_ptr[v + 1]):
                u = tail[e]
                if near[u] == NO_PATH:
                    near[u], order[reached] = near[v] + 1, u
                    reached += 1


class Spread(NamedTuple):
    """Working memory of `trace` for a graph of v vertices, one per thread; made by `new_spread`."""

    amount: Floats
    """float64[v]: Bytes that leave each vertex; zero between calls."""
    paths: Floats
    """float64[v]: Number of shortest paths from each vertex of `order`."""
    order: Ints
    """int32[v]: Vertices on paths, farthest from the goal first."""
    first: Longs
    arc: Ints
    """int64[v + 1] and int32[arcs]: Arcs on paths out of each vertex of `order`."""
    known: Bools
    """bool[v]: False between calls."""
    level: Ints
    later: Ints
    """int32[levels] and int32[v]: Linked lists of vertices to start from, by hops; -1 between calls."""


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


@kernel
def trace(out_ptr: Longs, head: Ints, forwards: Bools, hops: HopArray, furthest: int, spread: Spread) -> int:
    """Find and count the shortest paths to a goal from all vertices in the lists of ``spread.level``.

    Args:
        hops (int8[v] or int16[v]): Links to the goal.
        furthest: Highest level with a list.

    Returns:
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


@kernel
def _count(head: Ints, hops: HopArray, count: int, spread: Spread) -> None:
    """Count the paths from each vertex in the list of `trace`."""
    order, first, arcs, paths = spread.order, spread.first, spread.arc, spread.paths
    for k in range(count - 1, -1, -1):
        v = order[k]
        total = 1.0 if hops[v] == 0 else 0.0
        for e in range(first[k], first[k + 1]):
            total += paths[head[arcs[e]]]
        paths[v] = total


@kernel
def carry(
    arcs: ArcArrays, hops: HopArray, demand_ptr: Longs, start: Ints, amount: Floats,
    spread: Spread, arc_load: Floats, length: Ints,
) -> None:  # fmt: skip
    """Divide demands evenly over all their shortest paths.

    Goal by goal, arcs on paths are listed once; then paths are counted backwards from the goal and amounts
    are carried forwards (Brandes, "A faster algorithm for betweenness centrality", 2001, with demands as
    start values), over the vertices on paths only.

    Args:
        hops (int8[n, v] or int16[n, v]): Links to each goal.
        demand_ptr (int64[n + 1]): Demands of each goal.
        start (int32[d]): Vertex where each starts.
        amount (float64[d]): Bytes.
        arc_load (float64[arcs]): Increased.
        length (int32[d]): Filled with the length of each demand's paths; -1 if there is none.
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
