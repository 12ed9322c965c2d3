"""Certified upper bounds on the throughput of any circuits and routes, by name.

`throughput_bounds` holds for any partition, `pinned_bounds` for vertices that stay on their nodes. The paper
compares with a loose bound, a perfect balance with unlimited links (section 4.4). The bounds here also use
that a vertex is on one node, that a flow takes one path, and that ports and links are limited.

An argument that excludes a throughput T excludes all above it, so that T is lowered as far as possible. At
throughput T a node computes at most C = S_comp / T and a link carries at most L = S_comm / T. Since routes
are not split, both ends of an edge heavier than L are on one node: such edges merge vertices into clusters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from mapping.circuits.problem import Application, Machine, components, rows_of
from mapping.circuits.solution import checked_nodes, throughput_under
from registry.model import Bools, Floats, Ints, Longs

SLACK = 1e-9
"""Relative excess up to which a load is within its limit, so that no bound rests on rounding."""
CAPACITY = 1 << 30
"""Sum of the integer capacities of a flow problem, which scipy stores in 32 bits."""
STEPS = 12
"""Largest number of steps towards the best multiplier in `min_outgoing`."""
FINE, COARSE = 1e-6, 1e-2
"""Relative steps at which the search for the lowest excluded T ends; coarse if it needs flows."""
SIZES = 64
"""Approximate number of sizes that are tried as a in the bound on bin packing."""
FLOWS = 400
"""Default number of clusters for which smallest cuts are computed for a bound."""
WORK = 200_000
"""Largest product of that number and the number of clusters: flows take longer in larger graphs."""
BALANCE, HEAVIEST_VERTEX, PIGEONHOLE = "balance", "heaviest-vertex", "pigeonhole"
HEAVY_EDGES, PACKING, PORTS, LINKS = "heavy-edges", "packing", "ports", "links"
NAMES = (BALANCE, HEAVIEST_VERTEX, PIGEONHOLE, HEAVY_EDGES, PACKING, PORTS, LINKS)
"""Names of the bounds for any partition, in their order."""
PINNED_NAMES = ("heaviest-flow", "node-ports", "shared-port", "distances")
"""Names of the bounds for vertices that stay on their nodes, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpperBound:
    """A throughput that nothing can exceed, and the argument that proves it."""

    name: str
    """Name of the argument."""
    throughput: float
    """Output elements per unit of time; inf if nothing computes or flows."""
    proof: str
    """The argument as a sentence."""


def throughput_bound(application: Application, machine: Machine, *, flows: int = FLOWS) -> UpperBound:
    """Return the lowest of `throughput_bounds`, the first at equality."""
    return min(throughput_bounds(application, machine, flows=flows), key=lambda bound: bound.throughput)


def loose_bound(application: Application, machine: Machine) -> float:
    """Return the throughput of a perfect balance with unlimited links (r_looseub of the paper)."""
    return throughput_under(machine.compute_speed * machine.nodes, float(application.vertex_weight.sum()))


def throughput_bounds(
    application: Application, machine: Machine, *, flows: int = FLOWS
) -> tuple[UpperBound, ...]:
    """Return upper bounds on the throughput, in the order of `NAMES`.

    ``balance``, ``heaviest-vertex`` and ``pigeonhole`` are always included; another only if it is lower than
    all before it.

    Args:
        flows: Number of clusters for which smallest cuts are computed, for each of ``ports`` and ``links``; 0
            leaves these two out. In graphs of more than `WORK` / `flows` clusters there are fewer.
    """
    proved = _of_vertices(application, machine)
    for name, refutes, proof in ARGUMENTS:
        needs_flows = name in (PORTS, LINKS)
        if needs_flows and flows <= 0:
            continue
        step, now = COARSE if needs_flows else FINE, min(bound.throughput for bound in proved)
        lowest = _lowest(application, machine, refutes, flows, now, step)
        if lowest < now * (1 - step):
            proved.append(UpperBound(name=name, throughput=lowest, proof=proof))
    return tuple(proved)


def _of_vertices(application: Application, machine: Machine) -> list[UpperBound]:
    """Return the bounds that follow from the weights of vertices alone."""
    falling = np.sort(application.vertex_weight)[::-1]
    speed, nodes, heaviest = machine.compute_speed, machine.nodes, float(falling[0])
    shared, k = max(_shared_loads(falling, nodes), key=lambda one: one[0])
    proofs = (
        f"{nodes} nodes compute a weight of {falling.sum():.6g} in all",
        f"one node computes the heaviest vertex, of weight {heaviest:.6g}",
        f"of the {nodes * k + 1} heaviest vertices {k + 1} share a node: {shared:.6g} at least",
    )
    bounds = (
        loose_bound(application, machine),
        throughput_under(speed, heaviest),
        throughput_under(speed, shared),
    )
    return [
        UpperBound(name=name, throughput=bound, proof=proof)
        for name, bound, proof in zip(NAMES, bounds, proofs, strict=False)
    ]


def _shared_loads(falling: Floats, bins: int) -> Iterator[tuple[float, int]]:
    """Yield for k = 0, 1, ... the load that some bin has at least by the pigeonhole principle, and k.

    Of the ``bins k + 1`` heaviest items k + 1 are in one bin; they weigh at least as much as the lightest
    k + 1 of these.
    """
    total = np.r_[0.0, np.cumsum(falling)]
    for k in range((len(falling) - 1) // bins + 1):
        last = bins * k + 1
        yield float(total[last] - total[last - k - 1]), k


class Clusters(NamedTuple):
    """An application in which vertices that must share a node are merged."""

    node_limit: float
    link_limit: float
    """C and L, including `SLACK`."""
    weight: Floats
    """float64[k]: Computation of each cluster."""
    source: Ints
    target: Ints
    """int32[e]: Clusters connected by light edges, ``source < target``, each pair once."""
    flow: Floats
    """float64[e]: Data between them."""
    leaving: Floats
    """float64[k]: Data between each cluster and all others."""


Refutes = Callable[[Clusters, Machine, int], bool]
"""Returns True if no nodes and links can do this work; the last argument is as of `throughput_bounds`."""


def clusters(application: Application, machine: Machine, throughput: float) -> Clusters:
    """Return the clusters that a throughput forces together."""
    node_limit = machine.compute_speed / throughput * (1 + SLACK)
    link_limit = machine.link_speed / throughput * (1 + SLACK)
    heavy = application.weight > link_limit
    label = components(application.vertices, application.source[heavy], application.target[heavy])
    count = int(label.max()) + 1
    rows = rows_of("clusters", count, label[application.source], label[application.target])
    flow = rows.sums(application.weight)
    leaving = np.bincount(rows.source, flow, count).astype(np.float64)
    leaving += np.bincount(rows.target, flow, count)
    weight = np.bincount(label, application.vertex_weight, count).astype(np.float64)
    return Clusters(node_limit, link_limit, weight, rows.source, rows.target, flow, leaving)


def _lowest(
    application: Application, machine: Machine, refutes: Refutes, flows: int, high: float, step: float
) -> float:
    """Return the lowest throughput up to `high` that is excluded, or inf if `high` is not.

    What one node reaches with all vertices is possible, so that nothing up to it is tested.
    """
    low = throughput_under(machine.compute_speed, float(application.vertex_weight.sum()))
    if not (0 < low < high < math.inf) or not refutes(clusters(application, machine, high), machine, flows):
        return math.inf
    while high > low * (1 + step):
        middle = math.sqrt(low * high)
        if refutes(clusters(application, machine, middle), machine, flows):
            high = middle
        else:
            low = middle
    return high


def _too_heavy(merged: Clusters, machine: Machine, flows: int) -> bool:
    """Return True if a cluster fits on no node."""
    return bool(merged.weight.max() > merged.node_limit)


def _too_many(merged: Clusters, machine: Machine, flows: int) -> bool:
    """Return True if the clusters need more nodes than there are.

    By `_shared_loads`, and by the bound of Martello and Toth on bin packing: for any a up to half the limit,
    items above limit - a are alone, other items above half the limit are on different nodes, and the space
    that these leave takes only items of at least a.
    """
    limit, nodes = merged.node_limit, machine.nodes
    falling = np.sort(merged.weight)[::-1]
    if max(load for load, _ in _shared_loads(falling, nodes)) > limit:
        return True
    total = np.r_[0.0, np.cumsum(falling)]
    large = int(np.count_nonzero(falling > limit / 2))
    sizes = np.unique(falling[large:])
    for least in (0.0, *sizes[:: max(len(sizes) // SIZES, 1)].tolist()):
        alone = int(np.count_nonzero(falling > limit - least))
        small = int(np.count_nonzero(falling >= least))
        free = (large - alone) * limit - float(total[large] - total[alone])
        rest = max(float(total[max(small, large)] - total[large]) - free, 0.0)
        if large + rest / limit > nodes:
            return True
    return False


def _ports(merged: Clusters, machine: Machine, flows: int) -> bool:
    """Return True if a node cannot send what its cluster must send, or a cluster fits on no node."""
    if _too_heavy(merged, machine, flows):
        return True
    most = min(machine.max_degree, machine.nodes - 1) * merged.link_limit
    order = np.argsort(-merged.leaving, kind="stable")[: _affordable(merged, flows)].tolist()
    return any(merged.leaving[one] > most and min_outgoing(merged, one) > most for one in order)


def _links(merged: Clusters, machine: Machine, flows: int) -> bool:
    """Return True if too much crosses links.

    A node of load w(P) <= C sends at least ``sum_{x in P} w(x) c(x) / C``. c(x), from `min_outgoing`, is what
    any node with cluster x sends. Each edge between nodes counts at both.
    """
    ports = min(machine.max_degree, machine.nodes - 1) * machine.nodes
    most = min(2.0 * machine.max_edges, ports) * merged.link_limit * merged.node_limit
    sent = 0.0
    for one in np.argsort(-merged.weight, kind="stable")[: _affordable(merged, flows)].tolist():
        sent += float(merged.weight[one]) * min_outgoing(merged, one)
        if sent > most:
            return True
    return False


def _affordable(merged: Clusters, flows: int) -> int:
    """Return the number of clusters for which smallest cuts are computed."""
    return min(flows, max(WORK // len(merged.weight), 1))


def min_outgoing(merged: Clusters, cluster: int) -> float:
    """Return a lower bound on the data leaving a node with this cluster, unless the node takes all clusters.

    The smallest cut around a set S of clusters that includes this one and weighs at most C is at least the
    maximum over m >= 0 of ``min_S cut(S) + m (w(S) - C)``. Each minimum over all sets is a maximum flow from
    the cluster to a sink that each cluster x reaches with capacity ``m w(x)``; its set is a line in m, and
    the next m is where the two lines around the maximum meet.
    """
    limit, weight = merged.node_limit, merged.weight
    if weight[cluster] > limit:
        return float("inf")
    above = (0.0, float(weight.sum()) - limit)  # cut and excess of all clusters together
    below = (float(merged.leaving[cluster]), float(weight[cluster]) - limit)
    best = 0.0
    for _ in range(STEPS):
        if above[1] <= 0 or above[1] - below[1] <= 0:
            break
        multiplier = (below[0] - above[0]) / (above[1] - below[1])
        if multiplier <= 0:
            break
        least, inside = _least_cut(merged, cluster, multiplier)
        best = max(best, least - multiplier * limit)
        crosses = inside[merged.source] != inside[merged.target]
        line = float(merged.flow[crosses].sum()), float(weight[inside].sum()) - limit
        if line[0] + multiplier * line[1] >= (above[0] + multiplier * above[1]) * (1 - SLACK):
            break
        above, below = (line, below) if line[1] > 0 else (above, line)
    return best


def _least_cut(merged: Clusters, cluster: int, multiplier: float) -> tuple[float, Bools]:
    """Return a lower bound on ``min_S cut(S) + m w(S)`` over sets with the cluster, and a set close to it."""
    count = len(merged.weight)
    sink = count
    tail = np.r_[merged.source, merged.target, np.arange(count)]
    head = np.r_[merged.target, merged.source, np.full(count, sink)]
    size = np.r_[merged.flow, merged.flow, multiplier * merged.weight]
    scale = CAPACITY / float(size.sum())
    whole = np.floor(size * scale).astype(np.int32)  # rounded down: the flow is never too large
    graph = csr_array((whole, (tail, head)), shape=(count + 1, count + 1))
    flow = maximum_flow(graph, cluster, sink)
    left = graph - flow.flow
    left.data[left.data < 0] = 0
    left.eliminate_zeros()
    reached = breadth_first_order(left.astype(np.float64), cluster, return_predecessors=False)
    inside = np.zeros(count + 1, bool)
    inside[reached] = True
    return float(flow.flow_value) / scale, inside[:count]


ARGUMENTS: tuple[tuple[str, Refutes, str], ...] = (
    (HEAVY_EDGES, _too_heavy, "edges that no link could carry merge more computation than a node could do"),
    (PACKING, _too_many, "the clusters merged by edges that no link could carry do not fit on the nodes"),
    (
        PORTS,
        _ports,
        "a node with some cluster sends more than its ports could carry, with any other vertices",
    ),
    (LINKS, _links, "all nodes together send more than the links of the switch could carry"),
)
"""Name, test and sentence of each argument about clusters."""


def pinned_bound(application: Application, machine: Machine, node_of_vertex: ArrayLike) -> UpperBound:
    """Return the lowest of `pinned_bounds`, the first at equality."""
    return min(pinned_bounds(application, machine, node_of_vertex), key=lambda bound: bound.throughput)


def pinned_bounds(
    application: Application, machine: Machine, node_of_vertex: ArrayLike
) -> tuple[UpperBound, ...]:
    """Return upper bounds on the throughput of links if vertices stay on their nodes (int[v]).

    They are ordered as `PINNED_NAMES`, and lower than those for any partition: the data between nodes are
    known, and only circuits and routes are free.

    Raises:
        InvalidValue: A vertex has no node.
    """
    node = checked_nodes(node_of_vertex, application, machine.nodes)
    nodes, ports = machine.nodes, min(machine.max_degree, machine.nodes - 1)
    links = min(machine.max_edges, nodes * ports // 2)
    one, other = node[application.source], node[application.target]
    apart = one != other
    end, flow = np.r_[one[apart], other[apart]], np.tile(application.weight[apart], 2)
    heaviest, leaving = float(flow.max(initial=0.0)), np.bincount(end, flow, nodes)
    busiest = int(np.argmax(leaving))
    shared, crowded, k = _shared_port(end, flow, nodes, ports)
    rows = rows_of("pinned_bounds", nodes, one, other)
    carried = _carried(np.r_[rows.source, rows.target], rows.sums(application.weight), machine, links)
    loads = (heaviest, float(leaving[busiest]) / max(ports, 1), shared, carried / max(links, 1))
    proofs = (
        f"one circuit carries the heaviest flow, of {heaviest:.6g} bytes",
        f"{ports} circuits carry what node {busiest} exchanges, {leaving[busiest]:.6g} bytes",
        f"of the {ports * k + 1} heaviest flows of node {crowded} {k + 1} share one of its {ports} circuits:"
        f" {shared:.6g} bytes at least",
        f"{links} circuits carry {carried:.6g} bytes in all at least, as no node is next to more than"
        f" {ports} others",
    )
    return tuple(
        UpperBound(name=name, throughput=throughput_under(machine.link_speed, load), proof=proof)
        for name, load, proof in zip(PINNED_NAMES, loads, proofs, strict=True)
    )


def _shared_port(end: Longs, flow: Floats, nodes: int, ports: int) -> tuple[float, int, int]:
    """Return the load that some circuit of a node has at least since flows share it, that node, and k.

    Flows are not split, and each one that ends at a node takes one of its circuits there (`_shared_loads`).
    """
    best = (0.0, 0, 0)
    for node in range(nodes):
        for load, k in _shared_loads(np.sort(flow[end == node])[::-1], max(ports, 1)):
            if k > 0 and load > best[0]:
                best = load, node, k
    return best


def _carried(end: Ints, weight: Floats, machine: Machine, links: int) -> float:
    """Return the least data on all links together: each pair's data times the links of a shortest route.

    It is the larger of two bounds. First, a node has at most as many partners one link away as it has ports,
    ``ports - 1`` times as many two links away, and so on (Moore's bound); its heaviest partners are taken as
    the nearest. Summed over all nodes, each pair counts twice. Second, no more pairs are adjacent than there
    are links. `end` is the first node of each pair, then the second of each.
    """
    others, ports = machine.nodes - 1, min(machine.max_degree, machine.nodes - 1)
    hops = np.full(others, float(max(others, 1)))  # of a node's nearest, second nearest, ... node
    start, room, far = 0, ports, 1
    while start < others and room > 0:
        hops[start : start + room] = far
        start, room, far = start + room, room * (ports - 1), far + 1
    twice, size = 0.0, np.r_[weight, weight]
    for node in range(machine.nodes):
        falling = np.sort(size[end == node])[::-1]
        twice += float(falling @ hops[: len(falling)])
    adjacent = float(np.sort(weight)[::-1][:links].sum())
    return max(twice / 2.0, 2.0 * float(weight.sum()) - adjacent)
