"""Fill a registry with the demonstration: real files, generated data, and results computed from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from almanac.demo import data
from registry.errors import UnknownName
from registry.progress import Progress, silent

if TYPE_CHECKING:
    from mapping.cost.report import PlacementReport
    from mapping.questions.circuits import CircuitPlanReport
    from mapping.questions.simulate import SimulationReport
    from registry.model import Fabric, Job
    from registry.registry import Registry

DATA = Path(__file__).parent.parent / "demo_data"
SCAN = (DATA / "ndr-dgx.ibnetdiscover", DATA / "opensm-lfts.dump.gz")
"""Scan of a real fabric, and forwarding tables for it."""
CLUSTER = "demo-ndr"
PROFILE = "demo-hpcg-64"
JOB = "4711"
"""The last nightly job, which slows down after a cable was lost."""
STEPS = 400_000
"""Steps of the search: a number instead of a time, so that a second run finds the same placement."""
RUNNING = {"4712": PROFILE, "4713": "demo-training-64", "4714": "demo-lulesh-64"}
"""Profile of each running job."""
JOBS = (DATA / "slurm_job.txt", DATA / "slurm_running.txt")
"""Records of `JOB` and of the running jobs."""
ADVICE_STEPS = 40_000
"""Search steps for each running job."""
IN_ORDER = "in order"
BASELINES = {IN_ORDER: "in-order", "random": "random"}
"""Placements to compare by simulation with the one that is found: name and strategy."""
ROUNDS = 50
"""Times that the profile is sent: HPCG runs 50 iterations at a time."""
EVERY = 500
"""Messages between two points of the delivered traffic over time."""
OPTICAL = "demo-optical"
ON_CIRCUITS = {"5001": PROFILE, "5002": "demo-training-64"}
"""Profile of each job that runs on the optical cluster."""
RECONFIGURATION_SECONDS = 3.0
"""Time that moving circuits takes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DemoResult:
    """Results of the demonstration; all of them are saved."""

    moment: datetime
    """Time to which all times of the demonstration are relative, UTC."""
    placed: PlacementReport
    """Placement of the ranks of `JOB`."""
    simulated: SimulationReport
    """Simulations of `BASELINES` and of the placement that was found; fewer after an interrupt."""
    planned: CircuitPlanReport
    """Next circuits of the optical switch."""

    @property
    def complete(self) -> bool:
        """Return True if nothing was interrupted."""
        placed, planned = self.placed.placement, self.planned.plan
        return placed.complete and self.simulated.complete and planned.complete


def fill(
    registry: Registry,
    progress: Progress = silent,
    *,
    moment: datetime | None = None,
    before_runs: Callable[[], None] = lambda: None,
) -> DemoResult:
    """Load the files, save the generated data, and compute and save the results; a second call adds nothing.

    Args:
        moment: Time to which all times are relative (default: now). If the registry holds the demonstration
            already, its time counts.
        before_runs: Called before placements are simulated and circuits are searched.
    """
    from ingest.options import Options
    from ingest.pipeline import ingest, plan

    moment = stored_moment(registry) or (moment or datetime.now(UTC)).replace(second=0, microsecond=0)
    scanned = moment - data.MOVED
    present = plan(SCAN, Options(cluster=CLUSTER, observed_at=scanned), progress=progress)
    assert present.fabric is not None
    # in the order of time: a scan before stored ones changes the interval of each of their cables
    _save_past_wiring(registry, replace(present.fabric, tables=present.tables), moment)
    registry.save(present, progress)
    ingest(registry, [DATA / "hpcg_16_64.tar.gz"], Options(name=PROFILE), progress=progress)
    fabric = registry.fabrics.read(CLUSTER, scanned).fabric
    _save_generated_data(registry, moment)
    placed = _place_last_job(registry, moment, progress)
    _advise_running_jobs(registry, fabric, moment, progress)
    ids = {name: report.record_id for name, report in placed.items()}
    _save_measured_runs(registry, placed["found"], ids)
    before_runs()
    return DemoResult(
        moment=moment,
        placed=placed["found"],
        simulated=_simulate(registry, ids, progress),
        planned=_plan_circuits(registry, progress),
    )


def stored_moment(registry: Registry) -> datetime | None:
    """Return the time to which the stored demonstration is relative, or None if there is none."""
    try:
        observations = registry.fabrics.observations(CLUSTER)
    except UnknownName:
        return None
    made = [one.at + data.MONTH for one in observations if one.source == data.SOURCE]
    return min(made, default=None)


def delete_demonstration(registry: Registry) -> None:
    """Delete the clusters of the demonstration with all their data; profiles stay."""
    from registry.upkeep.clusters import delete_cluster

    for cluster in (CLUSTER, OPTICAL):
        with suppress(UnknownName):
            delete_cluster(registry.database, cluster)


def _save_generated_data(registry: Registry, moment: datetime) -> None:
    """Save jobs with profiles and the nightly ones' placements, two applications and the optical cluster."""
    from registry.model.intake import Intake

    nightly, jobs = _jobs(moment)
    source = data.SOURCE
    registry.save(Intake(cluster=CLUSTER, observed_at=moment, jobs=(*nightly, *jobs), source=source))
    registry.save(Intake(profiles=data.applications(), source=source))
    _save_optical_cluster(registry, moment)
    nights = dict.fromkeys([job.id for job in nightly], PROFILE)
    registry.jobs.attach_many(CLUSTER, {**nights, JOB: PROFILE, **RUNNING})
    registry.jobs.attach_many(OPTICAL, ON_CIRCUITS)
    _save_nightly_placements(registry, nightly, moment)


def _save_past_wiring(registry: Registry, fabric: Fabric, moment: datetime) -> None:
    """Save the scans of the last month before the present one, and the plan of the wiring."""
    from registry.model.intake import Intake

    changed = data.before_move(fabric)
    planned = data.before_loss(changed)
    plan = data.wiring_plan(planned, moment - data.MONTH)
    scans = (
        *((age, planned) for age in (data.MONTH, data.BEFORE_LOSS)),
        (data.LOST, changed),
    )
    for age, past in scans:
        registry.save(
            Intake(
                cluster=CLUSTER,
                observed_at=moment - age,
                fabric=past,
                tables=past.tables,
                intended=plan if age == data.MONTH else None,
                source=data.SOURCE,
            )
        )


def _jobs(moment: datetime) -> tuple[tuple[Job, ...], tuple[Job, ...]]:
    """Return the nightly jobs, and the jobs of the files with times relative to a moment."""
    from ingest.options import Options
    from ingest.pipeline import plan

    jobs = data.recent_jobs(plan(JOBS, Options(cluster=CLUSTER)).jobs, moment)
    (last,) = (job for job in jobs if job.id == JOB)
    return data.nightly_jobs(last), jobs


def _save_nightly_placements(registry: Registry, nightly: Sequence[Job], moment: datetime) -> None:
    """Save the placements of the nightly jobs: their ranks ran in order, before a cable was lost."""
    from mapping.cost.report import report_given, with_baselines
    from mapping.placement.methods.baselines import in_order
    from mapping.questions.place import PlacementRequest, record_of, resolve
    from registry.store.placement_rows import PRESENT

    request = PlacementRequest(
        profile=PROFILE, job=nightly[-1].id, cluster=CLUSTER, at=moment - data.BEFORE_LOSS
    )
    case = resolve(registry, request)
    report = with_baselines(report_given(case, in_order(case.profile.ranks, case.allocation)))
    record = record_of(report, PRESENT)
    times = [job.ended_at or moment for job in nightly]
    registry.placements.save_many([replace(record, job=job.id) for job in nightly], times)


def _save_optical_cluster(registry: Registry, moment: datetime) -> None:
    """Save the hosts and jobs of the optical cluster, and its switch if none is stored yet."""
    from registry.model.intake import Intake

    fabric, tables = data.optical_cluster()
    jobs = data.optical_jobs(fabric, moment, tuple(ON_CIRCUITS))
    registry.save(
        Intake(
            cluster=OPTICAL,
            observed_at=moment - data.MOVED,
            fabric=fabric,
            tables=tables,
            jobs=jobs,
            source=data.SOURCE,
        )
    )
    try:
        registry.optical.read(OPTICAL)
    except UnknownName:
        registry.optical.save(data.optical_switch(OPTICAL, registry.fabrics.read(OPTICAL).fabric))


def _place_last_job(registry: Registry, moment: datetime, progress: Progress) -> dict[str, PlacementReport]:
    """Save placements of `JOB`: in order, as it ran; at random; found, with advice that compares it."""
    from mapping.placement.search import SearchOptions
    from mapping.questions.place import PlacementRequest, place, save
    from registry.store.placement_rows import PRESENT
    from registry.store.running_jobs import AdviceRecord

    at = moment - data.MOVED
    request = PlacementRequest(profile=PROFILE, job=JOB, cluster=CLUSTER, at=at)
    searches = {name: SearchOptions(strategies=(one,), steps=1) for name, one in BASELINES.items()}
    searches["found"] = SearchOptions(steps=STEPS)
    placed = {
        name: place(registry, replace(request, options=options), progress)
        for name, options in searches.items()
    }
    present, found = save(registry, placed[IN_ORDER], PRESENT), placed["found"]
    advice = AdviceRecord(
        cluster=CLUSTER,
        job=JOB,
        at=moment,
        present=present.record_id,
        proposed=found.record_id,
        present_seconds=present.evaluation.congestion_seconds,
        proposed_seconds=found.evaluation.congestion_seconds,
        moved=int((found.placement.host_of_rank != present.placement.host_of_rank).sum()),
    )
    if found.placement.complete:
        registry.advices.save([advice])
    return placed


def _save_measured_runs(registry: Registry, found: PlacementReport, placements: Mapping[str, str]) -> None:
    """Save runs of `JOB` with placements and in order, as `almanac run` would have measured them."""
    from registry.model.job import MeasuredRun

    job = registry.jobs.read(JOB, CLUSTER).job
    assert job.started_at is not None
    first = MeasuredRun(
        cluster=CLUSTER,
        application=found.case.profile.application,
        program=data.SOURCE,
        ranks=found.case.profile.ranks,
        hosts=job.hosts,
        slots=job.slots,
        launcher=data.SOURCE,
        profile=found.case.profile_id,
        job=JOB,
        started_at=job.started_at,
        wall_seconds=0.0,
    )
    for run in data.measured_runs(first, placements):
        registry.measured_runs.save(run)


def _advise_running_jobs(registry: Registry, fabric: Fabric, moment: datetime, progress: Progress) -> None:
    """Save advice for each running job, and port counters that fit their traffic."""
    from mapping.placement.search import SearchOptions
    from mapping.questions.advise import advise_all
    from mapping.questions.live import traffic
    from registry.model.intake import Intake

    live = traffic(registry, CLUSTER, moment, progress=progress)
    for _ in advise_all(registry, live, SearchOptions(steps=ADVICE_STEPS), progress):
        pass
    sweeps = data.counters(fabric, live.shared.link_bytes, moment)
    registry.save(Intake(cluster=CLUSTER, counters=sweeps, source=data.SOURCE))


def _simulate(registry: Registry, placed: Mapping[str, str], progress: Progress) -> SimulationReport:
    """Simulate saved placements, and name their runs by the keys of `placed`."""
    from mapping.questions.simulate import (
        SimulationOptions,
        SimulationRequest,
        simulate_placements,
        simulation_case,
    )
    from mapping.simulation.messages import Options

    request = SimulationRequest(
        profile=PROFILE,
        cluster=CLUSTER,
        placements=tuple(placed.values()),
        options=SimulationOptions(rounds=ROUNDS, network=Options(every=EVERY)),
    )
    case = simulation_case(registry, request)
    report = simulate_placements(case, request.options, registry, progress=progress)
    # fewer runs after an interrupt
    runs = (run._replace(placement=name) for name, run in zip(placed, report.runs, strict=False))
    return replace(report, runs=tuple(runs))


def _plan_circuits(registry: Registry, progress: Progress) -> CircuitPlanReport:
    """Plan and save the next circuits for the jobs on the optical cluster."""
    from mapping.questions.circuits import (
        CircuitPlanRequest,
        CircuitSearchOptions,
        circuit_case,
        plan_circuits,
        save_circuits,
    )

    case = circuit_case(registry, CircuitPlanRequest(cluster=OPTICAL))
    options = CircuitSearchOptions(reconfiguration_seconds=RECONFIGURATION_SECONDS)
    return save_circuits(registry, plan_circuits(case, options, progress))
