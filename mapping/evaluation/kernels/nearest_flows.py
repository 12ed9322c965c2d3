"""Flows in the guest graph from ranks to the ranks nearest to them, for bounds on what must be cut.

If every rank sends to its `k` nearest and no edge carries more than its bytes, then whatever keeps few of
those `k` near it cuts the rest (Leighton and Rao, "Multicommodity max-flow min-cut theorems", 1999; spreading
metrics: Even, Naor, Rao and Schieber, "Divide-and-conquer approximation algorithms via spreading
metrics", 2000). Lengths of edges grow with their load, so that later ranks go around full ones.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from mapping.kernels.heap import drop_first, put_in
from registry.model import Bools, Floats, Ints, Longs

JITTER = 0.2 / 255
"""Lengths are up to a fifth more, at random."""


class GuestArrays(NamedTuple):
    """Who talks to whom, both directions of a pair as one edge.

    Attributes
    ----------
    ptr : int64[n + 1], head : int32[2 e], edge : int32[2 e]
        Partners of each rank, and the edge to each.
    weight : float64[e]
        Bytes in both directions; > 0.
    """

    ptr: Longs
    head: Ints
    edge: Ints
    weight: Floats


@njit(cache=True, error_model="numpy", nogil=True)
def send_to_nearest(
    guest: GuestArrays,
    sources: Ints,
    worth: Floats,
    steepness: float,
    load: Floats,
) -> float:
    """Let ranks send to the nearest others, each to as many as brings most for the length of the ways.

    Each sends as much as fills, alone, the fullest edge on its ways.

    Parameters
    ----------
    sources : int32[t]
        Ranks that send, in order.
    worth : float64[k + 1]
        What a flow of 1 to each of the first `k` others is worth; not falling; the farthest that is
        looked at is the last.
    steepness : float
        An edge's length is ``exp(steepness * load / weight) / weight``.
    load : float64[e]
        Added to.

    Returns
    -------
    float
        What all flows are worth.
    """
    ptr, head, edge, weight = guest.ptr, guest.head, guest.edge, guest.weight
    n, most, total = len(ptr) - 1, len(worth) - 1, 0.0
    length = np.empty(len(weight))
    for e in range(len(weight)):
        length[e] = math.exp(min(steepness * load[e] / weight[e], 500.0)) / weight[e]
    far, done = np.full(n, np.inf), np.zeros(n, np.bool_)
    before, by, order = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    heap_key, heap = np.empty(len(head) + 1), np.empty(len(head) + 1, np.int32)
    through, touched = np.zeros(n), np.empty(n, np.int32)
    for source in sources:
        found, reached = _nearest(
            ptr, head, edge, length, source, most, far, done, before, by, order, heap_key, heap, touched
        )
        count, best, summed = 0, np.inf, 0.0
        for k in range(1, found):
            summed += far[order[k]]
            if worth[k] > 0.0 and summed < best * worth[k]:
                best, count = summed / worth[k], k
        if count > 0:
            for k in range(count, 0, -1):
                v = order[k]
                through[v] += 1.0
                through[before[v]] += through[v]
            fullest = 0.0
            for k in range(1, count + 1):
                fullest = max(fullest, through[order[k]] / weight[by[order[k]]])
            unit = 1.0 / fullest
            total += unit * worth[count]
            for k in range(1, count + 1):
                e = by[order[k]]
                load[e] += unit * through[order[k]]
                length[e] = math.exp(min(steepness * load[e] / weight[e], 500.0)) / weight[e]
                through[order[k]] = 0.0
            through[source] = 0.0
        for at in range(reached):
            far[touched[at]], done[touched[at]] = np.inf, False
    return total


@njit(cache=True, error_model="numpy")
def _nearest(
    ptr: Longs,
    head: Ints,
    edge: Ints,
    length: Floats,
    source: int,
    most: int,
    far: Floats,
    done: Bools,
    before: Ints,
    by: Ints,
    order: Ints,
    heap_key: Floats,
    heap: Ints,
    touched: Ints,
) -> tuple[int, int]:
    """The nearest vertices in `order`, the source first; their number and how many were seen (Dijkstra)."""
    far[source], touched[0], heap_key[0], heap[0] = 0.0, source, 0.0, source
    size, found, seen = 1, 0, 1
    while size > 0 and found <= most:
        v, key = heap[0], heap_key[0]
        size -= 1
        drop_first(heap_key, heap, size)
        if done[v]:
            continue
        done[v] = True
        order[found] = v
        found += 1
        for at in range(ptr[v], ptr[v + 1]):
            u = head[at]
            if far[u] <= key:
                continue
            e = edge[at]
            # A little at random, other for every source: ties would lead all flows the same way.
            spice = ((e * 2654435761 + source * 40503) >> 7) & 255
            reach = key + length[e] * (1.0 + spice * JITTER)
            if reach < far[u]:
                if far[u] == np.inf:
                    touched[seen] = u
                    seen += 1
                far[u], before[u], by[u] = reach, v, e
                put_in(heap_key, heap, size, reach, u)
                size += 1
    return found, seen
