"""``almanac whatif``: running jobs before and after links fail, cables are added or hosts are drained."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from almanac.options import json_option, open_registry, running_jobs_options, top_option
from almanac.output.printing import kernel_progress_bars, print_json, print_table, say
from almanac.output.running_jobs import (
    CONVENTION,
    changed_links_to_json,
    heading,
    note_omitted_jobs,
    profile_names,
    totals_to_json,
    what_if_to_json,
)
from registry import units

if TYPE_CHECKING:
    from mapping.distances.cost_model import CostModel
    from mapping.questions.live import Live
    from mapping.traffic.what_if import JobEffect, WhatIf

TOP = 20
"""Default number of links and jobs in each table."""


@click.command("whatif")
@click.argument("cluster")
@click.option(
    "--down", metavar="LINK|SWITCH", multiple=True, help="Remove a link (DEVICE:PORT) or a switch (repeat)."
)
@click.option("--add", metavar="A:B[:GBPS]", multiple=True, help="Add a cable between two devices (repeat).")
@click.option(
    "--drain", metavar="HOST", multiple=True, help="Remove a host with its ranks and their traffic (repeat)."
)
@click.option(
    "--routing-after",
    help="Routing of both sides [default: as now, forwarding tables repaired]: repaired-tables, tables (not "
    "repaired), shortest-paths or another of docs/explanation/routing.md.",
)
@running_jobs_options
@top_option(TOP)
@json_option
def command(
    cluster: str,
    down: tuple[str, ...],
    add: tuple[str, ...],
    drain: tuple[str, ...],
    routing_after: str | None,
    at: datetime | None,
    costs: CostModel,
    top: int,
    as_json: bool,
) -> None:
    """Predict congestion and reachability of CLUSTER's running jobs after a change; nothing is saved.

    Each job is assumed to send its profile once per iteration; times are seconds per iteration.
    """
    if not (down or add or drain):
        raise click.UsageError("give --down, --add or --drain")
    from mapping.questions.live import change_of, imagine, traffic

    with open_registry() as registry, kernel_progress_bars() as progress:
        live = traffic(registry, cluster, at, costs, progress)
        change = change_of(registry, live, down=down, add=add, drain=drain)
        found = imagine(registry, live, change, rule=routing_after, progress=progress)
    if as_json:
        print_json(what_if_to_json(live, found, top))
    else:
        _show(live, found, top)
        note_omitted_jobs(live)


def _show(live: Live, found: WhatIf, top: int) -> None:
    """Print the totals, the busiest links afterwards, and each job."""
    from mapping.traffic.what_if import REPAIR_NOTE, REPAIR_TABLES

    say(heading(live))
    say(CONVENTION)
    if found.rule == REPAIR_TABLES:
        say(REPAIR_NOTE)
    sides = _sides(found)
    totals = [totals_to_json(getattr(found, side)) for side in sides]
    print_table(
        "worst link of all jobs together",
        ["", *sides.values()],
        [
            [words, *(units.text(total[key], units.SECONDS) for total in totals)]
            for words, key in (
                ("all links", "congestion_seconds"),
                ("between switches", "network_congestion_seconds"),
            )
        ],
    )
    links = [
        [
            f"{row['link']} -> {row['target']['name']}",
            *(_seconds_text(row[f"{side}_seconds"]) for side in sides if side != "after"),
            units.text(row["seconds"], units.SECONDS),
        ]
        for row in changed_links_to_json(found, profile_names(live), top)
    ]
    print_table("busiest links after the change", ["link", *sides.values()], links)
    jobs = [_job_row(one, sides) for one in found.jobs_by_effect()[:top]]
    columns = ["job", "user", *sides.values(), "unreachable pairs", "unreachable bytes", "removed hosts"]
    print_table("worst link of each job", columns, jobs)


def _sides(found: WhatIf) -> dict[str, str]:
    """Return the results to show side by side, with their headings.

    The fabric without the change but with the new routing is shown only if the routing differs.
    """
    now, then = f"now, {found.routing_before}", f"after, {found.rule}"
    if found.unchanged is found.before:
        return {"before": now, "after": then}
    return {"before": now, "unchanged": f"unchanged, {found.rule}", "after": then}


def _seconds_text(value: float | None) -> str:
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
