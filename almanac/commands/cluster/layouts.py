"""``almanac cluster layouts``: cores, NUMA domains and network adapters of hosts."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from almanac.options.common import Time, json_option, open_registry, require_cluster
from almanac.output.json.stored_data import host_layout_to_json
from almanac.output.printing import print_json, print_table
from registry import units


@click.command("layouts")
@click.argument("cluster")
@click.option("--at", type=Time(), help="At this time (default: now).")
@json_option
def layouts(cluster: str, at: datetime | None, as_json: bool) -> None:
    """List the hosts whose layout is stored: cores per NUMA domain, network adapters, since when."""
    with open_registry() as registry:
        found = registry.layouts.list(cluster, at)
        if not found:
            require_cluster(registry, cluster)
    rows = [host_layout_to_json(one) for one in found]
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo(f"no host layouts of {cluster} are stored: ingest what `lstopo --of xml` prints")
        return
    title = f"{len(rows)} hosts of {cluster}"
    print_table(title, ["host", "since", "cores per domain", "adapters", "source"], [_cells(r) for r in rows])


def _cells(row: dict[str, Any]) -> list[str]:
    adapters = (
        f"{one['name']} at {','.join(map(str, one['domains'])) or '?'}"
        for one in row["adapters"]
        if one["fabric"]
    )
    cores = "+".join(map(str, row["domains"]))
    return [row["host"], units.moment_text(row["since"]), cores, ", ".join(adapters), row["source"]]
