"""``almanac observation``: list and delete observations of a cluster's fabric."""

from __future__ import annotations

from collections.abc import Sequence

import click

from almanac.options.common import json_option, open_registry
from almanac.options.destructive import DEPENDENTS, Destructive, destructive_options
from almanac.output.json.maintenance import observation_to_json
from almanac.output.maintenance import deletion_lines, print_deletion
from almanac.output.printing import print_json, print_table


@click.group("observation")
def command() -> None:
    """List and delete observations: what one ingest saw of a fabric at one time."""


@command.command("list")
@click.argument("cluster")
@json_option
def list_observations(cluster: str, as_json: bool) -> None:
    """List the observations of CLUSTER with their ids, sizes and files, the oldest first."""
    with open_registry() as registry:
        files = registry.runs.scanned_files(cluster)
        rows = [
            observation_to_json(cluster, one, files.get(one.digest, ()))
            for one in registry.fabrics.observations(cluster)
        ]
    if as_json:
        print_json(rows)
        return
    columns = {
        "observation": "observation",
        "observed_at": "observed at",
        "host_count": "hosts",
        "unnamed_adapter_count": "unnamed adapters",
        "switch_count": "switches",
        "cable_count": "cables",
        "files": "file",
        "routing_id": "forwarding tables",
        "origin": "origin",
        "snapshot": "snapshot",
    }
    shown = [row | {"files": _first(row["files"])} for row in rows]
    print_table("", list(columns.values()), [[row[column] for column in columns] for row in shown])


def _first(files: Sequence[str]) -> str:
    """Return the first path, and how many more there are."""
    return "".join(files[:1]) + (f" and {len(files) - 1:,} more" if len(files) > 1 else "")


@command.command("delete")
@click.argument("observation")
@DEPENDENTS
@destructive_options
def delete(observation: str, with_dependents: bool, how: Destructive) -> None:
    """Delete an OBSERVATION, by its id or the beginning of it, as if it had never been made.

    The cluster is then as the other observations saw it. Snapshot and forwarding tables that no other
    observation saw are deleted too; placements and simulations on them are its dependents.
    """
    from registry.upkeep.deletion import Deletion, delete_observation

    def act(dry_run: bool) -> Deletion:
        with open_registry() as registry:
            return delete_observation(
                registry.database, observation, with_dependents=with_dependents, dry_run=dry_run
            )

    print_deletion(how.carry_out(f"Delete observation {observation}", act, deletion_lines), how)
