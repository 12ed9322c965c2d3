"""Threshold accepting on the worst link: plain arrays in, plain arrays changed in place.

Links are numbered as cells (`mapping.placement.kernels.pair_routes`): two adjacent cells are the directions
of a cable.
The busiest few hundred per class are listed. An exchange changes some, whose new values are known; the worst
of the others is the first in the list that is not among them, or, if there is none, found by a pass over all
links. So the maximum is exact after every exchange, mostly without a pass over all links.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.kernels.decorators import allocating, inner, kernel
from mapping.kernels.random_numbers import State, below
from mapping.placement.kernels.hop_bytes_search import SlotAssignment, swap_into
from mapping.placement.kernels.link_loads import Flows, Loads, Talk, accumulate_flows, note_exchange
from mapping.placement.kernels.pair_routes import Lookup, Origin
from registry.model import Bools, Floats, Int8s, Ints, Longs

SAME = 1e-6
"""Two values closer than this, relatively, are equal: routes store shares of a flow in 24 bits."""
WORST, NETWORK, HOP_BYTES = 0, 1, 2
"""Levels of a value: seconds of the worst link, of the worst network link, hop-bytes."""


class Links(NamedTuple):
    """Load and seconds of every link, and the busiest of each class; changed in place."""

    kind: Int8s
    """uint8[c]: Class: 0 a host's own cable, 1 a link of the network."""
    scale: Floats
    """float64[c]: Seconds a byte."""
    background: Floats
    """float64[c]: Bytes of other jobs; they count if the placement itself loads the link."""
    bytes: Floats
    seconds: Floats
    """float64[c]: Load of the placement, and the time that the link needs with the load of others."""
    least: float
    """Bytes up to which a link counts as not loaded, because of rounding."""
    limit: int
    """Links of a class that are listed when its list is made; it may grow to four times as many."""
    hot: Ints
    """int32[2, c]: Listed links of each class."""
    listed: Longs
    """int64[2]: Their number."""
    floor: Floats
    """float64[2]: All links of more seconds than this are listed."""
    is_listed: Bools
    """bool[c]."""


class Best(NamedTuple):
    """The best placement so far; changed in place."""

    host_of_rank: Ints
    """int32[ranks]."""
    value: Floats
    """float64[3]: Value of each level."""


class Search(NamedTuple):
    """Arrays of one run; `value` (float64[3]) is that of the placement, by level."""

    talk: Talk
    lookup: Lookup
    loads: Loads
    pending: Flows
    links: Links
    assignment: SlotAssignment
    value: Floats
    best: Best
    state: State


@allocating
def accept_below_thresholds(
    search: Search, origin: Origin | None, proposals: int, inner: int, thresholds: Floats, unit: Floats
) -> int:
    """Make a number of proposals and return how many were accepted.

    A proposal swaps the ranks on two random slots (or moves a rank to a free one). It is kept if, at the
    first level in which the new value differs, it is higher by less than the threshold.

    Args:
        origin: None if the table of routes is complete.
        inner: Proposals before the threshold is lowered.
        thresholds (float64[2]): First threshold and the lowering each time; not below 0.
        unit (float64[3]): Size of a threshold of 1 at each level.
    """
    talk, lookup, loads, pending, links, assignment, value, best, state = search
    slot_host, _, rank_of_slot, slot_of_rank, _, _ = assignment
    new, accepted, ranks, slots = np.empty(3), 0, len(slot_of_rank), len(slot_host)
    for step in range(proposals):
        threshold = max(thresholds[0] - thresholds[1] * (step // inner), 0.0)
        rank, slot = below(state, ranks), below(state, slots)
        here, there = int(slot_host[slot_of_rank[rank]]), int(slot_host[slot])
        other = int(rank_of_slot[slot])
        if here == there or assignment.fixed[rank] or (other >= 0 and assignment.fixed[other]):
            continue
        number = note_exchange(talk, assignment.host_of_rank, rank, other, here, there, pending)
        touched = accumulate_flows(
            int(np.int64(0)), number, lookup, origin, pending, bool(np.bool_(True)), loads
        )
        _value_after(loads, links, touched, value, new)
        keep = _acceptable(value, new, threshold, unit)
        _settle(loads, links, touched, keep)
        if keep:
            accepted += 1
            value[:] = new
            swap_into(assignment, rank, slot)
            if _is_less(value, best.value):
                best.value[:] = value
                best.host_of_rank[:] = assignment.host_of_rank
    return accepted


@allocating
def list_hottest(loads: Loads, links: Links, value: Floats) -> None:
    """Compute seconds, the lists of hottest links and the value from ``links.bytes``."""
    for cell in range(len(links.bytes)):
        links.seconds[cell] = _seconds(links, cell, 0.0)
    links.is_listed[:] = False
    for kind in range(2):
        _list_class(links, kind)
    value[NETWORK] = _worst_listed(loads, links, 1)
    value[WORST] = max(value[NETWORK], _worst_listed(loads, links, 0))
    value[HOP_BYTES] = links.bytes.sum()


@allocating
def _list_class(links: Links, kind: int) -> None:
    """List the busiest links of a class afresh."""
    seconds = links.seconds
    for e in range(links.listed[kind]):
        links.is_listed[links.hot[kind, e]] = False
    of_class, floor, count = seconds[links.kind == kind], 0.0, 0
    if len(of_class) > links.limit:
        floor = np.partition(of_class, len(of_class) - links.limit - 1)[len(of_class) - links.limit - 1]
        if floor == of_class.max():  # so many are the worst that all of them must be listed
            floor *= 1.0 - SAME
    for cell in range(len(seconds)):
        if links.kind[cell] == kind and seconds[cell] > floor:
            links.hot[kind, count] = cell
            links.is_listed[cell] = True
            count += 1
    links.listed[kind], links.floor[kind] = count, floor


@kernel
def _worst_listed(loads: Loads, links: Links, kind: int) -> float:
    """Return the seconds of the worst link of a class, except the cables that the proposal changes."""
    worst, floor, seconds = -1.0, links.floor[kind], links.seconds
    for e in range(links.listed[kind]):
        cell = links.hot[kind, e]
        if seconds[cell] > worst and not loads.is_touched[cell >> 1]:
            worst = seconds[cell]
    if worst > floor or floor == 0.0:
        return max(worst, 0.0)
    for cell in range(len(seconds)):
        if links.kind[cell] == kind and seconds[cell] > worst and not loads.is_touched[cell >> 1]:
            worst = seconds[cell]
    return max(worst, 0.0)


@kernel
def _value_after(loads: Loads, links: Links, touched: int, value: Floats, new: Floats) -> None:
    """Fill `new` with the value of the placement after the proposal."""
    own, worst, network, more = 0.0, 0.0, 0.0, 0.0
    for t in range(touched):
        first = 2 * np.int64(loads.touched[t])
        for cell in range(first, first + 2):
            more += loads.change[cell]
            seconds = _seconds(links, cell, loads.change[cell])
            if links.kind[cell] == 1:
                network = max(network, seconds)
            else:
                own = max(own, seconds)
    if network < value[NETWORK]:
        network = max(network, _worst_listed(loads, links, 1))
    worst = max(own, network)
    if worst < value[WORST]:
        worst = max(worst, _worst_listed(loads, links, 0))
    new[WORST], new[NETWORK], new[HOP_BYTES] = worst, network, value[HOP_BYTES] + more


@inner
def _seconds(links: Links, cell: int, change: float) -> float:
    bytes = links.bytes[cell] + change
    return (bytes + links.background[cell]) * links.scale[cell] if bytes > links.least else 0.0


@inner
def _acceptable(value: Floats, new: Floats, threshold: float, unit: Floats) -> bool:
    for level in range(3):
        if abs(new[level] - value[level]) > SAME * max(new[level], value[level]):
            return bool(new[level] - value[level] < threshold * unit[level])
    return True


@inner
def _is_less(value: Floats, other: Floats) -> bool:
    for level in range(3):
        if abs(value[level] - other[level]) > SAME * max(value[level], other[level]):
            return bool(value[level] < other[level])
    return False


@allocating
def _settle(loads: Loads, links: Links, touched: int, keep: bool) -> None:
    """Clear the delta, or apply it and list the links that it lifts above the floor."""
    for t in range(touched):
        first = 2 * np.int64(loads.touched[t])
        for cell in range(first, first + 2):
            if keep and loads.change[cell] != 0.0:
                links.seconds[cell] = _seconds(links, cell, loads.change[cell])
                links.bytes[cell] += loads.change[cell]
                kind = links.kind[cell]
                if links.seconds[cell] > links.floor[kind] and not links.is_listed[cell]:
                    links.hot[kind, links.listed[kind]] = cell
                    links.listed[kind] += 1
                    links.is_listed[cell] = True
            loads.change[cell] = 0.0
        loads.is_touched[first >> 1] = 0
    if keep:
        for kind in range(2):
            if links.listed[kind] > 4 * links.limit or _worst_is_low(links, kind):
                _list_class(links, kind)


@kernel
def _worst_is_low(links: Links, kind: int) -> bool:
    """Return True if no listed link is above the floor any more."""
    floor = links.floor[kind]
    if floor == 0.0:
        return False
    worst = -1.0
    for e in range(links.listed[kind]):
        worst = max(worst, links.seconds[links.hot[kind, e]])
    return bool(worst <= floor)
