"""``almanac cluster accept``, ``delete``, ``rename`` and ``merge``: changes of whole clusters."""

from __future__ import annotations

from datetime import datetime

import click

from almanac.options.common import Time, open_registry
from almanac.options.destructive import Destructive, destructive_options
from almanac.output.maintenance import deletion_lines, move_lines, print_deletion, print_move
from almanac.output.printing import progress_bars, say


@click.command("delete")
@click.argument("cluster")
@destructive_options
def delete(cluster: str, how: Destructive) -> None:
    """Delete CLUSTER with its observations, jobs, counters, placements and ingest runs.

    Profiles belong to no cluster and stay. A large cluster is deleted in several transactions: after an
    interruption run the command again.
    """
    from registry.upkeep.clusters import delete_cluster
    from registry.upkeep.deletion import Deletion

    def act(dry_run: bool) -> Deletion:
        with open_registry() as registry, progress_bars() as progress:
            return delete_cluster(registry.database, cluster, dry_run=dry_run, progress=progress)

    print_deletion(how.carry_out(f"Delete cluster {cluster}", act, deletion_lines), how)


@click.command("rename")
@click.argument("cluster")
@click.argument("name")
@destructive_options
def rename(cluster: str, name: str, how: Destructive) -> None:
    """Give CLUSTER the new NAME; the old one is free afterwards."""
    from registry.upkeep.clusters import Move, rename_cluster

    def act(dry_run: bool) -> Move:
        with open_registry() as registry:
            return rename_cluster(registry.database, cluster, name, dry_run=dry_run)

    print_move(how.carry_out(f"Rename cluster {cluster} to {name}", act, move_lines), how)


@click.command("accept")
@click.argument("cluster")
@click.option("--at", type=Time(), help="The fabric at this time (default: now).")
def accept(cluster: str, at: datetime | None) -> None:
    """Take CLUSTER's fabric as it should be: what vanished before is no longer reported as missing."""
    from mapping.checks.vanished import name

    with open_registry() as registry:
        retired = registry.fabrics.accept(cluster, at)
    for one in retired:
        say(f"{one.kind} {name(one)} is no longer missed")
    if not retired:
        say(f"nothing is missing from {cluster}")


@click.command("merge")
@click.argument("cluster")
@click.argument("into")
@click.option("--force", is_flag=True, help="Merge in spite of conflicts: the data of INTO are kept.")
@destructive_options
def merge(cluster: str, into: str, force: bool, how: Destructive) -> None:
    """Move all data of CLUSTER to INTO: the same machine, ingested under two names.

    Nothing is moved if jobs of the same id, counters of the same hour or the optical switches differ, or if
    fewer than half of the devices are in both fabrics.
    """
    from registry.upkeep.clusters import Move, merge_clusters

    def act(dry_run: bool) -> Move:
        with open_registry() as registry:
            return merge_clusters(registry.database, cluster, into, force=force, dry_run=dry_run)

    print_move(how.carry_out(f"Move all data of cluster {cluster} to {into}", act, move_lines), how)
