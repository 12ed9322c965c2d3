"""Repair the constraints of a topology: connect it, and remove links above the limits.

Sections 3.1.2 to 3.1.4.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mapping.reconfiguration.model.problem import Machine
from mapping.reconfiguration.model.topology import Pair, Topology
from mapping.reconfiguration.paper.refinement import least_congested_path
from registry.model import Bools, Floats, Longs


class LoadedTopology:
    """A topology under change, and the flows routed over it, each along one path.

    Parameters
    ----------
    topology : Topology
        Connected, with a link between the ends of each flow: its first route.
    ends : int[k, 2]
        Nodes of each flow, never equal.
    flow : float[k]
        Data of each flow, >= 0.

    Attributes
    ----------
    topology : Topology
        The present topology.
    load : float64[m]
        Data on each of its links, the link's weight.
    """

    def __init__(self, topology: Topology, ends: ArrayLike, flow: ArrayLike) -> None:
        self._ends = np.asarray(ends, np.int64).reshape(-1, 2)
        self._flow = np.asarray(flow, np.float64)
        self.topology = topology
        self.load: Floats = np.zeros(topology.links)
        self._flows: defaultdict[Pair, set[int]] = defaultdict(set)  # by the nodes of a link: rows shift
        self._links: list[Longs] = [self._ends[:0]] * len(self._flow)  # of each flow, int64[links, 2]
        for one, row in enumerate(topology.rows_between(self._ends).tolist()):
            self._add_flow(one, [row])

    def route(self, flow: int) -> Longs:
        """Return the rows of the links that a flow takes, from its source (int64[links])."""
        return self.topology.rows_between(self._links[flow])

    def change(self, gone: ArrayLike, made: Sequence[Pair] = ()) -> None:
        """Remove some links and add others; the flows of removed links take least congested paths.

        Heavier flows are routed first, ties by index; a new link carries nothing until then.

        Parameters
        ----------
        gone : int[k]
            Rows of the links to remove.
        made : sequence of (int, int)
            Nodes of the links to add; the topology must then be connected.
        """
        old, rows = self.topology, np.unique(np.asarray(gone, np.int64))
        moved = sorted(set[int]().union(*(self._flows[old.ends(row)] for row in rows.tolist())))
        for one in moved:
            self._remove_flow(one)
        self.topology, load = old.changed(rows, made), np.delete(self.load, rows)
        self.load = np.zeros(self.topology.links)
        self.load[self.topology.rows_between(np.delete(old.pairs, rows, axis=0))] = load
        for one in sorted(moved, key=lambda one: (-self._flow[one], one)):
            start, end = self._ends[one].tolist()
            path = least_congested_path(self.topology, self.load, start, end, float(self._flow[one]))
            self._add_flow(one, path.tolist())

    def _remove_flow(self, flow: int) -> None:
        for row in self.route(flow).tolist():
            others = self._flows[self.topology.ends(row)]
            others.discard(flow)  # rounding must not leave a load on an idle link
            self.load[row] = self.load[row] - self._flow[flow] if others else 0.0

    def _add_flow(self, flow: int, rows: list[int]) -> None:
        self.load[rows] += self._flow[flow]
        self._links[flow] = self.topology.pairs[rows]
        for row in rows:
            self._flows[self.topology.ends(row)].add(flow)


def connect(topology: Topology) -> Topology:
    """Return the topology with links added until all nodes are connected (section 3.1.2).

    It adds one link fewer than there are components. Each connects the component of node 0, as grown so far,
    with the next component, between the nodes with the fewest links, ties by index.
    """
    label = topology.components()
    while label.any():
        grown = label == label[0]
        other = label == label[int(np.argmin(grown))]
        ends = _fewest(topology.degree, grown), _fewest(topology.degree, other)
        topology = topology.changed(added=[ends])
        label = topology.components()
    return topology


def satisfy_limits(loaded: LoadedTopology, machine: Machine) -> Topology:
    """Return the topology with links removed for max-degree (section 3.1.3), then max-edges (3.1.4)."""
    satisfy_max_degree(loaded, machine)
    satisfy_max_edges(loaded, machine)
    return loaded.topology


def satisfy_max_degree(loaded: LoadedTopology, machine: Machine) -> None:
    """Remove links until no node has more than `max_degree` (section 3.1.3).

    A node with more is heavy; a link is strongly heavy if both its nodes are heavy, weakly if one is. The
    lightest strongly heavy link that does not disconnect nodes is removed, as long as there is one, then
    weakly heavy ones likewise. If heavy nodes are left, all their links are bridges: the lightest weakly
    heavy one is removed, and an edge swap connects the two parts again (`_reconnect`).
    """
    while int(loaded.topology.degree.max()) > machine.max_degree:
        weakly = _heavy(loaded.topology, machine, 1)
        row = _lightest(loaded, _heavy(loaded.topology, machine, 2))
        row = _lightest(loaded, weakly) if row < 0 else row
        if row >= 0:
            loaded.change([row])
        else:  # heavy nodes and bridges are a forest, whose leaves have weakly heavy links
            rows = np.flatnonzero(weakly)
            _reconnect(loaded, int(rows[np.argmin(loaded.load[rows])]))


def satisfy_max_edges(loaded: LoadedTopology, machine: Machine) -> None:
    """Remove the lightest link that leaves nodes connected until `max_edges` are left (section 3.1.4).

    There always is one, since a machine holds at least the links of a tree.
    """
    while loaded.topology.links > machine.max_edges:
        row = _lightest(loaded, np.ones(loaded.topology.links, bool))
        loaded.change([row])


def _heavy(topology: Topology, machine: Machine, ends: int) -> Bools:
    """Return for each link (bool[m]) whether exactly `ends` of its nodes are heavy."""
    heavy = (topology.degree > machine.max_degree).astype(np.int64)
    return np.asarray(heavy[topology.source] + heavy[topology.target] == ends)


def _lightest(loaded: LoadedTopology, wanted: Bools) -> int:
    """Return the row of the lightest of some links that does not disconnect nodes, or -1."""
    rows = np.flatnonzero(wanted)
    for row in rows[np.argsort(loaded.load[rows], kind="stable")].tolist():
        if not loaded.topology.components([row]).any():
            return int(row)
    return -1


def _reconnect(loaded: LoadedTopology, bridge: int) -> None:
    """Remove a bridge, and connect its two parts P and Q by an edge swap (Figure 2).

    The lightest links {u, v} of P and {w, x} of Q are replaced by {u, w} and {v, x}: the first pair by rising
    weight after which all nodes are connected. The paper leaves two cases open. A part without links is one
    node, which takes both new links. If every link is a bridge, no swap connects the parts: a link between
    their nodes of fewest links does, by which no node becomes heavy, since leaves of a tree have one link.
    """
    topology = loaded.topology
    label = topology.components([bridge])
    order = [_links_within(loaded, label == part) for part in (0, 1)]
    for part in (0, 1):
        if not order[part] and order[1 - part]:
            alone, row = int(np.flatnonzero(label == part)[0]), order[1 - part][0]
            u, v = topology.pairs[row].tolist()
            loaded.change([bridge, row], [(u, alone), (v, alone)])
            return
    for one in order[0]:
        for other in order[1]:
            made = topology.swap_ends(one, other, False)
            if topology.changed([bridge, one, other], made).connected():
                loaded.change([bridge, one, other], made)
                return
    degree = topology.changed([bridge]).degree
    u, w = _fewest(degree, label == 0), _fewest(degree, label == 1)
    loaded.change([bridge], [(u, w)])


def _fewest(degree: Longs, part: Bools) -> int:
    """Return the node of a part with the fewest links, the lowest index at equality."""
    nodes = np.flatnonzero(part)
    return int(nodes[np.argmin(degree[nodes])])


def _links_within(loaded: LoadedTopology, part: Bools) -> list[int]:
    """Return the rows of the links with both nodes in a part, the lightest first."""
    topology = loaded.topology
    rows = np.flatnonzero(part[topology.source] & part[topology.target])
    found: list[int] = rows[np.argsort(loaded.load[rows], kind="stable")].tolist()
    return found
