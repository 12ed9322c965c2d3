"""Fill a registry with the demonstration: real files, generated data, and results computed from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from almanac.demo import generated_data
from registry.errors import UnknownName
from registry.progress import Progress, silent

if TYPE_CHECKING:
    from mapping.evaluation.report import PlacementReport
    from mapping.service.circuit_search import CircuitPlanReport
    from mapping.service.simulations import SimulationReport
    from registry.model import Fabric
    from registry.registry import Registry

DATA = Path(__file__).parent.parent / "demo_data"
SCAN = (DATA / "ndr-dgx.ibnetdiscover", DATA / "opensm-lfts.dump.gz")
"""Scan of a real fabric, and forwarding tables for it."""
CLUSTER = "demo-ndr"
PROFILE = "demo-hpcg-64"
JOB = "4711"
STEPS = 400_000
"""Steps of the search: a number instead of a time, so that a second run finds the same placement."""
RUNNING = {"4712": PROFILE, "4713": "demo-training-64", "4714": "demo-lulesh-64"}
"""Profile of each running job."""
ADVICE_STEPS = 40_000
"""Search steps for each running job."""
BASELINES = {"in order": "in-order", "random": "random"}
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
    """Results of the demonstration; all of them are saved.

    Attributes
    ----------
    placed : PlacementReport
        Placement of the ranks of `JOB`.
    simulated : SimulationReport
        Simulations of `BASELINES` and of the placement that was found; fewer after an interrupt.
    planned : CircuitPlanReport
        Next circuits of the optical switch.
    """

    placed: PlacementReport
    simulated: SimulationReport
    planned: CircuitPlanReport

    @property
    def complete(self) -> bool:
        """Return True if nothing was interrupted."""
        placed, planned = self.placed.placement, self.planned.plan
        return placed.complete and self.simulated.complete and planned.complete


def fill(
    registry: Registry, progress: Progress = silent, *, before_runs: Callable[[], None] = lambda: None
) -> DemoResult:
    """Load the files, save the generated data, and compute and save the results; a second call adds nothing.

    Parameters
    ----------
    before_runs : function
        Called before placements are simulated and circuits are searched.
    """
    from ingest.options import Options
    from ingest.pipeline import ingest
    from mapping.placement.search.options import SearchOptions
    from mapping.service.placing import place
    from mapping.service.request import PlacementRequest

    ingest(registry, SCAN, Options(cluster=CLUSTER), progress=progress)
    for jobs in ("slurm_job.txt", "slurm_running.txt"):
        ingest(registry, [DATA / jobs], Options(cluster=CLUSTER), progress=progress)
    ingest(registry, [DATA / "hpcg_16_64.tar.gz"], Options(name=PROFILE), progress=progress)
    fabric = registry.fabrics.read(CLUSTER).fabric
    _save_generated_data(registry, fabric)
    request = PlacementRequest(profile=PROFILE, job=JOB, cluster=CLUSTER)
    baselines = {}
    for name, strategy in BASELINES.items():
        options = SearchOptions(strategies=(strategy,), steps=1)
        baselines[name] = place(registry, replace(request, options=options), progress).record_id
    placed = place(registry, replace(request, options=SearchOptions(steps=STEPS)), progress)
    _advise_running_jobs(registry, fabric, progress)
    before_runs()
    simulated = _simulate(registry, {**baselines, "found": placed.record_id}, progress)
    return DemoResult(placed=placed, simulated=simulated, planned=_plan_circuits(registry, progress))


def _save_generated_data(registry: Registry, fabric: Fabric) -> None:
    """Save an earlier scan, two applications and the optical cluster; attach profiles to jobs."""
    from registry.model.intake import Intake

    assert fabric.observed_at is not None
    registry.save(
        Intake(
            cluster=CLUSTER,
            observed_at=fabric.observed_at - generated_data.EARLIER,
            fabric=generated_data.earlier(fabric),
            source=generated_data.SOURCE,
        )
    )
    registry.save(Intake(profiles=generated_data.applications(), source=generated_data.SOURCE))
    _save_optical_cluster(registry, fabric.observed_at)
    jobs = {(CLUSTER, job): name for job, name in {JOB: PROFILE, **RUNNING}.items()}
    jobs |= {(OPTICAL, job): name for job, name in ON_CIRCUITS.items()}
    for (cluster, job), profile in jobs.items():
        if registry.jobs.read(job, cluster).profile is None:
            registry.jobs.attach(job, registry.profiles.read(profile).id, cluster)


def _save_optical_cluster(registry: Registry, at: datetime) -> None:
    """Save the hosts and jobs of the optical cluster, and its switch if none is stored yet."""
    from registry.model.intake import Intake

    fabric, tables = generated_data.optical_cluster()
    jobs = generated_data.optical_jobs(fabric, at, tuple(ON_CIRCUITS))
    registry.save(
        Intake(
            cluster=OPTICAL,
            observed_at=at,
            fabric=fabric,
            tables=tables,
            jobs=jobs,
            source=generated_data.SOURCE,
        )
    )
    try:
        registry.optical.read(OPTICAL)
    except UnknownName:
        registry.optical.save(generated_data.optical_switch(OPTICAL, registry.fabrics.read(OPTICAL).fabric))


def _advise_running_jobs(registry: Registry, fabric: Fabric, progress: Progress) -> None:
    """Save advice for each running job, and port counters that fit their traffic."""
    from mapping.placement.search.options import SearchOptions
    from mapping.service.advising import advise_all
    from mapping.service.live import traffic
    from registry.model.intake import Intake

    assert fabric.observed_at is not None
    at = fabric.observed_at + generated_data.COUNTED  # not the present time: a second run must give the same
    live = traffic(registry, CLUSTER, at, progress=progress)
    for _ in advise_all(registry, live, SearchOptions(steps=ADVICE_STEPS), progress):
        pass
    sweeps = generated_data.counters(fabric, live.shared.link_bytes)
    registry.save(Intake(cluster=CLUSTER, counters=sweeps, source=generated_data.SOURCE))


def _simulate(registry: Registry, placed: Mapping[str, str], progress: Progress) -> SimulationReport:
    """Simulate saved placements, and name their runs by the keys of `placed`."""
    from mapping.service.simulations import (
        SimulationOptions,
        SimulationRequest,
        simulate_placements,
        simulation_case,
    )
    from mapping.simulation.options import Options

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
    from mapping.service.circuit_search import CircuitSearchOptions, plan_circuits, save_circuits
    from mapping.service.circuits import CircuitPlanRequest, circuit_case

    case = circuit_case(registry, CircuitPlanRequest(cluster=OPTICAL))
    options = CircuitSearchOptions(reconfiguration_seconds=RECONFIGURATION_SECONDS)
    return save_circuits(registry, plan_circuits(case, options, progress))
