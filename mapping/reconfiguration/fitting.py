"""Making a topology fit the switch while flows are routed over it (sections 3.1.2 to 3.1.4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mapping.reconfiguration.problem import Machine
from mapping.reconfiguration.topology import Topology
from mapping.reconfiguration.unsplit import least_congested_path
from registry.model import Bools, Floats, Ints, Longs


class LoadedTopology:
    """A topology under change, and the flows that are routed over it, each along one path.

    Parameters
    ----------
    topology : Topology
        Connected. Each flow's ends are joined by a link of it: its route.
    source, target : int[k]
        Ends of each flow, never equal.
    flow : float[k]
        Data of each flow, >= 0.
    """

    def __init__(self, topology: Topology, source: ArrayLike, target: ArrayLike, flow: ArrayLike) -> None:
        self._source, self._target = np.asarray(source, np.int64), np.asarray(target, np.int64)
        self._flow = np.asarray(flow, np.float64)
        self.topology = topology
        """As it is now."""
        self.load: Floats = np.zeros(topology.links)
        """float64[m]: data on each link of the topology as it is now: its weight."""
        self._name = np.arange(topology.links)  # of each row: rows shift as links go, names do not
        self._on: list[set[int]] = [set() for _ in range(topology.links)]  # flows, by name of a link
        self._route: list[Longs] = [self._name[:0]] * len(self._flow)  # names of links, by flow
        for one, (start, end) in enumerate(zip(self._source.tolist(), self._target.tolist(), strict=True)):
            self._lay(one, np.array([topology.link_between(start, end)]))

    def route(self, flow: int) -> Ints:
        """int32[links]: rows of the links that a flow takes, from its source."""
        row = np.full(len(self._on), -1, np.int32)
        row[self._name] = np.arange(len(self._name))
        return row[self._route[flow]]

    def change(self, gone: ArrayLike, made: list[tuple[int, int]]) -> None:
        """Take links away and put others in; what they carried is re-routed by least congestion.

        Heavier flows choose first, ties by index; a new link carries nothing until then.

        Parameters
        ----------
        gone : int[k]
            Rows of links.
        made : list of (int, int)
            Nodes that new links join. The topology must be connected after that.
        """
        rows = np.unique(np.asarray(gone, np.int64))
        moved = sorted(set[int]().union(*(self._on[name] for name in self._name[rows].tolist())))
        for one in moved:
            self._lift(one)
        self._replace(rows, made)
        for one in sorted(moved, key=lambda one: (-self._flow[one], one)):
            ends = int(self._source[one]), int(self._target[one])
            path = least_congested_path(self.topology, self.load, *ends, float(self._flow[one]))
            self._lay(one, np.asarray(path, np.int64))

    def _lift(self, flow: int) -> None:
        rows = self.route(flow)
        self.load[rows] -= self._flow[flow]
        for name in self._route[flow].tolist():
            self._on[name].discard(flow)
        for row in rows.tolist():  # what is left of rounding must not make an idle link heavier than others
            if not self._on[self._name[row]]:
                self.load[row] = 0.0

    def _lay(self, flow: int, rows: Longs) -> None:
        self.load[rows] += self._flow[flow]
        self._route[flow] = self._name[rows]
        for name in self._route[flow].tolist():
            self._on[name].add(flow)

    def _replace(self, rows: Longs, made: list[tuple[int, int]]) -> None:
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
    """The topology with links added until all nodes are joined (section 3.1.2).

    One link fewer than there are components: each joins the component of node 0, as it has grown so far, to
    the next component; of both, the node with the fewest links is taken, ties by index.
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

    A node with more is heavy; a link is strongly heavy where both its nodes are, weakly where one is. The
    lightest strongly heavy link that can go without disconnecting nodes goes, for as long as there is one;
    then weakly heavy ones, likewise. Where heavy nodes are left, all their links are bridges: the lightest
    weakly heavy one goes, and an edge swap joins the two parts again (`_rejoin`).
    """
    while int(loaded.topology.degree.max()) > machine.max_degree:
        weakly = _heavy(loaded.topology, machine, 1)
        row = _lightest(loaded, _heavy(loaded.topology, machine, 2))
        row = _lightest(loaded, weakly) if row < 0 else row
        if row >= 0:
            loaded.change([row], [])
        else:  # the heavy nodes that bridges join are a forest: its leaves have weakly heavy links
            rows = np.flatnonzero(weakly)
            _rejoin(loaded, int(rows[np.argmin(loaded.load[rows])]))


def satisfy_max_edges(loaded: LoadedTopology, machine: Machine) -> None:
    """Remove the lightest link that leaves nodes joined until `max_edges` are left (section 3.1.4).

    That always ends well, as a machine holds at least the links of a tree.
    """
    while loaded.topology.links > machine.max_edges:
        row = _lightest(loaded, np.ones(loaded.topology.links, bool))
        loaded.change([row], [])


def _heavy(topology: Topology, machine: Machine, ends: int) -> Bools:
    """bool[m]: links of which so many nodes are heavy."""
    heavy = (topology.degree > machine.max_degree).astype(np.int64)
    return np.asarray(heavy[topology.source] + heavy[topology.target] == ends)


def _lightest(loaded: LoadedTopology, wanted: Bools) -> int:
    """Row of the lightest of these links without which nodes stay joined; -1 for none."""
    rows = np.flatnonzero(wanted)
    for row in rows[np.argsort(loaded.load[rows], kind="stable")].tolist():
        if not loaded.topology.components([row]).any():
            return int(row)
    return -1


def _rejoin(loaded: LoadedTopology, bridge: int) -> None:
    """Remove a bridge, and join its two parts P and Q by an edge swap (Figure 2).

    The lightest links {u, v} of P and {w, x} of Q go, {u, w} and {v, x} come: of pairs by rising weight the
    first after which all nodes are joined. The paper leaves two cases open. A part without links is one
    node: it takes both new links. Where every link is a bridge no swap joins the parts: a link between their
    nodes of fewest links does, and no node becomes heavy by it, as leaves of a tree have one link.
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
    """The node of a part with the fewest links; lowest index."""
    nodes = np.flatnonzero(part)
    return int(nodes[np.argmin(degree[nodes])])


def _links_within(loaded: LoadedTopology, part: Bools) -> list[int]:
    """Rows of the links with both nodes in a part, the lightest first."""
    topology = loaded.topology
    rows = np.flatnonzero(part[topology.source] & part[topology.target])
    found: list[int] = rows[np.argsort(loaded.load[rows], kind="stable")].tolist()
    return found
