"""``almanac evaluate``: congestion and hop-bytes of a placement."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from almanac.commands.common import Moment, json_option, open_registry
from almanac.commands.profile import whole
from almanac.output import note, print_json, print_table, write_text
from registry import units

if TYPE_CHECKING:
    from mapping.service import Judgement
    from registry.model import Evaluation, Fabric, HostOrder

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
@click.option("--routing", help="tables or shortest-paths (default: tables where complete).")
@click.option("--rails", default="all-connected", show_default=True, help="Or same-rail: docs/congestion.md.")
@click.option("--at", type=Moment(), help="On the fabric as of this time (default: now).")
@click.option("--links", type=click.Path(dir_okay=False), help="CSV with a row a loaded link direction.")
@json_option
def command(
    profile: str,
    cluster: str,
    placement: str,
    routing: str | None,
    rails: str,
    at: datetime | None,
    links: str | None,
    as_json: bool,
) -> None:
    """What PROFILE's traffic does to the fabric when placed so."""
    from mapping.service import judge

    order = _read_order(placement, cluster)
    with open_registry() as registry:
        judged = judge(
            registry, profile, cluster, placement if order is None else order, routing=routing, at=at
        )
    if links is not None:
        write_text(links, link_rows(judged.fabric, judged.evaluation))
        note(f"link loads written to {links}")
    if as_json:
        print_json(judged.told())
    else:
        _show(judged)


def link_rows(fabric: Fabric, evaluation: Evaluation) -> str:
    """CSV text: a row a link direction that carries traffic, in the fabric's order of links."""
    from mapping.report import link

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(LINK_COLUMNS)
    for row in evaluation.link_bytes.nonzero()[0].tolist():
        loaded = link(fabric, evaluation, row)
        ends = [[end.name, end.guid, end.port] for end in (loaded.source, loaded.target)]
        writer.writerow([*ends[0], *ends[1], whole(loaded.bytes), whole(loaded.capacity), loaded.seconds])
    return text.getvalue()


def _read_order(placement: str, cluster: str) -> HostOrder | None:
    """The hosts of each rank where the argument is a file; None where it is an id."""
    if not Path(placement).exists():
        return None
    from ingest.options import Options
    from ingest.pipeline import plan
    from registry.errors import InputError

    intake = plan([placement], Options(cluster=cluster))
    if len(intake.placements) != 1:
        raise InputError("holds no placement: a rankfile, hostfile or machinefile is needed", path=placement)
    return replace(intake.placements[0], name=placement)


def _show(judged: Judgement) -> None:
    from mapping.report import worst_link

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
    for name, label in (("congestion_seconds", "worst link"), ("hop_bytes", "hop-bytes")):
        bound = bounds[name]
        value = units.text(bound.value, units.SECONDS) if name.endswith("seconds") else f"{bound.value:.6g}"
        rows.append([f"lower bound, {label}", value, bound.proof])
    title = f"{judged.profile_name} on {judged.cluster}, routes: {found.routing} ({judged.routing_because})"
    print_table(title, ["", "value", "where, or why"], rows)
