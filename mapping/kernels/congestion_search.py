"""Annealed pair exchange on link congestion: plain arrays in, plain arrays changed in place.

What is minimised is the sum over links of ``(load / (capacity * worst)) ** p``, where ``worst`` is the
highest load / capacity of the link's class (hosts' own cables and network links are scaled apart, so
that the network goes on improving where a host's own cable is the floor). Loads follow every exchange
through the flows of the pairs that it touches.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from mapping.kernels.flow_cache import FlowCache, fill, place_of
from mapping.kernels.hop_bytes_search import Guest, Hops, Near, Seats, exchange_gain, propose_host, sit
from mapping.kernels.random_numbers import State, below, exponential
from registry.model import Bools, Floats, Ints

HOT = 40
"""Of 100 proposals, those that move an end of one of the hottest pairs."""


class Loads(NamedTuple):
    """Load of every link and its part of the sum; changed in place.

    Attributes
    ----------
    bytes : float64[m]
    scale : float64[m]
        1 / (capacity * worst of the link's class); not changed by exchanges.
    term : float64[m]
        ``(bytes * scale) ** p``.
    change : float64[m]
        Zero between proposals: what the proposal adds to each link.
    touched : int32[m]
        Links that the proposal changes.
    is_touched : bool[m]
        False between proposals.
    """

    bytes: Floats
    scale: Floats
    term: Floats
    change: Floats
    touched: Ints
    is_touched: Bools


class Flows(NamedTuple):
    """Flows that a proposal adds and takes away; room that is filled again for each.

    Attributes
    ----------
    source, target : int32[n]
        Hosts.
    bytes : float64[n]
        Negative where they go away.
    """

    source: Ints
    target: Ints
    bytes: Floats


@nb.njit(inline="always")
def _note(pending: Flows, count: int, table: int, own: int, far: int, amount: float) -> int:
    if own == far:
        return count
    pending.source[count] = own if table == 0 else far
    pending.target[count] = far if table == 0 else own
    pending.bytes[count] = amount
    return count + 1


@nb.njit(cache=True)
def note_exchange(
    guest: Guest, seats: Seats, rank: int, other: int, here: int, there: int, pending: Flows
) -> int:
    """Write down the flows that an exchange of two ranks (-1: nobody) changes; their number."""
    count = 0
    for e in range(guest.indptr[rank], guest.indptr[rank + 1]):
        partner, table, size = guest.partner[e], guest.table[e], guest.bytes[e]
        at = int(seats.host_of_rank[partner])
        then = here if partner == other else at
        count = _note(pending, count, table, here, at, -size)
        count = _note(pending, count, table, there, then, size)
    if other >= 0:
        for e in range(guest.indptr[other], guest.indptr[other + 1]):
            partner, table, size = guest.partner[e], guest.table[e], guest.bytes[e]
            if partner != rank:
                at = int(seats.host_of_rank[partner])
                count = _note(pending, count, table, there, at, -size)
                count = _note(pending, count, table, here, at, size)
    return count


@nb.njit(cache=True)
def pend_flows(cache: FlowCache, pending: Flows, number: int, loads: Loads) -> int:
    """Put the first `number` flows into the pending change of loads; how many links that touches."""
    ends, runs, source = cache.ends, cache.runs, cache.source
    row, target, width = ends.row, ends.target, source.width
    up_ptr, up_link, up_share = ends.up_ptr, ends.up_link, ends.up_share
    down_ptr, down_link, down_share = ends.down_ptr, ends.down_link, ends.down_share
    table, firsts, counts, link, share = runs.key, runs.first, runs.length, runs.link, runs.share
    touched, change, is_touched = loads.touched, loads.change, loads.is_touched
    senders, receivers, sizes = pending.source, pending.target, pending.bytes
    count = 0
    for f in range(number):
        i, j, amount = int(senders[f]), int(receivers[f]), sizes[f]
        count = _add_run(up_ptr[i], up_ptr[i + 1], up_link, up_share, amount,
                         change, touched, is_touched, count)  # fmt: skip
        count = _add_run(down_ptr[j], down_ptr[j + 1], down_link, down_share, amount,
                         change, touched, is_touched, count)  # fmt: skip
        start, end = int(row[i]), int(target[j])
        key = start * width + end
        at = place_of(table, key)
        if table[at] != key:
            at = fill(source, runs, start, end)
        count = _add_run(firsts[at], firsts[at] + counts[at], link, share, amount,
                         change, touched, is_touched, count)  # fmt: skip
    return count


@nb.njit(inline="always")
def _add_run(
    first: int, last: int, link: Ints, share: NDArray[np.floating], amount: float,
    change: Floats, touched: Ints, is_touched: Bools, count: int,
) -> int:  # fmt: skip
    for e in range(first, last):
        at = link[e]
        if not is_touched[at]:
            is_touched[at] = True
            touched[count] = at
            count += 1
        change[at] += amount * share[e]
    return count


@nb.njit(inline="always")
def _power(x: float, squarings: int) -> float:
    for _ in range(squarings):
        x *= x
    return x


@nb.njit(inline="always")
def _pending(loads: Loads, count: int, squarings: int) -> float:
    total = 0.0
    for t in range(count):
        link = loads.touched[t]
        value = (loads.bytes[link] + loads.change[link]) * loads.scale[link]
        total += _power(value, squarings) - loads.term[link]
    return total


@nb.njit(inline="always")
def _settle(loads: Loads, count: int, squarings: int, keep: bool) -> None:
    for t in range(count):
        link = loads.touched[t]
        if keep:
            loads.bytes[link] += loads.change[link]
            loads.term[link] = _power(loads.bytes[link] * loads.scale[link], squarings)
        loads.change[link] = 0.0
        loads.is_touched[link] = False


@nb.njit(cache=True)
def pair_heat(
    source: Ints,
    target: Ints,
    bytes: Floats,
    cache: FlowCache,
    host_of_rank: Ints,
    slope: Floats,
    heat: Floats,
) -> None:
    """Fill `heat` (float64[e]) with how much of the sum the traffic of each pair of ranks is worth.

    Parameters
    ----------
    slope : float64[m]
        Change of the sum for a byte on each link.
    """
    ends, runs, origin = cache.ends, cache.runs, cache.source
    row, target_of, width = ends.row, ends.target, origin.width
    up_ptr, up_link, up_share = ends.up_ptr, ends.up_link, ends.up_share
    down_ptr, down_link, down_share = ends.down_ptr, ends.down_link, ends.down_share
    table, firsts, counts, link, share = runs.key, runs.first, runs.length, runs.link, runs.share
    for e in range(len(source)):
        i, j = int(host_of_rank[source[e]]), int(host_of_rank[target[e]])
        worth = 0.0
        if i != j:
            worth += _slope_of(up_ptr[i], up_ptr[i + 1], up_link, up_share, slope)
            worth += _slope_of(down_ptr[j], down_ptr[j + 1], down_link, down_share, slope)
            start, end = int(row[i]), int(target_of[j])
            key = start * width + end
            at = place_of(table, key)
            if table[at] != key:
                at = fill(origin, runs, start, end)
            worth += _slope_of(firsts[at], firsts[at] + counts[at], link, share, slope)
        heat[e] = worth * bytes[e]


@nb.njit(inline="always")
def _slope_of(first: int, last: int, link: Ints, share: NDArray[np.floating], slope: Floats) -> float:
    total = 0.0
    for e in range(first, last):
        total += slope[link[e]] * share[e]
    return total


@nb.njit(inline="always")
def _propose_rank(guest: Guest, hot_rank: Ints, hot_partner: Ints, state: State) -> tuple[int, int]:
    if len(hot_rank) > 0 and below(state, 100) < HOT:
        at, turn = below(state, len(hot_rank)), below(state, 2)
        if turn == 0:
            return int(hot_rank[at]), int(hot_partner[at])
        return int(hot_partner[at]), int(hot_rank[at])
    rank = int(guest.active[below(state, len(guest.active))])
    first = guest.indptr[rank]
    return rank, int(guest.partner[first + below(state, guest.indptr[rank + 1] - first)])


@nb.njit(cache=True)
def exchange_on_congestion(
    proposals: int,
    squarings: int,
    temperature: float,
    screen: float,
    guest: Guest,
    cache: FlowCache,
    loads: Loads,
    pending: Flows,
    hops: Hops,
    near: Near,
    seats: Seats,
    hot_rank: Ints,
    hot_partner: Ints,
    state: State,
) -> int:
    """Make so many proposals and return how many passed the screen.

    Parameters
    ----------
    squarings : int
        The power ``p`` is ``2 ** squarings``.
    temperature : float
        A change of the sum is kept if it is below ``temperature * Exp(1)``.
    screen : float
        A proposal that loses more hop-bytes than this times Exp(1) is not looked into.
    hot_rank, hot_partner : int32[k]
        Pairs on the hottest links: one of the two is moved, near the other.
    """
    hosts, looked = hops.code.shape[1], 0
    for _ in range(proposals):
        rank, partner = _propose_rank(guest, hot_rank, hot_partner, state)
        here = int(seats.host_of_rank[rank])
        there = propose_host(state, near, seats.host_of_rank[partner], hosts)
        if there == here:
            continue
        slot = seats.first_slot[there] + below(state, seats.first_slot[there + 1] - seats.first_slot[there])
        other = int(seats.rank_of_slot[slot])
        longer = exchange_gain(guest, hops, seats, rank, other, here, there)
        if longer > 0.0 and longer > screen * exponential(state):
            continue
        looked += 1
        number = note_exchange(guest, seats, rank, other, here, there, pending)
        count = pend_flows(cache, pending, number, loads)
        change = _pending(loads, count, squarings)
        keep = change < 0.0 or (change == 0.0 and longer <= 0.0)
        if not keep and temperature > 0.0:
            keep = change < temperature * exponential(state)
        _settle(loads, count, squarings, keep)
        if keep:
            sit(seats, rank, slot)
    return looked
