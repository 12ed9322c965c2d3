"""Flows in the guest graph from ranks to the ranks nearest to them, for bounds on bytes that must be cut.

If every rank sends to its `k` nearest and no edge carries more than its bytes, then any group that holds few
of those `k` cuts the rest (Leighton and Rao, "Multicommodity max-flow min-cut theorems", 1999; spreading
metrics: Even, Naor, Rao and Schieber, "Divide-and-conquer approximation algorithms via spreading metrics",
2000). Lengths of edges grow with their load, so that later ranks avoid full ones.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from mapping.kernels.decorators import allocating, kernel
from mapping.kernels.heap import drop_first, put_in
from registry.model import Bools, Floats, Ints, Longs

JITTER = 0.2 / 255
"""Lengths are increased by up to a fifth, at random."""


class GuestArrays(NamedTuple):
    """Pairs of ranks that exchange bytes, both directions of a pair as one edge."""

    ptr: Longs
    head: Ints
    edge: Ints
    """int64[n + 1] and int32[2 e] and int32[2 e]: Partners of each rank, and the edge to each."""
    weight: Floats
    """float64[e]: Bytes in both directions; > 0."""


class _Search(NamedTuple):
    """Working memory of `_nearest`: distances, shortest-path tree, order of vertices, and a heap."""

    far: Floats
    done: Bools
    before: Ints
    by: Ints
    order: Ints
    heap_key: Floats
    heap: Ints
    touched: Ints


@allocating
def send_to_nearest(
    guest: GuestArrays, sources: Ints, worth: Floats, steepness: float, load: Floats, sent: Floats
) -> float:
    """Let ranks send to their nearest others, each to the number with the most worth per length of paths.

    Each sends the amount that fills, without other flows, the fullest edge on its paths.

    Args:
        sources (int32[t]): Ranks that send, in order.
        worth (float64[k + 1]): Worth of a flow of 1 to each of the first `k` others; not falling. The last
            entry is for the farthest rank that is searched.
        steepness: An edge's length is ``exp(steepness * load / weight) / weight``.
        load (float64[e]): Increased.
        sent (float64[n]): Increased by what a rank sends to each of its nearest.

    Returns:
        Total worth of the flows.
    """
    weight = guest.weight
    n, most, total = len(guest.ptr) - 1, len(worth) - 1, 0.0
    length = np.empty(len(weight))
    for e in range(len(weight)):
        length[e] = math.exp(min(steepness * load[e] / weight[e], 500.0)) / weight[e]
    entries = len(guest.head) + 1
    search = _Search(
        np.full(n, np.inf), np.zeros(n, np.bool_), np.empty(n, np.int32), np.empty(n, np.int32),
        np.empty(n, np.int32), np.empty(entries), np.empty(entries, np.int32), np.empty(n, np.int32),
    )  # fmt: skip
    far, done, order, touched = search.far, search.done, search.order, search.touched
    through = np.zeros(n)
    for source in sources:
        found, reached = _nearest(guest, length, source, most, search)
        count, best, summed = 0, np.inf, 0.0
        for k in range(1, found):
            summed += far[order[k]]
            if worth[k] > 0.0 and summed < best * worth[k]:
                best, count = summed / worth[k], k
        if count > 0:
            unit = _send(search, count, weight, through, load)
            total += unit * worth[count]
            sent[source] += unit
            for k in range(1, count + 1):
                e = search.by[order[k]]
                length[e] = math.exp(min(steepness * load[e] / weight[e], 500.0)) / weight[e]
            through[source] = 0.0
        for k in range(reached):
            far[touched[k]], done[touched[k]] = np.inf, False
    return total


@kernel
def _send(search: _Search, count: int, weight: Floats, through: Floats, load: Floats) -> float:
    """Add equal flows to the `count` nearest ranks to the loads; return the size of one."""
    before, by, order = search.before, search.by, search.order
    for k in range(count, 0, -1):
        v = order[k]
        through[v] += 1.0
        through[before[v]] += through[v]
    fullest = 0.0
    for k in range(1, count + 1):
        fullest = max(fullest, through[order[k]] / weight[by[order[k]]])
    unit = 1.0 / fullest
    for k in range(1, count + 1):
        load[by[order[k]]] += unit * through[order[k]]
        through[order[k]] = 0.0
    return unit


@kernel
def _nearest(guest: GuestArrays, length: Floats, source: int, most: int, search: _Search) -> tuple[int, int]:
    """List the nearest vertices in `order` (Dijkstra), the source first; return how many, and all reached."""
    ptr, head, edge = guest.ptr, guest.head, guest.edge
    far, done, before, by = search.far, search.done, search.before, search.by
    order, heap_key, heap, touched = search.order, search.heap_key, search.heap, search.touched
    far[source], touched[0], heap_key[0], heap[0] = 0.0, source, 0.0, source
    size, found, reached = 1, 0, 1
    while size > 0 and found <= most:
        v, key = heap[0], heap_key[0]
        size -= 1
        drop_first(heap_key, heap, size)
        if done[v]:
            continue
        done[v] = True
        order[found] = v
        found += 1
        for x in range(ptr[v], ptr[v + 1]):
            u = head[x]
            if far[u] <= key:
                continue
            e = edge[x]
            # A little random, different for every source: ties would send all flows the same way.
            jitter = ((e * 2654435761 + source * 40503) >> 7) & 255
            new = key + length[e] * (1.0 + jitter * JITTER)
            if new < far[u]:
                if far[u] == np.inf:
                    touched[reached] = u
                    reached += 1
                far[u], before[u], by[u] = new, v, e
                put_in(heap_key, heap, size, new, u)
                size += 1
    return found, reached
