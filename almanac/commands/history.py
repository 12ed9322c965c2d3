"""``almanac history``: placements made so far, their quality, and whether it gets worse."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import TYPE_CHECKING

import click

from almanac.commands import history_circuits, history_simulations
from almanac.commands.cluster.check import FOUND
from almanac.commands.history_rows import COLUMNS, Asked, series_rows
from almanac.options.common import Moment, json_option, must_know, open_registry
from almanac.output.printing import print_json, print_table

if TYPE_CHECKING:
    from registry.registry import Registry


@click.command("history")
@click.option("--cluster", help="Only placements on this cluster.")
@click.option("--application", help="Only placements of this application.")
@click.option("--job", help="Only placements of this job.")
@click.option("--limit", type=click.IntRange(min=1), help="The newest so many.")
@click.option(
    "--regressions",
    "worse",
    is_flag=True,
    help=f"Only those that leave the control limits of those before; exit with {FOUND} where there are any.",
)
@click.option("--since", type=Moment(), help="With --regressions: recorded then or later.")
@click.option("--simulations", "runs", is_flag=True, help="Runs that were simulated, instead of placements.")
@click.option("--placement", metavar="ID", help="With --simulations: only runs of this placement.")
@click.option("--circuits", is_flag=True, help="Plans for optical switches, instead of placements.")
@json_option
def command(
    cluster: str | None,
    application: str | None,
    job: str | None,
    limit: int | None,
    worse: bool,
    since: datetime | None,
    runs: bool,
    placement: str | None,
    circuits: bool,
    as_json: bool,
) -> None:
    """Placements made so far, the newest first, with their bounds and baselines.

    With --regressions: placements whose worst link, over its certified bound, is above the median and three
    scaled median absolute deviations of the up to 20 before them (5 at least) of the same application and
    profile, and 5% worse than that median; with what changed since the last good one.

    With --simulations: runs of placements that were simulated and saved, the newest first.

    With --circuits: configurations that `almanac reconfigure` proposed, the newest first.
    """
    if since is not None and not worse:
        raise click.UsageError("--since goes with --regressions")
    if runs + worse + circuits > 1:
        raise click.UsageError("give one of --simulations, --regressions and --circuits")
    if placement is not None and not runs:
        raise click.UsageError("--placement goes with --simulations")
    asked = Asked(cluster, application, job, limit, as_json)
    found = False
    with open_registry() as registry:
        if circuits:
            history_circuits.show(registry, asked)
        elif runs:
            history_simulations.show(registry, asked, placement)
        elif worse:
            found = _regressions(registry, asked, since)
        else:
            _history(registry, asked)
    if found:
        click.get_current_context().exit(FOUND)


def _history(registry: Registry, asked: Asked) -> None:
    cluster, application, job, limit, as_json = asked
    if not as_json and job is None and limit is None:
        series = registry.placements.series(cluster=cluster, application=application)
        print_table("", COLUMNS, series_rows(series))
        return
    infos = registry.placements.history(cluster=cluster, application=application, job=job, limit=limit)
    if as_json:
        print_json([dataclasses.asdict(info) for info in infos])
    else:
        print_table("", COLUMNS, [[getattr(info, column) for column in COLUMNS] for info in infos])


def _regressions(registry: Registry, asked: Asked, since: datetime | None) -> bool:
    """Print them; whether there are any."""
    from mapping.traffic.quality import regressions
    from registry.model import as_utc

    series = registry.placements.series(cluster=asked.cluster, application=asked.application)
    if not len(series):
        must_know(registry, asked.cluster)
    found = [
        one
        for one in regressions(series)
        if asked.job in (None, one.job) and (since is None or one.recorded_at >= as_utc(since))
    ][: asked.limit]
    rows = [dataclasses.asdict(one) for one in found]
    for row in rows:
        del row["row"]
        row["profile"] = row.pop("profile_name")
    if asked.as_json:
        print_json(rows)
    elif rows:
        columns = ["id", "recorded_at", "cluster", "profile", "role", "job", "ratio", "centre", "limit",
                   "last_good"]  # fmt: skip
        told = [[*(row[column] for column in columns), ", ".join(row["changed"]) or "-"] for row in rows]
        print_table("", [*columns, "changed"], told)
    else:
        click.echo("no regressions")
    return bool(found)
