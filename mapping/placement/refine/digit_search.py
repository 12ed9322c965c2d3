"""Further orders of the digits of rank numbers, as long as they help.

The strategy ``digit-permutation`` tries orders for some tenths of a second. On structured applications a
better order is worth more than exchanges of single ranks; on others no order is near a good placement. So
this refiner anneals one order after another, and ends as soon as none of the first is near the start, or none
of the last was better than the best.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from mapping.deadline import Deadline
from mapping.placement.partition.digit_orders import digit_orders
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import Candidate
from mapping.placement.refine.domains import Team
from registry.model import Ints

TRIES = 2_000
"""Orders that are tried from each random one."""
NEAR, FIRST = 1.1, 4
"""The search ends if none of the first ones has fewer hop-bytes than this many times the start's."""
PATIENCE = 32
"""The search ends after so many random orders that led to nothing better."""
SAME = 1e-9


def refine(
    problem: Problem, start: Ints, deadline: Deadline, generator: np.random.Generator
) -> Iterator[Candidate]:
    """Improve a placement on hop-bytes by orders of digits; with pinned ranks nothing is tried."""
    if problem.ranks < 2 or len(problem.bytes) == 0 or bool(problem.pinned.any()):
        return
    first = problem.hop_bytes(start)
    best, nearest, since, tried = Candidate(start, "hop_bytes", first), np.inf, 0, 0
    turns = itertools.cycle(digit_orders(problem, generator))
    with Team(deadline.workers) as team:
        while since < PATIENCE and (tried < FIRST or nearest <= NEAR * first):
            proposals = deadline.claim(TRIES * team.workers)
            if not proposals:
                return
            orders = next(turns)
            runs = [orders.begin(2, generator) for _ in range(team.workers)]
            tries = max(proposals // team.workers, 1)
            found = team.run(lambda worker: orders.anneal(runs[worker], tries))  # noqa: B023 (run at once)
            for value, hosts in found:
                nearest, since = min(nearest, value), since + 1
                if value < best.value * (1.0 - SAME):
                    best, since = Candidate(hosts, "hop_bytes", value), 0
            tried += team.workers
            yield best
