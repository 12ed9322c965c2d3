"""Edge swaps that relieve the bottleneck, and make the topology of the next iteration (section 3.3)."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mapping.reconfiguration.model.solution import COMPUTE, Pair, Solution, bottleneck
from mapping.reconfiguration.model.topology import Topology
from registry.model import Bools, Floats, Longs


class Swap(NamedTuple):
    """An edge swap.

    Attributes
    ----------
    topology : Topology
        The topology after it.
    removed, inserted : ((int, int), (int, int))
        The two links removed, and the two added, as pairs of nodes.
    """

    topology: Topology
    removed: tuple[Pair, Pair]
    inserted: tuple[Pair, Pair]


def next_swap(
    topology: Topology, solution: Solution, generator: np.random.Generator, *, skip: float
) -> Swap | None:
    """Return a swap for the present bottleneck, or None if no two links can be swapped.

    Parameters
    ----------
    topology : Topology
        H_i, connected.
    solution : Solution
        Solution on that topology, whose loads are the weights of nodes and links.
    generator : numpy.random.Generator
        Decides which of the two ways of swapping a pair is tried first, and which pairs are skipped.
    skip : float
        Probability, 0 <= skip < 1, that a possible pair is ignored, to avoid cycles of topologies (section
        3.3, last paragraph). If all pairs were ignored, the first of them is swapped.
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
    """Yield pairs of links for a compute bottleneck, in the order to try them (section 3.3, Figure 3).

    e_high, a light link between heavy nodes, has the lowest expansion: load over the product of its nodes'
    loads. e_low has the lowest such vertex-product. All e_low are tried with the first e_high, then with the
    next. A link at an empty node has infinite expansion; ties by row.
    """
    product = solution.node_load[topology.source] * solution.node_load[topology.target]
    expansion = np.full(topology.links, np.inf)
    np.divide(solution.link_load, product, out=expansion, where=product > 0)
    low = np.argsort(product, kind="stable").tolist()
    for one in np.argsort(expansion, kind="stable").tolist():
        yield from ((one, other) for other in low)


def communication_candidates(topology: Topology, solution: Solution) -> Iterator[Pair]:
    """Yield pairs of links for a communication bottleneck, in the order to try them (Figure 4).

    A light link on either side of the bottleneck cut, the pair with the smallest sum of loads first. After
    those pairs, or if a side has no link, any two links in the same order.
    """
    load, side = solution.link_load, bottleneck_cut(topology, solution.link_load)
    ends = side[topology.source], side[topology.target]
    inside = np.flatnonzero(~ends[0] & ~ends[1]), np.flatnonzero(ends[0] & ends[1])
    yield from _lightest_pairs(load, inside[0], inside[1])
    every = np.arange(topology.links)
    yield from ((one, other) for one, other in _lightest_pairs(load, every, every) if one < other)


def bottleneck_cut(topology: Topology, link_load: Floats) -> Bools:
    """Return the side of the bottleneck cut without node 0 (bool[nodes]; section 3.3).

    Links are removed by descending load, ties by row, until the nodes are disconnected.
    """
    order = np.argsort(-link_load, kind="stable")
    for count in range(1, topology.links + 1):
        label = topology.components(order[:count])
        if label.any():
            return np.asarray(label != label[0])
    return np.zeros(topology.nodes, bool)


def swap_pair(topology: Topology, one: int, other: int, *, crossed: bool) -> Swap | None:
    """Return the swap of two links, or None if neither way is allowed (section 3.3, conditions a to c).

    The links must share no node, the new links must not exist yet, and nodes must stay connected.

    Parameters
    ----------
    one, other : int
        Rows of links.
    crossed : bool
        Way that is tried first (`Topology.swapped`).
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
    """Yield pairs of a link of each of two sets, by rising sum of loads; ties by place."""
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
