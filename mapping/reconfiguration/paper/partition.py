"""Partition and routes of an application on a given topology: section 3.2 as a whole.

A multilevel method: the application is coarsened by greedy maximal matchings (3.2.1), the coarsest graph is
partitioned by recursive bisection of application and topology together, and its flows are routed (3.2.2); the
result is projected back from graph to graph and refined on each of them (3.2.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from mapping.placement.partition.bisection import MOST, Adjacency, bisect, repaired, weighted_graph
from mapping.reconfiguration.kernels.routes import match_in_order
from mapping.reconfiguration.model.problem import Application, Level, Machine, rows_of
from mapping.reconfiguration.model.solution import Solution
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper.refinement import (
    Refinement,
    Scale,
    build_guest,
    build_net,
    evaluate_state,
    least_congested_path,
    longest_route,
    project,
    refine,
    route_unsplit,
)
from registry.errors import UnknownName
from registry.model import Bools, Floats, Ints, Longs
from registry.progress import Progress

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

    Parameters
    ----------
    topology : Topology
        Connected, with the nodes of `machine`; it may exceed the machine's limits.
    generator : numpy.random.Generator
        Source of the seed of METIS; the same state gives the same result.
    refinement : Refinement
        Limits of the refinement of each graph.
    levels : sequence of Level, optional
        Result of `coarsen` for the same application and number of nodes, which many topologies may share.

    Raises
    ------
    InvalidValue
        The machine has another number of nodes, the topology does not connect the nodes of an edge, or a
        limit of the refinement is negative.
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

    Parameters
    ----------
    nodes : int
        Number of nodes of the topology.
    expansion : str
        ``lowest`` first, as in the paper, or ``highest``: heavy edges between light vertices first.

    Raises
    ------
    UnknownName
        The expansion is unknown.
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

    Parameters
    ----------
    level : Level
        The coarsest graph.
    generator : numpy.random.Generator
        Source of the seed of METIS.
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
