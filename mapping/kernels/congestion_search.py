"""Loads of single links under exchanges of two ranks: plain arrays in, plain arrays changed in place.

For searches that compare links one by one; `mapping.kernels.congestion_anneal` sums over links, and may
take some together.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
from numpy.typing import NDArray

from mapping.kernels.flow_cache import FlowCache, fill, place_of
from mapping.kernels.hop_bytes_search import Guest, Seats
from registry.model import Bools, Floats, Ints


class Loads(NamedTuple):
    """Load of every link and its part of the sum; changed in place.

    Attributes
    ----------
    bytes : float64[m]
    scale, term : float64[m]
        What a search makes of a link's load; both are its own matter.
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
