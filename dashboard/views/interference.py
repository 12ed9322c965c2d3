"""The interference page: links that running jobs share, and the estimated slowdown of each job."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.figures.sharing import sharing_figure
from dashboard.figures.style import theme_of
from dashboard.queries.traffic import cached_traffic, clusters
from dashboard.state.site import Site
from dashboard.tables.columns import in_units
from dashboard.tables.sharing import SLOWDOWN, UNITS, heat, pair_text, shared_links, slowdowns
from dashboard.widgets.controls import choose, moment, toggle
from dashboard.widgets.messages import CONVENTION, plain, show_empty, show_no_fabric, show_unknown
from dashboard.widgets.navigation import job_link, open_job
from dashboard.widgets.tables import csv_text, download, picked_row
from mapping.service.live import Live
from registry import units
from registry.errors import UnknownName
from registry.registry import Registry

LINKS = {"20": "20", "40": "40", "80": "80"}
"""Choices for the number of busiest links."""
SHARED, NETWORK, ALL = "shared", "network", "all"
KINDS = {SHARED: "Shared by jobs", NETWORK: "Between switches", ALL: "All"}

ABOUT = {
    "alone": "Time of the job's worst link with its own traffic only.",
    "together": "Time of the worst of the job's links with the traffic of all jobs.",
    SLOWDOWN: "Together / alone: estimated factor by which sharing slows the job's worst link.",
    "shared most with": "The other job with most bytes on that link.",
}


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    st.title("Interference")
    known = clusters(registry)
    if not known:
        show_no_fabric()
        return
    left, middle, right = st.columns([3, 3, 5])
    try:
        with left:
            cluster = known[choose("Cluster", "cluster", list(known), resets=("at",)) or ""]
        with middle:
            first, last = cluster.first_observed_at, max(datetime.now(UTC), cluster.last_observed_at)
            time = moment("Jobs that ran at (UTC)", "at", first, last)
        live = cached_traffic(registry, cluster, time)
    except UnknownName as error:
        show_unknown(error, "at" if error.kind == "fabric" else error.kind)
        return
    with right, st.container(horizontal=True):
        kind = toggle("Links", "links", KINDS, default=SHARED)
        count = toggle("Number of links", "count", LINKS, default="40")
    _counts(live)
    if not live.shared.link.size:
        _nothing(live, cluster.name)
        return
    _pair(live, site)
    _heat(live, site, kind, int(count) if count in LINKS else 40)
    _slowdowns(live, site)
    _left_out(live, site)


def _counts(live: Live) -> None:
    """Draw the numbers of jobs, and the time of the busiest link."""
    slow = live.shared.slowdowns()
    facts = {
        "Running jobs": f"{len(live.running.jobs):,}",
        "With known traffic": f"{len(live.shared):,}",
        "Slowed by sharing": f"{int((slow > 1.005).sum()):,}",
        "Busiest link": units.text(float(live.shared.seconds.max(initial=0.0)), units.SECONDS),
    }
    for column, (label, value) in zip(st.columns(len(facts)), facts.items(), strict=True):
        column.metric(label, value)
    at, seen = units.moment_text(live.running.at), units.moment_text(live.running.snapshot.observed_at)
    st.caption(
        f"{CONVENTION} Jobs at {plain(at)}, wiring as observed at {plain(seen)}, routes: "
        f"{plain(live.routing)} ({plain(live.because)})."
    )


def _nothing(live: Live, cluster: str) -> None:
    """Explain why no link is loaded, with the command that changes it."""
    if not live.running.jobs:
        show_empty(
            "No job was running then, as far as the registry knows. Ingest jobs regularly, e.g. from cron:",
            f"scontrol show jobs -d | almanac ingest --cluster {cluster} -",
        )
    elif live.without_profile:
        show_empty(
            "No running job has a communication profile. Attach one:", "almanac job attach JOB PROFILE"
        )
    else:
        st.info("The running jobs send nothing between hosts, so no link is loaded.")


def _pair(live: Live, site: Site) -> None:
    """Draw which two jobs share the busiest link."""
    st.subheader("Busiest shared link")
    pair = live.shared.worst_shared_link()
    if pair is None:
        st.success("No link is loaded by more than one job.", icon=":material/check:")
        return
    st.warning(plain(pair_text(live.shared, pair, site.viewer)), icon=":material/call_merge:")
    with st.container(horizontal=True):
        for user in pair.users[:2]:
            if site.viewer.sees(user.user):
                job_link(site.job, live.running.snapshot.cluster, user.job)


def _heat(live: Live, site: Site, kind: str, count: int) -> None:
    """Draw the heat map of jobs and links."""
    hot = (
        shared_links(live.shared, count)
        if kind == SHARED
        else live.shared.hottest(count, network_only=kind == NETWORK)
    )
    if not hot:
        st.info("No such link is loaded.", icon=":material/filter_alt_off:")
        return
    st.subheader("Jobs on busiest links")
    shown = heat(live.shared, hot, site.viewer)
    theme = theme_of(st.context.theme.type)
    st.altair_chart(sharing_figure(shown.rows, shown.cells, shown.links, theme), width="content", key="heat")
    with st.expander("Links by number"):
        st.dataframe(in_units(shown.links, {"seconds": units.SECONDS}), hide_index=True, key="links")


def _slowdowns(live: Live, site: Site) -> None:
    """Draw the estimated slowdown of each job; a selected job can be opened."""
    st.subheader("Slowdown by sharing")
    table = slowdowns(live.shared, site.viewer)
    shown = in_units(table, UNITS)
    named = dict(zip(table.columns, shown.columns, strict=True))
    helps: dict[str, Any] = {named[name]: st.column_config.Column(help=ABOUT[name]) for name in ABOUT}
    helps[SLOWDOWN] = st.column_config.NumberColumn(format="%.2f ×", help=ABOUT[SLOWDOWN])
    event = st.dataframe(
        shown,
        hide_index=True,
        column_config=helps,
        on_select="rerun",
        selection_mode="single-row",
        key="slowdowns",
    )
    cluster = live.running.snapshot.cluster
    open_job(site.job, [f"{cluster}/{job}" for job in table["job"]], picked_row(event, len(table)), "open")
    download("As CSV", lambda: csv_text(table, UNITS), "interference.csv", key="slowdowns csv")


def _left_out(live: Live, site: Site) -> None:
    """Draw the running jobs whose traffic is not known, and the reasons."""
    rows = [(job.stored.job, "no profile") for job in live.without_profile]
    rows += [(one.job.stored.job, one.reason) for one in live.unloaded]
    seen = [
        (job.id, site.viewer.name(job.user), reason) for job, reason in rows if site.viewer.sees(job.user)
    ]
    if not rows:
        return
    with st.expander(f"{len(rows):,} running jobs without known traffic"):
        if seen:
            table = pd.DataFrame(seen, columns=["job", "user", "reason"])
            st.dataframe(table, hide_index=True, key="left out")
        if len(seen) < len(rows):
            st.caption(f"{len(rows) - len(seen):,} of them belong to other users.")
