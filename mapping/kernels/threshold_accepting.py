"""Threshold accepting on the worst link: plain arrays in, plain arrays changed in place.

Of a few hundred links per class the hottest are listed. An exchange changes some links, whose new values
are at hand; of the rest the worst is the first in the list that is not among them, or, where the list
has none, found by looking at all. So the maximum is exact after every exchange without a pass over all
links.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np

from mapping.kernels.congestion_search import Flows, Loads, note_exchange, pend_flows
from mapping.kernels.flow_cache import FlowCache
from mapping.kernels.hop_bytes_search import Guest, Seats, sit
from mapping.kernels.random_numbers import State, below
from registry.model import Bools, Floats, Int8s, Ints, Longs

SAME = 1e-6
"""Two values closer than this, relatively, are equal: the cache keeps shares of a flow in 24 bits."""
WORST, NETWORK, HOP_BYTES = 0, 1, 2
"""Levels of a value: seconds of the worst link, of the worst network link, hop-bytes."""


class HotLinks(NamedTuple):
    """What a link's seconds are made of, and the hottest of each class; lists are changed in place.

    Attributes
    ----------
    kind : uint8[m]
        Class: 0 a host's own cable, 1 a link of the network.
    background : float64[m]
        Bytes of others; they count where the placement itself loads the link.
    least : float
        Own bytes up to which a link counts as not loaded: what rounding leaves.
    limit : int
        Links of a class that are listed when its list is made; it may grow to four times as many.
    hot : int32[2, m]
        Listed links of each class.
    listed : int64[2]
        Their number.
    floor : float64[2]
        All links of more seconds than this are listed.
    is_listed : bool[m]
    """

    kind: Int8s
    background: Floats
    least: float
    limit: int
    hot: Ints
    listed: Longs
    floor: Floats
    is_listed: Bools


class Best(NamedTuple):
    """The best placement so far; changed in place.

    Attributes
    ----------
    host_of_rank : int32[ranks]
    value : float64[3]
        By level.
    """

    host_of_rank: Ints
    value: Floats


@nb.njit(cache=True, nogil=True)
def accept_below_thresholds(
    proposals: int,
    inner: int,
    thresholds: Floats,
    unit: Floats,
    guest: Guest,
    cache: FlowCache,
    loads: Loads,
    pending: Flows,
    links: HotLinks,
    seats: Seats,
    value: Floats,
    best: Best,
    state: State,
) -> int:
    """Make so many proposals and return how many were accepted.

    A proposal swaps the ranks on two random slots (or moves a rank to a free one). It is kept if, at the
    first level in which the new value differs, it is higher by less than the threshold.

    Parameters
    ----------
    inner : int
        Proposals before the threshold is lowered.
    thresholds : float64[2]
        First threshold and the lowering each time; not below 0.
    unit : float64[3]
        What a threshold of 1 is at each level.
    value : float64[3]
        Of the placement; changed in place.
    """
    slot_host, rank_of_slot, slot_of_rank = seats.slot_host, seats.rank_of_slot, seats.slot_of_rank
    new, accepted, ranks, slots = np.empty(3), 0, len(slot_of_rank), len(slot_host)
    for step in range(proposals):
        threshold = max(thresholds[0] - thresholds[1] * (step // inner), 0.0)
        rank, slot = below(state, ranks), below(state, slots)
        here, there = int(slot_host[slot_of_rank[rank]]), int(slot_host[slot])
        other = int(rank_of_slot[slot])
        if here == there or seats.fixed[rank] or (other >= 0 and seats.fixed[other]):
            continue
        number = note_exchange(guest, seats, rank, other, here, there, pending)
        touched = pend_flows(cache, pending, number, loads)
        _value_after(loads, links, touched, value, new)
        keep = _acceptable(value, new, threshold, unit)
        _settle(loads, links, touched, keep)
        if keep:
            accepted += 1
            value[:] = new
            sit(seats, rank, slot)
            if _is_less(value, best.value):
                best.value[:] = value
                best.host_of_rank[:] = seats.host_of_rank
    return accepted


@nb.njit(cache=True)
def list_hottest(loads: Loads, links: HotLinks, value: Floats) -> None:
    """Compute seconds, the lists of hottest links and the value from ``loads.bytes``."""
    seconds, own, background = loads.term, loads.bytes, links.background
    for link in range(len(seconds)):
        bytes = own[link] + background[link] if own[link] > links.least else 0.0
        seconds[link] = bytes * loads.scale[link]
    links.is_listed[:] = False
    for kind in range(2):
        _list_class(loads, links, kind)
    value[NETWORK] = _worst_listed(loads, links, 1)
    value[WORST] = max(value[NETWORK], _worst_listed(loads, links, 0))
    value[HOP_BYTES] = own.sum()


@nb.njit(cache=True)
def _list_class(loads: Loads, links: HotLinks, kind: int) -> None:
    seconds = loads.term
    for e in range(links.listed[kind]):
        links.is_listed[links.hot[kind, e]] = False
    of_class, floor, count = seconds[links.kind == kind], 0.0, 0
    if len(of_class) > links.limit:
        floor = np.partition(of_class, len(of_class) - links.limit - 1)[len(of_class) - links.limit - 1]
        if floor == of_class.max():  # so many are the worst that all of them must be listed
            floor *= 1.0 - SAME
    for link in range(len(seconds)):
        if links.kind[link] == kind and seconds[link] > floor:
            links.hot[kind, count] = link
            links.is_listed[link] = True
            count += 1
    links.listed[kind], links.floor[kind] = count, floor


@nb.njit(cache=True)
def _worst_listed(loads: Loads, links: HotLinks, kind: int) -> float:
    """Seconds of the worst link of a class, links that a proposal touches left out."""
    worst, floor = -1.0, links.floor[kind]
    for e in range(links.listed[kind]):
        link = links.hot[kind, e]
        if not loads.is_touched[link] and loads.term[link] > worst:
            worst = loads.term[link]
    if worst > floor or floor == 0.0:
        return max(worst, 0.0)
    for link in range(len(loads.term)):
        if links.kind[link] == kind and not loads.is_touched[link] and loads.term[link] > worst:
            worst = loads.term[link]
    return max(worst, 0.0)


@nb.njit(cache=True)
def _value_after(loads: Loads, links: HotLinks, touched: int, value: Floats, new: Floats) -> None:
    """Fill `new` with the value of the placement that the pending change leads to."""
    own, worst, network, more = 0.0, 0.0, 0.0, 0.0
    for t in range(touched):
        link = loads.touched[t]
        more += loads.change[link]
        seconds = _seconds(loads, links, link, loads.change[link])
        if links.kind[link] == 1:
            network = max(network, seconds)
        else:
            own = max(own, seconds)
    if network < value[NETWORK]:
        network = max(network, _worst_listed(loads, links, 1))
    worst = max(own, network)
    if worst < value[WORST]:
        worst = max(worst, _worst_listed(loads, links, 0))
    new[WORST], new[NETWORK], new[HOP_BYTES] = worst, network, value[HOP_BYTES] + more


@nb.njit(inline="always")
def _seconds(loads: Loads, links: HotLinks, link: int, change: float) -> float:
    bytes = loads.bytes[link] + change
    return (bytes + links.background[link]) * loads.scale[link] if bytes > links.least else 0.0


@nb.njit(inline="always")
def _acceptable(value: Floats, new: Floats, threshold: float, unit: Floats) -> bool:
    for level in range(3):
        if abs(new[level] - value[level]) > SAME * max(new[level], value[level]):
            return bool(new[level] - value[level] < threshold * unit[level])
    return True


@nb.njit(inline="always")
def _is_less(value: Floats, other: Floats) -> bool:
    for level in range(3):
        if abs(value[level] - other[level]) > SAME * max(value[level], other[level]):
            return bool(value[level] < other[level])
    return False


@nb.njit(cache=True)
def _settle(loads: Loads, links: HotLinks, touched: int, keep: bool) -> None:
    """Forget the pending change, or make it and list the links that it lifts above the floor."""
    for t in range(touched):
        link = loads.touched[t]
        if keep:
            seconds = _seconds(loads, links, link, loads.change[link])
            loads.bytes[link] += loads.change[link]
            loads.term[link] = seconds
            kind = links.kind[link]
            if seconds > links.floor[kind] and not links.is_listed[link]:
                links.hot[kind, links.listed[kind]] = link
                links.listed[kind] += 1
                links.is_listed[link] = True
        loads.change[link] = 0.0
        loads.is_touched[link] = False
    if keep:
        for kind in range(2):
            if links.listed[kind] > 4 * links.limit or _worst_is_low(loads, links, kind):
                _list_class(loads, links, kind)


@nb.njit(cache=True)
def _worst_is_low(loads: Loads, links: HotLinks, kind: int) -> bool:
    """Whether no listed link is above the floor any more."""
    floor = links.floor[kind]
    if floor == 0.0:
        return False
    worst = -1.0
    for e in range(links.listed[kind]):
        worst = max(worst, loads.term[links.hot[kind, e]])
    return bool(worst <= floor)
