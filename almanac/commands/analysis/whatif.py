"""``almanac whatif``: running jobs before and after cables or switches go, cables come, hosts are drained."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from almanac.options import running_jobs as running
from almanac.options.common import json_option, open_registry
from almanac.output.printing import print_json, print_table, progress_bars
from registry import units

if TYPE_CHECKING:
    from mapping.service import Live
    from mapping.traffic.shared import SharedLoad
    from mapping.traffic.what_if import JobEffect, WhatIf

TOP = 20
"""Links and jobs that are shown unless told."""


@click.command("whatif")
@click.argument("cluster")
@click.option("--down", metavar="LINK|SWITCH", multiple=True, help="DEVICE:PORT, or a switch: it is gone.")
@click.option("--add", metavar="A:B[:GBPS]", multiple=True, help="A new cable between two devices.")
@click.option("--drain", metavar="HOST", multiple=True, help="Its ranks are gone, and their traffic.")
@click.option(
    "--rule",
    default="shortest-paths",
    show_default=True,
    help="Routes afterwards: docs/mapping/routing.md; `tables`: as they are, before any repair.",
)
@running.routed
@click.option("--top", type=click.IntRange(min=1), default=TOP, show_default=True, help="Rows of each table.")
@json_option
def command(
    cluster: str,
    down: tuple[str, ...],
    add: tuple[str, ...],
    drain: tuple[str, ...],
    rule: str,
    at: datetime | None,
    routing: str | None,
    rails: str,
    top: int,
    as_json: bool,
) -> None:
    """Congestion and reachability of the jobs running on CLUSTER before and after a change; saves nothing.

    Every job is taken to send its profile once in the same period; seconds are of one period.
    """
    if not (down or add or drain):
        raise click.UsageError("give --down, --add or --drain")
    from mapping.service import change_of, imagine

    with open_registry() as registry, progress_bars() as progress:
        live = running.read_live(registry, cluster, at, routing, rails, progress)
        change = change_of(registry, live, down=down, add=add, drain=drain)
        found = imagine(registry, live, change, rule=rule, progress=progress)
    if as_json:
        print_json(_told(live, found, top))
    else:
        _show(live, found, top)
        running.tell_left_out(live)


def _told(live: Live, found: WhatIf, top: int) -> dict[str, Any]:
    return {
        **running.heading_told(live),
        "rule": found.rule,
        "change": asdict(found.change),
        "before": _side_told(found.before),
        "unchanged": _side_told(found.unchanged),
        "after": _side_told(found.after),
        "links": _links_told(found, top),
        "jobs": [asdict(one) for one in _by_effect(found)],
    }


def _side_told(shared: SharedLoad) -> dict[str, float]:
    seconds, inner = shared.seconds, shared.fabric.network_link
    return {
        "congestion_seconds": float(seconds.max(initial=0.0)),
        "network_congestion_seconds": float(seconds[inner].max(initial=0.0)),
    }


def _links_told(found: WhatIf, top: int) -> list[dict[str, Any]]:
    """The hottest links afterwards, with what each needed before, and under the same rule unchanged."""
    from mapping.traffic.naming import link_text

    before, unchanged = found.before.seconds, found.unchanged.seconds
    rows = []
    for link in found.after.hottest(top):
        was = int(found.row_before[link.row])
        told = running.link_told(link, link_text(found.after.fabric, link.row))
        sides = {"before_seconds": before, "unchanged_seconds": unchanged}
        rows.append({**told, **{key: None if was < 0 else float(side[was]) for key, side in sides.items()}})
    return rows


def _by_effect(found: WhatIf) -> list[JobEffect]:
    """Jobs that lose something first, then those that are slowed down most; equals as they run."""

    def order(one: JobEffect) -> tuple[bool, float]:
        lost = one.unreachable_pairs > 0 or one.lost_ranks > 0
        return not lost, one.unchanged_seconds - one.after_seconds

    return sorted(found.jobs, key=order)


def _show(live: Live, found: WhatIf, top: int) -> None:
    click.echo(running.header(live))
    click.echo(running.CONVENTION)
    sides = _sides(found)
    totals = [_side_told(getattr(found, side)) for side in sides]
    print_table(
        "worst link of all jobs together",
        ["", *sides.values()],
        [
            [words, *(units.text(total[key], units.SECONDS) for total in totals)]
            for words, key in (
                ("of all links", "congestion_seconds"),
                ("between switches", "network_congestion_seconds"),
            )
        ],
    )
    links = [
        [
            f"{row['link']} -> {row['target']['name']}",
            *(_seconds(row[f"{side}_seconds"]) for side in sides if side != "after"),
            units.text(row["seconds"], units.SECONDS),
        ]
        for row in _links_told(found, top)
    ]
    print_table("hottest links afterwards", ["link", *sides.values()], links)
    jobs = [_job_row(one, sides) for one in _by_effect(found)[:top]]
    columns = ["job", "user", *sides.values(), "pairs cut off", "bytes", "hosts gone"]
    print_table("worst link of each job", columns, jobs)


def _sides(found: WhatIf) -> dict[str, str]:
    """What is told beside each other, with its heading; what the rule alone does only where it does any."""
    now, then = f"now, by {found.routing_before}", f"after, by {found.rule}"
    if found.rule == found.routing_before:
        return {"before": now, "after": then}
    return {"before": now, "unchanged": f"unchanged, by {found.rule}", "after": then}


def _seconds(value: float | None) -> str:
    return "new" if value is None else units.text(value, units.SECONDS)


def _job_row(one: JobEffect, sides: dict[str, str]) -> list[Any]:
    return [
        one.job,
        one.user,
        *(units.text(getattr(one, f"{side}_seconds"), units.SECONDS) for side in sides),
        one.unreachable_pairs,
        units.text(one.unreachable_bytes, units.BYTES),
        " ".join(one.lost_hosts),
    ]
