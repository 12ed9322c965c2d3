"""A strategy and a refiner."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mapping.deadline import Deadline
from mapping.placement.candidate import Candidate
from mapping.placement.problem import Problem
from registry.model import Ints


def by_volume(problem: Problem, generator: np.random.Generator) -> Ints:
    """Ranks that send and receive most come first, on the slots in order"""
    both = np.r_[problem.source, problem.target]
    volume = np.bincount(both, np.r_[problem.bytes, problem.bytes], problem.ranks)
    hosts = np.empty(problem.ranks, np.int32)
    hosts[np.argsort(-volume, kind="stable")] = problem.slot_host[: problem.ranks]
    return hosts


def adjacent_swaps(
    problem: Problem, start: Ints, deadline: Deadline, generator: np.random.Generator
) -> Iterator[Candidate]:
    """Ranks r and r + 1 change places if that lowers hop-bytes"""
    best, hosts = problem.hop_bytes(start), start.copy()
    while deadline.claim(1):
        rank = int(generator.integers(max(problem.ranks - 1, 1)))
        pair = [rank, min(rank + 1, problem.ranks - 1)]
        if problem.pinned[pair].any():
            continue
        hosts[pair] = hosts[pair[::-1]]
        value = problem.hop_bytes(hosts)
        if value < best:
            best = value
            yield Candidate(hosts.copy(), "hop_bytes", best)
        else:
            hosts[pair] = hosts[pair[::-1]]
