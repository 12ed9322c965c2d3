"""The registry of the demonstration: real files, and what `almanac.demo.generated_data` makes beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from almanac.demo import generated_data as demo_made
from registry.errors import UnknownName
from registry.progress import Progress, silent

if TYPE_CHECKING:
    from almanac.commands.simulated import Heading, Run
    from mapping.evaluation.report import PlacementReport
    from mapping.service import OnSwitch
    from mapping.service.answers.circuits import Planned
    from registry.model import Fabric
    from registry.registry import Registry

DATA = Path(__file__).parent.parent / "demo_data"
CLUSTER = "demo-ndr"
PROFILE = "demo-hpcg-64"
JOB = "4711"
STEPS = 400_000
"""Proposals of the search: a number, not a time, so that a second run finds the same placement."""
RUNNING = {"4712": PROFILE, "4713": "demo-training-64", "4714": "demo-lulesh-64"}
"""The profile of each running job."""
ADVICE_STEPS = 40_000
"""Proposals for each running job."""
BESIDE = {"in order": "in-order", "random": "random"}
"""What the placement that is found is simulated beside: its name, and the strategy."""
ROUNDS = 50
"""In which the profile is sent: HPCG makes 50 iterations at a time."""
EVERY = 500
"""Messages between two points of the simulated traffic over time."""
OPTICAL = "demo-optical"
ON_CIRCUITS = {"5001": PROFILE, "5002": "demo-training-64"}
"""The profile of each job that runs on the optical cluster."""
RECONFIGURATION_SECONDS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Demonstrated:
    """What was found, simulated and planned; all of it is saved.

    Attributes
    ----------
    found : PlacementReport
        For the ranks of `JOB`.
    heading : Heading
    runs : tuple of Run
        The placements of `BESIDE` and the one that was found, under these names; fewer after an interrupt.
    on : OnSwitch
        What runs on the optical cluster.
    planned : Planned
        Its next circuits.
    plan : str
        Id of the saved plan.
    """

    found: PlacementReport
    heading: Heading
    runs: tuple[Run, ...]
    on: OnSwitch
    planned: Planned
    plan: str

    @property
    def complete(self) -> bool:
        """Whether nothing was interrupted."""
        from almanac.commands import simulated

        ran = simulated.complete(self.heading, self.runs)
        return self.found.placement.complete and ran and self.planned.plan.complete


def fill(
    registry: Registry, progress: Progress = silent, *, before_runs: Callable[[], None] = lambda: None
) -> Demonstrated:
    """Save all of it, and what is found, simulated and planned; done again it adds nothing.

    Parameters
    ----------
    before_runs : function
        Called before placements are simulated and circuits searched.
    """
    from ingest.options import Options
    from ingest.pipeline import ingest
    from mapping.placement.search.options import SearchOptions
    from mapping.service import PlacementRequest, place

    scan = [DATA / "ndr-dgx.ibnetdiscover", DATA / "opensm-lfts.dump.gz"]
    ingest(registry, scan, Options(cluster=CLUSTER), progress=progress)
    for jobs in ("slurm_job.txt", "slurm_running.txt"):
        ingest(registry, [DATA / jobs], Options(cluster=CLUSTER), progress=progress)
    ingest(registry, [DATA / "hpcg_16_64.tar.gz"], Options(name=PROFILE), progress=progress)
    fabric = registry.fabrics.read(CLUSTER).fabric
    _save_what_is_made(registry, fabric)
    request = PlacementRequest(profile=PROFILE, job=JOB, cluster=CLUSTER)
    placed = {}
    for name, strategy in BESIDE.items():
        options = SearchOptions(strategies=(strategy,), steps=1)
        placed[name] = place(registry, replace(request, options=options), progress).record_id
    found = place(registry, replace(request, options=SearchOptions(steps=STEPS)), progress)
    _watch_running_jobs(registry, fabric, progress)
    before_runs()
    heading, runs = _simulate(registry, {**placed, "found": found.record_id}, progress)
    on, planned, plan = _plan_circuits(registry, progress)
    return Demonstrated(found=found, heading=heading, runs=runs, on=on, planned=planned, plan=plan)


def _save_what_is_made(registry: Registry, fabric: Fabric) -> None:
    """An earlier scan, two applications, the optical cluster; and which job ran which application."""
    from registry.model.intake import Intake

    assert fabric.observed_at is not None
    registry.save(
        Intake(
            cluster=CLUSTER,
            observed_at=fabric.observed_at - demo_made.EARLIER,
            fabric=demo_made.earlier(fabric),
            source=demo_made.SOURCE,
        )
    )
    registry.save(Intake(profiles=demo_made.applications(), source=demo_made.SOURCE))
    _save_optical_cluster(registry, fabric.observed_at)
    jobs = {(CLUSTER, job): name for job, name in {JOB: PROFILE, **RUNNING}.items()}
    jobs |= {(OPTICAL, job): name for job, name in ON_CIRCUITS.items()}
    for (cluster, job), profile in jobs.items():
        if registry.jobs.read(job, cluster).profile is None:
            registry.jobs.attach(job, registry.profiles.read(profile).id, cluster)


def _save_optical_cluster(registry: Registry, at: datetime) -> None:
    """Its hosts, jobs and switch; how the switch is set is left where it is known."""
    from registry.model.intake import Intake

    fabric, tables = demo_made.optical_cluster()
    jobs = demo_made.optical_jobs(fabric, at, tuple(ON_CIRCUITS))
    registry.save(
        Intake(
            cluster=OPTICAL, observed_at=at, fabric=fabric, tables=tables, jobs=jobs, source=demo_made.SOURCE
        )
    )
    try:
        registry.optical.read(OPTICAL)
    except UnknownName:
        registry.optical.save(demo_made.optical_switch(OPTICAL, registry.fabrics.read(OPTICAL).fabric))


def _watch_running_jobs(registry: Registry, fabric: Fabric, progress: Progress) -> None:
    """What remapping each would give, and what the ports would have counted."""
    from mapping.placement.search.options import SearchOptions
    from mapping.service import advise_all, traffic
    from registry.model.intake import Intake

    assert fabric.observed_at is not None
    at = fabric.observed_at + demo_made.COUNTED  # not now: done again it is the same
    live = traffic(registry, CLUSTER, at, progress=progress)
    for _ in advise_all(registry, live, SearchOptions(steps=ADVICE_STEPS), progress):
        pass
    sweeps = demo_made.counters(fabric, live.shared.link_bytes)
    registry.save(Intake(cluster=CLUSTER, counters=sweeps, source=demo_made.SOURCE))


def _simulate(
    registry: Registry, placed: Mapping[str, str], progress: Progress
) -> tuple[Heading, tuple[Run, ...]]:
    """Runs of saved placements, by the names that these have here."""
    from almanac.commands.simulate import replay
    from almanac.commands.simulating import Ask, from_registry

    ask = Ask(profile=PROFILE, cluster=CLUSTER, placements=tuple(placed.values()), rounds=ROUNDS, every=EVERY)
    heading, runs = replay(from_registry(registry, ask), ask, registry, progress)
    # fewer runs after an interrupt
    return heading, tuple(run._replace(placement=name) for name, run in zip(placed, runs, strict=False))


def _plan_circuits(registry: Registry, progress: Progress) -> tuple[OnSwitch, Planned, str]:
    """The next circuits for what runs on the optical cluster, and the id of the saved plan."""
    from mapping.service import next_circuits, on_switch, save_next_circuits
    from mapping.service.answers.circuits import CircuitSearch

    on = on_switch(registry, OPTICAL)
    search = CircuitSearch(reconfiguration_seconds=RECONFIGURATION_SECONDS)
    planned = next_circuits(on, search, progress=progress)
    return on, planned, save_next_circuits(registry, planned, on)
