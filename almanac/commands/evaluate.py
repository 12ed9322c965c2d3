"""``almanac evaluate``: congestion and hop-bytes of a placement."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from almanac.commands import searching
from almanac.commands.answers import BOUNDED, bound_lines
from almanac.commands.common import json_option, open_registry
from almanac.commands.profile import whole
from almanac.output import csv_text, note, print_json, print_table, write_text
from almanac.output.json.placements import evaluation_to_json
from registry import units

if TYPE_CHECKING:
    from mapping.evaluation.report import PlacementReport
    from mapping.service import PlacementRequest
    from registry.model import Evaluation, Fabric

LINK_COLUMNS = (
    "source",
    "source_guid",
    "source_port",
    "target",
    "target_guid",
    "target_port",
    "bytes",
    "capacity",
    "seconds",
)


@click.command("evaluate")
@click.argument("profile")
@click.option("--cluster", required=True)
@click.option(
    "--placement", required=True, metavar="ID|FILE", help="A saved placement, or a launcher's file."
)
@searching.measuring
@click.option("--links", type=click.Path(dir_okay=False), help="CSV with a row a loaded link direction.")
@json_option
def command(
    profile: str,
    cluster: str,
    placement: str,
    request: PlacementRequest,
    links: str | None,
    as_json: bool,
) -> None:
    """What PROFILE's traffic does to the fabric when placed so."""
    from mapping.service import evaluate

    given = searching.read_order(placement, cluster) or placement
    with open_registry() as registry:
        judged = evaluate(registry, replace(request, profile=profile, cluster=cluster, keep=given))
    if links is not None:
        write_text(links, link_rows(judged.fabric, judged.evaluation))
        note(f"link loads written to {links}")
    if as_json:
        print_json(evaluation_to_json(judged))
    else:
        _show(judged)


def link_rows(fabric: Fabric, evaluation: Evaluation) -> str:
    """CSV text: a row a link direction that carries traffic, in the fabric's order of links."""
    from mapping.evaluation.loaded_links import link

    rows = []
    for row in evaluation.link_bytes.nonzero()[0].tolist():
        loaded = link(fabric, evaluation, row)
        ends = [[end.name, end.guid, end.port] for end in (loaded.source, loaded.target)]
        rows.append([*ends[0], *ends[1], whole(loaded.bytes), whole(loaded.capacity), loaded.seconds])
    return csv_text(LINK_COLUMNS, rows)


def _show(judged: PlacementReport) -> None:
    from mapping.evaluation.loaded_links import worst_link

    fabric, found = judged.fabric, judged.evaluation
    bounds = found.bounds
    rows = [
        [
            "worst link",
            units.text(found.congestion_seconds, units.SECONDS),
            str(worst_link(fabric, found) or ""),
        ],
        [
            "worst network link",
            units.text(found.network_congestion_seconds, units.SECONDS),
            str(worst_link(fabric, found, network=True) or ""),
        ],
        ["hop-bytes", f"{found.hop_bytes:.6g}", ""],
        ["average dilation", f"{found.average_dilation:.4f}", ""],
        ["maximum dilation", f"{found.max_dilation:.4f}", ""],
    ]
    if found.distance != "links":
        rows.append([f"mapping coefficient ({found.distance})", f"{found.mapping_coefficient:.6g}", ""])
    for name, label in BOUNDED:
        bound = bounds[name]
        value = units.text(bound.value, units.SECONDS) if name.endswith("seconds") else f"{bound.value:.6g}"
        rows.append(
            [f"lower bound, {label}", value, f"{bound.name}: {bound.proof}" if bound.name else bound.proof]
        )
    case = judged.case
    title = f"{case.profile.name} on {case.cluster}, routes: {found.routing} ({judged.case.routing_reason})"
    print_table(title, ["", "value", "where, or why"], rows)
    for line in [f"background {found.background}"] * bool(found.background) + bound_lines(found):
        click.echo(line)
