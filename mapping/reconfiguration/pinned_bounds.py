"""Certified upper bounds on the throughput where every vertex stays on its node, whatever the circuits.

`mapping.reconfiguration.bounds` is for vertices that may be anywhere, and so proves less here. What flows
between nodes is given now; only circuits and routes are free.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mapping.reconfiguration.bounds import UpperBound
from mapping.reconfiguration.graphs import rows_of
from mapping.reconfiguration.problem import Application, Machine
from mapping.reconfiguration.solution import indices, throughput_under
from registry.model import Floats, Longs

HEAVIEST_FLOW, NODE_PORTS = "heaviest-flow", "node-ports"
SHARED_PORT, DISTANCES = "shared-port", "distances"
PINNED_NAMES = (HEAVIEST_FLOW, NODE_PORTS, SHARED_PORT, DISTANCES)
"""Of all arguments."""


def pinned_bound(application: Application, machine: Machine, node_of_vertex: ArrayLike) -> UpperBound:
    """The lowest of `pinned_bounds`; of equals the first."""
    return min(pinned_bounds(application, machine, node_of_vertex), key=lambda bound: bound.throughput)


def pinned_bounds(
    application: Application, machine: Machine, node_of_vertex: ArrayLike
) -> tuple[UpperBound, ...]:
    """Upper bounds on the throughput of links, in the order of `PINNED_NAMES`; infinite where nothing flows.

    Parameters
    ----------
    node_of_vertex : int[v]
        Where each vertex stays.

    Raises
    ------
    InvalidValue
        A vertex on no node.
    """
    node = checked_nodes(node_of_vertex, application, machine.nodes)
    return tuple(
        UpperBound(name=name, throughput=throughput_under(machine.link_speed, load), proof=words)
        for name, load, words in _loads(application, machine, node)
    )


def _loads(application: Application, machine: Machine, node: Longs) -> tuple[tuple[str, float, str], ...]:
    """What some circuit carries at least, by each argument: its name, bytes of one application, and words."""
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


def checked_nodes(node_of_vertex: ArrayLike, application: Application, nodes: int) -> Longs:
    """int64[v]: the node of each vertex.

    Raises
    ------
    InvalidValue
        Not one a vertex, or one that there is not.
    """
    return indices("node_of_vertex", node_of_vertex, application.vertices, nodes)


def _shared_port(end: Longs, flow: Floats, nodes: int, ports: int) -> tuple[float, int, int]:
    """Load that some circuit of a node has at least by the pigeonhole principle, that node, and k.

    Flows are not split and each one that ends at a node takes one of its circuits there: of the
    ``ports k + 1`` heaviest ones k + 1 share one, which has at least the lightest k + 1 of these.
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
    """Pairs of nodes that exchange something, and what."""
    rows = rows_of("pinned_bounds", nodes, node[application.source], node[application.target])
    return rows.source.astype(np.int64), rows.target.astype(np.int64), rows.sums(application.weight)


def _carried(source: Longs, target: Longs, weight: Floats, nodes: int, ports: int, links: int) -> float:
    """Bytes that all links carry together at least: each pair's bytes times the links of a shortest route.

    Two arguments, of which the larger counts. Of a node's partners so many as it has ports are one link away
    at best, and ``ports - 1`` times as many two links, and so on: the heaviest are taken to be the nearest;
    all nodes so, each pair is counted twice. And no more pairs are next to each other than there are links.
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
    """float64[nodes - 1]: links to a node's nearest, second nearest ... node, at least (Moore's bound)."""
    found = np.full(max(nodes - 1, 0), float(max(nodes - 1, 1)))
    start, room, far = 0, ports, 1
    while start < nodes - 1 and room > 0:
        found[start : start + room] = far
        start, room, far = start + room, room * (ports - 1), far + 1
    return found
