"""OHTMA: ranks by volume onto hosts by compactness, then exchanges of pairs with backtracking.

Source: Li et al., "OHTMA: an optimized heuristic topology-aware mapping algorithm on the Tianhe-3
exascale supercomputer prototype", 2020, section 4.3, Algorithm 1. Lines 1 to 19, the first mapping, are
read as printed; for lines 20 to 36 and their corrections see `mapping.placement.refine.ohtma_exchange`.

Line 7
    ``A[p, i]`` is what p sends to i: a rank that only receives comes last.
Line 11
    ``B[n, i]`` is the problem's distance from n to i: the paper counts switches, and any convention of
    `mapping.distances.distances` will do. A processor is a slot, and slots of one host are at distance 0.
    Sums over unselected processors are over all slots of the allocation, of which the first mapping picks as
    many as there are ranks.
Line 13, 14
    Ties go to the lower rank and the lower host.
"""

from __future__ import annotations

import numpy as np

from mapping.placement.kernels.ohtma import first_mapping
from mapping.placement.kernels.pair_gain import partners
from mapping.placement.problem.problem import Problem
from mapping.placement.refine.ohtma_exchange import EXACT, PRINTED, exchange
from registry.errors import UnknownName
from registry.model import Ints

NONE = "none"
EXCHANGES = (EXACT, PRINTED, NONE)


def place_ranks(
    problem: Problem, generator: np.random.Generator, *, gain: str = EXACT, rounds: int = 0
) -> Ints:
    """Place ranks by Algorithm 1.

    Parameters
    ----------
    gain : str
        Gain of an exchange: ``exact`` or ``printed``; ``none``: the first mapping alone, for use with the
        refiner ``ohtma-exchange`` under a limit.
    rounds : int
        Number of exchanges; 0: half the ranks, as in the paper (section 5.2).
    """
    if gain not in EXCHANGES:
        raise UnknownName("ohtma.gain", gain, EXCHANGES)
    table = partners(problem.ranks, problem.source, problem.target, problem.bytes)
    distances = problem.distances
    start = first_mapping(table, problem.allocation.slots, distances.group, distances.between)
    if gain == NONE or len(problem.bytes) == 0 or problem.hosts == 1:
        return start
    return exchange(problem, start, gain=gain, rounds=rounds).host_of_rank
