"""``almanac cluster check``: what is wrong with a fabric, for people and for cron."""

from __future__ import annotations

from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from almanac.options.common import Moment, json_option, open_registry
from almanac.output.printing import print_json, print_table

if TYPE_CHECKING:
    from mapping.checks.finding import Subject

FOUND = 4
"""Exit code where something at or above ``--fail-on`` was found."""
NEVER = "never"
SHOWN = 10
"""Findings of one check and severity that are listed."""


@click.command("check")
@click.argument("cluster", required=False)
@click.option("--at", type=Moment(), help="As of this time (default: now).")
@click.option(
    "--fabric", multiple=True, metavar="FILE", help="A scan, tables or a plan, instead of the database."
)
@click.option("--only", multiple=True, metavar="CHECK", help="Only this check (repeat).")
@click.option(
    "--fail-on",
    type=click.Choice(["note", "warning", "error", NEVER]),
    default="error",
    show_default=True,
    help="Exit with 4 where something of this severity or worse is found.",
)
@click.option("--all", "show_all", is_flag=True, help=f"Not only the first {SHOWN} of a check and severity.")
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
    """Slow, missing and swapped cables, down ports, lost ways, loops, credit loops, doubled names."""
    from mapping.checks.catalog import check, worst
    from mapping.checks.finding import Severity

    if bool(cluster) == bool(fabric):
        raise click.UsageError("give a cluster of the database, or files with --fabric")
    if fabric and at is not None:
        raise click.UsageError("--at: files tell of one time only")
    findings = check(_subject(cluster, at, fabric), only or None)
    rows = [
        {
            "severity": str(finding.severity),
            "check": finding.check,
            "subject": finding.subject,
            "count": finding.count,
            "text": finding.text,
        }
        for finding in findings
    ]
    if as_json:
        print_json({"cluster": cluster, "findings": rows})
    elif rows:
        print_table("", ["severity", "check", "found"], _listed(rows, len(rows) if show_all else SHOWN))
    else:
        click.echo("nothing found")
    highest = worst(findings)
    if fail_on != NEVER and highest is not None and highest >= Severity.of(fail_on):
        click.get_current_context().exit(FOUND)


def _listed(rows: list[dict[str, Any]], most: int) -> list[list[str]]:
    """The first rows of each check and severity, and how many there are beside."""
    found: list[list[str]] = []
    for (severity, name), group in groupby(rows, key=lambda row: (row["severity"], row["check"])):
        texts = [str(row["text"]) for row in group]
        found += [[severity, name, text] for text in texts[:most]]
        if len(texts) > most:
            found.append([severity, name, f"and {len(texts) - most} more: --all"])
    return found


def _subject(cluster: str | None, at: datetime | None, files: tuple[str, ...]) -> Subject:
    """What the database knows of a cluster, or what files tell: a scan, tables, intended wiring."""
    if cluster is None:
        from almanac.commands.searching import read_wiring
        from mapping.checks.finding import Subject

        fabric, plan = read_wiring(files, "files")
        return Subject(fabric=fabric, plan=plan)
    from mapping.service import subject_of

    with open_registry() as registry:
        return subject_of(registry, cluster, at)
