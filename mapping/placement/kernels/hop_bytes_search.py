"""Arrays that placement searches share: guest graph, distances, slot assignment, and the exchange of ranks.

Slots, not hosts, are exchanged: slot ``s`` belongs to host ``slot_host[s]``, so that several ranks per
host, unequal slots and free slots are one case. Hosts that are alike as to distance form a group, so that
the table of distances stays in cache: 20,000 hosts on 1,000 leaf switches are 1,000 groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.kernels.decorators import allocating, inner
from mapping.kernels.random_numbers import State, below
from registry.model import Bools, Floats, Int8s, Ints, Longs

DICE = 128
"""Number of proposals that `Near.shares` divides."""


class Guest(NamedTuple):
    """Partners of each rank; one entry per partner and direction."""

    indptr: Longs
    """int64[ranks + 1]."""
    partner: Ints
    """int32[e]."""
    bytes: Floats
    """float64[e]."""
    table: Int8s
    """uint8[e]: 0 sent, 1 received; received bytes use the transposed distances if the two directions differ.
    """
    active: Ints
    """int32[a]: Ranks that have a partner."""


class Hops(NamedTuple):
    """Distances between hosts, one byte per pair of host groups, so that the table stays in cache."""

    group: Ints
    """int32[h]: Group of each host, 0 to g - 1."""
    code: Int8s
    """uint8[1 or 2, g, g]: Index into `value` for two different hosts of these groups; a second, transposed
    table if the two directions differ."""
    value: Floats
    """float64[256]: ``value[0]`` is 0: the distance of a host from itself."""


class Near(NamedTuple):
    """Slots near each host: on host groups at the nearest distance, then at the second nearest."""

    host_group: Ints
    """int32[h]."""
    slot_host: Ints
    """int32[s]."""
    first_slot: Longs
    """int64[h + 1]: The slots of host ``i`` are ``first_slot[i]`` to ``first_slot[i + 1] - 1``."""
    start: Longs
    middle: Longs
    end: Longs
    """int64[g]: Groups nearest to group ``a`` are ``group[start[a]:middle[a]]``, then
    ``group[middle[a]:end[a]]``."""
    group: Ints
    """int32[...]."""
    first: Longs
    """int64[g + 1]: The slots of group ``a`` are ``slot[first[a]:first[a + 1]]``."""
    slot: Ints
    """int32[s]."""
    shares: Longs
    """int64[3]: Of `DICE` proposals, those below the first number go to the host itself (if hosts take
    several ranks), then to the nearest groups, then to the second nearest; the rest anywhere."""


class SlotAssignment(NamedTuple):
    """Assignment of ranks to slots; changed in place."""

    slot_host: Ints
    """int32[s]: Host of each slot, ascending; not changed."""
    first_slot: Longs
    """int64[h + 1]: First slot of each host; not changed."""
    rank_of_slot: Ints
    """int32[s]: -1 if the slot is free."""
    slot_of_rank: Ints
    """int32[ranks]."""
    host_of_rank: Ints
    """int32[ranks]."""
    fixed: Bools
    """bool[ranks]: Ranks that must not move; not changed."""


class SearchArrays(NamedTuple):
    """Arrays of a search: guest graph, distances, near slots, and the assignment that it changes."""

    guest: Guest
    hops: Hops
    near: Near
    assignment: SlotAssignment


@allocating
def near_groups(code: Int8s, value: Floats, size: Longs, limit: int) -> tuple[Longs, Longs, Longs, Ints]:
    """Return the host groups at the two nearest distances of each group, at most `limit` each.

    Args:
        code (uint8[g, g]):
        value (float64[256]):
        size (int64[g]): Hosts of each group: a single host is not near itself.
        limit: A longer list is cut to the groups that follow ``a`` cyclically.

    Returns:
        As in `Near`.
    """
    g = len(code)
    start, middle, end = np.zeros(g, np.int64), np.zeros(g, np.int64), np.zeros(g, np.int64)
    group = np.empty(2 * g * min(limit, g), np.int32)
    filled = 0
    for a in range(g):
        row = value[code[a]]
        nearest, second = np.inf, np.inf
        for b in range(g):
            if b != a or size[a] > 1:
                d = row[b]
                if d < nearest:
                    nearest, second = d, nearest
                elif nearest < d < second:
                    second = d
        start[a] = filled
        for b in range(a, a + g):
            if filled < start[a] + limit and row[b % g] == nearest and (b != a or size[a] > 1):
                group[filled] = b % g
                filled += 1
        middle[a] = filled
        for b in range(a, a + g):
            if filled < middle[a] + limit and row[b % g] == second and (b != a or size[a] > 1):
                group[filled] = b % g
                filled += 1
        end[a] = filled
    return start, middle, end, group[:filled].copy()


@allocating
def count_pairs(code: Int8s, size: Longs) -> Longs:
    """Return int64[256]: ordered pairs of different hosts by the code of their groups' distance.

    Args:
        code (uint8[g, g]):
        size (int64[g]): Hosts of each group.
    """
    count = np.zeros(256, np.int64)
    for a in range(len(code)):
        for b in range(len(code)):
            count[code[a, b]] += size[a] * size[b]
        count[code[a, a]] -= size[a]
    return count


@inner
def propose_slot(state: State, near: Near, partner_host: int) -> int:
    """Return a slot for a rank with a partner on `partner_host`, mostly a near one."""
    dice = below(state, DICE)
    if dice < near.shares[0]:
        first = near.first_slot[partner_host]
        return int(first + below(state, near.first_slot[partner_host + 1] - first))
    at = near.host_group[partner_host]
    first, last = near.start[at], near.middle[at]
    if dice >= near.shares[1]:
        first, last = last, near.end[at]
    if dice >= near.shares[2] or first == last:
        return below(state, len(near.slot_host))
    group = near.group[first + below(state, last - first)]
    first = near.first[group]
    return int(near.slot[first + below(state, near.first[group + 1] - first)])


@inner
def swap_into(assignment: SlotAssignment, rank: int, slot: int) -> None:
    """Exchange a rank with the rank on a slot, or move it there if the slot is free."""
    left, other = assignment.slot_of_rank[rank], assignment.rank_of_slot[slot]
    assignment.rank_of_slot[slot], assignment.slot_of_rank[rank] = rank, slot
    assignment.host_of_rank[rank] = assignment.slot_host[slot]
    assignment.rank_of_slot[left] = other
    if other >= 0:
        assignment.slot_of_rank[other] = left
        assignment.host_of_rank[other] = assignment.slot_host[left]


@inner
def exchange_gain(
    guest: Guest, hops: Hops, assignment: SlotAssignment, rank: int, other: int, here: int, there: int
) -> float:
    """Return the change of hop-bytes if `rank` goes from `here` to `there` and `other` (-1: none) back."""
    indptr, partners, sizes, tables = guest.indptr, guest.partner, guest.bytes, guest.table
    group, code, value, host_of_rank = hops.group, hops.code, hops.value, assignment.host_of_rank
    last, change, a, b = code.shape[0] - 1, 0.0, group[here], group[there]
    for e in range(indptr[rank], indptr[rank + 1]):
        table = min(int(tables[e]), last)
        at = int(host_of_rank[partners[e]])
        then = here if partners[e] == other else at
        was = 0.0 if at == here else value[code[table, a, group[at]]]
        change += sizes[e] * ((0.0 if then == there else value[code[table, b, group[then]]]) - was)
    if other >= 0:
        for e in range(indptr[other], indptr[other + 1]):
            if partners[e] != rank:
                table = min(int(tables[e]), last)
                at = int(host_of_rank[partners[e]])
                was = 0.0 if at == there else value[code[table, b, group[at]]]
                change += sizes[e] * ((0.0 if at == here else value[code[table, a, group[at]]]) - was)
    return change
