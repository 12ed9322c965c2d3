"""Enumeration of all small connected groups of ranks, for bounds on bytes that groups keep or send.

Ranks join a group in the order in which they became its partners, and ranks that were passed over never join
later: every connected group is enumerated once for each of its ranks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.cost.kernels.nearest_flows import GuestArrays
from mapping.kernels.decorators import allocating, kernel
from registry.model import Bools, Floats, Ints, Longs


class _Group(NamedTuple):
    """A connected group, and the partners that it may take in."""

    gain: Floats
    """float64[n]: Bytes between each rank and the members."""
    known: Bools
    """bool[n]: True for members and their partners."""
    partners: Ints
    """int32[n]: Partners of the members, in the order in which they became known."""
    member: Ints
    """int32[size + 1]: Members, in the order in which they joined, from index 1."""
    next: Longs
    end: Longs
    """int64[size + 1]: For the group of the first members: the next of `partners` that may join, and the
    number known."""
    value: Floats
    """float64[size + 1]: For the same: bytes within the group less prices."""


@allocating
def best_groups(guest: GuestArrays, size: int, price: Floats, lower: bool, limit: int, best: Floats) -> int:
    """Find the largest bytes within a connected group less the prices of its ranks, for each rank and size.

    Args:
        size: Largest size, >= 2.
        price (float64[n]): Price of each rank.
        lower: After each rank, lower its price to the least for which no group with it has more bytes than
            prices.
        limit: Largest number of groups.
        best (float64[n, size + 1]): Column `s`: over the groups of `s` ranks with this one. Only increased.

    Returns:
        Number of groups; above `limit`, the enumeration ended early.
    """
    n, groups = len(guest.ptr) - 1, 0
    group = _Group(
        np.zeros(n), np.zeros(n, np.bool_), np.empty(n, np.int32), np.empty(size + 1, np.int32),
        np.empty(size + 1, np.int64), np.zeros(size + 1, np.int64), np.zeros(size + 1),
    )  # fmt: skip
    next_, end, value = group.next, group.end, group.value
    for first in range(n):
        group.known[first] = True
        _join(guest, group, price, 1, first)
        next_[1], depth = 0, 1
        best[first, 1] = max(best[first, 1], value[1])
        while depth > 0:
            if depth == size - 1:
                groups += end[depth] - next_[depth]
                most = -np.inf
                for p in range(next_[depth], end[depth]):
                    most = max(most, group.gain[group.partners[p]] - price[group.partners[p]])
                best[first, size] = max(best[first, size], value[depth] + most)
            if depth == size - 1 or next_[depth] == end[depth]:
                _leave(guest, group, depth)
                depth -= 1
                continue
            next_[depth] += 1
            next_[depth + 1] = next_[depth]
            depth += 1
            _join(guest, group, price, depth, group.partners[next_[depth] - 1])
            best[first, depth] = max(best[first, depth], value[depth])
            groups += 1
            if groups > limit:
                return groups
        group.known[first], group.gain[first] = False, 0.0
        if lower:
            price[first] = max(price[first] + best[first].max(), 0.0)
    return groups


@kernel
def _join(guest: GuestArrays, group: _Group, price: Floats, depth: int, rank: int) -> None:
    """Let a rank join as the `depth`-th member, and its partners become known."""
    group.member[depth] = rank
    group.value[depth] = group.value[depth - 1] + group.gain[rank] - price[rank]
    count = group.end[depth - 1]
    for x in range(guest.ptr[rank], guest.ptr[rank + 1]):
        partner = guest.head[x]
        group.gain[partner] += guest.weight[guest.edge[x]]
        if not group.known[partner]:
            group.known[partner], group.partners[count] = True, partner
            count += 1
    group.end[depth] = count


@kernel
def _leave(guest: GuestArrays, group: _Group, depth: int) -> None:
    """Let the last member leave, and forget the partners that became known by it."""
    rank = group.member[depth]
    for x in range(guest.ptr[rank], guest.ptr[rank + 1]):
        group.gain[guest.head[x]] -= guest.weight[guest.edge[x]]
    for p in range(group.end[depth - 1], group.end[depth]):
        group.known[group.partners[p]], group.gain[group.partners[p]] = False, 0.0
