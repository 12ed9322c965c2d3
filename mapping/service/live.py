"""Traffic of the jobs that run on a cluster at a time, all on one fabric."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mapping.distances.cost_model import CostModel
from mapping.service.request import PlacementRequest
from mapping.traffic.device_names import find_device, find_link, find_links
from mapping.traffic.job_loads import JobTraffic, Loader, RankPairs, rank_pairs
from mapping.traffic.shared_load import JobLoad, SharedLoad
from mapping.traffic.what_if import Change, WhatIf, what_if
from registry.errors import (
    AlmanacError,
    DisconnectedAllocation,
    InvalidPlacement,
    InvalidValue,
    UnknownName,
    UnreachablePair,
)
from registry.model import Fabric, Placement, Time
from registry.model.placement import LoadedLinks, order_of_job
from registry.model.views import one_line
from registry.progress import Progress, silent
from registry.registry import Registry
from registry.store.running_jobs import Running, RunningJob


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unloaded:
    """A running job with a profile but without a known load.

    Attributes
    ----------
    job : RunningJob
    reason : str
        Reason in one line.
    """

    job: RunningJob
    reason: str

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Live:
    """Running jobs and their load on the links.

    Attributes
    ----------
    running : Running
        Fabric at that time and all jobs, including those without traffic.
    shared : SharedLoad
        Jobs with a known load on ``running.snapshot.fabric``, in the order of ``running.jobs``.
    placements : tuple of Placement
        Placement of each job of ``shared.jobs``.
    costs : CostModel
        Routing (never None) and rails of all traffic.
    because : str
        Reason for the routing.
    without_profile : tuple of RunningJob
        Jobs whose profile is unknown; they load nothing here.
    unloaded : tuple of Unloaded
        Jobs with a profile that cannot be routed: hosts that the fabric lacks, or an unknown rank order.
    evaluated : tuple of str
        Jobs whose load was computed now because none was saved for this fabric and routing.
    """

    running: Running
    shared: SharedLoad
    placements: tuple[Placement, ...]
    costs: CostModel
    because: str
    without_profile: tuple[RunningJob, ...]
    unloaded: tuple[Unloaded, ...]
    evaluated: tuple[str, ...]

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

        Raises
        ------
        UnknownName
            An unknown job, with the closest ids.
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

    Parameters
    ----------
    at : datetime, optional
        Default: now.
    costs : CostModel, optional
        Routing and rails; distances and background do not matter.

    Raises
    ------
    UnknownName
        An unknown cluster or routing, or no observation of the cluster until then.
    InvalidValue
        The fabric lacks the tables that the routing needs.
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

    Raises
    ------
    UnknownName, InvalidValue
        As `traffic`; the request names no cluster.
    """
    if request.cluster is None:
        raise InvalidValue("PlacementRequest.cluster", "is needed for the load of running jobs")
    live = traffic(registry, request.cluster, request.at, request.costs)
    background = live.shared.background(request.job_id or "")
    return replace(request, at=live.running.at, costs=replace(request.costs, background=background))


def pairs_on(registry: Registry, live: Live, job: str, row: int, *, most: int | None = None) -> RankPairs:
    """Return the pairs of a running job's ranks that load a link (row of ``fabric.links``).

    Raises
    ------
    UnknownName
        A job without traffic, with the closest ids.
    InvalidValue
        A row that does not exist.
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

    Raises
    ------
    UnknownName, InvalidValue
        As `mapping.traffic.what_if.what_if`.
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

    Raises
    ------
    UnknownName
        A host that the fabric lacks.
    InvalidValue
        The job has no hosts, or its rank order is unknown.
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

    Raises
    ------
    UnknownName
        With the closest names, or the other cluster that has it.
    InvalidValue
        Several links match.
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
