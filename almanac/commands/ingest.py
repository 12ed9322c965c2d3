"""``almanac ingest``: load files of fabric tools, schedulers and MPI libraries.

``almanac ingest-run``: list and delete ingest runs.

``almanac spool``: ingests that wait until the database is available.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from almanac.options import (
    Destructive,
    Time,
    current_spool,
    destructive_options,
    json_option,
    open_registry,
    print_deletion,
    read_hosts,
    require_cluster,
    top_option,
)
from almanac.output.printing import note, print_json, print_table, progress_bars, say
from almanac.output.stored_data import deletion_lines, ingest_report_to_json, queued_to_json, run_to_json
from almanac.spool import applied_text, applied_to_json, spooled_to_json
from registry import units
from registry.errors import shorten

if TYPE_CHECKING:
    from ingest.options import Options
    from ingest.pipeline import Report
    from registry.registry import Registry
    from registry.store.ingest_runs import RunInfo


EXIT_PARTIAL = 5
"""Exit code if some of the data could not be joined to the fabric."""


@click.command("ingest")
@click.argument("paths", type=click.Path(), metavar="PATH...", nargs=-1, required=True)
@click.option("--cluster", help="Cluster that the files describe; required for everything but profiles.")
@click.option("--format", "format_name", help="Format of the files (default: recognised by content).")
@click.option("--observed-at", type=Time(), help="Time of the observation (default: the time in the file).")
@click.option("--name", help="Name of the profile (default: the name of the file).")
@click.option("--rate", help="Rate of links for which the file gives none: 4xHDR, or bytes/s.")
@click.option("--hosts", help="Hosts of a rank order or task map that names none: n[01-04], or @FILE.")
@click.option("--slots", type=click.IntRange(min=1), default=1, help="Ranks on each of --hosts.")
@click.option("--job", help="Job that ran with the placement in the files.")
@click.option(
    "--allow-missing-ranks", is_flag=True, help="Accept a recording without the files of some ranks."
)
@click.option("--transposed", is_flag=True, help="In byte matrices row r holds what rank r receives.")
@click.option(
    "--divide",
    type=click.IntRange(1),
    default=1,
    help="Divide the bytes of a profile that was recorded over N repetitions by N.",
)
@click.option(
    "--parts", type=click.IntRange(1), help="Number of ranks into which METIS partitions a solver's matrix."
)
@click.option(
    "--collectives",
    type=click.Choice(["ring", "tree", "recursive-doubling", "direct", "hierarchical"]),
    default="ring",
    help="Algorithm by which collectives in traces become messages.",
)
@click.option(
    "--domain", type=click.IntRange(1), help="Ranks per NVLink domain, for --collectives hierarchical."
)
@click.option(
    "--replace",
    is_flag=True,
    help="Accept a scan or tables of other devices than those of the last scan.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Save nothing if a host or device is not in the fabric, or a plan of the wiring contradicts itself "
    "(default: warn).",
)
@click.option(
    "--spool",
    "spooled",
    is_flag=True,
    help="Queue the files if the database is away or full; apply what is queued, the oldest first.",
)
@click.option("--dry-run", is_flag=True, help="Read and check the files, save nothing.")
@json_option
def command(
    paths: tuple[str, ...],
    format_name: str | None,
    rate: str | None,
    hosts: str | None,
    slots: int,
    spooled: bool,
    dry_run: bool,
    as_json: bool,
    **others: Any,
) -> None:
    """Load files, folders or archives; `-` reads standard input. Formats are recognised by content.

    All files of one call are one observation of the cluster and are saved in one transaction: an error in
    any file saves nothing. Hosts and devices that the fabric lacks get a warning, what is known is saved,
    and the exit code is 5. With --spool, files that are queued are no error: see `almanac spool`.
    """
    if spooled and dry_run:
        raise click.UsageError("--dry-run saves nothing: not with --spool")
    from ingest.options import Options
    from ingest.pipeline import ingest

    options = Options(
        format=format_name,
        rate=None if rate is None else _rate(rate),
        hosts=() if hosts is None else read_hosts(hosts),
        slots=(slots,),
        **others,
    )
    with _missing_option_is_usage_error(), contextlib.ExitStack() as stack:
        if spooled:
            report = _ingest_through_spool(paths, options, as_json)
        else:
            registry = None if dry_run else stack.enter_context(open_registry())
            progress = stack.enter_context(progress_bars())
            report = ingest(registry, paths, options, dry_run=dry_run, progress=progress)
    if report is None:
        return
    fields = ingest_report_to_json(report, dry_run)
    if as_json:
        print_json(fields)
    else:
        for warning in fields["warnings"]:
            note(f"warning: {warning}")
        _print(report, fields)
    if fields.get("unknown_hosts") or fields.get("unknown_devices"):
        click.get_current_context().exit(EXIT_PARTIAL)


def _ingest_through_spool(paths: tuple[str, ...], options: Options, as_json: bool) -> Report | None:
    """Queue the files and apply the spool; return None if they stay queued or another process applied them.

    So files that arrive after others, which still wait, are saved after them.
    """
    from registry.errors import DatabaseError

    spool = current_spool()
    name = spool.queue(paths, options)
    why = "another process applied it"
    try:
        with open_registry() as registry, progress_bars() as progress:
            for applied in spool.apply(registry, progress=progress):
                if applied.name == name and not applied.waits:
                    if applied.error is not None:
                        raise applied.error
                    return applied.report
                note(applied_text(applied))
                why = "it waits in the spool"
    except DatabaseError as error:
        if not (spool.folder / name).exists():
            raise
        why = f"it waits in the spool, as {error}"
    if as_json:
        print_json(queued_to_json(name))
    else:
        say(f"queued as {name}: {why}")
    return None


@contextlib.contextmanager
def _missing_option_is_usage_error() -> Iterator[None]:
    """Turn an error about a missing or wrong option into a usage error."""
    from registry.errors import ConfigError

    try:
        yield
    except ConfigError as error:
        if not error.key.startswith("--"):
            raise
        raise click.UsageError(error.reason) from error


def _rate(text: str) -> float:
    """Return the bytes/s of ``4xHDR`` or of a number."""
    import re

    from ingest.formats.fabrics.infiniband import link_rate

    named = re.fullmatch(r"(\d+)x([A-Za-z]+\d*)", text)
    try:
        return link_rate(int(named[1]), named[2].upper()) if named else float(text)
    except (KeyError, ValueError) as error:
        raise click.BadParameter(
            f"{text!r} is neither a rate such as 4xHDR nor a number of bytes/s", param_hint="--rate"
        ) from error


def _print(report: Report, fields: dict[str, Any]) -> None:
    """Print a line for each kind of data that was read."""
    from registry.store.saving import describe

    if fields["same_as"] is not None:
        say(f"same content as read at {units.moment_text(fields['same_as'])}: nothing to add")
    if fields["compared_at"] is not None:
        time, count = units.moment_text(fields["compared_at"]), len(fields["disagreements"])
        result = f"{count} differences, listed above" if count else "no differences"
        say(
            f"compared with the fabric of {fields['cluster']} observed at {time}: {result}; "
            "the files have no ports, so the stored fabric is kept"
        )
    for line in describe(report.intake, report.receipt):
        say(line)


ALL = 1_000_000
"""More runs than are stored."""


@click.group("ingest-run")
def ingest_run() -> None:
    """List ingest runs, and delete failed ones."""


@ingest_run.command("list")
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


@ingest_run.command("delete")
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


COLUMNS = ("entry", "queued at", "state", "cluster", "files", "size")


@click.group("spool")
def spool() -> None:
    """List and apply ingests that wait until the database is available.

    `almanac ingest --spool` and `almanac serve` queue them.
    """


@spool.command("list")
@json_option
def list_entries(as_json: bool) -> None:
    """List what waits, the oldest first, and what was rejected."""
    rows = [spooled_to_json(info) for info in current_spool().entries()]
    if as_json:
        print_json(rows)
    elif not rows:
        say("nothing waits")
    else:
        table = [
            [
                row["entry"],
                units.moment_text(row["queued_at"]),
                f"rejected: {shorten(row['reason'])}" if row["rejected"] else "waits",
                row["cluster"],
                ", ".join(row["files"]),
                units.text(row["bytes"], units.BYTES),
            ]
            for row in rows
        ]
        print_table("", COLUMNS, table)


@spool.command("apply")
@click.option("--rejected", is_flag=True, help="Also try the rejected ones again.")
@json_option
def apply(rejected: bool, as_json: bool) -> None:
    """Ingest what waits, the oldest first, each with its own time; exit with 1 if something is rejected.

    If the database is away or full, the rest keeps waiting.
    """
    spool = current_spool()
    if rejected:
        spool.try_again()
    applied = []
    if spool.waiting():
        with open_registry() as registry, progress_bars() as progress:
            for one in spool.apply(registry, progress=progress):
                applied.append(one)
                if not as_json:
                    say(applied_text(one))
    if as_json:
        print_json(applied_to_json(applied))
    elif not applied:
        say("nothing waits")
    if any(one.error is not None for one in applied):
        click.get_current_context().exit(1)
