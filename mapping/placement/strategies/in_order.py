"""Ranks in order on the allocation's slots, host by host: the default of launchers."""

from __future__ import annotations

import numpy as np

from mapping.placement.problem.problem import Problem
from registry.model import Allocation, Ints, Placement


def in_order(ranks: int, allocation: Allocation) -> Placement:
    """Return the placement of the ranks in order; needs no routes.

    Raises
    ------
    InfeasibleAllocation
        More ranks than slots.
    """
    allocation.require(ranks)
    hosts = allocation.host_of_slot[:ranks]
    return Placement(host_of_rank=hosts, allocation=allocation, strategy="in-order")


def place_ranks(problem: Problem, generator: np.random.Generator) -> Ints:
    """Return int32[ranks]: the host index of each rank; `generator` is not used."""
    return problem.slot_host[: problem.ranks].copy()
