"""``almanac congestion``: the busiest links of a cluster now, and the jobs that load them."""

from __future__ import annotations

import math
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from almanac.options.common import json_option, open_registry, running_jobs_options, top_option
from almanac.output.compiling import kernel_progress_bars
from almanac.output.json.running_jobs import congestion_to_json, rank_pairs_to_json, slowdowns_to_json
from almanac.output.printing import note, print_json, print_table, say
from almanac.output.running_jobs import (
    CONVENTION,
    heading,
    link_name,
    note_omitted_jobs,
    profile_names,
    users_text,
)
from registry import units

if TYPE_CHECKING:
    from mapping.distances.cost_model import CostModel
    from mapping.questions.live import Live
    from mapping.traffic.job_loads import RankPairs
    from mapping.traffic.shared_load import HotLink

TOP = 20
"""Default number of links, jobs and pairs of ranks in each table."""


@click.command("congestion")
@click.argument("cluster")
@running_jobs_options
@top_option(TOP)
@click.option("--network", is_flag=True, help="Only links between switches, not the cables of hosts.")
@click.option("--link", metavar="DEVICE:PORT", help="Only this link, with the pairs of ranks that load it.")
@json_option
def command(
    cluster: str,
    at: datetime | None,
    costs: CostModel,
    top: int,
    network: bool,
    link: str | None,
    as_json: bool,
) -> None:
    """Show the busiest links of CLUSTER and which of its running jobs load them; nothing is saved.

    Times of links assume that each job sends its profile once. Slowdowns scale each profile by the time of an
    iteration of its job: stated with `almanac job attach`, of a trace, or measured by counters.
    """
    from mapping.questions.live import link_of, pairs_on, traffic, with_counters

    with open_registry() as registry, kernel_progress_bars() as progress:
        live = with_counters(registry, traffic(registry, cluster, at, costs, progress))
        if link is None:
            links = live.shared.hottest(top, network_only=network)
        else:
            links = live.shared.links([link_of(registry, live, link)])
        users = links[0].users if link is not None else ()
        pairs = {user.job: pairs_on(registry, live, user.job, links[0].row, most=top) for user in users}
    if as_json:
        print_json(congestion_to_json(live, links, pairs if link is not None else None, top))
    else:
        _show(live, links, pairs, top)
        note_omitted_jobs(live)


def _show(live: Live, links: tuple[HotLink, ...], pairs: dict[str, RankPairs], top: int) -> None:
    """Print the table of links, and that of pairs of ranks or of jobs."""
    say(heading(live))
    if not len(live.shared):
        return
    say(CONVENTION)
    profiles = profile_names(live)
    rows = [
        [
            f"{link_name(live, link)} -> {link.load.target}",
            units.text(link.load.seconds, units.SECONDS),
            units.text(link.load.bytes, units.BYTES),
            units.text(link.load.capacity, units.RATE),
            users_text(link, profiles),
        ]
        for link in links
    ]
    columns = ["link", "busy", "load", "capacity", "jobs (part of the load)"]
    print_table("busiest links", columns, rows, least=("capacity", "load"))
    if pairs:
        _show_pairs(pairs, top)
    else:
        _show_jobs(live, top)


def _show_pairs(pairs: dict[str, RankPairs], top: int) -> None:
    shown = rank_pairs_to_json(pairs, top)
    rows = [
        [row["job"], row["sender"], row["receiver"], units.text(row["bytes"], units.BYTES)] for row in shown
    ]
    total = sum(found.pairs for found in pairs.values())
    title = f"pairs of ranks on this link: {len(shown)} of {total}"
    print_table(title, ["job", "sender", "receiver", "bytes"], rows)


def _show_jobs(live: Live, top: int) -> None:
    """Print how much sharing links slows each job; if times are unknown, its share of a link."""
    slowdowns = slowdowns_to_json(live)
    rows = [
        [
            row["job"],
            row["user"],
            row["profile"],
            _time_and_origin(row),
            row["link"] or "",
            units.text(row["alone_seconds"], units.SECONDS),
            f"{row['share']:.0%}",
            "unknown" if row["slowdown"] is None else f"{row['slowdown']:.2f}",
        ]
        for row in slowdowns[:top]
    ]
    columns = ["job", "user", "profile", "iteration", "worst link", "alone", "share of it", "slowdown"]
    print_table("jobs on shared links (estimated)", columns, rows, least=("profile", "user"))
    for row in slowdowns:
        if (row["iteration_seconds"] or math.inf) < row["alone_seconds"]:
            note(f"job {row['job']}: its worst link is busy longer than its time of an iteration: check it")
    if any(row["slowdown"] is None and row["iteration_seconds"] is None for row in slowdowns):
        note(
            "a slowdown needs the time of an iteration of all jobs on a link: state it with "
            "`almanac job attach JOB PROFILE --iteration-seconds SECONDS`"
        )


def _time_and_origin(row: dict[str, Any]) -> str:
    if row["iteration_seconds"] is None:
        return "unknown"
    return f"{units.text(row['iteration_seconds'], units.SECONDS)} ({row['iteration_from']})"
