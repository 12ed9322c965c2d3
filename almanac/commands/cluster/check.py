"""``almanac cluster check``: report problems of a fabric, to people and to cron."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING

import click

from almanac.options.common import Time, current_settings, json_option, open_registry
from almanac.output.json.stored_data import findings_to_json
from almanac.output.printing import print_json, print_table, say

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
        from almanac.options.files import read_wiring
        from mapping.checks.finding import Subject

        fabric, plan = read_wiring(files)
        return Subject(fabric=fabric, plan=plan)
    from mapping.questions.place import subject_of

    limits = current_settings().error_limits()
    with open_registry() as registry:
        return subject_of(registry, cluster, at, limits)
