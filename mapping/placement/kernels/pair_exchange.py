"""Annealed exchanges on hop-bytes: plain arrays in, plain arrays changed in place.

The cost of every rank (its bytes times distance) is stored, so that a proposal sums only what its two ranks
would cost afterwards, heaviest partners first, and is dropped as soon as that exceeds their present cost and
what the random draw allows. An accepted exchange corrects the partners' costs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapping.kernels.decorators import inner, kernel
from mapping.kernels.random_numbers import State, next_word
from mapping.placement.kernels.hop_bytes_search import DICE, Guest, Hops, Near, SearchArrays
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
    """Ranks and slots that one thread may exchange; for it, all other ranks stay where they are."""

    of_host: NDArray[np.int8]
    """int8[h]: Domain of each host."""
    mine: int
    ranks: Ints
    """int32[r]: Ranks on its hosts that may move and have a partner."""


class Exchange(NamedTuple):
    """A rank that goes from one host to another, and the rank that comes back (-1: none)."""

    rank: int
    other: int
    here: int
    there: int
    a: np.int64
    b: np.int64
    """Groups of the hosts `here` and `there`."""


class RankState(NamedTuple):
    """Position and cost of each rank; each thread has its own copy."""

    host: Ints
    group: Ints
    """int32[ranks]."""
    cost: Floats
    """float64[ranks]: Bytes x distance over all partners."""


@kernel
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


@kernel
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

    Args:
        tables (uint8[e]): ``guest.table`` if the two directions differ.
    """
    guest, hops, near, assignment = arrays
    slot_host, _, rank_of_slot, slot_of_rank, _, fixed = assignment
    host, group, cost = rank_state
    several, inside, kept = len(slot_host) > len(hops.group), 0, 0
    for _ in range(proposals):
        rank, slot, wait = _propose(guest, near, rank_state, domain, state)
        here, there, other = int(host[rank]), int(slot_host[slot]), int(rank_of_slot[slot])
        move = Exchange(rank, other, here, there, np.int64(group[rank]), np.int64(hops.group[there]))
        if domain.of_host[there] != domain.mine:
            continue
        inside += 1
        if here == there or (move.a == move.b and not several):
            continue
        now = cost[rank]
        if other >= 0:
            if fixed[other]:
                continue
            now += cost[other]
            if tables is not None:
                now += _turned(guest, hops, move)
        # Cost of the two ranks afterwards; the sum is stopped as soon as it is too high.
        most = now * (1.0 + ROUNDING) + temperature * wait
        own = _cost_after(guest, hops, tables, rank_state, move, 0.0, most)
        if own > most:
            continue
        pays, back = own, Exchange(other, rank, there, here, move.b, move.a)
        if other >= 0:
            pays = _cost_after(guest, hops, tables, rank_state, back, own, most)
            if pays > most:
                continue
        kept += abs(pays - now) > now * ROUNDING
        _correct_partners(guest, hops, rank_state, move)
        left = slot_of_rank[rank]
        rank_of_slot[slot], slot_of_rank[rank], rank_of_slot[left] = rank, slot, other
        if other >= 0:
            _correct_partners(guest, hops, rank_state, back)
            slot_of_rank[other] = left
            host[other], group[other], cost[other] = here, move.a, pays - own
        host[rank], group[rank], cost[rank] = there, move.b, own
    return inside, kept


@inner
def _propose(
    guest: Guest, near: Near, rank_state: RankState, domain: Domain, state: State
) -> tuple[int, int, float]:
    """Return a rank, a slot near one of its partners as `propose_slot` takes it, and a random wait."""
    word = next_word(state)
    rank = domain.ranks[_part(word >> _HALF, len(domain.ranks))]
    first, last = guest.indptr[rank], guest.indptr[rank + 1]
    partner = guest.partner[first + _part(word & _LOW, last - first)]
    word = next_word(state)
    dice, draw = int(word & _DICE), word >> _HALF
    if dice < near.shares[0]:
        at = int(rank_state.host[partner])
        first = near.first_slot[at]
        slot = int(first + _part(draw, near.first_slot[at + 1] - first))
    else:
        at = int(rank_state.group[partner])
        low, high = near.start[at], near.middle[at]
        if dice >= near.shares[1]:
            low, high = high, near.end[at]
        if dice >= near.shares[2] or low == high:
            slot = _part(draw, len(near.slot_host))
        else:
            draw = draw * np.uint64(high - low)
            at = int(near.group[low + np.int64(draw >> _HALF)])
            first = near.first[at]
            slot = int(near.slot[first + _part(draw & _LOW, near.first[at + 1] - first)])
    return int(rank), slot, WAITS[int((word >> _AFTER_DICE) & _WAIT)]


@inner
def _cost_after(
    guest: Guest,
    hops: Hops,
    tables: Int8s | None,
    rank_state: RankState,
    move: Exchange,
    pays: float,
    most: float,
) -> float:
    """Return `pays` and the cost of the rank of an exchange afterwards; some sum above `most` if it is."""
    for e in range(guest.indptr[move.rank], guest.indptr[move.rank + 1]):
        at = guest.partner[e]
        if at == move.other:
            to, far = move.here, move.a
        else:
            to, far = int(rank_state.host[at]), np.int64(rank_state.group[at])
        if to != move.there:
            table = np.int64(0)
            if tables is not None:
                table = np.int64(tables[e])
            pays += guest.bytes[e] * hops.value[hops.code[table, move.b, far]]
            if pays > most:
                break
    return pays


@inner
def _part(word: np.uint64, n: int) -> int:
    """Return a whole number below `n` from 32 random bits."""
    return int(np.int64((word * np.uint64(n)) >> _HALF))


@inner
def _turned(guest: Guest, hops: Hops, move: Exchange) -> float:
    """Return how much more the edge of two ranks would cost with both exchanged; it counts once."""
    more = 0.0
    for e in range(guest.indptr[move.rank], guest.indptr[move.rank + 1]):
        if guest.partner[e] == move.other:
            code = hops.code[guest.table[e]]
            more += guest.bytes[e] * (hops.value[code[move.b, move.a]] - hops.value[code[move.a, move.b]])
    return more


@inner
def _correct_partners(guest: Guest, hops: Hops, rank_state: RankState, move: Exchange) -> None:
    """Correct the costs of the partners of the rank of an exchange, except the other rank of it."""
    code, value, last = hops.code, hops.value, len(hops.code) - 1
    for e in range(guest.indptr[move.rank], guest.indptr[move.rank + 1]):
        at = guest.partner[e]
        if at != move.other:
            table, to, far = min(int(guest.table[e]), last), rank_state.host[at], rank_state.group[at]
            gone = 0.0 if to == move.here else value[code[table, move.a, far]]
            come = 0.0 if to == move.there else value[code[table, move.b, far]]
            rank_state.cost[at] += guest.bytes[e] * (come - gone)
