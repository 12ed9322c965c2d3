"""``almanac demo``: the whole way once, on sample data that is shipped."""

from __future__ import annotations

from pathlib import Path

import click

from almanac.commands.answers import show_answer
from almanac.commands.common import open_registry
from almanac.output import note, progress_bars, write_text

CLUSTER = "demo-ndr"
PROFILE = "demo-hpcg-64"
JOB = "4711"
STEPS = 400_000
"""Proposals of the search: a number, not a time, so that a second run finds the same placement."""
RANKFILE = "openmpi-rankfile"


@click.command("demo")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    default="demo.rankfile",
    show_default=True,
    help="Where the rankfile goes.",
)
def command(output: str) -> None:
    """Load a real fabric, its routes, a real profile and a job; place the job's ranks; save everything.

    Run again it adds nothing: the same files and the same search give the same ids.
    """
    from ingest.options import Options
    from ingest.pipeline import ingest
    from mapping.exports.catalog import write
    from mapping.service import Question, answer

    data = Path(__file__).parent.parent / "demo_data"
    with open_registry() as registry, progress_bars() as progress:
        files = [data / "ndr-dgx.ibnetdiscover", data / "opensm-lfts.dump.gz"]
        ingest(registry, files, Options(cluster=CLUSTER), progress=progress)
        ingest(registry, [data / "slurm_job.txt"], Options(cluster=CLUSTER), progress=progress)
        ingest(registry, [data / "hpcg_16_64.tar.gz"], Options(name=PROFILE), progress=progress)
        if registry.jobs.read(JOB, CLUSTER).profile is None:
            registry.jobs.attach(JOB, registry.profiles.read(PROFILE).id, CLUSTER)
        question = Question(profile=PROFILE, job=JOB, cluster=CLUSTER, steps=STEPS)
        found = answer(registry, question, progress)
        fabric = registry.fabrics.read(CLUSTER).fabric
    write_text(output, write(RANKFILE, found.placement, found.fabric))

    click.echo(
        f"fabric {CLUSTER}: {len(fabric.hosts)} hosts with {len(fabric.adapters)} adapters, "
        f"{len(fabric.switches)} switches, {fabric.cable_count} cables (a real NDR fabric)"
    )
    show_answer(found)
    click.echo(f"rankfile for mpirun -rf: {output}")
    note("next: almanac dashboard     (from the checkout: make dashboard)")
    if not found.placement.complete:
        click.get_current_context().exit(130)
