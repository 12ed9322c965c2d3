"""``almanac demo``: the whole way once, on sample data that is shipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from almanac.commands import circuits, simulated
from almanac.commands.answers import show_answer
from almanac.options.common import open_registry
from almanac.output.printing import note, progress_bars, write_text

if TYPE_CHECKING:
    from almanac.demo.fill import Demonstrated
    from registry.model import Fabric

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
    """Load a real fabric, its routes, a real profile and jobs; place a job's ranks; save everything.

    What is placed is replayed by the simulator, beside ranks in order and at random; and for a small made
    cluster the next circuits of its optical switch are found. Run again it adds nothing: the same files and
    the same searches give the same ids.
    """
    from almanac.demo.fill import CLUSTER, fill
    from almanac.demo.precompile import kernels_ahead
    from mapping.launchers.catalog import write

    with open_registry() as registry, progress_bars() as progress, kernels_ahead(progress) as wait:
        made = fill(registry, progress, before_runs=wait)
        fabric = registry.fabrics.read(CLUSTER).fabric
    write_text(output, write(RANKFILE, made.found.placement, made.found.fabric))
    _show(made, fabric)
    click.echo(f"rankfile for mpirun -rf: {output}")
    note("next: almanac dashboard     (from the checkout: make dashboard)")
    if not made.complete:
        click.get_current_context().exit(130)


def _show(made: Demonstrated, fabric: Fabric) -> None:
    click.echo(
        f"fabric {made.found.case.cluster}: {len(fabric.hosts)} hosts with {len(fabric.adapters)} adapters, "
        f"{len(fabric.switches)} switches, {fabric.cable_count} cables (a real NDR fabric)"
    )
    show_answer(made.found)
    click.echo("")
    simulated.show_table(made.heading, made.runs)
    click.echo("")
    on = made.on
    click.echo(
        f"{on.switch.cluster}: {len(on.switch.hosts)} made hosts on an optical switch, {len(on.jobs)} made "
        f"jobs run; circuits to move:"
    )
    told = circuits.plan_told(made.planned, on.switch.hosts, made.plan)
    circuits.show_moves(told["present"])
