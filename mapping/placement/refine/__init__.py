"""Refiners: each improves a placement in rounds; one file each, listed in `mapping.placement.catalog`.

Input: a problem, a placement, a budget and a random generator.
Output: the best placement after each round.

A refiner is a generator function ``refine(problem, start, budget, generator)`` over `Candidate`: after each
round, the best placement so far by its own measure; never worse than its start by that measure. Between
rounds the caller looks at the clock, tells progress, or stops.
"""

from __future__ import annotations

from typing import NamedTuple

from registry.model import Ints


class Candidate(NamedTuple):
    """The best placement that a refiner has found so far.

    Attributes
    ----------
    host_of_rank : int32[ranks]
        Host indices; not changed afterwards.
    metric : str
        What the refiner measures: a field of `mapping.placement.problem.objective.Score`.
    value : float
    """

    host_of_rank: Ints
    metric: str
    value: float
