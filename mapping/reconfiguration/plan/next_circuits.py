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
from mapping.reconfiguration.model.problem import Application, Machine, rows_of
from mapping.reconfiguration.model.solution import (
    GAIN,
    Iteration,
    Pair,
    SearchResult,
    Solution,
    checked_nodes,
)
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper.partition import load_kernels
from mapping.reconfiguration.paper.repair_constraints import (
    LoadedTopology,
    connect,
    satisfy_max_degree,
    satisfy_max_edges,
)
from mapping.reconfiguration.plan.few_moves import avoid_moves, drop_unused_circuits
from mapping.reconfiguration.plan.pinned_bounds import pinned_bound
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
    removed, inserted : tuple of (int, int)
        Circuits to remove and to add, as ascending pairs of nodes.
    gain : float
        Throughput of the proposal over the present one; 1 if nothing changes, nan if the latter is unknown.
    break_even_seconds : float
        Time after which as much is done as without a change, if nothing flows while circuits move; inf
        without gain, nan if the gain or the time of the change is unknown.
    """

    present: Solution | None
    found: SearchResult
    removed: tuple[Pair, ...]
    inserted: tuple[Pair, ...]
    gain: float
    break_even_seconds: float


class _PinnedProblem(NamedTuple):
    """What the searches share: vertices without computation that stay on their nodes.

    `enough` is a throughput at which a search ends, since nothing better exists or counts.
    """

    application: Application
    machine: Machine
    node_of_vertex: ArrayLike
    enough: float

    def route(self, topology: Topology) -> SearchResult:
        """Return a topology with routes as the result of a search that tried nothing else."""
        clock = Deadline()
        solution = route_partition(self.application, topology, self.machine, self.node_of_vertex)
        start = Iteration.of(0, solution, seconds=clock.elapsed)
        return SearchResult(topology=topology, solution=solution, trail=(start,), complete=True)

    def search(self, start: SearchResult, options: TrialOptions, progress: Progress) -> SearchResult:
        """Return what the local search finds from a start, with improved routes.

        Nothing is tried if the start is good enough. After an interrupt the best so far is returned.
        """
        if start.throughput >= self.enough:
            options = replace(options, trials=0)
        found = improve(self.application, self.machine, start, options, pinned=True, progress=progress)
        deadline = Deadline()
        with deadline.interruptible():
            solution = local_reroute(self.application, found.topology, self.machine, found.solution)
        if deadline.interrupted:
            return replace(found, complete=False)
        if not solution.throughput > found.throughput * (1 + GAIN):
            return found
        before = found.trail[-1]
        last = Iteration.of(before.number + 1, solution, seconds=before.seconds)
        return replace(found, solution=solution, trail=(*found.trail, last))


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
        inserted, nan = best.topology.beyond(Topology.of(machine.nodes, ())), math.nan
        return NextCircuits(
            present=None, found=best, removed=(), inserted=inserted, gain=nan, break_even_seconds=nan
        )
    reached = min(best.throughput, compute_throughput)
    rest = Deadline(seconds=None if options.seconds is None else max(deadline.left, 0.0))
    best = _with_few_moves(problem, present, first, best, reached, rest)
    gain = min(best.throughput, compute_throughput) / first.throughput
    return _compare(present, first, best, gain if gain > 1 else 1.0, reconfiguration_seconds)


def _compare(
    present: Topology,
    now: Solution,
    found: SearchResult,
    gain: float,
    reconfiguration_seconds: float | None,
) -> NextCircuits:
    """Return the result with the circuits to move and the time after which that has paid off."""
    removed, inserted = circuit_changes(present, found.topology)
    return NextCircuits(
        present=now,
        found=found,
        removed=removed,
        inserted=inserted,
        gain=gain,
        break_even_seconds=break_even_seconds(gain, reconfiguration_seconds),
    )


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
            start = problem.route(topology)
            found = problem.search(start, options, progress)
            first = first or start.solution
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


def _with_few_moves(
    problem: _PinnedProblem,
    present: Topology,
    now: Solution,
    found: SearchResult,
    reached: float,
    deadline: Deadline,
) -> SearchResult:
    """Return the result with few circuits moved, or the present circuits if nothing is gained.

    `reached` is the throughput of the result as far as it counts.
    """
    if not reached > now.throughput:
        return replace(found, topology=present, solution=now)
    application, machine = problem.application, problem.machine
    made = drop_unused_circuits(application, machine, present, found)
    least = max(reached * (1 - GAIN), now.throughput * (1 + GAIN))
    return avoid_moves(application, machine, present, made, least=least, deadline=deadline)


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
    ends = rows.source[taken], rows.target[taken]
    topology = connect(Topology.of(machine.nodes, np.stack(ends, axis=1)))
    loaded = LoadedTopology(topology, *ends, weight[taken])
    satisfy_max_degree(loaded, machine)
    satisfy_max_edges(loaded, machine)
    return loaded.topology


def circuit_changes(before: Topology, after: Topology) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """Return the circuits that only the first topology has, and those that only the second has, ascending."""
    return before.beyond(after), after.beyond(before)


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
