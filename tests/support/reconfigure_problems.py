"""Small applications, machines and topologies for tests of circuits (hypothesis strategies)."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from mapping.circuits.problem import Application, Machine, Topology
from mapping.circuits.solution import SearchResult, evaluate
from registry.model import Ints

WEIGHTS = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 7.0])
HEAVY = Application.from_edges([0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 3], [1.0] * 5 + [10.0])
"""A path of six, whose opposite ends of a ring exchange most."""


@st.composite
def trees(draw: st.DrawFn, count: int) -> list[tuple[int, int]]:
    return [(draw(st.integers(0, upper - 1)), upper) for upper in range(1, count)]


@st.composite
def applications(
    draw: st.DrawFn, *, min_vertices: int = 1, max_vertices: int = 12, max_more: int = 12
) -> Application:
    """Draw any connected application: a tree and more edges, weights with ties and zeros."""
    count = draw(st.integers(min_vertices, max_vertices))
    ends = st.integers(0, count - 1)
    edges = draw(trees(count)) + draw(st.lists(st.tuples(ends, ends), max_size=max_more))
    one, other = ([edge[end] for edge in edges] for end in (0, 1))
    weight, vertex_weight = (
        draw(st.lists(WEIGHTS, min_size=size, max_size=size)) for size in (len(edges), count)
    )
    return Application.from_edges(one, other, weight, vertex_weight=vertex_weight)


@st.composite
def machines(draw: st.DrawFn, *, min_nodes: int = 1, max_nodes: int = 8) -> Machine:
    """Draw machines, from those that just hold a path of nodes to those that hold all links."""
    nodes = draw(st.integers(min_nodes, max_nodes))
    max_degree = draw(st.integers(min(nodes - 1, 2), max(nodes - 1, 2)))
    max_edges = draw(st.integers(nodes - 1, nodes * (nodes - 1) // 2 + 1))
    speeds = {name: draw(st.sampled_from([1.0, 10.0, 100.0])) for name in ("compute_speed", "link_speed")}
    return Machine(nodes=nodes, max_degree=max_degree, max_edges=max_edges, **speeds)


@st.composite
def topologies(
    draw: st.DrawFn, *, min_nodes: int = 1, max_nodes: int = 8, connected: bool = True
) -> Topology:
    nodes = draw(st.integers(min_nodes, max_nodes))
    node = st.integers(0, nodes - 1)
    ends = st.tuples(node, node).filter(lambda ends: ends[0] != ends[1])
    links = draw(st.lists(ends, max_size=2 * nodes)) if nodes > 1 else []
    return Topology.of(nodes, links + (draw(trees(nodes)) if connected else []))


def graph_of(topology: Topology) -> nx.Graph[int]:
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(topology.nodes))
    graph.add_edges_from((*pair, {"row": row}) for row, pair in enumerate(topology.pairs.tolist()))
    return graph


def links_of(topology: Topology) -> set[tuple[int, int]]:
    return {(one, other) for one, other in topology.pairs.tolist()}


def machine(nodes: int, max_degree: int = 4, max_edges: int | None = None, **speeds: float) -> Machine:
    """Return a machine; defaults: speeds of 1, as many links as ports allow."""
    most = max(nodes * max_degree // 2, nodes - 1) if max_edges is None else max_edges
    speeds = {"compute_speed": 1.0, "link_speed": 1.0, **speeds}
    return Machine(nodes=nodes, max_degree=max_degree, max_edges=most, **speeds)


def every_pair(vertices: int) -> Application:
    """Return an application whose vertices all compute 1 and exchange 1 with each other."""
    pairs = list(itertools.combinations(range(vertices), 2))
    one, other = ([pair[end] for pair in pairs] for end in (0, 1))
    return Application.from_edges(one, other, [1.0] * len(pairs))


def on_any(data: st.DataObject, application: Application, nodes: int) -> Ints:
    """Draw any node for each vertex."""
    size = application.vertices
    return np.array(data.draw(st.lists(st.integers(0, nodes - 1), min_size=size, max_size=size)), np.int32)


def check_search(application: Application, limits: Machine, found: SearchResult) -> None:
    """Check that a result keeps the limits, and that it is worth what it says."""
    found.topology.require(limits)
    node, ptr, route = (getattr(found.solution, name) for name in ("node_of_vertex", "route_ptr", "route"))
    again = evaluate(application, found.topology, limits, node, ptr, route)
    assert again.throughput == found.throughput == found.trail[-1].best
    assert [one.number for one in found.trail] == list(range(len(found.trail)))


def same_search(one: SearchResult, other: SearchResult) -> bool:
    """Return True if two searches have the same trail, links, nodes, routes and loads."""
    arrays = ("node_of_vertex", "route_ptr", "route", "node_load", "link_load")
    first, second = (
        (found.trail, links_of(found.topology), [getattr(found.solution, name).tobytes() for name in arrays])
        for found in (one, other)
    )
    return first == second
