"""Shortest paths of many demands: path lengths, loads of arcs, and the fraction that crosses one arc.

Work is cut into pieces for threads. The pieces, and so the results to the last bit, do not depend on the
number of threads.
"""

from __future__ import annotations

import itertools

import numpy as np
from scipy.sparse import csr_array

from mapping.routing.kernels import paths as kernel
from mapping.routing.kernels.paths import AT_ONCE, ArcArrays, Goals, HopArray, fill_hops
from mapping.threads import each
from registry.errors import InvalidValue
from registry.model import Bools, Floats, Ints, Longs

GOALS_AT_ONCE = 256
"""Goals to which paths are counted at once."""
PIECES = 8
"""Largest number of pieces of demands; each has its own loads, which are added in order."""


def hops_to(arcs: ArcArrays, goals: Goals) -> HopArray:
    """Return the links from every vertex to each goal (int8[k, v] or int16[k, v]); `NO_PATH` for none."""
    rows = len(goals.vertex)
    dtype: type[np.int8 | np.int16]
    for dtype in (np.int8, np.int16):
        hops: HopArray = np.empty((rows, len(arcs.forwards)), dtype)

        def fill(first: int, hops: HopArray = hops) -> bool:
            some = slice(first, first + AT_ONCE)
            return fill_hops(arcs, goals.vertex[some], goals.twin[some], hops[some])

        if all(each(fill, range(0, rows, AT_ONCE))):
            break
    return hops


def spread(
    arcs: ArcArrays, goals: Goals, start: Ints, goal: Ints, amount: Floats, known: HopArray | None = None
) -> tuple[Floats, Ints]:
    """Divide demands evenly over all their shortest paths.

    Parameters
    ----------
    start : int32[d]
        Vertex where each demand starts.
    goal : int32[d]
        Index into `goals` of the place where it ends.
    amount : float64[d]
        Bytes.
    known : HopArray, optional
        Result of `hops_to` for these goals; by default the goals in use are searched from.

    Returns
    -------
    arc_load : float64[arcs]
    length : int32[d]
        Links of each demand's paths; -1 if there is none.

    Raises
    ------
    InvalidValue
        A pair has more paths than can be counted.
    """
    order = np.argsort(goal, kind="stable")
    present, first = np.unique(goal[order], return_index=True)
    first = np.append(first, len(goal)).astype(np.int64)
    start, amount = np.ascontiguousarray(start[order], np.int32), amount[order].astype(np.float64)
    length = np.empty(len(goal), np.int32)

    def carry(begin: int, end: int, load: Floats, buffer: kernel.Spread) -> None:
        rows = present[begin:end]
        some = Goals(goals.vertex[rows], goals.twin[rows])
        hops = hops_to(arcs, some) if known is None else known[rows]
        part = slice(first[begin], first[end])
        ptr: Longs = first[begin : end + 1] - first[begin]
        kernel.carry(arcs, hops, ptr, start[part], amount[part], buffer, load, length[part])

    def piece(batches: range) -> Floats:
        load, buffer = np.zeros(len(arcs.head)), kernel.new_spread(len(arcs.forwards), len(arcs.head))
        for begin in batches:
            carry(begin, min(begin + AT_ONCE, len(present)), load, buffer)
        return load

    arc_load = np.zeros(len(arcs.head))
    for load in each(piece, _cut(range(0, len(present), AT_ONCE))):
        arc_load += load
    if not bool(np.isfinite(arc_load).all()):
        raise InvalidValue("shortest-paths", "a pair has more paths than a 64-bit number counts (1e308)")
    back = np.empty(len(goal), np.int32)
    back[order] = length
    return arc_load, back


def _cut(batches: range) -> list[range]:
    """Return at most `PIECES` ranges of nearly equal length."""
    pieces = min(PIECES, len(batches))
    ends = [len(batches) * piece // pieces for piece in range(pieces + 1)] if pieces else [0]
    return [batches[a:b] for a, b in itertools.pairwise(ends)]


def fraction_over_arc(arcs: ArcArrays, arc: int, start: Ints, goals: Goals, goal: Ints) -> Floats:
    """Return the fraction (float64[d]) of all shortest paths from each start to its goal that uses an arc.

    The number of paths from s to g over the arc from u to v is the number of paths from s to u times the
    number from v to g, and 0 if that route is longer than the shortest.

    Parameters
    ----------
    arc : int
        Index into ``arcs.head``.
    start : int32[d]
        Vertices.
    goal : int32[d]
        Rows of `goals`.
    """
    tail = int(np.searchsorted(arcs.out_ptr, arc, side="right")) - 1
    head = int(arcs.head[arc])
    graph = _adjacency(arcs)
    to_tail = hops_to(arcs, Goals(np.array([tail], np.int32), np.array([-1], np.int32)))
    paths_to_tail = _count_paths(graph, arcs.forwards, to_tail)[0]
    near = to_tail[0].astype(np.int64)
    may = (near[start] >= 0) & (arcs.forwards[tail] | (start == tail))
    fraction = np.zeros(len(start))
    wanted = np.unique(goal[may])
    for begin in range(0, len(wanted), GOALS_AT_ONCE):
        rows = wanted[begin : begin + GOALS_AT_ONCE]
        far = hops_to(arcs, Goals(goals.vertex[rows], goals.twin[rows]))
        some = np.flatnonzero(may & (goal >= rows[0]) & (goal <= rows[-1]))
        row, tails = np.searchsorted(rows, goal[some]), start[some]
        onward = far[row, head].astype(np.int64)
        on = (onward >= 0) & (near[tails] + 1 + onward == far[row, tails])
        on &= arcs.forwards[head] | (onward == 0)
        some, row, tails = some[on], row[on], tails[on]
        if len(some):
            used, row = np.unique(row, return_inverse=True)
            counts = _count_paths(graph, arcs.forwards, far[used])
            fraction[some] = paths_to_tail[tails] * counts[row, head] / counts[row, tails]
    return fraction


def _adjacency(arcs: ArcArrays) -> csr_array:
    """Return the arcs as a sparse matrix [v, v] of ones, by tail and head."""
    vertices = len(arcs.forwards)
    return csr_array((np.ones(len(arcs.head)), arcs.head, arcs.out_ptr), shape=(vertices, vertices))


def _count_paths(graph: csr_array, forwards: Bools, hops: HopArray) -> Floats:
    """Return the number of shortest paths from every vertex to each goal (float64[k, v]), level by level."""
    counts: Floats = (hops == 0).astype(np.float64)
    for level in range(1, int(hops.max(initial=0)) + 1):
        through = (hops == level - 1) & (forwards | (level == 1))
        onward = (graph @ np.where(through, counts, 0.0).T).T
        counts = np.where(hops == level, onward, counts)
    return counts
