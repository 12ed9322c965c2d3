"""Annealed pair exchange on hop-bytes: swaps of two ranks and moves to free slots, with incremental gains.

The temperature falls geometrically; its scale is the median traffic of a rank, which holds for guests
whose edges differ by orders of magnitude. The last rounds are a descent at temperature 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mapping.budget import Budget
from mapping.kernels.hop_bytes_search import exchange_pairs
from mapping.kernels.random_numbers import state_from
from mapping.problem import Problem
from mapping.refine import Found
from registry.model import Ints

ROUND = 16_384
"""Proposals between two looks at the clock: 2 to 15 ms."""
HOTTEST, COLDEST = 1.0, 0.08
"""First and last temperature, in bytes of the median rank times hops."""
FROZEN = 0.97
"""Part of the budget after which the temperature is 0."""


def refine(problem: Problem, start: Ints, budget: Budget, generator: np.random.Generator) -> Iterator[Found]:
    """Improve a placement by host index on hop-bytes."""
    guest = problem.guest(directed=len(problem.hops.code) == 2)
    best = Found(start, "hop_bytes", problem.hop_bytes(start))
    if len(guest.active) == 0 or problem.hosts == 1:
        return
    seats, state, value = problem.seats(start), state_from(generator), best.value
    while proposals := budget.claim(ROUND):
        heat = temperature(budget.fraction, HOTTEST, COLDEST) * problem.median_rank_bytes
        value += exchange_pairs(proposals, heat, guest, problem.hops, problem.near, seats, state)
        if value < best.value:
            value = problem.hop_bytes(seats.host_of_rank)
            best = Found(seats.host_of_rank.copy(), "hop_bytes", value)
        yield best


def temperature(fraction: float, hottest: float, coldest: float) -> float:
    """Temperature after a fraction of the budget."""
    if fraction >= FROZEN:
        return 0.0
    return float(hottest * (coldest / hottest) ** (fraction / FROZEN))
