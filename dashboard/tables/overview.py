"""Tables of the overview. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pandas as pd

from dashboard.state.viewer import Viewer
from dashboard.tables.columns import in_utc
from dashboard.tables.links import link_kinds, link_text
from dashboard.tables.sharing import job_text
from mapping.checks.finding import Finding
from mapping.traffic.shared_load import HotLink
from registry.fabrics.changes import Changes, in_words
from registry.ingest_runs.runs import FRESH, age_text, freshness
from registry.model import Fabric, LinkRates
from registry.pages.overview import ClusterOverview
from registry.running.running_jobs import RunningJob

USERS = 3
"""Maximum number of jobs named for a link: those with most bytes."""


def clusters_table(overview: ClusterOverview, now: datetime) -> pd.DataFrame:
    """Return all clusters, one row each: age, size, number of different wirings, and stale sources."""
    infos = overview.clusters.values()
    stale: dict[str, list[str]] = {info.name: [] for info in infos}
    for source in overview.sources:
        if source.cluster in stale and freshness(source, now).state != FRESH:
            stale[source.cluster].append(source.format or "unknown")
    return pd.DataFrame(
        {
            "cluster": list(stale),
            "last seen": [f"{age_text(now - info.last_observed_at)} ago" for info in infos],
            "last seen (UTC)": in_utc(info.last_observed_at for info in infos),
            "hosts": [info.hosts for info in infos],
            "switches": [info.switches for info in infos],
            "cables": [info.cables for info in infos],
            "wirings": [info.contents for info in infos],
            "stale sources": [", ".join(formats) for formats in stale.values()],
        }
    )


def measured_links(fabric: Fabric, rates: LinkRates, count: int) -> pd.DataFrame:
    """Return the links with the largest measured utilisation (share, 0 to 1), largest first; bytes/s."""
    rows = rates.hottest(count)
    return pd.DataFrame(
        {
            "link": [link_text(fabric, row) for row in rows.tolist()],
            "share": rates.share[rows],
            "rate": rates.bytes_per_second[rows],
            "peak": rates.peak_bytes_per_second[rows],
            "capacity": fabric.links.capacity[rows],
            "kind": link_kinds(fabric, rows),
            "row": rows,
        }
    )


def predicted_links(fabric: Fabric, links: Sequence[HotLink], viewer: Viewer) -> pd.DataFrame:
    """Return the given links with the jobs whose traffic they carry; seconds and bytes per period."""
    return pd.DataFrame(
        {
            "link": [link_text(fabric, link.row) for link in links],
            "time": [link.load.seconds for link in links],
            "load": [link.load.bytes for link in links],
            "capacity": [link.load.capacity for link in links],
            "jobs": [len(link.users) for link in links],
            "whose traffic": [_users(link, viewer) for link in links],
            "kind": ["network" if link.network else "host cable" for link in links],
            "row": [link.row for link in links],
        }
    )


def gains_table(jobs: Sequence[RunningJob], now: datetime, viewer: Viewer) -> pd.DataFrame:
    """Return the visible jobs that would gain from another placement, largest gain first; s per period."""
    rows = []
    for one in jobs:
        job, advice = one.stored.job, one.advice
        if advice is None or advice.gain <= 1.0 or not viewer.sees(job.user):
            continue
        rows.append(
            {
                "job": job.id,
                "name": job.name,
                "user": viewer.name(job.user),
                "application": one.application or "",
                "gain": advice.gain,
                "now": advice.present_seconds,
                "then": advice.proposed_seconds,
                "ranks to move": advice.moved,
                "looked at": f"{age_text(now - advice.at)} ago",
                "key": one.stored.id,
            }
        )
    table = pd.DataFrame(rows)
    return table.sort_values("gain", ascending=False, kind="stable", ignore_index=True) if rows else table


def findings_table(findings: Sequence[Finding]) -> pd.DataFrame:
    """Return the findings, worst first."""
    rows = [(str(one.severity), one.heading, one.text, one.count) for one in findings]
    return pd.DataFrame(rows, columns=["severity", "check", "what", "count"])


def changes_lines(changes: Changes, rerouted: bool) -> list[str]:
    """Return the changes as lines of text."""
    lines = in_words(changes)
    return [*lines, "the forwarding tables changed"] if rerouted and not changes.switches_rerouted else lines


def _users(link: HotLink, viewer: Viewer) -> str:
    named = [f"{user.part:.0%} {job_text(user, viewer)}" for user in link.users[:USERS]]
    more = len(link.users) - USERS
    return ", ".join(named) + (f" and {more:,} more" if more > 0 else "")
