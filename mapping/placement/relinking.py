"""Path relinking: exchanges that lead from one placement to another, the best gain per moved rank first.

Hosts with equal distances are interchangeable, so a search returns one of many equal placements: `nearest`
returns the one that leaves most ranks where they are. `relink` then exchanges ranks until it is reached, the
best gain per moved rank first, so that each placement on the path has few moved ranks.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from mapping.deadline import Deadline
from mapping.placement.problem import Problem
from registry.model import Floats, Ints, Longs

POWER = 8
"""Power of link loads in the comparison of exchanges; by the worst link alone most would be equal."""
MATCHED = 1024
"""Most equivalent hosts that are matched; more are left as they are."""


def nearest(problem: Problem, start: Ints, target: Ints) -> Ints:
    """Return int32[ranks]: the target with equivalent hosts exchanged so that most ranks stay in place.

    Ranks on one host stay together. Equivalent hosts have one distance group, as many slots and the same
    cable capacity; hosts with pinned ranks are left out.
    """
    from scipy.optimize import linear_sum_assignment

    held = np.bincount(problem.pins[problem.pinned], minlength=problem.hosts) > 0
    alike = np.stack([problem.distances.group, problem.allocation.slots, _cables(problem)], axis=1)
    _, kind = np.unique(alike[~held], axis=0, return_inverse=True)
    free, renamed = np.flatnonzero(~held), np.arange(problem.hosts)
    overlap = _overlap(start, target, problem.hosts)
    for of in np.split(free[np.argsort(kind, kind="stable")], np.cumsum(np.bincount(kind))[:-1]):
        if 1 < len(of) <= MATCHED:
            weight = np.zeros((len(of), len(of)))
            place = {int(host): at for at, host in enumerate(of)}
            for host in of.tolist():
                for home, count in overlap.get(host, {}).items():
                    if home in place:
                        weight[place[host], place[home]] = count
            rows, columns = linear_sum_assignment(weight, maximize=True)
            renamed[of[rows]] = of[columns]
    return renamed[target].astype(np.int32)


def relink(
    problem: Problem, start: Ints, target: Ints, *, by_load: bool, most: int, deadline: Deadline
) -> Iterator[tuple[set[int], Ints]]:
    """Yield the moved ranks and the placement after each exchange, the best gain per moved rank first.

    Args:
        by_load: Compare exchanges by a power of all links' loads instead of hop-bytes.
        most: Number of moved ranks after which to end.
        deadline: After it, gains are not updated.
    """
    path = _Path(problem, start, target, by_load)
    moved: set[int] = set()
    queue = [(-path.gain(rank), rank) for rank in np.flatnonzero(start != target).tolist()]
    heapq.heapify(queue)
    while queue and len(moved) < most:
        loss, rank = heapq.heappop(queue)
        if path.host_of_rank[rank] == target[rank]:
            continue
        if not deadline.over:
            loss = -path.gain(rank)
            if queue and loss > queue[0][0]:  # no longer the best: others first
                heapq.heappush(queue, (loss, rank))
                continue
        other = path.step(rank)
        moved |= {rank, other} - {-1}
        yield set(moved), path.host_of_rank.copy()


class _Path:
    """A placement between two others, with link loads if exchanges are compared by them."""

    def __init__(self, problem: Problem, start: Ints, target: Ints, by_load: bool) -> None:
        self.host_of_rank = start.copy()
        self._problem = problem
        self._target = target
        self._start = start
        self._loads = problem.routes.link_bytes(*problem.host_traffic(start)) if by_load else None
        self._scale = _scale(problem, self._loads) if self._loads is not None else np.zeros(0)
        ends = np.r_[problem.source, problem.target]
        order = np.argsort(ends, kind="stable")
        self._edge = (order % max(len(problem.source), 1)).astype(np.int64)
        self._first = np.searchsorted(ends[order], np.arange(problem.ranks + 1))
        self._on: list[set[int]] = [set() for _ in range(problem.hosts)]
        for rank, host in enumerate(start.tolist()):
            self._on[host].add(rank)

    def gain(self, rank: int) -> float:
        """Return the gain of moving a rank to its target, per newly moved rank."""
        other = self._other(rank)
        edges, before, after = self._change(rank, other)
        size = self._problem.bytes[edges]
        fresh = sum(self.host_of_rank[one] == self._start[one] for one in (rank, other) if one >= 0)
        return self._measure(size, before, after) / max(int(fresh), 1)

    def step(self, rank: int) -> int:
        """Move a rank to its target; return the rank exchanged with it (-1: none)."""
        other = self._other(rank)
        edges, before, after = self._change(rank, other)
        if self._loads is not None:
            self._loads = self._loads + self._difference(self._problem.bytes[edges], before, after)
        here, there = int(self.host_of_rank[rank]), int(self._target[rank])
        self._move(rank, there)
        if other >= 0:
            self._move(other, here)
        return other

    def _move(self, rank: int, host: int) -> None:
        self._on[int(self.host_of_rank[rank])].discard(rank)
        self._on[host].add(rank)
        self.host_of_rank[rank] = host

    def _other(self, rank: int) -> int:
        """Return the lowest rank to exchange with, not yet at its target, preferably one that goes here."""
        here, there = int(self.host_of_rank[rank]), int(self._target[rank])
        if len(self._on[there]) < self._problem.allocation.slots[there]:
            return -1
        leaving = [one for one in self._on[there] if self._target[one] != there]
        return min(leaving, key=lambda one: (self._target[one] != here, one))

    def _change(self, rank: int, other: int) -> tuple[Longs, Ints, Ints]:
        """Return the edges that an exchange changes, and their hosts before and after it."""
        edges = self._edge[self._first[rank] : self._first[rank + 1]]
        after = self.host_of_rank.copy()
        after[rank] = self._target[rank]
        if other >= 0:
            after[other] = self.host_of_rank[rank]
            edges = np.union1d(edges, self._edge[self._first[other] : self._first[other + 1]])
        return edges, self._hosts(edges, self.host_of_rank), self._hosts(edges, after)

    def _hosts(self, edges: Longs, host_of_rank: Ints) -> Ints:
        problem = self._problem
        return np.stack([host_of_rank[problem.source[edges]], host_of_rank[problem.target[edges]]])

    def _measure(self, size: Floats, before: Ints, after: Ints) -> float:
        if self._loads is None:
            far = self._problem.distances.of
            return float(size @ (far(before[0], before[1]) - far(after[0], after[1])))
        change = self._difference(size, before, after)
        touched = np.flatnonzero(change)
        load, scale = self._loads[touched], self._scale[touched]
        return float(((load * scale) ** POWER - ((load + change[touched]) * scale) ** POWER).sum())

    def _difference(self, size: Floats, before: Ints, after: Ints) -> Floats:
        routes = self._problem.routes
        then, now = (routes.link_bytes(hosts[0], hosts[1], size) for hosts in (after, before))
        return np.asarray(then - now, np.float64)


def _scale(problem: Problem, loads: Floats) -> Floats:
    """Return 1 / (capacity * worst of the class) per link; classes: hosts' cables and network links."""
    seconds = loads / problem.link_capacity
    network = problem.routes.fabric.network_link
    worst = np.where(network, seconds[network].max(initial=0.0), seconds[~network].max(initial=0.0))
    none = np.zeros(len(loads))
    return np.asarray(np.divide(1.0, problem.link_capacity * worst, out=none, where=worst > 0), np.float64)


def _cables(problem: Problem) -> Longs:
    """Return int64[h]: a number for the capacity of each host's links, equal for equal capacities."""
    fabric = problem.routes.fabric
    both = np.r_[fabric.links.source, fabric.links.target]
    capacity = np.bincount(both, weights=np.tile(problem.link_capacity, 2), minlength=len(fabric))
    _, number = np.unique(capacity[problem.routes.hosts], return_inverse=True)
    return number.astype(np.int64)


def _overlap(start: Ints, target: Ints, hosts: int) -> dict[int, dict[int, int]]:
    """Return, by host of the target, the number of its ranks from each host of the start."""
    pairs, counts = np.unique(target.astype(np.int64) * hosts + start, return_counts=True)
    found: dict[int, dict[int, int]] = {}
    for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
        found.setdefault(pair // hosts, {})[pair % hosts] = count
    return found
