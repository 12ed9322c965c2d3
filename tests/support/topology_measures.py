"""Measures of a topology: bisection width, its algebraic bound, mean shortest path (section 5)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from mapping.reconfiguration.model.topology import Topology
from registry.errors import InvalidValue
from registry.model import Floats

EXACT = 20
"""Most nodes for which all halves are tried."""
ROUNDING = 1e-9
"""How far above a whole number a computed bound must be to count as above it."""


class Bisection(NamedTuple):
    """What is known of a bisection width.

    Attributes
    ----------
    width : int
        Fewest links between two halves of the nodes; where not exact, a lower bound.
    exact : bool
    """

    width: int
    exact: bool


def bisection(topology: Topology) -> Bisection:
    """The bisection width, exact up to `EXACT` nodes and bounded algebraically beyond."""
    if topology.nodes <= EXACT:
        return Bisection(bisection_width(topology), True)
    return Bisection(bisection_bound(topology), False)


def bisection_width(topology: Topology) -> int:
    """Fewest links between two halves of the nodes, by trying all; halves of an odd number differ by one.

    Raises
    ------
    InvalidValue
        More than `EXACT` nodes.
    """
    nodes = topology.nodes
    if nodes > EXACT:
        raise InvalidValue("bisection_width.nodes", f"is {nodes}, all halves are tried up to {EXACT}")
    side = np.arange(1 << max(nodes - 1, 0), dtype=np.int64)  # the last node is on the other side
    size = sum(side >> node & 1 for node in range(nodes - 1))
    half = side[(size == nodes // 2) | (size == nodes - nodes // 2)] if nodes > 1 else side
    cut = np.zeros(len(half), np.int64)
    for one, other in topology.pairs.tolist():
        cut += (half >> one ^ half >> other) & 1
    return int(cut.min())


def bisection_bound(topology: Topology) -> int:
    """A lower bound on the bisection width: ``ceil(n a / 4)``, a the algebraic connectivity (Boppana 1987).

    Any set of s nodes is left by at least ``a s (n - s) / n`` links, which is ``n a / 4`` for halves of an
    even number.
    """
    nodes = topology.nodes
    least = algebraic_connectivity(topology) * (nodes // 2) * (nodes - nodes // 2) / nodes
    return max(math.ceil(least - ROUNDING), 0)


def algebraic_connectivity(topology: Topology) -> float:
    """Second smallest eigenvalue of the Laplacian matrix; 0 for one node, and where links do not join all."""
    if topology.nodes == 1:
        return 0.0
    laplacian = np.diag(topology.degree.astype(np.float64))
    laplacian[topology.source, topology.target] = -1.0
    laplacian[topology.target, topology.source] = -1.0
    return max(float(np.linalg.eigvalsh(laplacian)[1]), 0.0)


def distances(topology: Topology) -> Floats:
    """float64[nodes, nodes]: links of a shortest path between two nodes; inf where there is none."""
    ends = topology.source, topology.target
    graph = coo_array((np.ones(topology.links), ends), shape=(topology.nodes, topology.nodes))
    found = shortest_path(graph.tocsr(), directed=False, unweighted=True)
    return np.asarray(found, np.float64)


def mean_shortest_path(topology: Topology) -> float:
    """L_asp: mean distance of two different nodes, in links (Figure 10); 0 for one node."""
    nodes = topology.nodes
    return float(distances(topology).sum() / (nodes * (nodes - 1))) if nodes > 1 else 0.0
