"""Requests for circuit plans: the application, the optical switch and the running jobs that they name.

Circuit plans of an optical switch, for a profile or for running jobs: search, compare and save.

Circuit plans searched with several seeds, on this machine or on a cluster.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np

from mapping.circuits.bounds import UpperBound, pinned_bound, throughput_bound
from mapping.circuits.local_search import BEST_SEEDS, TRIALS, TrialOptions, search_from_seeds
from mapping.circuits.paper import PATIENCE, SKIP, LoopOptions, co_optimise
from mapping.circuits.paper_partition import LOWEST, Refinement
from mapping.circuits.paper_seeds import CONDENSED
from mapping.circuits.plan import break_even_seconds, drop_unused_circuits, next_circuits, relabel_nodes
from mapping.circuits.problem import Application, Machine, Topology
from mapping.circuits.search import best_partition
from mapping.circuits.solution import GAIN, Iteration, SearchResult, Solution
from mapping.cluster import Cluster
from mapping.deadline import Deadline
from mapping.questions.live import Unloaded, placed_jobs
from registry.errors import InvalidValue, WrongRanks
from registry.model import Ints, Placement, Time
from registry.model.circuit_plan import BEST, METHODS, PAPER, CircuitPlan, CircuitRoutes
from registry.model.views import one_line
from registry.progress import Progress, silent
from registry.registry import Registry
from registry.store.circuit_plans import CircuitPlanRecord, OpticalSwitch
from registry.store.profiles import StoredProfile
from registry.store.running_jobs import Running, RunningJob
from registry.units import code_version


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitPlanRequest:
    """Circuits to plan, by the names of the data."""

    profile: str | None = None
    """Name or id; None: all running jobs on the switch, whose ranks stay on their hosts."""
    cluster: str | None = None
    """Cluster whose optical switch is used."""
    at: Time | None = None
    """Time of the running jobs; default: now."""
    compute_seconds: float | None = None
    """Computing time of each rank; default: the switch's. Ranks that are placed need some, or all would be
    placed on one node: 1 if the switch has none."""
    machine: Machine | None = None
    """Nodes and circuits, if no cluster is given; its compute speed follows from `compute_seconds`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobsOnSwitch:
    """Running jobs whose hosts are on an optical switch."""

    running: Running
    """All running jobs of the cluster, including those left out here."""
    jobs: tuple[RunningJob, ...]
    """Jobs with a known profile and all ranks on hosts of the switch, in the order of `running`."""
    without_profile: tuple[RunningJob, ...]
    """Jobs left out because their profile is not known."""
    unloaded: tuple[Unloaded, ...]
    """Jobs left out although their profile is known, with the reason: not on the switch, or no placement."""

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CircuitPlanCase:
    """The data of a circuit plan."""

    application: Application
    """Traffic between ranks, or between the nodes of the switch if ranks stay."""
    machine: Machine
    """Nodes of the switch, and the limits of its circuits."""
    present: Topology | None = None
    """Present circuits, if known."""
    compute_seconds: float = 0.0
    """Computing time of each rank."""
    node_of_rank: Ints | None = None
    """int32[ranks]: Node of each rank, one job after the other; None: ranks are placed, too."""
    profiles: tuple[StoredProfile, ...] = ()
    """The profile to plan for, or the profile of each job."""
    switch: OpticalSwitch | None = None
    """Switch of a cluster."""
    jobs: JobsOnSwitch | None = None
    """The running jobs, if their ranks stay."""

    __repr__ = one_line

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of the nodes; empty if they have only numbers."""
        return () if self.switch is None else self.switch.hosts

    @property
    def compute_throughput(self) -> float:
        """Largest throughput that computing allows if ranks stay."""
        fullest = float(self.application.vertex_weight.max()) * self.compute_seconds
        return 1.0 / fullest if fullest > 0.0 else math.inf


def circuit_case(registry: Registry, request: CircuitPlanRequest) -> CircuitPlanCase:
    """Read the data that a request names.

    Raises:
        UnknownName: There is no such profile or cluster, or the cluster has no optical switch.
        InvalidValue: The computing time is out of range, or ranks of the profile exchange nothing.
    """
    if request.profile is None:
        return _case_of_jobs(registry, request)
    stored = registry.profiles.read(request.profile)
    switch = None if request.cluster is None else registry.optical.read(request.cluster)
    seconds = request.compute_seconds
    if seconds is None:
        seconds = switch.compute_seconds if switch is not None and switch.compute_seconds > 0.0 else 1.0
    if not (math.isfinite(seconds) and seconds > 0.0):
        raise InvalidValue("compute_seconds", f"is {seconds}, must be finite and above zero")
    if switch is not None:
        machine = machine_of(switch, seconds)
    elif request.machine is not None:
        machine = replace(request.machine, compute_speed=1.0 / seconds)
    else:
        raise InvalidValue("CircuitPlanRequest.machine", "a machine or a cluster is needed")
    return CircuitPlanCase(
        application=Application.of_profile(stored.profile),
        machine=machine,
        present=None if switch is None else topology_of(switch),
        compute_seconds=seconds,
        profiles=(stored,),
        switch=switch,
    )


def _case_of_jobs(registry: Registry, request: CircuitPlanRequest) -> CircuitPlanCase:
    """Return the case of the jobs that run on the switch; each sends its profile once, weighted by ranks."""
    if request.cluster is None:
        raise InvalidValue("CircuitPlanRequest.cluster", "a profile or a cluster is needed")
    switch = registry.optical.read(request.cluster)
    running = registry.running(request.cluster, request.at)
    without, unloaded, placed = placed_jobs(running)
    stored = registry.profiles.read_many({job.stored.profile or "" for job, _ in placed})
    jobs, profiles, left_out = [], [], list(unloaded)
    nodes = [np.zeros(0, np.int32)]
    for job, placement in placed:
        profile = stored[job.stored.profile or ""]
        try:
            nodes.append(_nodes(placement, running, switch, profile))
        except (InvalidValue, WrongRanks) as error:
            left_out.append(Unloaded(job=job, reason=error.reason))
            continue
        jobs.append(job)
        profiles.append(profile)
    each = list(zip(nodes[1:], (one.profile for one in profiles), strict=True))
    node_of_rank = np.concatenate(nodes)
    return CircuitPlanCase(
        application=Application.from_edges(
            np.concatenate([nodes[0], *(at[one.sender] for at, one in each)]),
            np.concatenate([nodes[0], *(at[one.partner] for at, one in each)]),
            np.concatenate([np.zeros(0), *(one.bytes for _, one in each)]),
            vertex_weight=np.bincount(node_of_rank, minlength=len(switch.hosts)),
            connected=False,
        ),
        machine=machine_of(switch, request.compute_seconds),
        present=topology_of(switch),
        compute_seconds=switch.compute_seconds
        if request.compute_seconds is None
        else request.compute_seconds,
        node_of_rank=node_of_rank,
        profiles=tuple(profiles),
        switch=switch,
        jobs=JobsOnSwitch(
            running=running, jobs=tuple(jobs), without_profile=without, unloaded=tuple(left_out)
        ),
    )


def machine_of(switch: OpticalSwitch, compute_seconds: float | None = None) -> Machine:
    """Return the machine that a switch forms; its compute speed is 1 if computing takes no time.

    Args:
        compute_seconds: Seconds per rank that replace `OpticalSwitch.compute_seconds`.

    Raises:
        InvalidValue: Negative or infinite seconds.
    """
    each = switch.compute_seconds if compute_seconds is None else compute_seconds
    if not 0.0 <= each < math.inf:
        raise InvalidValue("compute_seconds", f"is {each}, must be finite and not negative")
    return Machine(
        nodes=len(switch.hosts),
        max_degree=switch.max_degree,
        max_edges=switch.max_edges,
        compute_speed=1.0 / each if each > 0.0 else 1.0,
        link_speed=switch.link_speed,
    )


def topology_of(switch: OpticalSwitch) -> Topology | None:
    """Return the present circuits of a switch, or None if they are not known."""
    return Topology.of(len(switch.hosts), switch.circuits) if switch.circuits else None


def _nodes(placement: Placement, running: Running, switch: OpticalSwitch, profile: StoredProfile) -> Ints:
    """Return the switch's node of each rank: int32[ranks].

    Raises:
        WrongRanks: The profile has another number of ranks.
        InvalidValue: A host is not on the switch.
    """
    if placement.ranks != profile.profile.ranks:
        raise WrongRanks(placement.ranks, profile.profile.ranks)
    number = {host: node for node, host in enumerate(switch.hosts)}
    names = [running.snapshot.fabric.names[vertex] for vertex in placement.host_of_rank.tolist()]
    if missing := sorted(set(names) - number.keys()):
        raise InvalidValue("hosts", f"{missing[0]!r} is not on the optical switch")
    return np.array([number[name] for name in names], np.int32)


GIVEN = "given"
"""Name of a first topology that was given as circuits."""
PRESENT = 0.25
"""Part of the seconds of a search for what the present circuits can give."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CircuitSearchOptions:
    """How a circuit plan is searched.

    Raises:
        InvalidValue: The method is unknown, or the seconds are negative or infinite.
    """

    method: str = BEST
    """``paper``: only the loop of the paper; ``best``: our own search after it."""
    start: str | Topology | None = None
    """First topology; default: the condensed graph, and for `best` a torus too."""
    patience: int | None = None
    skip: float | None = None
    """Parameters of the loop of the paper."""
    steps: int | None = None
    """Steps of each refinement in the loop of the paper; default: no limit."""
    expansion: str | None = None
    """Edges that the loop of the paper matches first: those of the ``lowest`` expansion (default) or of the
    ``highest``."""
    trials: int | None = None
    """Number of changes of circuits that our own search tries."""
    seconds: float | None = None
    """Approximate limit of the whole search; default: no limit."""
    seed: int = 0
    """Seed of the random numbers."""
    reconfiguration_seconds: float | None = None
    """Time for which nothing flows while circuits move; finite, >= 0."""
    weights: str | None = None
    """Identifies the weights of the vertices, for instance by a digest; None: all are equal."""

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
    """A circuit plan, and how it was found."""

    case: CircuitPlanCase
    options: CircuitSearchOptions
    trail: tuple[Iteration, ...]
    """Iterations of the search, with the circuits that each removed and added."""
    plan: CircuitPlan
    bound: UpperBound
    """Upper bound of `plan`, with its proof."""
    seconds: float
    """Wall seconds of the search."""
    record_id: str = ""
    """Id of the saved plan; empty if it was not saved."""

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
    """Result of a search, compared with the present circuits."""

    found: SearchResult
    bound: UpperBound
    present_throughput: float
    """Throughput of the present circuits; nan if unknown."""
    gain: float
    """Throughput over the present one; nan if unknown."""


def plan_circuits(
    case: CircuitPlanCase, options: CircuitSearchOptions, progress: Progress = silent
) -> CircuitPlanReport:
    """Search circuits and routes, a node for each rank if ranks do not stay; compare with the present ones.

    If no better circuits are found, the present ones are the plan, except with the loop of the paper. If
    ranks stay, all traffic between two hosts uses one path, as with forwarding by destination.

    Raises:
        InvalidValue: No running job is on the switch, or the present circuits exceed its limits or do not
            connect it.
        UnknownName: As of `mapping.circuits.local_search.search_from_seeds`.
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

    Raises:
        UnknownName, InvalidValue: As `registry.store.circuit_plans.CircuitPlans.save`.
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


def plan_circuits_of_seeds(
    case: CircuitPlanCase,
    options: CircuitSearchOptions,
    seeds: int,
    progress: Progress = silent,
    cluster: Cluster | None = None,
) -> CircuitPlanReport:
    """Search circuits with the seed of the options and the following ones; return the best plan.

    Its `seed` is the one with which it was found. Errors and interrupts as of `plan_circuits`.

    Args:
        cluster: Search with all seeds there at the same time; default: one after the other.
    """
    several = [replace(options, seed=options.seed + number) for number in range(seeds)]
    reports: dict[int, CircuitPlanReport] = {}
    try:
        if cluster is not None:
            cluster.share(case)
            tasks = [(case, one) for one in several]
            for number, result in cluster.run(_plan_circuits_elsewhere, tasks, "seeds", progress):
                reports[number] = replace(result.result(), case=case)
        else:
            for number, one in enumerate(several):
                reports[number] = plan_circuits(case, one, progress)
                if not reports[number].plan.complete:
                    break
    except KeyboardInterrupt:
        if not reports:
            raise
    best = min(reports, key=lambda number: (-reports[number].plan.throughput, number))
    complete = len(reports) == seeds and all(one.plan.complete for one in reports.values())
    plan = replace(reports[best].plan, complete=complete)
    return replace(reports[best], plan=plan)


def _plan_circuits_elsewhere(case: CircuitPlanCase, options: CircuitSearchOptions) -> CircuitPlanReport:
    """Return the report without its case, which the caller has."""
    return replace(plan_circuits(case, options), case=cast(CircuitPlanCase, None))
