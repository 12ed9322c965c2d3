"""Move few circuits: keep circuits that are not in the way, and number nodes so that many stay.

If no vertex is pinned, a topology with its partition and routes is as good under other numbers of its nodes.
The numbers with most circuits in common need the fewest moves: a maximum common edge subgraph, which is hard.
So it is searched: pairs of nodes exchange numbers, starting from a relaxation (Vogelstein et al., "Fast
approximate quadratic programming for graph matching", 2015, as in scipy), from the numbers as they are, and
from random ones.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import quadratic_assignment

from mapping.deadline import Deadline
from mapping.reconfiguration.model.problem import Application, Machine
from mapping.reconfiguration.model.solution import Iteration, SearchResult, evaluate
from mapping.reconfiguration.model.topology import Pair, Topology
from mapping.reconfiguration.search.best_partition import route_partition
from registry.model import Floats, Longs

TRIED = 200
"""Largest number of new circuits without which routes are tried."""
MOST_NODES = 512
"""Topologies of more nodes keep their numbers: an exchange takes time quadratic in their number."""
STARTS, WORK = 50, 50_000_000
"""Largest number of random starts, and of starts times the cube of the number of nodes."""


def drop_unused_circuits(
    application: Application, machine: Machine, present: Topology, found: SearchResult
) -> SearchResult:
    """Remove new circuits that no route uses and keep old ones instead; the routes stay.

    Old circuits are kept in ascending order, within the machine's limits.
    """
    topology, solution = found.topology, found.solution
    used = np.bincount(solution.route, minlength=topology.links) > 0
    old = present.rows_between(topology.pairs) >= 0
    made = _with_old(topology.changed(np.flatnonzero(~(used | old))), present, machine)
    if not made.connected():
        return found
    route = made.rows_between(topology.pairs)[solution.route]
    solution = evaluate(application, made, machine, solution.node_of_vertex, solution.route_ptr, route)
    return replace(found, topology=made, solution=solution)


def avoid_moves(
    application: Application,
    machine: Machine,
    present: Topology,
    found: SearchResult,
    *,
    least: float,
    deadline: Deadline,
) -> SearchResult:
    """Leave out new circuits, the least loaded first, if other routes are as good without them.

    After an interrupt the result so far is returned, marked incomplete.

    Parameters
    ----------
    least : float
        Throughput that must be kept.
    deadline : Deadline
        No further circuit is tried after its end.
    """
    topology, solution = found.topology, found.solution
    rows = np.flatnonzero(present.rows_between(topology.pairs) < 0)
    rows = rows[np.argsort(solution.link_load[rows], kind="stable")]
    new = [topology.ends(row) for row in rows.tolist()]
    with deadline.interruptible():
        for pair in new[:TRIED]:
            if deadline.over:
                break
            trial = _with_old(topology.changed([topology.link_between(*pair)]), present, machine)
            if trial.connected():
                routes = route_partition(application, trial, machine, solution.node_of_vertex)
                if routes.throughput >= least:
                    topology, solution = trial, routes
    complete = found.complete and not deadline.interrupted
    return replace(found, topology=topology, solution=solution, complete=complete)


def _with_old(topology: Topology, present: Topology, machine: Machine) -> Topology:
    """Return the topology with present circuits added in ascending order, within the machine's limits."""
    degree = topology.degree.copy()
    back: list[Pair] = []
    for one, other in present.beyond(topology):
        room = topology.links + len(back) < machine.max_edges
        if room and max(degree[one], degree[other]) < machine.max_degree:
            back.append((one, other))
            degree[[one, other]] += 1
    return topology.changed(added=back)


def relabel_nodes(
    application: Application, machine: Machine, present: Topology, found: SearchResult
) -> SearchResult:
    """Return the same result under the node numbers that keep most of the present circuits.

    Only circuits that a route uses count: others need not be added. The trail is renumbered too.
    """
    spare = np.flatnonzero(np.bincount(found.solution.route, minlength=found.topology.links) == 0)
    number = best_labels(present, found.topology.changed(spare))
    if (number == np.arange(len(number))).all():
        return found
    pairs, solution = number[found.topology.pairs], found.solution
    topology = Topology.of(present.nodes, pairs)
    node, route = number[solution.node_of_vertex], topology.rows_between(pairs)[solution.route]

    def renumbered(ends: tuple[Pair, ...]) -> tuple[Pair, ...]:
        return tuple((int(number[one]), int(number[other])) for one, other in ends)

    def under_numbers(one: Iteration) -> Iteration:
        return replace(one, removed=renumbered(one.removed), inserted=renumbered(one.inserted))

    return replace(
        found,
        topology=topology,
        solution=evaluate(application, topology, machine, node, solution.route_ptr, route),
        trail=tuple(under_numbers(one) for one in found.trail),
    )


def best_labels(present: Topology, topology: Topology) -> Longs:
    """Return a number for each node (int64[n]) under which many links of a topology are present ones.

    They are no fewer than under the present numbers, which are returned if none better are found. No exchange
    of two numbers keeps more.
    """
    nodes = present.nodes
    numbers = np.arange(nodes)
    if nodes > MOST_NODES or nodes < 2:
        return numbers
    old, new = _adjacency(present), _adjacency(topology)
    generator = np.random.default_rng(0)
    options = {"maximize": True, "rng": generator}  # draws nothing, since it starts at the barycentre
    relaxed = quadratic_assignment(new, old, method="faq", options=options).col_ind
    drawn = (generator.permutation(nodes) for _ in range(min(STARTS, WORK // nodes**3)))
    tried = [numbers, *(_exchange_numbers(new, old, start) for start in (numbers, relaxed, *drawn))]
    return max(tried, key=lambda number: _kept(new, old, number))  # the first at equality


def _exchange_numbers(new: Floats, old: Floats, number: Longs) -> Longs:
    """Exchange the numbers of the two nodes with the largest gain, until there is none; ties by index."""
    number = np.array(number, np.int64)
    under = old[np.ix_(number, number)]
    common = under @ new  # [i, k]: old neighbours of i under its number that are new neighbours of k
    while True:
        own = np.diagonal(common)
        gain = common + common.T - own - own[:, None] + 2.0 * under * new
        one, other = divmod(int(np.argmax(gain)), len(number))
        if gain[one, other] <= 0:
            return number
        both, crossed = [one, other], [other, one]
        common += np.outer(under[:, other] - under[:, one], new[one] - new[other])
        under[both], number[both] = under[crossed], number[crossed]
        under[:, both] = under[:, crossed]
        common[both] = under[both] @ new


def _kept(new: Floats, old: Floats, number: Longs) -> float:
    """Return the number of links that are present ones, each counted twice."""
    return float((new * old[np.ix_(number, number)]).sum())


def _adjacency(topology: Topology) -> Floats:
    found = np.zeros((topology.nodes, topology.nodes))
    found[topology.source, topology.target] = found[topology.target, topology.source] = 1.0
    return found
