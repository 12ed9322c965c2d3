"""Ranks fill the allocation's slots in order, a host's slots together: what launchers do unless told."""

from __future__ import annotations

import numpy as np

from mapping.placement.problem.problem import Problem
from registry.model import Allocation, Ints, Placement


def in_order(ranks: int, allocation: Allocation) -> Placement:
    """The placement in order; needs no routes.

    Raises
    ------
    InfeasibleAllocation
        More ranks than slots.
    """
    allocation.require(ranks)
    hosts = allocation.host_of_slot[:ranks]
    return Placement(host_of_rank=hosts, allocation=allocation, strategy="in-order")


def place_ranks(problem: Problem, generator: np.random.Generator) -> Ints:
    """int32[ranks]: host index of each rank; `generator` is not used."""
    return problem.slot_host[: problem.ranks].copy()
