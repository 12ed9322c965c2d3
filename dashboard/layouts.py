"""Where to draw the machines of a fabric: tiers of a tree, slices of a torus, or any graph.

Pure functions of a fabric: the same fabric is always drawn the same way. `cables` joins the two
directions of each cable, which is what a person sees as one link.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from registry.model import SWITCH, Bools, Fabric, Floats, Ints

LEAF_SHARE = 0.25
"""A switch with fewer hosts than this share of the usual number is no leaf: spines carry managers."""
GAP = 1
"""Free columns between two slices of a torus."""
SPRING_ROUNDS = 200
PETAL = 0.25
"""Distance of a host from its switch, in mean lengths of the lines between switches."""

TREE = "tree"
GRID = "grid"
FREE = "free"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """Positions of the vertices of a fabric.

    Attributes
    ----------
    form : str
        `TREE` (y is the tier), `GRID` (a torus in slices) or `FREE`.
    x, y : float64[n]
        Between 0 and 1; y grows upwards.
    tier : int32[n]
        0 hosts, 1 leaf switches, ...; a fabric that is no tree has tiers 0 and 1 only.
    """

    form: str
    x: Floats
    y: Floats
    tier: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawing:
    """How a fabric is drawn: where its vertices are, and its `cables`."""

    layout: Layout
    cables: pd.DataFrame


def draw(fabric: Fabric) -> Drawing:
    """Everything about drawing a fabric that depends on its wiring alone."""
    return Drawing(layout=layout(fabric), cables=cables(fabric))


def layout(fabric: Fabric) -> Layout:
    """The layout that suits a fabric: tree in tiers, torus in slices, anything else free."""
    tier = tiers(fabric)
    if fabric.coordinates is not None:
        x, y = _slices(fabric)
        return Layout(form=GRID, x=x, y=y, tier=tier)
    if int(tier.max()) > 1:
        return Layout(form=TREE, x=_columns(fabric, tier), y=tier / int(tier.max()), tier=tier)
    x, y = _spread(fabric)
    return Layout(form=FREE, x=x, y=y, tier=tier)


def tiers(fabric: Fabric) -> Ints:
    """int32[n]: tier of each vertex.

    The fabric's own levels where it tells them. Otherwise hosts are tier 0, switches with hosts
    tier 1, and other switches one tier above the lowest that they are joined to. Where a cable would
    join two switches of one tier the fabric is no tree: then all switches are in tier 1.
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


def cables(fabric: Fabric) -> pd.DataFrame:
    """The cables of a fabric: each pair of opposite links once.

    Returns
    -------
    DataFrame
        Columns ``a``, ``b`` (vertices, ``a < b``), ``there`` (row of ``fabric.links`` from a to b)
        and ``back`` (row from b to a); -1 for a direction that is missing.
    """
    links = fabric.links
    there = links.source < links.target
    keys = {
        "a": np.where(there, links.source, links.target),
        "b": np.where(there, links.target, links.source),
        "a_port": np.where(there, links.source_port, links.target_port),
        "b_port": np.where(there, links.target_port, links.source_port),
        "a_adapter": np.where(there, links.source_adapter, links.target_adapter),
        "b_adapter": np.where(there, links.target_adapter, links.source_adapter),
    }
    rows = pd.DataFrame(keys).assign(there=there, row=np.arange(len(links)))
    # cables of a source that knows no ports are told apart by their order only
    rows["twin"] = rows.groupby([*keys, "there"]).cumcount()
    by = [*keys, "twin"]
    forth = rows[rows.there].drop(columns="there").rename(columns={"row": "there"})
    back = rows[~rows.there].drop(columns="there").rename(columns={"row": "back"})
    pairs = forth.merge(back, on=by, how="outer").sort_values(by, ignore_index=True)
    return pairs[["a", "b", "there", "back"]].fillna(-1).astype(np.int64)


def natural_order(names: tuple[str, ...]) -> Ints:
    """int32[n]: rank of each name when numbers within names count as numbers."""
    keys = [[(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in _parts(n)] for n in names]
    order = sorted(range(len(names)), key=keys.__getitem__)
    rank = np.empty(len(names), np.int32)
    rank[order] = np.arange(len(names))
    return rank


def _parts(name: str) -> list[str]:
    return [part for part in re.split(r"([0-9]+)", name) if part]


def _leaves(fabric: Fabric, switch: Bools) -> Bools:
    """Switches that have about as many hosts as switches with hosts usually have."""
    links = fabric.links
    down = switch[links.source] & ~switch[links.target]
    attached = np.bincount(links.source[down], minlength=len(fabric))
    if not attached.any():
        return attached > 0
    return attached > LEAF_SHARE * float(np.median(attached[attached > 0]))


def _columns(fabric: Fabric, tier: Ints) -> Floats:
    """Across in a tree: each tier evenly spread, in the order of what hangs below; then hosts."""
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


def _middles(fabric: Fabric, x: Floats, beside: Bools) -> Floats:
    """Mean x of the neighbours that count; a vertex without any keeps its own."""
    links, n = fabric.links, len(fabric)
    counts = beside[links.target]
    source = links.source[counts]
    degree = np.bincount(source, minlength=n)
    total = np.bincount(source, weights=x[links.target[counts]], minlength=n)
    return np.where(degree > 0, total / np.maximum(degree, 1), x)


def _slices(fabric: Fabric) -> tuple[Floats, Floats]:
    """A torus or mesh as slices side by side; axes beyond the second are laid out in x."""
    assert fabric.coordinates is not None
    spot = np.zeros((len(fabric), max(2, fabric.coordinates.shape[1])))
    spot[:, : fabric.coordinates.shape[1]] = fabric.coordinates
    width = float(spot[:, 0].max()) + 1 + GAP
    x = spot[:, 0]
    for axis in range(2, spot.shape[1]):
        x = x + spot[:, axis] * width
        width *= float(spot[:, axis].max()) + 1
    return _fit(x), _fit(spot[:, 1])


def _spread(fabric: Fabric) -> tuple[Floats, Floats]:
    """Any graph: what forwards is pushed apart by springs, hosts stand around their switches."""
    import networkx as nx

    core = np.flatnonzero(fabric.forwards)
    links, n = fabric.links, len(fabric)
    inner = fabric.network_link & (links.source < links.target)
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(core.tolist())
    graph.add_edges_from(zip(links.source[inner].tolist(), links.target[inner].tolist(), strict=True))
    x, y = np.full(n, 0.5), np.full(n, 0.5)
    if len(core):
        spot = nx.spring_layout(graph, seed=0, iterations=SPRING_ROUNDS)
        x[core], y[core] = np.asarray([spot[v] for v in core.tolist()]).T
    _petals(fabric, x, y, inner)
    return _fit(x), _fit(y)


def _petals(fabric: Fabric, x: Floats, y: Floats, inner: Bools) -> None:
    """Put the hosts of each switch in a circle around it."""
    links = fabric.links
    lengths = np.hypot(
        x[links.source[inner]] - x[links.target[inner]], y[links.source[inner]] - y[links.target[inner]]
    )
    radius = PETAL * (float(lengths.mean()) if len(lengths) else 1.0)
    hanging = ~fabric.forwards[links.source] & fabric.forwards[links.target]
    host, first = np.unique(links.source[hanging], return_index=True)
    switch = links.target[hanging][first]
    order = np.lexsort((host, switch))
    host, switch = host[order], switch[order]
    place = np.arange(len(host)) - np.searchsorted(switch, switch)
    around = np.bincount(switch, minlength=len(fabric))[switch]
    angle = 2 * np.pi * place / np.maximum(around, 1)
    x[host] = x[switch] + radius * np.cos(angle)
    y[host] = y[switch] + radius * np.sin(angle)


def _fit(values: Floats) -> Floats:
    """The values moved and stretched to 0 .. 1; one half where all are equal."""
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.full(len(values), 0.5)
