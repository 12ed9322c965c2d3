"""``almanac cluster``: list clusters, show one, its changes and host layouts, export its wiring.

``almanac cluster check``: report problems of a fabric, to people and to cron.

``almanac cluster accept``, ``delete``, ``rename`` and ``merge``: changes of whole clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from almanac.commands.optical import optical
from almanac.options import (
    Destructive,
    Time,
    current_settings,
    destructive_options,
    export_argument,
    json_option,
    open_registry,
    print_deletion,
    print_move,
    require_cluster,
)
from almanac.output.printing import (
    note,
    print_fields,
    print_json,
    print_table,
    progress_bars,
    say,
    write_text,
)
from almanac.output.stored_data import (
    changes_to_json,
    cluster_to_json,
    deletion_lines,
    findings_to_json,
    host_layout_to_json,
    move_lines,
    snapshot_to_json,
)
from registry import units
from registry.exports.catalog import FORMATS, write

if TYPE_CHECKING:
    from mapping.checks.finding import Finding, Subject


EXIT_PROBLEMS = 4
"""Exit code if a problem of severity ``--fail-on`` or worse was found."""
NEVER = "never"
SHOWN = 10
"""Problems listed for each check and severity."""


fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(["note", "warning", "error", NEVER]),
    default="error",
    show_default=True,
    help="Exit with 4 if a problem of this severity or worse is found.",
)
"""Option ``--fail-on`` of commands that report findings; see `is_reached`."""


def is_reached(findings: Sequence[Finding], fail_on: str) -> bool:
    """Return True if a finding has the severity of ``--fail-on`` or a worse one."""
    from mapping.checks.checks import worst
    from mapping.checks.finding import Severity

    highest = worst(findings)
    return fail_on != NEVER and highest is not None and highest >= Severity.of(fail_on)


@click.command("check")
@click.argument("cluster", required=False)
@click.option("--at", type=Time(), help="At this time (default: now).")
@click.option(
    "--fabric",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="Check a scan with forwarding tables or intended wiring from files, not from the database (repeat).",
)
@click.option(
    "--only",
    multiple=True,
    metavar="CHECK",
    help="Run only this check, see docs/how-to/monitoring.md (repeat).",
)
@fail_on_option
@click.option(
    "--all", "show_all", is_flag=True, help=f"List all problems, not only {SHOWN} per check and severity."
)
@json_option
def check_cluster(
    cluster: str | None,
    at: datetime | None,
    fabric: tuple[str, ...],
    only: tuple[str, ...],
    fail_on: str,
    show_all: bool,
    as_json: bool,
) -> None:
    """Find slow, faulty, missing and swapped cables, down ports, bad routes, credit loops, duplicate names.

    A cable is faulty if its errors grew beyond the limits in the last day, or if it went down repeatedly.
    """
    from mapping.checks.checks import check

    if bool(cluster) == bool(fabric):
        raise click.UsageError("give either a cluster of the database, or files with --fabric")
    if fabric and at is not None:
        raise click.UsageError("--at selects a time in the database: not with --fabric")
    subject = _subject(cluster, at, fabric)
    findings = check(subject, only or None)
    if as_json:
        print_json({"cluster": cluster, "findings": findings_to_json(findings)})
    elif findings:
        listed = _listed(findings, len(findings) if show_all else SHOWN)
        print_table("", ["severity", "check", "problem"], listed, least=("check",))
    else:
        say("no problems found")
    if subject.plan is not None and "wiring" in (only or ("wiring",)) and not as_json:
        say(f"compared with the intended wiring of {len(subject.plan):,} cables")
    if is_reached(findings, fail_on):
        click.get_current_context().exit(EXIT_PROBLEMS)


def _listed(findings: Sequence[Finding], most: int) -> list[list[str]]:
    """Return the first findings of each severity, check and group, and how many more there are."""
    listed: list[list[str]] = []
    for (severity, name), group in groupby(findings, key=lambda one: (str(one.severity), one.heading)):
        texts = [one.text for one in group]
        listed += [[severity, name, text] for text in texts[:most]]
        if len(texts) > most:
            listed.append([severity, name, f"and {len(texts) - most} more: --all"])
    return listed


def _subject(cluster: str | None, at: datetime | None, files: tuple[str, ...]) -> Subject:
    """Return the data to check: a cluster of the database, or a scan, tables and wiring of files."""
    if cluster is None:
        from almanac.options import read_wiring
        from mapping.checks.finding import Subject

        fabric, plan = read_wiring(files)
        return Subject(fabric=fabric, plan=plan)
    from mapping.questions.place import subject_of

    limits = current_settings().error_limits()
    with open_registry() as registry:
        return subject_of(registry, cluster, at, limits)


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
