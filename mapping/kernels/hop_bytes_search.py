"""Annealed pair exchange on hop-bytes: plain arrays in, plain arrays changed in place.

Slots, not hosts, are exchanged: slot ``s`` belongs to host ``slot_host[s]``, which makes several ranks
a host, unequal slots and free slots one case.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from mapping.kernels.random_numbers import State, below, exponential
from registry.model import Floats, Int8s, Ints, Longs

NEAREST = 67
"""Of 100 proposals, those to a host of the partner's nearest distance class; then those to the second."""
SECOND = 87


class Guest(NamedTuple):
    """Who talks to whom, by rank; an entry a partner and direction.

    Attributes
    ----------
    indptr : int64[ranks + 1]
    partner : int32[e]
    bytes : float64[e]
    table : uint8[e]
        0 sent, 1 received: then charged by the transposed distances, where there are any.
    active : int32[a]
        Ranks that have a partner.
    """

    indptr: Longs
    partner: Ints
    bytes: Floats
    table: Int8s
    active: Ints


class Hops(NamedTuple):
    """Mean hops between hosts in one byte each: searches live on this table's staying in cache.

    Attributes
    ----------
    code : uint8[1 or 2, h, h]
        Index into `value`; a second time transposed where the two directions differ.
    value : float64[256]
    """

    code: Int8s
    value: Floats


class Near(NamedTuple):
    """Hosts close to each host, as two runs of one list: nearest class, then second class.

    Attributes
    ----------
    start, middle : int64[h], int64[h]
        The nearest class of host ``i`` is ``host[start[i]:middle[i]]``.
    end : int64[h]
        Its second class is ``host[middle[i]:end[i]]``.
    host : int32[...]
    """

    start: Longs
    middle: Longs
    end: Longs
    host: Ints


class Seats(NamedTuple):
    """Who sits where; changed in place.

    Attributes
    ----------
    slot_host : int32[s]
        Host of each slot, ascending; not changed.
    first_slot : int64[h + 1]
        First slot of each host; not changed.
    rank_of_slot : int32[s]
        -1 free.
    slot_of_rank : int32[ranks]
    host_of_rank : int32[ranks]
    """

    slot_host: Ints
    first_slot: Longs
    rank_of_slot: Ints
    slot_of_rank: Ints
    host_of_rank: Ints


@nb.njit(cache=True)
def near_hosts(hops: Hops, own: bool, limit: int) -> Near:
    """The two nearest distance classes of each host, each cut to `limit` hosts.

    Parameters
    ----------
    own : bool
        Whether the host itself counts (where it takes several ranks).
    limit : int
        A class that has more is cut to the hosts that follow ``i`` cyclically.
    """
    h = hops.code.shape[1]
    start, middle, end = np.zeros(h, np.int64), np.zeros(h, np.int64), np.zeros(h, np.int64)
    host = np.empty(2 * h * min(limit, h), np.int32)
    filled = 0
    for i in range(h):
        row = hops.value[hops.code[0, i]]
        first, second = np.inf, np.inf
        for j in range(h):
            if j != i or own:
                d = row[j]
                if d < first:
                    first, second = d, first
                elif first < d < second:
                    second = d
        start[i] = filled
        for j in range(i, i + h):
            if filled < start[i] + limit and row[j % h] == first and (own or j != i):
                host[filled] = j % h
                filled += 1
        middle[i] = filled
        for j in range(i, i + h):
            if filled < middle[i] + limit and row[j % h] == second and j != i:
                host[filled] = j % h
                filled += 1
        end[i] = filled
    return Near(start, middle, end, host[:filled].copy())


@nb.njit(inline="always")
def propose_host(state: State, near: Near, partner_host: int, hosts: int) -> int:
    """A host for a rank whose partner sits on `partner_host`: mostly a close one."""
    dice = below(state, 100)
    first, last = near.start[partner_host], near.middle[partner_host]
    if dice >= NEAREST:
        first, last = last, near.end[partner_host]
    if dice >= SECOND or first == last:
        return below(state, hosts)
    return int(near.host[first + below(state, last - first)])


@nb.njit(inline="always")
def sit(seats: Seats, rank: int, slot: int) -> None:
    """Exchange a rank with whoever holds a slot (nobody: the rank moves there)."""
    left, other = seats.slot_of_rank[rank], seats.rank_of_slot[slot]
    seats.rank_of_slot[slot], seats.slot_of_rank[rank] = rank, slot
    seats.host_of_rank[rank] = seats.slot_host[slot]
    seats.rank_of_slot[left] = other
    if other >= 0:
        seats.slot_of_rank[other] = left
        seats.host_of_rank[other] = seats.slot_host[left]


@nb.njit(inline="always")
def exchange_gain(
    guest: Guest, hops: Hops, seats: Seats, rank: int, other: int, here: int, there: int
) -> float:
    """Change of hop-bytes if `rank` goes from host `here` to `there`, and `other` (-1: nobody) back."""
    # Arrays are taken out of their tuples first: inside the loops that would count references.
    indptr, partners, sizes, tables = guest.indptr, guest.partner, guest.bytes, guest.table
    code, value, host_of_rank = hops.code, hops.value, seats.host_of_rank
    last, change = code.shape[0] - 1, 0.0
    for e in range(indptr[rank], indptr[rank + 1]):
        table = min(int(tables[e]), last)
        at = int(host_of_rank[partners[e]])
        then = here if partners[e] == other else at
        change += sizes[e] * (value[code[table, there, then]] - value[code[table, here, at]])
    if other >= 0:
        for e in range(indptr[other], indptr[other + 1]):
            if partners[e] != rank:
                table = min(int(tables[e]), last)
                at = int(host_of_rank[partners[e]])
                change += sizes[e] * (value[code[table, here, at]] - value[code[table, there, at]])
    return change


@nb.njit(cache=True)
def exchange_pairs(
    proposals: int,
    temperature: float,
    guest: Guest,
    hops: Hops,
    near: Near,
    seats: Seats,
    state: State,
) -> float:
    """Make so many proposals and return the change of hop-bytes, in bytes x hops.

    A proposal takes a rank, one of its partners and a host near that partner, and exchanges the rank
    with a slot there. It is kept if it loses less than ``temperature * Exp(1)``.
    """
    hosts = hops.code.shape[1]
    total = 0.0
    for _ in range(proposals):
        rank = guest.active[below(state, len(guest.active))]
        first = guest.indptr[rank]
        partner = guest.partner[first + below(state, guest.indptr[rank + 1] - first)]
        here = int(seats.host_of_rank[rank])
        there = propose_host(state, near, seats.host_of_rank[partner], hosts)
        if there == here:
            continue
        slot = seats.first_slot[there] + below(state, seats.first_slot[there + 1] - seats.first_slot[there])
        other = int(seats.rank_of_slot[slot])
        change = exchange_gain(guest, hops, seats, rank, other, here, there)
        if change <= 0.0 or (temperature > 0.0 and change < temperature * exponential(state)):
            sit(seats, rank, slot)
            total += change
    return total
