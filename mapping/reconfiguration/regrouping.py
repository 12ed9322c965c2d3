"""Where our own search begins anew: changes that no single step of the refinement leads to.

`exchanged` places what is on each node together, a cluster, anew as one: clusters are the ranks, and the
topology the network, of a problem for the mapping engine's search on congestion (`mapping.search`). The
refinement moves one vertex at a time instead. `condensed_again` makes a topology of the present partition's
condensed graph, by sections 3.1.2 to 3.1.4, where the paper makes one of METIS's partition alone.
"""

from __future__ import annotations

import numpy as np

from mapping.distances.cost_model import CostModel
from mapping.placement.search.options import SearchOptions
from mapping.placement.search.placing import place
from mapping.reconfiguration.initial import condense, satisfy_constraints
from mapping.reconfiguration.problem import Application, Machine
from mapping.reconfiguration.topology import Topology
from registry.model import HOST, Allocation, Fabric, Ints, Links, Placement, Profile

STEPS = 20_000
"""Proposals of the mapping engine, unless told."""
SEARCHES = ("congestion-descent", "random+congestion-descent")
"""Its searches: from where clusters are, and from anywhere."""
MOST_GATHERED = 1000
"""Vertices up to which all are put on one node to begin anew: of more, each spreads too slowly."""
SHAKE = 0.2
"""Probability of moving a vertex at random, against partitions that nothing else leaves."""
MOST_SHAKEN = 400
"""Vertices that are moved so, about, at most: with 2,000 of 10,000 a refinement took two seconds."""
FEWEST_NODES, MOST_NODES = 3, 2048
"""On two nodes all that can be exchanged is alike; on very many the engine would take too long."""


def exchanged(
    application: Application, topology: Topology, node_of_vertex: Ints, *, steps: int = STEPS, seed: int = 0
) -> Ints:
    """int32[v]: node of each vertex after nodes have exchanged all that is on them, for least congestion.

    The mapping engine's estimate counts: all shortest paths share a flow. Vertices stay where that cannot be
    lowered, where nothing flows between nodes, and on more than `MOST_NODES`.

    Parameters
    ----------
    topology : Topology
        Connected.
    node_of_vertex : int32[v]
        Where vertices are now.
    steps, seed
        Of `mapping.placement.search.placing.place`; the same ones give the same bytes.

    Raises
    ------
    KeyboardInterrupt
        Where the search was interrupted: it would end with the best so far, and here all shall end.
    """
    nodes = topology.nodes
    profile = traffic(application, node_of_vertex, nodes)
    if not FEWEST_NODES <= nodes <= MOST_NODES or not profile.bytes.any():
        return node_of_vertex
    hosts = np.arange(nodes, dtype=np.int32)
    allocation = Allocation(hosts=hosts, slots=np.ones(nodes, np.int32))
    found = place(
        network(topology),
        profile,
        allocation,
        SearchOptions(objective="congestion", strategies=SEARCHES, steps=steps, seed=seed, workers=1),
        CostModel(routing="shortest-paths"),
        start=Placement(host_of_rank=hosts, allocation=allocation, strategy="given"),
    )
    if not found.complete:
        raise KeyboardInterrupt
    return found.host_of_rank[node_of_vertex]


def traffic(application: Application, node_of_vertex: Ints, nodes: int) -> Profile:
    """What flows between nodes, each of which is a rank; half of an edge goes each way."""
    one, other = node_of_vertex[application.source], node_of_vertex[application.target]
    half = application.weight / 2
    return Profile.from_edges(np.r_[one, other], np.r_[other, one], np.r_[half, half], ranks=nodes)


def network(topology: Topology) -> Fabric:
    """A topology as a direct network: vertices are nodes, a cable for each link, all alike."""
    nodes = topology.nodes
    ends = topology.source, topology.target
    return Fabric(
        names=tuple(f"node{node}" for node in range(nodes)),
        kind=np.full(nodes, HOST, np.uint8),
        slots=np.ones(nodes, np.int32),
        forwards=np.ones(nodes, np.bool_),
        guid=np.zeros(nodes, np.uint64),
        lid=np.zeros(nodes, np.int32),
        links=Links.of(np.r_[ends[0], ends[1]], np.r_[ends[1], ends[0]], 1.0),
    )


def condensed_again(application: Application, machine: Machine, node_of_vertex: Ints) -> Topology:
    """The condensed graph of a partition, within the machine's limits (sections 3.1.2 to 3.1.4)."""
    condensed = condense(application, node_of_vertex, machine.nodes)
    return satisfy_constraints(application, node_of_vertex, condensed, machine)


def gathered(topology: Topology, node_of_vertex: Ints, generator: np.random.Generator) -> Ints:
    """int32[v]: all vertices on one node, drawn of those with most links, from where they may spread.

    Where links are slow, few nodes are best, and vertices that are spread out do not come together again one
    by one.
    """
    most = np.flatnonzero(topology.degree == topology.degree.max())
    return np.full(len(node_of_vertex), most[generator.integers(len(most))], np.int32)


def shaken(topology: Topology, node_of_vertex: Ints, generator: np.random.Generator) -> Ints:
    """int32[v]: some vertices, with probability `SHAKE`, on a node that a link joins to their own, drawn."""
    near, node = topology.neighbours, node_of_vertex.astype(np.int64)
    share = min(SHAKE, MOST_SHAKEN / max(len(node), 1))
    moves = np.flatnonzero((generator.random(len(node)) < share) & (topology.degree[node] > 0))
    place = (generator.random(len(moves)) * topology.degree[node[moves]]).astype(np.int64)
    node[moves] = near.node[near.indptr[node[moves]] + place]
    return node.astype(np.int32)
