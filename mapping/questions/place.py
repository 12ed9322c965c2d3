"""Place and evaluate with the registry: resolve a request, place or evaluate the case, save the report.

The placement request: what to place, where and how, with all data by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from mapping.checks.finding import ErrorLimits, Subject
from mapping.cost.report import PlacementReport, report_given, report_pareto_set, report_placement
from mapping.distances.cost_model import Background, CostModel
from mapping.placement.case import PlacementCase
from mapping.placement.methods.baselines import in_order
from mapping.placement.methods.cores import ALL
from mapping.placement.search import SearchOptions
from mapping.traffic.measured_gain import worse_orders
from registry.errors import DatabaseError, InvalidValue, UnknownName
from registry.model import Allocation, Evaluation, HostOrder, Metrics, Placement, Time
from registry.model.hosts import HostLayout
from registry.model.views import one_line
from registry.progress import Progress, silent
from registry.registry import Registry
from registry.store.fabrics import Snapshot
from registry.store.jobs import StoredJob
from registry.store.placement_rows import PROPOSED, PlacementRecord, StoredPlacement
from registry.store.placements import rank_order
from registry.store.profiles import StoredProfile
from registry.units import code_version


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRequest:
    """A profile to place, or a placement to evaluate, by the names of the data."""

    profile: str | StoredProfile = ""
    """Name or id."""
    job: str | StoredJob | None = None
    """Job whose hosts and slots are used."""
    cluster: str | None = None
    """Cluster of the hosts, or of the job if two clusters have a job of that id."""
    hosts: tuple[str, ...] | None = None
    """Hosts of `cluster` in launch order, instead of a job."""
    slots: int | tuple[int, ...] | None = None
    """Ranks per host; default: the job's, else 1."""
    keep: str | StoredPlacement | HostOrder | None = None
    """Present placement, by the id of a saved one or by hosts. Without a job and hosts, its hosts are the
    allocation."""
    costs: CostModel = field(default_factory=CostModel)
    """Routing, rails, distances and the load of other jobs, such as all that run
    (`mapping.questions.live.with_running_jobs`)."""
    background: tuple[tuple[str, float | None], ...] = ()
    """Other jobs by the ids of saved placements, instead of a background of the cost model, with the seconds
    in which each sends its profile; None: in the same period as this one."""
    at: Time | None = None
    """Time of the fabric, also as ISO text; default: now."""
    options: SearchOptions = field(default_factory=SearchOptions)
    pins: Mapping[int, str | int] = field(default_factory=dict)
    """Rank -> the host that it must be on."""
    layouts: Mapping[str, HostLayout] = field(default_factory=dict)
    """Host layouts by name, or under `mapping.placement.methods.cores.ALL`; they override those of the
    registry."""

    __repr__ = one_line

    @property
    def job_id(self) -> str | None:
        """The scheduler's id of the job."""
        return self.job.job.id if isinstance(self.job, StoredJob) else self.job


BACKGROUND = "PlacementRequest.background"
"""Field that errors of the background name."""


def place(registry: Registry, request: PlacementRequest, progress: Progress = silent) -> PlacementReport:
    """Find a placement, evaluate it beside its baselines, and save it.

    A database that cannot save it (read-only, full) does not cost the result: see `PlacementReport.unsaved`.
    Ranks get cores on hosts whose layouts are in the registry or in the request. If the placement measured
    worse than ranks in order, the report has these instead, see `mapping.traffic.measured_gain`.

    Raises:
        UnknownName: An unknown profile, job, cluster, host, objective, routing or strategy.
        InfeasibleAllocation: More ranks than slots.
        DisconnectedAllocation, UnreachablePair
        InvalidPlacement: A pin or a present placement that does not fit.
        InvalidValue: The job has no hosts yet, or the fabric lacks the tables that the routing needs.
    """
    return keep_report(registry, report_placement(placement_case(registry, request), progress))


def placement_case(registry: Registry, request: PlacementRequest) -> PlacementCase:
    """Read the data that a request for a placement names, with the layouts of hosts; raises as `place`."""
    case = resolve(registry, request)
    if ALL in request.layouts:
        return case
    stored, known = registry.layouts.list(case.cluster, request.at), set(case.fabric.names)
    layouts = {one.host: one.layout for one in stored if one.host in known}
    return replace(case, layouts={**layouts, **request.layouts})


def keep_report(registry: Registry, report: PlacementReport) -> PlacementReport:
    """Save the placement that was found for a case, or ranks in order if it measured worse; as `place`."""
    case = report.case
    worse = "" if case.present is not None or case.pins else measured_worse(registry, case, report.placement)
    if worse:
        assert report.in_order is not None
        placement = in_order(case.profile.ranks, case.allocation)
        report = replace(report, placement=placement, evaluation=report.in_order, cores=None, measured=worse)
    return _try_to_save(registry, report)


def measured_worse(registry: Registry, case: PlacementCase, placement: Placement) -> str:
    """Return what was measured if this order of ranks ran slower than ranks in order; else an empty text."""
    runs = registry.measured_runs.list(case.cluster, case.profile.application)
    hosts = [case.fabric.names[host] for host in placement.host_of_rank.tolist()]
    found = worse_orders(runs).get(rank_order(hosts))
    return "" if found is None else found.text


def pareto(
    registry: Registry, request: PlacementRequest, progress: Progress = silent
) -> tuple[PlacementReport, ...]:
    """Find placements that trade congestion against hop-bytes, and save them; raises as `place`."""
    found = report_pareto_set(resolve(registry, request), progress)
    return tuple(_try_to_save(registry, one) for one in found)


def _try_to_save(registry: Registry, report: PlacementReport) -> PlacementReport:
    try:
        return save(registry, report)
    except DatabaseError as error:
        return replace(report, unsaved=error.reason)


def evaluate(registry: Registry, request: PlacementRequest) -> PlacementReport:
    """Evaluate the present placement of a request on its cluster as of a time; save nothing.

    Raises:
        UnknownName
        InvalidPlacement: The placement has another number of ranks than the profile.
        DisconnectedAllocation, UnreachablePair
        InvalidValue: The request has no present placement.
    """
    case = resolve(registry, request)
    if case.present is None:
        raise InvalidValue("PlacementRequest.keep", "a placement to evaluate is needed")
    return report_given(case, case.present, case.present_name)


def save(registry: Registry, report: PlacementReport, role: str = PROPOSED) -> PlacementReport:
    """Save the placement of a report and return the report with its id; `role` as in `record_of`."""
    return replace(report, record_id=registry.placements.save(record_of(report, role)))


def record_of(report: PlacementReport, role: str = PROPOSED) -> PlacementRecord:
    """Return the record of a report with baselines, to be saved.

    Args:
        role: Role of the placement for a running job.
    """
    case = report.case
    assert report.in_order is not None
    assert report.random is not None
    return PlacementRecord(
        cluster=case.cluster,
        content=case.snapshot,
        routing=case.tables,
        profile=case.profile_id,
        job=case.job,
        placement=report.placement,
        evaluation=report.evaluation,
        in_order=Metrics.of(report.in_order),
        random=report.random,
        code_version=code_version(),
        role=role,
    )


def subject_of(
    registry: Registry, cluster: str, at: Time | None = None, limits: ErrorLimits | None = None
) -> Subject:
    """Read what `mapping.checks.checks.check` needs: a fabric, its intended wiring, its counters.

    Args:
        at: Time of the fabric; default: the latest observation.
        limits: Limits of error counters, with the period over which they are compared.

    Raises:
        UnknownName: An unknown cluster, or no observation of the cluster until then.
    """
    snapshot, limits = registry.fabrics.read(cluster, at), limits or ErrorLimits()
    try:
        plan = registry.intended.read(cluster, at).wiring
    except UnknownName:
        plan = None
    start = snapshot.observed_at - limits.period
    return Subject(
        fabric=snapshot.fabric,
        plan=plan,
        counters=registry.counters.recent(cluster, limits.period, at),
        losses=registry.fabrics.losses(snapshot, start, at),
        limits=limits,
    )


def resolve(registry: Registry, request: PlacementRequest) -> PlacementCase:
    """Read the data that a request names.

    Raises:
        UnknownName, InvalidPlacement
        InvalidValue: A job without hosts, or neither a job nor a cluster with hosts; a background on another
            fabric.
    """
    stored, job = request.profile, request.job
    stored = registry.profiles.read(stored) if isinstance(stored, str) else stored
    job = registry.jobs.read(job, request.cluster) if isinstance(job, str) else job
    if job is not None and not job.job.hosts:
        raise InvalidValue("PlacementRequest.job", f"job {job.job.id!r} has no hosts: it is {job.job.state}")
    cluster = request.cluster if job is None else job.cluster
    if cluster is None or (job is None and not request.hosts and request.keep is None):
        raise InvalidValue("PlacementRequest.hosts", "a job, or a cluster with hosts, is needed")
    snapshot = registry.fabrics.read(cluster, request.at)
    hosts, slots = (request.hosts, 1) if job is None else (job.job.hosts, job.job.slots)
    slots = slots if request.slots is None else request.slots
    allocation = Allocation.of(snapshot.fabric, hosts, slots) if hosts else None
    present, name = None, ""
    if request.keep is not None:
        present, name = placement_on(registry, request.keep, snapshot)
        allocation = present.allocation if allocation is None else allocation
    assert allocation is not None
    return PlacementCase(
        profile=stored.profile,
        fabric=snapshot.fabric,
        allocation=allocation,
        host_names=tuple(hosts or ()),
        costs=_with_background(registry, request, snapshot),
        options=request.options,
        present=present,
        present_name=name,
        pins=request.pins,
        layouts=request.layouts,
        cluster=snapshot.cluster,
        snapshot=snapshot.id,
        tables=snapshot.routing,
        profile_id=stored.id,
        job=None if job is None else job.job.id,
        job_profile=_other_profile(registry, job, stored.id),
    )


def _other_profile(registry: Registry, job: StoredJob | None, profile: str) -> str:
    """Return the name of the profile that is attached to a job, if it is another one; else an empty text."""
    if job is None or job.profile in (None, profile):
        return ""
    return registry.profiles.read(str(job.profile)).profile.name


def placement_on(
    registry: Registry, given: str | StoredPlacement | HostOrder, snapshot: Snapshot
) -> tuple[Placement, str]:
    """Return a placement on the snapshot's fabric and its name; a saved one is mapped by host names.

    Raises:
        UnknownName: An unknown placement, or a host that the fabric lacks.
    """
    fabric = snapshot.fabric
    if isinstance(given, HostOrder):
        return given.on(fabric), given.name or given.source
    stored = registry.placements.read(given) if isinstance(given, str) else given
    if stored.content == snapshot.id:
        return stored.placement, stored.id
    older = registry.fabrics.read_content(stored.content).fabric
    names = [older.names[host] for host in stored.placement.allocation.hosts]
    allocation = Allocation.of(fabric, names, stored.placement.allocation.slots)
    moved = replace(stored.placement, host_of_rank=fabric.vertices(stored.hosts), allocation=allocation)
    return moved, stored.id


def _with_background(registry: Registry, request: PlacementRequest, snapshot: Snapshot) -> CostModel:
    """Return the cost model with the load of the saved placements, which must be on the same fabric.

    Raises:
        UnknownName
        InvalidValue: A placement on another fabric or without an evaluation, or seconds for only some of
            them.
    """
    others = request.background
    if not others:
        return request.costs
    if request.costs.background is not None:
        raise InvalidValue(BACKGROUND, "the cost model has a background: name no other placements")
    found: list[Evaluation] = []
    for name, _ in others:
        stored = registry.placements.read(name)
        if stored.content != snapshot.id:
            raise InvalidValue(BACKGROUND, f"placement {stored.id} is on another state of the fabric")
        if stored.evaluation is None:
            raise InvalidValue(BACKGROUND, f"placement {stored.id} was not evaluated")
        found.append(stored.evaluation)
    seconds = [period for _, period in others if period is not None]
    if seconds and len(seconds) != len(others):
        raise InvalidValue(BACKGROUND, "seconds are needed for all of the other jobs, or for none")
    background = Background.reduced(found, np.asarray(seconds)) if seconds else Background.added(found)
    return replace(request.costs, background=background)
