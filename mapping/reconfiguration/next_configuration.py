"""The next configuration of a switch whose nodes are in use: ranks stay where they are, circuits move.

Two searches begin where `improve` can go on: at the present circuits, and at circuits for the pairs of nodes
that exchange most. Of equals the first is taken, so that few circuits move.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from mapping.reconfiguration.co_optimise import GAIN, Iteration, Reconfiguration
from mapping.reconfiguration.few_moves import fewer_circuits, fewer_moves
from mapping.reconfiguration.fitting import LoadedTopology, connect, satisfy_max_degree, satisfy_max_edges
from mapping.reconfiguration.graphs import rows_of
from mapping.reconfiguration.improving import ROUNDING, TRIALS, improve
from mapping.reconfiguration.loading import load_kernels
from mapping.reconfiguration.pinned_bounds import checked_nodes, pinned_bound
from mapping.reconfiguration.problem import Application, Machine
from mapping.reconfiguration.relieving import relieved, routed
from mapping.reconfiguration.solution import Solution
from mapping.reconfiguration.swaps import Pair
from mapping.reconfiguration.topology import Topology
from registry.errors import InvalidValue
from registry.progress import Progress, silent


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Proposal:
    """Another configuration of the switch, against the present one.

    Attributes
    ----------
    present : Solution or None
        Routes of the present topology; None where that is not known.
    found : Reconfiguration
        The proposed topology and its routes; the present one where none is better.
    removed, inserted : tuple of (int, int)
        Circuits to take away and to put in: nodes that they join, ascending.
    gain : float
        Throughput of the proposal over the present one; 1 where nothing changes, nan where that is not known.
    break_even_seconds : float
        Time after which as much has been done as without a change, where nothing flows while circuits move;
        inf where nothing is gained, nan where the gain or the time of the change is not known.
    """

    present: Solution | None
    found: Reconfiguration
    removed: tuple[Pair, ...]
    inserted: tuple[Pair, ...]
    gain: float
    break_even_seconds: float


def next_configuration(
    application: Application,
    machine: Machine,
    present: Topology | None,
    node_of_vertex: ArrayLike,
    *,
    reconfiguration_seconds: float | None,
    compute_throughput: float = math.inf,
    trials: int = TRIALS,
    seed: int = 0,
    seconds: float | None = None,
    progress: Progress = silent,
) -> Proposal:
    """Propose circuits for what runs now, and weigh the gain against the time of the change.

    Vertices do not move, so that what they compute is the same with all circuits: the throughput of solutions
    is that of the worst link. A search ends where no other circuits can be better.

    Parameters
    ----------
    application : Application
        Who communicates how much now, for instance all running jobs together.
    present : Topology or None
        As the switch is configured, connected; None where that is not known: nothing is gained then.
    node_of_vertex : int[v]
        Where each vertex is, and stays.
    reconfiguration_seconds : float or None
        For which nothing flows while circuits move, finite, >= 0; None where that is not known.
    compute_throughput : float
        What computing allows: no gain is beyond it; > 0.
    trials, seed, seconds, progress
        Of `mapping.reconfiguration.improving.improve`, for each of the two searches; seconds for both.

    Raises
    ------
    InvalidValue
        A topology beyond the machine's limits, a vertex on no node, a parameter out of range.
    """
    _check(reconfiguration_seconds, compute_throughput, seconds)
    if present is not None:
        present.require(machine)
    load_kernels(progress)
    still = replace(application, vertex_weight=np.zeros(application.vertices))
    made = direct_circuits(still, machine, node_of_vertex)
    tops = [top for top in (present, made) if top is not None]
    bound = pinned_bound(still, machine, node_of_vertex).throughput * (1 - ROUNDING)
    most = min(bound, compute_throughput)
    begun = time.perf_counter()
    now: Solution | None = None
    best: Reconfiguration | None = None
    for number, top in enumerate(tops):
        left = None if seconds is None else _left(seconds, begun) / (len(tops) - number)
        try:
            begin, found = _searched(still, machine, top, node_of_vertex, most, trials, seed, left, progress)
        except KeyboardInterrupt:
            if best is None:
                raise
            best = replace(best, complete=False)
            break
        now = begin if top is present else now
        if best is None or found.throughput > best.throughput * (1 + GAIN):
            best = found if best is None else _one_trail(best, found)
        if not found.complete:
            best = replace(best, complete=False)
        if not best.complete or best.throughput >= most:
            break
    assert best is not None
    if present is None or now is None:
        return _without_present(best)
    until = math.inf if seconds is None else begun + seconds
    best = _few_moves(still, machine, present, now, best, compute_throughput, until)
    return _against(present, now, best, reconfiguration_seconds, compute_throughput)


def direct_circuits(application: Application, machine: Machine, node_of_vertex: ArrayLike) -> Topology:
    """Circuits for the pairs of nodes that exchange most, as far as limits allow, and all nodes joined.

    Pairs are taken by falling weight, ties by nodes, while both have a free port. Components are joined, and
    what is then too much goes, as of a condensed graph (sections 3.1.2 to 3.1.4).
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


def circuits(before: Topology, after: Topology) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """Circuits of the first topology alone and of the second alone, ascending."""
    return before.beyond(after), after.beyond(before)


def break_even_seconds(gain: float, reconfiguration_seconds: float) -> float:
    """Time t with ``gain (t - reconfiguration_seconds) = t``; inf without a gain."""
    if gain <= 1:
        return math.inf
    return reconfiguration_seconds * gain / (gain - 1) if math.isfinite(gain) else reconfiguration_seconds


def _check(reconfiguration_seconds: float | None, compute_throughput: float, seconds: float | None) -> None:
    given = reconfiguration_seconds
    if given is not None and not (math.isfinite(given) and given >= 0):
        reason = f"is {given}, must be finite and not negative"
        raise InvalidValue("next_configuration.reconfiguration_seconds", reason)
    if not compute_throughput > 0:
        reason = f"is {compute_throughput}, must be above zero"
        raise InvalidValue("next_configuration.compute_throughput", reason)
    if seconds is not None and not seconds >= 0:
        raise InvalidValue("next_configuration.seconds", f"is {seconds}, must not be negative")


def _left(seconds: float, begun: float) -> float:
    return max(seconds - (time.perf_counter() - begun), 0.0)


def _searched(
    application: Application,
    machine: Machine,
    topology: Topology,
    node_of_vertex: ArrayLike,
    most: float,
    trials: int,
    seed: int,
    seconds: float | None,
    progress: Progress,
) -> tuple[Solution, Reconfiguration]:
    """Routes of a topology, and what a search from there finds; none where that reaches `most` at once.

    An interrupt of the search ends it with the best so far; one before it is passed on.
    """
    start = _standing(application, machine, topology, node_of_vertex)
    found = improve(
        application,
        machine,
        start,
        pinned=True,
        trials=trials if start.throughput < most else 0,
        seed=seed,
        seconds=seconds,
        progress=progress,
    )
    return start.solution, _settled(application, machine, found)


def _standing(
    application: Application, machine: Machine, topology: Topology, node_of_vertex: ArrayLike
) -> Reconfiguration:
    """A topology with routes, as a search that has seen nothing else."""
    begun = time.perf_counter()
    solution = routed(application, topology, machine, node_of_vertex)
    start = Iteration.of(0, solution, seconds=time.perf_counter() - begun)
    return Reconfiguration(topology=topology, solution=solution, trail=(start,), complete=True)


def _settled(application: Application, machine: Machine, found: Reconfiguration) -> Reconfiguration:
    """The same circuits with routes that are relieved; one more iteration where that gains anything."""
    try:
        solution = relieved(application, found.topology, machine, found.solution)
    except KeyboardInterrupt:
        return replace(found, complete=False)
    if not solution.throughput > found.throughput * (1 + GAIN):
        return found
    before = found.trail[-1]
    last = Iteration.of(before.number + 1, solution, seconds=before.seconds)
    return replace(found, solution=solution, trail=(*found.trail, last))


def _one_trail(first: Reconfiguration, second: Reconfiguration) -> Reconfiguration:
    """The second search, which found more, with the iterations of the first one before its own."""
    reached, offset = first.trail[-1], len(first.trail)
    best = reached.best
    trail = list(first.trail)
    for one in second.trail:
        best = max(best, one.throughput)
        trail.append(
            replace(one, number=one.number + offset, best=best, seconds=one.seconds + reached.seconds)
        )
    return replace(second, trail=tuple(trail))


def _without_present(found: Reconfiguration) -> Proposal:
    inserted = tuple((one, other) for one, other in found.topology.pairs.tolist())
    nan = math.nan
    return Proposal(
        present=None, found=found, removed=(), inserted=inserted, gain=nan, break_even_seconds=nan
    )


def _few_moves(
    application: Application,
    machine: Machine,
    present: Topology,
    now: Solution,
    found: Reconfiguration,
    compute_throughput: float,
    until: float,
) -> Reconfiguration:
    """What was found with few circuits moved, or the present circuits where nothing is gained."""
    reached = min(found.throughput, compute_throughput)
    if not reached > now.throughput:
        return replace(found, topology=present, solution=now)
    made, solution = fewer_circuits(application, machine, present, found.topology, found.solution)
    least = max(reached * (1 - GAIN), now.throughput * (1 + GAIN))
    few = fewer_moves(application, machine, present, made, solution, least=least, until=until)
    return replace(
        found, topology=few.topology, solution=few.solution, complete=found.complete and few.complete
    )


def _against(
    present: Topology,
    now: Solution,
    found: Reconfiguration,
    reconfiguration_seconds: float | None,
    compute_throughput: float,
) -> Proposal:
    """What was found beside the present circuits."""
    reached = min(found.throughput, compute_throughput)
    gain = reached / now.throughput if reached > now.throughput else 1.0
    removed, inserted = circuits(present, found.topology)
    seconds = math.nan
    if reconfiguration_seconds is not None:
        seconds = break_even_seconds(gain, reconfiguration_seconds)
    return Proposal(
        present=now,
        found=found,
        removed=removed,
        inserted=inserted,
        gain=gain,
        break_even_seconds=seconds,
    )
