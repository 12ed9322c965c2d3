"""Numbers of ranks and of hosts as digits, and orders of digits, of which the best is searched.

Applications number their ranks row by row over a grid, and exchange along its axes or, in transforms and
collectives, with ranks whose number differs in one bit. Hosts have such numbers, too: coordinates of a torus,
or levels of a hierarchy of switches. Both are written with prime radices, and digits of one become digits of
the other (an index-digit permutation: Fraser, "Array permutation by index-digit permutation", Journal of the
ACM 23, 1976). In addition a digit may run backwards where a more significant one is odd, as in a reflected
Gray code: so a long axis of ranks is folded into several short ones of hosts. Whole blocks of ranks change
places at once, which exchanges of single ranks do not find.

If the traffic shows that ranks form a grid (`mapping.placement.methods.digits`), their numbers row by
row in it are used as well: then it does not matter how the application numbers its ranks.

Recognition of the grid that ranks form by their traffic, however they are numbered.

Further orders of the digits of rank numbers, as long as they help.

The strategy ``digit-permutation`` tries orders for some tenths of a second. On structured applications a
better order is worth more than exchanges of single ranks; on others no order is near a good placement. So
this refiner anneals one order after another on hop-bytes, keeps the best by hop-bytes or by congestion, and
ends as soon as none of the first is near the start, or none of the last was better than the best.

Digits of rank numbers permuted onto digits of hosts' coordinates.

Orders of digits (`mapping.placement.methods.digits`) are annealed on hop-bytes, from several starts;
the first is ranks in order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mapping.deadline import Deadline
from mapping.kernels.random_numbers import State, state_from
from mapping.placement.candidate import Candidate
from mapping.placement.kernels.digit_permutation import (
    DigitOrder,
    HostDigits,
    Pairs,
    Room,
    anneal_digits,
    place_by_digits,
)
from mapping.placement.methods.bisection import hierarchy, levels_of, prime_factors
from mapping.placement.methods.cores import Team
from mapping.placement.objective import score
from mapping.placement.problem import Problem
from mapping.routing.tori import product_coordinates, torus_coordinates
from registry.errors import UnknownName
from registry.model import Floats, Ints, Longs

MOST_PAIRS = 1_000_000
"""Most pairs of ranks that are looked at: a tenth of a second."""
CLASSES = 8
"""Most classes of weights that are tried, each with all heavier ones."""
EQUAL = 1e-9
"""Two weights closer than this, relatively, are equal: sums of the same bytes in another order."""


def rank_coordinates(problem: Problem) -> Longs | None:
    """Return coordinates (int64[ranks, d]) of ranks in a grid that their heaviest pairs form, or None.

    A grid is a product of lines, rings and complete graphs (`mapping.routing.tori`). Ranks exchange more
    across faces of a grid than across edges and corners, and than in collectives: so pairs are sorted by
    their bytes in both directions, and cut where these fall most. The heaviest pairs that form a grid count.
    """
    ranks = problem.ranks
    if len(problem.bytes) > MOST_PAIRS:
        return None
    low, high, size = problem.both_ways
    if len(size) < ranks - 1:
        return None
    order = np.argsort(-size, kind="stable")
    links = np.stack((low[order], high[order]), axis=1).astype(np.int64)
    for end in _cuts(size[order], ranks - 1):
        places = product_coordinates(ranks, links[:end])
        if places is not None:
            return places
    return None


def _cuts(size: Floats, fewest: int) -> list[int]:
    """Return the numbers of heaviest pairs to try, ascending: all, and up to where sizes fall most.

    Args:
        size (float64[pairs]): Descending.
        fewest: Least number of pairs.
    """
    falls = size[:-1] / size[1:]
    ends = np.flatnonzero(falls > 1 + EQUAL) + 1
    ends = ends[ends >= fewest]
    largest = ends[np.argsort(-falls[ends - 1], kind="stable")[: CLASSES - 1]]
    return [*np.sort(largest).tolist(), len(size)]


PROPOSALS = 8_000
"""Most orders that are tried at once."""
WORK, CHANGES = 20_000_000, 3
"""Most pairs and digits of ranks that are looked at: some tenths of a second; and digits for each rank."""
SAMPLE = 4_096
"""Most pairs whose hop-bytes are compared while orders are tried."""
HOTTEST = 0.005
"""First temperature, as part of the hop-bytes."""
MOST_AXIS_ORDERS = 24
"""Most orders of the axes of a grid of ranks that are tried."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DigitOrders:
    """Orders of the digits of one numbering of ranks, and how to search for the best."""

    problem: Problem
    number: Ints
    """int32[ranks]: Number of each rank."""
    sides: tuple[int, ...]
    """As from `host_sides`."""
    host: Ints
    """int32[ranks]: Host of each position."""
    pairs: Pairs
    """Numbers of ranks that exchange bytes; some of all pairs, if they are many."""

    @property
    def proposals(self) -> int:
        """Number of orders that are tried in some tenths of a second."""
        return min(PROPOSALS, WORK // (len(self.pairs.bytes) + CHANGES * self.problem.ranks))

    def begin(self, start: int, generator: np.random.Generator) -> OrderRun:
        """Return a run from an order of digits: as they are for the start 0, else a random one."""
        digits = host_digits(self.sides, self.host, start, generator)
        order = _in_order(len(digits.radix))
        if start > 0:
            order.host_digit[:] = generator.permutation(len(digits.radix))
        return OrderRun(digits, order, state_from(generator))

    def anneal(self, run: OrderRun, tries: int) -> tuple[float, Ints]:
        """Try orders of digits from a run's; return the hop-bytes of the best and its placement."""
        digits, order, state = run
        room = _room(len(digits.radix), self.problem.ranks)
        anneal_digits(tries, HOTTEST, digits, self.pairs, self.problem.hops, order, room, state)
        host_of_number = np.empty(self.problem.ranks, np.int32)
        place_by_digits(digits, order, room.counter, host_of_number)
        found = host_of_number[self.number]
        return self.problem.hop_bytes(found), found


class OrderRun(NamedTuple):
    """Digits of positions, the order of digits to begin with, and the state of random numbers."""

    digits: HostDigits
    order: DigitOrder
    state: State


def digit_orders(problem: Problem, generator: np.random.Generator) -> list[DigitOrders]:
    """Return what orders can be searched: of ranks as they are numbered, and as numbered in their grid."""
    sides, host = host_sides(problem)
    found = []
    for number in problem.memo.once("rank numbers", lambda: rank_numbers(problem, host)):
        source, target, size = _sample(*_pairs(problem), generator)
        pairs = Pairs(number[source], number[target], size)
        found.append(DigitOrders(problem=problem, number=number, sides=sides, host=host, pairs=pairs))
    return found


def rank_numbers(problem: Problem, host: Ints) -> list[Ints]:
    """Return how ranks are numbered (int32[ranks] each): in order, and row by row in their grid, if any.

    Of the orders of the grid's axes the one with the fewest hop-bytes counts.

    Args:
        host (int32[ranks]): Host of each position.
    """
    in_order, places = np.arange(problem.ranks, dtype=np.int32), rank_coordinates(problem)
    if places is None:
        return [in_order]
    sizes, axes = places.max(axis=0) + 1, range(places.shape[1])
    orders = map(list, itertools.islice(itertools.permutations(axes), MOST_AXIS_ORDERS))
    numbers = [np.ravel_multi_index(tuple(places.T[order]), tuple(sizes[order])) for order in orders]
    number = min(numbers, key=lambda number: problem.hop_bytes(host[number])).astype(np.int32)
    return [in_order] if np.array_equal(number, in_order) else [in_order, number]


def _sample(
    source: Ints, target: Ints, size: Floats, generator: np.random.Generator
) -> tuple[Ints, Ints, Floats]:
    """Return pairs drawn in proportion to their bytes, each with the same bytes; all of them if they are few.

    Many pairs of a structured application are alike, so that some show how good an order is.
    """
    if len(size) <= SAMPLE:
        return source, target, size
    drawn = generator.choice(len(size), SAMPLE, p=size / size.sum())
    return source[drawn], target[drawn], np.full(SAMPLE, size.sum() / SAMPLE)


def _pairs(problem: Problem) -> tuple[Ints, Ints, Floats]:
    """Return pairs of ranks and their bytes, both directions as one if their distances are the same."""
    if len(problem.hops.code) == 1:
        return problem.both_ways
    return problem.source, problem.target, problem.bytes


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

    Args:
        start: Number of the start: largest factors first for 0, smallest first for 1, random order for
            others.
    """
    radix: list[int] = []
    for side in sides:
        primes = prime_factors(side)[::-1]
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


def _in_order(count: int) -> DigitOrder:
    return DigitOrder(np.arange(count, dtype=np.int64), np.zeros(count, np.int64))


def _room(count: int, ranks: int) -> Room:
    return Room(
        _in_order(count), _in_order(count), np.zeros((2, count + 1), np.int64), np.empty(ranks, np.int32)
    )


class Way(NamedTuple):
    """How orders are searched."""

    tries: int
    """Orders that are tried from each random one."""
    patience: int
    """The search ends after so many random orders that led to nothing better."""


HOP_BYTES, CONGESTION = "hop-bytes", "congestion"
WAYS = {HOP_BYTES: Way(2_000, 32), CONGESTION: Way(200, 512)}
"""How orders are searched, by what is lowered. Orders with about equal hop-bytes differ in congestion: more
and shorter searches find more of them."""
NEAR, FIRST = 1.1, 4
"""The search ends if none of the first ones has less than this many times what the start has."""
SAME = 1e-9


def refine(
    problem: Problem,
    start: Ints,
    deadline: Deadline,
    generator: np.random.Generator,
    *,
    on: str = HOP_BYTES,
) -> Iterator[Candidate]:
    """Improve a placement by orders of digits; with pinned ranks nothing is tried.

    Args:
        on: ``hop-bytes`` or ``congestion``: by which the best order is chosen. Each is annealed on hop-bytes.
    """
    if on not in WAYS:
        raise UnknownName("metric of digit-search", on, tuple(WAYS))
    if problem.ranks < 2 or len(problem.bytes) == 0 or bool(problem.pinned.any()):
        return
    way, best = WAYS[on], _candidate(problem, problem.hop_bytes(start), start, on)
    first, nearest, since, tried = best.value, np.inf, 0, 0
    turns = itertools.cycle(digit_orders(problem, generator))
    with Team(deadline.workers) as team:
        while since < way.patience and (tried < FIRST or nearest <= NEAR * first):
            proposals = deadline.claim(way.tries * team.workers)
            if not proposals:
                return
            orders = next(turns)
            runs = [orders.begin(2, generator) for _ in range(team.workers)]
            tries = max(proposals // team.workers, 1)
            found = team.run(
                lambda worker: _candidate(problem, *orders.anneal(runs[worker], tries), on)  # noqa: B023 (run at once)
            )
            for candidate in found:
                nearest, since = min(nearest, candidate.value), since + 1
                if _is_better(candidate, best):
                    best, since = candidate, 0
            tried += team.workers
            yield best


def _candidate(problem: Problem, hop_bytes: float, hosts: Ints, on: str) -> Candidate:
    """Return a placement with its hop-bytes or its congestion."""
    if on == HOP_BYTES:
        return Candidate(hosts, "hop_bytes", hop_bytes)
    found = score(problem, hosts)
    return Candidate(hosts, "congestion_seconds", found.congestion_seconds, found.network_congestion_seconds)


def _is_better(one: Candidate, other: Candidate) -> bool:
    """Return True if a candidate is better, or as good with a better worst link of the network."""
    network, before = one.network_congestion_seconds, other.network_congestion_seconds
    below = 1.0 - SAME
    return one.value < other.value * below or (one.value <= other.value and network < before * below)


PER_START = 500
"""About how many orders are tried from each start."""


def place_ranks(problem: Problem, generator: np.random.Generator) -> Ints:
    """Place ranks by the permutation of digits with the fewest hop-bytes."""
    best, lowest = problem.slot_host[: problem.ranks].copy(), np.inf
    if problem.ranks < 2 or len(problem.bytes) == 0:
        return best
    for orders in digit_orders(problem, generator):
        starts = max(orders.proposals // PER_START, 1)
        for start in range(starts):
            run = orders.begin(start, generator)
            value, found = orders.anneal(run, orders.proposals // starts)
            if value < lowest:
                best, lowest = found, value
    return best
