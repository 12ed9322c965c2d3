"""The start of a search: in order, or laid over the hosts by distances, whichever has less hop-bytes."""

from __future__ import annotations

import numpy as np

from mapping.placement.problem.problem import Problem
from mapping.placement.strategies import multilevel, spectral
from mapping.routing.torus import torus_coordinates
from registry.model import Ints

MOST_TOGETHER, MOST_STARTS = 4096, 3
"""Ranks (or hosts, if more) of all layouts along a hierarchy together, and the most of them: some tenths of a
second."""
FEW_PARTNERS = 8
"""Up to so many a rank in the mean smooth vectors are found in a tenth of a second, and straight borders may
cut less than METIS's ragged ones."""
CUTS = 16
"""Partitions that METIS tries each time where there are several layouts."""


def place_ranks(problem: Problem, generator: np.random.Generator) -> Ints:
    """int32[ranks]: host index of each rank.

    On a torus or mesh ranks are laid along the guest's smooth vectors, elsewhere cut along the hierarchy,
    and where they have few partners along smooth vectors too.
    """
    found = [problem.slot_host[: problem.ranks].copy()]
    if len(problem.bytes) == 0 or problem.hosts == 1:
        return found[0]
    torus = torus_coordinates(problem.routes.fabric)
    if torus is None:
        starts = min(max(MOST_TOGETHER // max(problem.ranks, problem.hosts), 1), MOST_STARTS)
        cuts = CUTS if starts > 1 else multilevel.CUTS
        found.append(multilevel.place_ranks(problem, generator, starts=starts, cuts=cuts))
    few = problem.ranks <= spectral.MOST_RANKS and len(problem.bytes) <= FEW_PARTNERS * problem.ranks
    if torus is not None or few:
        found.append(spectral.place_ranks(problem, generator))
    return min(found, key=problem.hop_bytes)
