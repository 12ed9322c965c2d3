"""Certified upper bounds on the throughput if every vertex stays on its node, with any circuits.

The bounds of `mapping.reconfiguration.bounds` hold for vertices on any nodes, and so are weaker here. The
data between nodes are known, and only circuits and routes are free.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mapping.reconfiguration.bounds import UpperBound
from mapping.reconfiguration.model.problem import Application, Machine, rows_of
from mapping.reconfiguration.model.solution import checked_nodes, throughput_under
from registry.model import Floats, Longs

HEAVIEST_FLOW, NODE_PORTS = "heaviest-flow", "node-ports"
SHARED_PORT, DISTANCES = "shared-port", "distances"
PINNED_NAMES = (HEAVIEST_FLOW, NODE_PORTS, SHARED_PORT, DISTANCES)
"""Names of all bounds, in their order."""


def pinned_bound(application: Application, machine: Machine, node_of_vertex: ArrayLike) -> UpperBound:
    """Return the lowest of `pinned_bounds`, the first at equality."""
    return min(pinned_bounds(application, machine, node_of_vertex), key=lambda bound: bound.throughput)


def pinned_bounds(
    application: Application, machine: Machine, node_of_vertex: ArrayLike
) -> tuple[UpperBound, ...]:
    """Return upper bounds on the throughput of links, ordered as `PINNED_NAMES`; infinite if nothing flows.

    Parameters
    ----------
    node_of_vertex : int[v]
        Node of each vertex.

    Raises
    ------
    InvalidValue
        A vertex has no node.
    """
    node = checked_nodes(node_of_vertex, application, machine.nodes)
    return tuple(
        UpperBound(name=name, throughput=throughput_under(machine.link_speed, load), proof=words)
        for name, load, words in _loads(application, machine, node)
    )


def _loads(application: Application, machine: Machine, node: Longs) -> tuple[tuple[str, float, str], ...]:
    """Return for each argument its name, the data that some circuit carries at least, and its sentence."""
    nodes, ports = machine.nodes, min(machine.max_degree, machine.nodes - 1)
    ends = node[application.source], node[application.target]
    apart = ends[0] != ends[1]
    flow = application.weight[apart]
    end, twice = np.r_[ends[0][apart], ends[1][apart]], np.r_[flow, flow]
    leaving = np.bincount(end, twice, nodes)
    busiest = int(np.argmax(leaving))
    shared, crowded, count = _shared_port(end, twice, nodes, ports)
    links = min(machine.max_edges, nodes * ports // 2)
    carried = _carried(*_between(application, nodes, node), nodes, ports, links)
    heaviest = float(flow.max(initial=0.0))
    return (
        (HEAVIEST_FLOW, heaviest, f"one circuit carries the heaviest flow, of {heaviest:.6g} bytes"),
        (
            NODE_PORTS,
            float(leaving[busiest]) / max(ports, 1),
            f"{ports} circuits carry what node {busiest} exchanges, {leaving[busiest]:.6g} bytes",
        ),
        (
            SHARED_PORT,
            shared,
            f"of the {ports * count + 1} heaviest flows of node {crowded} {count + 1} share one of its "
            f"{ports} circuits: {shared:.6g} bytes at least",
        ),
        (
            DISTANCES,
            carried / max(links, 1),
            f"{links} circuits carry {carried:.6g} bytes in all at least, as no node is next to more than "
            f"{ports} others",
        ),
    )


def _shared_port(end: Longs, flow: Floats, nodes: int, ports: int) -> tuple[float, int, int]:
    """Return the load that some circuit of a node has at least by the pigeonhole principle, that node, and k.

    Flows are not split and each one that ends at a node takes one of its circuits there. Of the ``ports k +
    1`` heaviest flows k + 1 share a circuit, whose load is at least that of the lightest k + 1 of these.
    """
    best = (0.0, 0, 0)
    for node in range(nodes):
        falling = np.sort(flow[end == node])[::-1]
        total = np.r_[0.0, np.cumsum(falling)]
        for k in range(1, (len(falling) - 1) // max(ports, 1) + 1):
            last = ports * k + 1
            load = float(total[last] - total[last - k - 1])
            if load > best[0]:
                best = load, node, k
    return best


def _between(application: Application, nodes: int, node: Longs) -> tuple[Longs, Longs, Floats]:
    """Return the pairs of nodes that exchange data, and how much."""
    rows = rows_of("pinned_bounds", nodes, node[application.source], node[application.target])
    return rows.source.astype(np.int64), rows.target.astype(np.int64), rows.sums(application.weight)


def _carried(source: Longs, target: Longs, weight: Floats, nodes: int, ports: int, links: int) -> float:
    """Return the least data on all links together: each pair's data times the links of a shortest route.

    It is the larger of two bounds. First, a node has at most as many partners one link away as it has ports,
    ``ports - 1`` times as many two links away, and so on; its heaviest partners are taken as the nearest.
    Summed over all nodes, each pair counts twice. Second, no more pairs are adjacent than there are links.
    """
    twice = 0.0
    both, size = np.r_[source, target], np.r_[weight, weight]
    hops = _hops(nodes, ports)
    for node in range(nodes):
        falling = np.sort(size[both == node])[::-1]
        twice += float(falling @ hops[: len(falling)])
    adjacent = float(np.sort(weight)[::-1][:links].sum())
    return max(twice / 2.0, 2.0 * float(weight.sum()) - adjacent)


def _hops(nodes: int, ports: int) -> Floats:
    """Return the least number of links to a node's nearest, second nearest, ... node.

    Moore's bound; float64[nodes - 1].
    """
    found = np.full(max(nodes - 1, 0), float(max(nodes - 1, 1)))
    start, room, far = 0, ports, 1
    while start < nodes - 1 and room > 0:
        found[start : start + room] = far
        start, room, far = start + room, room * (ports - 1), far + 1
    return found
