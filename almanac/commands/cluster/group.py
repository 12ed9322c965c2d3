"""``almanac cluster``: list machines, show one, tell what changed."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import TYPE_CHECKING

import click

from almanac.commands.cluster.check import check_cluster
from almanac.commands.cluster.export import export
from almanac.commands.cluster.layouts import layouts
from almanac.commands.cluster_optical import optical
from almanac.options.common import Moment, json_option, open_registry
from almanac.output.printing import print_json, print_table
from registry import units

if TYPE_CHECKING:
    from registry.fabrics.fabrics import ObservationInfo


@click.group("cluster")
def command() -> None:
    """Machines: list them, show one, what changed, what is wrong."""


command.add_command(check_cluster)
command.add_command(export)
command.add_command(layouts)
command.add_command(optical)


@command.command("list")
@json_option
def list_clusters(as_json: bool) -> None:
    """All clusters with the time of their last observation."""
    with open_registry() as registry:
        clusters = registry.fabrics.clusters()
    rows = [
        {
            "cluster": info.name,
            "observations": info.observations,
            "snapshots": info.contents,
            "observed_at": info.last_observed_at,
        }
        for info in clusters
    ]
    if as_json:
        print_json(rows)
        return
    print_table("", ["cluster", "observations", "snapshots", "observed at"], [list(r.values()) for r in rows])


@command.command("show")
@click.argument("cluster")
@click.option("--at", type=Moment(), help="As of this time (default: now).")
@json_option
def show(cluster: str, at: datetime | None, as_json: bool) -> None:
    """Counts of one cluster's hosts, adapters, switches and cables."""
    from mapping.routing.catalog import choose_routing

    with open_registry() as registry:
        snapshot = registry.fabrics.read(cluster, at)
    fabric = snapshot.fabric
    routing, why = choose_routing(fabric)
    told = {
        "cluster": cluster,
        "hosts": len(fabric.hosts),
        "adapters": len(fabric.adapters),
        "switches": len(fabric.switches),
        "cables": fabric.cable_count,
        "capacity": float(fabric.links.capacity.sum()),
        "snapshot": snapshot.id,
        "observed_at": snapshot.observed_at,
        "routing": snapshot.routing,
        "default_routing": routing,
        "default_routing_because": why,
    }
    if as_json:
        print_json(told)
        return
    capacity = units.text(float(fabric.links.capacity.sum()), units.RATE)
    told["capacity"] = f"{capacity}, both directions of all cables"
    told["observed_at"] = units.moment_text(snapshot.observed_at)
    print_table("", ["", cluster], [[key, value] for key, value in told.items() if key != "cluster"])


@command.command("changes")
@click.argument("cluster")
@click.option("--from", "start", type=Moment(), help="Default: when the last but one wiring was seen.")
@click.option("--to", "end", type=Moment(), help="Default: now.")
@json_option
def changes(cluster: str, start: datetime | None, end: datetime | None, as_json: bool) -> None:
    """What appeared, vanished, changed or was renamed between two times."""
    from registry.fabrics.change_text import in_words

    with open_registry() as registry:
        if start is None:
            start = _before_last_change(registry.fabrics.observations(cluster), end)
        found = registry.fabrics.changes(cluster, start, end)
    if as_json:
        print_json({"cluster": cluster, **dataclasses.asdict(found)})
        return
    click.echo(f"{cluster}: {_moment(found.start)} to {_moment(found.end)}")
    for line in in_words(found) or ["nothing changed"]:
        click.echo(line)


def _before_last_change(observations: tuple[ObservationInfo, ...], end: datetime | None) -> datetime:
    """Time of the last observation of another wiring or routing than the last one's."""
    seen = [one for one in observations if end is None or one.at <= end]
    for one in reversed(seen):
        if (one.snapshot, one.routing) != (seen[-1].snapshot, seen[-1].routing):
            return one.at
    return (seen or list(observations))[0].at


def _moment(moment: datetime | None) -> str:
    return "" if moment is None else units.moment_text(moment)
