"""Lengths of the shortest paths of a graph, for many goals at once."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mapping.routing.kernels.paths import NO_PATH, ArcArrays, HopArray
from registry.model import Bools, Ints, Longs

Words = NDArray[np.uint64]
AT_ONCE = 64
"""Goals of one search, one per bit of a word."""
_FURTHEST = 127
_BITS = np.array([[byte >> bit & 1 for bit in range(8)] for byte in range(256)], np.uint8)
_BYTES = np.ascontiguousarray(_BITS).view("<u8").reshape(-1).astype(np.uint64)
"""uint64[256]: each bit of a byte as a byte of a word."""


def fill_hops(arcs: ArcArrays, vertex: Ints, twin: Ints, hops: HopArray) -> bool:
    """Fill the lengths of the shortest paths from every vertex to each of at most `AT_ONCE` goals.

    Parameters
    ----------
    vertex, twin : int32[n]
        As in `Goals`.
    hops : int8[n, v] or int16[n, v]
        Filled.

    Returns
    -------
    bool
        False if `hops` has bytes and a path is too long for a byte.
    """
    if hops.dtype == np.int8:
        return bool(_fill_bytes(arcs, vertex, twin, _BYTES, hops))
    _fill_words(arcs, vertex, twin, hops)
    return True


@njit(cache=True, nogil=True)
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
        found = _advance(arcs.in_ptr, arcs.tail, arcs.forwards, level, now[:count], front, seen, fresh, soon)
        now, soon, count = soon, now, found
        front, fresh = fresh, front
        level += 1
    by_vertex = levels.view(np.int8)
    for begin in range(0, vertices, AT_ONCE):
        for row in range(len(vertex)):
            for v in range(begin, min(begin + AT_ONCE, vertices)):
                hops[row, v] = by_vertex[v, row]
    return True


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _advance(
    in_ptr: Longs,
    tail: Ints,
    forwards: Bools,
    level: int,
    now: Ints,
    front: Words,
    seen: Words,
    fresh: Words,
    soon: Ints,
) -> int:
    """Go one link back from the vertices reached now; return the number of vertices reached next.

    Clears `front` of the vertices reached now.
    """
    none, found = np.uint64(0), 0
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


@njit(cache=True, nogil=True)
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
