"""``almanac cluster layouts``: which hosts' insides are known, and since when."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from almanac.options.common import Moment, json_option, must_know, open_registry
from almanac.output.printing import print_json, print_table
from registry import units
from registry.model import format_guid

if TYPE_CHECKING:
    from registry.fabrics.layouts import StoredLayout


@click.command("layouts")
@click.argument("cluster")
@click.option("--at", type=Moment(), help="As of this time (default: now).")
@json_option
def layouts(cluster: str, at: datetime | None, as_json: bool) -> None:
    """Hosts whose insides are known: cores by NUMA domain, network adapters, since when."""
    with open_registry() as registry:
        found = registry.layouts.list(cluster, at)
        if not found:
            must_know(registry, cluster)
    rows = [_told(one) for one in found]
    if as_json:
        print_json(rows)
        return
    if not rows:
        click.echo(f"no layout of a host of {cluster} is known: `lstopo --of xml` prints one")
        return
    title = f"{len(rows)} hosts of {cluster}"
    print_table(title, ["host", "since", "cores by domain", "adapters", "source"], [_cells(r) for r in rows])


def _told(one: StoredLayout) -> dict[str, Any]:
    layout = one.layout
    domains = len(layout.domain_node)
    return {
        "host": one.host,
        "since": one.at,
        "cores": len(layout.core_domain),
        "domains": np.bincount(layout.core_domain, minlength=domains).tolist(),
        "adapters": [
            {
                "name": name,
                "guid": format_guid(int(guid)) or None,
                "fabric": bool(fabric),
                "domains": np.flatnonzero(near).tolist(),
            }
            for name, guid, fabric, near in zip(
                layout.nic_name, layout.nic_guid, layout.nic_fabric, layout.nic_near, strict=True
            )
        ],
        "name": layout.name,
        "source": layout.source,
    }


def _cells(row: dict[str, Any]) -> list[str]:
    adapters = (
        f"{one['name']} at {','.join(map(str, one['domains'])) or '?'}"
        for one in row["adapters"]
        if one["fabric"]
    )
    cores = "+".join(map(str, row["domains"]))
    return [row["host"], units.moment_text(row["since"]), cores, ", ".join(adapters), row["source"]]
