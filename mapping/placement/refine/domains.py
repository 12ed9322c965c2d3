"""Hosts divided into domains, so that threads exchange ranks in parallel without conflicts.

Each thread exchanges only ranks and slots of its own domain, and for it the others stay where they are;
afterwards the results of the domains are merged. Domains do not depend on the machine, so that a search with
given workers and steps has the same result on one core as on many.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from mapping.placement.kernels.hop_bytes_search import Near
from mapping.threads import cores
from registry.model import Floats, Ints, Longs

Result = TypeVar("Result")


def cut(
    distance: Floats, first_slot: Longs, workers: int, centre: int, group: Ints | None = None
) -> NDArray[np.int8]:
    """Return int8[h]: the domain of each host, by distance from one host, with equally many slots each.

    Parameters
    ----------
    distance : float64[h]
        Distance of each host from `centre`.
    first_slot : int64[h + 1]
        First slot of each host.
    workers : int
        Number of domains, at most 127.
    centre : int
        Host of which those that follow cyclically come first among equally far ones.
    group : int32[h], optional
        Group of each host; among equally far hosts, those of a group stay together.
    """
    hosts = len(distance)
    after = (np.arange(hosts) - centre) % hosts
    together = after if group is None else (group - group[centre]) % (int(group.max()) + 1)
    order = np.lexsort((after, together, distance))
    before = np.cumsum(np.diff(first_slot)[order]) - np.diff(first_slot)[order]
    domain = np.empty(hosts, np.int8)
    domain[order] = np.minimum(before * workers // max(int(first_slot[-1]), 1), workers - 1)
    return domain


def near_pairs(near: Near, random: Longs) -> tuple[Ints, Ints]:
    """Return int32[k] twice: hosts, and for each another at the nearest distance; k is 0 for a single host.

    Parameters
    ----------
    random : int64[2, k]
        Random numbers >= 0 that choose the hosts and one of those near each.
    """
    group = near.host_group[random[0] % len(near.host_group)]
    count = near.middle[group] - near.start[group]
    one, count, random = (random[0] % len(near.host_group))[count > 0], count[count > 0], random[:, count > 0]
    beside = near.group[near.start[near.host_group[one]] + random[1] % np.maximum(count, 1)]
    slots = near.first[beside + 1] - near.first[beside]
    other = near.slot_host[near.slot[near.first[beside] + random[1] // np.maximum(count, 1) % slots]]
    return one.astype(np.int32), other.astype(np.int32)


class Team:
    """Threads for the rounds of a search: ``run(task)`` returns the results of all workers in order."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        threads = min(workers, cores())
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def run(self, task: Callable[[int], Result]) -> list[Result]:
        """Return the task's result for each worker."""
        if self._pool is None:
            return [task(worker) for worker in range(self.workers)]
        return list(self._pool.map(task, range(self.workers)))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()
