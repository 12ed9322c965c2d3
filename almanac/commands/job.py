"""``almanac job``: list and show jobs, attach the profile that one ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from almanac.commands.common import json_option, open_registry
from almanac.output import print_json, print_table

if TYPE_CHECKING:
    from registry.jobs import StoredJob


@click.group("job")
def command() -> None:
    """Jobs: list, show, attach the profile that one ran."""


@command.command("list")
@click.option("--cluster", help="Only jobs of this cluster.")
@json_option
def list_jobs(cluster: str | None, as_json: bool) -> None:
    """All jobs, the newest first."""
    with open_registry() as registry:
        stored = registry.jobs.list(cluster)
    rows = [_told(item) for item in stored]
    if as_json:
        print_json(rows)
        return
    columns = ["job", "cluster", "name", "state", "ranks", "hosts", "started_at", "profile"]
    print_table("", columns, [_row(row, columns) for row in rows])


@command.command("show")
@click.argument("job")
@click.option("--cluster", help="Where two clusters have a job of this id.")
@json_option
def show(job: str, cluster: str | None, as_json: bool) -> None:
    """One job: its hosts, slots, times and profile."""
    with open_registry() as registry:
        told = _told(registry.jobs.read(job, cluster))
    if as_json:
        print_json(told)
        return
    print_table("", ["", job], [[key, _flat(value)] for key, value in told.items()])


@command.command("attach")
@click.argument("job")
@click.argument("profile")
@click.option("--cluster", help="Where two clusters have a job of this id.")
@json_option
def attach(job: str, profile: str, cluster: str | None, as_json: bool) -> None:
    """Remember which profile a job ran."""
    with open_registry() as registry:
        stored = registry.jobs.read(job, cluster)
        found = registry.profiles.read(profile)
        registry.jobs.attach(job, found.id, stored.cluster)
    if as_json:
        print_json({"job": stored.job.id, "cluster": stored.cluster, "profile": found.id})
        return
    click.echo(f"job {stored.job.id} of {stored.cluster} ran profile {found.profile.name} ({found.id})")


def _told(stored: StoredJob) -> dict[str, Any]:
    job = stored.job
    return {
        "job": job.id,
        "cluster": stored.cluster,
        "name": job.name,
        "user": job.user,
        "account": job.account,
        "partition": job.partition,
        "state": job.state,
        "submitted_at": job.submitted_at,
        "started_at": job.started_at,
        "ended_at": job.ended_at,
        "ranks": job.ranks,
        "hosts": list(job.hosts),
        "slots": list(job.slots),
        "distribution": job.distribution,
        "profile": stored.profile,
        "source": job.source,
    }


def _row(told: dict[str, Any], columns: list[str]) -> list[Any]:
    return [len(told[column]) if column == "hosts" else told[column] for column in columns]


def _flat(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, list) else value
