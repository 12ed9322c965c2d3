"""``almanac map``: find where a job's ranks should sit, save it, export it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from almanac.commands import searching
from almanac.commands.answers import show_answer, show_pareto
from almanac.commands.common import json_option, open_registry, read_hosts
from almanac.here import Here
from almanac.output import note, print_json, progress_bars, write_text

if TYPE_CHECKING:
    from mapping.service import Question
    from mapping.service.answers.answer import Answer
    from mapping.service.answers.case import Case
    from registry.model import Placement

SECONDS_HERE = 5.0
"""Time to search in a job script unless told: all together must take less than 15 s."""


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
@searching.searching
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
    pareto: bool,
    strategies: tuple[str, ...],
    searched: searching.Searched,
    layouts: tuple[str, ...],
    exports: tuple[str, ...],
    as_json: bool,
    **where: Any,
) -> None:
    """Find a placement of PROFILE's ranks that congests the fabric least.

    With --fabric and --profile nothing is read from a database, and nothing saved. With --here, in a job
    script, hosts and slots are those of the Slurm, Open MPI or PBS allocation.
    """
    place = Where(**where)
    place.check()
    searched.check()
    if pareto and place.keep is not None:
        raise click.UsageError("give either --pareto or --keep")
    files = _export_files(exports)
    question = place.question(searched, strategies, layouts)
    if pareto:
        _show_set(question, place.fabric_files, files, as_json)
        return
    found = _answer(question, place.fabric_files)
    _export(files, found.placement, found)
    if as_json:
        print_json(found.told())
    else:
        show_answer(found)
    if not found.placement.complete:
        click.get_current_context().exit(130)


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """What is placed and on which hosts, as the options say."""

    profile: str | None
    job: str | None
    cluster: str | None
    hosts: str | None
    slots: int | None
    is_here: bool
    fabric_files: tuple[str, ...]
    profile_file: str | None
    keep: str | None
    moves: int | None

    def check(self) -> None:
        """A usage error where options lack each other, or exclude each other."""
        if (self.profile is None) == (self.profile_file is None):
            raise click.UsageError("give either PROFILE or --profile FILE")
        if self.profile_file is not None and not self.fabric_files:
            raise click.UsageError(
                "--profile FILE goes with --fabric FILE; a saved profile is the argument PROFILE"
            )
        ways = sum((self.job is not None, self.hosts is not None, self.is_here))
        if ways > 1:
            raise click.UsageError("give one of --job, --hosts and --here")
        if self.fabric_files and self.job is not None:
            raise click.UsageError("--job needs the database: not with --fabric")
        if not self.fabric_files and not self.is_here:
            if ways == 0 and self.keep is None:
                raise click.UsageError("give either --job, or --cluster with --hosts, or --here")
            if self.job is None and self.cluster is None:
                option = "--hosts needs --cluster" if self.hosts else "--keep needs --cluster, or --job"
                raise click.UsageError(option)
        if self.moves is not None and self.keep is None:
            raise click.UsageError("--moves goes with --keep")

    def question(
        self, searched: searching.Searched, strategies: tuple[str, ...], layouts: tuple[str, ...]
    ) -> Question:
        """All of it as one question; files are read, but for the fabric and the profile."""
        from mapping.service import Question

        around = _around() if self.is_here else None
        cluster = self.cluster or (None if around is None else around.cluster)
        named = None if self.hosts is None else read_hosts(self.hosts)
        keep = None if self.keep is None else searching.read_order(self.keep, cluster or "files")
        return Question(
            profile=self.profile or self.profile_file or "",
            job=self.job,
            cluster=cluster,
            hosts=named if around is None else around.hosts,
            slots=self.slots if around is None else around.slots,
            keep=keep or self.keep,
            moves=self.moves,
            strategies=strategies or None,
            layouts=searching.read_layouts(layouts),
            **searched.asks(SECONDS_HERE if self.is_here else searching.SECONDS),
        )


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
            from mapping.service.answers.answering import solve

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
    from mapping.service.answers.answering import trade

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
    from mapping.launchers.catalog import FORMATS, write

    for name, path in files.items():
        write_text(path, write(name, placement, found.fabric))
        silent = found.seating is not None and not FORMATS.find(name).cores
        note(f"{name} written to {path}" + (": it cannot say which core a rank gets" if silent else ""))


def _export_files(exports: tuple[str, ...]) -> dict[str, str]:
    from mapping.launchers.catalog import FORMATS

    files = {}
    for item in exports:
        name, equals, path = item.partition("=")
        if not equals or not path:
            raise click.BadParameter(f"{item!r} is not FORMAT=FILE", param_hint="--export")
        if name not in FORMATS:
            known = ", ".join(FORMATS.names)
            raise click.BadParameter(f"there is no format {name!r}; known: {known}", param_hint="--export")
        files[name] = path
    return files
