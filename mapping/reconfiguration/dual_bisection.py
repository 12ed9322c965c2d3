"""The initial partition: application and topology bisected together (section 3.2.2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from mapping.placement.partition.bisection import MOST, Adjacency, bisect, repaired, weighted_graph
from mapping.reconfiguration.coarsening import Level
from mapping.reconfiguration.topology import Topology
from registry.model import Bools, Floats, Ints, Longs

SMALL = 8
"""Graphs of fewer vertices are cut by trying all cuts, as METIS tends to leave one part empty."""
SLACK = 0.05
"""How far a part of the application may be above its share: a maximum imbalance of 1.05."""


@dataclass(frozen=True, eq=False)
class _Part:
    """Some vertices (int64[k]) of a graph, ascending; the graph of these is made where it is asked for."""

    kept: Longs
    whole: Adjacency

    def half(self, inside: Bools) -> _Part:
        return _Part(self.kept[inside], self.whole)

    @cached_property
    def graph(self) -> Adjacency:
        return self.whole.among(self.kept)

    @property
    def edges(self) -> int:
        return self.graph.nnz if len(self.kept) > 1 else 0


def dual_bisection(level: Level, topology: Topology, generator: np.random.Generator) -> Ints:
    """int32[v]: node of each vertex, by recursive bisection of both graphs (section 3.2.2).

    Both are cut into two parts of least edge-cut: the topology, whose nodes and links weigh 1, into parts of
    equally many nodes (of an odd number, one more in one), the application into parts whose loads are as the
    numbers of nodes within 5%. The bigger part goes to the bigger part: that of more load (of more nodes), or
    of equal ones that of more edges; of parts that are equal in both, the first goes to the first. METIS cuts
    graphs of 8 vertices and more; of smaller ones that balanced cut is taken that cuts least, or, where none
    is balanced within 5%, of those that are closest to it. Loads are no whole numbers, so a part, and in the
    end a node, may be left empty.

    Parameters
    ----------
    level : Level
        The coarsest graph.
    generator : numpy.random.Generator
        Gives METIS its seed.
    """
    seed = int(generator.integers(1 << 31))
    vertices, nodes = len(level.vertex_weight), topology.nodes
    guest = weighted_graph(level.source, level.target, level.weight, vertices)
    host = weighted_graph(topology.source, topology.target, np.ones(len(topology.source)), nodes)
    node_of_vertex = np.zeros(vertices, np.int32)
    parts = [(_Part(np.arange(vertices), Adjacency.of(guest)), _Part(np.arange(nodes), Adjacency.of(host)))]
    while parts:
        mine, places = parts.pop()
        if len(places.kept) == 1:
            node_of_vertex[mine.kept] = places.kept[0]
        elif len(mine.kept) > 0:
            size = (len(places.kept) + 1) // 2
            near = _cut_nodes(places, size, seed)
            weight = level.vertex_weight[mine.kept]
            inside = cut(mine.graph, weight, size / len(places.kept), seed)
            bigger, smaller = _by_size(mine, inside, weight)
            wide, narrow = _by_size(places, near, np.ones(len(places.kept)))
            parts += [(bigger, wide), (smaller, narrow)]
    return node_of_vertex


def cut(graph: Adjacency, weight: Floats, share: float, seed: int) -> Bools:
    """bool[k]: the first of two parts of an application, which shall have this share of the weight."""
    if not weight.any():
        weight = np.ones(len(weight))
    if len(weight) < SMALL:
        return cut_small(graph, weight, share)
    whole = np.rint(weight * (MOST / float(weight.sum()))).astype(np.int64)
    return bisect(graph, whole, share, seed=seed, slack=SLACK)


def cut_small(graph: Adjacency, weight: Floats, share: float) -> Bools:
    """bool[k]: the first part of the best of all cuts of fewer than 8 vertices.

    Balanced cuts, neither part more than 5% above its share, come first, by what they cut; then
    others, by how far a part is above its share. Ties go to the more balanced, then to the lowest in binary.
    """
    inside = _all_parts(len(weight))
    load, total = inside @ weight, float(weight.sum())
    above = np.maximum(load / share, (total - load) / (1.0 - share)) / total - 1.0
    between = ((inside @ graph.dense()) * ~inside).sum(axis=1)
    unbalanced = np.where(above <= max(SLACK, float(above.min()) + 1e-12), 0.0, above)
    best = np.lexsort((above, between, unbalanced))[0]
    chosen: Bools = inside[best]
    return chosen


@cache
def _all_parts(count: int) -> Bools:
    """bool[2^count, count]: all subsets, in binary order, the first vertex lowest."""
    bits = np.arange(1 << count)[:, None] >> np.arange(count)
    return np.asarray(bits & 1, np.bool_)


def _cut_nodes(places: _Part, size: int, seed: int) -> Bools:
    """bool[k]: the first part, of exactly `size` nodes."""
    count = len(places.kept)
    if count < SMALL:
        return cut_small(places.graph, np.ones(count), size / count)
    first = bisect(places.graph, np.ones(count, np.int64), size / count, seed=seed)
    return repaired(places.graph, first, size)


def _by_size(part: _Part, inside: Bools, weight: Floats) -> tuple[_Part, _Part]:
    """The two halves of a part, the bigger first."""
    first, second = part.half(inside), part.half(~inside)
    one, other = float(weight[inside].sum()), float(weight[~inside].sum())
    swapped = second.edges > first.edges if one == other else other > one
    return (second, first) if swapped else (first, second)
