"""Start of a search: in order, or assigned by distances, whichever has fewer hop-bytes."""

from __future__ import annotations

import numpy as np

from mapping.placement.problem.problem import Problem
from mapping.placement.strategies import digit_permutation, multilevel, spectral
from mapping.routing.torus import torus_coordinates
from registry.model import Ints

FEW_PARTNERS = 8
"""Mean number of partners up to which eigenvectors take a tenth of a second, and straight borders may cut
less than METIS's ragged ones."""


def place_ranks(problem: Problem, generator: np.random.Generator) -> Ints:
    """Place ranks by the layout with the fewest hop-bytes.

    On a torus or mesh ranks are sorted along eigenvectors of the guest graph; elsewhere they are cut along
    the hierarchy of hosts, and with few partners also sorted along eigenvectors. Everywhere the digits of
    their numbers are permuted.
    """
    found = [problem.slot_host[: problem.ranks].copy()]
    if len(problem.bytes) == 0 or problem.hosts == 1:
        return found[0]
    torus = torus_coordinates(problem.routes.fabric)
    if torus is None:
        found.append(multilevel.place_ranks(problem, generator))
    few = problem.ranks <= spectral.MOST_RANKS and len(problem.bytes) <= FEW_PARTNERS * problem.ranks
    if torus is not None or few:
        found.append(spectral.place_ranks(problem, generator))
    found.append(digit_permutation.place_ranks(problem, generator))
    return min(found, key=problem.hop_bytes)
