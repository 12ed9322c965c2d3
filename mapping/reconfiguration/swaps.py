"""Edge swaps that take the bottleneck away: how the topology of the next iteration is made (section 3.3)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mapping.reconfiguration.solution import Solution
from mapping.reconfiguration.topology import Topology
from registry.model import Bools, Floats, Longs

COMPUTE, COMMUNICATION = "compute", "communication"
"""Bottlenecks."""

Pair = tuple[int, int]


class Swap(NamedTuple):
    """A swap operation.

    Attributes
    ----------
    topology : Topology
        After it.
    removed, inserted : ((int, int), (int, int))
        Nodes of the two links that went, and of the two that came.
    """

    topology: Topology
    removed: tuple[Pair, Pair]
    inserted: tuple[Pair, Pair]


def bottleneck(solution: Solution) -> str:
    """What limits the throughput: `COMPUTE` (also where both do) or `COMMUNICATION`."""
    computes = solution.compute_throughput <= solution.communication_throughput
    return COMPUTE if computes else COMMUNICATION


def next_swap(
    topology: Topology, solution: Solution, generator: np.random.Generator, *, skip: float
) -> Swap | None:
    """The swap for the present bottleneck; None where no two links can be swapped.

    Parameters
    ----------
    topology : Topology
        H_i, connected.
    solution : Solution
        On that topology: loads of nodes and links are its weights.
    generator : numpy.random.Generator
        Which of the two ways of swapping a pair is tried first, and which pairs are skipped.
    skip : float
        Probability, 0 <= skip < 1, that a pair that can be swapped is ignored, against cycles of topologies
        (section 3.3, last paragraph). Where all pairs were ignored, the first of them is swapped.
    """
    candidates = (
        compute_candidates(topology, solution)
        if bottleneck(solution) == COMPUTE
        else communication_candidates(topology, solution)
    )
    first: Swap | None = None
    for one, other in candidates:
        swap = swap_pair(topology, one, other, crossed=bool(generator.integers(2)))
        if swap is None:
            continue
        if generator.random() >= skip:
            return swap
        first = first or swap
    return first


def compute_candidates(topology: Topology, solution: Solution) -> Iterator[Pair]:
    """Pairs of links for a compute bottleneck, in the order in which they are tried (section 3.3, Figure 3).

    e_high, a light link between heavy nodes, is the one with the lowest expansion: load over the product of
    its nodes' loads. e_low is the link with the lowest such vertex-product. All e_low are tried with the
    first e_high, then with the next. A link at an empty node has infinite expansion; ties by row.
    """
    product = solution.node_load[topology.source] * solution.node_load[topology.target]
    expansion = np.full(topology.links, np.inf)
    np.divide(solution.link_load, product, out=expansion, where=product > 0)
    low = np.argsort(product, kind="stable").tolist()
    for one in np.argsort(expansion, kind="stable").tolist():
        yield from ((one, other) for other in low)


def communication_candidates(topology: Topology, solution: Solution) -> Iterator[Pair]:
    """Pairs of links for a communication bottleneck, in the order in which they are tried (Figure 4).

    A light link on either side of the bottleneck cut, the pair with the smallest sum of loads first. Where a
    side has no link, or after those pairs, any two links, likewise.
    """
    load, side = solution.link_load, bottleneck_cut(topology, solution.link_load)
    ends = side[topology.source], side[topology.target]
    inside = np.flatnonzero(~ends[0] & ~ends[1]), np.flatnonzero(ends[0] & ends[1])
    yield from _lightest_pairs(load, inside[0], inside[1])
    every = np.arange(topology.links)
    yield from ((one, other) for one, other in _lightest_pairs(load, every, every) if one < other)


def bottleneck_cut(topology: Topology, link_load: Floats) -> Bools:
    """bool[nodes]: one side of the bottleneck cut, that without node 0 (section 3.3).

    Links are removed in the order of falling load, ties by row, until the nodes fall apart.
    """
    order = np.argsort(-link_load, kind="stable")
    for count in range(1, topology.links + 1):
        label = topology.components(order[:count])
        if label.any():
            return np.asarray(label != label[0])
    return np.zeros(topology.nodes, bool)


def swap_pair(topology: Topology, one: int, other: int, *, crossed: bool) -> Swap | None:
    """The swap of two links; None where neither way is allowed (section 3.3, conditions a to c).

    They must share no node, the new links must not be there already, and nodes must stay joined.

    Parameters
    ----------
    one, other : int
        Rows of links.
    crossed : bool
        Which way is tried first (`Topology.swapped`).
    """
    removed = _pair(topology, one), _pair(topology, other)
    if one == other or len({*removed[0], *removed[1]}) < 4:
        return None
    for way in (crossed, not crossed):
        inserted = topology.swap_ends(one, other, way)
        if any(topology.link_between(*pair) >= 0 for pair in inserted):
            continue
        swapped = topology.swapped(one, other, way)
        if swapped.connected():
            return Swap(swapped, removed, inserted)
    return None


def _pair(topology: Topology, link: int) -> Pair:
    return int(topology.source[link]), int(topology.target[link])


def _lightest_pairs(load: Floats, one: Longs, other: Longs) -> Iterator[Pair]:
    """Pairs of a link of the one and a link of the other set, by rising sum of loads; ties by place."""
    one, other = (rows[np.argsort(load[rows], kind="stable")] for rows in (one, other))
    if not (len(one) and len(other)):
        return
    first, second = load[one].tolist(), load[other].tolist()
    queue = [(first[0] + second[0], 0, 0)]
    while queue:
        _, i, j = heapq.heappop(queue)
        yield int(one[i]), int(other[j])
        if j + 1 < len(second):
            heapq.heappush(queue, (first[i] + second[j + 1], i, j + 1))
        if j == 0 and i + 1 < len(first):
            heapq.heappush(queue, (first[i + 1] + second[0], i + 1, 0))
