"""Up*/down* routing: all shortest paths that never go up again after going down.

A breadth-first tree from a root gives every vertex a level. The up end of a link is the one nearer to the
root; of two ends on the same level, the one that comes first in the fabric. Hosts are below all switches. All
shortest legal paths of a pair share its traffic equally; parallel cables are one path, shared in proportion
to capacity. Legal paths need not be shortest paths of the network. Sources: Schroeder et al., "Autonet: a
high-speed, self-configuring local area network using point-to-point links", 1991; Orduña, Silla and Duato,
"On the development of a communication-aware task mapping technique", 2004, section 3.

A path is in one of two states, so the search runs on a graph with two layers: a vertex that may still be left
upwards, and its twin that may not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra

from mapping.routing.kernels.paths import ArcArrays
from mapping.routing.network import Network, arc_arrays, attach
from mapping.routing.routes import ALL_CONNECTED
from mapping.routing.shortest_paths import ShortestPaths
from registry.errors import UnknownName
from registry.model import Bools, Fabric, Ints, Longs


def build(fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED, root: str = "") -> UpDown:
    """Return routes by up*/down*.

    Args:
        root: Name of the vertex at the root of the tree (default: the forwarding vertex with the most links
            to others, of equal ones the first). Parts of the fabric that it does not reach have their own
            roots, chosen in the same way.
    """
    ends, network = attach(fabric, hosts)
    names = [fabric.names[v] for v in np.flatnonzero(fabric.forwards).tolist()]
    if root and root not in names:
        raise UnknownName("switch", root, names)
    first = names.index(root) if root else -1
    layered, twin = _layered(network, _levels(network.arcs, first))
    return UpDown(fabric, ends, layered, rails, twin)


class UpDown(ShortestPaths):
    """Routes over all shortest legal paths of up*/down*."""

    name = "up-down"


def _levels(arcs: ArcArrays, root: int) -> Longs:
    """Return the links (int64[v]) from the root of each vertex's part.

    Vertices that do not forward are below all others.
    """
    vertices = len(arcs.forwards)
    tail = np.repeat(np.arange(vertices), np.diff(arcs.out_ptr))
    inner = arcs.forwards[tail] & arcs.forwards[arcs.head]
    graph = coo_array((np.ones(int(inner.sum())), (tail[inner], arcs.head[inner])), shape=(vertices,) * 2)
    both = (graph + graph.T).tocsr()
    _, part = connected_components(both, directed=False)
    degree = np.diff(both.indptr)
    by_degree = np.lexsort((np.arange(vertices), -degree, part))
    roots = by_degree[np.r_[True, np.diff(part[by_degree]) > 0][:vertices]]
    if root >= 0:
        roots[part[roots] == part[root]] = root
    level = dijkstra(both, unweighted=True, indices=roots, min_only=True)
    return np.where(arcs.forwards, level, vertices).astype(np.int64)


def _layered(network: Network, level: Longs) -> tuple[Network, Ints]:
    """Return the network of both states of a path, and the twin of each vertex where paths start."""
    arcs, vertices = network.arcs, len(level)
    tail, head = np.repeat(np.arange(vertices), np.diff(arcs.out_ptr)), arcs.head.astype(np.int64)
    up = (level[head] < level[tail]) | ((level[head] == level[tail]) & (head < tail))
    every, down = np.arange(len(head)), np.flatnonzero(~up)
    origin = np.r_[every, down]
    source = np.r_[tail, tail[down] + vertices]
    target = np.r_[np.where(up, head, head + vertices), head[down] + vertices]
    order = np.lexsort((target, source))
    both: Bools = np.tile(arcs.forwards, 2)
    twin = np.r_[np.arange(vertices, 2 * vertices), np.full(vertices, -1)].astype(np.int32)
    layered = replace(
        network,
        arcs=arc_arrays(source[order], target[order], both),
        cables=network.cables.take(origin[order]),
    )
    return layered, twin
