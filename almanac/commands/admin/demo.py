"""``almanac demo``: run every step once on the sample data that is included."""

from __future__ import annotations

import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from almanac.options.common import open_registry
from almanac.output.circuits import show_circuit_moves
from almanac.output.json.circuits import circuit_plan_to_json
from almanac.output.placements import show_placement
from almanac.output.printing import note, progress_bars, say, write_text
from almanac.output.simulations import show_simulation_table
from registry import units
from registry.store.ingest_runs import age_text

if TYPE_CHECKING:
    from almanac.demo.fill import DemoResult
    from registry.model import Fabric

RANKFILE = "openmpi-rankfile"
RECENT = timedelta(hours=1)
"""A demonstration older than this is pointed out."""
NEXT = {
    "today demo-ndr": "what changed, what is broken, which jobs slow each other down",
    "history regressions": "the nightly job that got slower, and what had changed before",
    "congestion demo-ndr": "the busiest links now, and the jobs that share them",
    "advise jobs demo-ndr": "search better placements of the running jobs: about 15 seconds",
}
"""Commands to try next, and what they show."""


@click.command("demo")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    default="demo.rankfile",
    show_default=True,
    help="File for the rankfile.",
)
@click.option(
    "--renew",
    is_flag=True,
    help="Delete the clusters demo-ndr and demo-optical first, so that all times are relative to now.",
)
def command(output: str, renew: bool) -> None:
    """Load a real fabric with its routes, a real profile and made jobs; place a job's ranks; save everything.

    The placement is simulated and compared with ranks in order and at random. For a small generated cluster
    with an optical switch the next circuits are planned. All times are relative to the first run. A second
    run shows the same results and adds nothing; --renew makes the demonstration again.
    """
    from almanac.demo.fill import CLUSTER, delete_demonstration, fill
    from almanac.precompile import precompiled_kernels
    from mapping.launchers import launch_line, write

    with open_registry() as registry, progress_bars() as progress, precompiled_kernels(progress) as wait:
        if renew:
            delete_demonstration(registry)
        result = fill(registry, progress, before_runs=wait)
        fabric = registry.fabrics.read(CLUSTER).fabric
    write_text(output, write(RANKFILE, result.placed.placement, result.placed.fabric))
    _show(result, fabric)
    say(f"launch: {launch_line(RANKFILE, result.placed.placement, result.placed.fabric, output)}")
    _show_next(result.moment)
    if not result.complete:
        click.get_current_context().exit(130)


def _show_next(moment: datetime) -> None:
    """Print what is made, to which time all times are relative, and commands to try next."""
    from almanac.demo.generated_data import SOURCE

    say(
        "real: the wiring of demo-ndr, its tables by opensm, the profile of HPCG; made: all times, jobs, "
        "measured runs, earlier wirings and the plan, counters, other profiles, demo-optical (source: "
        f"{SOURCE})"
    )
    age = datetime.now(UTC) - moment
    old = f", {age_text(age)} ago; relative to now: {program()} demo --renew" if age > RECENT else ""
    say(f"times are relative to {units.moment_text(moment)}{old}")
    click.echo("try next:")
    wide = max(map(len, NEXT))
    for arguments, about in NEXT.items():
        click.echo(f"  {program()} {arguments:{wide}}   # {about}")
    note(f"web pages: make dashboard     (without a checkout: {program()} dashboard)")


def program() -> str:
    """Return how this program is started from the present folder: ``almanac`` if it is on the path."""
    started, found = Path(sys.argv[0]), shutil.which("almanac")
    if started.name != "almanac" or (found is not None and started.samefile(found)):
        return "almanac"
    return str(started)


def _show(result: DemoResult, fabric: Fabric) -> None:
    """Print the fabric, the placement, its simulation and the circuits to move."""
    from almanac.demo.fill import OPTICAL

    say(
        f"fabric {result.placed.case.cluster}: {len(fabric.hosts)} hosts with {len(fabric.adapters)} "
        f"adapters, {len(fabric.switches)} switches, {fabric.cable_count} cables (a real NDR fabric)"
    )
    show_placement(result.placed)
    click.echo("")
    show_simulation_table(result.simulated)
    click.echo("")
    case = result.planned.case
    say(
        f"{OPTICAL}: {len(case.hosts)} generated hosts on an optical switch, {len(case.profiles)} generated "
        "jobs; circuits to move:"
    )
    show_circuit_moves(circuit_plan_to_json(result.planned)["present"])
