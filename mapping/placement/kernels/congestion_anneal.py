"""Annealed exchange of ranks on link congestion: plain arrays in, plain arrays changed in place.

What is minimised is the sum over cells of ``(load * scale) ** p``, where ``scale`` is 1 / (capacity *
worst) of the cell's class (hosts' own cables and network links are scaled apart, so that the network goes
on improving where a host's own cable is the floor). Loads follow every exchange through the runs of the
pairs of hosts that it touches.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from mapping.kernels.random_numbers import State, below, exponential
from mapping.placement.kernels.hop_bytes_search import (
    Guest,
    Hops,
    Near,
    SlotAssignment,
    exchange_gain,
    propose_slot,
    swap_into,
)
from mapping.placement.kernels.pair_routes import ENTRY, CellArray, PairRoutes, Shares, place_of, ready
from registry.model import Floats, Int8s, Ints, Longs

_ONE = np.uint32(1)
_BYTE = np.uint32(255)


class Talk(NamedTuple):
    """Who talks to whom, by rank; an entry a partner.

    Attributes
    ----------
    indptr : int64[ranks + 1]
    partner : int32[e]
    out, back : float64[e]
        Bytes that the rank sends to the partner, and receives from it.
    """

    indptr: Longs
    partner: Ints
    out: Floats
    back: Floats


class Loads(NamedTuple):
    """Load of every cell and its part of the sum; changed in place.

    Attributes
    ----------
    state : float64[c / 2, 8]
        By cable (two cells, there and back): bytes, scale and term of both, side by side so that a cable
        is one line of the processor's cache; see `BYTES`, `SCALE`, `TERM`. A term is
        ``(bytes * scale) ** p``.
    change : float64[c]
        Zero between proposals: what the proposal adds to each cell.
    touched : uint32[c / 2 + 1]
        Cables that the proposal changes.
    is_touched : uint8[c / 2]
        0 between proposals.
    """

    state: Floats
    change: Floats
    touched: CellArray
    is_touched: Int8s


BYTES, SCALE, TERM = 0, 2, 4
"""Columns of ``Loads.state``; the next column is the way back's."""


class Flows(NamedTuple):
    """Flows between hosts, there and back; negative where they go away.

    Attributes
    ----------
    source, target : int32[n]
        Hosts.
    out, back : float64[n]
        Bytes from source to target, and from target to source.
    run : int64[4 * n]
        Room: where their runs begin and end.
    """

    source: Ints
    target: Ints
    out: Floats
    back: Floats
    run: Longs


class Part(NamedTuple):
    """The part of the hosts and ranks that a worker may move.

    Attributes
    ----------
    worker : int
    worker_of_host : int8[h]
    rank : int32[r]
        Ranks to choose from, that sit on the worker's hosts.
    hot_rank, hot_partner : int32[k]
        Pairs on the hottest links: the first is moved, near the other.
    """

    worker: int
    worker_of_host: NDArray[np.int8]
    rank: Ints
    hot_rank: Ints
    hot_partner: Ints


class Rules(NamedTuple):
    """What proposals are made and kept.

    Attributes
    ----------
    squarings : int
        The power ``p`` is ``2 ** squarings``.
    temperature : float
        A change of the sum is kept if it is below ``temperature * Exp(1)``.
    screen : float
        A proposal that loses more hop-bytes than this times Exp(1) is not looked into.
    hot : int
        Of 100 proposals, those that move an end of one of the hottest pairs.
    cables : bool
        Whether what hosts' own cables carry, relative to their capacity, depends on who sits where.
    """

    squarings: int
    temperature: float
    screen: float
    hot: int
    cables: bool


@nb.njit(inline="always")
def _note(pending: Flows, count: int, host: int, at: int, out: float, back: float) -> int:
    pending.source[count], pending.target[count] = host, at
    pending.out[count], pending.back[count] = out, back
    return count + (host != at)


@nb.njit(cache=True, nogil=True)
def note_exchange(
    talk: Talk, host_of_rank: Ints, rank: int, other: int, here: int, there: int, pending: Flows
) -> int:
    """Write down the flows that an exchange of two ranks (-1: nobody) changes; their number."""
    indptr, partners, outs, backs = talk.indptr, talk.partner, talk.out, talk.back
    count = 0
    for e in range(indptr[rank], indptr[rank + 1]):
        at = int(host_of_rank[partners[e]])
        then = here if partners[e] == other else at
        count = _note(pending, count, here, at, -outs[e], -backs[e])
        count = _note(pending, count, there, then, outs[e], backs[e])
    if other >= 0:
        for e in range(indptr[other], indptr[other + 1]):
            if partners[e] != rank:
                at = int(host_of_rank[partners[e]])
                count = _note(pending, count, there, at, -outs[e], -backs[e])
                count = _note(pending, count, here, at, outs[e], backs[e])
    return count


@nb.njit(inline="always")
def _add_route(
    first: int, last: int, cell: CellArray, share: NDArray[np.floating], amount: float,
    change: Floats, touched: CellArray, is_touched: Int8s, count: int,
) -> int:  # fmt: skip
    for e in range(np.uint64(first), np.uint64(last)):
        at = cell[e]
        cable = at >> _ONE
        touched[count] = cable
        count += 1 - is_touched[cable]
        is_touched[cable] = 1
        change[at] += amount * share[e]
    return count


@nb.njit(inline="always")
def _find_routes(
    begin: int, end: int, source: Ints, sink: Ints, run: Longs, row: Longs, target: Longs,
    shifted: bool, place: Longs, minus: Longs, where: Longs, cell: CellArray, mode: Longs,
) -> None:  # fmt: skip
    """Fill `run` with where the runs of flows begin and end, there and, if it differs, back.

    All in a loop of their own, and each run's first entry read, so that the processor waits for memory
    once and not for one run after the other.
    """
    complete, direct, both_ways, width, used = mode[0] > 0, mode[1] > 0, mode[2] > 0, mode[3], mode[4]
    size, dummy = len(cell), np.uint32(0)
    for f in range(begin, end):
        for turn in range(1 if both_ways else 2):
            if turn == 0:
                start, stop = row[source[f]], target[sink[f]]
            else:
                start, stop = row[sink[f]], target[source[f]]
            if shifted:
                key = minus[0, place[start, 0], place[stop, 0]] + minus[1, place[start, 1], place[stop, 1]]
                key += minus[2, place[start, 2], place[stop, 2]]
            else:
                if both_ways and start < stop:
                    start, stop = stop, start
                key = start * width + stop
            at = 4 * f + 2 * turn
            if complete:
                run[at], run[at + 1] = where[key], where[key + 1]
            elif both_ways and start == stop:
                run[at], run[at + 1] = 0, 0
            else:
                kept = ENTRY * place_of(direct, where, used - size, key)
                run[at] = where[kept + 1] % size
                run[at + 1] = run[at] + where[kept + 2]
    for f in range(begin, end):
        if run[4 * f] < size:
            dummy ^= cell[run[4 * f]]
    run[len(run) - 1] = dummy


@nb.njit(inline="always")
def _accumulate_delta(
    begin: int, end: int, count: int, source: Ints, sink: Ints, outs: Floats, backs: Floats, run: Longs,
    cables: bool, change: Floats, touched: CellArray, is_touched: Int8s,
    row: Longs, up_ptr: Longs, up_cell: CellArray, up_share: Floats,
    down_ptr: Longs, down_cell: CellArray, down_share: Floats,
    shifted: bool, place: Longs, plus: CellArray, cell: CellArray, share: Shares, both_ways: bool,
) -> int:  # fmt: skip
    """Add flows, whose runs were found, to the pending change of loads; how many cables that touches."""
    for f in range(begin, end):
        i, j, out, back = source[f], sink[f], outs[f], backs[f]
        if cables:
            count = _add_route(up_ptr[i], up_ptr[i + 1], up_cell, up_share, out,
                             change, touched, is_touched, count)  # fmt: skip
            count = _add_route(down_ptr[j], down_ptr[j + 1], down_cell, down_share, out,
                             change, touched, is_touched, count)  # fmt: skip
            count = _add_route(up_ptr[j], up_ptr[j + 1], up_cell, up_share, back,
                             change, touched, is_touched, count)  # fmt: skip
            count = _add_route(down_ptr[i], down_ptr[i + 1], down_cell, down_share, back,
                             change, touched, is_touched, count)  # fmt: skip
        first, last = run[4 * f], run[4 * f + 1]
        if not both_ways:
            count = _add_route(first, last, cell, share, out, change, touched, is_touched, count)
            first, last = run[4 * f + 2], run[4 * f + 3]
            count = _add_route(first, last, cell, share, back, change, touched, is_touched, count)
        elif shifted:
            start = row[i]
            one, two, three = plus[0, place[start, 0]], plus[1, place[start, 1]], plus[2, place[start, 2]]
            for e in range(np.uint64(first), np.uint64(last)):
                step = cell[e]
                to = one[step & _BYTE] + two[(step >> np.uint32(8)) & _BYTE]
                to = np.uint32(to + three[(step >> np.uint32(16)) & _BYTE] + (step >> np.uint32(24)))
                cable = to >> _ONE
                touched[count] = cable
                count += 1 - is_touched[cable]
                is_touched[cable] = 1
                part = np.float64(share[e])
                change[to] += out * part
                change[to ^ _ONE] += back * part
        else:
            flip = np.uint32(row[i] < row[j])
            for e in range(np.uint64(first), np.uint64(last)):
                to = np.uint32(cell[e] ^ flip)
                cable = to >> _ONE
                touched[count] = cable
                count += 1 - is_touched[cable]
                is_touched[cable] = 1
                part = np.float64(share[e])
                change[to] += out * part
                change[to ^ _ONE] += back * part
    return count


@nb.njit(cache=True, nogil=True)
def accumulate_flows(pair_routes: PairRoutes, pending: Flows, number: int, cables: bool, loads: Loads) -> int:
    """Put the first `number` flows into the pending change of loads; how many cables that touches."""
    source, sink, out, back, run = pending
    change, touched, is_touched = loads.change, loads.touched, loads.is_touched
    row, target, up_ptr, up_cell, up_share, down_ptr, down_cell, down_share = pair_routes.hosts
    shifted, place, minus, plus = (
        pair_routes.shifts.on,
        pair_routes.shifts.place,
        pair_routes.shifts.minus,
        pair_routes.shifts.plus,
    )
    where, cell, share, mode = pair_routes.table
    count, begin, complete = 0, int(np.int64(0)), mode[0] > 0
    while begin < number:
        end = number if complete else begin + 1
        if not complete:
            ready(pair_routes, source, sink, begin, end)
        _find_routes(
            begin, end, source, sink, run, row, target, shifted, place, minus, where, cell, mode
        )  # fmt: skip
        count = _accumulate_delta(
            begin, end, count, source, sink, out, back, run, cables, change, touched, is_touched,
            row, up_ptr, up_cell, up_share, down_ptr, down_cell, down_share,
            shifted, place, plus, cell, share, mode[2] > 0,
        )  # fmt: skip
        begin = end
    return count


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
def _clear_delta(change: Floats, touched: CellArray, is_touched: Int8s, count: int) -> None:
    for t in range(count):
        cable = np.uint64(touched[t])
        change[cable << np.uint64(1)] = 0.0
        change[(cable << np.uint64(1)) + np.uint64(1)] = 0.0
        is_touched[cable] = 0


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
    """A rank of the worker's, and the partner that it is to come near."""
    if len(part.hot_rank) > 0 and below(state, 100) < hot:
        at = below(state, len(part.hot_rank))
        return int(np.int64(part.hot_rank[at])), int(part.hot_partner[at])
    rank = int(np.int64(part.rank[below(state, len(part.rank))]))
    first = talk.indptr[rank]
    return rank, int(talk.partner[first + below(state, talk.indptr[rank + 1] - first)])


@nb.njit(cache=True, nogil=True)
def exchange_on_congestion(
    proposals: int,
    rules: Rules,
    talk: Talk,
    part: Part,
    pair_routes: PairRoutes,
    loads: Loads,
    pending: Flows,
    guest: Guest,
    hops: Hops,
    near: Near,
    assignment: SlotAssignment,
    state: State,
    counts: Longs,
) -> None:
    """Make so many proposals.

    A proposal takes a rank, one of its partners and a host near that partner, and exchanges the rank
    with a slot there.

    Parameters
    ----------
    counts : int64[3]
        Added to: proposals within the worker's part, those that passed the screen, those kept.
    """
    worker, worker_of_host, fixed, slot_host = (
        part.worker,
        part.worker_of_host,
        assignment.fixed,
        assignment.slot_host,
    )
    host_of_rank, rank_of_slot = assignment.host_of_rank, assignment.rank_of_slot
    state_of, change, touched, is_touched = loads.state, loads.change, loads.touched, loads.is_touched
    squarings, temperature, screen, hot, cables = rules
    source, sink, out, back, run = pending
    row, target, up_ptr, up_cell, up_share, down_ptr, down_cell, down_share = pair_routes.hosts
    shifted, place, minus, plus = (
        pair_routes.shifts.on,
        pair_routes.shifts.place,
        pair_routes.shifts.minus,
        pair_routes.shifts.plus,
    )
    where, cell, share, mode = pair_routes.table
    complete, alike = mode[0] > 0, mode[2] > 0 and not cables
    for _ in range(proposals if len(part.rank) > 0 else 0):
        rank, partner = _propose_rank(talk, part, hot, state)
        here = int(host_of_rank[rank])
        slot = propose_slot(state, near, host_of_rank[partner])
        there = int(slot_host[slot])
        if there == here or worker_of_host[there] != worker or worker_of_host[here] != worker:
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
        number = note_exchange(talk, host_of_rank, rank, other, here, there, pending)
        count, begin, step = 0, int(np.int64(0)), number
        if not complete and not ready(pair_routes, source, sink, begin, number):
            step = 1  # so little memory that not even the runs of one proposal are kept together
        while begin < number:
            if step == 1 and not complete:
                ready(pair_routes, source, sink, begin, begin + 1)
            _find_routes(
                begin, begin + step, source, sink, run, row, target, shifted, place, minus, where, cell, mode
            )  # fmt: skip
            count = _accumulate_delta(
                begin, begin + step, count, source, sink, out, back, run, cables, change, touched, is_touched,
                row, up_ptr, up_cell, up_share, down_ptr, down_cell, down_share,
                shifted, place, plus, cell, share, mode[2] > 0,
            )  # fmt: skip
            begin += step
        worse = _change_of_sum(state_of, change, touched, count, squarings)
        keep = worse < 0.0 or (worse == 0.0 and longer <= 0.0)
        if not keep and temperature > 0.0:
            keep = worse < temperature * exponential(state)
        if keep:
            counts[2] += 1
            _apply_delta(state_of, change, touched, count, squarings)
            swap_into(assignment, rank, slot)
        _clear_delta(change, touched, is_touched, count)


@nb.njit(cache=True, nogil=True)
def pair_heat(flows: Flows, pair_routes: PairRoutes, slope: Floats, loads: Loads, heat: Floats) -> None:
    """Fill `heat` (float64[n]) with how much of the sum each flow is worth, there and back.

    Parameters
    ----------
    slope : float64[c]
        Change of the sum for a byte on each cell.
    """
    source, sink, out, back, run = flows
    change, touched, is_touched = loads.change, loads.touched, loads.is_touched
    row, target, up_ptr, up_cell, up_share, down_ptr, down_cell, down_share = pair_routes.hosts
    shifted, place, minus, plus = (
        pair_routes.shifts.on,
        pair_routes.shifts.place,
        pair_routes.shifts.minus,
        pair_routes.shifts.plus,
    )
    where, cell, share, mode = pair_routes.table
    complete = mode[0] > 0
    for e in range(len(heat)):
        heat[e] = 0.0
        if source[e] == sink[e]:
            continue
        if not complete:
            ready(pair_routes, source, sink, e, e + 1)
        _find_routes(
            e, e + 1, source, sink, run, row, target, shifted, place, minus, where, cell, mode
        )  # fmt: skip
        count = _accumulate_delta(
            e, e + 1, 0, source, sink, out, back, run, True, change, touched, is_touched,
            row, up_ptr, up_cell, up_share, down_ptr, down_cell, down_share,
            shifted, place, plus, cell, share, mode[2] > 0,
        )  # fmt: skip
        for t in range(count):
            cable = np.uint64(touched[t])
            for to in (cable << np.uint64(1), (cable << np.uint64(1)) + np.uint64(1)):
                heat[e] += slope[to] * change[to]
        _clear_delta(change, touched, is_touched, count)
