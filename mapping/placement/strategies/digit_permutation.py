"""Digits of rank numbers permuted onto digits of hosts' coordinates.

Orders of digits (`mapping.placement.partition.digit_orders`) are annealed on hop-bytes, from several starts;
the first is ranks in order.
"""

from __future__ import annotations

import numpy as np

from mapping.placement.partition.digit_orders import digit_orders
from mapping.placement.problem.problem import Problem
from registry.model import Ints

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
