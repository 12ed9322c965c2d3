"""Refiners: each improves a placement in rounds; listed in `mapping.placement.catalog`.

A refiner is a generator function ``refine(problem, start, deadline, generator, *, options)`` over
`Candidate`: after each round, the best placement so far by its own metric; never worse than its start by that
metric. Between rounds the caller checks the clock, reports progress, or stops. `start` (int32[ranks]) has
host indices and is not changed. Docstrings of `refine` describe its options only; one out of range raises
`InvalidValue`, an unknown word `UnknownName`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from registry.model import Ints


class Candidate(NamedTuple):
    """The best placement that a refiner has found so far."""

    host_of_rank: Ints
    """int32[ranks]: Host indices of the placement; not changed afterwards."""
    metric: str
    """Metric of the refiner: a field of `mapping.placement.objective.Score`."""
    value: float
    """Value of the metric."""
    network_congestion_seconds: float = math.inf
    """Worst network link, from a refiner on congestion; infinite if it is not known."""
