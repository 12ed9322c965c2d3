"""Resistance between two hosts of the network formed by a routing's paths, by Kirchhoff's laws.

Every cable of those paths is a resistor of 1 ohm. Nodes between the two hosts are eliminated one by one,
fewest neighbours first, each replaced by resistors between its neighbours (star-mesh transform; Rosen, "A new
network theorem", 1924). Only positive numbers are added, so there is no cancellation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.kernels.decorators import allocating, kernel
from mapping.routing.kernels.flows import FlowArrays, Scratch, pair_flows
from registry.model import Bools, Floats, Ints

FROM, TO = 0, 1
"""Nodes of the sending and of the receiving host."""


class Resistors(NamedTuple):
    """The links of a fabric as resistors."""

    source: Ints
    target: Ints
    cables: Ints
    """int32[m]: Columns of ``fabric.links``."""
    forwards: Bools
    """bool[n]: True for vertices that forward."""
    own_cables: bool
    """True if the cables of hosts that do not forward have a resistance."""


@allocating
def fill_resistances(
    flows: FlowArrays,
    scratch: Scratch,
    host: Ints,
    second: Ints,
    vertex: Ints,
    resistors: Resistors,
    out: Floats,
) -> None:
    """Fill the resistance between all pairs of groups of hosts.

    Args:
        flows, scratch: From ``Routes.flows`` and ``new_scratch``.
        host, second (int32[g]): A host of each group and another one, -1 if there is none.
        vertex (int32[h]): Vertex of each host.
        out (float64[g, g]): Filled; ``inf`` if the routing does not connect the hosts.
    """
    links, shares = np.empty(flows.max_entries, np.int32), np.empty(flows.max_entries)
    source, target = resistors.source, resistors.target
    node = np.full(len(resistors.forwards), -1, np.int32)
    for a in range(len(host)):
        for b in range(len(host)):
            i, j = host[a], host[b] if a != b else second[a]
            if j < 0:
                out[a, b] = 0.0
                continue
            count = pair_flows(flows, scratch, int(np.int64(i)), int(np.int64(j)), links, shares)
            if count < 0:
                out[a, b] = np.inf
                continue
            ends = vertex[i], vertex[j]
            used = _number(links[:count], ends, resistors, node)
            if node[ends[1]] == FROM:
                out[a, b] = 0.0
            else:
                network = _conductance(links[:count], node, used, resistors)
                out[a, b] = 1.0 / _reduced(network)
            for e in range(count):
                node[source[links[e]]] = node[target[links[e]]] = -1


@kernel
def _number(links: Ints, ends: tuple[int, int], resistors: Resistors, node: Ints) -> int:
    """Number the vertices of a pair's paths from 2, the two hosts 0 and 1; return the count.

    If the hosts' own cables do not count, a host and the switches it is attached to are one node; if that
    makes one node of both hosts, both get the number 0.
    """
    source, target, forwards = resistors.source, resistors.target, resistors.forwards
    node[ends[0]], node[ends[1]] = FROM, TO
    if not resistors.own_cables:
        for e in range(len(links)):
            u, v = source[links[e]], target[links[e]]
            leaves, enters = u == ends[0] and not forwards[u], v == ends[1] and not forwards[v]
            if (leaves and node[v] == TO) or (enters and node[u] == FROM):
                node[ends[1]] = FROM
                return 2
            if leaves:
                node[v] = FROM
            elif enters:
                node[u] = TO
    used = 2
    for e in range(len(links)):
        for v in (source[links[e]], target[links[e]]):
            if node[v] < 0:
                node[v] = used
                used += 1
    return used


@allocating
def _conductance(links: Ints, node: Ints, used: int, resistors: Resistors) -> Floats:
    """Return the cables between nodes (float64[used, used]); a cable used in both directions counts once."""
    source, target, cables = resistors.source, resistors.target, resistors.cables
    one_way = np.zeros((used, used))
    for e in range(len(links)):
        u, v = node[source[links[e]]], node[target[links[e]]]
        if u >= 0 and v >= 0 and u != v:
            one_way[u, v] += cables[links[e]]
    return np.maximum(one_way, one_way.T)


@allocating
def _reduced(conductance: Floats) -> float:
    """Return the conductance between nodes 0 and 1 after eliminating all others; changes the matrix."""
    nodes = len(conductance)
    degree = np.zeros(nodes, np.int64)
    for u in range(nodes):
        for v in range(nodes):
            degree[u] += conductance[u, v] > 0
    near = np.empty(nodes, np.int64)
    for _ in range(2, nodes):
        middle = 2
        for u in range(3, nodes):
            if degree[u] < degree[middle]:
                middle = u
        count, total = 0, 0.0
        for v in range(nodes):
            if conductance[middle, v] > 0:
                near[count], count = v, count + 1
                total += conductance[middle, v]
        for s in range(count):
            u = near[s]
            for t in range(s):
                v = near[t]
                if conductance[u, v] == 0:
                    degree[u], degree[v] = degree[u] + 1, degree[v] + 1
                conductance[u, v] += conductance[middle, u] * conductance[middle, v] / total
                conductance[v, u] = conductance[u, v]
        for s in range(count):
            conductance[middle, near[s]] = conductance[near[s], middle] = 0.0
            degree[near[s]] -= 1
        degree[middle] = nodes
    return float(conductance[FROM, TO])
