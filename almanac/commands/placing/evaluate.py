"""``almanac evaluate``: compute congestion and hop-bytes of a placement."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from almanac.options.common import json_option, open_registry
from almanac.options.files import read_order
from almanac.options.placement import cost_options
from almanac.output.json.placements import evaluation_to_json
from almanac.output.placements import show_evaluation
from almanac.output.printing import csv_text, note, print_json, whole, write_text

if TYPE_CHECKING:
    from mapping.service import PlacementRequest
    from registry.model import Evaluation, Fabric

LINK_COLUMNS = (
    *("source", "source_guid", "source_port", "target", "target_guid", "target_port"),
    *("bytes", "capacity", "seconds"),
)


@click.command("evaluate")
@click.argument("profile")
@click.option("--cluster", required=True, help="Cluster whose fabric is used.")
@click.option(
    "--placement", required=True, metavar="ID|FILE", help="A saved placement, or a launcher's file."
)
@cost_options
@click.option(
    "--links", type=click.Path(dir_okay=False), help="Write a CSV file with a row per loaded link direction."
)
@json_option
def command(
    profile: str,
    cluster: str,
    placement: str,
    request: PlacementRequest,
    links: str | None,
    as_json: bool,
) -> None:
    """Compute the load of PROFILE's traffic on the fabric for a placement; nothing is saved."""
    from mapping.service import evaluate

    given = read_order(placement, cluster) or placement
    with open_registry() as registry:
        report = evaluate(registry, replace(request, profile=profile, cluster=cluster, keep=given))
    if links is not None:
        write_text(links, link_rows(report.fabric, report.evaluation))
        note(f"link loads written to {links}")
    if as_json:
        print_json(evaluation_to_json(report))
    else:
        show_evaluation(report)


def link_rows(fabric: Fabric, evaluation: Evaluation) -> str:
    """Return CSV text with a row per link direction that carries traffic, in the fabric's order of links."""
    from mapping.evaluation.loaded_links import link

    rows = []
    for row in evaluation.link_bytes.nonzero()[0].tolist():
        loaded = link(fabric, evaluation, row)
        ends = [[end.name, end.guid, end.port] for end in (loaded.source, loaded.target)]
        rows.append([*ends[0], *ends[1], whole(loaded.bytes), whole(loaded.capacity), loaded.seconds])
    return csv_text(LINK_COLUMNS, rows)
