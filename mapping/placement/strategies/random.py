"""Random placement with every choice of slots equally likely: the baseline of most papers."""

from __future__ import annotations

import numpy as np

from mapping.placement.problem.problem import Problem
from registry.model import Allocation, Ints, Placement


def random_placement(ranks: int, allocation: Allocation, seed: int) -> Placement:
    """Return a random placement; needs no routes.

    Raises
    ------
    InfeasibleAllocation
        More ranks than slots.
    """
    allocation.require(ranks)
    slots = np.random.default_rng(seed).permutation(len(allocation.host_of_slot))[:ranks]
    hosts = allocation.host_of_slot[slots]
    return Placement(host_of_rank=hosts, allocation=allocation, strategy="random", seed=seed)


def place_ranks(problem: Problem, generator: np.random.Generator) -> Ints:
    """Return int32[ranks]: the host index of each rank."""
    return problem.slot_host[generator.permutation(len(problem.slot_host))[: problem.ranks]]
