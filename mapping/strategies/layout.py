"""The start of a search: in order, or laid over the hosts by distances, whichever has less hop-bytes."""

from __future__ import annotations

import numpy as np

from mapping.model.problem import Problem
from mapping.routing.torus import torus_coordinates
from mapping.strategies import multilevel, spectral
from registry.model import Ints


def seat(problem: Problem, generator: np.random.Generator) -> Ints:
    """int32[ranks]: host index of each rank.

    On a torus or mesh ranks are laid along the guest's smooth vectors, elsewhere cut along the hierarchy.
    """
    in_order = problem.slot_host[: problem.ranks].copy()
    if len(problem.bytes) == 0 or problem.hosts == 1:
        return in_order
    torus = torus_coordinates(problem.routes.fabric)
    other = (multilevel if torus is None else spectral).seat(problem, generator)
    return min((in_order, other), key=problem.hop_bytes)
