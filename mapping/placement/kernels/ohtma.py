"""The two halves of OHTMA on plain arrays: the first mapping, and the pair exchange with its table of gains.

The exchange stores the cost of every rank on each host group, with all other ranks in place. A gain is then
a few additions; the pair's own edge and partners on one host are corrected afterwards. Each rank has a best
partner; one that may have changed is searched again only if its old gain, then an upper bound of all
unchanged ones, is the highest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.kernels.decorators import allocating, kernel
from mapping.placement.kernels.pair_gain import Partners, cost_at
from registry.model import Bools, Floats, Ints, Longs

NOBODY = -1


class Bench(NamedTuple):
    """State of an exchange; everything below `between` is changed in place."""

    pays: Partners
    """Bytes that count for a rank, by direction."""
    causes: Partners
    """Bytes of the same edges that count for the partner; differs for the printed gain only."""
    group: Ints
    """int32[h]."""
    between: Floats
    """float64[g, g]."""
    host_of_rank: Ints
    """int32[ranks]."""
    first: Longs
    """int64[h + 1]: Ranks of host ``h`` are ``member[first[h]:first[h + 1]]``."""
    member: Ints
    """int32[ranks]."""
    place: Ints
    """int32[ranks]: Position of each rank in `member`."""
    locked: Bools
    """bool[ranks]."""
    cost: Floats
    """float64[ranks, g]: Bytes times distance of each rank on a host of each group that none of its partners
    shares."""
    transposed: Floats
    """float64[g, ranks]: The transpose of `cost`."""
    stay: Floats
    """float64[ranks]: Cost of a rank on its present host."""
    gain: Floats
    """float64[ranks]: Best gain with a higher rank, -inf for none; an upper bound if `stale`."""
    other: Ints
    """int32[ranks]: That rank."""
    stale: Bools
    """bool[ranks]."""
    touched: Bools
    """bool[ranks]: Buffer for marks."""
    trial: Floats
    """float64[ranks]: Buffer for the gains of one rank with all others."""


@allocating
def first_mapping(table: Partners, slots: Ints, group: Ints, between: Floats) -> Ints:
    """Lines 1 to 19 of Algorithm 1: int32[ranks], host of each rank; ties go to the lower index.

    A slot is a processor; those of one host are at distance 0.
    """
    indptr, partner, sent, received = table.indptr, table.partner, table.sent, table.received
    ranks = len(indptr) - 1
    total, chosen = np.zeros(ranks), np.zeros(ranks)
    for p in range(ranks):
        total[p] = sent[indptr[p] : indptr[p + 1]].sum()
    waiting = np.ones(ranks, np.bool_)
    room = slots.astype(np.int64)
    count = np.zeros(len(between))
    for h in range(len(slots)):
        count[group[h]] += slots[h]
    far, near = (between * count).sum(axis=1), np.zeros(len(between))
    host_of_rank = np.full(ranks, NOBODY, np.int32)
    for k in range(ranks):
        best, rank = -np.inf, NOBODY
        for p in range(ranks):
            if waiting[p]:
                # chosen + (total - chosen) / (1 + k), times 1 + k: whole bytes stay exact, and so do ties.
                comm = k * chosen[p] + total[p]
                if comm > best:
                    best, rank = comm, p
        host = _closest_free(slots, room, group, between, near, far, k)
        host_of_rank[rank] = host
        waiting[rank] = False
        room[host] -= 1
        near += between[:, group[host]]
        for e in range(indptr[rank], indptr[rank + 1]):
            chosen[partner[e]] += received[e]
    return host_of_rank


@kernel
def _closest_free(
    slots: Ints, room: Longs, group: Ints, between: Floats, near: Floats, far: Floats, k: int
) -> int:
    """Lines 10 to 14: the host with a free slot and the fewest hops.

    `near` and `far` count, for each group, the hops to the `k` slots taken and to all; a host's own slots
    are in them as if they were those of another host of its group, and taken out here.
    """
    least, host = np.inf, NOBODY
    for h in range(len(slots)):
        if room[h] > 0:
            a = group[h]
            taken = near[a] - (slots[h] - room[h]) * between[a, a]
            # taken + (all - taken) / (1 + k), times 1 + k: exact for whole hops.
            hops = k * taken + far[a] - slots[h] * between[a, a]
            if host == NOBODY or hops < least:
                least, host = hops, h
    return host


@allocating
def set_costs(bench: Bench) -> None:
    """Fill the tables of costs, and mark the best partner of every unlocked rank as stale."""
    indptr, partner = bench.pays.indptr, bench.pays.partner
    sent, received = bench.pays.sent, bench.pays.received
    group, between, cost, host_of_rank = bench.group, bench.between, bench.cost, bench.host_of_rank
    back = between.T.copy()
    cost[:] = 0.0
    for rank in range(len(indptr) - 1):
        for e in range(indptr[rank], indptr[rank + 1]):
            at = group[host_of_rank[partner[e]]]
            for a in range(len(between)):
                cost[rank, a] += sent[e] * back[at, a] + received[e] * between[at, a]
        _set_stay(bench, rank)
        bench.stale[rank] = not bench.locked[rank]
        bench.gain[rank] = -np.inf if bench.locked[rank] else np.inf
    bench.transposed[:] = cost.T


@kernel
def exchange_rounds(bench: Bench, own_edge: bool, pairs: Ints, gains: Floats) -> int:
    """Lines 22 to 32 of Algorithm 1, corrected: exchange the best pair and lock both, in each round.

    Args:
        own_edge: True if the edge between the two exchanged ranks is counted exactly.
        pairs (int32[rounds, 2]): Filled with the ranks exchanged, the lower first; ties go to the lower pair.
        gains (float64[rounds]): Filled with the gain of each exchange.

    Returns:
        Rounds made; fewer than the length of `gains` if no two unlocked ranks on different hosts are left.
    """
    for k in range(len(gains)):
        rank = _best_rank(bench, own_edge)
        if rank == NOBODY:
            return k
        other = int(bench.other[rank])
        pairs[k, 0], pairs[k, 1], gains[k] = rank, other, bench.gain[rank]
        _exchange(bench, rank, other)
        _renew(bench, rank, other, own_edge)
    return len(gains)


@kernel
def _best_rank(bench: Bench, own_edge: bool) -> int:
    """Return the lower rank of the best pair (the lowest pair among equals), or `NOBODY`."""
    gain, stale = bench.gain, bench.stale
    while True:
        best, rank = -np.inf, int(np.int64(NOBODY))
        for i in range(len(gain)):
            if gain[i] > best:
                best, rank = gain[i], i
        if rank == NOBODY or not stale[rank]:
            return rank
        _try_all(bench, rank, own_edge)
        _take_best(bench, rank)


@kernel
def _try_all(bench: Bench, rank: int, own_edge: bool) -> None:
    """Fill ``bench.trial`` with the gains of exchanging `rank` with all unlocked ranks on other hosts."""
    indptr, partner = bench.pays.indptr, bench.pays.partner
    sent, received = bench.pays.sent, bench.pays.received
    group, between, host_of_rank = bench.group, bench.between, bench.host_of_rank
    trial, stay, first, member = bench.trial, bench.stay, bench.first, bench.member
    here = host_of_rank[rank]
    a = group[here]
    mine, theirs, staying = bench.cost[rank], bench.transposed[a], stay[rank]
    for j in range(len(trial)):
        trial[j] = staying + stay[j] - mine[group[host_of_rank[j]]] - theirs[j]
    for e in range(indptr[rank], indptr[rank + 1]):
        there = host_of_rank[partner[e]]
        b = group[there]
        both = sent[e] + received[e]
        for at in range(first[there], first[there + 1]):
            trial[member[at]] += both * between[b, b]
        if own_edge:
            trial[partner[e]] -= both * (between[a, b] + between[b, a])
    sent, received = bench.causes.sent, bench.causes.received
    for at in range(first[here], first[here + 1]):
        for e in range(indptr[member[at]], indptr[member[at] + 1]):
            trial[partner[e]] += (sent[e] + received[e]) * between[a, a]


@kernel
def _take_best(bench: Bench, rank: int) -> None:
    """Store the best of ``bench.trial`` among higher ranks that may be exchanged with `rank`."""
    trial, locked, host_of_rank = bench.trial, bench.locked, bench.host_of_rank
    best, other, here = -np.inf, NOBODY, host_of_rank[rank]
    for j in range(rank + 1, len(trial)):
        if trial[j] > best and not locked[j] and host_of_rank[j] != here:
            best, other = trial[j], j
    bench.gain[rank], bench.other[rank], bench.stale[rank] = best, other, False


@kernel
def _exchange(bench: Bench, rank: int, other: int) -> None:
    """Exchange two ranks of different hosts, lock both, and update the costs of their partners."""
    host_of_rank, member, place = bench.host_of_rank, bench.member, bench.place
    here, there = host_of_rank[rank], host_of_rank[other]
    host_of_rank[rank], host_of_rank[other] = there, here
    place[rank], place[other] = place[other], place[rank]
    member[place[rank]], member[place[other]] = rank, other
    bench.locked[rank] = bench.locked[other] = True
    bench.stale[rank] = bench.stale[other] = False
    bench.gain[rank] = bench.gain[other] = -np.inf
    _charge(bench, int(np.int64(rank)), bench.group[here], bench.group[there])
    _charge(bench, int(np.int64(other)), bench.group[there], bench.group[here])


@kernel
def _charge(bench: Bench, moved: int, old: int, new: int) -> None:
    """Update the costs of the unlocked partners of a rank that went from one group to another."""
    indptr, partner = bench.causes.indptr, bench.causes.partner
    sent, received = bench.causes.sent, bench.causes.received
    between, cost, transposed = bench.between, bench.cost, bench.transposed
    for e in range(indptr[moved], indptr[moved + 1]):
        rank = partner[e]
        if bench.locked[rank] or old == new:
            continue
        for a in range(len(between)):
            change = received[e] * (between[a, new] - between[a, old])
            change += sent[e] * (between[new, a] - between[old, a])
            cost[rank, a] += change
            transposed[a, rank] += change


@kernel
def _renew(bench: Bench, rank: int, other: int, own_edge: bool) -> None:
    """Update the best partners of the ranks that an exchange affects."""
    indptr, partner, locked, touched = bench.pays.indptr, bench.pays.partner, bench.locked, bench.touched
    touched[rank] = touched[other] = True
    for e in range(indptr[rank], indptr[rank + 1]):
        touched[partner[e]] = True
    for e in range(indptr[other], indptr[other + 1]):
        touched[partner[e]] = True
    gain, best, stale = bench.gain, bench.other, bench.stale
    for i in range(len(gain)):
        if not locked[i] and gain[i] > -np.inf and best[i] >= 0 and touched[best[i]]:
            stale[i] = True
        if touched[i] and not locked[i]:
            _set_stay(bench, i)
    for i in range(len(gain)):
        if touched[i]:
            touched[i] = False
            if not locked[i]:
                _try_all(bench, i, own_edge)
                _take_best(bench, i)
                _update_lower(bench, i)


@kernel
def _update_lower(bench: Bench, rank: int) -> None:
    """Make `rank` the best partner of lower ranks if ``bench.trial`` is higher."""
    trial, locked, host_of_rank, gain = bench.trial, bench.locked, bench.host_of_rank, bench.gain
    other, stale, here = bench.other, bench.stale, host_of_rank[rank]
    for i in range(rank):
        if trial[i] >= gain[i] and not locked[i] and host_of_rank[i] != here:
            if trial[i] > gain[i]:
                gain[i], other[i], stale[i] = trial[i], rank, False
            elif not stale[i] and rank < other[i]:
                other[i] = rank


@kernel
def _set_stay(bench: Bench, rank: int) -> None:
    host = int(bench.host_of_rank[rank])
    bench.stay[rank] = cost_at(bench.pays, bench.group, bench.between, bench.host_of_rank, rank, host, -1, -1)
