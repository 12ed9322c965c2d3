"""``almanac demo``: the whole way once, on sample data that is shipped."""

from __future__ import annotations

import click

from almanac.commands.answers import show_answer
from almanac.commands.common import open_registry
from almanac.output import note, progress_bars, write_text

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

    Run again it adds nothing: the same files and the same search give the same ids.
    """
    from almanac.demonstration import CLUSTER, fill
    from mapping.exports.catalog import write

    with open_registry() as registry, progress_bars() as progress:
        found = fill(registry, progress)
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
