"""Certified upper bounds on the throughput of any topology, partition and routing, by name.

The paper compares with a loose bound, a perfect balance with unlimited links (section 4.4). The bounds here
also use that a vertex is on one node, that a flow takes one path, and that ports and links are limited. An
argument that excludes a throughput T excludes all above it, so that T is lowered as far as possible.

At throughput T a node computes at most C = S_comp / T and a link carries at most L = S_comm / T. Since routes
are not split, both ends of an edge heavier than L are on one node: such edges merge vertices into clusters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from mapping.reconfiguration.model.problem import Application, Machine, components, rows_of
from mapping.reconfiguration.model.solution import throughput_under
from registry.model import Bools, Floats, Ints

SLACK = 1e-9
"""Relative excess up to which a load is within its limit, so that no bound rests on rounding."""
CAPACITY = 1 << 30
"""Sum of the integer capacities of a flow problem, which scipy stores in 32 bits."""
STEPS = 12
"""Largest number of steps towards the best multiplier in `min_outgoing`."""


class Clusters(NamedTuple):
    """An application in which vertices that must share a node are merged.

    Attributes
    ----------
    throughput, node_limit, link_limit : float
        T, C and L; the limits include `SLACK`.
    weight : float64[k]
        Computation of each cluster.
    source, target : int32[e]
        Clusters connected by light edges, ``source < target``, each pair once.
    flow : float64[e]
        Data between them.
    leaving : float64[k]
        Data between each cluster and all others.
    """

    throughput: float
    node_limit: float
    link_limit: float
    weight: Floats
    source: Ints
    target: Ints
    flow: Floats
    leaving: Floats


def clusters(application: Application, machine: Machine, throughput: float) -> Clusters:
    """Return the clusters that a throughput forces together."""
    node_limit = machine.compute_speed / throughput * (1 + SLACK)
    link_limit = machine.link_speed / throughput * (1 + SLACK)
    heavy = application.weight > link_limit
    label = components(application.vertices, application.source[heavy], application.target[heavy])
    count = int(label.max()) + 1
    rows = rows_of("clusters", count, label[application.source], label[application.target])
    flow = rows.sums(application.weight)
    leaving = np.bincount(rows.source, weights=flow, minlength=count)
    leaving += np.bincount(rows.target, weights=flow, minlength=count)
    weight = np.bincount(label, weights=application.vertex_weight, minlength=count)
    return Clusters(
        throughput,
        node_limit,
        link_limit,
        weight.astype(np.float64),
        rows.source,
        rows.target,
        flow,
        leaving.astype(np.float64),
    )


def min_outgoing(found: Clusters, cluster: int) -> float:
    """Return a lower bound on the data leaving a node with this cluster, unless the node takes all clusters.

    The smallest cut around a set S of clusters that includes this one and weighs at most C is at least the
    maximum over m >= 0 of ``min_S cut(S) + m (w(S) - C)``. Each minimum over all sets is a maximum flow from
    the cluster to a sink that each cluster x reaches with capacity ``m w(x)``; its set is a line in m, and
    the next m is where the two lines around the maximum meet.
    """
    limit, weight = found.node_limit, found.weight
    if weight[cluster] > limit:
        return float("inf")
    above = (0.0, float(weight.sum()) - limit)  # cut and excess of all clusters together
    below = (float(found.leaving[cluster]), float(weight[cluster]) - limit)
    best = 0.0
    for _ in range(STEPS):
        if above[1] <= 0 or above[1] - below[1] <= 0:
            break
        multiplier = (below[0] - above[0]) / (above[1] - below[1])
        if multiplier <= 0:
            break
        least, inside = _least_cut(found, cluster, multiplier)
        best = max(best, least - multiplier * limit)
        crosses = inside[found.source] != inside[found.target]
        line = float(found.flow[crosses].sum()), float(weight[inside].sum()) - limit
        if line[0] + multiplier * line[1] >= (above[0] + multiplier * above[1]) * (1 - SLACK):
            break
        above, below = (line, below) if line[1] > 0 else (above, line)
    return best


def _least_cut(found: Clusters, cluster: int, multiplier: float) -> tuple[float, Bools]:
    """Return a lower bound on ``min_S cut(S) + m w(S)`` over sets with the cluster, and a set close to it."""
    count = len(found.weight)
    sink = count
    tail = np.r_[found.source, found.target, np.arange(count)]
    head = np.r_[found.target, found.source, np.full(count, sink)]
    size = np.r_[found.flow, found.flow, multiplier * found.weight]
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
"""Names of all bounds, in their order."""

Refutes = Callable[[Clusters], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpperBound:
    """A throughput that nothing can exceed, and the argument that proves it.

    Attributes
    ----------
    name : str
        Name of the argument.
    throughput : float
        Output elements per unit of time; inf if nothing computes.
    proof : str
        The argument as a sentence.
    """

    name: str
    throughput: float
    proof: str


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

    Parameters
    ----------
    flows : int
        Number of clusters for which smallest cuts are computed, for each of ``ports`` and ``links``; 0 leaves
        these two out. In graphs of more than `WORK` / `flows` clusters there are fewer.
    """
    proved = _of_vertices(application, machine)
    alone = throughput_under(machine.compute_speed, float(application.vertex_weight.sum()))
    for name, refutes, step, words in _arguments(machine, flows):
        now = min(bound.throughput for bound in proved)
        lowest = _lowest(application, machine, refutes, alone, now, step)
        if lowest < now * (1 - step):
            proved.append(UpperBound(name=name, throughput=lowest, proof=words))
    return tuple(proved)


def _of_vertices(application: Application, machine: Machine) -> list[UpperBound]:
    """Return the bounds that follow from the weights of vertices alone."""
    falling = np.sort(application.vertex_weight)[::-1]
    speed, nodes = machine.compute_speed, machine.nodes
    shared, at = _pigeonhole(falling, nodes)
    return [
        UpperBound(
            name=BALANCE,
            throughput=loose_bound(application, machine),
            proof=f"{nodes} nodes compute a weight of {falling.sum():.6g} in all",
        ),
        UpperBound(
            name=HEAVIEST_VERTEX,
            throughput=throughput_under(speed, float(falling[0])),
            proof=f"one node computes the heaviest vertex, of weight {falling[0]:.6g}",
        ),
        UpperBound(
            name=PIGEONHOLE,
            throughput=throughput_under(speed, shared),
            proof=f"of the {nodes * at + 1} heaviest vertices {at + 1} share a node: {shared:.6g} at least",
        ),
    ]


def _arguments(machine: Machine, flows: int) -> list[tuple[str, Refutes, float, str]]:
    """Return name, test, step of the search and sentence of each argument about clusters."""
    found: list[tuple[str, Refutes, float, str]] = [
        (
            HEAVY_EDGES,
            lambda at: bool(at.weight.max() > at.node_limit),
            FINE,
            "edges that no link could carry merge more computation than a node could do",
        ),
        (
            PACKING,
            lambda at: _needs_more(at.weight, at.node_limit, machine.nodes),
            FINE,
            "the clusters merged by edges that no link could carry do not fit on the nodes",
        ),
    ]
    if flows > 0:
        found += [
            (
                PORTS,
                lambda at: _ports(at, machine, flows),
                COARSE,
                "a node with some cluster sends more than its ports could carry, with any other vertices",
            ),
            (
                LINKS,
                lambda at: _links(at, machine, flows),
                COARSE,
                "all nodes together send more than the links of the switch could carry",
            ),
        ]
    return found


def _lowest(
    application: Application, machine: Machine, refutes: Refutes, low: float, high: float, step: float
) -> float:
    """Return the lowest throughput up to `high` that is excluded, or inf if `high` is not.

    `low` is possible, with all vertices on one node, so that nothing up to it is tested.
    """
    if not (0 < low < high < math.inf) or not refutes(clusters(application, machine, high)):
        return math.inf
    while high > low * (1 + step):
        middle = math.sqrt(low * high)
        if refutes(clusters(application, machine, middle)):
            high = middle
        else:
            low = middle
    return high


def _pigeonhole(falling: Floats, nodes: int) -> tuple[float, int]:
    """Return a load that some node has at least, and the k for which ``nodes k + 1`` vertices prove it."""
    total = np.r_[0.0, np.cumsum(falling)]
    found = (float(falling[0]), 0)
    for k in range(1, (len(falling) - 1) // nodes + 1):
        last = nodes * k + 1
        found = max(found, (float(total[last] - total[last - k - 1]), k), key=lambda one: one[0])
    return found


def _needs_more(weight: Floats, limit: float, nodes: int) -> bool:
    """Return True if items of these weights need more than so many nodes of this limit.

    By `_pigeonhole`, and by the bound of Martello and Toth on bin packing: for any a up to half the limit,
    items above limit - a are alone, other items above half the limit are on different nodes, and the space
    that these leave takes only items of at least a.
    """
    falling = np.sort(weight)[::-1]
    if _pigeonhole(falling, nodes)[0] > limit:
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


def _ports(at: Clusters, machine: Machine, flows: int) -> bool:
    """Return True if a node cannot send what its cluster must send, or a cluster fits on no node."""
    if at.weight.max() > at.node_limit:
        return True
    most = min(machine.max_degree, machine.nodes - 1) * at.link_limit
    order = np.argsort(-at.leaving, kind="stable")[: _affordable(at, flows)].tolist()
    return any(at.leaving[one] > most and min_outgoing(at, one) > most for one in order)


def _links(at: Clusters, machine: Machine, flows: int) -> bool:
    """Return True if too much crosses links.

    A node of load w(P) <= C sends at least ``sum_{x in P} w(x) c(x) / C``.

    c(x), from `min_outgoing`, is what any node with cluster x sends. Each edge between nodes counts at both.
    """
    ports = min(machine.max_degree, machine.nodes - 1) * machine.nodes
    most = min(2.0 * machine.max_edges, ports) * at.link_limit * at.node_limit
    sent = 0.0
    for one in np.argsort(-at.weight, kind="stable")[: _affordable(at, flows)].tolist():
        sent += float(at.weight[one]) * min_outgoing(at, one)
        if sent > most:
            return True
    return False


def _affordable(at: Clusters, flows: int) -> int:
    """Return the number of clusters for which smallest cuts are computed."""
    return min(flows, max(WORK // len(at.weight), 1))
