"""``almanac congestion``: what is hot now, and whose traffic it is."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from almanac.options import running_jobs as running
from almanac.options.common import json_option, open_registry
from almanac.output.printing import print_json, print_table, progress_bars
from registry import units

if TYPE_CHECKING:
    from mapping.service import Live
    from mapping.traffic.rank_pairs import RankPairs
    from mapping.traffic.shared import HotLink

TOP = 20
"""Links, jobs and pairs that are shown unless told."""


@click.command("congestion")
@click.argument("cluster")
@running.routed
@click.option("--top", type=click.IntRange(min=1), default=TOP, show_default=True, help="Rows of each table.")
@click.option("--network", is_flag=True, help="Leave hosts' own cables out.")
@click.option("--link", metavar="DEVICE:PORT", help="This link alone, with the ranks that load it.")
@json_option
def command(
    cluster: str,
    at: datetime | None,
    routing: str | None,
    rails: str,
    top: int,
    network: bool,
    link: str | None,
    as_json: bool,
) -> None:
    """The hottest links of CLUSTER and whose traffic is on them, from its running jobs; saves nothing.

    Every job is taken to send its profile once in the same period; seconds are of one period.
    """
    from mapping.service import link_of, pairs_on

    with open_registry() as registry, progress_bars() as progress:
        live = running.read_live(registry, cluster, at, routing, rails, progress)
        if link is None:
            links = live.shared.hottest(top, network_only=network)
        else:
            links = live.shared.links([link_of(registry, live, link)])
        users = links[0].users if link is not None else ()
        pairs = {user.job: pairs_on(registry, live, user.job, links[0].row, most=top) for user in users}
    if as_json:
        print_json(_told(live, links, pairs if link is not None else None, top))
    else:
        _show(live, links, pairs, top)
        running.tell_left_out(live)


def _told(
    live: Live, links: tuple[HotLink, ...], pairs: dict[str, RankPairs] | None, top: int
) -> dict[str, Any]:
    worst = live.shared.worst_pair()
    return {
        **running.heading_told(live),
        "evaluated": list(live.evaluated),
        "links": [running.link_told(link, _name(live, link)) for link in links],
        "jobs": _jobs_told(live),
        "worst_pair": None
        if worst is None
        else {
            "link": _name(live, worst.link),
            "first": running.user_told(worst.first),
            "second": running.user_told(worst.second),
        },
        **({} if pairs is None else {"pairs": _pairs_told(pairs, top)}),
    }


def _jobs_told(live: Live) -> list[dict[str, Any]]:
    """Jobs with traffic, the largest slowdown first; equals as they run."""
    shared = live.shared
    columns = (shared.alone_seconds(), shared.together_seconds(), shared.slowdowns())
    rows = [
        {
            "job": load.job,
            "user": load.user,
            "application": load.application,
            "placement": load.placement or None,
            "alone_seconds": alone,
            "together_seconds": together,
            "slowdown": slowdown,
        }
        for load, alone, together, slowdown in zip(
            shared.jobs, *(column.tolist() for column in columns), strict=True
        )
    ]
    return sorted(rows, key=lambda row: -row["slowdown"])


def _pairs_told(pairs: dict[str, RankPairs], top: int) -> list[dict[str, Any]]:
    """Pairs of ranks of all jobs, the most bytes first."""
    rows = [
        {"job": job, "sender": sender, "receiver": receiver, "bytes": size}
        for job, found in pairs.items()
        for sender, receiver, size in zip(
            found.sender.tolist(), found.receiver.tolist(), found.bytes.tolist(), strict=True
        )
    ]
    return sorted(rows, key=lambda row: -row["bytes"])[:top]


def _show(live: Live, links: tuple[HotLink, ...], pairs: dict[str, RankPairs], top: int) -> None:
    click.echo(running.header(live))
    if not len(live.shared):
        return
    click.echo(running.CONVENTION)
    rows = [
        [
            f"{_name(live, link)} -> {link.load.target}",
            units.text(link.load.seconds, units.SECONDS),
            units.text(link.load.bytes, units.BYTES),
            units.text(link.load.capacity, units.RATE),
            running.users_text(link),
        ]
        for link in links
    ]
    print_table("hottest links", ["link", "busy", "carries", "capacity", "whose traffic"], rows)
    if pairs:
        _show_pairs(pairs, top)
    else:
        _show_jobs(live, top)


def _show_pairs(pairs: dict[str, RankPairs], top: int) -> None:
    told = _pairs_told(pairs, top)
    rows = [
        [row["job"], row["sender"], row["receiver"], units.text(row["bytes"], units.BYTES)] for row in told
    ]
    every = sum(found.pairs for found in pairs.values())
    print_table(f"pairs of ranks on it: {len(told)} of {every}", ["job", "rank", "to rank", "on it"], rows)


def _show_jobs(live: Live, top: int) -> None:
    rows = [
        [
            row["job"],
            row["user"],
            row["application"],
            units.text(row["alone_seconds"], units.SECONDS),
            units.text(row["together_seconds"], units.SECONDS),
            f"{row['slowdown']:.2f}",
        ]
        for row in _jobs_told(live)[:top]
    ]
    columns = ["job", "user", "application", "worst link alone", "with all others", "slowdown"]
    print_table("jobs slowed down by sharing", columns, rows)


def _name(live: Live, link: HotLink) -> str:
    from mapping.traffic.naming import link_text

    return link_text(live.fabric, link.row)
