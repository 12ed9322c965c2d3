"""Annealed exchange of ranks on link congestion: plain arrays in, plain arrays changed in place.

The search minimises the sum over cells of ``(load * scale) ** p``, where ``scale`` is 1 / (capacity *
worst) of the cell's class (hosts' own cables and network links are scaled apart, so that the network goes
on improving if a host's own cable limits congestion). Loads follow every exchange through the routes of the
pairs of hosts that it changes.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from mapping.kernels.random_numbers import State, below, exponential
from mapping.placement.kernels.hop_bytes_search import (
    SearchArrays,
    exchange_gain,
    propose_slot,
    swap_into,
)
from mapping.placement.kernels.link_loads import (
    BYTES,
    SCALE,
    TERM,
    Flows,
    Loads,
    Talk,
    accumulate_delta,
    accumulate_flows,
    clear_delta,
    find_routes,
    note_exchange,
)
from mapping.placement.kernels.pair_routes import CellArray, PairRoutes, ready
from registry.model import Floats, Ints, Longs


class Part(NamedTuple):
    """The hosts and ranks that a worker may change.

    Attributes
    ----------
    worker : int
    worker_of_host : int8[h]
    rank : int32[r]
        Ranks on the worker's hosts, from which proposals choose.
    hot_rank, hot_partner : int32[k]
        Pairs on the busiest links: the first is moved near the other.
    """

    worker: int
    worker_of_host: NDArray[np.int8]
    rank: Ints
    hot_rank: Ints
    hot_partner: Ints


class Worker(NamedTuple):
    """Data of one thread: its routes, loads, flows of the current proposal, and random numbers."""

    pair_routes: PairRoutes
    loads: Loads
    pending: Flows
    state: State


class Rules(NamedTuple):
    """Rules by which proposals are made and accepted.

    Attributes
    ----------
    squarings : int
        The power ``p`` is ``2 ** squarings``.
    temperature : float
        A change of the sum is accepted if it is below ``temperature * Exp(1)``.
    screen : float
        A proposal that loses more hop-bytes than this times Exp(1) is dropped at once.
    hot : int
        Number of 100 proposals that move an end of one of the busiest pairs.
    cables : bool
        True if the load of hosts' own cables, relative to their capacity, depends on the placement.
    """

    squarings: int
    temperature: float
    screen: float
    hot: int
    cables: bool


@nb.njit(inline="always")
def _power(x: float, squarings: int) -> float:
    for _ in range(squarings):
        x *= x
    return x


@nb.njit(inline="always")
def _change_of_sum(state: Floats, change: Floats, touched: CellArray, count: int, squarings: int) -> float:
    total = 0.0
    for t in range(count):
        cable = np.uint64(touched[t])
        first = cable << np.uint64(1)
        one = (state[cable, BYTES] + change[first]) * state[cable, SCALE]
        other = (state[cable, BYTES + 1] + change[first + np.uint64(1)]) * state[cable, SCALE + 1]
        for _ in range(squarings):
            one *= one
            other *= other
        total += (one - state[cable, TERM]) + (other - state[cable, TERM + 1])
    return total


@nb.njit(inline="always")
def _apply_delta(state: Floats, change: Floats, touched: CellArray, count: int, squarings: int) -> None:
    for t in range(count):
        cable = np.uint64(touched[t])
        for way in range(2):
            bytes = state[cable, BYTES + way] + change[2 * cable + way]
            state[cable, BYTES + way] = bytes
            state[cable, TERM + way] = _power(bytes * state[cable, SCALE + way], squarings)


@nb.njit(inline="always")
def _propose_rank(talk: Talk, part: Part, hot: int, state: State) -> tuple[int, int]:
    """Return a rank of the worker, and the partner near which it shall be placed."""
    if len(part.hot_rank) > 0 and below(state, 100) < hot:
        at = below(state, len(part.hot_rank))
        return int(np.int64(part.hot_rank[at])), int(part.hot_partner[at])
    rank = int(np.int64(part.rank[below(state, len(part.rank))]))
    first = talk.indptr[rank]
    return rank, int(talk.partner[first + below(state, talk.indptr[rank + 1] - first)])


@nb.njit(cache=True, nogil=True)
def exchange_on_congestion(
    proposals: int, rules: Rules, talk: Talk, part: Part, worker: Worker, arrays: SearchArrays, counts: Longs
) -> None:
    """Make a number of proposals.

    A proposal takes a rank, one of its partners and a host near that partner, and exchanges the rank
    with a slot there.

    Parameters
    ----------
    counts : int64[3]
        Counters to increase: proposals within the worker's part, those past the screen, those accepted.
    """
    # Arrays are taken out of their tuples here: inside the loop, access would count references to them, which
    # takes a quarter of the time.
    guest, hops, near, assignment = arrays
    pair_routes, loads, pending, state = worker
    mine, worker_of_host = part.worker, part.worker_of_host
    slot_host, _, rank_of_slot, _, host_of_rank, fixed = assignment
    state_of, change, touched, is_touched = loads
    squarings, temperature, screen, hot, cables = rules
    source, sink, out, back, run = pending
    row, target, up_ptr, up_cell, up_share, down_ptr, down_cell, down_share = pair_routes.hosts
    shifts = pair_routes.origin.shifts
    shifted, place, minus, plus = shifts.on, shifts.place, shifts.minus, shifts.plus
    where, cell, share, mode = pair_routes.table
    complete, alike = mode[0] > 0, mode[2] > 0 and not cables
    for _ in range(proposals if len(part.rank) > 0 else 0):
        rank, partner = _propose_rank(talk, part, hot, state)
        here = int(host_of_rank[rank])
        slot = propose_slot(state, near, host_of_rank[partner])
        there = int(slot_host[slot])
        if there == here or worker_of_host[there] != mine or worker_of_host[here] != mine:
            continue
        if alike and row[here] == row[there]:
            continue
        other = int(rank_of_slot[slot])
        if fixed[rank] or (other >= 0 and fixed[other]):
            continue
        counts[0] += 1
        longer = exchange_gain(guest, hops, assignment, rank, other, here, there)
        if longer > 0.0 and longer > screen * exponential(state):
            continue
        counts[1] += 1
        number, begin = note_exchange(talk, host_of_rank, rank, other, here, there, pending), int(np.int64(0))
        if complete or ready(pair_routes, source, sink, begin, number):
            find_routes(
                begin, number, source, sink, run, row, target, shifted, place, minus, where, cell, mode
            )  # fmt: skip
            count = accumulate_delta(
                begin, number, 0, source, sink, out, back, run, cables, change, touched, is_touched,
                row, up_ptr, up_cell, up_share, down_ptr, down_cell, down_share,
                shifted, place, plus, cell, share, mode[2] > 0,
            )  # fmt: skip
        else:  # too little memory for the routes of one proposal together
            count = accumulate_flows(begin, number, pair_routes, pending, cables, loads)
        worse = _change_of_sum(state_of, change, touched, count, squarings)
        keep = worse < 0.0 or (worse == 0.0 and longer <= 0.0)
        if not keep and temperature > 0.0:
            keep = worse < temperature * exponential(state)
        if keep:
            counts[2] += 1
            _apply_delta(state_of, change, touched, count, squarings)
            swap_into(assignment, rank, slot)
        clear_delta(change, touched, is_touched, count)


@nb.njit(cache=True, nogil=True)
def pair_heat(flows: Flows, pair_routes: PairRoutes, slope: Floats, loads: Loads, heat: Floats) -> None:
    """Fill `heat` (float64[n]) with the part of the sum that each flow causes, both directions.

    Parameters
    ----------
    slope : float64[c]
        Change of the sum per byte on each cell.
    """
    source, sink, out, back, run = flows
    _, change, touched, is_touched = loads
    row, target, up_ptr, up_cell, up_share, down_ptr, down_cell, down_share = pair_routes.hosts
    shifts = pair_routes.origin.shifts
    shifted, place, minus, plus = shifts.on, shifts.place, shifts.minus, shifts.plus
    where, cell, share, mode = pair_routes.table
    complete = mode[0] > 0
    for e in range(len(heat)):
        heat[e] = 0.0
        if source[e] == sink[e]:
            continue
        if not complete:
            ready(pair_routes, source, sink, e, e + 1)
        find_routes(
            e, e + 1, source, sink, run, row, target, shifted, place, minus, where, cell, mode
        )  # fmt: skip
        count = accumulate_delta(
            e, e + 1, 0, source, sink, out, back, run, True, change, touched, is_touched,
            row, up_ptr, up_cell, up_share, down_ptr, down_cell, down_share,
            shifted, place, plus, cell, share, mode[2] > 0,
        )  # fmt: skip
        for t in range(count):
            cable = np.uint64(touched[t])
            for to in (cable << np.uint64(1), (cable << np.uint64(1)) + np.uint64(1)):
                heat[e] += slope[to] * change[to]
        clear_delta(change, touched, is_touched, count)
