"""Positions for any graph: switches spread by their links, hosts in a circle around their switch."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import laplacian
from scipy.sparse.linalg import LinearOperator, eigsh

from dashboard.layouts.order import fitted, surround
from registry.model import Fabric, Floats, Longs

RULE = "free-1"
"""Name of this layout algorithm, under which positions are stored."""
SPRING_ROUNDS = 200
SPRING_LIMIT = 1500
"""Maximum number of vertices for a spring layout, whose work is quadratic; above it eigenvectors are used."""
PETAL = 0.25
"""Distance of a host from its switch, in mean lengths of the lines between switches."""


def free(fabric: Fabric) -> tuple[Floats, Floats]:
    """Return float64[n], float64[n]: x and y from 0 to 1; deterministic."""
    core = np.flatnonzero(fabric.forwards)
    links, n = fabric.links, len(fabric)
    inner = fabric.network_link & (links.source < links.target)
    source, target = links.source[inner].astype(np.int64), links.target[inner].astype(np.int64)
    x, y = np.full(n, 0.5), np.full(n, 0.5)
    if len(core):
        number = np.cumsum(fabric.forwards) - 1
        spread = _springs if len(core) <= SPRING_LIMIT else _eigenvectors
        x[core], y[core] = spread(len(core), number[source], number[target]).T
    lengths = np.hypot(x[source] - x[target], y[source] - y[target])
    surround(fabric, x, y, PETAL * (float(lengths.mean()) if len(lengths) else 1.0))
    return fitted(x), fitted(y)


def _springs(count: int, source: Longs, target: Longs) -> Floats:
    import networkx as nx

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(zip(source.tolist(), target.tolist(), strict=True))
    spot = nx.spring_layout(graph, seed=0, iterations=SPRING_ROUNDS)
    return np.asarray([spot[v] for v in range(count)])


def _eigenvectors(count: int, source: Longs, target: Longs) -> Floats:
    """Return the ranks in the two smoothest Laplacian eigenvectors, with a fixed sign."""
    graph = coo_array((np.ones(len(source)), (source, target)), shape=(count, count)).tocsr()
    whole = laplacian(graph + graph.T, normed=True)
    flipped = LinearOperator(whole.shape, matvec=lambda vector: 2 * vector - whole @ vector, dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(count)
    _, waves = eigsh(flipped, k=3, which="LA", v0=start, tol=1e-4)
    spot = waves[:, 1::-1]
    far = np.abs(spot).argmax(axis=0)
    spread = spot * np.sign(spot[far, np.arange(2)])
    order = np.argsort(spread, axis=0, kind="stable")
    return np.argsort(order, axis=0, kind="stable").astype(np.float64)  # ranks spread crowded places
