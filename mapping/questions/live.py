"""Traffic of the jobs that run on a cluster at a time, all on one fabric.

Time of an iteration of running jobs, measured at the counters of their hosts' own cables.

How much other jobs loaded the links of a measured run, as a number that is stored with it.

Ports of a cluster with the registry: counters, running jobs and fabric at one time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np

from mapping.checks.finding import ErrorLimits, port_errors
from mapping.distances.cost_model import CostModel
from mapping.placement.methods.baselines import in_order
from mapping.questions.place import PlacementRequest
from mapping.traffic.job_loads import JobTraffic, Loader, RankPairs, rank_pairs
from mapping.traffic.names import find_device, find_link, find_links
from mapping.traffic.ports import PortTable
from mapping.traffic.shared_load import JobLoad, SharedLoad, interference
from mapping.traffic.what_if import Change, WhatIf, what_if
from registry.errors import (
    AlmanacError,
    DisconnectedAllocation,
    InvalidPlacement,
    InvalidValue,
    UnknownName,
    UnreachablePair,
)
from registry.model import (
    Allocation,
    Bools,
    CounterDeltas,
    Fabric,
    Floats,
    HostOrder,
    Placement,
    Time,
    link_rates,
)
from registry.model.counter_deltas import LinkRates
from registry.model.job import MeasuredRun
from registry.model.placement import LoadedLinks, order_of_job
from registry.model.views import one_line
from registry.progress import Progress, silent
from registry.registry import Registry
from registry.store.running_jobs import Running, RunningJob


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unloaded:
    """A running job with a profile but without a known load."""

    job: RunningJob
    reason: str
    """Reason in one line."""

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Live:
    """Running jobs and their load on the links."""

    running: Running
    """Fabric at that time and all jobs, including those without traffic."""
    shared: SharedLoad
    """Jobs with a known load on ``running.snapshot.fabric``, in the order of ``running.jobs``."""
    placements: tuple[Placement, ...]
    """Placement of each job of ``shared.jobs``."""
    costs: CostModel
    """Routing (never None) and rails of all traffic."""
    because: str
    """Reason for the routing."""
    without_profile: tuple[RunningJob, ...]
    """Jobs whose profile is unknown; they load nothing here."""
    unloaded: tuple[Unloaded, ...]
    """Jobs with a profile that cannot be routed: hosts that the fabric lacks, or an unknown rank order."""
    evaluated: tuple[str, ...]
    """Jobs whose load was computed now because none was saved for this fabric and routing."""

    __repr__ = one_line

    @property
    def fabric(self) -> Fabric:
        """Fabric of all jobs."""
        return self.running.snapshot.fabric

    @property
    def routing(self) -> str:
        """Routing of all traffic."""
        return self.costs.choose_routing(self.fabric)[0]

    def job(self, job: str) -> RunningJob:
        """Return a running job by the scheduler's id, with or without traffic.

        Raises:
            UnknownName: An unknown job, with the closest ids.
        """
        known = {one.stored.job.id: one for one in self.running.jobs}
        if job not in known:
            raise UnknownName("running job", job, known)
        return known[job]


def traffic(
    registry: Registry,
    cluster: str,
    at: Time | None = None,
    costs: CostModel | None = None,
    progress: Progress = silent,
) -> Live:
    """Read the jobs that run on a cluster at a time, with their load on the links; save nothing.

    Loads that were saved for this fabric and routing are used; the others are computed, on routes that are
    built once.

    Args:
        at: Default: now.
        costs: Routing and rails; distances and background do not matter.

    Raises:
        UnknownName: An unknown cluster or routing, or no observation of the cluster until then.
        InvalidValue: The fabric lacks the tables that the routing needs.
    """
    running, costs = registry.running(cluster, at), costs or CostModel()
    fabric = running.snapshot.fabric
    routing, because = costs.choose_routing(fabric)
    costs = CostModel(routing=routing, rails=costs.rails)
    without, unloaded, placed = placed_jobs(running)
    kept = {job.stored.job.id: _saved_loads(job, running, costs) for job, _ in placed}
    missing = [(job, placement) for job, placement in placed if kept[job.stored.job.id] is None]
    found, failed = _evaluated(registry, fabric, missing, costs, progress)
    loads = {job: one for job, one in (kept | found).items() if one is not None}
    loaded = [(job, placement) for job, placement in placed if job.stored.job.id in loads]
    shared = (
        JobLoad(
            job=job.stored.job.id,
            user=job.stored.job.user,
            application=job.application,
            placement="" if job.present is None else job.present.id,
            iteration_seconds=job.stored.iteration_seconds,
            iteration_from=job.stored.iteration_from,
            loads=loads[job.stored.job.id],
        )
        for job, _ in loaded
    )
    return Live(
        running=running,
        shared=SharedLoad.of(fabric, shared),
        placements=tuple(placement for _, placement in loaded),
        costs=costs,
        because=because,
        without_profile=without,
        unloaded=(*unloaded, *failed),
        evaluated=tuple(found),
    )


def with_running_jobs(registry: Registry, request: PlacementRequest) -> PlacementRequest:
    """Return the request with the load of all other running jobs of its cluster as background.

    Raises:
        UnknownName, InvalidValue: As `traffic`; the request names no cluster.
    """
    if request.cluster is None:
        raise InvalidValue("PlacementRequest.cluster", "is needed for the load of running jobs")
    live = traffic(registry, request.cluster, request.at, request.costs)
    background = live.shared.background(request.job_id or "")
    return replace(request, at=live.running.at, costs=replace(request.costs, background=background))


def pairs_on(registry: Registry, live: Live, job: str, row: int, *, most: int | None = None) -> RankPairs:
    """Return the pairs of a running job's ranks that load a link (row of ``fabric.links``).

    Raises:
        UnknownName: A job without traffic, with the closest ids.
        InvalidValue: A row that does not exist.
    """
    number = live.shared.index(job)
    profile = live.job(job).stored.profile or ""
    found = registry.profiles.read_many([profile])[profile]
    return rank_pairs(live.fabric, found.profile, live.placements[number], row, live.costs, most=most)


def imagine(
    registry: Registry,
    live: Live,
    change: Change,
    *,
    rule: str | None = None,
    progress: Progress = silent,
) -> WhatIf:
    """Compute the effect of a change of the fabric on the running jobs; save nothing.

    Raises:
        UnknownName, InvalidValue: As `mapping.traffic.what_if.what_if`.
    """
    stored = [live.job(one.job).stored for one in live.shared.jobs]
    profiles = registry.profiles.read_many({one.profile for one in stored if one.profile})
    jobs = tuple(
        JobTraffic(
            job=load.job,
            user=load.user,
            application=load.application,
            placement_id=load.placement,
            profile=profiles[one.profile or ""].profile,
            placement=placement,
        )
        for load, one, placement in zip(live.shared.jobs, stored, live.placements, strict=True)
    )
    return what_if(
        live.fabric, jobs, change, rule=rule, costs=live.costs, before=live.shared, progress=progress
    )


PlacedJob = tuple[RunningJob, Placement]


def placed_jobs(running: Running) -> tuple[tuple[RunningJob, ...], tuple[Unloaded, ...], list[PlacedJob]]:
    """Return jobs without a profile, jobs with an unknown placement, and jobs with their placement."""
    without, unloaded, placed = [], [], []
    for job in running.jobs:
        if job.stored.profile is None:
            without.append(job)
            continue
        try:
            placed.append((job, _placement(job, running.snapshot.fabric)))
        except AlmanacError as error:
            unloaded.append(Unloaded(job=job, reason=error.reason))
    return tuple(without), tuple(unloaded), placed


def _placement(job: RunningJob, fabric: Fabric) -> Placement:
    """Return the placement of a job as reported, else by its distribution.

    Raises:
        UnknownName: A host that the fabric lacks.
        InvalidValue: The job has no hosts, or its rank order is unknown.
    """
    present = job.present
    if present is None:
        return order_of_job(job.stored.job).on(fabric)
    if present.placement is None:
        names = [fabric.names[vertex] for vertex in fabric.hosts.tolist()]
        raise UnknownName("host", present.missing_hosts[0], names)
    return present.placement


def _saved_loads(job: RunningJob, running: Running, costs: CostModel) -> LoadedLinks | None:
    """Return the saved loads of a job if they are of its profile and of this fabric and routing."""
    one, by_tables = job.present, "tables" in (costs.routing or "")
    if one is None or one.loads is None or one.profile != job.stored.profile:
        return None
    if (one.routing, one.rails) != (costs.routing, costs.rails):
        return None
    return None if by_tables and one.tables != running.snapshot.routing else one.loads


def _evaluated(
    registry: Registry,
    fabric: Fabric,
    placed: Sequence[PlacedJob],
    costs: CostModel,
    progress: Progress,
) -> tuple[dict[str, LoadedLinks], tuple[Unloaded, ...]]:
    """Compute loads by job; return them and the jobs that cannot be routed."""
    found: dict[str, LoadedLinks] = {}
    failed: list[Unloaded] = []
    if not placed:
        return found, ()
    profiles = registry.profiles.read_many({job.stored.profile or "" for job, _ in placed})
    loader = Loader(fabric, [placement for _, placement in placed], costs)
    for number, (job, placement) in enumerate(placed):
        progress("traffic of running jobs", number, len(placed))
        try:
            load = loader.load(profiles[job.stored.profile or ""].profile, placement)
        except (InvalidPlacement, DisconnectedAllocation, UnreachablePair) as error:
            failed.append(Unloaded(job=job, reason=error.reason))
        else:
            found[job.stored.job.id] = load
    progress("traffic of running jobs", len(placed), len(placed))
    return found, tuple(failed)


def link_of(registry: Registry, live: Live, text: str) -> int:
    """Return the row of ``live.fabric.links`` that leaves ``DEVICE:PORT``.

    Raises:
        UnknownName: With the closest names, or the other cluster that has it.
        InvalidValue: Several links match.
    """
    try:
        return find_link(live.fabric, text)
    except UnknownName as error:
        raise _located(registry, live, error) from error


def change_of(
    registry: Registry,
    live: Live,
    *,
    down: Iterable[str] = (),
    add: Iterable[str] = (),
    drain: Iterable[str] = (),
) -> Change:
    """Return a change of ``live.fabric`` from command line arguments; errors as `link_of`."""
    try:
        return Change.of(live.fabric, down=down, add=add, drain=drain)
    except UnknownName as error:
        raise _located(registry, live, error) from error


def _located(registry: Registry, live: Live, error: UnknownName) -> UnknownName:
    """Return the error, or one that names the first other cluster with such a link or device."""
    own = live.running.snapshot.cluster
    for info in registry.fabrics.clusters():
        if info.name != own and _has(registry.fabrics.read(info.name).fabric, error):
            remedy = f"cluster {info.name!r} has it, {own!r} has not"
            return UnknownName(error.kind, error.name, remedy=remedy)
    return error


def _has(fabric: Fabric, error: UnknownName) -> bool:
    try:
        if error.kind == "link":
            return len(find_links(fabric, error.name)) > 0
        find_device(fabric, error.name)
    except AlmanacError:
        return False
    return True


MEASURED = "measured"
"""Origin of a time of an iteration that follows from counters."""


def with_counters(registry: Registry, live: Live) -> Live:
    """Return running jobs with the times of iterations that their cluster's counters give.

    Nothing changes if the cluster has no counters.
    """
    try:
        rates = registry.counters.rates(live.running.snapshot.cluster, live.running.at)
    except UnknownName:
        return live
    return with_measured_iterations(live, rates)


def with_measured_iterations(live: Live, rates: LinkRates | None) -> Live:
    """Return running jobs with a measured time of an iteration if none is stated or traced.

    It is the bytes of the profile on the cables of the job's hosts over the bytes/s counted there. Only
    cables of hosts with no other running job count, and only if the job ran all the time of the counting.

    Args:
        rates: Rates of the links of ``live.fabric``.
    """
    shared, fabric = live.shared, live.fabric
    if rates is None or len(rates.bytes_per_second) != len(fabric.links):
        return live
    own = _cables_of_one_job(live) & ~rates.at_least & ~np.isnan(rates.bytes_per_second)
    jobs = []
    for number, load in enumerate(shared.jobs):
        started = live.job(load.job).stored.job.started_at
        if load.iteration_seconds is None and started is not None and started <= rates.start:
            seconds = _measured(shared, number, np.where(own, rates.bytes_per_second, 0.0))
            load = replace(load, iteration_seconds=seconds, iteration_from=MEASURED if seconds else "")
        jobs.append(load)
    return replace(live, shared=replace(shared, jobs=tuple(jobs)))


def utilisation(live: Live, rates: LinkRates | None) -> Floats | None:
    """Return the estimated utilisation of each link (float64[m]): the rates of all jobs over its capacity.

    None if nothing is loaded, or if a job that loads a link has no time per iteration.

    Args:
        rates: Rates of the links of ``live.fabric``, from which missing times are measured.
    """
    found = interference(with_measured_iterations(live, rates).shared).utilisation
    return found if found.any() and not np.isnan(found).any() else None


def _cables_of_one_job(live: Live) -> Bools:
    """Return which links (bool[m]) are cables of a host that only one running job uses."""
    fabric = live.fabric
    jobs = live.running.jobs
    vertex = fabric.known_vertices({host for one in jobs for host in one.stored.job.hosts})
    users = np.zeros(len(fabric), np.int64)
    for one in jobs:
        users[[vertex[host] for host in set(one.stored.job.hosts) if host in vertex]] += 1
    host_end = np.where(fabric.forwards[fabric.links.source], fabric.links.target, fabric.links.source)
    found: Bools = ~fabric.network_link & (users[host_end] == 1)
    return found


def _measured(shared: SharedLoad, job: int, rate: Floats) -> float | None:
    """Return the time of an iteration of a job by these rates of its own cables; None without traffic."""
    part = slice(int(shared.indptr[job]), int(shared.indptr[job + 1]))
    counted = rate[shared.link[part]]
    total = float(counted.sum())
    return float(shared.bytes[part][counted > 0].sum()) / total if total > 0 else None


def other_load(registry: Registry, run: MeasuredRun) -> float | None:
    """Return the largest share of a link's capacity that other jobs used, of the links of a run.

    Counted are the jobs that ran in the middle of the run, if their profile, time per iteration and rank
    order are known, at their mean rate, on the links that the traffic of the run takes.

    Returns:
        0.5 if the others sent half as many bytes/s as the link can take, above 1 if more by these estimates.
        0 if nothing else ran. None if none of the others is counted, or if the run has no profile.

    Raises:
        UnknownName, InvalidValue, InvalidPlacement: The fabric lacks a host, or the load cannot be computed.
    """
    middle = run.started_at + timedelta(seconds=run.wall_seconds / 2)
    live = traffic(registry, run.cluster, middle)
    others = [one for one in live.running.jobs if one.stored.job.id != run.job]
    if not others:
        return 0.0
    counted = [one for one in live.shared.jobs if one.job != run.job and one.iteration_seconds]
    if not counted or run.profile is None:
        return None
    profile = registry.profiles.read(run.profile).profile
    placement = _other_placement(registry, run, live.fabric)
    own = Loader(live.fabric, [placement], live.costs).load(profile, placement).link
    rates = np.zeros(len(live.fabric.links.capacity))
    for job in counted:
        rates[job.loads.link] += job.loads.bytes / (job.iteration_seconds or 1.0)
    return float((rates / live.fabric.links.capacity)[own].max(initial=0.0))


def _other_placement(registry: Registry, run: MeasuredRun, fabric: Fabric) -> Placement:
    """Return where the ranks of a run were, on a fabric."""
    if run.placement is None:
        return in_order(run.ranks, Allocation.of(fabric, run.hosts, run.slots))
    return HostOrder(hosts=registry.placements.read(run.placement).hosts).on(fabric)


def read_ports(registry: Registry, live: Live, limits: ErrorLimits, since: Time | None = None) -> PortTable:
    """Read the growth of a cluster's port counters until the time of its running jobs.

    After the first sweep, errors are those since the ports' counters were reset.

    Args:
        since: Errors and utilisation since this time. Default: errors in the period of `limits`, utilisation
            between the last two sweeps.

    Raises:
        UnknownName: The cluster has counters, but no two sweeps since then.
    """
    cluster, at = live.running.snapshot.cluster, live.running.at
    rates: LinkRates | None = None
    if since is None:
        grown = registry.counters.recent(cluster, limits.period, at)
        try:
            rates = registry.counters.rates(cluster, at)
        except UnknownName:  # no sweeps, or only sweeps of errors
            rates = None
        grown = grown or _since_reset(registry, cluster, at)
    else:
        grown = registry.counters.between(cluster, since, at)
        rates = link_rates(live.fabric, grown)
    jobs: defaultdict[str, list[str]] = defaultdict(list)
    known = live.fabric.known_vertices({host for one in live.running.jobs for host in one.stored.job.hosts})
    for job in live.running.jobs:
        for host in job.stored.job.hosts:
            name = live.fabric.names[known[host]] if host in known else host
            jobs[name].append(job.stored.job.id)
    return PortTable(
        shared=live.shared,
        jobs_of_host={host: tuple(ids) for host, ids in jobs.items()},
        errors=None if grown is None else port_errors(live.fabric, grown, limits),
        rates=rates,
    )


def _since_reset(registry: Registry, cluster: str, at: Time) -> CounterDeltas | None:
    """Return what the last sweep counted in all; None without a sweep."""
    try:
        return CounterDeltas.since_reset(registry.counters.read(cluster, at))
    except UnknownName:
        return None
