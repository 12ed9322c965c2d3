"""``almanac cluster``: list clusters, show one, its changes and host layouts, export its wiring."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from almanac.commands.cluster.check import check_cluster
from almanac.commands.cluster.optical import optical
from almanac.commands.cluster.whole import accept, delete, merge, rename
from almanac.options.common import Time, json_option, open_registry, require_cluster
from almanac.options.exports import export_argument
from almanac.output.json.stored_data import (
    changes_to_json,
    cluster_to_json,
    host_layout_to_json,
    snapshot_to_json,
)
from almanac.output.printing import note, print_fields, print_json, print_table, say, write_text
from registry import units
from registry.exports.catalog import FORMATS, write


@click.group("cluster")
def command() -> None:
    """List, show, rename, merge and delete clusters; list changes and problems, accept changes."""


command.add_command(check_cluster)
command.add_command(optical)
command.add_command(accept)
command.add_command(delete)
command.add_command(rename)
command.add_command(merge)


@command.command("list")
@json_option
def list_clusters(as_json: bool) -> None:
    """List all clusters with the time of their latest observation."""
    with open_registry() as registry:
        rows = [cluster_to_json(info) for info in registry.fabrics.clusters()]
    if as_json:
        print_json(rows)
        return
    columns = ["cluster", "observations", "snapshots", "observed at"]
    print_table("", columns, [list(row.values()) for row in rows])


@command.command("show")
@click.argument("cluster")
@click.option("--at", type=Time(), help="At this time (default: now).")
@json_option
def show(cluster: str, at: datetime | None, as_json: bool) -> None:
    """Show how many hosts, adapters, switches and cables CLUSTER has."""
    from mapping.routing.catalog import choose_routing

    with open_registry() as registry:
        snapshot = registry.fabrics.read(cluster, at)
    routing, why = choose_routing(snapshot.fabric)
    fields = snapshot_to_json(cluster, snapshot, routing, why)
    if as_json:
        print_json(fields)
        return
    fields["capacity"] = f"{units.text(fields['capacity'], units.RATE)}, both directions of all cables"
    fields["observed_at"] = units.moment_text(snapshot.observed_at)
    del fields["cluster"]
    print_fields(cluster, fields)


@command.command("changes")
@click.argument("cluster")
@click.option(
    "--from",
    "start",
    type=Time(),
    help="Earlier time (default: the last observation before the last change).",
)
@click.option("--to", "end", type=Time(), help="Later time (default: now).")
@json_option
def changes(cluster: str, start: datetime | None, end: datetime | None, as_json: bool) -> None:
    """List what was added, removed, changed or renamed in CLUSTER between two times."""
    from registry.store.changes import in_words

    with open_registry() as registry:
        if start is None:
            start = registry.fabrics.before_last_change(cluster, end)
        found = registry.fabrics.changes(cluster, start, end)
    if as_json:
        print_json(changes_to_json(cluster, found))
        return
    say(f"{cluster}: {_time_text(found.start)} to {_time_text(found.end)}")
    for line in in_words(found) or ["no changes"]:
        say(line)


@command.command("export")
@click.argument("cluster")
@export_argument(lambda: FORMATS.names)
@click.option("--at", type=Time(), help="At this time (default: now).")
def export(cluster: str, exports: tuple[tuple[str, str | None], ...], at: datetime | None) -> None:
    """Write CLUSTER's wiring in formats of Slurm, LibTopoMap, networkx and others."""
    with open_registry() as registry:
        snapshot = registry.fabrics.read(cluster, at)
    for name, path in exports:
        write_text(path, write(name, snapshot.fabric))
        if path is not None:
            note(f"{name} of {cluster} at {units.moment_text(snapshot.observed_at)} written to {path}")


def _time_text(time: datetime | None) -> str:
    return "" if time is None else units.moment_text(time)


@command.command("layouts")
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
        say(f"no host layouts of {cluster} are stored: ingest what `lstopo --of xml` prints")
        return
    title = f"{len(rows)} hosts of {cluster}"
    print_table(title, ["host", "since", "cores per domain", "adapters", "source"], [_cells(r) for r in rows])


def _cells(row: dict[str, Any]) -> list[str]:
    adapters = (
        f"{one['name']} at {','.join(map(str, one['domains'])) or '?'}"
        for one in row["adapters"]
        if one["fabric"]
    )
    cores = "+".join(map(str, row["cores_per_domain"]))
    return [row["host"], units.moment_text(row["since"]), cores, ", ".join(adapters), row["origin"]]
