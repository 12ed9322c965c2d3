"""Guests and fabrics on which the right result of a strategy is obvious."""

from __future__ import annotations

import numpy as np

from mapping.placement.problem import Problem
from registry.model import Fabric, Ints, Profile
from tests.support.small_fabrics import cabled


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def assert_fits(problem: Problem, host_of_rank: Ints) -> None:
    taken = np.bincount(host_of_rank, minlength=problem.hosts)
    assert len(host_of_rank) == problem.ranks
    assert len(taken) == problem.hosts
    assert (taken <= problem.allocation.slots).all()


def silent(ranks: int) -> Profile:
    return Profile.from_edges([], [], [], ranks=ranks)


def cliques(size: int, count: int, *, shuffled: bool = True) -> tuple[Profile, Ints]:
    """Return groups of ranks that all communicate with each other, and the group of each rank."""
    group = np.repeat(np.arange(count), size)
    if shuffled:
        group = np.random.default_rng(1).permutation(group)
    pairs = np.argwhere((group[:, None] == group[None, :]) & ~np.eye(size * count, dtype=bool))
    sizes = 1.0 + group[pairs[:, 0]]  # a later group talks more
    return Profile.from_edges(pairs[:, 0], pairs[:, 1], sizes, ranks=len(group)), group.astype(np.int32)


def leaves(count: int, hosts: int, *, top: int = 2) -> Fabric:
    """Return leaf switches with hosts, all connected by switches at the top."""
    first = count * hosts
    down = [(host, first + host // hosts) for host in range(first)]
    up = [(first + leaf, first + count + spine) for leaf in range(count) for spine in range(top)]
    return cabled(" ".join(f"{one}-{other}" for one, other in down + up), first)
