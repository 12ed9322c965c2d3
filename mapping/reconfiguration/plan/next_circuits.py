"""The next circuits of a switch in use: ranks stay on their hosts, circuits move.

Two local searches start from the present circuits and from circuits between the pairs of nodes that exchange
most. At equal throughput the result of the first is taken, so that few circuits move.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mapping.deadline import Deadline
from mapping.reconfiguration.bounds import pinned_bound
from mapping.reconfiguration.model.problem import Application, Machine, rows_of
from mapping.reconfiguration.model.solution import GAIN, Iteration, SearchResult, Solution, checked_nodes
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper.partition import load_kernels
from mapping.reconfiguration.paper.repair_constraints import LoadedTopology, connect, satisfy_limits
from mapping.reconfiguration.plan.few_moves import avoid_moves, drop_unused_circuits
from mapping.reconfiguration.search.best_partition import local_reroute, route_partition
from mapping.reconfiguration.search.local_search import DEFAULTS, ROUNDING, TrialOptions, improve
from registry.errors import InvalidValue
from registry.progress import Progress, silent


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NextCircuits:
    """Circuits proposed for a switch, compared with the present ones.

    Attributes
    ----------
    present : Solution or None
        Routes over the present circuits, or None if these are unknown.
    found : SearchResult
        The proposed topology and its routes; the present ones if none are better.
    gain : float
        Throughput of the proposal over the present one; 1 if nothing changes, nan if the latter is unknown.
    break_even_seconds : float
        Time after which as much is done as without a change, if nothing flows while circuits move; inf
        without gain, nan if the gain or the time of the change is unknown.
    """

    present: Solution | None
    found: SearchResult
    gain: float
    break_even_seconds: float


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

    Parameters
    ----------
    application : Application
        Who exchanges how much now, for instance all running jobs together.
    present : Topology or None
        Present circuits, connected; None if unknown: then there is no gain.
    node_of_vertex : int[v]
        Node of each vertex.
    options : TrialOptions
        Options of each of the two searches; the seconds are for both.
    reconfiguration_seconds : float or None
        Time for which nothing flows while circuits move, finite, >= 0; None if unknown.
    compute_throughput : float
        Largest throughput that computing allows, > 0; no gain exceeds it.

    Raises
    ------
    InvalidValue
        The topology exceeds the machine's limits, a vertex has no node, or a parameter is out of range.
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

    Raises
    ------
    KeyboardInterrupt
        Before the first result.
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
