"""``almanac export``: write a placement as a launcher's file."""

from __future__ import annotations

import click

from almanac.options.common import open_registry
from almanac.output.printing import note, write_text
from mapping.launchers.catalog import FORMATS, write


@click.command("export")
@click.argument("placement")
@click.option("--format", "name", type=click.Choice(FORMATS.names), required=True, help="Format of the file.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="File (default: standard output).")
def command(placement: str, name: str, output: str | None) -> None:
    """Write the stored placement with the id PLACEMENT as a launcher's file."""
    with open_registry() as registry:
        stored = registry.placements.read(placement)
        fabric = registry.fabrics.read_content(stored.content).fabric
    text = write(name, stored.placement, fabric)
    write_text(output, text)
    if output is not None:
        note(f"{name} of placement {stored.id} written to {output}")
