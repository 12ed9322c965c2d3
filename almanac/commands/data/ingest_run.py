"""``almanac ingest-run``: list and delete ingest runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from almanac.options.common import json_option, open_registry, require_cluster, top_option
from almanac.options.destructive import Destructive, destructive_options
from almanac.output.json.maintenance import run_to_json
from almanac.output.maintenance import deletion_lines, print_deletion
from almanac.output.printing import print_json, print_table

if TYPE_CHECKING:
    from registry.registry import Registry
    from registry.store.ingest_runs import RunInfo

ALL = 1_000_000
"""More runs than are stored."""


@click.group("ingest-run")
def command() -> None:
    """List ingest runs, and delete failed ones."""


@command.command("list")
@click.option("--cluster", help="Only runs of this cluster.")
@click.option("--failed", is_flag=True, help="Only failed runs.")
@top_option(50, "At most this many.")
@json_option
def list_runs(cluster: str | None, failed: bool, top: int, as_json: bool) -> None:
    """List ingest runs with their outcome, newest first."""
    with open_registry() as registry:
        found = _runs(registry, cluster, ALL if failed else top)
    rows = [run_to_json(one) for one in found if not failed or one.outcome == "failed"][:top]
    if as_json:
        print_json(rows)
        return
    columns = ["run", "cluster", "started_at", "outcome", "formats", "files", "error"]
    shown = [{**row, **{name: " ".join(row[name]) for name in ("formats", "files")}} for row in rows]
    headings = [column.replace("_", " ") for column in columns]
    print_table("", headings, [[row[column] for column in columns] for row in shown])


def _runs(registry: Registry, cluster: str | None, most: int) -> tuple[RunInfo, ...]:
    """Return the newest runs; a cluster that has none must exist, as others may have failed runs only."""
    found = tuple(registry.runs.list(cluster, limit=most))
    if not found:
        require_cluster(registry, cluster)
    return found


@command.command("delete")
@click.argument("runs", nargs=-1)
@click.option("--failed", is_flag=True, help="All failed runs.")
@click.option("--cluster", help="With --failed: only those of this cluster.")
@destructive_options
def delete(runs: tuple[str, ...], failed: bool, cluster: str | None, how: Destructive) -> None:
    """Delete RUNS, by id or the beginning of it, from the list; what they saved stays."""
    from registry.upkeep.deletion import Deletion, delete_runs

    if bool(runs) == failed:
        raise click.UsageError("name the runs to delete, or give --failed")
    if cluster is not None and not failed:
        raise click.UsageError("--cluster goes with --failed")

    def act(dry_run: bool) -> Deletion:
        with open_registry() as registry:
            chosen = runs or [one.id for one in _runs(registry, cluster, ALL) if one.outcome == "failed"]
            return delete_runs(registry.database, chosen, dry_run=dry_run)

    print_deletion(how.carry_out("Delete these ingest runs", act, deletion_lines), how)
