"""Repair the constraints of a topology: connect it, and remove links above the limits.

Sections 3.1.2 to 3.1.4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mapping.reconfiguration.model.problem import Machine
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper.refinement import least_congested_path
from registry.model import Bools, Floats, Ints, Longs


class LoadedTopology:
    """A topology under change, and the flows routed over it, each along one path.

    Parameters
    ----------
    topology : Topology
        Connected, with a link between the ends of each flow: its first route.
    source, target : int[k]
        Ends of each flow, never equal.
    flow : float[k]
        Data of each flow, >= 0.

    Attributes
    ----------
    topology : Topology
        The present topology.
    load : float64[m]
        Data on each of its links, the link's weight.
    """

    def __init__(self, topology: Topology, source: ArrayLike, target: ArrayLike, flow: ArrayLike) -> None:
        self._source, self._target = np.asarray(source, np.int64), np.asarray(target, np.int64)
        self._flow = np.asarray(flow, np.float64)
        self.topology = topology
        self.load: Floats = np.zeros(topology.links)
        self._name = np.arange(topology.links)  # name of each row: rows shift when links are removed
        self._on: list[set[int]] = [set() for _ in range(topology.links)]  # flows, by link name
        self._route: list[Longs] = [self._name[:0]] * len(self._flow)  # link names, by flow
        for one, (start, end) in enumerate(zip(self._source.tolist(), self._target.tolist(), strict=True)):
            self._add_flow(one, np.array([topology.link_between(start, end)]))

    def route(self, flow: int) -> Ints:
        """Return the rows of the links that a flow takes, from its source (int32[links])."""
        row = np.full(len(self._on), -1, np.int32)
        row[self._name] = np.arange(len(self._name))
        return row[self._route[flow]]

    def change(self, gone: ArrayLike, made: list[tuple[int, int]]) -> None:
        """Remove some links and add others; the flows of removed links take least congested paths.

        Heavier flows are routed first, ties by index; a new link carries nothing until then.

        Parameters
        ----------
        gone : int[k]
            Rows of the links to remove.
        made : list of (int, int)
            Nodes of the links to add; the topology must then be connected.
        """
        rows = np.unique(np.asarray(gone, np.int64))
        moved = sorted(set[int]().union(*(self._on[name] for name in self._name[rows].tolist())))
        for one in moved:
            self._remove_flow(one)
        self._replace(rows, made)
        for one in sorted(moved, key=lambda one: (-self._flow[one], one)):
            ends = int(self._source[one]), int(self._target[one])
            path = least_congested_path(self.topology, self.load, *ends, float(self._flow[one]))
            self._add_flow(one, np.asarray(path, np.int64))

    def _remove_flow(self, flow: int) -> None:
        rows = self.route(flow)
        self.load[rows] -= self._flow[flow]
        for name in self._route[flow].tolist():
            self._on[name].discard(flow)
        for row in rows.tolist():  # rounding must not leave a load on an idle link
            if not self._on[self._name[row]]:
                self.load[row] = 0.0

    def _add_flow(self, flow: int, rows: Longs) -> None:
        self.load[rows] += self._flow[flow]
        self._route[flow] = self._name[rows]
        for name in self._route[flow].tolist():
            self._on[name].add(flow)

    def _replace(self, rows: Longs, made: list[tuple[int, int]]) -> None:
        """Replace the topology, and keep names and loads of the links that stay."""
        old, names, load = self.topology, self._name, self.load
        kept = np.delete(np.arange(old.links), rows)
        fresh = np.array(made, np.int64).reshape(-1, 2)
        self.topology = Topology.of(old.nodes, np.concatenate((old.pairs[kept], fresh)))
        self._name, self.load = np.zeros(self.topology.links, np.int64), np.zeros(self.topology.links)
        keys = self.topology.pairs @ (old.nodes, 1)
        now = np.searchsorted(keys, old.pairs[kept] @ (old.nodes, 1))
        self._name[now], self.load[now] = names[kept], load[kept]
        for one, other in fresh.tolist():
            self._name[self.topology.link_between(one, other)] = len(self._on)
            self._on.append(set())


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
        topology = topology.with_link(*ends)
        label = topology.components()
    return topology


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
            loaded.change([row], [])
        else:  # heavy nodes and bridges are a forest, whose leaves have weakly heavy links
            rows = np.flatnonzero(weakly)
            _reconnect(loaded, int(rows[np.argmin(loaded.load[rows])]))


def satisfy_max_edges(loaded: LoadedTopology, machine: Machine) -> None:
    """Remove the lightest link that leaves nodes connected until `max_edges` are left (section 3.1.4).

    There always is one, since a machine holds at least the links of a tree.
    """
    while loaded.topology.links > machine.max_edges:
        row = _lightest(loaded, np.ones(loaded.topology.links, bool))
        loaded.change([row], [])


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
            pairs = np.concatenate((np.delete(topology.pairs, (bridge, one, other), axis=0), made))
            if Topology.of(topology.nodes, pairs).connected():
                loaded.change([bridge, one, other], list(made))
                return
    degree = topology.without([bridge]).degree
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
