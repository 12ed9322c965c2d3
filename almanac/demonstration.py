"""The registry of the demonstration: real files, and what `almanac.demo_made` makes beside them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from almanac import demo_made
from registry.progress import Progress, silent

if TYPE_CHECKING:
    from mapping.service import Answer
    from registry.model import Fabric
    from registry.registry import Registry

DATA = Path(__file__).parent / "demo_data"
CLUSTER = "demo-ndr"
PROFILE = "demo-hpcg-64"
JOB = "4711"
STEPS = 400_000
"""Proposals of the search: a number, not a time, so that a second run finds the same placement."""
RUNNING = {"4712": PROFILE, "4713": "demo-training-64", "4714": "demo-lulesh-64"}
"""The profile of each running job."""
ADVICE_STEPS = 40_000
"""Proposals for each running job."""


def fill(registry: Registry, progress: Progress = silent) -> Answer:
    """Save all of it, and find where the ranks of `JOB` should sit; done again it adds nothing."""
    from ingest.options import Options
    from ingest.pipeline import ingest
    from mapping.service import Question, answer

    scan = [DATA / "ndr-dgx.ibnetdiscover", DATA / "opensm-lfts.dump.gz"]
    ingest(registry, scan, Options(cluster=CLUSTER), progress=progress)
    for jobs in ("slurm_job.txt", "slurm_running.txt"):
        ingest(registry, [DATA / jobs], Options(cluster=CLUSTER), progress=progress)
    ingest(registry, [DATA / "hpcg_16_64.tar.gz"], Options(name=PROFILE), progress=progress)
    fabric = registry.fabrics.read(CLUSTER).fabric
    _save_what_is_made(registry, fabric)
    found = answer(registry, Question(profile=PROFILE, job=JOB, cluster=CLUSTER, steps=STEPS), progress)
    _watch_running_jobs(registry, fabric, progress)
    return found


def _save_what_is_made(registry: Registry, fabric: Fabric) -> None:
    """An earlier scan and two applications; and which job ran which application."""
    from registry.saving.intake import Intake

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
    for job, profile in {JOB: PROFILE, **RUNNING}.items():
        if registry.jobs.read(job, CLUSTER).profile is None:
            registry.jobs.attach(job, registry.profiles.read(profile).id, CLUSTER)


def _watch_running_jobs(registry: Registry, fabric: Fabric, progress: Progress) -> None:
    """What remapping each would give, and what the ports would have counted."""
    from mapping.service import advise_all, traffic
    from registry.saving.intake import Intake

    assert fabric.observed_at is not None
    at = fabric.observed_at + demo_made.COUNTED  # not now: done again it is the same
    live = traffic(registry, CLUSTER, at, progress=progress)
    for _ in advise_all(registry, live, steps=ADVICE_STEPS, progress=progress):
        pass
    sweeps = demo_made.counters(fabric, live.shared.link_bytes)
    registry.save(Intake(cluster=CLUSTER, counters=sweeps, source=demo_made.SOURCE))
