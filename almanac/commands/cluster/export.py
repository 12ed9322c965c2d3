"""``almanac cluster export``: write a fabric, as of any time, as another tool's file."""

from __future__ import annotations

from datetime import datetime

import click

from almanac.options.common import Moment, open_registry
from almanac.output.printing import note, write_text
from registry.exports.catalog import FORMATS, write


@click.command("export")
@click.argument("cluster")
@click.option("--format", "name", type=click.Choice(FORMATS.names), required=True)
@click.option("--at", type=Moment(), help="As of this time (default: now).")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Default: standard output.")
def export(cluster: str, name: str, at: datetime | None, output: str | None) -> None:
    """Write CLUSTER's wiring for Slurm, LibTopoMap, networkx and others."""
    with open_registry() as registry:
        snapshot = registry.fabrics.read(cluster, at)
    write_text(output, write(name, snapshot.fabric))
    if output is not None:
        note(f"{name} of {cluster} as of {snapshot.observed_at:%Y-%m-%d %H:%M:%S} UTC written to {output}")
