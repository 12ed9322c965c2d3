"""``almanac map``: find a placement of a job's ranks, save it, export it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from almanac.options import (
    case_from_files,
    export_option,
    json_option,
    open_registry,
    optional_cluster,
    scheduler_option,
)
from almanac.output.placements import placement_to_json, show_pareto_set, show_placement
from almanac.output.printing import kernel_progress_bars, note, print_json, say, write_text
from almanac.placing_options import DataOptions, placement_options, search_options

if TYPE_CHECKING:
    from mapping.cost.report import PlacementReport
    from mapping.launchers import Launch
    from mapping.placement.case import PlacementCase
    from mapping.questions.place import PlacementRequest
    from registry.progress import Progress


def _formats() -> tuple[str, ...]:
    from mapping.launchers import FORMATS

    return FORMATS.names


@click.command("map")
@placement_options
@click.option(
    "--pareto", is_flag=True, help="Find several placements that trade congestion against hop-bytes."
)
@search_options
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

    If the database cannot save the placement, it is printed and exported nevertheless, with the note "not
    saved"; the exit code is 0, so that a job script goes on, and `placement` in JSON is null.
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
    case = reports[0].case
    if case.job_profile:
        attached = f"profile {case.job_profile} is attached to job {case.job}"
        note(f"warning: {attached}, and {case.profile.name} is placed")
    _note_domains(case)
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


def _note_domains(case: PlacementCase) -> None:
    """Note hosts that are taken for others of another domain."""
    from registry.model.host_names import doubtful

    found = case.fabric.known_vertices(case.host_names)
    for text in doubtful({name: case.fabric.names[vertex] for name, vertex in found.items()}):
        note(f"warning: {text}")


def _find_placements(
    request: PlacementRequest, fabric_files: tuple[str, ...], pareto: bool, progress: Progress
) -> tuple[PlacementReport, ...]:
    """Return the placement of a request, or a Pareto set, on a fabric of files or of the registry."""
    from mapping.cost.report import report_pareto_set, report_placement
    from mapping.questions import place

    if fabric_files:
        case = case_from_files(request, fabric_files)
        if pareto:
            return report_pareto_set(case, progress)
        return (report_placement(case, progress),)
    if request.job is None and request.cluster is None:
        raise click.UsageError("--here needs --cluster, because SLURM_CLUSTER_NAME is not set")
    with open_registry() as registry:
        if pareto:
            return place.pareto(registry, request, progress)
        return (place.place(registry, request, progress),)


def _export(exports: tuple[tuple[str, str], ...], report: PlacementReport) -> tuple[Launch, ...]:
    """Write launchers' files, note which cannot contain the cores of ranks; return how to use each."""
    from mapping.launchers import FORMATS, Launch, launch_line, write

    launches = []
    fabric = report.fabric.named_as(report.case.host_names)
    for name, path in exports:
        write_text(path, write(name, report.placement, fabric))
        without_cores = report.cores is not None and not FORMATS.find(name).cores
        note(f"{name} written to {path}" + (": this format has no cores of ranks" if without_cores else ""))
        launches.append(Launch(name, path, launch_line(name, report.placement, fabric, path)))
    return tuple(launches)
