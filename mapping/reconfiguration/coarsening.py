"""Coarsening by greedy maximal matchings of least edge expansion (section 3.2.1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.reconfiguration.kernels.expansion_matching import match_in_order
from mapping.reconfiguration.problem import Application
from registry.errors import UnknownName
from registry.model import Bools, Floats, Ints, Longs

LOWEST, HIGHEST = "lowest", "highest"
EXPANSIONS = (LOWEST, HIGHEST)
FEWEST = 100
"""Vertices that a graph is not coarsened below, however few nodes there are."""
STALLED = 0.02
"""A round that takes away a smaller part of the vertices is the last: a star loses one a round."""


class Level(NamedTuple):
    """A graph of the hierarchy, and how the next finer one was contracted to it.

    Attributes
    ----------
    vertex_weight : float64[v]
    source, target : int32[e]
        ``source < target``, ascending.
    weight : float64[e]
    vertex : int32[v of the finer graph]
        Vertex that each was contracted to; empty for the finest graph, as are the two below.
    edge : int32[e of the finer graph]
        Edge that each is part of; -1 for a contracted one.
    backwards : bool[e of the finer graph]
        Whether its source is part of the target of that edge.
    """

    vertex_weight: Floats
    source: Ints
    target: Ints
    weight: Floats
    vertex: Ints
    edge: Ints
    backwards: Bools


def fewest_vertices(nodes: int) -> int:
    """Vertices to coarsen down to: max(P^1.5, 100) for P nodes, rounded down (section 3.2.1)."""
    return max(int(nodes**1.5), FEWEST)


def coarsen(application: Application, nodes: int, *, expansion: str = LOWEST) -> tuple[Level, ...]:
    """The graphs from the application itself, the finest, to one of `fewest_vertices`, by section 3.2.1.

    Each round considers edges in increasing order of expansion (equation 1), ties by row, matches the ends of
    each that are both unmatched yet, and contracts the matching. Of the last round only as many edges, the
    first ones, are contracted as leave that number of vertices. It is missed where no edges are left,
    or where a round takes away less than `STALLED` of the vertices: the lowest expansions are those of the
    heaviest vertices, which grow to hubs, so that matchings get small in large graphs.

    The graphs depend on the application and the number of nodes alone: they may be made once for many
    topologies.

    Parameters
    ----------
    nodes : int
        Of the topology.
    expansion : str
        ``lowest`` first, as the paper says, or ``highest``: heavy edges between light vertices first.

    Raises
    ------
    UnknownName
        For `expansion`.
    """
    if expansion not in EXPANSIONS:
        raise UnknownName("expansion", expansion, EXPANSIONS)
    fewest = fewest_vertices(nodes)
    none = np.zeros(0, np.int32)
    levels = [
        Level(
            application.vertex_weight,
            application.source,
            application.target,
            application.weight,
            vertex=none,
            edge=none,
            backwards=np.zeros(0, np.bool_),
        )
    ]
    while len(levels[-1].vertex_weight) > fewest:
        fine = levels[-1]
        size = len(fine.vertex_weight)
        mate = matching(fine, size - fewest, expansion=expansion)
        made = int(np.count_nonzero(mate != np.arange(size))) // 2
        if made == 0:
            break
        levels.append(contracted(fine, mate))
        if made < STALLED * size:
            break
    return tuple(levels)


def matching(level: Level, most: int, *, expansion: str = LOWEST) -> Ints:
    """int32[v]: partner of each vertex, or itself, in the greedy maximal matching of at most so many pairs.

    Edges are taken by expansion, w_e / (w_u w_v) (equation 1), of equals the first row; one without weight
    has expansion 0, and one at a vertex without weight an infinite one.
    """
    product = level.vertex_weight[level.source] * level.vertex_weight[level.target]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = level.weight / product
    value[level.weight == 0] = 0.0
    order: Longs = np.argsort(value if expansion == LOWEST else -value, kind="stable")
    mate = np.arange(len(level.vertex_weight), dtype=np.int32)
    match_in_order(order, np.array(level.source), np.array(level.target), most, mate)
    return mate


def contracted(fine: Level, mate: Ints) -> Level:
    """The graph in which each vertex and its partner are one (section 2.4).

    Weights of vertices are summed, and those of edges that come to join the same two. Vertices are numbered
    by the lower of the two that they are made of.
    """
    size = len(mate)
    first = np.minimum(np.arange(size), mate)
    is_first = first == np.arange(size)
    vertex = (np.cumsum(is_first) - 1)[first].astype(np.int32)
    count = int(np.count_nonzero(is_first))
    one, other = vertex[fine.source].astype(np.int64), vertex[fine.target].astype(np.int64)
    apart = one != other
    low, high = np.minimum(one, other), np.maximum(one, other)
    key, place = np.unique(low[apart] * count + high[apart], return_inverse=True)
    edge = np.full(len(one), -1, np.int32)
    edge[apart] = place.reshape(-1)
    return Level(
        np.bincount(vertex, fine.vertex_weight, count).astype(np.float64),
        (key // count).astype(np.int32),
        (key % count).astype(np.int32),
        np.bincount(edge[apart], fine.weight[apart], len(key)).astype(np.float64),
        vertex=vertex,
        edge=edge,
        backwards=one > other,
    )
