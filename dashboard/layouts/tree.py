"""Positions for a tree: hosts at the bottom, then leaf switches, and so on."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from dashboard.layouts.order import natural_order
from registry.model import HOST, SWITCH, Bools, Fabric, Floats, Ints

LEAF_SHARE = 0.25
"""Minimum share of the median number of hosts for a leaf switch: spines may carry a few management hosts."""


def tiers(fabric: Fabric) -> Ints:
    """Return int32[n]: tier of each vertex.

    These are the fabric's own levels if it has them. Otherwise hosts are tier 0, switches with hosts tier 1,
    and other switches one tier above their lowest neighbour. If a cable then connects two switches of one
    tier, the fabric is no tree and all switches are in tier 1.
    """
    if fabric.level is not None:
        return fabric.level
    switch = fabric.kind == SWITCH
    flat: Ints = switch.astype(np.int32)
    leaf = _leaves(fabric, switch)
    if not leaf.any():
        return flat
    links = fabric.links
    between = switch[links.source] & switch[links.target]
    graph = coo_array(
        (np.ones(int(between.sum())), (links.source[between], links.target[between])),
        shape=(len(fabric), len(fabric)),
    )
    hops = dijkstra(graph.tocsr(), unweighted=True, indices=np.flatnonzero(leaf), min_only=True)
    tier: Ints = np.where(switch, 1 + np.where(np.isfinite(hops), hops, 0), 0).astype(np.int32)
    sideways = tier[links.source[between]] == tier[links.target[between]]
    return flat if bool(sideways.any()) else tier


def columns(fabric: Fabric, tier: Ints) -> Floats:
    """Return float64[n]: x of each vertex, each tier evenly spread, ordered by the vertices below."""
    rank = natural_order(fabric.names)
    x = rank.astype(np.float64)
    top = int(tier.max())
    sweep = [(0, 0), *((level, level - 1) for level in range(1, top + 1)), (0, 1)]
    for level, beside in sweep:
        members = np.flatnonzero(tier == level)
        middle = _middles(fabric, x, tier == beside)[members]
        order = members[np.lexsort((rank[members], middle))]
        x[order] = (np.arange(len(order)) + 0.5) / max(len(order), 1)
    return x


def _leaves(fabric: Fabric, switch: Bools) -> Bools:
    """Return bool[n]: switches with enough hosts to be leaf switches."""
    links = fabric.links
    down = switch[links.source] & ~switch[links.target]
    attached = np.bincount(links.source[down], minlength=len(fabric))
    if not attached.any():
        return attached > 0
    return attached > LEAF_SHARE * float(np.median(attached[attached > 0]))


def _middles(fabric: Fabric, x: Floats, beside: Bools) -> Floats:
    """Return the mean x of the neighbours in `beside`; a vertex without such neighbours keeps its x."""
    links, n = fabric.links, len(fabric)
    counts = beside[links.target]
    source = links.source[counts]
    degree = np.bincount(source, minlength=n)
    total = np.bincount(source, weights=x[links.target[counts]], minlength=n)
    return np.where(degree > 0, total / np.maximum(degree, 1), x)


def hosts_below(fabric: Fabric, tier: Ints, vertex: int) -> Ints:
    """Return int32: hosts below a vertex, ascending; for a host itself."""
    reached = np.zeros(len(fabric), bool)
    reached[vertex] = True
    source, target = fabric.links.source, fabric.links.target
    down = tier[target] < tier[source]
    for level in range(int(tier[vertex]), 0, -1):
        step = down & reached[source] & (tier[source] == level)
        reached[target[step]] = True
    found: Ints = np.flatnonzero(reached & (fabric.kind == HOST)).astype(np.int32)
    return found
