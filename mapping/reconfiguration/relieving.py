"""Routes of vertices that stay: unsplit ones, made better one by one until none alone can be.

Every link counts, not only the hottest: a flow is re-routed where the worst link of its way becomes less
loaded. The loads of all links, falling, are then lower at the first that differs, so that this comes to an
end, also where several links are equally hot.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mapping.reconfiguration.co_optimise import GAIN
from mapping.reconfiguration.coarsening import coarsen
from mapping.reconfiguration.kernels.unsplit_routes import least_congested, new_search
from mapping.reconfiguration.pinned_bounds import checked_nodes
from mapping.reconfiguration.problem import Application, Machine
from mapping.reconfiguration.refinement import Scale, guest_of
from mapping.reconfiguration.solution import Solution, evaluate
from mapping.reconfiguration.topology import Topology
from mapping.reconfiguration.unsplit import evaluated, longest_route, net_of, route_unsplit
from registry.model import Ints

PASSES = 100
"""Times that all flows are looked at, at most."""


def routed(
    application: Application, topology: Topology, machine: Machine, node_of_vertex: ArrayLike
) -> Solution:
    """Unsplit routes of low congestion for vertices that are where they are (section 3.2.2).

    Then flows are re-routed until that helps no more, so that no topology looks worse than it is.
    """
    node = checked_nodes(node_of_vertex, application, topology.nodes)
    guest = guest_of(coarsen(application, topology.nodes)[0], Scale.of(application, machine))
    standing = route_unsplit(net_of(topology), guest, node.astype(np.int32), longest_route(topology))
    return relieved(application, topology, machine, evaluated(application, topology, machine, standing))


def relieved(application: Application, topology: Topology, machine: Machine, solution: Solution) -> Solution:
    """The same partition with routes of which none alone can be made better; never a lower throughput.

    Flows are looked at by falling weight, ties by row, over and over; each takes its minimum-congestion path
    (`mapping.reconfiguration.unsplit.least_congested_path`) where that lowers the largest load on its way.
    """
    if not len(solution.route):
        return solution
    route = np.split(solution.route, solution.route_ptr[1:-1])
    load = solution.link_load.copy()
    net, search = net_of(topology), new_search(topology.nodes, topology.links, topology.nodes)
    node = solution.node_of_vertex
    start, goal = node[application.source].tolist(), node[application.target].tolist()
    weight = application.weight.tolist()
    falling = np.argsort(-application.weight, kind="stable").tolist()
    order = [edge for edge in falling if len(route[edge]) and weight[edge] > 0]
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
