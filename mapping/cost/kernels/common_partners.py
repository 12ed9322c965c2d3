"""Pairs of ranks with common partners, and the least distances of that many common partners to two hosts.

A set here is an edge between two ranks together with some ranks that both exchange bytes with: 2 m + 1 edges
for m common partners.
"""

from __future__ import annotations

import numpy as np

from mapping.cost.kernels.nearest_flows import GuestArrays
from mapping.kernels.decorators import allocating, kernel
from registry.model import Floats, Ints, Longs


@allocating
def least_of_sets(distance: Floats, nearest: Floats, least: Floats) -> None:
    """Lower `least` to the least sum of distances of a set on any hosts.

    Args:
        distance (float64[h, h]): Symmetric.
        nearest (float64[h, m]): Cumulative sums of the distances from each host to its nearest others,
            rising.
        least (float64[m + 1]): By number of common partners; ``inf`` or any value that is reached.
    """
    hosts, most = len(distance), len(least) - 1
    few = np.empty(most)
    for i in range(hosts):
        for j in range(i):
            apart, useful = distance[i, j], False
            for m in range(1, most + 1):
                useful |= apart + nearest[i, m - 1] + nearest[j, m - 1] < least[m]
            if not useful:
                continue
            few[:] = np.inf
            for x in range(hosts):
                both = distance[i, x] + distance[j, x]
                if both < few[most - 1] and x not in (i, j):
                    k = most - 1
                    while k > 0 and few[k - 1] > both:
                        few[k] = few[k - 1]
                        k -= 1
                    few[k] = both
            total = apart
            for m in range(most):
                total += few[m]
                least[m + 1] = min(least[m + 1], total)


@allocating
def list_sets(guest: GuestArrays, most: int, ptr: Longs, edges: Ints) -> tuple[int, int]:
    """List all sets of 1 to `most` common partners, those with the heaviest edges first.

    Args:
        ptr (int64[sets + 1]), edges: Filled; if `edges` is empty, sets are only counted.

    Returns:
        Number of sets, and of edges in them.
    """
    n, weight = len(guest.ptr) - 1, guest.weight
    mine, mark = np.empty(n, np.int32), np.full(n, -1, np.int32)
    sets, filled = 0, 0
    for u in range(n):
        for x in range(guest.ptr[u], guest.ptr[u + 1]):
            mark[guest.head[x]], mine[guest.head[x]] = u, guest.edge[x]
        for x in range(guest.ptr[u], guest.ptr[u + 1]):
            v = guest.head[x]
            if v <= u:
                continue
            first, last = guest.ptr[v], guest.ptr[v + 1]
            lighter = np.zeros(last - first)
            for y in range(first, last):
                if mark[guest.head[y]] == u:
                    lighter[y - first] = -min(weight[mine[guest.head[y]]], weight[guest.edge[y]])
            common = 0
            for w in lighter:
                common += w < 0.0
            order = np.argsort(lighter, kind="mergesort")
            for m in range(1, min(common, most) + 1):
                if len(edges):
                    edges[filled] = guest.edge[x]
                    for k in range(m):
                        y = first + order[k]
                        edges[filled + 1 + 2 * k] = mine[guest.head[y]]
                        edges[filled + 2 + 2 * k] = guest.edge[y]
                    ptr[sets + 1] = filled + 2 * m + 1
                filled += 2 * m + 1
                sets += 1
    return sets, filled


@allocating
def ascend(
    guest: GuestArrays,
    ptr: Longs,
    edges: Ints,
    least: Floats,
    nearest: Floats,
    rounds: int,
    step: float,
) -> float:
    """Return the best bound that sets and stars prove together, over some rounds of ascent.

    Every set takes an equal part of the bytes of each of its edges, which costs at least `least`; the
    remaining bytes of an edge are divided between the stars of its two ranks, whose heaviest partners are
    nearest. Sets that cost more than their edges cost in the stars take more, the others less.

    Args:
        ptr, edges: From `list_sets`.
        least (float64[sets]): Least cost of each set.
        nearest (float64[d]): Least distance of a rank's first, second, ... nearest partner; d >= partners of
            any rank.
    """
    weight = guest.weight
    part, taken = np.zeros(len(least)), np.zeros(len(weight))
    share = np.full(len(weight), 0.5)
    by_low, by_high = np.zeros(len(weight)), np.zeros(len(weight))
    best, set_cost = 0.0, 0.0
    for round_ in range(rounds):
        best = max(best, set_cost + _stars(guest, taken, share, nearest, by_low, by_high))
        slower = step / (1.0 + step * round_)
        for s in range(len(least)):
            cost, lightest = 0.0, np.inf
            for k in range(ptr[s], ptr[s + 1]):
                e = edges[k]
                cost += share[e] * by_low[e] + (1.0 - share[e]) * by_high[e]
                lightest = min(lightest, weight[e])
            part[s] = max(part[s] + slower * lightest * (least[s] - cost), 0.0)
        for e in range(len(weight)):
            share[e] = min(max(share[e] + slower * (by_low[e] - by_high[e]), 0.0), 1.0)
        set_cost = _fitted(ptr, edges, least, weight, part, taken)
    return best


@allocating
def _stars(
    guest: GuestArrays, taken: Floats, share: Floats, nearest: Floats, by_low: Floats, by_high: Floats
) -> float:
    """Return the least cost of all remaining bytes; write the distance of each edge in its two stars."""
    total = 0.0
    for u in range(len(guest.ptr) - 1):
        first, last = guest.ptr[u], guest.ptr[u + 1]
        rest = np.empty(last - first)
        for x in range(first, last):
            e = guest.edge[x]
            mine = share[e] if u < guest.head[x] else 1.0 - share[e]
            rest[x - first] = -mine * max(guest.weight[e] - taken[e], 0.0)
        order = np.argsort(rest, kind="mergesort")
        for k in range(last - first):
            total -= nearest[k] * rest[order[k]]
            x = first + order[k]
            if u < guest.head[x]:
                by_low[guest.edge[x]] = nearest[k]
            else:
                by_high[guest.edge[x]] = nearest[k]
    return total


@kernel
def _fitted(ptr: Longs, edges: Ints, least: Floats, weight: Floats, part: Floats, taken: Floats) -> float:
    """Lower the parts until no edge gives more bytes than it has; return the least cost of the sets."""
    _sum_parts(ptr, edges, part, taken)
    for s in range(len(part)):
        if part[s] > 0.0:
            fits = 1.0
            for k in range(ptr[s], ptr[s + 1]):
                fits = min(fits, weight[edges[k]] / taken[edges[k]])
            part[s] *= fits
    _sum_parts(ptr, edges, part, taken)
    total = 0.0
    for s in range(len(part)):
        total += part[s] * least[s]
    return total


@kernel
def _sum_parts(ptr: Longs, edges: Ints, part: Floats, taken: Floats) -> None:
    """Write the bytes that the sets take of each edge."""
    taken[:] = 0.0
    for s in range(len(part)):
        if part[s] > 0.0:
            for k in range(ptr[s], ptr[s + 1]):
                taken[edges[k]] += part[s]
