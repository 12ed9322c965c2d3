"""Seed topologies: the condensed graph of the application (section 3.1), rings, a torus, or a given one.

Section 5.

Repair the constraints of a topology: connect it, and remove links above the limits.

Sections 3.1.2 to 3.1.4.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pymetis
from numpy.typing import ArrayLike

from mapping.circuits.paper_partition import least_congested_path
from mapping.circuits.problem import Application, Machine, Pair, Topology
from mapping.placement.methods.bisection import weighted_graph
from registry.errors import InvalidValue, UnknownName
from registry.model import Bools, Floats, Ints, Longs


class LoadedTopology:
    """A topology under change, and the flows routed over it, each along one path.

    Args:
        topology: Connected, with a link between the ends of each flow: its first route.
        ends (int[k, 2]): Nodes of each flow, never equal.
        flow (float[k]): Data of each flow, >= 0.

    Attributes:
        topology: The present topology.
        load (float64[m]): Data on each of its links, the link's weight.
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

        Args:
            gone (int[k]): Rows of the links to remove.
            made: Nodes of the links to add; the topology must then be connected.
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
        weakly = _heavy_edges(loaded.topology, machine, 1)
        row = _lightest(loaded, _heavy_edges(loaded.topology, machine, 2))
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


def _heavy_edges(topology: Topology, machine: Machine, ends: int) -> Bools:
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


IMBALANCE = 1.05
"""Ratio of the heaviest subdomain to the mean that METIS may make (section 3.1.1)."""
MOST = 1 << 30
"""Sum of the integer vertex weights passed to METIS, which counts in 32 bits."""


def oblivious_partition(application: Application, nodes: int, generator: np.random.Generator) -> Ints:
    """Return the subdomain of each vertex (int32[v]), independent of any topology (section 3.1.1).

    METIS's k-way method with imbalance `IMBALANCE`: balanced load, small cut, and small largest degree of a
    subdomain (METIS's option ``minconn``, which the paper calls subdomain degree). A vertex at least as heavy
    as the mean subdomain gets its own, since no balance is better; METIS cuts the others into the remaining
    subdomains. If these are no more than subdomains, each vertex has its own; without an edge of positive
    weight only the load is balanced.
    """
    order = generator.permutation(application.vertices)
    seed = int(generator.integers(1 << 31))
    weight = application.vertex_weight
    node_of_vertex = np.full(len(weight), -1, np.int32)
    alone = _heavy(weight, nodes)
    node_of_vertex[alone] = np.arange(len(alone))
    kept = order[node_of_vertex[order] < 0]  # random order: METIS partitions small graphs alike for all seeds
    node_of_vertex[kept] = len(alone) + _parts(application, kept, nodes - len(alone), seed)
    return node_of_vertex


def _heavy(weight: Floats, nodes: int) -> Longs:
    """Return the vertices, heaviest first, that are not lighter than an equal share of the rest."""
    falling = np.argsort(-weight, kind="stable")
    left, count = float(weight.sum()), 0
    while count < min(nodes - 1, len(weight)):
        size = float(weight[falling[count]])
        if size <= 0 or size * (nodes - count) < left:
            break
        left -= size
        count += 1
    return falling[:count]


def _parts(application: Application, kept: Longs, parts: int, seed: int) -> Ints:
    """Return the part of each of some vertices (int32[k]), by METIS on the graph among them."""
    if parts == 1 or len(kept) <= parts:
        return np.arange(len(kept), dtype=np.int32) % max(parts, 1)
    place = np.full(application.vertices, -1, np.int64)
    place[kept] = np.arange(len(kept))
    ends = place[application.source], place[application.target]
    inside = (ends[0] >= 0) & (ends[1] >= 0)
    graph = weighted_graph(ends[0][inside], ends[1][inside], application.weight[inside], len(kept))
    weight = application.vertex_weight[kept]
    if graph.nnz == 0:
        return _balanced(weight, parts)
    found = pymetis.part_graph(
        parts,
        pymetis.CSRAdjacency(
            adj_starts=graph.indptr.astype(np.int64), adjacent=graph.indices.astype(np.int64)
        ),
        vweights=_whole(weight),
        eweights=graph.data,
        recursive=False,
        options=pymetis.Options(seed=seed, minconn=1, ufactor=round(1000 * (IMBALANCE - 1))),
    )
    return np.asarray(found.vertex_part, np.int32)


def condensed_graph(application: Application, node_of_vertex: Ints, nodes: int) -> LoadedTopology:
    """Return the condensed graph G_c of a partition, connected (section 3.1.2).

    It has a link between two nodes if edges of the application connect their vertices. These edges are flows,
    and their weights the load of the link. Links without load connect the components.

    Args:
        node_of_vertex (int32[v]): Subdomain of each vertex; subdomains may be empty.
    """
    source, target = node_of_vertex[application.source], node_of_vertex[application.target]
    flows = source != target
    pairs = np.stack((source[flows], target[flows]), axis=1)
    return LoadedTopology(connect(Topology.of(nodes, pairs)), pairs, application.weight[flows])


def condensed_topology(application: Application, machine: Machine, node_of_vertex: Ints) -> Topology:
    """Return the condensed graph of a partition, within the machine's limits (sections 3.1.2 to 3.1.4)."""
    return satisfy_limits(condensed_graph(application, node_of_vertex, machine.nodes), machine)


def _whole(weight: Floats) -> Longs | None:
    """Return weights as integers for METIS, in proportion (int64[v]), or None if all are 0."""
    total = float(weight.sum())
    if total == 0.0:
        return None
    if total <= MOST and np.array_equal(weight, np.rint(weight)):
        return weight.astype(np.int64)
    return np.asarray(np.rint(weight * (MOST / total)), np.int64)


def _balanced(weight: Floats, nodes: int) -> Ints:
    """Assign the heaviest vertex first, each to the node with the least load; ties by index (int32[v])."""
    node_of_vertex = np.zeros(len(weight), np.int32)
    loads = [(0.0, node) for node in range(nodes)]
    for vertex in np.argsort(-weight, kind="stable").tolist():
        load, node = loads[0]
        node_of_vertex[vertex] = node
        heapq.heapreplace(loads, (load + float(weight[vertex]), node))
    return node_of_vertex


CONDENSED, TORUS, RING, CHORDAL_RING = "condensed", "torus", "ring", "chordal-ring"
SEEDS = (CONDENSED, TORUS, RING, f"{CHORDAL_RING}-Q")
"""Names of seed topologies; Q is a length of chords or several, such as ``chordal-ring-3-6``."""


def chordal_ring(nodes: int, *chords: int) -> Topology:
    """Return the ring C(n; q1, q2, ...): node i is linked to i + 1 and to each i + q, modulo n.

    Nodes have two links and two for each chord, or one for a chord of n / 2.

    Args:
        nodes: n, at least 4.
        chords: Different lengths q, from 2 to n / 2.

    Raises:
        InvalidValue: A chord is out of range, or given twice.
    """
    for chord in chords:
        if not 2 <= chord <= nodes // 2:
            reason = f"is {chord}, not within 2 .. {nodes // 2} for {nodes} nodes"
            raise InvalidValue("chordal_ring.chord", reason)
    if len(set(chords)) < len(chords):
        raise InvalidValue("chordal_ring.chord", f"{', '.join(map(str, chords))}: a length is given twice")
    node = np.arange(nodes)
    steps = [np.stack((node, (node + step) % nodes), axis=1) for step in (1, *chords)]
    return Topology.of(nodes, np.concatenate(steps))


def ring(nodes: int) -> Topology:
    """Return a ring of nodes; two nodes have one link, one node has none."""
    node = np.arange(nodes)
    pairs = np.stack((node, (node + 1) % nodes), axis=1)
    return Topology.of(nodes, pairs[pairs[:, 0] != pairs[:, 1]])


def torus(rows: int, columns: int) -> Topology:
    """Return a 2-D torus: each node is linked to the next of its row and of its column, with wrap-around.

    Raises:
        InvalidValue: A side is below 1.
    """
    if rows < 1 or columns < 1:
        raise InvalidValue("torus.sides", f"are {rows} x {columns}, must be at least 1")
    node = np.arange(rows * columns)
    row, column = np.divmod(node, columns)
    right, below = row * columns + (column + 1) % columns, (row + 1) % rows * columns + column
    pairs = np.concatenate((np.stack((node, right), axis=1), np.stack((node, below), axis=1)))
    return Topology.of(len(node), pairs[pairs[:, 0] != pairs[:, 1]])


def squarest(nodes: int) -> tuple[int, int]:
    """Return rows and columns of the 2-D torus of so many nodes that is closest to a square."""
    rows = next(side for side in range(math.isqrt(nodes), 0, -1) if nodes % side == 0)
    return rows, nodes // rows


def repair_topology(topology: Topology, machine: Machine, generator: np.random.Generator) -> Topology:
    """Return a topology reduced to the machine's limits (section 5).

    Components are connected as those of a condensed graph (section 3.1.2), nodes with too many links lose
    some (section 3.1.3), and links above max-edges are removed at random unless they are bridges.

    Args:
        generator: Draws the links to remove; the same state gives the same topology.

    Raises:
        InvalidValue: The number of nodes is not that of the machine.
    """
    if topology.nodes != machine.nodes:
        raise InvalidValue("seed_topology", f"has {topology.nodes} nodes, the machine has {machine.nodes}")
    loaded = LoadedTopology(connect(topology), (), ())
    satisfy_max_degree(loaded, machine)
    kept = loaded.topology
    gone: list[int] = []
    for link in generator.permutation(kept.links).tolist():
        if kept.links - len(gone) <= machine.max_edges:
            break
        if not kept.components([*gone, link]).any():
            gone.append(link)
    return kept.changed(gone)


def seed_topology(
    seed: str | Topology, application: Application, machine: Machine, generator: np.random.Generator
) -> Topology:
    """Return the seed topology, within the machine's limits.

    Args:
        seed: One of `SEEDS`, or any topology with the nodes of the machine.
        generator: Source of all random choices; the same state gives the same topology.

    Raises:
        UnknownName: The seed topology is unknown.
        InvalidValue: The ring cannot have the chord, or the topology has another size.
    """
    if isinstance(seed, Topology):
        return repair_topology(seed, machine, generator)
    if seed == CONDENSED:
        node_of_vertex = oblivious_partition(application, machine.nodes, generator)
        return condensed_topology(application, machine, node_of_vertex)
    return repair_topology(_by_name(seed, machine.nodes), machine, generator)


def _by_name(name: str, nodes: int) -> Topology:
    if name == TORUS:
        return torus(*squarest(nodes))
    if name == RING:
        return ring(nodes)
    start, _, lengths = name.partition(f"{CHORDAL_RING}-")
    chords = lengths.split("-")
    if start or not all(chord.isdecimal() for chord in chords):
        raise UnknownName("seed topology", name, SEEDS)
    return chordal_ring(nodes, *(int(chord[:9]) for chord in chords))
