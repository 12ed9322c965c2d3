"""Repeated best exchanges by gain of hop-bytes per moved rank: placements near the start.

Each step compares all exchanges of two ranks and all moves to free slots, in time of ranks times hosts: for a
few thousand of either. Exact gains are updated as in Li et al. 2020, lines 20 to 36; here a rank that moves a
second time does not count again.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from mapping.deadline import Deadline
from mapping.placement.problem.problem import Problem
from registry.model import Bools, Ints

LARGEST = 4096
"""Most ranks, and most hosts: four tables of that many rows and columns are stored."""
AGAIN = 0.5
"""Weight of the second move of a rank, relative to 1 for the first."""


def best_exchanges(
    problem: Problem, start: Ints, *, most: int, deadline: Deadline
) -> Iterator[tuple[set[int], Ints]]:
    """Yield the moved ranks and the placement after each exchange, until none gains or too many have moved.

    Parameters
    ----------
    start : int32[ranks]
        Host indices, with pinned ranks on their hosts.
    most : int
        Most ranks that may move.
    deadline : Deadline
        When to end.
    """
    if max(problem.ranks, problem.hosts) > LARGEST or len(problem.bytes) == 0:
        return
    costs = _Costs(problem, start)
    while not deadline.over:
        rank, host, other, gain = costs.best(most)
        if gain <= 0.0:
            return
        costs.exchange(rank, host, other)
        yield set(np.flatnonzero(costs.host_of_rank != start).tolist()), costs.host_of_rank.copy()


class _Costs:
    """Cost of each rank on each host, with all other ranks in place."""

    def __init__(self, problem: Problem, start: Ints) -> None:
        self.host_of_rank = start.copy()
        self._start = start
        self._problem = problem
        shape = (problem.ranks, problem.ranks)
        self._sent = sparse.csr_array((problem.bytes, (problem.source, problem.target)), shape=shape)
        self._received = sparse.csr_array(self._sent.T)
        self._far = problem.distances.matrix()
        far = self._far
        self._cost = self._sent @ far.T[start] + self._received @ far[start]
        self._free = np.flatnonzero(~problem.pinned)
        self._mutual = (self._sent + self._received)[self._free][:, self._free].toarray()

    def best(self, most: int) -> tuple[int, int, int, float]:
        """Return rank, host, the rank to exchange with (-1: none) and the gain per newly moved rank."""
        moved = self.host_of_rank != self._start
        left = most - int(moved.sum())
        rank, host, gain = self._best_move(moved, left)
        first, second, swap = self._best_swap(moved, left)
        if swap > gain:
            return first, int(self.host_of_rank[second]), second, swap
        return rank, host, -1, gain

    def exchange(self, rank: int, host: int, other: int) -> None:
        """Move a rank to a host, and the other rank (-1: none) to the rank's host."""
        here = int(self.host_of_rank[rank])
        self._move(rank, host)
        if other >= 0:
            self._move(other, here)

    def _move(self, rank: int, host: int) -> None:
        here, far = int(self.host_of_rank[rank]), self._far
        changes = (self._received, far[:, host] - far[:, here]), (self._sent, far[host] - far[here])
        for weights, change in changes:
            partners = weights.indices[weights.indptr[rank] : weights.indptr[rank + 1]]
            size = weights.data[weights.indptr[rank] : weights.indptr[rank + 1]]
            self._cost[partners] += size[:, None] * change[None, :]
        self.host_of_rank[rank] = host

    def _best_move(self, moved: Bools, left: int) -> tuple[int, int, float]:
        taken = np.bincount(self.host_of_rank, minlength=self._problem.hosts)
        free = np.flatnonzero(taken < self._problem.allocation.slots)
        may = ~self._problem.pinned & (moved | (left >= 1))
        if not len(free) or not may.any():
            return 0, 0, 0.0
        ranks = np.flatnonzero(may)
        own = self._cost[ranks, self.host_of_rank[ranks]]
        gains = (own[:, None] - self._cost[np.ix_(ranks, free)]) / np.where(moved[ranks], AGAIN, 1.0)[:, None]
        at = int(np.argmax(gains))
        return int(ranks[at // len(free)]), int(free[at % len(free)]), float(gains.flat[at])

    def _best_swap(self, moved: Bools, left: int) -> tuple[int, int, float]:
        """Return the best exchange of two ranks: both ranks and the gain."""
        ranks = self._free
        hosts = self.host_of_rank[ranks]
        if len(ranks) < 2:
            return 0, 0, 0.0
        cost = self._cost[np.ix_(ranks, hosts)]  # [r, s]: cost of r on the host of s
        own = np.diag(cost)
        far = self._far[np.ix_(hosts, hosts)]
        gains = own[:, None] + own[None, :] - cost - cost.T
        gains -= self._mutual * (far + far.T)  # their own edges: counted twice before, not at all after
        fresh = (~moved[ranks]).astype(np.int64)
        new = fresh[:, None] + fresh[None, :]
        allowed = (new <= left) & (hosts[:, None] != hosts[None, :])
        gains = np.where(allowed, gains / np.maximum(new, AGAIN), 0.0)
        at = int(np.argmax(gains))
        first, second = divmod(at, len(ranks))
        return int(ranks[first]), int(ranks[second]), float(gains.flat[at])
