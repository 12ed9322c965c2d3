"""Loads of links under exchanges of ranks: plain arrays in, plain arrays changed in place.

An exchange changes the flows of two ranks; each flow loads the cells of its pair of hosts
(`mapping.placement.kernels.pair_routes`). The changes are accumulated as a delta, which a search applies or
clears.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapping.kernels.decorators import inner, kernel
from mapping.placement.kernels.pair_routes import (
    BOTH_WAYS,
    COMPLETE,
    DIRECT,
    ENTRY,
    WIDTH,
    WRITTEN,
    CellArray,
    Lookup,
    Origin,
    place_of,
    ready,
)
from registry.model import Floats, Int8s, Ints, Longs

_ONE = np.uint32(1)
_BYTE = np.uint32(255)


class Talk(NamedTuple):
    """Partners of each rank; one entry per partner."""

    indptr: Longs
    """int64[ranks + 1]."""
    partner: Ints
    """int32[e]."""
    out: Floats
    back: Floats
    """float64[e]: Bytes that the rank sends to the partner and receives from it."""


class Loads(NamedTuple):
    """Load of every cell and its part of the sum; changed in place."""

    state: Floats
    """float64[c / 2, 8]: By cable (two cells, there and back): bytes, scale and term of both, side by side so
    that a cable is one line of the processor's cache; see `BYTES`, `SCALE`, `TERM`. A term is ``(bytes *
    scale) ** p``."""
    change: Floats
    """float64[c]: Bytes that the current proposal adds to each cell; zero between proposals."""
    touched: CellArray
    """uint32[c / 2 + 1]: Cables that the proposal changes."""
    is_touched: Int8s
    """uint8[c / 2]: 0 between proposals."""


BYTES, SCALE, TERM = 0, 2, 4
"""Columns of ``Loads.state``; the next column is for the opposite direction."""


class Flows(NamedTuple):
    """Flows between hosts, both directions; negative if they are removed."""

    source: Ints
    target: Ints
    """int32[n]: Hosts."""
    out: Floats
    back: Floats
    """float64[n]: Bytes from source to target, and from target to source."""
    run: Longs
    """int64[4 * n]: Buffer for the begin and end of their routes."""


@inner
def _note(pending: Flows, count: int, host: int, at: int, out: float, back: float) -> int:
    pending.source[count], pending.target[count] = host, at
    pending.out[count], pending.back[count] = out, back
    return count + (host != at)


@kernel
def note_exchange(
    talk: Talk, host_of_rank: Ints, rank: int, other: int, here: int, there: int, pending: Flows
) -> int:
    """List the flows that an exchange of two ranks (-1: a free slot) changes; return their number."""
    count = 0
    for e in range(talk.indptr[rank], talk.indptr[rank + 1]):
        at = int(host_of_rank[talk.partner[e]])
        then = here if talk.partner[e] == other else at
        count = _note(pending, count, here, at, -talk.out[e], -talk.back[e])
        count = _note(pending, count, there, then, talk.out[e], talk.back[e])
    if other >= 0:
        for e in range(talk.indptr[other], talk.indptr[other + 1]):
            if talk.partner[e] != rank:
                at = int(host_of_rank[talk.partner[e]])
                count = _note(pending, count, there, at, -talk.out[e], -talk.back[e])
                count = _note(pending, count, here, at, talk.out[e], talk.back[e])
    return count


@kernel
def accumulate_flows(
    begin: int, end: int, lookup: Lookup, origin: Origin | None, pending: Flows, cables: bool, loads: Loads
) -> int:
    """Add flows `begin` to `end` to the delta of loads; return the number of cables changed.

    Args:
        origin: None if the table is complete: the kernels that compute routes are not compiled then.
        cables: True if the hosts' own cables count.
    """
    if origin is not None:
        return _one_by_one(begin, end, lookup, origin, pending, cables, loads)
    return _accumulate(begin, end, lookup, pending, cables, loads, int(np.int64(0)))


@inner
def add_flows(
    begin: int, end: int, lookup: Lookup, origin: Origin | None, pending: Flows, cables: bool, loads: Loads
) -> int:
    """As `accumulate_flows`, for the few flows of a proposal in an inner loop.

    It is compiled as a part of the kernel that calls it, and computes missing routes of all flows first.
    """
    if origin is not None:
        whole = ready(lookup, origin, pending.source, pending.target, begin, end)
        if not whole:  # too little memory for the routes of all these flows together
            return _one_by_one(begin, end, lookup, origin, pending, cables, loads)
    return _accumulate(begin, end, lookup, pending, cables, loads, int(np.int64(0)))


@inner
def _one_by_one(
    begin: int, end: int, lookup: Lookup, origin: Origin, pending: Flows, cables: bool, loads: Loads
) -> int:
    """Add flows one after the other, each after its route is computed if the table lacks it."""
    count = int(np.int64(0))
    for f in range(begin, end):
        ready(lookup, origin, pending.source, pending.target, f, f + 1)
        count = _accumulate(f, f + 1, lookup, pending, cables, loads, count)
    return count


@inner
def _accumulate(
    begin: int, end: int, lookup: Lookup, pending: Flows, cables: bool, loads: Loads, count: int
) -> int:
    """Add flows whose routes are in the table to the delta; `count` cables are changed already."""
    hosts, table = lookup.hosts, lookup.table
    _find_routes(begin, end, lookup, pending)
    for f in range(begin, end):
        i, j, out, back = pending.source[f], pending.target[f], pending.out[f], pending.back[f]
        if cables:
            count = _add_cable(hosts.up_ptr, i, hosts.up_cell, hosts.up_share, out, loads, count)
            count = _add_cable(hosts.down_ptr, j, hosts.down_cell, hosts.down_share, out, loads, count)
            count = _add_cable(hosts.up_ptr, j, hosts.up_cell, hosts.up_share, back, loads, count)
            count = _add_cable(hosts.down_ptr, i, hosts.down_cell, hosts.down_share, back, loads, count)
        first, last = pending.run[4 * f], pending.run[4 * f + 1]
        if table.mode[BOTH_WAYS] == 0:
            count = _add_route(first, last, table.cell, table.share, out, loads, count)
            first, last = pending.run[4 * f + 2], pending.run[4 * f + 3]
            count = _add_route(first, last, table.cell, table.share, back, loads, count)
        elif lookup.shifts.on:
            place, plus = lookup.shifts.place[hosts.row[i]], lookup.shifts.plus
            one, two, three = plus[0, place[0]], plus[1, place[1]], plus[2, place[2]]
            for e in range(np.uint64(first), np.uint64(last)):
                step = table.cell[e]
                to = one[step & _BYTE] + two[(step >> np.uint32(8)) & _BYTE]
                to = np.uint32(to + three[(step >> np.uint32(16)) & _BYTE] + (step >> np.uint32(24)))
                count = _add_both_ways(to, table.share[e], out, back, loads, count)
        else:
            flip = np.uint32(hosts.row[i] < hosts.row[j])
            for e in range(np.uint64(first), np.uint64(last)):
                count = _add_both_ways(table.cell[e] ^ flip, table.share[e], out, back, loads, count)
    return count


@inner
def _find_routes(begin: int, end: int, lookup: Lookup, pending: Flows) -> None:
    """Fill ``pending.run`` with the begin and end of the flows' routes, and of the opposite direction.

    A separate loop that reads the first entry of each route, so that the processor waits for memory once and
    not for one route after the other.
    """
    hosts, table, shifts = lookup
    run, where, cell, mode = pending.run, table.where, table.cell, table.mode
    complete, both_ways, size, dummy = mode[COMPLETE] > 0, mode[BOTH_WAYS] > 0, len(cell), np.uint32(0)
    for f in range(begin, end):
        for turn in range(1 if both_ways else 2):
            if turn == 0:
                start, stop = hosts.row[pending.source[f]], hosts.target[pending.target[f]]
            else:
                start, stop = hosts.row[pending.target[f]], hosts.target[pending.source[f]]
            if shifts.on:
                place, minus = shifts.place, shifts.minus
                key = minus[0, place[start, 0], place[stop, 0]] + minus[1, place[start, 1], place[stop, 1]]
                key += minus[2, place[start, 2], place[stop, 2]]
            else:
                if both_ways and start < stop:
                    start, stop = stop, start
                key = start * mode[WIDTH] + stop
            at = 4 * f + 2 * turn
            if complete:
                run[at], run[at + 1] = where[key], where[key + 1]
            elif both_ways and start == stop:
                run[at], run[at + 1] = 0, 0
            else:
                kept = ENTRY * place_of(mode[DIRECT] > 0, where, mode[WRITTEN] - size, key)
                run[at] = where[kept + 1] % size
                run[at + 1] = run[at] + where[kept + 2]
    for f in range(begin, end):
        if run[4 * f] < size:
            dummy ^= cell[run[4 * f]]
    run[len(run) - 1] = dummy


@inner
def _add_both_ways(
    cell: np.uint32, share: np.float32, out: float, back: float, loads: Loads, count: int
) -> int:
    """Add shares of bytes to the delta of a cell and of the opposite one."""
    to, part = np.uint32(cell), np.float64(share)
    count = _touch(loads, to, count)
    loads.change[to] += out * part
    loads.change[to ^ _ONE] += back * part
    return count


@inner
def _add_cable(
    ptr: Longs, host: int, cell: CellArray, share: Floats, amount: float, loads: Loads, count: int
) -> int:
    return _add_route(ptr[host], ptr[host + 1], cell, share, amount, loads, count)


@inner
def _add_route(
    first: int,
    last: int,
    cell: CellArray,
    share: NDArray[np.floating],
    amount: float,
    loads: Loads,
    count: int,
) -> int:
    """Add bytes to the delta of the cells of a route; return the new number of cables changed."""
    for e in range(np.uint64(first), np.uint64(last)):
        count = _touch(loads, cell[e], count)
        loads.change[cell[e]] += amount * share[e]
    return count


@inner
def _touch(loads: Loads, cell: np.uint32, count: int) -> int:
    """List the cable of a cell among the `count` changed ones if it is not; return their new number."""
    cable = cell >> _ONE
    loads.touched[count] = cable
    count += 1 - loads.is_touched[cable]
    loads.is_touched[cable] = 1
    return count


@inner
def clear_delta(loads: Loads, count: int) -> None:
    """Set the changes of the first `count` touched cables to zero."""
    for t in range(count):
        cable = np.uint64(loads.touched[t])
        loads.change[cable << np.uint64(1)] = 0.0
        loads.change[(cable << np.uint64(1)) + np.uint64(1)] = 0.0
        loads.is_touched[cable] = 0
