"""``almanac evaluate``, ``compare`` and ``export``: commands on given placements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from almanac.options import export_argument, export_option, json_option, open_registry, read_order, top_option
from almanac.output.placements import (
    LINK_ENDS,
    compared_metrics_to_json,
    comparison_to_json,
    evaluation_to_json,
    link_ends,
    show_evaluation,
)
from almanac.output.printing import label, note, print_json, print_table, whole, write_text
from almanac.placing_options import cost_options
from mapping.launchers import FORMATS, launch_line, write
from registry import units
from registry.csv_text import csv_text

if TYPE_CHECKING:
    from mapping.cost.metrics import Difference
    from mapping.cost.report import PlacementReport
    from mapping.questions.place import PlacementRequest
    from registry.model import Evaluation, Fabric
    from registry.registry import Registry

SHOWN = 20
"""Default number of links in the table and in the JSON document."""


@click.command("evaluate")
@click.argument("profile")
@click.option("--cluster", required=True, help="Cluster whose fabric is used.")
@click.option(
    "--placement",
    required=True,
    type=click.Path(),
    metavar="ID|FILE",
    help="A saved placement, or a launcher's file.",
)
@cost_options
@export_option(lambda: ["links"], "Write a CSV file with a row per loaded link direction: links=FILE.")
@json_option
def evaluate(
    profile: str,
    cluster: str,
    placement: str,
    request: PlacementRequest,
    exports: tuple[tuple[str, str], ...],
    as_json: bool,
) -> None:
    """Compute the load of PROFILE's traffic on the fabric for a placement; nothing is saved."""
    from mapping.questions.place import evaluate

    given = read_order(placement) or placement
    with open_registry() as registry:
        report = evaluate(registry, replace(request, profile=profile, cluster=cluster, keep=given))
    for _, path in exports:
        write_text(path, _link_csv(report.fabric, report.evaluation))
        note(f"link loads written to {path}")
    if as_json:
        print_json(evaluation_to_json(report))
    else:
        show_evaluation(report)


def _link_csv(fabric: Fabric, evaluation: Evaluation) -> str:
    """Return CSV text with a row per link direction that carries traffic, in the fabric's order of links."""
    from mapping.cost.metrics import link

    rows = []
    for row in evaluation.link_bytes.nonzero()[0].tolist():
        loaded = link(fabric, evaluation, row)
        rows.append([*link_ends(loaded), whole(loaded.bytes), whole(loaded.capacity), loaded.seconds])
    return csv_text([*LINK_ENDS, "bytes", "capacity", "seconds"], rows)


@click.command("compare")
@click.argument("placements", type=click.Path(), metavar="ID|FILE...", nargs=-1, required=True)
@click.option("--profile", help="Profile to send (default: that of the first saved placement).")
@click.option("--cluster", help="Cluster whose fabric is used (default: that of the first saved placement).")
@cost_options
@top_option(SHOWN, "Maximum number of links to show.", least=0)
@export_option(lambda: ["links"], "Write a CSV file with all links that differ: links=FILE.")
@json_option
def compare(
    placements: tuple[str, ...],
    profile: str | None,
    cluster: str | None,
    request: PlacementRequest,
    top: int,
    exports: tuple[tuple[str, str], ...],
    as_json: bool,
) -> None:
    """Compare placements, saved or in launchers' files: metrics, and links whose load differs most."""
    if len(placements) < 2:
        raise click.UsageError("give at least two placements")
    from mapping.cost.metrics import differences
    from mapping.questions.place import evaluate

    with open_registry() as registry:
        profile, cluster = _profile_and_cluster(registry, placements, profile, cluster)
        orders = [read_order(one) or one for one in placements]
        request = replace(request, profile=profile, cluster=cluster)
        reports = [evaluate(registry, replace(request, keep=one)) for one in orders]
    evaluations = [one.evaluation for one in reports]
    fabric = reports[0].fabric
    for _, path in exports:
        rows = differences(fabric, evaluations)
        write_text(path, _difference_csv([one.record_id for one in reports], rows))
        note(f"{len(rows)} links that differ written to {path}")
    shown = differences(fabric, evaluations, most=top)
    if as_json:
        print_json(comparison_to_json(reports, shown))
    else:
        _show_comparison(reports, shown)


def _profile_and_cluster(
    registry: Registry, placements: Sequence[str], profile: str | None, cluster: str | None
) -> tuple[str, str]:
    """Return the given profile and cluster, or those of the first saved placement."""
    from pathlib import Path

    saved = next((one for one in placements if not Path(one).exists()), None)
    if saved is not None and (profile is None or cluster is None):
        stored = registry.placements.read(saved)
        profile, cluster = profile or stored.profile, cluster or stored.cluster
    if profile is None or cluster is None:
        raise click.UsageError("give --profile and --cluster, because no placement is a saved one")
    return profile, cluster


def _difference_csv(names: Sequence[str], rows: Sequence[Difference]) -> str:
    """Return CSV text with a row per link that differs."""
    each = [f"{column}:{name}" for name in names for column in ("bytes", "seconds")]
    lines = []
    for row in rows:
        first = row.loads[0]
        loads = [value for load in row.loads for value in (whole(load.bytes), load.seconds)]
        lines.append([*link_ends(first), whole(first.capacity), *loads, row.seconds])
    return csv_text([*LINK_ENDS, "capacity", *each, "difference_seconds"], lines)


def _show_comparison(reports: Sequence[PlacementReport], rows: Sequence[Difference]) -> None:
    """Print the metrics of the placements, and the links that differ."""
    names = [one.record_id for one in reports]
    values = [compared_metrics_to_json(one.evaluation) for one in reports]
    table = [
        [label(key), *(_text(key, value[key]) for value in values), _ratio([value[key] for value in values])]
        for key in values[0]
    ]
    print_table("", ["", *names, "last / first"], table)
    loads = [
        [str(row.loads[0]), *(units.text(load.seconds, units.SECONDS) for load in row.loads)] for row in rows
    ]
    print_table("links with the largest difference", ["link", *names], loads)


def _text(key: str, value: float | None) -> str:
    if value is None:
        return ""
    return units.text(value, units.SECONDS) if key.endswith("seconds") else f"{value:.6g}"


def _ratio(values: Sequence[float | None]) -> str:
    first, last = values[0], values[-1]
    return "" if not first or last is None else f"{last / first:.3f}"


@click.command("export")
@click.argument("placement")
@export_argument(lambda: FORMATS.names)
def export(placement: str, exports: tuple[tuple[str, str | None], ...]) -> None:
    """Write the stored placement with the id PLACEMENT as launchers' files, or to standard output."""
    with open_registry() as registry:
        stored = registry.placements.read(placement)
        fabric = registry.fabrics.read_content(stored.content).fabric
        if stored.job is not None:
            fabric = fabric.named_as(registry.jobs.read(stored.job, stored.cluster).job.hosts)
    for name, path in exports:
        write_text(path, write(name, stored.placement, fabric))
        if path is not None:
            note(f"{name} of placement {stored.id} written to {path}")
            if (command := launch_line(name, stored.placement, fabric, path)) is not None:
                note(f"launch: {command}")
