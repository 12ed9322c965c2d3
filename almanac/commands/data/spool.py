"""``almanac spool``: ingests that wait until the database is available."""

from __future__ import annotations

import click

from almanac.options.common import current_spool, json_option, open_registry
from almanac.output.json.service import applied_to_json, spooled_to_json
from almanac.output.printing import print_json, print_table, progress_bars, say
from almanac.output.service import applied_text
from registry import units
from registry.errors import shorten

COLUMNS = ("entry", "queued at", "state", "cluster", "files", "size")


@click.group("spool")
def command() -> None:
    """List and apply ingests that wait until the database is available.

    `almanac ingest --spool` and `almanac serve` queue them.
    """


@command.command("list")
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


@command.command("apply")
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
