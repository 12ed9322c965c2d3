"""Enumeration of all small connected groups of ranks, for bounds on bytes that groups keep or send."""

from __future__ import annotations

import numpy as np

from mapping.evaluation.kernels.nearest_flows import GuestArrays
from mapping.kernels.decorators import allocating
from registry.model import Floats


@allocating
def best_groups(guest: GuestArrays, size: int, price: Floats, lower: bool, limit: int, best: Floats) -> int:
    """Find the largest bytes within a connected group less the prices of its ranks, for each rank and size.

    Parameters
    ----------
    size : int
        Largest size, >= 2.
    price : float64[n]
        Price of each rank.
    lower : bool
        After each rank, lower its price to the least for which no group with it has more bytes than prices.
    limit : int
        Largest number of groups.
    best : float64[n, size + 1]
        Column `s`: over the groups of `s` ranks with this one. Only increased.

    Returns
    -------
    int
        Number of groups; above `limit`, the enumeration ended early.

    Notes
    -----
    Ranks join a group in the order in which they became its partners, and ranks that were passed over never
    join later: every connected group is enumerated once for each of its ranks.
    """
    n, groups = len(guest.ptr) - 1, 0
    gain, known = np.zeros(n), np.zeros(n, np.bool_)
    partners, member = np.empty(n, np.int32), np.empty(size + 1, np.int32)
    next_, end, value = np.empty(size + 1, np.int64), np.empty(size + 1, np.int64), np.zeros(size + 1)
    for first in range(n):
        known[first], member[1], count = True, first, 0
        for x in range(guest.ptr[first], guest.ptr[first + 1]):
            known[guest.head[x]], partners[count] = True, guest.head[x]
            gain[guest.head[x]] = guest.weight[guest.edge[x]]
            count += 1
        depth, next_[1], end[1], value[1] = 1, 0, count, -price[first]
        best[first, 1] = max(best[first, 1], value[1])
        while depth > 0:
            if depth == size - 1:
                groups += end[depth] - next_[depth]
                most = -np.inf
                for p in range(next_[depth], end[depth]):
                    most = max(most, gain[partners[p]] - price[partners[p]])
                best[first, size] = max(best[first, size], value[depth] + most)
                next_[depth] = end[depth]
            if next_[depth] == end[depth]:  # the last member leaves
                v = member[depth]
                for x in range(guest.ptr[v], guest.ptr[v + 1]):
                    gain[guest.head[x]] -= guest.weight[guest.edge[x]]
                depth -= 1
                if depth > 0:
                    for p in range(end[depth], end[depth + 1]):
                        known[partners[p]], gain[partners[p]] = False, 0.0
                continue
            v = partners[next_[depth]]
            next_[depth] += 1
            value[depth + 1] = value[depth] + gain[v] - price[v]
            count = end[depth]
            for x in range(guest.ptr[v], guest.ptr[v + 1]):
                u = guest.head[x]
                gain[u] += guest.weight[guest.edge[x]]
                if not known[u]:
                    known[u], partners[count] = True, u
                    count += 1
            depth += 1
            member[depth], next_[depth], end[depth] = v, next_[depth - 1], count
            best[first, depth] = max(best[first, depth], value[depth])
            groups += 1
            if groups > limit:
                return groups
        known[first], gain[first] = False, 0.0
        for x in range(guest.ptr[first], guest.ptr[first + 1]):
            known[guest.head[x]], gain[guest.head[x]] = False, 0.0
        if lower:
            price[first] = max(price[first] + best[first].max(), 0.0)
    return groups
