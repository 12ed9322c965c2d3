"""Least hop-bytes of all ranks with their partners, if pairs with many bytes may not be on some hosts."""

from __future__ import annotations

import numpy as np

from mapping.kernels.decorators import allocating, kernel
from registry.model import Floats, Longs


@allocating
def least_hop_bytes(ptr: Longs, bytes: Floats, allowed: Longs, near: Longs, links: Floats) -> float:
    """Return the least bytes times links of all pairs of ranks.

    Args:
        ptr (int64[n + 1]), bytes (float64[e]): Bytes of each rank with each of its partners, heaviest first.
        allowed (int64[e]): Column of `near` for each partner; -1 if it may be nowhere near.
        near (int64[l, k]): Most slots that a rank has within each distance, of those that the partner may
            use.
        links (float64[l]): The distances, rising from 0.

    Notes:
        Partners that may use more slots may use those of the others, too. So partners within a distance are
        jobs of one unit of time each with deadlines, of which those with the most bytes are chosen: heaviest
        first, each as late as possible (job sequencing: Lawler, "Combinatorial Optimization", 1976, chapter
        7).
    """
    ranks, total = len(ptr) - 1, 0.0
    free = np.empty(np.diff(ptr).max() + 1, np.int64)
    for rank in range(ranks):
        for level in range(len(links) - 1):
            beyond = _not_within(ptr[rank], ptr[rank + 1], bytes, allowed, near[level], free)
            if beyond == 0.0:
                break
            total += beyond * (links[level + 1] - links[level]) / 2
    return total


@kernel
def _not_within(begin: int, end: int, bytes: Floats, allowed: Longs, slots: Longs, free: Longs) -> float:
    """Return the least bytes of a rank with partners that are not on the given slots.

    `free` is overwritten: the last free time at or before each, 0 if there is none.
    """
    beyond = 0.0
    for time in range(end - begin + 1):
        free[time] = time
    for partner in range(begin, end):
        time = min(slots[allowed[partner]], end - begin) if allowed[partner] >= 0 else 0
        while free[time] != time:
            free[time] = free[free[time]]
            time = free[time]
        if time == 0:
            beyond += bytes[partner]
        else:
            free[time] = time - 1
    return beyond
