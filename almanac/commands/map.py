"""``almanac map``: find where a job's ranks should sit, save it, export it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from almanac.commands import searching
from almanac.commands.answers import show_answer, show_pareto
from almanac.commands.common import json_option, open_registry, read_hosts
from almanac.here import Here
from almanac.output import note, print_json, progress_bars, write_text

if TYPE_CHECKING:
    from mapping.answers.answer import Answer
    from mapping.answers.case import Case
    from mapping.service import Question
    from registry.model import Placement

SECONDS, SECONDS_HERE = 10.0, 5.0
"""Time to search unless told; in a job script, where all together must take less than 15 s."""


@click.command("map")
@click.argument("profile", required=False)
@click.option("--job", help="Place on this job's hosts and slots.")
@click.option("--cluster", help="Cluster of --hosts; or of --job where two clusters have one.")
@click.option("--hosts", metavar="HOSTLIST|@FILE", help="Hosts in launch order: node[01-16], or a file.")
@click.option("--slots", type=click.IntRange(min=1), help="Ranks a host takes (default: the job's, else 1).")
@click.option(
    "--here", "is_here", is_flag=True, help="Hosts and slots of the allocation around this process."
)
@click.option(
    "--fabric",
    "fabric_files",
    metavar="FILE",
    multiple=True,
    help="A scan or tables, instead of the database.",
)
@click.option("--profile", "profile_file", metavar="FILE", help="A profile's file; with --fabric.")
@click.option("--keep", metavar="ID|FILE", help="Start from this placement and move few ranks.")
@click.option("--moves", type=click.IntRange(min=0), help="With --keep: most ranks to move.")
@click.option("--pareto", is_flag=True, help="Several placements: congestion against hop-bytes.")
@click.option("--strategy", "strategies", multiple=True, help="Only these (repeat; a chain is a+b).")
@searching.options(searching.SEARCHING, searching.MEASURING)
@click.option(
    "--layout",
    "layouts",
    metavar="[HOST=]FILE",
    multiple=True,
    help="lstopo's XML of a host, or one file for all: ranks get cores.",
)
@click.option("--export", "exports", metavar="FORMAT=FILE", multiple=True, help="Write launcher files too.")
@json_option
def command(
    profile: str | None,
    job: str | None,
    cluster: str | None,
    hosts: str | None,
    slots: int | None,
    is_here: bool,
    fabric_files: tuple[str, ...],
    profile_file: str | None,
    keep: str | None,
    moves: int | None,
    pareto: bool,
    strategies: tuple[str, ...],
    objective: str,
    pins: tuple[str, ...],
    seconds: float | None,
    steps: int | None,
    seed: int,
    workers: int | None,
    routing: str | None,
    rails: str,
    distance: str | None,
    background: tuple[str, ...],
    at: datetime | None,
    layouts: tuple[str, ...],
    exports: tuple[str, ...],
    as_json: bool,
) -> None:
    """Find a placement of PROFILE's ranks that congests the fabric least.

    With --fabric and --profile nothing is read from a database, and nothing saved. With --here, in a job
    script, hosts and slots are those of the Slurm, Open MPI or PBS allocation.
    """
    _check_usage(profile, profile_file, job, cluster, hosts, is_here, fabric_files, keep, moves, pareto)
    if seconds is not None and steps is not None:
        raise click.UsageError("give either --seconds or --steps")
    from mapping.service import Question

    files = _export_files(exports)
    where = _around() if is_here else None
    convention, table = searching.read_distance(distance)
    cluster = cluster or (where.cluster if where is not None else None)
    question = Question(
        profile=profile or profile_file or "",
        job=job,
        cluster=cluster,
        hosts=where.hosts if where is not None else None if hosts is None else read_hosts(hosts),
        slots=where.slots if where is not None else slots,
        keep=None if keep is None else searching.read_order(keep, cluster or "files") or keep,
        moves=moves,
        objective=objective,
        routing=routing,
        rails=rails,
        distance=convention,
        table=table,
        pins=searching.read_pins(pins),
        strategies=strategies or None,
        seconds=seconds or (SECONDS_HERE if is_here else SECONDS),
        steps=steps,
        seed=seed,
        workers=workers,
        layouts=searching.read_layouts(layouts),
        background=searching.read_background(background),
        at=at,
    )
    if pareto:
        _show_set(question, fabric_files, files, as_json)
        return
    found = _answer(question, fabric_files)
    _export(files, found.placement, found)
    if as_json:
        print_json(found.told())
    else:
        show_answer(found)
    if not found.placement.complete:
        click.get_current_context().exit(130)


def _check_usage(
    profile: str | None,
    profile_file: str | None,
    job: str | None,
    cluster: str | None,
    hosts: str | None,
    is_here: bool,
    fabric_files: tuple[str, ...],
    keep: str | None,
    moves: int | None,
    pareto: bool,
) -> None:
    if (profile is None) == (profile_file is None):
        raise click.UsageError("give either PROFILE or --profile FILE")
    if profile_file is not None and not fabric_files:
        raise click.UsageError(
            "--profile FILE goes with --fabric FILE; a saved profile is the argument PROFILE"
        )
    ways = sum((job is not None, hosts is not None, is_here))
    if ways > 1:
        raise click.UsageError("give one of --job, --hosts and --here")
    if fabric_files and job is not None:
        raise click.UsageError("--job needs the database: not with --fabric")
    if not fabric_files and not is_here:
        if ways == 0 and keep is None:
            raise click.UsageError("give either --job, or --cluster with --hosts, or --here")
        if job is None and cluster is None:
            raise click.UsageError("--hosts needs --cluster" if hosts else "--keep needs --cluster, or --job")
    if moves is not None and keep is None:
        raise click.UsageError("--moves goes with --keep")
    if pareto and keep is not None:
        raise click.UsageError("give either --pareto or --keep")


def _around() -> Here:
    from almanac.here import here

    found = here()
    note(f"{sum(found.slots)} slots on {len(found.hosts)} hosts, from {found.source}")
    return found


def _case(question: Question, fabric_files: tuple[str, ...]) -> Case:
    """From files alone."""
    from registry.model import HostOrder

    if question.background:
        raise click.UsageError("--background needs the database: not with --fabric")
    if question.keep is not None and not isinstance(question.keep, HostOrder):
        raise click.BadParameter(f"there is no file {question.keep!r}", param_hint="--keep")
    cluster = question.cluster or Path(fabric_files[0]).name
    fabric = searching.read_fabric(fabric_files, cluster)
    profile = searching.read_profile(question.profile)
    return searching.case_from_files(fabric, profile, question.hosts, question.slots, question.keep, cluster)


def _answer(question: Question, fabric_files: tuple[str, ...]) -> Answer:
    with progress_bars() as progress:
        if fabric_files:
            from mapping.answers.answering import solve

            return solve(_case(question, fabric_files), question, progress)
        from mapping.service import answer

        _require_cluster(question)
        with open_registry() as registry:
            return answer(registry, question, progress)


def _show_set(
    question: Question, fabric_files: tuple[str, ...], files: dict[str, str], as_json: bool
) -> None:
    if files:
        raise click.UsageError("--pareto finds several placements: export the one that is wanted by its id")
    from mapping.answers.answering import trade

    with progress_bars() as progress:
        if fabric_files:
            found = trade(_case(question, fabric_files), question, progress)
        else:
            from mapping.service import case_of, save

            _require_cluster(question)
            with open_registry() as registry:
                found = trade(case_of(registry, question), question, progress)
                found = tuple(save(registry, one) for one in found)
    if as_json:
        print_json([one.told() for one in found])
    else:
        show_pareto(found)
    if not all(one.placement.complete for one in found):
        click.get_current_context().exit(130)


def _require_cluster(question: Question) -> None:
    if question.job is None and question.cluster is None:
        raise click.UsageError("--here needs --cluster: SLURM_CLUSTER_NAME is not set")


def _export(files: dict[str, str], placement: Placement, found: Answer) -> None:
    from mapping.exports.catalog import TELL_CORES, write

    for name, path in files.items():
        write_text(path, write(name, placement, found.fabric))
        silent = found.seating is not None and name not in TELL_CORES
        note(f"{name} written to {path}" + (": it cannot say which core a rank gets" if silent else ""))


def _export_files(exports: tuple[str, ...]) -> dict[str, str]:
    from mapping.exports.catalog import FORMATS

    files = {}
    for item in exports:
        name, equals, path = item.partition("=")
        if not equals or not path:
            raise click.BadParameter(f"{item!r} is not FORMAT=FILE", param_hint="--export")
        if name not in FORMATS:
            known = ", ".join(FORMATS)
            raise click.BadParameter(f"there is no format {name!r}; known: {known}", param_hint="--export")
        files[name] = path
    return files
