"""Several ranks per host: groups of ranks first, then each group on a host by another strategy.

Source: Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel architectures",
2011, section 3.4; for the groups see `mapping.placement.partition.multicore`. Beyond the paper: with free
slots, hosts with the most slots are filled first, for the fewest groups; with unequal slots the inner
strategy sees all hosts as equal, and a group that does not fit where it was put goes to the closest host
with room, large groups first.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mapping.placement.catalog import STRATEGIES
from mapping.placement.partition.multicore import IMPROVED, group_ranks, quotient
from mapping.placement.problem.problem import Problem
from registry.errors import UnknownName
from registry.model import Allocation, Ints, Longs

NAME = "multicore"


def place_ranks(
    problem: Problem, generator: np.random.Generator, *, inner: str = "greedy", partition: str = IMPROVED
) -> Ints:
    """Place groups of ranks, one per host.

    Parameters
    ----------
    inner : str
        Name of another strategy, which places the groups; its options have their defaults.
    partition : str
        How ranks are grouped: ``improved`` by swaps, or as in the ``paper``.
    """
    known = {entry.name: entry for entry in STRATEGIES if not entry.refines and entry.name != NAME}
    if inner not in known:
        raise UnknownName("multicore.inner", inner, known)
    sizes = _group_sizes(problem)
    group = group_ranks(problem.profile, sizes, generator, partition)
    groups = replace(
        problem,
        profile=quotient(problem.profile, group),
        allocation=Allocation(hosts=problem.allocation.hosts, slots=np.ones(problem.hosts, np.int32)),
        pins=np.zeros(0, np.int32),
        own_distances=problem.distances,
    )
    return _hosts_with_room(problem, sizes, known[inner].load()(groups, generator))[group]


def _group_sizes(problem: Problem) -> Longs:
    """Return int64[groups]: the sizes of the groups, descending."""
    slots = np.sort(problem.allocation.slots)[::-1].astype(np.int64)
    before = np.cumsum(slots) - slots
    sizes: Longs = np.minimum(slots, problem.ranks - before)
    return sizes[before < problem.ranks]


def _hosts_with_room(problem: Problem, sizes: Longs, wanted: Ints) -> Ints:
    """Return int32[groups]: the host of each group, the wanted one or the closest with room.

    Groups are in descending size, and for the k largest there are at least k hosts, so one is always free.
    """
    slots, free = problem.allocation.slots, np.ones(problem.hosts, bool)
    host_of_group = np.empty(len(sizes), np.int32)
    for group, size in enumerate(sizes.tolist()):
        host = int(wanted[group])
        if not free[host] or slots[host] < size:
            far = problem.distances.of(host, np.arange(problem.hosts))
            host = int(np.argmin(np.where(free & (slots >= size), far, np.inf)))
        host_of_group[group], free[host] = host, False
    return host_of_group
