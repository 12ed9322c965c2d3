"""Further orders of the digits of rank numbers, as long as they help.

The strategy ``digit-permutation`` tries orders for some tenths of a second. On structured applications a
better order is worth more than exchanges of single ranks; on others no order is near a good placement. So
this refiner anneals one order after another on hop-bytes, keeps the best by hop-bytes or by congestion, and
ends as soon as none of the first is near the start, or none of the last was better than the best.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mapping.deadline import Deadline
from mapping.placement.partition.digit_orders import digit_orders
from mapping.placement.problem.objective import score
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import Candidate
from mapping.placement.refine.domains import Team
from registry.errors import UnknownName
from registry.model import Ints


class Way(NamedTuple):
    """How orders are searched.

    Attributes
    ----------
    tries : int
        Orders that are tried from each random one.
    patience : int
        The search ends after so many random orders that led to nothing better.
    """

    tries: int
    patience: int


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

    Parameters
    ----------
    on : str
        ``hop-bytes`` or ``congestion``: by which the best order is chosen. Each is annealed on hop-bytes.
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
