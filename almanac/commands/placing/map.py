"""``almanac map``: find a placement of a job's ranks, save it, export it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from almanac.options.cluster import optional_cluster, scheduler_option
from almanac.options.common import json_option, open_registry, read_hosts
from almanac.options.exports import export_option
from almanac.options.files import case_from_files, fabric_option, read_layouts, read_order
from almanac.options.placement import SECONDS, search_options, with_default_seconds
from almanac.output.compiling import kernel_progress_bars
from almanac.output.json.placements import placement_to_json
from almanac.output.placements import show_pareto_set, show_placement
from almanac.output.printing import note, print_json, say, write_text

if TYPE_CHECKING:
    from almanac.job_environment import JobEnvironment
    from mapping.evaluation.report import PlacementReport
    from mapping.launchers.catalog import Launch
    from mapping.service.request import PlacementRequest
    from registry.progress import Progress

SECONDS_IN_JOB = 5.0
"""Default time to search inside a job script: the whole command must take less than 15 s there."""


def _formats() -> tuple[str, ...]:
    from mapping.launchers.catalog import FORMATS

    return FORMATS.names


@click.command("map")
@click.argument("profile")
@click.option("--job", help="Use the hosts and slots of this job.")
@click.option("--cluster", help="Cluster of --hosts, or of --job if two clusters have a job with this id.")
@click.option(
    "--hosts",
    metavar="HOSTLIST|@FILE",
    help="Hosts in launch order: node[01-16], or @FILE with one per line.",
)
@click.option(
    "--slots", type=click.IntRange(min=1), help="Ranks per host (default: those of the job, else 1)."
)
@click.option(
    "--here", "in_job", is_flag=True, help="Use the hosts and slots of the allocation of this process."
)
@fabric_option
@click.option(
    "--keep", type=click.Path(), metavar="ID|FILE", help="Improve this placement by moving few ranks."
)
@click.option("--moves", type=click.IntRange(min=0), help="With --keep: maximum number of ranks to move.")
@click.option(
    "--consecutive",
    is_flag=True,
    help="Fill hosts with consecutive ranks, as torchrun and DeepSpeed do: search their order only.",
)
@click.option(
    "--pareto", is_flag=True, help="Find several placements that trade congestion against hop-bytes."
)
@click.option(
    "--strategy",
    "strategies",
    multiple=True,
    help="Use only this strategy (repeat); a+b refines the result of a with b.",
)
@search_options
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    help="Times to run each strategy, with other random numbers [default: 1; see --scheduler].",
)
@scheduler_option("the search")
@click.option(
    "--layout",
    "layouts",
    metavar="[HOST=]FILE",
    multiple=True,
    help="Assign ranks to cores by lstopo's XML of a host, or of all hosts if one FILE is given.",
)
@export_option(_formats, "Write a launcher's file, too, and print the command that uses it (repeat).")
@json_option
def command(
    pareto: bool,
    strategies: tuple[str, ...],
    request: PlacementRequest,
    layouts: tuple[str, ...],
    scheduler: str | None,
    exports: tuple[tuple[str, str], ...],
    as_json: bool,
    **source: Any,
) -> None:
    """Find a placement of PROFILE's ranks with low congestion, and save it.

    PROFILE is the name or id of a saved profile. With --fabric it is a file, too, and nothing is saved. With
    --here, inside a job script, the hosts and slots are those of the Slurm, Open MPI or PBS allocation.
    """
    data = DataOptions(**source)
    data.check()
    if pareto and data.keep is not None:
        raise click.UsageError("give either --pareto or --keep")
    if pareto and exports:
        raise click.UsageError("--pareto finds several placements: write one with `almanac export ID`")
    for option, value in (("--scheduler", scheduler), ("--seeds", data.seeds)):
        if value is not None and (pareto or data.keep is not None):
            raise click.UsageError(
                f"{option}: not with --pareto or --keep, whose searches follow one another"
            )
    request = data.complete(request, strategies, layouts)
    with optional_cluster(scheduler) as cluster, kernel_progress_bars() as progress:
        if cluster is not None:
            request = replace(request, options=replace(request.options, executor=cluster))
        reports = _find_placements(request, data.fabric_files, pareto, progress)
    launches = _export(exports, reports[0])
    for reason in dict.fromkeys(report.unsaved for report in reports if report.unsaved):
        note(f"not saved: {reason}")
    if reports[0].measured:
        note(f"ranks in order: {reports[0].measured}")
    if as_json:
        documents = [placement_to_json(one, launches) for one in reports]
        print_json(documents if pareto else documents[0])
    elif pareto:
        show_pareto_set(reports)
    else:
        show_placement(reports[0])
        for launch in launches:
            if launch.command is not None:
                say(f"launch: {launch.command}")
    if not all(one.placement.complete for one in reports):
        click.get_current_context().exit(130)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOptions:
    """Options that name what to place and on which hosts."""

    profile: str
    job: str | None
    cluster: str | None
    hosts: str | None
    slots: int | None
    in_job: bool
    fabric_files: tuple[str, ...]
    keep: str | None
    moves: int | None
    consecutive: bool
    seeds: int | None

    def check(self) -> None:
        """Raise a usage error if options are missing or exclude each other."""
        given = sum((self.job is not None, self.hosts is not None, self.in_job))
        if given > 1:
            raise click.UsageError("give only one of --job, --hosts and --here")
        if self.fabric_files and self.job is not None:
            raise click.UsageError("--job needs the database: not with --fabric")
        if not self.fabric_files and not self.in_job:
            if given == 0 and self.keep is None:
                raise click.UsageError("give --job, or --cluster with --hosts, or --here")
            if self.job is None and self.cluster is None:
                option = "--hosts needs --cluster" if self.hosts else "--keep needs --cluster, or --job"
                raise click.UsageError(option)
        if self.moves is not None and self.keep is None:
            raise click.UsageError("--moves goes with --keep")
        if self.consecutive and self.keep is not None:
            raise click.UsageError("give either --consecutive or --keep")

    def complete(
        self, request: PlacementRequest, strategies: tuple[str, ...], layouts: tuple[str, ...]
    ) -> PlacementRequest:
        """Return the request with these options; read their files, except the fabric and the profile."""
        environment = _read_environment() if self.in_job else None
        cluster = self.cluster or (None if environment is None else environment.cluster)
        named = None if self.hosts is None else read_hosts(self.hosts)
        keep = None if self.keep is None else read_order(self.keep, cluster or "files")
        options = with_default_seconds(request.options, SECONDS_IN_JOB if self.in_job else SECONDS)
        return replace(
            request,
            profile=self.profile,
            job=self.job,
            cluster=cluster,
            hosts=named if environment is None else environment.hosts,
            slots=self.slots if environment is None else environment.slots,
            keep=keep or self.keep,
            options=replace(
                options,
                moves=self.moves,
                strategies=strategies or None,
                consecutive=self.consecutive,
                seeds=self.seeds,
            ),
            layouts=read_layouts(layouts),
        )


def _read_environment() -> JobEnvironment:
    from almanac.job_environment import read_environment

    environment = read_environment()
    slots, hosts = sum(environment.slots), len(environment.hosts)
    note(f"{slots} slots on {hosts} hosts, from {environment.source}")
    return environment


def _find_placements(
    request: PlacementRequest, fabric_files: tuple[str, ...], pareto: bool, progress: Progress
) -> tuple[PlacementReport, ...]:
    """Return the placement of a request, or a Pareto set, on a fabric of files or of the registry."""
    from mapping.evaluation.report import report_pareto_set, report_placement
    from mapping.service import placing

    if fabric_files:
        case = case_from_files(request, fabric_files)
        if pareto:
            return report_pareto_set(case, progress)
        return (report_placement(case, progress),)
    if request.job is None and request.cluster is None:
        raise click.UsageError("--here needs --cluster, because SLURM_CLUSTER_NAME is not set")
    with open_registry() as registry:
        if pareto:
            return placing.pareto(registry, request, progress)
        return (placing.place(registry, request, progress),)


def _export(exports: tuple[tuple[str, str], ...], report: PlacementReport) -> tuple[Launch, ...]:
    """Write launchers' files, note which cannot contain the cores of ranks; return how to use each."""
    from mapping.launchers.catalog import FORMATS, Launch, launch_line, write

    launches = []
    for name, path in exports:
        write_text(path, write(name, report.placement, report.fabric))
        without_cores = report.cores is not None and not FORMATS.find(name).cores
        note(f"{name} written to {path}" + (": this format has no cores of ranks" if without_cores else ""))
        launches.append(Launch(name, path, launch_line(name, report.placement, report.fabric, path)))
    return tuple(launches)
