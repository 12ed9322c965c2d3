"""Unsplit routes of low congestion (sections 3.1.3 and 3.2.2), and refinement by the performance vector.

3.2.3.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from mapping.reconfiguration.kernels import local_update
from mapping.reconfiguration.kernels.routes import (
    Guest,
    Net,
    PartitionState,
    fewest_links,
    least_congested,
    new_search,
    project_routes,
    reroute_flows,
    route_shortest,
)
from mapping.reconfiguration.kernels.workspace import new_workspace
from mapping.reconfiguration.model.problem import Application, Level, Machine, require_not_negative
from mapping.reconfiguration.model.solution import Solution, evaluate
from mapping.reconfiguration.model.topology import Topology
from registry.errors import InvalidValue
from registry.model import Floats, Ints, Longs

ROOM = 63
"""Links that a route may have on every topology; more if the diameter is larger."""
DEPTH = 0
"""Default depth: `BOUND` in graphs of more than `WHOLE` edges, without bound in others."""
BOUND, WHOLE = 4, 600
THOROUGH = 56_000
"""Edges times links up to which all flows of a moved vertex are routed again."""
_NO_END = 1 << 62


class Refinement(NamedTuple):
    """Limits of `refine`.

    Attributes
    ----------
    depth : int or None
        Depth of the local search (the parameter of section 4.4). None is the rule of the paper: the best of
        all steps. With a number from 1, only steps are tried that first lower one of so many worst entries of
        the performance vector (including those equal to the last of them). The steps made are the same in the
        same order, but the refinement ends if the best step lowers none of these entries, even if it would
        improve others. 0, the default, is `BOUND` in graphs of more than `WHOLE` edges, and None in others.
    steps : int or None
        Largest number of steps; default: no limit.
    """

    depth: int | None = DEPTH
    steps: int | None = None


def least_congested_path(
    topology: Topology, link_load: ArrayLike, source: int, target: int, flow: float
) -> Ints:
    """Return the least congested path of a flow as links in order (int32[k]; sections 3.1.3 and 3.2.2).

    It is the path whose largest link load, after adding the flow to all its links, is smallest; ties go to
    the path of fewest links, then to the one that leaves its first differing node for the lowest neighbour.

    Parameters
    ----------
    link_load : float64[m]
        Load of each link without the flow, >= 0.
    source, target : int
        Nodes; if they are the same, the path has no links.
    flow : float
        >= 0, in the unit of the loads.

    Raises
    ------
    InvalidValue
        A node does not exist, the number of loads is not that of links, or no path connects the nodes.
    """
    load = np.asarray(link_load, np.float64)
    if load.shape != (len(topology.source),):
        raise InvalidValue("link_load", f"has shape {load.shape}, not ({len(topology.source)},)")
    for name, node in (("source", source), ("target", target)):
        if not 0 <= node < topology.nodes:
            raise InvalidValue(name, f"is {node}, not within 0 .. {topology.nodes - 1}")
    search = new_search(topology.nodes, len(topology.source), topology.nodes)
    found = least_congested(build_net(topology), load.copy(), int(source), int(target), float(flow), search)
    if found < 0:
        raise _disconnected(source, target)
    return search.path[:found].copy()


def _disconnected(one: int, other: int) -> InvalidValue:
    return InvalidValue("Topology.source", f"no path of links connects node {one} and node {other}")


def build_net(topology: Topology) -> Net:
    """Return a topology as arrays for kernels."""
    near = topology.neighbours
    ends = topology.source + topology.target
    return Net(np.array(near.indptr), np.array(near.node), np.array(near.link), ends.astype(np.int32))


def longest_route(topology: Topology) -> int:
    """Return the largest number of links of a route in a refinement, at least 1.

    No path has more links if there are at most `ROOM` + 1 nodes. On larger topologies it is `ROOM` or the
    diameter, whichever is larger, so that only long detours are excluded.
    """
    most = topology.nodes - 1
    if most <= ROOM:
        return max(most, 1)
    ends, ones = (topology.source, topology.target), np.ones(len(topology.source))
    graph = coo_array((ones, ends), shape=(topology.nodes, topology.nodes)).tocsr()
    far = dijkstra(graph, directed=False, unweighted=True, indices=0)
    return min(most, max(ROOM, 2 * int(far[np.isfinite(far)].max())))


def route_unsplit(net: Net, guest: Guest, node: Ints, longest: int) -> PartitionState:
    """Route all edges of a partition (section 3.2.2).

    First each edge takes a shortest path; ties go to the path that leaves its first differing node for the
    lowest neighbour. Then edges are visited by descending weight, ties by row, and an edge is re-routed along
    its least congested path if that increases the throughput of the whole system.

    Parameters
    ----------
    guest : Guest
        Its loads are seconds on a grid, which add up without rounding.
    node : int32[v]
        Node of each vertex.
    longest : int
        From `longest_route`.

    Raises
    ------
    InvalidValue
        No path connects the nodes of an edge.
    """
    edges, nodes, links = len(guest.flow), len(net.first) - 1, len(net.ends)
    state = PartitionState(
        node=node,
        route=np.zeros((edges, longest), np.int32),
        length=np.zeros(edges, np.int32),
        load=np.zeros(nodes + links),
    )
    search = new_search(nodes, links, longest)
    edge = int(route_shortest(net, guest, state, search))
    if edge >= 0:
        raise _disconnected(int(node[guest.source[edge]]), int(node[guest.target[edge]]))
    set_loads(net, guest, state)
    reroute_flows(net, guest, state, np.argsort(-guest.flow, kind="stable"), search)
    return state


def route_missing(net: Net, guest: Guest, state: PartitionState, edges: Longs) -> None:
    """Route edges (int64[k]) that have no route, the heaviest first, along least congested paths.

    `state` is changed in place; the loads of these edges are added.
    """
    nodes = len(net.first) - 1
    links = state.load[nodes:]
    search = new_search(nodes, len(net.ends), state.route.shape[1])
    for edge in edges[np.argsort(-guest.flow[edges], kind="stable")].tolist():
        start, goal = state.node[guest.source[edge]], state.node[guest.target[edge]]
        ends, flow = (int(start), int(goal)), float(guest.flow[edge])
        count = least_congested(net, links, *ends, flow, search)
        if count < 0:  # the path is longer than routes may be
            count = fewest_links(net, links, *ends, flow, np.inf, search)
        path = search.path[:count]
        state.route[edge, :count] = path
        state.length[edge] = count
        links[path] += flow


def evaluate_state(
    application: Application, topology: Topology, machine: Machine, state: PartitionState
) -> Solution:
    """Return the solution of a partition and its routes.

    Raises
    ------
    InvalidValue
        As of `mapping.reconfiguration.model.solution.evaluate`.
    """
    route_ptr = np.r_[0, np.cumsum(state.length, dtype=np.int64)]
    return evaluate(application, topology, machine, state.node, route_ptr, flat_routes(state))


def set_loads(net: Net, guest: Guest, state: PartitionState) -> None:
    """Compute ``state.load`` from the partition and the routes."""
    nodes = len(net.first) - 1
    state.load[:nodes] = np.bincount(state.node, guest.vertex, nodes)
    flow = np.repeat(guest.flow, state.length)
    state.load[nodes:] = np.bincount(flat_routes(state), flow, len(net.ends))


def flat_routes(state: PartitionState) -> Ints:
    """Return the links of all routes, one after the other (int32[r])."""
    used = np.arange(state.route.shape[1]) < state.length[:, None]
    return state.route[used]


class Scale(NamedTuple):
    """Conversion of weights on nodes and links to seconds on a common grid.

    An entry S_comp / w_v of the performance vector is compared as w_v * S_comm, and S_comm / w_e as
    w_e * S_comp: the same order, reversed. All are rounded to whole multiples of a power of two, small enough
    that the sum of all weights is below 2^52 of them. So loads add up without rounding in any order, no step
    appears to be an improvement because of rounding, and equal steps compare equal. Whole numbers of usual
    size are not rounded.

    Attributes
    ----------
    vertex, flow : float
        Factors of vertex weights and of edge weights.
    unit : float
        Distance of the grid's points.
    """

    vertex: float
    flow: float
    unit: float

    @classmethod
    def of(cls, application: Application, machine: Machine) -> Self:
        """Return the scale for an application on a machine, and for all graphs contracted from it."""
        fold = math.frexp(max(machine.link_speed, machine.compute_speed))[1]
        vertex, flow = math.ldexp(machine.link_speed, -fold), math.ldexp(machine.compute_speed, -fold)
        total = max(
            float(application.vertex_weight.sum()) * vertex, float(application.weight.sum()) * flow, 0.0
        )
        return cls(vertex, flow, math.ldexp(1.0, math.frexp(total)[1] - 52) if total > 0 else 1.0)

    def on_grid(self, weight: Floats, factor: float) -> Floats:
        """Return weights as seconds on the grid (float64[k])."""
        return np.rint(weight * (factor / self.unit)) * self.unit


def build_guest(level: Level, scale: Scale) -> Guest:
    """Return a graph as arrays for kernels: weights in seconds, edges of each vertex by falling weight."""
    vertices, edges = len(level.vertex_weight), len(level.weight)
    flow = scale.on_grid(level.weight, scale.flow)
    ends = np.concatenate((level.source, level.target))
    row = np.tile(np.arange(edges, dtype=np.int32), 2)
    order = np.lexsort((row, -flow[row], ends))
    return Guest(
        vertex=scale.on_grid(level.vertex_weight, scale.vertex),
        source=level.source.astype(np.int32),
        target=level.target.astype(np.int32),
        flow=flow,
        first=np.concatenate(([0], np.cumsum(np.bincount(ends, minlength=vertices)))).astype(np.int64),
        edge=row[order],
    )


def project(net: Net, guest: Guest, coarse: PartitionState, level: Level) -> PartitionState:
    """Return the partition and routes of a coarser graph on the next finer one (section 3.2.3).

    Each vertex takes the node of the vertex that it was contracted to, and each edge the route of the edge
    that it is part of.

    Parameters
    ----------
    guest : Guest
        The finer graph.
    level : Level
        The coarser graph.
    """
    fine = PartitionState(
        node=coarse.node[level.vertex],
        route=np.zeros((len(guest.flow), coarse.route.shape[1]), np.int32),
        length=np.zeros(len(guest.flow), np.int32),
        load=np.zeros(len(coarse.load)),
    )
    project_routes(coarse, level.edge, level.backwards, fine)
    set_loads(net, guest, fine)
    return fine


def refine(
    net: Net,
    guest: Guest,
    state: PartitionState,
    limits: Refinement = Refinement(),  # noqa: B008 (immutable)
) -> int:
    """Move vertices and re-route flows by the best step, until no step is better (section 3.2.3).

    Steps are (a) each vertex to each neighbour of its node in the topology, and (b) each flow to its least
    congested path. The step with the best performance vector is made, as long as that vector is better than
    the present one; ties go to (a), then to the lower row.

    The paper does not specify the routes of a moved vertex. If edges times links are at most `THOROUGH`, all
    its flows are routed again, the heaviest first, each along its least congested path. In larger graphs
    their routes are extended by the link that the vertex moves along, or cut at its new node if they lead
    through it; steps of kind (b) straighten them.

    Parameters
    ----------
    state : PartitionState
        Changed in place.

    Returns
    -------
    int
        Number of steps made.

    Raises
    ------
    InvalidValue
        A limit is negative.
    """
    depth, steps = limits.depth, limits.steps
    require_not_negative(depth=depth, steps=steps)
    work = new_workspace(net, guest, state, len(guest.flow) <= THOROUGH // max(len(net.ends), 1))
    if depth == DEPTH:
        depth = None if len(guest.flow) <= WHOLE else BOUND
    entries = len(state.load) if depth is None else depth
    return int(local_update.refine(work, entries, _NO_END if steps is None else steps))
