"""Reverse Cuthill-McKee ordering with ties by index, so that the order is the same on every machine.

A library's ordering that sorts vertices of one degree by an unstable sort differs between processors.
"""

from __future__ import annotations

import numpy as np

from mapping.kernels.decorators import allocating, kernel
from registry.model import Ints, Longs


@allocating
def reverse_cuthill_mckee(ptr: Longs, neighbour: Ints, peripheral: bool) -> Ints:
    """Order the vertices of an undirected graph so that neighbours come close to each other.

    Components follow each other by their lowest vertex before all is reversed. Cuthill and McKee,
    "Reducing the bandwidth of sparse symmetric matrices" (1969): breadth first, of a vertex's new
    neighbours those of least degree first.

    Args:
        ptr (int64[n + 1]), neighbour (int32[arcs]): CSR, both directions of every edge, neighbours ascending.
        peripheral: Begin at a pseudo-peripheral vertex (George and Liu 1979), found from the vertex of least
            degree; otherwise at that one itself. Ties go to the lower index.

    Returns:
        int32[n]: Vertices in their new order.
    """
    n = len(ptr) - 1
    degree = (ptr[1:] - ptr[:-1]).astype(np.int32)
    order, level = np.empty(n, np.int32), np.full(n, -1, np.int32)
    placed = int(np.int64(0))
    for lowest in range(n):
        if level[lowest] >= 0:
            continue
        end, _ = _search(ptr, neighbour, degree, lowest, order, placed, level)
        root = int(np.int64(_least(order, placed, end, degree)))
        end, deepest = _search(ptr, neighbour, degree, root, order, placed, level)
        while peripheral:
            first = end
            while first > placed and level[order[first - 1]] == deepest:
                first -= 1
            other = int(np.int64(_least(order, first, end, degree)))
            _, depth = _search(ptr, neighbour, degree, other, order, placed, level)
            if depth <= deepest:
                _search(ptr, neighbour, degree, root, order, placed, level)
                break
            root, deepest = other, depth
        placed = end
    return order[::-1].copy()


@allocating
def _search(
    ptr: Longs, neighbour: Ints, degree: Ints, root: int, order: Ints, placed: int, level: Ints
) -> tuple[int, int]:
    """Write the Cuthill-McKee order of a component into ``order[placed:]``; return its end and depth.

    Levels of an earlier search of the component are cleared first.
    """
    queue = [root]
    forget = level[root] >= 0
    if forget:
        level[root] = -1
        at = 0
        while at < len(queue):
            for e in range(ptr[queue[at]], ptr[queue[at] + 1]):
                v = int(neighbour[e])
                if level[v] >= 0:
                    level[v] = -1
                    queue.append(v)
            at += 1
    order[placed], level[root] = root, 0
    at, end = placed, placed + 1
    while at < end:
        u = order[at]
        at += 1
        first = end
        for e in range(ptr[u], ptr[u + 1]):
            v = neighbour[e]
            if level[v] < 0:
                level[v] = level[u] + 1
                order[end] = v
                end += 1
        found = order[first:end].copy()
        order[first:end] = found[np.argsort(degree[found], kind="mergesort")]
    return end, int(level[order[end - 1]])


@kernel
def _least(order: Ints, first: int, end: int, degree: Ints) -> int:
    """Return the vertex of least degree, then of lowest index, among ``order[first:end]``."""
    best = order[first]
    for at in range(first + 1, end):
        v = order[at]
        if degree[v] < degree[best] or (degree[v] == degree[best] and v < best):
            best = v
    return int(best)
