"""``almanac observation``: list and delete observations of a cluster's fabric."""

from __future__ import annotations

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
    """List the observations of CLUSTER with their ids, the oldest first."""
    with open_registry() as registry:
        rows = [observation_to_json(cluster, one) for one in registry.fabrics.observations(cluster)]
    if as_json:
        print_json(rows)
        return
    columns = ["observation", "observed_at", "snapshot", "routing_id", "origin"]
    headings = ["observation", "observed at", "snapshot", "forwarding tables", "origin"]
    print_table("", headings, [[row[column] for column in columns] for row in rows])


@command.command("delete")
@click.argument("observation")
@DEPENDENTS
@destructive_options
def delete(observation: str, with_dependents: bool, how: Destructive) -> None:
    """Delete an OBSERVATION, by its id or the beginning of it, as if it had never been made.

    The cluster is then as the other observations saw it. Snapshot and forwarding tables that no other
    observation saw are deleted too; placements and simulations on them are its dependents.
    """
    from registry.maintenance.deletion import Deletion, delete_observation

    def act(dry_run: bool) -> Deletion:
        with open_registry() as registry:
            return delete_observation(
                registry.database, observation, with_dependents=with_dependents, dry_run=dry_run
            )

    print_deletion(how.carry_out(f"Delete observation {observation}", act, deletion_lines), how)
