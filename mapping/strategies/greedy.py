"""Heaviest rank first, then always along the heaviest edge, to the closest host that has room.

Source: Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel architectures",
2011, section 3.1, Algorithm 1. Read as printed: a rank goes to the host that is closest to the one used
last. Edges are what a rank sends; a rank that only receives is reached when its senders are done, else
last. The start is the allocation's first host; ties go to the lower index. Host distances are the
routing's.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from mapping.problem import Problem
from registry.model import Ints


def seat(problem: Problem, generator: np.random.Generator) -> Ints:
    """int32[ranks]: host index of each rank; `generator` is not used."""
    room = problem.allocation.slots.astype(np.int64)
    host_of_rank = np.empty(problem.ranks, np.int32)
    host = 0
    for rank in _visits(problem):
        if room[host] == 0:
            distance = np.where(room > 0, problem.routes.distances[host], np.inf)
            host = int(np.argmin(distance))
        host_of_rank[rank] = host
        room[host] -= 1
    return host_of_rank


def _visits(problem: Problem) -> Iterator[int]:
    """All ranks in the order in which they are placed."""
    sent = np.bincount(problem.source, weights=problem.bytes, minlength=problem.ranks)
    first = np.searchsorted(problem.source, np.arange(problem.ranks + 1))
    waiting = np.ones(problem.ranks, bool)
    queue: list[tuple[float, int, int]] = []
    for heaviest in np.argsort(-sent, kind="stable").tolist():
        heapq.heappush(queue, (0.0, -1, heaviest))
        while queue:
            _, _, rank = heapq.heappop(queue)
            if not waiting[rank]:
                continue
            waiting[rank] = False
            yield rank
            for edge in range(first[rank], first[rank + 1]):
                partner = int(problem.target[edge])
                if waiting[partner]:
                    heapq.heappush(queue, (-float(problem.bytes[edge]), rank, partner))
