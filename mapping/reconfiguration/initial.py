"""The initial topology: a condensed graph of the application, made to fit the switch (section 3.1)."""

from __future__ import annotations

import heapq
from typing import NamedTuple

import numpy as np
import pymetis

from mapping.placement.partition.bisection import weighted_graph
from mapping.reconfiguration.fitting import LoadedTopology, connect, satisfy_max_degree, satisfy_max_edges
from mapping.reconfiguration.problem import Application, Machine
from mapping.reconfiguration.topology import Topology
from registry.model import Floats, Ints, Longs

IMBALANCE = 1.05
"""Heaviest subdomain over the mean that METIS is asked for (section 3.1.1)."""
MOST = 1 << 30
"""Sum of the whole numbers that METIS gets as vertex weights: it counts in 32 bits."""


class Condensed(NamedTuple):
    """The condensed graph G_c of a partition (section 3.1.2), joined to one component.

    Attributes
    ----------
    topology : Topology
        A link between two nodes of which vertices are joined by an edge; and links that join components.
    weight : float64[m]
        Sum of the weights of those edges; 0 for links that join components.
    edges : int64[k]
        Edges of the application between different nodes: they are the flows.
    """

    topology: Topology
    weight: Floats
    edges: Longs


def initial_topology(application: Application, machine: Machine, generator: np.random.Generator) -> Topology:
    """The condensed graph of an architecture-oblivious partition, within max-degree and max-edges.

    Parameters
    ----------
    generator : numpy.random.Generator
        Gives METIS its seed; the same state gives the same topology.
    """
    node_of_vertex = oblivious_partition(application, machine.nodes, generator)
    condensed = condense(application, node_of_vertex, machine.nodes)
    return satisfy_constraints(application, node_of_vertex, condensed, machine)


def oblivious_partition(application: Application, nodes: int, generator: np.random.Generator) -> Ints:
    """int32[v]: the subdomain of each vertex, whatever the topology (section 3.1.1).

    METIS's k-way method with imbalance `IMBALANCE`: balanced load, small cut, and small greatest degree of a
    subdomain (METIS's option ``minconn``, which the paper names as that of subdomain degree). A vertex as
    heavy as a subdomain should be has one for itself, as no balance can be better; METIS cuts the others into
    the subdomains that are left. Where these are no more than subdomains each has its own; without an edge of
    weight the load alone is balanced.
    """
    order = generator.permutation(application.vertices)
    seed = int(generator.integers(1 << 31))
    weight = application.vertex_weight
    node_of_vertex = np.full(len(weight), -1, np.int32)
    alone = _heavy(weight, nodes)
    node_of_vertex[alone] = np.arange(len(alone))
    kept = order[node_of_vertex[order] < 0]  # drawn: of small graphs METIS makes the same of every seed
    node_of_vertex[kept] = len(alone) + _parts(application, kept, nodes - len(alone), seed)
    return node_of_vertex


def _heavy(weight: Floats, nodes: int) -> Longs:
    """int64[k], k < nodes: vertices, the heaviest first, not lighter than an equal share of what is left."""
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
    """int32[k]: the part of each of some vertices, of which METIS gets the graph among them."""
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


def condense(application: Application, node_of_vertex: Ints, nodes: int) -> Condensed:
    """The condensed graph of a partition; components of it are joined by links of weight 0 (section 3.1.2).

    Parameters
    ----------
    node_of_vertex : int32[v]
        Subdomain of each vertex; one may be empty.
    """
    source, target = node_of_vertex[application.source], node_of_vertex[application.target]
    edges = np.flatnonzero(source != target)
    own = Topology.of(nodes, np.stack((source[edges], target[edges]), axis=1))
    topology = connect(own)
    keys = topology.pairs @ (nodes, 1)
    low, high = np.minimum(source, target)[edges], np.maximum(source, target)[edges]
    row = np.searchsorted(keys, low.astype(np.int64) * nodes + high)
    weight = np.bincount(row, weights=application.weight[edges], minlength=topology.links)
    return Condensed(topology, weight.astype(np.float64), edges)


def satisfy_constraints(
    application: Application, node_of_vertex: Ints, condensed: Condensed, machine: Machine
) -> Topology:
    """The condensed graph cut to max-degree (section 3.1.3), then to max-edges (section 3.1.4).

    Each edge of the application between different nodes is a flow, which a removed link sends elsewhere.
    """
    flows = condensed.edges
    loaded = LoadedTopology(
        condensed.topology,
        node_of_vertex[application.source[flows]],
        node_of_vertex[application.target[flows]],
        application.weight[flows],
    )
    satisfy_max_degree(loaded, machine)
    satisfy_max_edges(loaded, machine)
    return loaded.topology


def _whole(weight: Floats) -> Longs | None:
    """int64[v]: weights as METIS takes them, in proportion; None where all are 0."""
    total = float(weight.sum())
    if total == 0.0:
        return None
    if total <= MOST and np.array_equal(weight, np.rint(weight)):
        return weight.astype(np.int64)
    return np.asarray(np.rint(weight * (MOST / total)), np.int64)


def _balanced(weight: Floats, nodes: int) -> Ints:
    """int32[v]: the heaviest vertex first, each to the node with the least load; ties by index."""
    node_of_vertex = np.zeros(len(weight), np.int32)
    loads = [(0.0, node) for node in range(nodes)]
    for vertex in np.argsort(-weight, kind="stable").tolist():
        load, node = loads[0]
        node_of_vertex[vertex] = node
        heapq.heapreplace(loads, (load + float(weight[vertex]), node))
    return node_of_vertex
