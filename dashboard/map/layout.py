"""Positions of the vertices of a fabric, its cables, and what several layouts use.

Groups of a dragonfly, found from its graph, and their positions in circles.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from registry.model import Bools, Fabric, Floats, Ints, Longs

_NUMBER = re.compile(r"([0-9]+)")


def natural_order(names: Sequence[str]) -> Ints:
    """Return int32[n]: rank of each name in natural order, in which numbers within names count as numbers."""
    keys = [
        [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _NUMBER.split(name) if part]
        for name in names
    ]
    order = sorted(range(len(names)), key=keys.__getitem__)
    rank = np.empty(len(names), np.int32)
    rank[order] = np.arange(len(names))
    return rank


def fitted(values: Floats) -> Floats:
    """Return the values scaled to 0 .. 1; one half if all are equal."""
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.full(len(values), 0.5)


def surround(fabric: Fabric, x: Floats, y: Floats, distance: float, turn: float = 0.0) -> None:
    """Place the hosts of each switch in a circle around it, the first one at the angle `turn`."""
    hanging = np.flatnonzero(~fabric.forwards)
    switch = switch_of(fabric)[hanging]
    hanging, switch = hanging[switch >= 0], switch[switch >= 0]
    around = np.bincount(switch, minlength=len(fabric))[switch]
    angle = turn + 2 * np.pi * repeat_number(switch) / np.maximum(around, 1)
    x[hanging] = x[switch] + distance * np.cos(angle)
    y[hanging] = y[switch] + distance * np.sin(angle)


def repeat_number(*keys: Ints | Longs) -> Longs:
    """Return int64[k]: for each row the number of earlier rows with the same keys."""
    count = len(keys[0])
    order = np.lexsort((np.arange(count), *reversed(keys)))
    changed = np.zeros(count, bool)
    changed[:1] = True
    for key in keys:
        changed[1:] |= np.diff(key[order]) != 0
    first = np.flatnonzero(changed)
    number = np.empty(count, np.int64)
    number[order] = np.arange(count) - np.repeat(first, np.diff(np.r_[first, count]))
    return number


def switch_of(fabric: Fabric) -> Longs:
    """Return int64[n]: the switch of each vertex: itself if it forwards, a forwarding neighbour, or -1."""
    links, n = fabric.links, len(fabric)
    switch = np.full(n, -1, np.int64)
    hanging = ~fabric.forwards[links.source] & fabric.forwards[links.target]
    vertex, first = np.unique(links.source[hanging], return_index=True)
    switch[vertex] = links.target[hanging][first]
    core = np.flatnonzero(fabric.forwards)
    switch[core] = core
    return switch


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


TREE = "tree"
GRID = "grid"
GROUPS = "groups"
FREE = "free"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """Positions of the vertices of a fabric."""

    form: str
    """`TREE` (y is the tier), `GRID` (torus in slices), `GROUPS` (dragonfly, one circle per group) or `FREE`.
    """
    x: Floats
    y: Floats
    """float64[n]: Position, from 0 to 1; y grows upwards."""
    tier: Ints
    """int32[n]: Tier: 0 hosts, 1 leaf switches, ...; only 0 and 1 if the fabric is no tree."""
    group: Ints | None = None
    """int32[n]: Group of each vertex of a dragonfly, -1 for none; None for other fabrics."""
    spot: Ints | None = None
    """int32[n, d]: Coordinates of each forwarding vertex of a torus, -1 for others; None for other fabrics.
    """
    sizes: Ints | None = None
    """int32[d]: Number of vertices along each axis of a torus; None for other fabrics."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cables:
    """The cables of a fabric: each pair of opposite links once, ordered by ends and ports."""

    a: Longs
    b: Longs
    """int64[c]: Vertices at the ends, ``a < b``."""
    there: Longs
    back: Longs
    """int64[c]: Rows of ``fabric.links`` from a to b and from b to a; -1 for a missing direction."""

    def __len__(self) -> int:
        return len(self.a)


def cables(fabric: Fabric) -> Cables:
    """Return the cables of a fabric; without port numbers, parallel links are paired by their order."""
    links = fabric.links
    forth = links.source < links.target
    ends = [
        np.where(forth, *(getattr(links, f"{end}{what}") for end in order)).astype(np.int64)
        for what in ("", "_port", "_adapter")
        for order in (("source", "target"), ("target", "source"))
    ]
    twin = repeat_number(*ends, forth.astype(np.int64))
    order = np.lexsort((~forth, twin, *reversed(ends)))
    keys = np.stack([*ends, twin])[:, order]
    starts = np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)] if len(order) else np.zeros(0, bool)
    cable = np.cumsum(starts) - 1
    count = int(starts.sum())
    rows = np.full((2, count), -1, np.int64)
    rows[np.where(forth[order], 0, 1), cable] = order
    a, b = keys[0][starts], keys[1][starts]
    return Cables(a=a, b=b, there=rows[0], back=rows[1])
