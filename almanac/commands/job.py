"""``almanac job``: list, show, export and delete jobs, attach the profile of a job."""

from __future__ import annotations

import re
from typing import Any

import click

from almanac.options import (
    DEPENDENTS,
    Destructive,
    destructive_options,
    export_argument,
    json_option,
    open_registry,
    print_deletion,
    require_cluster,
)
from almanac.output.printing import label, note, print_fields, print_json, print_table, say, write_text
from almanac.output.stored_data import deletion_lines, job_to_json
from registry import units

_ATTACHED = ("job", "cluster", "profile_id", "iteration_seconds", "iteration_from")
_OF_CLUSTER = "Cluster of the job; needed if two clusters have a job with this id."


@click.group("job")
def command() -> None:
    """List, show, export and delete jobs, attach the profile of a job."""


@command.command("list")
@click.option("--cluster", help="Only jobs of this cluster.")
@json_option
def list_jobs(cluster: str | None, as_json: bool) -> None:
    """List all jobs, newest first."""
    with open_registry() as registry:
        require_cluster(registry, cluster)
        rows = [job_to_json(stored) for stored in registry.jobs.list(cluster)]
    if as_json:
        print_json(rows)
        return
    columns = ["job", "cluster", "name", "state", "ranks", "hosts", "started_at", "profile_id"]
    counted = [{**row, "hosts": len(row["hosts"])} for row in rows]
    print_table(
        "",
        [label(column) for column in columns],
        [[row[column] for column in columns] for row in counted],
        least=("profile id", "name", "cluster"),
    )


@command.command("show")
@click.argument("job")
@click.option("--cluster", help=_OF_CLUSTER)
@json_option
def show(job: str, cluster: str | None, as_json: bool) -> None:
    """Show the hosts, slots, times and profile of a job."""
    with open_registry() as registry:
        stored = registry.jobs.read(job, cluster)
        fields = job_to_json(stored) | {"unknown_hosts": list(registry.jobs.unknown_hosts(stored))}
    if as_json:
        print_json(fields)
        return
    print_fields(job, {key: _joined(value) for key, value in fields.items()})


@command.command("attach")
@click.argument("job")
@click.argument("profile")
@click.option("--cluster", help=_OF_CLUSTER)
@click.option(
    "--iteration-seconds",
    type=float,
    help="Time in which the job sends the profile once (default: as in the profile's newest trace).",
)
@json_option
def attach(
    job: str, profile: str, cluster: str | None, iteration_seconds: float | None, as_json: bool
) -> None:
    """Store that JOB ran the application of PROFILE."""
    with open_registry() as registry:
        stored = registry.jobs.read(job, cluster)
        attached = registry.profiles.read(profile)
        registry.jobs.attach(job, attached.id, stored.cluster, iteration_seconds=iteration_seconds)
        stored = registry.jobs.read(job, stored.cluster)
    if as_json:
        print_json({key: job_to_json(stored)[key] for key in _ATTACHED})
        return
    time = ""
    if stored.iteration_seconds is not None:
        time = (
            f", {units.text(stored.iteration_seconds, units.SECONDS)} an iteration ({stored.iteration_from})"
        )
    say(
        f"profile {attached.profile.name} ({attached.id}) attached to job {stored.job.id} of "
        f"{stored.cluster}{time}"
    )


@command.command("export")
@click.argument("job")
@export_argument(lambda: ["csv"], "csv")
@click.option("--cluster", help=_OF_CLUSTER)
@click.option(
    "--distribution",
    type=click.Choice(["block", "cyclic", "plane"]),
    help="How srun distributed the ranks (default: as in the job's record, else block).",
)
@click.option(
    "--plane", type=click.IntRange(min=1), help="Plane size of --distribution plane; records do not have it."
)
@click.option(
    "--slurm-version",
    metavar="VERSION",
    help="Version of the Slurm that ran the job, such as 26.05 (default: one before 26.05).",
)
@click.option(
    "--topology",
    type=click.Path(),
    help="Its topology.conf or topology.yaml with switches or blocks: from 26.05 on, `block` visits them in "
    "turn.",
)
def export(
    job: str,
    exports: tuple[tuple[str, str | None], ...],
    cluster: str | None,
    distribution: str | None,
    plane: int | None,
    slurm_version: str | None,
    topology: str | None,
) -> None:
    """Write CSV with the host of each rank of JOB, which `evaluate --placement` and `map --keep` read."""
    from registry.model.placement import BLOCK, order_of_job

    leaves = _leaves(slurm_version, topology)
    with open_registry() as registry:
        record = registry.jobs.read(job, cluster).job
    if not distribution and not record.distribution:
        note(f"the record of job {record.id} has no distribution: {BLOCK} is assumed")
    if sum(record.slots) != record.ranks:
        note(f"the record of job {record.id} lacks the ranks per host: they are spread over its slots")
    order = order_of_job(record, distribution=distribution, plane=plane, leaves=leaves)
    rows = "".join(f"{rank},{host}\n" for rank, host in enumerate(order.hosts))
    for _, path in exports:
        write_text(path, f"rank,host\n{rows}")


def _leaves(version: str | None, topology: str | None) -> tuple[tuple[str, ...], ...]:
    """Return the hosts of each switch or block that Slurm of a version visits in turn; none before 26.05."""
    if version is None:
        if topology is not None:
            raise click.UsageError("--topology needs --slurm-version")
        return ()
    from registry.model.placement import measured_version, visits_leaves

    found = re.fullmatch(r"(\d{2})\.(\d{1,2})(\..*)?", version)
    if found is None:
        raise click.BadParameter(f"{version!r} is not a version such as 26.05", param_hint="--slurm-version")
    number = (int(found[1]), int(found[2]))
    measured = measured_version(number)
    if number != measured:
        note(f"Slurm {version} was not measured: the rule of {measured[0]}.{measured[1]:02} is used")
    if not visits_leaves(measured):
        return ()
    if topology is None:
        note("without --topology hosts are in the order of the job, as with topology/flat")
        return ()
    from ingest.formats.fabrics.slurm_topology import read_leaves

    return read_leaves(topology)


@command.command("delete")
@click.argument("job")
@click.option("--cluster", help=_OF_CLUSTER)
@DEPENDENTS
@destructive_options
def delete(job: str, cluster: str | None, with_dependents: bool, how: Destructive) -> None:
    """Delete a JOB; its placements and circuit plans are its dependents."""
    from registry.upkeep.deletion import Deletion, delete_job

    def act(dry_run: bool) -> Deletion:
        with open_registry() as registry:
            return delete_job(
                registry.database, job, cluster, with_dependents=with_dependents, dry_run=dry_run
            )

    print_deletion(how.carry_out(f"Delete job {job}", act, deletion_lines), how)


def _joined(value: Any) -> Any:
    return " ".join(map(str, value)) if isinstance(value, list) else value
