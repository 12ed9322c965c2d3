"""Partition and routes of an application on a given topology: section 3.2 as a whole.

A multilevel method: the application is coarsened by greedy maximal matchings (3.2.1), the coarsest graph is
partitioned by recursive bisection of application and topology together, and its flows are routed (3.2.2); the
result is projected back from graph to graph and refined on each of them (3.2.3).

Unsplit routes of low congestion (sections 3.1.3 and 3.2.2), and refinement by the performance vector.

3.2.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from mapping.circuits.kernels import local_update
from mapping.circuits.kernels.routes import (
    Guest,
    Net,
    PartitionState,
    fewest_links,
    least_congested,
    match_in_order,
    new_search,
    project_routes,
    reroute_flows,
    route_shortest,
)
from mapping.circuits.kernels.workspace import new_workspace
from mapping.circuits.problem import Application, Level, Machine, Topology, require_not_negative, rows_of
from mapping.circuits.solution import Solution, evaluate
from mapping.placement.methods.bisection import MOST, Adjacency, bisect, repaired, weighted_graph
from registry.errors import InvalidValue, UnknownName
from registry.model import Bools, Floats, Ints, Longs
from registry.progress import Progress

ROOM = 63
"""Links that a route may have on every topology; more if the diameter is larger."""
DEPTH = 0
"""Default depth: `BOUND` in graphs of more than `WHOLE` edges, without bound in others."""
BOUND, WHOLE = 4, 600
THOROUGH = 56_000
"""Edges times links up to which all flows of a moved vertex are routed again."""
_NO_END = 1 << 62


class Refinement(NamedTuple):
    """Limits of `refine`."""

    depth: int | None = DEPTH
    """Depth of the local search (the parameter of section 4.4). None is the rule of the paper: the best of
    all steps. With a number from 1, only steps are tried that first lower one of so many worst entries of the
    performance vector (including those equal to the last of them). The steps made are the same in the same
    order, but the refinement ends if the best step lowers none of these entries, even if it would improve
    others. 0, the default, is `BOUND` in graphs of more than `WHOLE` edges, and None in others."""
    steps: int | None = None
    """Largest number of steps; default: no limit."""


def least_congested_path(
    topology: Topology, link_load: ArrayLike, source: int, target: int, flow: float
) -> Ints:
    """Return the least congested path of a flow as links in order (int32[k]; sections 3.1.3 and 3.2.2).

    It is the path whose largest link load, after adding the flow to all its links, is smallest; ties go to
    the path of fewest links, then to the one that leaves its first differing node for the lowest neighbour.

    Args:
        link_load (float64[m]): Load of each link without the flow, >= 0.
        source, target: Nodes; if they are the same, the path has no links.
        flow: >= 0, in the unit of the loads.

    Raises:
        InvalidValue: A node does not exist, the number of loads is not that of links, or no path connects the
            nodes.
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

    Args:
        guest: Its loads are seconds on a grid, which add up without rounding.
        node (int32[v]): Node of each vertex.
        longest: From `longest_route`.

    Raises:
        InvalidValue: No path connects the nodes of an edge.
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

    Raises:
        InvalidValue: As of `mapping.circuits.solution.evaluate`.
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
    """

    vertex: float
    flow: float
    """Factors of vertex weights and of edge weights."""
    unit: float
    """Distance of the grid's points."""

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

    Args:
        guest: The finer graph.
        level: The coarser graph.
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

    Args:
        state: Changed in place.

    Returns:
        Number of steps made.

    Raises:
        InvalidValue: A limit is negative.
    """
    depth, steps = limits.depth, limits.steps
    require_not_negative(depth=depth, steps=steps)
    work = new_workspace(net, guest, state, len(guest.flow) <= THOROUGH // max(len(net.ends), 1))
    if depth == DEPTH:
        depth = None if len(guest.flow) <= WHOLE else BOUND
    entries = len(state.load) if depth is None else depth
    return int(local_update.refine(work, entries, _NO_END if steps is None else steps))


LOWEST, HIGHEST = "lowest", "highest"
EXPANSIONS = (LOWEST, HIGHEST)
"""Orders of matchings: lowest or highest edge expansion first."""
FEWEST = 100
"""Number of vertices below which no graph is coarsened, even for few nodes."""
STALLED = 0.02
"""A round that removes a smaller share of the vertices is the last: a star loses one per round."""
SMALL = 8
"""Graphs of fewer vertices are cut by trying all cuts, since METIS tends to leave one part empty."""
SLACK = 0.05
"""Largest relative excess of a part of the application over its share: an imbalance of 1.05."""
LOADING = "loading kernels (compiled once, which takes half a minute)"
"""Phase of progress while kernels are loaded."""
VERTICES = 120
"""Vertices of `small_problem`: enough to be coarsened, so that those kernels are loaded too."""


def place_and_route(
    application: Application,
    topology: Topology,
    machine: Machine,
    generator: np.random.Generator,
    *,
    refinement: Refinement = Refinement(),  # noqa: B008 (immutable)
    levels: Sequence[Level] | None = None,
) -> Solution:
    """Partition an application for a topology and route its edges, from scratch (section 3.2).

    All links of the topology count as equal. Nodes may stay empty if that is better.

    Args:
        topology: Connected, with the nodes of `machine`; it may exceed the machine's limits.
        generator: Source of the seed of METIS; the same state gives the same result.
        refinement: Limits of the refinement of each graph.
        levels: Result of `coarsen` for the same application and number of nodes, which many topologies may
            share.

    Raises:
        InvalidValue: The machine has another number of nodes, the topology does not connect the nodes of an
            edge, or a limit of the refinement is negative.
    """
    graphs = levels if levels is not None else coarsen(application, topology.nodes)
    scale, net = Scale.of(application, machine), build_net(topology)
    coarsest = graphs[-1]
    guest = build_guest(coarsest, scale)
    node = dual_bisection(coarsest, topology, generator)
    state = route_unsplit(net, guest, node, longest_route(topology))
    refine(net, guest, state, refinement)
    for fine, coarse in zip(reversed(graphs[:-1]), reversed(graphs[1:]), strict=True):
        guest = build_guest(fine, scale)
        state = project(net, guest, state, coarse)
        refine(net, guest, state, refinement)
    return evaluate_state(application, topology, machine, state)


def fewest_vertices(nodes: int) -> int:
    """Return the number of vertices to coarsen to: max(P^1.5, 100) for P nodes, rounded down.

    Section 3.2.1.
    """
    return max(int(nodes**1.5), FEWEST)


def coarsen(application: Application, nodes: int, *, expansion: str = LOWEST) -> tuple[Level, ...]:
    """Return the graphs from the application, the finest, to one of `fewest_vertices` (section 3.2.1).

    Each round visits edges by rising expansion (equation 1), ties by row, matches the ends of each edge if
    both are still free, and contracts the matching. The last round contracts only as many of the first edges
    as needed. More vertices are left if there are no more edges, or if a round removes less than `STALLED` of
    them: the lowest expansions are those of the heaviest vertices, which grow to hubs, so that matchings
    become small in large graphs.

    The graphs depend only on the application and the number of nodes: many topologies may share them.

    Args:
        nodes: Number of nodes of the topology.
        expansion: ``lowest`` first, as in the paper, or ``highest``: heavy edges between light vertices
            first.

    Raises:
        UnknownName: The expansion is unknown.
    """
    if expansion not in EXPANSIONS:
        raise UnknownName("expansion", expansion, EXPANSIONS)
    fewest = fewest_vertices(nodes)
    levels = [Level.of(application)]
    while len(levels[-1].vertex_weight) > fewest:
        fine = levels[-1]
        size = len(fine.vertex_weight)
        mate = matching(fine, size - fewest, expansion=expansion)
        pairs = int(np.count_nonzero(mate != np.arange(size))) // 2
        if pairs == 0:
            break
        levels.append(contract(fine, mate))
        if pairs < STALLED * size:
            break
    return tuple(levels)


def matching(level: Level, most: int, *, expansion: str = LOWEST) -> Ints:
    """Return the partner of each vertex, or itself, in a greedy maximal matching of at most `most` pairs.

    Edges are visited by expansion, w_e / (w_u w_v) (equation 1), ties by row; an edge without weight has
    expansion 0, one at a vertex without weight an infinite one.
    """
    product = level.vertex_weight[level.source] * level.vertex_weight[level.target]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = level.weight / product
    value[level.weight == 0] = 0.0
    order: Longs = np.argsort(value if expansion == LOWEST else -value, kind="stable")
    mate = np.arange(len(level.vertex_weight), dtype=np.int32)
    match_in_order(order, np.array(level.source), np.array(level.target), most, mate)
    return mate


def contract(fine: Level, mate: Ints) -> Level:
    """Return the graph in which each vertex and its partner are one vertex (section 2.4).

    Weights of merged vertices are added, and those of parallel edges. Vertices are numbered by the lower of
    the two that they consist of.
    """
    size = len(mate)
    first = np.minimum(np.arange(size), mate)
    is_first = first == np.arange(size)
    vertex = (np.cumsum(is_first) - 1)[first].astype(np.int32)
    count = int(np.count_nonzero(is_first))
    one, other = vertex[fine.source], vertex[fine.target]
    rows = rows_of("contract", count, one, other)
    return Level(
        np.bincount(vertex, fine.vertex_weight, count).astype(np.float64),
        rows.source,
        rows.target,
        rows.sums(fine.weight),
        vertex=vertex,
        edge=rows.first.astype(np.int32),
        backwards=one > other,
    )


def dual_bisection(level: Level, topology: Topology, generator: np.random.Generator) -> Ints:
    """Return the node of each vertex (int32[v]) by recursive bisection of both graphs (section 3.2.2).

    Both are cut into two parts with the smallest edge cut. The topology, whose nodes and links weigh 1, is
    cut into parts of equally many nodes (one more in one part if the number is odd), the application into
    parts whose loads are in the ratio of the nodes within 5%. The bigger part is assigned to the bigger part:
    that of more load (or nodes), or at equality that of more edges; if both are equal, the first to the
    first. METIS cuts graphs of 8 vertices and more; of smaller graphs the balanced cut with the smallest edge
    cut is taken, or the most balanced cuts if none is within 5%. Loads are not whole numbers, so that a part,
    and finally a node, may stay empty.

    Args:
        level: The coarsest graph.
        generator: Source of the seed of METIS.
    """
    seed = int(generator.integers(1 << 31))
    vertices, nodes = len(level.vertex_weight), topology.nodes
    guest = Adjacency.of(weighted_graph(level.source, level.target, level.weight, vertices))
    links = weighted_graph(topology.source, topology.target, np.ones(len(topology.source)), nodes)
    host = Adjacency.of(links)
    node_of_vertex = np.zeros(vertices, np.int32)
    parts = [(np.arange(vertices), np.arange(nodes))]
    while parts:
        mine, places = parts.pop()
        if len(places) == 1:
            node_of_vertex[mine] = places[0]
        elif len(mine) > 0:
            size = (len(places) + 1) // 2
            near = _cut_nodes(host.among(places), size, seed)
            weight = level.vertex_weight[mine]
            inside = cut(guest.among(mine), weight, size / len(places), seed)
            bigger, smaller = _by_size(guest, mine, inside, weight)
            wide, narrow = _by_size(host, places, near, np.ones(len(places)))
            parts += [(bigger, wide), (smaller, narrow)]
    return node_of_vertex


def cut(graph: Adjacency, weight: Floats, share: float, seed: int) -> Bools:
    """Return the first of two parts of an application (bool[k]), with about this share of the weight."""
    if not weight.any():
        weight = np.ones(len(weight))
    if len(weight) < SMALL:
        return cut_small(graph, weight, share)
    whole = np.rint(weight * (MOST / float(weight.sum()))).astype(np.int64)
    return bisect(graph, whole, share, seed=seed, slack=SLACK)


def cut_small(graph: Adjacency, weight: Floats, share: float) -> Bools:
    """Return the first part (bool[k]) of the best of all cuts of fewer than 8 vertices.

    Balanced cuts, with neither part more than 5% above its share, are compared by their edge cut; other cuts
    come after them, by the excess of a part. Ties go to the more balanced, then to the lowest in binary.
    """
    inside = _all_parts(len(weight))
    load, total = inside @ weight, float(weight.sum())
    above = np.maximum(load / share, (total - load) / (1.0 - share)) / total - 1.0
    between = ((inside @ graph.dense()) * ~inside).sum(axis=1)
    unbalanced = np.where(above <= max(SLACK, float(above.min()) + 1e-12), 0.0, above)
    best = np.lexsort((above, between, unbalanced))[0]
    chosen: Bools = inside[best]
    return chosen


@cache
def _all_parts(count: int) -> Bools:
    """Return all subsets (bool[2^count, count]) in binary order, the first vertex as the lowest bit."""
    bits = np.arange(1 << count)[:, None] >> np.arange(count)
    return np.asarray(bits & 1, np.bool_)


def _cut_nodes(graph: Adjacency, size: int, seed: int) -> Bools:
    """Return the first part of the nodes of a graph (bool[k]), of exactly `size` nodes."""
    count = len(graph.indptr) - 1
    if count < SMALL:
        return cut_small(graph, np.ones(count), size / count)
    first = bisect(graph, np.ones(count, np.int64), size / count, seed=seed)
    return repaired(graph, first, size)


def _by_size(graph: Adjacency, part: Longs, inside: Bools, weight: Floats) -> tuple[Longs, Longs]:
    """Return the two halves of a part of a graph (vertices, ascending), the bigger first."""
    first, second = part[inside], part[~inside]
    one, other = float(weight[inside].sum()), float(weight[~inside].sum())
    if one == other:
        one, other = (graph.among(half).nnz if len(half) > 1 else 0 for half in (first, second))
    return (second, first) if other > one else (first, second)


def load_kernels(progress: Progress) -> None:
    """Compile the kernels of this package, once per machine, or load them from disk, once per process.

    `progress` receives `LOADING` if that is still to be done, and nothing otherwise.
    """
    if _load_kernels.cache_info().currsize == 0:
        progress(LOADING, 0)
        _load_kernels()


@cache
def _load_kernels() -> None:
    application, topology = small_problem()
    machine = Machine(nodes=4, max_degree=2, max_edges=4, compute_speed=1.0, link_speed=1.0)
    solution = place_and_route(application, topology, machine, np.random.default_rng(0))
    least_congested_path(topology, solution.link_load, 0, 2, 1.0)


def small_problem() -> tuple[Application, Topology]:
    """Return a chain of `VERTICES` vertices and a ring of four nodes, on which kernels are loaded."""
    vertex = np.arange(VERTICES)
    chain = Application.from_edges(vertex[:-1], vertex[1:], np.ones(VERTICES - 1))
    return chain, Topology.of(4, [(0, 1), (1, 2), (2, 3), (0, 3)])
