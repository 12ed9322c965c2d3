"""``almanac compare``: two or more placements of one profile, link by link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from almanac.commands import searching
from almanac.commands.common import json_option, open_registry
from almanac.commands.profile import whole
from almanac.output import csv_text, note, print_json, print_table, write_text
from almanac.output.json.placements import comparison_to_json
from registry import units

if TYPE_CHECKING:
    from mapping.evaluation.comparing import Difference
    from mapping.evaluation.report import PlacementReport
    from mapping.service import PlacementRequest
    from registry.registry import Registry

SHOWN = 20
"""Links of the table and of the JSON document unless told."""


@click.command("compare")
@click.argument("placements", metavar="ID|FILE...", nargs=-1, required=True)
@click.option("--profile", help="Whose traffic (default: the first saved placement's).")
@click.option("--cluster", help="Whose links (default: the first saved placement's).")
@searching.measuring
@click.option("--most", type=click.IntRange(min=0), default=SHOWN, show_default=True, help="Links to show.")
@click.option("--links", type=click.Path(dir_okay=False), help="CSV of all links that differ.")
@json_option
def command(
    placements: tuple[str, ...],
    profile: str | None,
    cluster: str | None,
    request: PlacementRequest,
    most: int,
    links: str | None,
    as_json: bool,
) -> None:
    """Placements, saved or in launchers' files, beside each other: what differs, and on which links most."""
    if len(placements) < 2:
        raise click.UsageError("give at least two placements")
    from mapping.evaluation.comparing import differences
    from mapping.service import evaluate

    with open_registry() as registry:
        whose, where = _whose(registry, placements, profile, cluster)
        orders = [searching.read_order(one, where) or one for one in placements]
        request = replace(request, profile=whose, cluster=where)
        judged = [evaluate(registry, replace(request, keep=one)) for one in orders]
    evaluations = [one.evaluation for one in judged]
    fabric = judged[0].fabric
    if links is not None:
        rows = differences(fabric, evaluations)
        write_text(links, _csv([one.record_id for one in judged], rows))
        note(f"{len(rows)} links that differ written to {links}")
    shown = differences(fabric, evaluations, most=most)
    if as_json:
        print_json(comparison_to_json(whose, where, judged, shown))
    else:
        _show(judged, shown)


def _whose(
    registry: Registry, placements: Sequence[str], profile: str | None, cluster: str | None
) -> tuple[str, str]:
    """The profile and cluster asked for, else those of the first placement that is saved."""
    from pathlib import Path

    saved = next((one for one in placements if not Path(one).exists()), None)
    if saved is not None and (profile is None or cluster is None):
        stored = registry.placements.read(saved)
        profile, cluster = profile or stored.profile, cluster or stored.cluster
    if profile is None or cluster is None:
        raise click.UsageError("placements in files alone need --profile and --cluster")
    return profile, cluster


def _csv(names: Sequence[str], rows: Sequence[Difference]) -> str:
    ends = [f"{side}{part}" for side in ("source", "target") for part in ("", "_guid", "_port")]
    each = [f"{column}:{name}" for name in names for column in ("bytes", "seconds")]
    lines = []
    for row in rows:
        first = row.loads[0]
        places = [value for end in (first.source, first.target) for value in (end.name, end.guid, end.port)]
        loads = [value for load in row.loads for value in (whole(load.bytes), load.seconds)]
        lines.append([*places, whole(first.capacity), *loads, row.seconds])
    return csv_text([*ends, "capacity", *each, "difference_seconds"], lines)


def _show(judged: Sequence[PlacementReport], rows: Sequence[Difference]) -> None:
    from mapping.evaluation.comparing import compared

    names = [one.record_id for one in judged]
    values = [compared(one.evaluation) for one in judged]
    table = [
        [key, *(_text(key, value[key]) for value in values), _ratio([value[key] for value in values])]
        for key in values[0]
    ]
    print_table("", ["", *names, "last / first"], table)
    loads = [
        [str(row.loads[0]), *(units.text(load.seconds, units.SECONDS) for load in row.loads)] for row in rows
    ]
    print_table("links that differ most", ["link", *names], loads)


def _text(key: str, value: float | None) -> str:
    if value is None:
        return ""
    return units.text(value, units.SECONDS) if key.endswith("seconds") else f"{value:.6g}"


def _ratio(values: Sequence[float | None]) -> str:
    first, last = values[0], values[-1]
    return "" if not first or last is None else f"{last / first:.3f}"
