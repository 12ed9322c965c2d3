"""Loads of links under exchanges of ranks: plain arrays in, plain arrays changed in place.

An exchange changes the flows of two ranks; each flow loads the cells of its pair of hosts
(`mapping.placement.kernels.pair_routes`). The changes are accumulated as a delta, which a search applies or
clears.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from mapping.placement.kernels.pair_routes import ENTRY, CellArray, PairRoutes, Shares, place_of, ready
from registry.model import Floats, Int8s, Ints, Longs

_ONE = np.uint32(1)
_BYTE = np.uint32(255)


class Talk(NamedTuple):
    """Partners of each rank; one entry per partner.

    Attributes
    ----------
    indptr : int64[ranks + 1]
    partner : int32[e]
    out, back : float64[e]
        Bytes that the rank sends to the partner and receives from it.
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
        Bytes that the current proposal adds to each cell; zero between proposals.
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
"""Columns of ``Loads.state``; the next column is for the opposite direction."""


class Flows(NamedTuple):
    """Flows between hosts, both directions; negative if they are removed.

    Attributes
    ----------
    source, target : int32[n]
        Hosts.
    out, back : float64[n]
        Bytes from source to target, and from target to source.
    run : int64[4 * n]
        Buffer for the begin and end of their routes.
    """

    source: Ints
    target: Ints
    out: Floats
    back: Floats
    run: Longs


@nb.njit(inline="always")
def _note(pending: Flows, count: int, host: int, at: int, out: float, back: float) -> int:
    pending.source[count], pending.target[count] = host, at
    pending.out[count], pending.back[count] = out, back
    return count + (host != at)


@nb.njit(cache=True, nogil=True)
def note_exchange(
    talk: Talk, host_of_rank: Ints, rank: int, other: int, here: int, there: int, pending: Flows
) -> int:
    """List the flows that an exchange of two ranks (-1: a free slot) changes; return their number."""
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
def find_routes(
    begin: int, end: int, source: Ints, sink: Ints, run: Longs, row: Longs, target: Longs,
    shifted: bool, place: Longs, minus: Longs, where: Longs, cell: CellArray, mode: Longs,
) -> None:  # fmt: skip
    """Fill `run` with the begin and end of the flows' routes, and of the opposite direction if it differs.

    A separate loop that reads the first entry of each route, so that the processor waits for memory once and
    not for one route after the other.
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
def accumulate_delta(
    begin: int, end: int, count: int, source: Ints, sink: Ints, outs: Floats, backs: Floats, run: Longs,
    cables: bool, change: Floats, touched: CellArray, is_touched: Int8s,
    row: Longs, up_ptr: Longs, up_cell: CellArray, up_share: Floats,
    down_ptr: Longs, down_cell: CellArray, down_share: Floats,
    shifted: bool, place: Longs, plus: CellArray, cell: CellArray, share: Shares, both_ways: bool,
) -> int:  # fmt: skip
    """Add flows, whose routes were found, to the delta of loads; return the number of cables changed."""
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
def accumulate_flows(
    begin: int, end: int, pair_routes: PairRoutes, pending: Flows, cables: bool, loads: Loads
) -> int:
    """Add flows `begin` to `end` to the delta of loads; return the number of cables changed.

    Parameters
    ----------
    cables : bool
        True if the hosts' own cables count.
    """
    source, sink, out, back, run = pending
    _, change, touched, is_touched = loads
    row, target, up_ptr, up_cell, up_share, down_ptr, down_cell, down_share = pair_routes.hosts
    shifts = pair_routes.origin.shifts
    shifted, place, minus, plus = shifts.on, shifts.place, shifts.minus, shifts.plus
    where, cell, share, mode = pair_routes.table
    count, complete = 0, mode[0] > 0
    while begin < end:
        until = end if complete else begin + 1
        if not complete:
            ready(pair_routes, source, sink, begin, until)
        find_routes(
            begin, until, source, sink, run, row, target, shifted, place, minus, where, cell, mode
        )  # fmt: skip
        count = accumulate_delta(
            begin, until, count, source, sink, out, back, run, cables, change, touched, is_touched,
            row, up_ptr, up_cell, up_share, down_ptr, down_cell, down_share,
            shifted, place, plus, cell, share, mode[2] > 0,
        )  # fmt: skip
        begin = until
    return count


@nb.njit(inline="always")
def clear_delta(change: Floats, touched: CellArray, is_touched: Int8s, count: int) -> None:
    """Set the changes of the first `count` touched cables to zero."""
    for t in range(count):
        cable = np.uint64(touched[t])
        change[cable << np.uint64(1)] = 0.0
        change[(cable << np.uint64(1)) + np.uint64(1)] = 0.0
        is_touched[cable] = 0
