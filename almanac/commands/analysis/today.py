"""``almanac today``: what changed, what is broken, which jobs are slowed, and what to do first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from almanac.commands.cluster.check import EXIT_PROBLEMS, fail_on_option, is_reached
from almanac.options.common import Time, current_settings, json_option, open_registry
from almanac.output.compiling import kernel_progress_bars
from almanac.output.json.running_jobs import today_to_json
from almanac.output.printing import print_json
from almanac.output.today import today_lines

DAY = timedelta(days=1)
REGULAR = ("fabric", "tables", "counters", "jobs")
"""Kinds of data that are collected again and again, so that old ones are a problem."""


@click.command("today")
@click.argument("cluster")
@click.option("--since", type=Time(), help="Compare with this time (default: 24 hours ago).")
@fail_on_option
@json_option
def command(cluster: str, since: datetime | None, fail_on: str, as_json: bool) -> None:
    """Show on one screen what changed in CLUSTER, what is broken, which jobs are slowed, and what to do.

    The screen has at most 40 lines of 80 columns. Jobs are slowed if others load their worst link; only jobs
    with a profile and a known placement are compared. Nothing is saved.
    """
    from mapping.questions.today import read_today

    start, limits = since or datetime.now(UTC) - DAY, current_settings().error_limits()
    with open_registry() as registry, kernel_progress_bars() as progress:
        today = read_today(registry, cluster, start, limits=limits, is_rare=is_rare, progress=progress)
    if as_json:
        print_json(today_to_json(today))
    else:
        for line in today_lines(today):
            click.echo(line)
    if is_reached(today.findings, fail_on):
        click.get_current_context().exit(EXIT_PROBLEMS)


def is_rare(format: str) -> bool:
    """Return True if no new files of a format are expected every day."""
    from ingest.catalog import FORMATS

    return format in FORMATS and FORMATS.find(format).kind not in REGULAR
