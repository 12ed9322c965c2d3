"""The hierarchy of an allocation's hosts, found from their distances, and its levels.

Hosts are clustered by average linkage, which finds pods, leaf switches, groups and cabinets without their
names; branches that join at nearly the same height are one branching.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage

from mapping.distances.distances import Distances
from mapping.placement.problem.problem import Problem
from registry.model import Floats, Ints, Longs

MOST_GROUPS = 8192
"""Most host groups that are clustered; of more, adjacent ones are combined."""
TOGETHER = 0.02
"""Branches that join within this part of the highest join are one branching."""
LARGEST = 7
"""Largest prime number of parts into which ranks are cut at one level."""


class Branch(NamedTuple):
    """A part of the hosts and its own parts.

    Attributes
    ----------
    height : float
        Mean distance at which its parts join.
    parts : tuple of Branch
        Empty if the hosts are not divided further.
    hosts : int32[k]
        Hosts in the order of the parts.
    """

    height: float
    parts: tuple[Branch, ...]
    hosts: Ints


def hierarchy(problem: Problem) -> Branch:
    """Return the hosts of an allocation, clustered by distance; computed once for a problem."""
    return problem.memo.once("hierarchy", lambda: _clustered(problem))


def _clustered(problem: Problem) -> Branch:
    distances = problem.distances
    order = np.argsort(distances.group, kind="stable").astype(np.int32)
    first = np.searchsorted(distances.group[order], np.arange(distances.groups))
    kept = np.arange(0, distances.groups, -(-distances.groups // MOST_GROUPS))
    hosts = np.split(order, first[kept[1:]])
    if len(hosts) == 1:
        return Branch(0.0, (), hosts[0])
    joins: Floats = linkage(_condensed(distances, kept), "average")
    return _Clusters(hosts, joins).branch(2 * len(hosts) - 2)


def _condensed(distances: Distances, kept: Longs) -> Floats:
    """Return float64[k * (k - 1) / 2]: mean distances of both directions between groups, in scipy's order."""
    found = np.empty(len(kept) * (len(kept) - 1) // 2)
    end, symmetric = 0, distances.symmetric
    for at, group in enumerate(kept[:-1].tolist()):
        there, back = distances.rows(group)
        others, begin = kept[at + 1 :], end
        end += len(others)
        found[begin:end] = there[others] if symmetric else (there[others] + back[others]) / 2
    return found


class _Clusters:
    """Clusters in scipy's numbering: groups of hosts first, then joins of two."""

    def __init__(self, hosts: list[Ints], joins: Floats) -> None:
        self._hosts = hosts
        self._pairs = joins[:, :2].astype(np.int64).tolist()
        self._heights = [0.0] * len(hosts) + joins[:, 2].tolist()

    def branch(self, cluster: int) -> Branch:
        """Return a cluster with all below it."""
        if cluster < len(self._hosts):
            return Branch(0.0, (), self._hosts[cluster])
        height = self._heights[cluster]
        lowest = height - TOGETHER * self._heights[-1]
        open_, found = [cluster], []
        while open_:
            at = open_.pop()
            if at >= len(self._hosts) and self._heights[at] >= lowest:
                open_ += self._pairs[at - len(self._hosts)]
            else:
                found.append(self.branch(at))
        parts = tuple(sorted(found, key=lambda part: int(part.hosts[0])))
        return Branch(height, parts, np.concatenate([part.hosts for part in parts]))


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
        for number, index in enumerate(np.argsort(-room, kind="stable").tolist()):
            part = branch.parts[index]
            for below, digit in enumerate(np.unravel_index(number, sides)):
                columns[level + below][part.hosts] = digit
            todo.append((part, level + len(sides)))
    return np.stack(columns, axis=1) if columns else np.zeros((len(slots), 0), np.int32)


def factors(parts: int) -> tuple[int, ...]:
    """Return the prime factors of a number > 1, the largest first; of the next number if one is too large."""
    found = prime_factors(parts)[::-1]
    return found if found[0] <= LARGEST else factors(parts + 1)


def prime_factors(number: int) -> tuple[int, ...]:
    """Return the prime factors of a number, the smallest first; none of 1."""
    found, factor = [], 2
    while factor * factor <= number:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    return (*found, number) if number > 1 else tuple(found)
