"""What commands on running jobs share: which cluster, when, how routed, and what is told of jobs left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from almanac.options.common import Moment
from almanac.output.printing import note
from registry import units

if TYPE_CHECKING:
    from mapping.service import Live, OnSwitch
    from mapping.traffic.shared import HotLink, User
    from registry.progress import Progress
    from registry.registry import Registry

F = TypeVar("F", bound=Callable[..., Any])
CONVENTION = "Every job is taken to send its profile once in the same period; seconds are of one period."
NAMED = 8
"""Jobs that a note names."""

_OPTIONS = (
    click.option("--at", type=Moment(), help="What ran then, on the fabric as of then (default: now)."),
    click.option("--routing", help="Routes: docs/mapping/routing.md (default: tables where complete)."),
    click.option(
        "--rails", default="all-connected", show_default=True, help="Or same-rail: docs/congestion.md."
    ),
)


def routed(function: F) -> F:
    """Add ``--at``, ``--routing`` and ``--rails``."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def read_live(
    registry: Registry,
    cluster: str,
    at: datetime | None,
    routing: str | None,
    rails: str,
    progress: Progress,
) -> Live:
    """What runs, with what it puts on the links.

    Raises
    ------
    UnknownName, InvalidValue
    """
    from mapping.service import traffic

    return traffic(registry, cluster, at, routing=routing, rails=rails, progress=progress)


def tell_left_out(live: Live | OnSwitch) -> None:
    """Notes on standard error: why nothing or not all of what runs is in the picture, and what helps."""
    cluster, when = live.running.snapshot.cluster, units.moment_text(live.running.at)
    if not live.running.jobs:
        note(
            f"no job is known to run on {cluster} at {when}: give `almanac ingest --cluster {cluster}` what "
            "`scontrol show jobs -d` or `squeue` prints"
        )
        return
    if live.without_profile:
        of = len(live.running.jobs)
        note(
            f"no profile, no traffic: {_named([one.stored.job.id for one in live.without_profile])}, "
            f"{len(live.without_profile)} of {of} running jobs: `almanac job attach JOB PROFILE`"
        )
    for one in live.unloaded:
        note(f"job {one.job.stored.job.id} is left out: {one.reason}")


def header(live: Live) -> str:
    """One line: where, when, how many, and by which routes."""
    traffic = f"{len(live.shared)} of {len(live.running.jobs)} running jobs with traffic"
    when = units.moment_text(live.running.at)
    return f"{live.running.snapshot.cluster} at {when}: {traffic}; routes: {live.routing}"


def heading_told(live: Live) -> dict[str, Any]:
    """What a JSON document on the traffic of running jobs begins with, and what is left out."""
    return {**fabric_told(live), "routing": live.routing, "rails": live.rails, **left_out_told(live)}


def fabric_told(live: Live | OnSwitch) -> dict[str, Any]:
    """Of which fabric, as of when, a JSON document on running jobs is."""
    snapshot = live.running.snapshot
    return {
        "cluster": snapshot.cluster,
        "at": live.running.at,
        "snapshot": snapshot.id,
        "observed_at": snapshot.observed_at,
    }


def left_out_told(live: Live | OnSwitch) -> dict[str, Any]:
    """How many jobs run, and which of them are left out, as JSON."""
    return {
        "running": len(live.running.jobs),
        "without_profile": [one.stored.job.id for one in live.without_profile],
        "left_out": [{"job": one.job.stored.job.id, "reason": one.reason} for one in live.unloaded],
    }


def link_told(link: HotLink, name: str) -> dict[str, Any]:
    """A link and its users as JSON.

    Parameters
    ----------
    name : str
        As ``--link`` takes it.
    """
    return {
        "link": name,
        "network": link.network,
        **asdict(link.load),
        "users": [user_told(user) for user in link.users],
    }


def user_told(user: User) -> dict[str, Any]:
    """A job's part of a link as JSON."""
    return {
        "job": user.job,
        "user": user.user,
        "application": user.application,
        "bytes": user.bytes,
        "part": user.part,
    }


def users_text(link: HotLink, most: int = 3) -> str:
    """Whose traffic is on a link: the largest parts."""
    shown = [f"{user.job} {_whose(user)}{user.part:.0%}" for user in link.users[:most]]
    rest = len(link.users) - most
    return ", ".join(shown) + (f", {rest} more" if rest > 0 else "")


def _whose(user: User) -> str:
    words = " ".join(word for word in (user.user, user.application) if word)
    return f"({words}) " if words else ""


def _named(jobs: list[str]) -> str:
    return ", ".join(jobs[:NAMED]) + (", ..." if len(jobs) > NAMED else "")
