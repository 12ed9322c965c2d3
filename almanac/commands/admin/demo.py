"""``almanac demo``: run every step once on the sample data that is included."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from almanac.options.common import open_registry
from almanac.output.circuits import show_circuit_moves
from almanac.output.json.circuits import circuit_plan_to_json
from almanac.output.placements import show_placement
from almanac.output.printing import note, progress_bars, say, write_text
from almanac.output.simulations import show_simulation_table

if TYPE_CHECKING:
    from almanac.demo.fill import DemoResult
    from registry.model import Fabric

RANKFILE = "openmpi-rankfile"


@click.command("demo")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    default="demo.rankfile",
    show_default=True,
    help="File for the rankfile.",
)
def command(output: str) -> None:
    """Load a real fabric with its routes, a real profile and jobs; place a job's ranks; save everything.

    The placement is simulated and compared with ranks in order and at random. For a small generated cluster
    with an optical switch the next circuits are planned. A second run adds nothing, because the same files
    and searches give the same ids.
    """
    from almanac.demo.fill import CLUSTER, fill
    from almanac.demo.precompile import precompiled_kernels
    from mapping.launchers.catalog import launch_line, write

    with open_registry() as registry, progress_bars() as progress, precompiled_kernels(progress) as wait:
        result = fill(registry, progress, before_runs=wait)
        fabric = registry.fabrics.read(CLUSTER).fabric
    write_text(output, write(RANKFILE, result.placed.placement, result.placed.fabric))
    _show(result, fabric)
    say(f"launch: {launch_line(RANKFILE, result.placed.placement, result.placed.fabric, output)}")
    note(f"next: almanac today {CLUSTER}, almanac dashboard     (from the checkout: make dashboard)")
    if not result.complete:
        click.get_current_context().exit(130)


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
