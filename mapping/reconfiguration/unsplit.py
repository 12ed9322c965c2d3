"""Unsplit routes of little congestion on a given topology (sections 3.1.3 and 3.2.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from mapping.reconfiguration.kernels.unsplit_routes import (
    Guest,
    Net,
    Standing,
    fewest_links,
    least_congested,
    new_search,
    relieve,
    route_shortest,
)
from mapping.reconfiguration.problem import Application, Machine
from mapping.reconfiguration.solution import Solution, evaluate
from mapping.reconfiguration.topology import Topology
from registry.errors import InvalidValue
from registry.model import Ints, Longs

ROOM = 63
"""Links that a route may have on any topology; on one of great diameter it may have more."""


def least_congested_path(
    topology: Topology, link_load: ArrayLike, source: int, target: int, flow: float
) -> Ints:
    """The minimum-congestion path of a flow (sections 3.1.3 and 3.2.2): int32[k], links in order.

    It is the path whose largest link load, after adding the flow to all of its links, is least; of equals one
    of fewest links, and of these the one that leaves its first differing node for the lowest neighbour.

    Parameters
    ----------
    link_load : float64[m]
        Load of each link without the flow, >= 0.
    source, target : int
        Nodes; the path has no links where they are the same.
    flow : float
        >= 0, in the unit of the loads.

    Raises
    ------
    InvalidValue
        A node that there is not, loads of another number than links, or two nodes that no path joins.
    """
    load = np.asarray(link_load, np.float64)
    if load.shape != (len(topology.source),):
        raise InvalidValue("link_load", f"has shape {load.shape}, not ({len(topology.source)},)")
    for name, node in (("source", source), ("target", target)):
        if not 0 <= node < topology.nodes:
            raise InvalidValue(name, f"is {node}, not within 0 .. {topology.nodes - 1}")
    search = new_search(topology.nodes, len(topology.source), topology.nodes)
    found = least_congested(net_of(topology), load.copy(), int(source), int(target), float(flow), search)
    if found < 0:
        raise InvalidValue("Topology.source", f"no path of links joins node {source} and node {target}")
    return search.path[:found].copy()


def net_of(topology: Topology) -> Net:
    """The topology as kernels take it."""
    near = topology.neighbours
    ends = topology.source + topology.target
    return Net(np.array(near.indptr), np.array(near.node), np.array(near.link), ends.astype(np.int32))


def longest_route(topology: Topology) -> int:
    """Links that routes of a refinement may have, at least 1.

    No path has more where there are at most `ROOM` + 1 nodes. Otherwise at least `ROOM` and at least the
    diameter: what is left out are long detours.
    """
    most = topology.nodes - 1
    if most <= ROOM:
        return max(most, 1)
    ends, ones = (topology.source, topology.target), np.ones(len(topology.source))
    graph = coo_array((ones, ends), shape=(topology.nodes, topology.nodes)).tocsr()
    far = dijkstra(graph, directed=False, unweighted=True, indices=0)
    return min(most, max(ROOM, 2 * int(far[np.isfinite(far)].max())))


def route_unsplit(net: Net, guest: Guest, node: Ints, longest: int) -> Standing:
    """The routing of the initial partition (section 3.2.2).

    First each edge takes a shortest path (of equals the one that leaves its first differing node for the
    lowest neighbour). Then edges are considered in decreasing order of weight, of equals the first, and one
    is re-routed along its minimum-congestion path where that increases the throughput of the system.

    Parameters
    ----------
    guest : Guest
        Its loads are in seconds on a grid: they add up without rounding.
    node : int32[v]
        Node of each vertex.
    longest : int
        From `longest_route`.

    Raises
    ------
    InvalidValue
        No path joins the nodes of an edge.
    """
    edges, nodes, links = len(guest.flow), len(net.first) - 1, len(net.ends)
    standing = Standing(
        node=node,
        route=np.zeros((edges, longest), np.int32),
        length=np.zeros(edges, np.int32),
        load=np.zeros(nodes + links),
    )
    search = new_search(nodes, links, longest)
    torn = int(route_shortest(net, guest, standing, search))
    if torn >= 0:
        one, other = int(node[guest.source[torn]]), int(node[guest.target[torn]])
        raise InvalidValue("Topology.source", f"no path of links joins node {one} and node {other}")
    set_loads(net, guest, standing)
    relieve(net, guest, standing, np.argsort(-guest.flow, kind="stable"), search)
    return standing


def route_anew(net: Net, guest: Guest, standing: Standing, edges: Longs) -> None:
    """Route edges that have no route, the heaviest first, by least congestion; their loads are added.

    Parameters
    ----------
    standing : Standing
        Changed in place.
    edges : int64[k]
    """
    nodes = len(net.first) - 1
    links = standing.load[nodes:]
    search = new_search(nodes, len(net.ends), standing.route.shape[1])
    for edge in edges[np.argsort(-guest.flow[edges], kind="stable")].tolist():
        start, goal = standing.node[guest.source[edge]], standing.node[guest.target[edge]]
        ends, flow = (int(start), int(goal)), float(guest.flow[edge])
        count = least_congested(net, links, *ends, flow, search)
        if count < 0:  # the way is longer than routes may be
            count = fewest_links(net, links, *ends, flow, np.inf, search)
        path = search.path[:count]
        standing.route[edge, :count] = path
        standing.length[edge] = count
        links[path] += flow


def evaluated(application: Application, topology: Topology, machine: Machine, standing: Standing) -> Solution:
    """The solution that a partition and its routes are.

    Raises
    ------
    InvalidValue
        As `mapping.reconfiguration.solution.evaluate`.
    """
    route_ptr = np.r_[0, np.cumsum(standing.length, dtype=np.int64)]
    return evaluate(application, topology, machine, standing.node, route_ptr, flat_routes(standing))


def set_loads(net: Net, guest: Guest, standing: Standing) -> None:
    """Fill ``standing.load`` by what is on each node and each link."""
    nodes = len(net.first) - 1
    standing.load[:nodes] = np.bincount(standing.node, guest.vertex, nodes)
    flow = np.repeat(guest.flow, standing.length)
    standing.load[nodes:] = np.bincount(flat_routes(standing), flow, len(net.ends))


def flat_routes(standing: Standing) -> Ints:
    """int32[r]: links of all routes, one after the other."""
    used = np.arange(standing.route.shape[1]) < standing.length[:, None]
    return standing.route[used]
