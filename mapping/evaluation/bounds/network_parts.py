"""Parts of a network for cuts: leaf switches, pods, cliques, halves.

Any parts give valid bounds; these give good bounds on networks in common use.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from mapping.distances.distances import Distances
from mapping.placement.partition.bisection import bisect, weighted_graph
from mapping.routing.network import attachment
from mapping.routing.routes import Routes
from registry.model import Allocation, Bools, Bound, Fabric, Longs

MAX_GROUPS = 2048
"""Largest number of host groups of which all distances are used together."""
MAX_TIERS = 4
"""Largest number of distances at which hosts are grouped by nearness, above the leaf switches."""
MAX_CLIQUE_WORK = 20_000_000
"""Largest number of arc pairs that are searched for densely cabled groups of vertices."""
MAX_BISECTED_ARCS = 100_000
"""Largest network that is bisected."""
BISECTIONS = 2
"""Number of bisections of the network: into 2 parts, then 4."""


NOT_TRIED = "not tried: "
"""Beginning of the proof of a bound of 0 if an argument was left out because of size."""


def not_tried(routes: Routes, near: Distances) -> list[Bound]:
    """Return bounds of 0 for cuts left out because the network is too large, each with the reason."""
    work, arcs = _clique_work(routes.fabric), int(_inner(routes.fabric).sum())
    sizes = (
        ("pod-cut", "pods", near.groups, "kinds of hosts", MAX_GROUPS),
        ("pod-cut", "densely cabled parts", work, "pairs of arcs", MAX_CLIQUE_WORK),
        ("bisection", "parts of 2 and of 4", arcs, "arcs", MAX_BISECTED_ARCS),
    )
    return [
        Bound(
            value=0.0, proof=f"{NOT_TRIED}{name} of {what}: {size:.6g} {of}, more than {most:.6g}", name=name
        )
        for name, what, size, of, most in sizes
        if size > most
    ]


def leaf_parts(routes: Routes, vertex: Longs) -> Longs | None:
    """Return the leaf switches of the hosts (int64[n]) as parts, -1 for others; None for direct networks.

    Parameters
    ----------
    vertex : int64[h]
        Result of `host_vertex`, here and below.
    """
    fabric = routes.fabric
    if bool(fabric.forwards[routes.hosts].any()):
        return None
    part = np.full(len(fabric), -1, np.int64)
    leaves = np.unique(vertex)
    part[leaves] = np.arange(len(leaves))
    return part


def host_vertex(routes: Routes) -> Longs | None:
    """Return the forwarding vertex (int64[h]) that each host is attached to or is.

    None if a host has several such vertices or none.
    """
    fabric, ends = routes.fabric, routes.ends
    if bool((np.diff(ends.port_ptr[ends.rail_ptr]) == 0).any()):
        return None
    of_port = attachment(fabric, ends)
    direct = fabric.forwards[routes.hosts]
    of_port = np.where(direct[ends.port_host], routes.hosts[ends.port_host], of_port)
    first = of_port[ends.port_ptr[ends.rail_ptr[:-1]]]
    if bool((of_port < 0).any() or (of_port != first[ends.port_host]).any()):
        return None
    return np.asarray(first, np.int64)


def tiers(routes: Routes, near: Distances, vertex: Longs) -> list[Longs]:
    """Return parts of hosts nearer to each other than a distance, for each distance that separates parts."""
    if near.groups > MAX_GROUPS:
        return []
    between = np.minimum(near.between, near.between.T)
    found: list[Longs] = []
    for distance in np.unique(between)[1 : MAX_TIERS + 2]:
        count, label = connected_components(csr_array(between < distance), directed=False)
        if count == 1:
            break
        if 1 < count < near.groups:
            part = np.full(len(routes.fabric), -1, np.int64)
            part[vertex] = label[near.group]
            found.append(_grown(routes, part))
    return found


def _grown(routes: Routes, part: Longs) -> Longs:
    """Assign each switch in between to the part that has more than half of its known capacity."""
    fabric = routes.fabric
    tail, inner = np.repeat(np.arange(len(fabric)), np.diff(fabric.indptr)), _inner(fabric)
    tail, head, capacity = tail[inner], fabric.neighbour[inner], fabric.capacity[inner]
    parts, grown = int(part.max()) + 1, part.copy()
    for _ in range(3):
        known = grown[head] >= 0
        to = np.bincount(tail[known] * parts + grown[head[known]], capacity[known], len(fabric) * parts)
        table = to.reshape(len(fabric), parts)
        most, taken = table.argmax(axis=1), table.max(axis=1)
        clear = (taken > 0.5 * table.sum(axis=1)) & fabric.forwards & (grown < 0)
        if not clear.any():
            break
        grown[clear] = most[clear]
    return grown


def dense_parts(routes: Routes) -> Longs | None:
    """Return parts joined by arcs whose ends share many neighbours: cliques, such as dragonfly groups."""
    fabric = routes.fabric
    if _clique_work(fabric) > MAX_CLIQUE_WORK:
        return None
    forwards = np.flatnonzero(fabric.forwards)
    graph = csr_array(
        (np.ones(len(fabric.neighbour), np.float32), fabric.neighbour, fabric.indptr),
        shape=(len(fabric),) * 2,
    )[forwards][:, forwards]
    common = (graph @ graph).multiply(graph).tocsr()
    if common.nnz == 0:
        return None
    common.data = (common.data >= 0.5 * common.data.max()).astype(np.float32)
    common.eliminate_zeros()
    count, label = connected_components(common, directed=False)
    if not 1 < count < len(forwards):
        return None
    part = np.full(len(fabric), -1, np.int64)
    part[forwards] = label
    return part


def bisections(routes: Routes, allocation: Allocation, vertex: Longs) -> list[tuple[int, Longs]]:
    """Return the network cut into 2 parts, then 4, with equal slots in each and little capacity between."""
    fabric = routes.fabric
    tail, inner = np.repeat(np.arange(len(fabric)), np.diff(fabric.indptr)), _inner(fabric)
    if not 0 < int(inner.sum()) <= MAX_BISECTED_ARCS:
        return []
    graph = weighted_graph(tail[inner], fabric.neighbour[inner], fabric.capacity[inner], len(fabric))
    weight = np.bincount(vertex, allocation.slots, len(fabric)).astype(np.int64)
    forwards = np.flatnonzero(fabric.forwards)
    part = np.where(fabric.forwards, 0, -1)
    found: list[tuple[int, Longs]] = []
    for level in range(1, BISECTIONS + 1):
        cut = part.copy()
        for one in range(1 << (level - 1)):
            inside = forwards[part[forwards] == one]
            if int(weight[inside].sum()) < 2:
                return found
            first = bisect(graph[inside][:, inside], weight[inside], 0.5, seed=0, cuts=4, slack=0.02)
            cut[inside] = 2 * one + np.where(first, 0, 1)
        part = cut
        found.append((1 << level, part))
    return found


def _inner(fabric: Fabric) -> Bools:
    """Return the arcs (bool[arcs]) between vertices that forward."""
    return np.repeat(fabric.forwards, np.diff(fabric.indptr)) & fabric.forwards[fabric.neighbour]


def _clique_work(fabric: Fabric) -> float:
    """Return the number of pairs of arcs that leave the same vertex, over all forwarding vertices."""
    tail = np.repeat(np.arange(len(fabric)), np.diff(fabric.indptr))
    return float((np.bincount(tail[_inner(fabric)], minlength=len(fabric)) ** 2.0).sum())
