"""Circuit plans of an optical switch, for an application or for running jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from mapping.deadline import Deadline
from mapping.reconfiguration.bounds import UpperBound, throughput_bound
from mapping.reconfiguration.model.problem import Application, Machine
from mapping.reconfiguration.model.solution import GAIN, Iteration, SearchResult, Solution
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper.loop import PATIENCE, SKIP, LoopOptions, co_optimise
from mapping.reconfiguration.paper.seed_topology import CONDENSED
from mapping.reconfiguration.plan.few_moves import drop_unused_circuits, relabel_nodes
from mapping.reconfiguration.plan.next_circuits import break_even_seconds, next_circuits
from mapping.reconfiguration.plan.pinned_bounds import pinned_bound
from mapping.reconfiguration.search.best_partition import best_partition
from mapping.reconfiguration.search.local_search import (
    BEST_SEEDS,
    TRIALS,
    TrialOptions,
    search_from_seeds,
)
from registry.errors import InvalidValue
from registry.model import Ints
from registry.model.circuit_plan import BEST, METHODS, PAPER, CircuitPlan, CircuitRoutes
from registry.progress import Progress, silent

GIVEN = "given"
"""Name of a first topology that was given as circuits."""
PRESENT = 0.25
"""Part of the seconds of a search for what the present circuits can give."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CircuitSearchOptions:
    """How a circuit plan is searched.

    Attributes
    ----------
    method : str
        ``paper``: only the loop of the paper; ``best``: our own search after it.
    start : str, Topology or None
        First topology; default: the condensed graph, and for `best` a torus too.
    patience, skip : int, float or None
        Parameters of the loop of the paper.
    trials : int or None
        Number of changes of circuits that our own search tries.
    seconds : float or None
        Approximate limit of the whole search; default: no limit.
    seed : int
        Seed of the random numbers.
    reconfiguration_seconds : float or None
        Time for which nothing flows while circuits move; finite, >= 0.
    weights : str or None
        Identifies the weights of the vertices, for instance by a digest; None: all are equal.

    Raises
    ------
    InvalidValue
        The method is unknown, or the seconds are negative or infinite.
    """

    method: str = BEST
    start: str | Topology | None = None
    patience: int | None = None
    skip: float | None = None
    trials: int | None = None
    seconds: float | None = None
    seed: int = 0
    reconfiguration_seconds: float | None = None
    weights: str | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InvalidValue("method", f"{self.method!r} is none of {', '.join(METHODS)}")
        given = self.reconfiguration_seconds
        if given is not None and not (math.isfinite(given) and given >= 0.0):
            raise InvalidValue("reconfiguration_seconds", f"is {given}, must be finite and not negative")

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool]:
        """Options that were given, by name, as stored with the plan."""
        start = GIVEN if isinstance(self.start, Topology) else self.start
        names = ("patience", "skip", "trials", "seconds", "weights")
        options: dict[str, str | int | float | None] = {
            "start": start,
            **{name: getattr(self, name) for name in names},
        }
        return {name: value for name, value in options.items() if value is not None}

    def trial_options(self, seconds: float | None) -> TrialOptions:
        """Return the options of our own search, with a limit in seconds."""
        trials = TRIALS if self.trials is None else self.trials
        return TrialOptions(trials=trials, seed=self.seed, seconds=seconds)

    def loop_options(self, seconds: float | None) -> LoopOptions:
        """Return the options of the loop of the paper, with a limit in seconds."""
        return LoopOptions(
            seed_topology=CONDENSED if self.start is None else self.start,
            patience=PATIENCE if self.patience is None else self.patience,
            skip=SKIP if self.skip is None else self.skip,
            seed=self.seed,
            seconds=seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CircuitPlanReport:
    """Result of a search for a circuit plan.

    Attributes
    ----------
    trail : tuple of Iteration
        Iterations of the search, with the circuits that each removed and added.
    plan : CircuitPlan
    bound : UpperBound
        Upper bound of `plan`, with its proof.
    search : CircuitSearchOptions
    seconds : float
        Wall seconds of the search.
    """

    trail: tuple[Iteration, ...]
    plan: CircuitPlan
    bound: UpperBound
    search: CircuitSearchOptions
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Comparison:
    """What a plan stores besides the search result: present circuits, limits and gain.

    Attributes
    ----------
    found : SearchResult
    present : Topology or None
        Present circuits, if known.
    present_throughput : float
        Throughput of the present circuits, or nan.
    compute_throughput : float
        Largest throughput that computing allows.
    gain, break_even_seconds : float
        Throughput over the present one, and time after which the change has paid off; nan if unknown.
    node_of_vertex : int32[v]
        Node of each vertex or rank of the plan.
    of_nodes : bool
        True if routes are between nodes, False if between ranks.
    """

    found: SearchResult
    present: Topology | None
    present_throughput: float
    compute_throughput: float
    gain: float
    break_even_seconds: float
    node_of_vertex: Ints
    of_nodes: bool


def plan_circuits(
    application: Application,
    machine: Machine,
    search: CircuitSearchOptions,
    *,
    present: Topology | None = None,
    progress: Progress = silent,
) -> CircuitPlanReport:
    """Search circuits, a node for each vertex, and routes, and compare them with the present circuits.

    Parameters
    ----------
    present : Topology, optional
        Present circuits; they are judged by the best partition and routes for them
        (`mapping.reconfiguration.search.best_partition`). If no better circuits are found, these are the
        plan, except with the loop of the paper.

    Raises
    ------
    InvalidValue, UnknownName
        As of `mapping.reconfiguration.search.local_search.search_from_seeds`.
    """
    clock = Deadline()
    if present is not None:
        present.require(machine)
    bound = throughput_bound(application, machine)  # first: an interrupt later must not lose the result
    found = _search(application, machine, search, present is not None, progress)
    now = math.nan
    if present is not None:
        found, now = _compare(application, machine, search, present, found)
    gain = found.throughput / now if found.throughput != now else 1.0
    compared = _Comparison(
        found=found,
        present=present,
        present_throughput=now,
        compute_throughput=found.solution.compute_throughput,
        gain=gain,
        break_even_seconds=break_even_seconds(gain, search.reconfiguration_seconds),
        node_of_vertex=found.solution.node_of_vertex,
        of_nodes=False,
    )
    plan = _plan(application, machine, search, compared, bound)
    return CircuitPlanReport(trail=found.trail, plan=plan, bound=bound, search=search, seconds=clock.elapsed)


def plan_next(
    application: Application,
    machine: Machine,
    search: CircuitSearchOptions,
    *,
    node_of_rank: ArrayLike,
    present: Topology | None,
    compute_throughput: float = math.inf,
    progress: Progress = silent,
) -> CircuitPlanReport:
    """Search the next circuits of a switch; ranks stay on their hosts.

    Parameters
    ----------
    application : Application
        Its vertices are the nodes of the switch, in their order.
    node_of_rank : int[ranks]
        Node of each rank, stored in the plan.
    present : Topology or None
        Present circuits, if known.
    compute_throughput : float
        Largest throughput that computing allows.

    Raises
    ------
    InvalidValue
        As of `mapping.reconfiguration.plan.next_circuits.next_circuits`.
    """
    clock = Deadline()
    node = np.arange(machine.nodes)
    bound = pinned_bound(application, machine, node)
    next_ = next_circuits(
        application,
        machine,
        present,
        node,
        search.trial_options(search.seconds),
        reconfiguration_seconds=search.reconfiguration_seconds,
        compute_throughput=compute_throughput,
        progress=progress,
    )
    if compute_throughput < bound.throughput:
        proof = "the node with most computation takes that long with any circuits"
        bound = UpperBound(name="compute", throughput=compute_throughput, proof=proof)
    now = math.nan if next_.present is None else min(next_.present.throughput, compute_throughput)
    compared = _Comparison(
        found=next_.found,
        present=present,
        present_throughput=now,
        compute_throughput=compute_throughput,
        gain=next_.gain,
        break_even_seconds=next_.break_even_seconds,
        node_of_vertex=np.asarray(node_of_rank, np.int32),
        of_nodes=True,
    )
    plan = _plan(application, machine, search, compared, bound)
    trail = next_.found.trail
    return CircuitPlanReport(trail=trail, plan=plan, bound=bound, search=search, seconds=clock.elapsed)


def _search(
    application: Application,
    machine: Machine,
    search: CircuitSearchOptions,
    compares: bool,
    progress: Progress,
) -> SearchResult:
    """Return the result of the search; a comparison with present circuits gets a part of its time."""
    part = 1.0 - PRESENT if compares else 1.0
    seconds = None if search.seconds is None else part * search.seconds
    if search.method == PAPER:
        return co_optimise(application, machine, search.loop_options(seconds), progress=progress)
    return search_from_seeds(
        application,
        machine,
        search.trial_options(seconds),
        seed_topologies=BEST_SEEDS if search.start is None else (search.start,),
        progress=progress,
    )


def _compare(
    application: Application,
    machine: Machine,
    search: CircuitSearchOptions,
    present: Topology,
    found: SearchResult,
) -> tuple[SearchResult, float]:
    """Return the result to propose and the throughput of the present circuits, or nan after an interrupt.

    Our own search numbers nodes so that few circuits move, proposes the present circuits if it found none
    better, and else keeps those that are not in the way. The loop of the paper is reported as it ended.
    """
    partitions = [found.solution.node_of_vertex]
    seconds = None if search.seconds is None else PRESENT * search.seconds
    deadline = Deadline()
    with deadline.interruptible():
        if search.method != PAPER:
            found = relabel_nodes(application, machine, present, found)
            partitions.append(found.solution.node_of_vertex)
        now, complete = best_partition(
            application, machine, present, partitions=partitions, seed=search.seed, seconds=seconds
        )
    if deadline.interrupted:
        return replace(found, complete=False), math.nan
    found = replace(found, complete=found.complete and complete)
    same = not (found.topology.beyond(present) or present.beyond(found.topology))
    if same and found.throughput >= now.throughput:
        return found, found.throughput
    if search.method == PAPER:
        return found, now.throughput
    if found.throughput <= now.throughput * (1.0 + GAIN):
        return _stay(found, present, now), now.throughput
    return drop_unused_circuits(application, machine, present, found), now.throughput


def _stay(found: SearchResult, present: Topology, now: Solution) -> SearchResult:
    """Return the present circuits as the last iteration of the search."""
    before = found.trail[-1]
    last = Iteration.of(
        before.number + 1,
        now,
        removed=found.topology.beyond(present),
        inserted=present.beyond(found.topology),
        seconds=before.seconds,
    )
    return replace(found, topology=present, solution=now, trail=(*found.trail, last))


def _plan(
    application: Application,
    machine: Machine,
    search: CircuitSearchOptions,
    compared: _Comparison,
    bound: UpperBound,
) -> CircuitPlan:
    """Return the circuit plan as it is stored."""
    none = np.zeros(0, np.int32)
    found, present, compute = compared.found, compared.present, compared.compute_throughput
    given = search.reconfiguration_seconds
    return CircuitPlan(
        nodes=machine.nodes,
        max_degree=machine.max_degree,
        max_edges=machine.max_edges,
        compute_speed=machine.compute_speed,
        link_speed=machine.link_speed,
        node_of_vertex=compared.node_of_vertex,
        source=found.topology.source,
        target=found.topology.target,
        link_load=found.solution.link_load,
        present_source=none if present is None else present.source,
        present_target=none if present is None else present.target,
        throughput=min(found.throughput, compute),
        compute_throughput=compute,
        communication_throughput=found.solution.communication_throughput,
        present_throughput=compared.present_throughput,
        upper_bound=bound.throughput,
        bound=bound.name,
        reconfiguration_seconds=math.nan if given is None else given,
        gain=compared.gain,
        break_even_seconds=compared.break_even_seconds,
        number=np.array([one.number for one in found.trail], np.int32),
        bottleneck=tuple(one.bottleneck for one in found.trail),
        trail_throughput=np.minimum([one.throughput for one in found.trail], compute),
        complete=found.complete,
        seed=search.seed,
        method=search.method,
        routes=CircuitRoutes(
            of_nodes=compared.of_nodes,
            one=application.source,
            other=application.target,
            bytes=application.weight,
            first=found.solution.route_ptr,
            circuit=found.solution.route,
        ),
    )
