"""Placements that ignore traffic: in order, at random, and in turn over hosts or switches.

In order is the default of launchers; random, with every choice of slots equally likely, is the baseline of
most papers. In turn is what launchers do on request (Slurm: ``cyclic`` and ``plane``); Li et al. 2020 (see
`mapping.placement.strategies.ohtma`), section 5.2, compare with it.
"""

from __future__ import annotations

import numpy as np

from mapping.placement.problem.problem import Problem
from registry.errors import InvalidValue, UnknownName
from registry.model import Allocation, Ints, Placement

HOSTS, SWITCHES = "hosts", "switches"
OVER = (HOSTS, SWITCHES)


def in_order(ranks: int, allocation: Allocation) -> Placement:
    """Return the placement of the ranks in order on the slots, host by host; needs no routes.

    Raises
    ------
    InfeasibleAllocation
        More ranks than slots.
    """
    allocation.require(ranks)
    hosts = allocation.host_of_slot[:ranks]
    return Placement(host_of_rank=hosts, allocation=allocation, strategy="in-order")


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


def place_in_order(problem: Problem, generator: np.random.Generator) -> Ints:
    """Place ranks in order."""
    return problem.slot_host[: problem.ranks].copy()


def place_at_random(problem: Problem, generator: np.random.Generator) -> Ints:
    """Place ranks on random slots."""
    return problem.slot_host[generator.permutation(len(problem.slot_host))[: problem.ranks]]


def place_in_turn(
    problem: Problem, generator: np.random.Generator, *, block: int = 1, over: str = HOSTS
) -> Ints:
    """Place ranks on the hosts in turn.

    With one slot per host that is in order; in turn over switches, neighbouring ranks are then on different
    switches.

    Parameters
    ----------
    block : int
        Ranks that go to one host (or switch) before the next one's turn. Full ones are skipped.
    over : str
        ``hosts``, or ``switches``: groups of hosts with equal distances, in the order of their first host;
        within a group, one host after the other.
    """
    if over not in OVER:
        raise UnknownName("round-robin.over", over, OVER)
    if block < 1:
        raise InvalidValue("round-robin.block", "must be at least 1")
    hosts = problem.slot_host
    turn = np.arange(len(hosts)) - problem.first_slot[hosts]
    unit = hosts
    if over == SWITCHES:
        _, first, number = np.unique(problem.distances.group, return_index=True, return_inverse=True)
        unit = np.argsort(np.argsort(first)).astype(np.int32)[number][hosts]
        order = np.lexsort((hosts, turn, unit))
        turn = np.empty(len(hosts), np.int64)
        turn[order] = np.arange(len(hosts)) - np.searchsorted(unit[order], unit[order])
    return hosts[np.lexsort((turn, unit, turn // block))][: problem.ranks]
