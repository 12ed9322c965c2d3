"""Ranks cut along eigenvectors of their graph, at the borders of the hosts' hierarchy.

METIS cuts each part separately, with ragged borders. Here an eigenvector (see
`mapping.placement.strategies.spectral`) is chosen for each level of the hierarchy, and ranks are sorted along
it in all branches of that level. A grid of ranks becomes straight blocks, which are aligned if switches
connect the same parts of several branches, such as rows and columns of cabinets. Several assignments of
vectors to levels are tried.
"""

from __future__ import annotations

import itertools

import numpy as np

from mapping.placement.problem.problem import Problem
from mapping.placement.strategies.coordinate_assignment import aligned, assign_by_coordinates
from mapping.placement.strategies.multilevel import Branch, hierarchy
from registry.model import Floats, Ints, Longs

MOST_TRIES = 100
"""Most assignments of vectors to levels that are tried."""
FREE = 6
"""Number of levels whose vectors are chosen; further levels repeat them."""
LARGEST = 7
"""Largest prime number of parts into which ranks are cut at one level."""


def assign_by_hierarchy(problem: Problem, smooth: Floats) -> Ints:
    """Return int32[ranks]: the host index of each rank, by the assignment with the fewest hop-bytes.

    Parameters
    ----------
    smooth : float64[ranks, k]
        Eigenvectors of the guest graph by eigenvalue; k >= 1.
    """
    found, lowest = problem.slot_host[: problem.ranks].copy(), np.inf
    levels = levels_of(hierarchy(problem), problem.allocation.slots.astype(np.int64))
    depth = levels.shape[1]
    if depth == 0:
        return found
    free = min(depth, FREE)
    vectors = min(max(int(MOST_TRIES ** (1 / free) + 1e-9), 2), smooth.shape[1])
    ways = list(itertools.islice(itertools.product(range(vectors), repeat=free), MOST_TRIES))
    for coordinates, way in itertools.product((smooth, aligned(smooth, 2)), ways):
        hosts = assign_by_coordinates(coordinates[:, np.resize(way, depth)], levels, problem.slot_host)
        value = problem.hop_bytes(hosts)
        if value < lowest:
            found, lowest = hosts, value
    return found


def levels_of(top: Branch, slots: Longs) -> Ints:
    """Return int32[h, levels]: the part of its branch to which each host belongs, by level.

    The parts with most slots come first, so that as few as possible are used. Many parts make several levels,
    by the prime factors of their number, the largest first.

    Parameters
    ----------
    slots : int64[h]
        Slots of each host.
    """
    columns: list[Ints] = []
    todo = [(top, 0)]
    while todo:
        branch, level = todo.pop()
        if not branch.parts:
            continue
        sides = factors(len(branch.parts))
        columns += [np.zeros(len(slots), np.int32) for _ in range(level + len(sides) - len(columns))]
        room = np.array([int(slots[part.hosts].sum()) for part in branch.parts])
        for number, at in enumerate(np.argsort(-room, kind="stable").tolist()):
            part = branch.parts[at]
            for below, digit in enumerate(np.unravel_index(number, sides)):
                columns[level + below][part.hosts] = digit
            todo.append((part, level + len(sides)))
    return np.stack(columns, axis=1) if columns else np.zeros((len(slots), 0), np.int32)


def factors(parts: int) -> tuple[int, ...]:
    """Return the prime factors of a number > 1, the largest first; of the next number if one is too large."""
    found, left, divisor = [], parts, 2
    while divisor <= LARGEST and left > 1:
        if left % divisor:
            divisor += 1
        else:
            found.append(divisor)
            left //= divisor
    return tuple(found[::-1]) if left == 1 else factors(parts + 1)
