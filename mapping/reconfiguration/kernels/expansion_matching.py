"""Greedy maximal matching of the vertices of a graph."""

from __future__ import annotations

import numba as nb

from registry.model import Ints, Longs


@nb.njit(cache=True, nogil=True)
def match_in_order(order: Longs, source: Ints, target: Ints, most: int, mate: Ints) -> int:
    """Match the ends of each edge, in order, where both are still free.

    Parameters
    ----------
    order : int64[e]
        Edges.
    source, target : int32[e]
        Never equal.
    most : int
        Pairs after which no more are made.
    mate : int32[v]
        Each vertex itself; filled with its partner where it has one.

    Returns
    -------
    int
        Pairs made.
    """
    made = 0
    for e in order:
        if made == most:
            break
        u, v = source[e], target[e]
        if mate[u] == u and mate[v] == v:
            mate[u], mate[v] = v, u
            made += 1
    return made
