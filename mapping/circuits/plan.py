"""The next circuits of a switch in use: ranks stay on their hosts, circuits move.

Two local searches start from the present circuits and from circuits between the pairs of nodes that exchange
most. At equal throughput the result of the first is taken, so that few circuits move.

Move few circuits: keep circuits that are not in the way, and number nodes so that many stay.

If no vertex is pinned, a topology with its partition and routes is as good under other numbers of its nodes.
The numbers with most circuits in common need the fewest moves: a maximum common edge subgraph, which is hard.
So it is searched: pairs of nodes exchange numbers, starting from a relaxation (Vogelstein et al., "Fast
approximate quadratic programming for graph matching", 2015, as in scipy), from the numbers as they are, and
from random ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import quadratic_assignment

from mapping.circuits.bounds import pinned_bound
from mapping.circuits.local_search import DEFAULTS, ROUNDING, TrialOptions, improve
from mapping.circuits.paper_partition import load_kernels
from mapping.circuits.paper_seeds import LoadedTopology, connect, satisfy_limits
from mapping.circuits.problem import Application, Machine, Pair, Topology, rows_of
from mapping.circuits.search import local_reroute, route_partition
from mapping.circuits.solution import GAIN, Iteration, SearchResult, Solution, checked_nodes, evaluate
from mapping.deadline import Deadline
from registry.errors import InvalidValue
from registry.model import Floats, Longs
from registry.progress import Progress, silent

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

    Args:
        least: Throughput that must be kept.
        deadline: No further circuit is tried after its end.
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NextCircuits:
    """Circuits proposed for a switch, compared with the present ones."""

    present: Solution | None
    """Routes over the present circuits, or None if these are unknown."""
    found: SearchResult
    """The proposed topology and its routes; the present ones if none are better."""
    gain: float
    """Throughput of the proposal over the present one; 1 if nothing changes, nan if the latter is unknown."""
    break_even_seconds: float
    """Time after which as much is done as without a change, if nothing flows while circuits move; inf without
    gain, nan if the gain or the time of the change is unknown."""


class _PinnedProblem(NamedTuple):
    """Vertices without computation that stay on their nodes.

    `enough` is a throughput at which a search ends, since nothing better exists or counts.
    """

    application: Application
    machine: Machine
    node_of_vertex: ArrayLike
    enough: float

    def search(
        self, topology: Topology, options: TrialOptions, progress: Progress
    ) -> tuple[Solution, SearchResult]:
        """Return routes over a topology, and the result of the local search from it, with improved routes.

        Nothing is tried if the topology is good enough. After an interrupt the best so far is returned.
        """
        application, machine, deadline = self.application, self.machine, Deadline()
        first = route_partition(application, topology, machine, self.node_of_vertex)
        trail = (Iteration.of(0, first, seconds=deadline.elapsed),)
        start = SearchResult(topology=topology, solution=first, trail=trail, complete=True)
        if first.throughput >= self.enough:
            options = replace(options, trials=0)
        found = improve(application, machine, start, options, pinned=True, progress=progress)
        with deadline.interruptible():
            solution = local_reroute(application, found.topology, machine, found.solution)
        if deadline.interrupted:
            return first, replace(found, complete=False)
        if not solution.throughput > found.throughput * (1 + GAIN):
            return first, found
        before = found.trail[-1]
        last = Iteration.of(before.number + 1, solution, seconds=before.seconds)
        return first, replace(found, solution=solution, trail=(*found.trail, last))


def next_circuits(
    application: Application,
    machine: Machine,
    present: Topology | None,
    node_of_vertex: ArrayLike,
    options: TrialOptions = DEFAULTS,
    *,
    reconfiguration_seconds: float | None,
    compute_throughput: float = math.inf,
    progress: Progress = silent,
) -> NextCircuits:
    """Propose circuits for the running jobs, and compare the gain with the time of the change.

    Vertices do not move, so that their computation is the same with all circuits, and the throughput of a
    solution is that of its most loaded link. A search ends when no other circuits can be better. After an
    interrupt the best so far is returned; an interrupt before the first result is raised.

    Args:
        application: Who exchanges how much now, for instance all running jobs together.
        present: Present circuits, connected; None if unknown: then there is no gain.
        node_of_vertex (int[v]): Node of each vertex.
        options: Options of each of the two searches; the seconds are for both.
        reconfiguration_seconds: Time for which nothing flows while circuits move, finite, >= 0; None if
            unknown.
        compute_throughput: Largest throughput that computing allows, > 0; no gain exceeds it.

    Raises:
        InvalidValue: The topology exceeds the machine's limits, a vertex has no node, or a parameter is out
            of range.
    """
    _check(reconfiguration_seconds, compute_throughput)
    if present is not None:
        present.require(machine)
    load_kernels(progress)
    application = replace(application, vertex_weight=np.zeros(application.vertices))
    direct = direct_circuits(application, machine, node_of_vertex)
    bound = pinned_bound(application, machine, node_of_vertex).throughput * (1 - ROUNDING)
    problem = _PinnedProblem(application, machine, node_of_vertex, min(bound, compute_throughput))
    starts = [topology for topology in (present, direct) if topology is not None]
    deadline = Deadline(seconds=options.seconds)
    first, best = _search_from(problem, starts, options, deadline, progress)
    if present is None:
        return NextCircuits(present=None, found=best, gain=math.nan, break_even_seconds=math.nan)
    reached = min(best.throughput, compute_throughput)
    if reached > first.throughput:
        least, rest = max(reached * (1 - GAIN), first.throughput * (1 + GAIN)), deadline.time_until(1.0)
        best = drop_unused_circuits(application, machine, present, best)
        best = avoid_moves(application, machine, present, best, least=least, deadline=rest)
    else:
        best = replace(best, topology=present, solution=first)
    gain = max(1.0, min(best.throughput, compute_throughput) / first.throughput)  # 1 if both are infinite
    seconds = break_even_seconds(gain, reconfiguration_seconds)
    return NextCircuits(present=first, found=best, gain=gain, break_even_seconds=seconds)


def _search_from(
    problem: _PinnedProblem,
    starts: list[Topology],
    options: TrialOptions,
    deadline: Deadline,
    progress: Progress,
) -> tuple[Solution, SearchResult]:
    """Return the routes over the first topology, and the best result of searches from all of them.

    Raises:
        KeyboardInterrupt: Before the first result.
    """
    first: Solution | None = None
    best: SearchResult | None = None
    with deadline.interruptible():
        for number, topology in enumerate(starts):
            if options.seconds is not None:
                left = max(deadline.left, 0.0) / (len(starts) - number)
                options = replace(options, seconds=left)
            routes, found = problem.search(topology, options, progress)
            first = first or routes
            if best is None or found.throughput > best.throughput * (1 + GAIN):
                best = found if best is None else _joined_trail(best, found)
            best = replace(best, complete=best.complete and found.complete)
            if not best.complete or best.throughput >= problem.enough:
                break
    if first is None or best is None:
        raise KeyboardInterrupt
    return first, replace(best, complete=best.complete and not deadline.interrupted)


def _joined_trail(first: SearchResult, second: SearchResult) -> SearchResult:
    """Return the second result, which is better, with the iterations of the first before its own."""
    reached, offset = first.trail[-1], len(first.trail)
    best = reached.best
    trail = list(first.trail)
    for one in second.trail:
        best = max(best, one.throughput)
        trail.append(
            replace(one, number=one.number + offset, best=best, seconds=one.seconds + reached.seconds)
        )
    return replace(second, trail=tuple(trail))


def direct_circuits(application: Application, machine: Machine, node_of_vertex: ArrayLike) -> Topology:
    """Return circuits between the pairs of nodes that exchange most, within the limits, connected.

    Pairs are visited by descending weight, ties by nodes, and taken while both nodes have a free port. Then
    components are connected, and links above the limits removed, as in a condensed graph (sections 3.1.2 to
    3.1.4).
    """
    node = checked_nodes(node_of_vertex, application, machine.nodes)
    rows = rows_of("direct_circuits", machine.nodes, node[application.source], node[application.target])
    weight = rows.sums(application.weight)
    free = np.full(machine.nodes, machine.max_degree)
    taken: list[int] = []
    for row in np.argsort(-weight, kind="stable").tolist():
        one, other = int(rows.source[row]), int(rows.target[row])
        if weight[row] == 0 or len(taken) == machine.max_edges:
            break
        if free[one] > 0 and free[other] > 0:
            taken.append(row)
            free[[one, other]] -= 1
    pairs = np.stack((rows.source[taken], rows.target[taken]), axis=1)
    topology = connect(Topology.of(machine.nodes, pairs))
    return satisfy_limits(LoadedTopology(topology, pairs, weight[taken]), machine)


def break_even_seconds(gain: float, reconfiguration_seconds: float | None) -> float:
    """Return the time t with ``gain (t - reconfiguration_seconds) = t``; inf without gain, nan if unknown."""
    if reconfiguration_seconds is None or math.isnan(gain):
        return math.nan
    if gain <= 1:
        return math.inf
    return reconfiguration_seconds * gain / (gain - 1) if math.isfinite(gain) else reconfiguration_seconds


def _check(reconfiguration_seconds: float | None, compute_throughput: float) -> None:
    seconds = reconfiguration_seconds
    if seconds is not None and not (math.isfinite(seconds) and seconds >= 0):
        raise InvalidValue("reconfiguration_seconds", f"is {seconds}, must be finite and not negative")
    if not compute_throughput > 0:
        raise InvalidValue("compute_throughput", f"is {compute_throughput}, must be above zero")
