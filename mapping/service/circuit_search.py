"""Circuit plans of an optical switch, for a profile or for running jobs: search, compare and save."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mapping.deadline import Deadline
from mapping.reconfiguration.bounds import UpperBound, pinned_bound, throughput_bound
from mapping.reconfiguration.model.solution import GAIN, Iteration, SearchResult, Solution
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper.loop import PATIENCE, SKIP, LoopOptions, co_optimise
from mapping.reconfiguration.paper.partition import LOWEST
from mapping.reconfiguration.paper.refinement import Refinement
from mapping.reconfiguration.paper.seed_topology import CONDENSED
from mapping.reconfiguration.plan.few_moves import drop_unused_circuits, relabel_nodes
from mapping.reconfiguration.plan.next_circuits import break_even_seconds, next_circuits
from mapping.reconfiguration.search.best_partition import best_partition
from mapping.reconfiguration.search.local_search import (
    BEST_SEEDS,
    TRIALS,
    TrialOptions,
    search_from_seeds,
)
from mapping.service.circuits import CircuitPlanCase
from registry.errors import InvalidValue
from registry.model.circuit_plan import BEST, METHODS, PAPER, CircuitPlan, CircuitRoutes
from registry.model.views import one_line
from registry.progress import Progress, silent
from registry.registry import Registry
from registry.store.circuit_plans import CircuitPlanRecord
from registry.units import code_version

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
    steps : int or None
        Steps of each refinement in the loop of the paper; default: no limit.
    expansion : str or None
        Edges that the loop of the paper matches first: those of the ``lowest`` expansion (default) or of the
        ``highest``.
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
    steps: int | None = None
    expansion: str | None = None
    trials: int | None = None
    seconds: float | None = None
    seed: int = 0
    reconfiguration_seconds: float | None = None
    weights: str | None = None

    __repr__ = one_line

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InvalidValue("method", f"{self.method!r} is none of {', '.join(METHODS)}")
        given = self.reconfiguration_seconds
        if given is not None and not (math.isfinite(given) and given >= 0.0):
            raise InvalidValue("reconfiguration_seconds", f"is {given}, must be finite and not negative")

    @property
    def parameters(self) -> Mapping[str, str | int | float | bool]:
        """Options that were given, by name, as stored with the plan."""
        names = ("start", "patience", "skip", "steps", "expansion", "trials", "seconds", "weights")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return given | ({"start": GIVEN} if isinstance(self.start, Topology) else {})

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
            refinement=Refinement(steps=self.steps),
            expansion=LOWEST if self.expansion is None else self.expansion,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CircuitPlanReport:
    """A circuit plan, and how it was found.

    Attributes
    ----------
    case : CircuitPlanCase
    options : CircuitSearchOptions
    trail : tuple of Iteration
        Iterations of the search, with the circuits that each removed and added.
    plan : CircuitPlan
    bound : UpperBound
        Upper bound of `plan`, with its proof.
    seconds : float
        Wall seconds of the search.
    record_id : str
        Id of the saved plan; empty if it was not saved.
    """

    case: CircuitPlanCase
    options: CircuitSearchOptions
    trail: tuple[Iteration, ...]
    plan: CircuitPlan
    bound: UpperBound
    seconds: float
    record_id: str = ""

    __repr__ = one_line

    @property
    def improvement(self) -> float:
        """Throughput relative to that of the first topology."""
        first = float(self.plan.trail_throughput[0])
        return 1.0 if self.plan.throughput == first else self.plan.throughput / first

    @property
    def seconds_saved(self) -> float:
        """Seconds per profile that the plan saves compared with the present circuits; nan if unknown."""
        return 1.0 / self.plan.present_throughput - 1.0 / self.plan.throughput

    @property
    def break_even_profiles(self) -> float:
        """Profiles after which moving circuits has paid off; nan if it never does."""
        saved = self.seconds_saved
        return self.plan.reconfiguration_seconds / saved if saved > 0.0 else math.nan


class _Compared(NamedTuple):
    """Result of a search, compared with the present circuits.

    Attributes
    ----------
    found : SearchResult
    bound : UpperBound
    present_throughput : float
        Throughput of the present circuits; nan if unknown.
    gain : float
        Throughput over the present one; nan if unknown.
    """

    found: SearchResult
    bound: UpperBound
    present_throughput: float
    gain: float


def plan_circuits(
    case: CircuitPlanCase, options: CircuitSearchOptions, progress: Progress = silent
) -> CircuitPlanReport:
    """Search circuits and routes, a node for each rank if ranks do not stay; compare with the present ones.

    If no better circuits are found, the present ones are the plan, except with the loop of the paper. If
    ranks stay, all traffic between two hosts uses one path, as with forwarding by destination.

    Raises
    ------
    InvalidValue
        No running job is on the switch, or the present circuits exceed its limits or do not connect it.
    UnknownName
        As of `mapping.reconfiguration.search.local_search.search_from_seeds`.
    """
    clock = Deadline()
    search = _place_ranks if case.node_of_rank is None else _keep_ranks
    compared = search(case, options, progress)
    return CircuitPlanReport(
        case=case,
        options=options,
        trail=compared.found.trail,
        plan=_plan(case, options, compared),
        bound=compared.bound,
        seconds=clock.elapsed,
    )


def save_circuits(registry: Registry, report: CircuitPlanReport) -> CircuitPlanReport:
    """Save the circuit plan of a report and return the report with its id.

    Raises
    ------
    UnknownName, InvalidValue
        As `registry.store.circuit_plans.CircuitPlans.save`.
    """
    case = report.case
    record = CircuitPlanRecord(
        cluster=None if case.switch is None else case.switch.cluster,
        hosts=case.hosts,
        profiles=tuple(one.id for one in case.profiles),
        ranks=tuple(one.profile.ranks for one in case.profiles),
        jobs=() if case.jobs is None else tuple(one.stored.job.id for one in case.jobs.jobs),
        plan=report.plan,
        parameters=report.options.parameters,
        wall_seconds=report.seconds,
        code_version=code_version(),
    )
    return replace(report, record_id=registry.circuit_plans.save(record))


def _place_ranks(case: CircuitPlanCase, options: CircuitSearchOptions, progress: Progress) -> _Compared:
    """Search circuits and a node for each rank; the present circuits are compared by their best partition."""
    if case.present is not None:
        case.present.require(case.machine)
    # first: an interrupt later must not lose the result
    bound = throughput_bound(case.application, case.machine)
    found = _search(case, options, progress)
    now = math.nan
    if case.present is not None:
        found, now = _compare(case, options, case.present, found)
    gain = found.throughput / now if found.throughput != now else 1.0
    return _Compared(found, bound, now, gain)


def _keep_ranks(case: CircuitPlanCase, options: CircuitSearchOptions, progress: Progress) -> _Compared:
    """Search the next circuits of a switch; the vertices of the application are its nodes."""
    if case.jobs is not None and not case.jobs.jobs and case.switch is not None:
        reason = f"no running job with a known profile is on the optical switch of {case.switch.cluster}"
        raise InvalidValue("reconfigure.jobs", reason)
    node, limit = np.arange(case.machine.nodes), case.compute_throughput
    bound = pinned_bound(case.application, case.machine, node)
    next_ = next_circuits(
        case.application,
        case.machine,
        case.present,
        node,
        options.trial_options(options.seconds),
        reconfiguration_seconds=options.reconfiguration_seconds,
        compute_throughput=limit,
        progress=progress,
    )
    if limit < bound.throughput:
        proof = "the node with most computation takes that long with any circuits"
        bound = UpperBound(name="compute", throughput=limit, proof=proof)
    now = math.nan if next_.present is None else min(next_.present.throughput, limit)
    return _Compared(next_.found, bound, now, next_.gain)


def _search(case: CircuitPlanCase, options: CircuitSearchOptions, progress: Progress) -> SearchResult:
    """Return the result of the search; a comparison with present circuits gets a part of its time."""
    part = 1.0 if case.present is None else 1.0 - PRESENT
    seconds = None if options.seconds is None else part * options.seconds
    if options.method == PAPER:
        return co_optimise(case.application, case.machine, options.loop_options(seconds), progress=progress)
    return search_from_seeds(
        case.application,
        case.machine,
        options.trial_options(seconds),
        seed_topologies=BEST_SEEDS if options.start is None else (options.start,),
        progress=progress,
    )


def _compare(
    case: CircuitPlanCase, options: CircuitSearchOptions, present: Topology, found: SearchResult
) -> tuple[SearchResult, float]:
    """Return the result to propose and the throughput of the present circuits, or nan after an interrupt.

    Our own search numbers nodes so that few circuits move, proposes the present circuits if it found none
    better, else keeps present circuits in place of new ones without traffic. The result of the paper's loop
    is not changed.
    """
    application, machine = case.application, case.machine
    partitions = [found.solution.node_of_vertex]
    seconds = None if options.seconds is None else PRESENT * options.seconds
    deadline = Deadline()
    with deadline.interruptible():
        if options.method != PAPER:
            found = relabel_nodes(application, machine, present, found)
            partitions.append(found.solution.node_of_vertex)
        now, complete = best_partition(
            application, machine, present, partitions=partitions, seed=options.seed, seconds=seconds
        )
    if deadline.interrupted:
        return replace(found, complete=False), math.nan
    found = replace(found, complete=found.complete and complete)
    same = not (found.topology.beyond(present) or present.beyond(found.topology))
    if same and found.throughput >= now.throughput:
        return found, found.throughput
    if options.method == PAPER:
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


def _plan(case: CircuitPlanCase, options: CircuitSearchOptions, compared: _Compared) -> CircuitPlan:
    """Return the circuit plan as it is stored."""
    none = np.zeros(0, np.int32)
    application, machine, present = case.application, case.machine, case.present
    found, gain, given = compared.found, compared.gain, options.reconfiguration_seconds
    nodes, compute = found.solution.node_of_vertex, found.solution.compute_throughput
    if case.node_of_rank is not None:
        nodes, compute = case.node_of_rank, case.compute_throughput
    return CircuitPlan(
        nodes=machine.nodes,
        max_degree=machine.max_degree,
        max_edges=machine.max_edges,
        compute_speed=machine.compute_speed,
        link_speed=machine.link_speed,
        node_of_vertex=nodes,
        source=found.topology.source,
        target=found.topology.target,
        link_load=found.solution.link_load,
        present_source=none if present is None else present.source,
        present_target=none if present is None else present.target,
        throughput=min(found.throughput, compute),
        compute_throughput=compute,
        communication_throughput=found.solution.communication_throughput,
        present_throughput=compared.present_throughput,
        upper_bound=compared.bound.throughput,
        bound=compared.bound.name,
        reconfiguration_seconds=math.nan if given is None else given,
        gain=gain,
        break_even_seconds=break_even_seconds(gain, given),
        number=np.array([one.number for one in found.trail], np.int32),
        bottleneck=tuple(one.bottleneck for one in found.trail),
        trail_throughput=np.minimum([one.throughput for one in found.trail], compute),
        complete=found.complete,
        seed=options.seed,
        method=options.method,
        routes=CircuitRoutes(
            of_nodes=case.node_of_rank is not None,
            one=application.source,
            other=application.target,
            bytes=application.weight,
            first=found.solution.route_ptr,
            circuit=found.solution.route,
        ),
    )
