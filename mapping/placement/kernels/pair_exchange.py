"""Annealed exchanges on hop-bytes: plain arrays in, plain arrays changed in place.

The cost of every rank (its bytes times distance) is stored, so that a proposal sums only what its two ranks
would cost afterwards, heaviest partners first, and is dropped as soon as that exceeds their present cost and
what the random draw allows. An accepted exchange corrects the partners' costs.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from mapping.kernels.random_numbers import State, next_word
from mapping.placement.kernels.hop_bytes_search import DICE, Guest, Hops, SearchArrays
from registry.model import Floats, Int8s, Ints

WAITS = -np.log((np.arange(1024) + 0.5) / 1024)
"""Exponentially distributed numbers of mean 1, equally likely."""
ROUNDING = 1e-12
"""Relative difference that two sums of the same costs in another order may have."""
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_DICE = np.uint64(DICE - 1)
_WAIT = np.uint64(1023)
_AFTER_DICE = np.uint64(8)


class Domain(NamedTuple):
    """Ranks and slots that one thread may exchange; for it, all other ranks stay where they are.

    Attributes
    ----------
    of_host : int8[h]
        Domain of each host.
    mine : int
    ranks : int32[r]
        Ranks on its hosts that may move and have a partner.
    """

    of_host: NDArray[np.int8]
    mine: int
    ranks: Ints


class RankState(NamedTuple):
    """Position and cost of each rank; each thread has its own copy.

    Attributes
    ----------
    host, group : int32[ranks]
    cost : float64[ranks]
        Bytes x distance over all partners.
    """

    host: Ints
    group: Ints
    cost: Floats


@nb.njit(cache=True, nogil=True)
def compute_costs(arrays: SearchArrays, rank_state: RankState) -> float:
    """Fill in the group and cost of every rank from its host; return the hop-bytes of all."""
    guest, hops = arrays.guest, arrays.hops
    indptr, partners, sizes, tables = guest.indptr, guest.partner, guest.bytes, guest.table
    host, group, cost = rank_state.host, rank_state.group, rank_state.cost
    code, value, last = hops.code, hops.value, hops.code.shape[0] - 1
    for rank in range(len(host)):
        group[rank] = hops.group[host[rank]]
    total = 0.0
    for rank in range(len(host)):
        pays = 0.0
        for e in range(indptr[rank], indptr[rank + 1]):
            at = partners[e]
            if host[at] != host[rank]:
                pays += sizes[e] * value[code[min(int(tables[e]), last), group[rank], group[at]]]
        cost[rank] = pays
        total += pays
    return total / 2


@nb.njit(cache=True, nogil=True)
def anneal(
    proposals: int,
    temperature: float,
    arrays: SearchArrays,
    tables: Int8s | None,
    rank_state: RankState,
    domain: Domain,
    state: State,
) -> tuple[int, int]:
    """Make a number of proposals; return how many were within the domain, and how many changed the cost.

    A proposal takes a rank, one of its partners and a slot near that partner, and exchanges the rank with
    the rank there. It is accepted if it loses less than ``temperature * Exp(1)``. `host_of_rank` of the
    assignment is neither read nor changed: `rank_state` is.

    Parameters
    ----------
    tables : uint8[e] or None
        ``guest.table`` if the two directions differ.
    """
    # One long function, and arrays taken out of their tuples: inside the loop, a call with arrays as
    # arguments counts references to them, inlined or not, which takes a quarter of the time.
    guest, hops, near, assignment = arrays
    indptr, partners, sizes = guest.indptr, guest.partner, guest.bytes
    code, value = hops.code.reshape(-1), hops.value
    groups, square = np.int64(hops.code.shape[1]), np.int64(hops.code.shape[1] ** 2)
    host, group, cost = rank_state.host, rank_state.group, rank_state.cost
    first_slot, start, middle, end = near.first_slot, near.start, near.middle, near.end
    near_group, first_of, slot_of, shares = near.group, near.first, near.slot, near.shares
    own_share, nearest, second = shares[0], shares[1], shares[2]
    slot_host, _, rank_of_slot, slot_of_rank, _, fixed = assignment
    group_of_host, (of_host, mine, ranks) = hops.group, domain
    several, slots, inside, kept = len(slot_host) > len(group_of_host), len(slot_host), 0, 0
    for _ in range(proposals):
        # A rank, one of its partners, and a slot as `propose_slot` takes it, from two random words.
        word = next_word(state)
        rank = ranks[_part(word >> _HALF, len(ranks))]
        first, last = indptr[rank], indptr[rank + 1]
        partner = partners[first + _part(word & _LOW, last - first)]
        word = next_word(state)
        dice, draw = int(word & _DICE), word >> _HALF
        if dice < own_share:
            at = int(host[partner])
            slot = int(first_slot[at] + _part(draw, first_slot[at + 1] - first_slot[at]))
        else:
            at = int(group[partner])
            low, high = start[at], middle[at]
            if dice >= nearest:
                low, high = high, end[at]
            if dice >= second or low == high:
                slot = _part(draw, slots)
            else:
                draw = draw * np.uint64(high - low)
                at = int(near_group[low + np.int64(draw >> _HALF)])
                slot = int(slot_of[first_of[at] + _part(draw & _LOW, first_of[at + 1] - first_of[at])])
        here, there = int(host[rank]), int(slot_host[slot])
        a, b = np.int64(group[rank]), np.int64(group_of_host[there])
        if of_host[there] != mine:
            continue
        inside += 1
        if here == there or (a == b and not several):
            continue
        other, now = int(rank_of_slot[slot]), cost[rank]
        if other >= 0:
            if fixed[other]:
                continue
            now += cost[other]
            if tables is not None:
                now += _turned(guest, hops, int(rank), other, int(a), int(b))
        # Cost of the two ranks afterwards; stop as soon as it is too high.
        most = now * (1.0 + ROUNDING) + temperature * WAITS[int((word >> _AFTER_DICE) & _WAIT)]
        row, pays = b * groups, 0.0
        for e in range(first, last):
            at = partners[e]
            if at == other:
                to, far = here, a
            else:
                to, far = int(host[at]), np.int64(group[at])
            if to != there:
                shift = row + far
                if tables is not None:
                    shift += tables[e] * square
                pays += sizes[e] * value[code[shift]]
                if pays > most:
                    break
        if pays > most:
            continue
        own, row = pays, a * groups
        if other >= 0:
            for e in range(indptr[other], indptr[other + 1]):
                at = partners[e]
                if at == rank:
                    to, far = there, b
                else:
                    to, far = int(host[at]), np.int64(group[at])
                if to != here:
                    shift = row + far
                    if tables is not None:
                        shift += tables[e] * square
                    pays += sizes[e] * value[code[shift]]
                    if pays > most:
                        break
            if pays > most:
                continue
        kept += abs(pays - now) > now * ROUNDING
        _correct_partners(guest, hops, rank_state, rank, other, here, there)
        left = slot_of_rank[rank]
        rank_of_slot[slot], slot_of_rank[rank], rank_of_slot[left] = rank, slot, other
        if other >= 0:
            _correct_partners(guest, hops, rank_state, other, rank, there, here)
            slot_of_rank[other] = left
            host[other], group[other], cost[other] = here, a, pays - own
        host[rank], group[rank], cost[rank] = there, b, own
    return inside, kept


@nb.njit(inline="always")
def _part(word: np.uint64, n: int) -> int:
    """Return a whole number below `n` from 32 random bits."""
    return int(np.int64((word * np.uint64(n)) >> _HALF))


@nb.njit(cache=True)
def _turned(guest: Guest, hops: Hops, rank: int, other: int, a: int, b: int) -> float:
    """Return how much more the edge of two ranks would cost with both exchanged; it counts once."""
    more = 0.0
    for e in range(guest.indptr[rank], guest.indptr[rank + 1]):
        if guest.partner[e] == other:
            code = hops.code[guest.table[e]]
            more += guest.bytes[e] * (hops.value[code[b, a]] - hops.value[code[a, b]])
    return more


@nb.njit(cache=True)
def _correct_partners(
    guest: Guest, hops: Hops, rank_state: RankState, rank: int, twin: int, here: int, there: int
) -> None:
    """Correct the costs of a rank's partners, except its twin, when it goes from host `here` to `there`."""
    partners, sizes, tables = guest.partner, guest.bytes, guest.table
    host, group, cost, code, value = rank_state.host, rank_state.group, rank_state.cost, hops.code, hops.value
    a, b, last = hops.group[here], hops.group[there], len(hops.code) - 1
    for e in range(guest.indptr[rank], guest.indptr[rank + 1]):
        at = partners[e]
        if at != twin:
            table, to, far = min(int(tables[e]), last), host[at], group[at]
            gone = 0.0 if to == here else value[code[table, a, far]]
            come = 0.0 if to == there else value[code[table, b, far]]
            cost[at] += sizes[e] * (come - gone)
