"""``almanac map``: find where a job's ranks should sit, save it, export it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from almanac.commands import searching
from almanac.commands.answers import show_answer, show_pareto
from almanac.commands.common import json_option, open_registry, read_hosts
from almanac.here import Here
from almanac.output import note, print_json, progress_bars, write_text
from almanac.output.json.placements import placement_to_json

if TYPE_CHECKING:
    from mapping.evaluation.report import PlacementReport
    from mapping.service import PlacementRequest
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
    request: PlacementRequest,
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
    if pareto and place.keep is not None:
        raise click.UsageError("give either --pareto or --keep")
    files = _export_files(exports)
    request = place.complete(request, strategies, layouts)
    if pareto:
        _show_set(request, place.fabric_files, files, as_json)
        return
    found = _place(request, place.fabric_files)
    _export(files, found.placement, found)
    if as_json:
        print_json(placement_to_json(found))
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

    def complete(
        self, request: PlacementRequest, strategies: tuple[str, ...], layouts: tuple[str, ...]
    ) -> PlacementRequest:
        """Return the request with all options; files are read, but for the fabric and the profile."""
        around = _around() if self.is_here else None
        cluster = self.cluster or (None if around is None else around.cluster)
        named = None if self.hosts is None else read_hosts(self.hosts)
        keep = None if self.keep is None else searching.read_order(self.keep, cluster or "files")
        request = searching.with_default_seconds(request, SECONDS_HERE if self.is_here else searching.SECONDS)
        return replace(
            request,
            profile=self.profile or self.profile_file or "",
            job=self.job,
            cluster=cluster,
            hosts=named if around is None else around.hosts,
            slots=self.slots if around is None else around.slots,
            keep=keep or self.keep,
            options=replace(request.options, moves=self.moves, strategies=strategies or None),
            layouts=searching.read_layouts(layouts),
        )


def _around() -> Here:
    from almanac.here import here

    found = here()
    note(f"{sum(found.slots)} slots on {len(found.hosts)} hosts, from {found.source}")
    return found


def _place(request: PlacementRequest, fabric_files: tuple[str, ...]) -> PlacementReport:
    with progress_bars() as progress:
        if fabric_files:
            from mapping.evaluation.report import report_placement

            return report_placement(
                searching.case_from_files(request, fabric_files), request.options, progress
            )
        from mapping.service import place

        _require_cluster(request)
        with open_registry() as registry:
            return place(registry, request, progress)


def _show_set(
    request: PlacementRequest, fabric_files: tuple[str, ...], files: dict[str, str], as_json: bool
) -> None:
    if files:
        raise click.UsageError("--pareto finds several placements: export the one that is wanted by its id")
    with progress_bars() as progress:
        if fabric_files:
            from mapping.evaluation.report import report_pareto_set

            case = searching.case_from_files(request, fabric_files)
            found = report_pareto_set(case, request.options, progress)
        else:
            from mapping.service import pareto

            _require_cluster(request)
            with open_registry() as registry:
                found = pareto(registry, request, progress)
    if as_json:
        print_json([placement_to_json(one) for one in found])
    else:
        show_pareto(found)
    if not all(one.placement.complete for one in found):
        click.get_current_context().exit(130)


def _require_cluster(request: PlacementRequest) -> None:
    if request.job is None and request.cluster is None:
        raise click.UsageError("--here needs --cluster: SLURM_CLUSTER_NAME is not set")


def _export(files: dict[str, str], placement: Placement, found: PlacementReport) -> None:
    from mapping.launchers.catalog import FORMATS, write

    for name, path in files.items():
        write_text(path, write(name, placement, found.fabric))
        silent = found.cores is not None and not FORMATS.find(name).cores
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
