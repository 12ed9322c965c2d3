"""Seed topologies: the condensed graph of the application (section 3.1), rings, a torus, or a given one.

Section 5.
"""

from __future__ import annotations

import heapq
import math

import numpy as np
import pymetis

from mapping.placement.partition.bisection import weighted_graph
from mapping.reconfiguration.model.problem import Application, Machine
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper.repair_constraints import (
    LoadedTopology,
    connect,
    satisfy_limits,
    satisfy_max_degree,
)
from registry.errors import InvalidValue, UnknownName
from registry.model import Floats, Ints, Longs

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

    Parameters
    ----------
    node_of_vertex : int32[v]
        Subdomain of each vertex; subdomains may be empty.
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

    Parameters
    ----------
    nodes : int
        n, at least 4.
    chords : int
        Different lengths q, from 2 to n / 2.

    Raises
    ------
    InvalidValue
        A chord is out of range, or given twice.
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

    Raises
    ------
    InvalidValue
        A side is below 1.
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

    Parameters
    ----------
    generator : numpy.random.Generator
        Draws the links to remove; the same state gives the same topology.

    Raises
    ------
    InvalidValue
        The number of nodes is not that of the machine.
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

    Parameters
    ----------
    seed : str or Topology
        One of `SEEDS`, or any topology with the nodes of the machine.
    generator : numpy.random.Generator
        Source of all random choices; the same state gives the same topology.

    Raises
    ------
    UnknownName
        The seed topology is unknown.
    InvalidValue
        The ring cannot have the chord, or the topology has another size.
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
