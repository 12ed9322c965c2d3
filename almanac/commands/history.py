"""``almanac history``: placements made so far and their quality."""

from __future__ import annotations

import dataclasses

import click

from almanac.commands.common import json_option, open_registry
from almanac.output import print_json, print_table


@click.command("history")
@click.option("--cluster", help="Only placements on this cluster.")
@click.option("--application", help="Only placements of this application.")
@click.option("--job", help="Only placements of this job.")
@json_option
def command(cluster: str | None, application: str | None, job: str | None, as_json: bool) -> None:
    """Placements made so far, the newest first, with their bounds and baselines."""
    with open_registry() as registry:
        infos = registry.placements.history(cluster=cluster, application=application, job=job)
    rows = [dataclasses.asdict(info) for info in infos]
    if as_json:
        print_json(rows)
        return
    columns = ["id", "recorded_at", "cluster", "profile", "job", "strategy", "congestion_seconds",
               "hop_bytes", "average_dilation", "complete"]  # fmt: skip
    print_table("", columns, [[row[column] for column in columns] for row in rows])
