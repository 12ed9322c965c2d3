"""``almanac cluster check``: report problems of a fabric, to people and to cron."""

from __future__ import annotations

from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from almanac.options.common import Time, current_settings, json_option, open_registry
from almanac.output.json.stored_data import findings_to_json
from almanac.output.printing import print_json, print_table, say

if TYPE_CHECKING:
    from mapping.checks.finding import Subject

EXIT_PROBLEMS = 4
"""Exit code if a problem of severity ``--fail-on`` or worse was found."""
NEVER = "never"
SHOWN = 10
"""Problems listed for each check and severity."""


@click.command("check")
@click.argument("cluster", required=False)
@click.option("--at", type=Time(), help="At this time (default: now).")
@click.option(
    "--fabric",
    multiple=True,
    metavar="FILE",
    help="Check a scan with forwarding tables or intended wiring from files, not from the database (repeat).",
)
@click.option(
    "--only", multiple=True, metavar="CHECK", help="Run only this check, see docs/operations.md (repeat)."
)
@click.option(
    "--fail-on",
    type=click.Choice(["note", "warning", "error", NEVER]),
    default="error",
    show_default=True,
    help="Exit with 4 if a problem of this severity or worse is found.",
)
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
    from mapping.checks.catalog import check, worst
    from mapping.checks.finding import Severity

    if bool(cluster) == bool(fabric):
        raise click.UsageError("give either a cluster of the database, or files with --fabric")
    if fabric and at is not None:
        raise click.UsageError("--at selects a time in the database: not with --fabric")
    findings = check(_subject(cluster, at, fabric), only or None)
    rows = findings_to_json(findings)
    if as_json:
        print_json({"cluster": cluster, "findings": rows})
    elif rows:
        listed = _listed(rows, len(rows) if show_all else SHOWN)
        print_table("", ["severity", "check", "problem"], listed, least=("check",))
    else:
        say("no problems found")
    highest = worst(findings)
    if fail_on != NEVER and highest is not None and highest >= Severity.of(fail_on):
        click.get_current_context().exit(EXIT_PROBLEMS)


def _listed(rows: list[dict[str, Any]], most: int) -> list[list[str]]:
    """Return the first rows of each check and severity, and how many more there are."""
    listed: list[list[str]] = []
    for (severity, name), group in groupby(rows, key=lambda row: (row["severity"], row["check"])):
        texts = [str(row["text"]) for row in group]
        listed += [[severity, name, text] for text in texts[:most]]
        if len(texts) > most:
            listed.append([severity, name, f"and {len(texts) - most} more: --all"])
    return listed


def _subject(cluster: str | None, at: datetime | None, files: tuple[str, ...]) -> Subject:
    """Return the data to check: a cluster of the database, or a scan, tables and wiring of files."""
    if cluster is None:
        from almanac.options.files import read_wiring
        from mapping.checks.finding import Subject

        fabric, plan = read_wiring(files, "files")
        return Subject(fabric=fabric, plan=plan)
    from mapping.service.placing import subject_of

    limits = current_settings().error_limits()
    with open_registry() as registry:
        return subject_of(registry, cluster, at, limits)
