"""Random with locality: ranks that exchange most are on near hosts, which are chosen at random.

Source: Orduña, Silla and Duato, "On the development of a communication-aware task mapping technique",
2004, section 5.2: "random mappings with locality (rl)" assign "the processes with the highest communication
requirements to workstations attached to the same network switch", "the switch is selected randomly". The
rule here, which also holds for networks without switches: a random host with room, and the hosts nearest to
it, get the heaviest rank without a host and, one after the other, the rank that exchanges most bytes with
those; this repeats until `share` of the ranks have hosts. The others take any slots.
"""

from __future__ import annotations

import heapq

import numpy as np

from mapping.placement.problem.problem import Problem
from registry.errors import InvalidValue
from registry.model import Bools, Ints, Longs


def place_ranks(
    problem: Problem, generator: np.random.Generator, *, block: int = 0, share: float = 1.0
) -> Ints:
    """Place clusters of ranks on near hosts, which are chosen at random.

    Parameters
    ----------
    block : int
        Most ranks that are placed together. 0: the number of free slots of the chosen host and of those at
        the least distance from it (on a tree, the hosts of its switch).
    share : float
        Part of the ranks that are placed so, 0 to 1.
    """
    if block < 0 or not 0 <= share <= 1:
        raise InvalidValue("random-local", "block must not be below 0 and share be within 0 to 1")
    clusters, local = _Clusters(problem), round(share * problem.ranks)
    room = problem.allocation.slots.astype(np.int64)
    host_of_rank = np.full(problem.ranks, -1, np.int32)
    placed = 0
    while placed < local:
        slots = generator.permutation(_close_slots(problem, generator, room, block))
        ranks = clusters.take(min(len(slots), local - placed))
        host_of_rank[ranks] = slots[: len(ranks)]
        room -= np.bincount(slots[: len(ranks)], minlength=len(room))
        placed += len(ranks)
    rest = np.flatnonzero(host_of_rank < 0)
    left = np.repeat(np.arange(len(room), dtype=np.int32), room)
    host_of_rank[rest] = generator.permutation(left)[: len(rest)]
    return host_of_rank


def _close_slots(problem: Problem, generator: np.random.Generator, room: Longs, block: int) -> Ints:
    """Return the hosts of free slots on and near a random host with room, one entry per slot."""
    free = np.flatnonzero(room)
    centre = int(generator.choice(free))
    far = problem.distances.of(centre, np.arange(problem.hosts))
    if block == 0:
        others = np.delete(far, centre)
        free = free[far[free] <= others.min(initial=np.inf)]
    order = np.lexsort((generator.random(len(free)), far[free]))
    slots = np.repeat(free[order], room[free[order]]).astype(np.int32)
    return slots[:block] if block else slots


class _Clusters:
    """Clusters of ranks that exchange much."""

    def __init__(self, problem: Problem) -> None:
        guest = problem.guest(directed=False)
        self._ptr, self._partner, self._bytes = guest.indptr, guest.partner, guest.bytes
        talks = np.zeros(problem.ranks)
        np.add.at(talks, np.repeat(np.arange(problem.ranks), np.diff(guest.indptr)), guest.bytes)
        self._heaviest: Ints = np.argsort(-talks, kind="stable").astype(np.int32)
        self._waiting: Bools = np.ones(problem.ranks, bool)
        self._at = 0

    def take(self, count: int) -> list[int]:
        """Return the next cluster of exactly `count` ranks; ties go to the lower rank."""
        cluster: list[int] = []
        gain: dict[int, float] = {}
        queue: list[tuple[float, int]] = []
        while len(cluster) < count:
            rank = self._next(queue)
            self._waiting[rank] = False
            cluster.append(rank)
            for e in range(self._ptr[rank], self._ptr[rank + 1]):
                partner = int(self._partner[e])
                if self._waiting[partner]:
                    gain[partner] = gain.get(partner, 0.0) + float(self._bytes[e])
                    heapq.heappush(queue, (-gain[partner], partner))
        return cluster

    def _next(self, queue: list[tuple[float, int]]) -> int:
        """Return the waiting rank that exchanges most with the cluster, else the heaviest."""
        while queue:
            _, rank = heapq.heappop(queue)  # an older, smaller gain of a rank comes after it was taken
            if self._waiting[rank]:
                return rank
        while not self._waiting[self._heaviest[self._at]]:
            self._at += 1
        return int(self._heaviest[self._at])
