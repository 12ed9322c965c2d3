"""``almanac job``: list and show jobs, attach the profile that one ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from almanac.options.common import json_option, open_registry
from almanac.output.printing import note, print_json, print_table, write_text

if TYPE_CHECKING:
    from registry.jobs.jobs import StoredJob


@click.group("job")
def command() -> None:
    """Jobs: list, show, tell where ranks sat, attach the profile that one ran."""


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


@command.command("ranks")
@click.argument("job")
@click.option("--cluster", help="Where two clusters have a job of this id.")
@click.option(
    "--distribution",
    type=click.Choice(["block", "cyclic", "plane"]),
    help="How srun dealt the ranks (default: what the record says, else block).",
)
@click.option("--plane", type=click.IntRange(min=1), help="Ranks a round of plane; no record tells it.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), help="Default: standard output.")
def ranks(
    job: str, cluster: str | None, distribution: str | None, plane: int | None, output: str | None
) -> None:
    """Write the host of each rank of a job as CSV, which `evaluate --placement` and `map --keep` read."""
    from registry.model.rank_order import BLOCK, order_of_job

    with open_registry() as registry:
        stored = registry.jobs.read(job, cluster)
    told = stored.job
    if not distribution and not told.distribution:
        note(f"the record of job {told.id} tells no distribution: taken to be {BLOCK}")
    if sum(told.slots) != told.ranks:
        note(f"the record of job {told.id} does not tell how many ranks each host had: shared over its slots")
    order = order_of_job(told, distribution=distribution, plane=plane)
    rows = "".join(f"{rank},{host}\n" for rank, host in enumerate(order.hosts))
    write_text(output, f"rank,host\n{rows}")


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
