"""Ranks go to the hosts in turn, as launchers do on request (Slurm: ``cyclic`` and ``plane``).

Li et al. 2020 (see `mapping.placement.strategies.ohtma`), section 5.2, compare with it. With one slot per
host it is in order; in turn over switches it then sends neighbouring ranks to different switches.
"""

from __future__ import annotations

import numpy as np

from mapping.placement.problem.problem import Problem
from registry.errors import InvalidValue, UnknownName
from registry.model import Ints

HOSTS, SWITCHES = "hosts", "switches"
OVER = (HOSTS, SWITCHES)


def place_ranks(
    problem: Problem, generator: np.random.Generator, *, block: int = 1, over: str = HOSTS
) -> Ints:
    """Return int32[ranks]: the host index of each rank; `generator` is not used.

    Parameters
    ----------
    block : int
        Ranks that go to one host (or switch) before the next one's turn. Full ones are skipped.
    over : str
        ``hosts``, or ``switches``: groups of hosts with equal distances, in the order of their first host;
        within a group, one host after the other.

    Raises
    ------
    UnknownName
        An unknown `over`.
    InvalidValue
        `block` below 1.
    """
    if over not in OVER:
        raise UnknownName("round-robin.over", over, OVER)
    if block < 1:
        raise InvalidValue("round-robin.block", "must be at least 1")
    hosts = problem.slot_host
    turn = np.arange(len(hosts)) - problem.first_slot[hosts]
    if over == HOSTS:
        dealt = hosts
    else:
        dealt = _by_first(problem.distances.group)[hosts]
        order = np.lexsort((hosts, turn, dealt))
        turn = np.empty(len(hosts), np.int64)
        turn[order] = np.arange(len(hosts)) - np.searchsorted(dealt[order], dealt[order])
    return hosts[np.lexsort((turn, dealt, turn // block))][: problem.ranks]


def _by_first(group: Ints) -> Ints:
    """Return int32[h]: the groups numbered by their first host."""
    _, first, number = np.unique(group, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first)).astype(np.int32)[number]
