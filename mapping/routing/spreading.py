"""Searches and loads of shortest paths, cut into pieces that threads work on side by side.

Pieces are the same whatever the number of threads, and so are the results, to the last bit.
"""

from __future__ import annotations

import itertools

import numpy as np

from mapping.routing.kernels import paths as kernel
from mapping.routing.kernels.hop_search import AT_ONCE, fill_hops
from mapping.routing.kernels.paths import ArcArrays, Goals, HopArray
from mapping.threads import each
from registry.errors import InvalidValue
from registry.model import Floats, Ints, Longs

PIECES = 8
"""Most pieces that demands are cut into: each has loads of its own, which are summed in order."""


def hops_to(arcs: ArcArrays, goals: Goals) -> HopArray:
    """int8[k, v] or int16[k, v]: links from every vertex to each goal; `NO_PATH` for none."""
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
    """Spread demands evenly over all their shortest paths.

    Parameters
    ----------
    start : int32[d]
        Vertex where each demand starts.
    goal : int32[d]
        Index into `goals` of the place where it ends.
    amount : float64[d]
        Bytes.
    known : HopArray, optional
        What `hops_to` gave for these goals; otherwise searches are made for the goals that are asked for.

    Returns
    -------
    arc_load : float64[arcs]
    length : int32[d]
        Links of each demand's paths; -1 where there is none.

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

    def carry(begin: int, end: int, load: Floats, room: kernel.Spread) -> None:
        rows = present[begin:end]
        some = Goals(goals.vertex[rows], goals.twin[rows])
        hops = hops_to(arcs, some) if known is None else known[rows]
        part = slice(first[begin], first[end])
        ptr: Longs = first[begin : end + 1] - first[begin]
        kernel.carry(arcs, hops, ptr, start[part], amount[part], room, load, length[part])

    def piece(batches: range) -> Floats:
        load, room = np.zeros(len(arcs.head)), kernel.new_spread(len(arcs.forwards), len(arcs.head))
        for begin in batches:
            carry(begin, min(begin + AT_ONCE, len(present)), load, room)
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
    """At most `PIECES` runs of nearly equal length."""
    pieces = min(PIECES, len(batches))
    ends = [len(batches) * piece // pieces for piece in range(pieces + 1)] if pieces else [0]
    return [batches[a:b] for a, b in itertools.pairwise(ends)]
