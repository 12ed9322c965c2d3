"""Annealed permutation of the digits of rank numbers: plain arrays in, plain arrays changed in place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.kernels.decorators import inner, kernel
from mapping.kernels.random_numbers import State, below, exponential
from mapping.placement.kernels.hop_bytes_search import Hops
from registry.model import Floats, Ints, Longs


class HostDigits(NamedTuple):
    """Digits of the positions of hosts, most significant first."""

    radix: Longs
    stride: Longs
    """int64[m]: A position is the sum of digit times stride; digit ``k`` is below ``radix[k]``."""
    host: Ints
    """int32[ranks]: Host of each position."""


class Pairs(NamedTuple):
    """Pairs of ranks and their bytes: int32[e], int32[e] and float64[e]."""

    source: Ints
    target: Ints
    bytes: Floats


class DigitOrder(NamedTuple):
    """How digits of rank numbers become digits of positions; changed in place."""

    host_digit: Longs
    """int64[m]: Digit of the position that each digit of the rank number gives, the most significant first.
    """
    mirror: Longs
    """int64[m]: Bit ``j`` of ``mirror[i]`` is set if digit ``i`` runs backwards where the more significant
    digit ``j`` is odd."""


class Room(NamedTuple):
    """Buffers: the order kept last, the order that is tried, those of `place_by_digits`, and a placement."""

    present: DigitOrder
    tried: DigitOrder
    counter: Longs
    host_of_rank: Ints


@kernel
def place_by_digits(digits: HostDigits, order: DigitOrder, counter: Longs, host_of_rank: Ints) -> None:
    """Fill in the host of each rank.

    Ranks are counted through as by an odometer: at most two digits change on average, and no division is
    needed.

    Args:
        counter (int64[2, m + 1]): Buffer for the digits of a rank, and for the position up to each digit.
    """
    count, odd, first = len(digits.radix), np.int64(0), 0
    digit, position = counter[0], counter[1]
    digit[:] = 0
    position[0] = 0
    for rank in range(len(host_of_rank)):
        for i in range(first, count):
            to, value, bits = order.host_digit[i], digit[i], odd & order.mirror[i]
            while bits > 0:
                value = digits.radix[to] - 1 - value
                bits &= bits - 1
            position[i + 1] = position[i] + value * digits.stride[to]
        host_of_rank[rank] = digits.host[position[count]]
        first = count - 1
        while first > 0 and digit[first] == digits.radix[order.host_digit[first]] - 1:
            odd &= ~(np.int64(1) << first)
            digit[first] = 0
            first -= 1
        odd ^= np.int64(1) << first
        digit[first] += 1


@kernel
def anneal_digits(
    proposals: int,
    hottest: float,
    digits: HostDigits,
    pairs: Pairs,
    hops: Hops,
    best: DigitOrder,
    room: Room,
    state: State,
) -> float:
    """Try changes of an order of digits; return the hop-bytes of the best order, which is left in `best`.

    A proposal exchanges two digits, moves one, or mirrors one or several adjacent ones by another. It is
    accepted if it loses less than the temperature times Exp(1).

    Args:
        hottest: First temperature, as part of the hop-bytes; it falls to 0 quadratically.
    """
    present, tried, counter, host_of_rank = room
    _copy(best, present)
    place_by_digits(digits, present, counter, host_of_rank)
    now = _hop_bytes(pairs, hops, host_of_rank, np.inf)
    lowest = now
    for number in range(proposals):
        _copy(present, tried)
        if not _propose(tried, state):
            continue
        heat = hottest * lowest * (1.0 - number / proposals) ** 2
        most = now + heat * exponential(state)
        place_by_digits(digits, tried, counter, host_of_rank)
        value = _hop_bytes(pairs, hops, host_of_rank, most)
        if value <= most:
            _copy(tried, present)
            now = value
            if value < lowest:
                _copy(tried, best)
                lowest = value
    return lowest


@inner
def _copy(order: DigitOrder, to: DigitOrder) -> None:
    for i in range(len(order.host_digit)):
        to.host_digit[i], to.mirror[i] = order.host_digit[i], order.mirror[i]


@inner
def _propose(order: DigitOrder, state: State) -> bool:
    """Change an order at random; return False if it stays the same."""
    count = len(order.host_digit)
    kind, one, other = below(state, 4), below(state, count), below(state, count)
    if kind == 1:
        moved, step = order.host_digit[one], 1 if one < other else -1
        for i in range(one, other, step):
            order.host_digit[i] = order.host_digit[i + step]
        order.host_digit[other] = moved
    if kind in (0, 3):
        order.host_digit[one], order.host_digit[other] = order.host_digit[other], order.host_digit[one]
    if kind >= 2 and one != other:
        low, first = min(one, other), max(one, other)
        if below(state, 2) == 0:  # an axis is folded by its next digit
            low = first - 1
        last = first
        while last < count - 1 and below(state, 2) == 0:
            last += 1
        for i in range(first, last + 1):
            order.mirror[i] ^= np.int64(1) << low
    return one != other


@inner
def _hop_bytes(pairs: Pairs, hops: Hops, host_of_rank: Ints, most: float) -> float:
    """Return the hop-bytes of a placement, or a part of them above `most`."""
    source, target, size = pairs
    group, code, value, total = hops.group, hops.code[0], hops.value, 0.0
    for e in range(len(source)):
        here, there = host_of_rank[source[e]], host_of_rank[target[e]]
        if here != there:
            total += size[e] * value[code[group[here], group[there]]]
            if total > most:
                break
    return total
