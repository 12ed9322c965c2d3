"""The best partition and routes for circuits that stay, and the restarts that the local search uses too.

A search for circuits tries many partitions. If the present circuits were judged by their first partition
alone, a circuit plan would seem to gain what a better partition gives without any change of circuits. So
`best_partition` searches them as thoroughly, and `local_reroute` improves routes of vertices that stay.

Restarts lead to partitions that no single step of the refinement reaches. `exchange_nodes` moves all that is
on a node together: what is on one node is a rank, and the topology is the network, of a search of the mapping
engine for least congestion.

Edge exchanges: links to remove from a topology and to add, beyond the swaps of section 3.3.

The swaps of the paper keep every degree. These changes also use free ports and links: the ends of a flow, or
the node with most computation and another, are linked directly, and the lightest links in the way are
removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from mapping.circuits.kernels.routes import least_congested, new_search
from mapping.circuits.paper import next_swap
from mapping.circuits.paper_partition import (
    HIGHEST,
    LOADING,
    Scale,
    build_guest,
    build_net,
    coarsen,
    evaluate_state,
    load_kernels,
    longest_route,
    place_and_route,
    refine,
    route_unsplit,
    small_problem,
)
from mapping.circuits.problem import Application, Level, LinkChange, Machine, Pair, Topology
from mapping.circuits.solution import COMPUTE, GAIN, Solution, bottleneck, checked_nodes, evaluate
from mapping.deadline import Deadline
from mapping.distances.cost_model import CostModel
from mapping.placement.place import place
from mapping.placement.search import SearchOptions
from registry.model import HOST, Allocation, Fabric, Ints, Links, Longs, Placement, Profile
from registry.progress import Progress

PASSES = 100
"""Most passes of `local_reroute` over all flows."""
STEPS = 20_000
"""Default number of proposals of the mapping engine."""
SEARCHES = ("congestion-descent", "random+congestion-descent")
"""Its strategies: from the present placement, and from random ones."""
MOST_GATHERED = 1000
"""Most vertices for which a restart puts all on one node: more spread too slowly."""
EXCHANGE, GATHER, SHAKE, SCRATCH = "exchange", "gather", "shake", "scratch"
"""Ways of a restart."""
SHAKEN = 0.2
"""Probability of moving a vertex at random, to leave partitions that nothing else leaves."""
MOST_SHAKEN = 400
"""Approximate largest number of such vertices: with 2,000 of 10,000 a refinement took two seconds."""
FEWEST_NODES, MOST_NODES = 3, 2048
"""Nodes for which `exchange_nodes` searches: two nodes are alike, and very many take too long."""
ROUNDS = 10
"""Number of times that `best_partition` tries each of its four restarts."""


def best_partition(
    application: Application,
    machine: Machine,
    topology: Topology,
    *,
    partitions: Sequence[Ints] = (),
    seed: int = 0,
    seconds: float | None = None,
) -> tuple[Solution, bool]:
    """Return the best partition and routes found on a topology that stays as it is; False after an interrupt.

    Tries partitions from scratch with both orders of coarsening, then the given ones, then in turns, starting
    from the best: nodes exchange their vertices, all vertices start on one node, some move to a neighbour,
    and from scratch with another seed of METIS. All are refined.

    Args:
        topology: Connected, with the nodes of the machine.
        partitions (sequence of int32[v]): Node of each vertex.
        seed: The same seed gives the same result, unless `seconds` end the search.
        seconds: No further attempt starts after this time.

    Raises:
        KeyboardInterrupt: Before the first solution; after a later interrupt the best so far is returned.
    """
    deadline = Deadline(seconds=seconds)
    generator = np.random.default_rng(seed)
    restarts = Restarts(application, machine, generator, HIGHEST)
    best = place_and_route(application, topology, machine, generator)
    ways: tuple[str | Ints, ...] = (SCRATCH, *partitions, *ROUNDS * (EXCHANGE, GATHER, SHAKE, SCRATCH))
    with deadline.interruptible():
        for way in ways:
            if deadline.over:
                break
            if isinstance(way, str):
                found = restarts.restart(way, topology, best.node_of_vertex)
            else:
                found = restarts.refined(topology, way)
            best = found if found.throughput > best.throughput else best
    return best, not deadline.interrupted


class Restarts:
    """Ways from a partition to another one with routes, all refined.

    Args:
        generator: Source of all random choices.
        expansion: As of `coarsen`, for partitions from scratch.

    Attributes:
        guest: The application as arrays for kernels.
    """

    def __init__(
        self, application: Application, machine: Machine, generator: np.random.Generator, expansion: str
    ) -> None:
        self._application, self._machine, self._generator = application, machine, generator
        self._levels = coarsen(application, machine.nodes, expansion=expansion)
        self.guest = build_guest(self._levels[0], Scale.of(application, machine))

    def restart(self, way: str, topology: Topology, node: Ints) -> Solution:
        """Return another solution on a topology, from the node of each vertex (int32[v]).

        Nodes exchange all their vertices, all vertices start on one node, or some on a neighbouring node;
        otherwise (and instead of gathering very many vertices) the partition is made from scratch.
        """
        generator = self._generator
        if way == EXCHANGE:
            seed = int(generator.integers(1 << 31))
            return self.refined(topology, exchange_nodes(self._application, topology, node, seed=seed))
        if way == GATHER and self._application.vertices <= MOST_GATHERED:
            return self.refined(topology, gather(topology, node, generator))
        if way == SHAKE:
            return self.refined(topology, shake(topology, node, generator))
        return place_and_route(self._application, topology, self._machine, generator, levels=self._levels)

    def refined(self, topology: Topology, node: Ints) -> Solution:
        """Route all flows of a partition (int32[v]) from scratch and refine it."""
        net = build_net(topology)
        state = route_unsplit(net, self.guest, node.copy(), longest_route(topology))
        refine(net, self.guest, state)
        return evaluate_state(self._application, topology, self._machine, state)


def route_partition(
    application: Application, topology: Topology, machine: Machine, node_of_vertex: ArrayLike
) -> Solution:
    """Return unsplit routes of low congestion for vertices that stay on their nodes (section 3.2.2).

    Flows are then re-routed until that helps no more, so that no topology looks worse than it is.
    """
    node = checked_nodes(node_of_vertex, application, topology.nodes)
    guest = build_guest(Level.of(application), Scale.of(application, machine))
    state = route_unsplit(build_net(topology), guest, node.astype(np.int32), longest_route(topology))
    solution = evaluate_state(application, topology, machine, state)
    return local_reroute(application, topology, machine, solution)


def local_reroute(
    application: Application, topology: Topology, machine: Machine, solution: Solution
) -> Solution:
    """Re-route flows one by one until none alone can be improved; never lowers the throughput.

    Flows are visited by descending weight, ties by row, again and again. A flow takes its least congested
    path (`mapping.circuits.paper_partition.least_congested_path`) if that lowers the largest load on
    its route. The loads of all links in descending order are then lower at the first that differs, so that
    the passes end even if several links have the largest load.
    """
    if not len(solution.route):
        return solution
    route = np.split(solution.route, solution.route_ptr[1:-1])
    load = solution.link_load.copy()
    net, search = build_net(topology), new_search(topology.nodes, topology.links, topology.nodes)
    node = solution.node_of_vertex
    start, goal = node[application.source].tolist(), node[application.target].tolist()
    weight = application.weight.tolist()
    descending = np.argsort(-application.weight, kind="stable").tolist()
    order = [edge for edge in descending if len(route[edge]) and weight[edge] > 0]
    for _ in range(PASSES):
        changed = False
        for edge in order:
            flow, now = weight[edge], route[edge]
            worst = float(load[now].max())
            load[now] -= flow
            count = int(least_congested(net, load, start[edge], goal[edge], flow, search))
            then: Ints = search.path[: max(count, 0)].copy()
            if count > 0 and float(load[then].max()) + flow < worst * (1 - GAIN):
                route[edge], changed = then, True
            load[route[edge]] += flow
        if not changed:
            break
    route_ptr = np.r_[0, np.cumsum([len(one) for one in route])].astype(np.int64)
    found = evaluate(application, topology, machine, node, route_ptr, np.concatenate(route))
    return found if found.throughput >= solution.throughput else solution


def exchange_nodes(
    application: Application, topology: Topology, node_of_vertex: Ints, *, steps: int = STEPS, seed: int = 0
) -> Ints:
    """Return the node of each vertex after nodes exchanged all their vertices for least congestion.

    Congestion is the mapping engine's estimate, in which all shortest paths share a flow. Vertices stay if it
    cannot be lowered, if nothing flows between nodes, and on more than `MOST_NODES` nodes.

    Args:
        topology: Connected.
        node_of_vertex (int32[v]): The present partition.
        steps, seed: As of `mapping.placement.place.place`; the same ones give the same result.

    Raises:
        KeyboardInterrupt: If the search was interrupted: it would return its best so far, but here the whole
            search must end.
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
        present=Placement(host_of_rank=hosts, allocation=allocation, strategy="given"),
    )
    if not found.complete:
        raise KeyboardInterrupt
    return found.host_of_rank[node_of_vertex]


def traffic(application: Application, node_of_vertex: Ints, nodes: int) -> Profile:
    """Return the data between nodes as a profile with a rank per node; half of an edge goes each way."""
    one, other = node_of_vertex[application.source], node_of_vertex[application.target]
    half = application.weight / 2
    return Profile.from_edges(np.r_[one, other], np.r_[other, one], np.r_[half, half], ranks=nodes)


def network(topology: Topology) -> Fabric:
    """Return a topology as a direct network: a vertex per node and an equal cable per link."""
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


def gather(topology: Topology, node_of_vertex: Ints, generator: np.random.Generator) -> Ints:
    """Return a partition with all vertices on one node, drawn from those with most links.

    If links are slow, few nodes are best, and vertices that are spread do not come together one by one.
    """
    most = np.flatnonzero(topology.degree == topology.degree.max())
    return np.full(len(node_of_vertex), most[generator.integers(len(most))], np.int32)


def shake(topology: Topology, node_of_vertex: Ints, generator: np.random.Generator) -> Ints:
    """Return a partition with some vertices, drawn with probability `SHAKEN`, moved to a neighbour."""
    near, node = topology.neighbours, node_of_vertex.astype(np.int64)
    share = min(SHAKEN, MOST_SHAKEN / max(len(node), 1))
    moves = np.flatnonzero((generator.random(len(node)) < share) & (topology.degree[node] > 0))
    place = (generator.random(len(moves)) * topology.degree[node[moves]]).astype(np.int64)
    node[moves] = near.node[near.indptr[node[moves]] + place]
    return node.astype(np.int32)


def load_search_kernels(progress: Progress) -> None:
    """Compile or load the kernels of this package and those that `exchange_nodes` runs."""
    load_kernels(progress)
    if _load_engine.cache_info().currsize == 0:
        progress(LOADING, 0)
        _load_engine()


@cache
def _load_engine() -> None:
    application, topology = small_problem()
    node = np.arange(application.vertices, dtype=np.int32) % topology.nodes
    exchange_nodes(application, topology, node, steps=2)


CHOICE = 3
"""One of so many of the lightest removable links is drawn."""
SKIP = 0.5
"""Probability of ignoring a pair of links in a swap of section 3.3."""


def exchange_edges(
    topology: Topology,
    solution: Solution,
    machine: Machine,
    ends: Pair | None,
    generator: np.random.Generator,
) -> LinkChange | None:
    """Return a random change that may relieve the bottleneck, or None if the one drawn is not possible.

    Args:
        ends: Nodes to link directly; None makes a swap of section 3.3.
    """
    if ends is None:
        return next_swap(topology, solution, generator, skip=SKIP)
    removed = _room(topology, solution, machine, ends, generator)
    if removed is None:
        return None
    inserted = [ends, *_freed(topology, removed, ends)]
    while topology.links - len(removed) + len(inserted) > machine.max_edges:
        if len(inserted) > 1:
            inserted.pop()
            continue
        row = _light(solution, np.arange(topology.links), removed, generator)
        if row < 0:
            return None
        removed.append(row)
    made = topology.changed(removed, inserted)
    if not made.connected() or int(made.degree.max()) > machine.max_degree:
        return None
    return LinkChange(made, tuple(topology.ends(row) for row in removed), tuple(inserted))


def choose_ends(
    topology: Topology,
    solution: Solution,
    flows: tuple[Ints, Ints],
    generator: np.random.Generator,
) -> Pair | None:
    """Return nodes that a direct link might help; None, for a swap, one time in three or if all are linked.

    If nodes are the bottleneck: one of the most loaded and a node not linked to it, drawn. If links are: the
    ends of a flow whose route has several links and includes the most loaded link, drawn; without such a
    flow, one end of that link and any node. If that node is linked to all others: any two nodes.

    Args:
        flows ((int32[e], int32[e])): Nodes of both ends of each edge of the application.
    """
    if generator.random() < 1 / 3 or topology.links == 0:
        return None
    if bottleneck(solution) == COMPUTE:
        fullest = np.flatnonzero(solution.node_load == solution.node_load.max())
        return _to_any(topology, int(fullest[generator.integers(len(fullest))]), generator)
    hottest = int(np.argmax(solution.link_load))
    length = np.diff(solution.route_ptr)
    on_route = np.repeat(np.arange(len(length)), length)[solution.route == hottest]
    edges = on_route[length[on_route] > 1]
    if len(edges):
        edge = int(edges[generator.integers(len(edges))])
        one, other = sorted((int(flows[0][edge]), int(flows[1][edge])))
        if topology.link_between(one, other) < 0:
            return one, other
    end = int(topology.pairs[hottest][generator.integers(2)])
    return _to_any(topology, end, generator)


def _to_any(topology: Topology, node: int, generator: np.random.Generator) -> Pair | None:
    """Return the node and one not linked to it, or any two nodes without a link, or None."""
    indptr, around, _ = topology.neighbours
    apart = np.ones(topology.nodes, bool)
    apart[node] = False
    apart[around[indptr[node] : indptr[node + 1]]] = False
    others = np.flatnonzero(apart)
    if len(others) == 0:
        return _any_two(topology, generator)
    one, two = sorted((node, int(others[generator.integers(len(others))])))
    return one, two


def _any_two(topology: Topology, generator: np.random.Generator) -> Pair | None:
    """Return two nodes without a link, drawn, or None if all are linked."""
    apart = np.triu(np.ones((topology.nodes, topology.nodes), bool), 1)
    apart[topology.source, topology.target] = False
    pairs = np.argwhere(apart)
    if len(pairs) == 0:
        return None
    one, other = pairs[generator.integers(len(pairs))].tolist()
    return one, other


def _room(
    topology: Topology, solution: Solution, machine: Machine, ends: Pair, generator: np.random.Generator
) -> list[int] | None:
    """Return the rows of links to remove so that both nodes have a free port, or None."""
    removed: list[int] = []
    indptr, _, link = topology.neighbours
    for node in ends:
        if topology.degree[node] >= machine.max_degree:
            row = _light(solution, link[indptr[node] : indptr[node + 1]], removed, generator)
            if row < 0:
                return None
            removed.append(row)
    return removed


def _light(solution: Solution, rows: Ints | Longs, removed: list[int], generator: np.random.Generator) -> int:
    """Return one of the lightest of these links that is not removed yet, or -1."""
    left = np.setdiff1d(rows, removed)
    if len(left) == 0:
        return -1
    lightest = left[np.argsort(solution.link_load[left], kind="stable")[:CHOICE]]
    return int(lightest[generator.integers(len(lightest))])


def _freed(topology: Topology, removed: list[int], ends: Pair) -> list[Pair]:
    """Return the link between the two nodes whose ports became free, if it is a new one."""
    if len(removed) != 2:
        return []
    far = [node for row in removed for node in topology.pairs[row].tolist() if node not in ends]
    if len(far) != 2 or far[0] == far[1] or topology.link_between(far[0], far[1]) >= 0:
        return []
    one, other = sorted(far)
    return [(one, other)]
