"""Groups of a dragonfly, found from its graph, and their positions in circles."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from dashboard.layouts.order import fitted, natural_order, repeat_number, switch_of
from registry.model import Bools, Fabric, Floats, Ints, Longs

FEWEST = 3
"""Minimum number of groups of a dragonfly."""
ALIKE = 0.9
"""Minimum share of groups that have the median size."""
JOINED = 0.5
"""Minimum share of pairs of groups connected by a cable; trees and tori have far fewer."""
THRESHOLDS = 12
"""Maximum number of thresholds for common neighbours that are tried."""
ROUTERS, HOSTS = 0.62, 0.9
"""Radii of the circles of switches and hosts, relative to the group's."""


def groups(fabric: Fabric) -> Ints | None:
    """Return int32[n]: the group of each vertex, in natural order of first names; None if no dragonfly.

    Switches of a group have common neighbours, switches of different groups almost none: groups are the
    connected components over links whose ends have at least k common neighbours, for each k that occurs. In
    a dragonfly+, whose groups are bipartite, links between switches without hosts are cut instead. The fabric
    is a dragonfly if the groups have about the same size, a small diameter, and links to each other.
    """
    core = np.flatnonzero(fabric.forwards)
    number = np.cumsum(fabric.forwards) - 1
    inner = fabric.network_link
    source, target = number[fabric.links.source[inner]], number[fabric.links.target[inner]]
    if len(core) < 2 * FEWEST or not len(source):
        return None
    for local in _candidates(fabric, core, source, target):
        part = _parts(len(core), source[local], target[local])
        if _is_dragonfly(part, source, target, local):
            return _numbered(fabric, core, part)
    return None


def circles(fabric: Fabric, group: Ints) -> tuple[Floats, Floats]:
    """Return float64[n], float64[n]: x and y of groups in rows, each two circles of hosts and switches."""
    count = int(group.max()) + 1
    across = int(np.ceil(np.sqrt(1.8 * count)))
    down = -(-count // across)
    rank = natural_order(fabric.names)
    x, y = np.zeros(len(fabric)), np.zeros(len(fabric))
    switch = switch_of(fabric)
    for members, radius in ((fabric.forwards, ROUTERS), (~fabric.forwards, HOSTS)):
        chosen = np.flatnonzero(members & (group >= 0))
        chosen = chosen[np.lexsort((rank[chosen], rank[switch[chosen]], group[chosen]))]
        size = np.bincount(group[chosen], minlength=count)[group[chosen]]
        angle = 2 * np.pi * (repeat_number(group[chosen]) + 0.5) / size
        x[chosen] = group[chosen] % across + 0.5 + radius / 2 * np.sin(angle)
        y[chosen] = down - group[chosen] // across - 0.5 + radius / 2 * np.cos(angle)
    return fitted(x), fitted(y)


def _candidates(fabric: Fabric, core: Longs, source: Longs, target: Longs) -> list[Bools]:
    """Return possible sets of the links within groups."""
    adjacency = coo_array((np.ones(len(source)), (source, target)), shape=(len(core), len(core))).tocsr()
    adjacency.data[:] = 1
    both = csr_array(adjacency + adjacency.T)
    both.data[:] = 1
    common = np.asarray((both @ both)[source, target]).ravel()
    kinds = np.unique(common)
    kinds = kinds[np.linspace(0, len(kinds) - 1, min(len(kinds), THRESHOLDS)).round().astype(int)]
    found: list[Bools] = [common >= least for least in kinds.tolist() if least > 0]
    bears = np.zeros(len(fabric), bool)
    bears[switch_of(fabric)[~fabric.forwards]] = True
    leaf = bears[core]
    if leaf.any() and not leaf.all():
        found.append(leaf[source] | leaf[target])
    return found


def _parts(count: int, source: Longs, target: Longs) -> Longs:
    graph = coo_array((np.ones(len(source)), (source, target)), shape=(count, count))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)


def _is_dragonfly(part: Longs, source: Longs, target: Longs, local: Bools) -> bool:
    sizes = np.bincount(part)
    usual = int(np.median(sizes))
    if len(sizes) < FEWEST or usual < 2 or float((sizes == usual).mean()) < ALIKE:
        return False
    crossing = part[source] != part[target]
    if float(local[~crossing].mean()) < ALIKE:
        return False
    pairs = np.unique(part[source[crossing]] * len(sizes) + part[target[crossing]])
    if len(pairs) < JOINED * len(sizes) * (len(sizes) - 1):
        return False
    degree = np.bincount(source[~crossing], minlength=len(part))
    return float(np.median(degree)) ** 2 >= usual - 1  # any two switches of a group are two links apart


def _numbered(fabric: Fabric, core: Longs, part: Longs) -> Ints:
    first = np.full(int(part.max()) + 1, len(fabric), np.int64)
    np.minimum.at(first, part, natural_order(fabric.names)[core])
    number = np.argsort(np.argsort(first))
    group = np.full(len(fabric) + 1, -1, np.int32)
    group[core] = number[part]
    found: Ints = group[switch_of(fabric)]
    return found
