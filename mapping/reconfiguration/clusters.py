"""What a throughput forces together: the clusters of an application, and what must leave them.

At throughput T a node computes at most C = S_comp / T and a link carries at most L = S_comm / T. Routes are
not split, so both ends of an edge heavier than L are on one node: such edges join vertices to clusters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from mapping.reconfiguration.graphs import components, rows_of
from mapping.reconfiguration.problem import Application, Machine
from registry.model import Bools, Floats, Ints

SLACK = 1e-9
"""Relative excess below which a load counts as within its limit: a bound must not rest on rounding."""
CAPACITY = 1 << 30
"""Sum of the whole capacities of a flow problem, which scipy takes in 32 bits."""
STEPS = 12
"""Most steps towards the best multiplier of `least_leaving`."""


class Clusters(NamedTuple):
    """An application with what must share a node merged.

    Attributes
    ----------
    throughput, node_limit, link_limit : float
        T, C and L; the limits with `SLACK`.
    weight : float64[k]
        Computation of each cluster.
    source, target : int32[e]
        Clusters that light edges join, ``source < target``, each pair once.
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
    """What a throughput forces together."""
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


def least_leaving(found: Clusters, cluster: int) -> float:
    """A lower bound on the data that leave a node with this cluster, where the node does not take all.

    The least cut around any set S of clusters with this one and of weight at most C is at least the maximum
    over m >= 0 of ``min_S cut(S) + m (w(S) - C)``. Each minimum, over all sets, is a maximum flow from the
    cluster to a sink that each cluster x reaches with capacity ``m w(x)``; its set is a line in m, and the
    next m is where the two lines around the maximum meet.
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
    """Lower bound on ``min_S cut(S) + m w(S)`` over sets with the cluster, and a set that is about there."""
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
