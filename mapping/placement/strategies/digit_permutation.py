"""Digits of rank numbers permuted onto digits of hosts' coordinates.

Applications number their ranks row by row over a grid, and exchange along its axes or, in transforms and
collectives, with ranks whose number differs in one bit. Hosts have such numbers, too: coordinates of a torus,
or levels of a hierarchy of switches. Both are written with prime radices, and digits of one become digits of
the other (an index-digit permutation: Fraser, "Array permutation by index-digit permutation", Journal of the
ACM 23, 1976). In addition a digit may run backwards where a more significant one is odd, as in a reflected
Gray code: so a long axis of ranks is folded into several short ones of hosts. Whole blocks of ranks change
places at once, which exchanges of single ranks do not find.

Orders of digits are annealed on hop-bytes, from several starts; the first is ranks in order.
"""

from __future__ import annotations

import numpy as np

from mapping.kernels.random_numbers import state_from
from mapping.placement.kernels.digit_permutation import (
    DigitOrder,
    HostDigits,
    Pairs,
    Room,
    anneal_digits,
    place_by_digits,
)
from mapping.placement.problem.problem import Problem
from mapping.placement.strategies.multilevel import hierarchy
from mapping.placement.strategies.spectral import levels_of
from mapping.routing.torus import torus_coordinates
from registry.model import Ints

PROPOSALS, PER_START = 8_000, 500
"""Most orders that are tried, and about how many from each start."""
WORK = 30_000_000
"""Most pairs and digits of ranks that are looked at: some tenths of a second."""
HOTTEST = 0.005
"""First temperature, as part of the hop-bytes."""


def place_ranks(problem: Problem, generator: np.random.Generator) -> Ints:
    """Place ranks by the permutation of digits with the fewest hop-bytes."""
    host_of_rank, lowest = problem.slot_host[: problem.ranks].copy(), np.inf
    if problem.ranks < 2 or len(problem.bytes) == 0:
        return host_of_rank
    pairs, (sides, host) = Pairs(problem.source, problem.target, problem.bytes), host_sides(problem)
    proposals = min(PROPOSALS, WORK // (len(problem.bytes) + problem.ranks * problem.ranks.bit_length()))
    starts = max(proposals // PER_START, 1)
    for number in range(starts):
        digits = host_digits(sides, host, number, generator)
        count = len(digits.radix)
        order, room = _in_order(count), _room(count, problem.ranks)
        if number > 0:
            order.host_digit[:] = generator.permutation(count)
        state, tries = state_from(generator), proposals // starts
        value = anneal_digits(tries, HOTTEST, digits, pairs, problem.hops, order, room, state)
        if value < lowest:
            place_by_digits(digits, order, room.digit, host_of_rank)
            lowest = value
    return host_of_rank


def host_sides(problem: Problem) -> tuple[tuple[int, ...], Ints]:
    """Return the sides of the grid that the used hosts form, and int32[ranks]: the host of each position.

    Positions are slots sorted by the hosts' coordinates. If these are not as many as ranks, the same number
    at each point of a full grid, there is one side: the number of ranks.
    """
    places = _places(problem)[problem.slot_host]
    order = np.lexsort(tuple(places.T[::-1])) if places.shape[1] else np.arange(len(places))
    sides = tuple(int(side) for side in places.max(axis=0, initial=0) + 1)
    host = problem.slot_host[order[: problem.ranks]].astype(np.int32)
    count = np.unique(places, axis=0, return_counts=True)[1]
    full = len(places) == problem.ranks and len(count) == np.prod(sides) and bool((count == count[0]).all())
    return (*sides, int(count[0])) if full else (problem.ranks,), host


def host_digits(sides: tuple[int, ...], host: Ints, start: int, generator: np.random.Generator) -> HostDigits:
    """Return the digits of positions: the prime factors of each side.

    Parameters
    ----------
    start : int
        Number of the start: largest factors first for 0, smallest first for 1, random order for others.
    """
    radix: list[int] = []
    for side in sides:
        primes = _primes(side)
        orders = primes, primes[::-1], generator.permutation(primes).astype(int).tolist()
        radix += orders[min(start, 2)]
    below = np.r_[np.cumprod(radix[::-1], dtype=np.int64)[::-1], 1][1:]
    return HostDigits(np.array(radix, np.int64), below.astype(np.int64), host)


def _places(problem: Problem) -> Ints:
    """Return int32[h, d]: coordinates of the hosts in a torus or mesh, else in the hierarchy of hosts."""
    torus = torus_coordinates(problem.routes.fabric)
    if torus is not None:
        return torus.of_hosts(problem.routes.fabric, problem.routes.hosts)
    return levels_of(hierarchy(problem), problem.allocation.slots.astype(np.int64))


def _primes(number: int) -> list[int]:
    """Return the prime factors of a number, the largest first."""
    found: list[int] = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return ([number] if number > 1 else []) + found[::-1]


def _in_order(count: int) -> DigitOrder:
    return DigitOrder(np.arange(count, dtype=np.int64), np.zeros(count, np.int64))


def _room(count: int, ranks: int) -> Room:
    return Room(_in_order(count), _in_order(count), np.zeros(count, np.int64), np.empty(ranks, np.int32))
