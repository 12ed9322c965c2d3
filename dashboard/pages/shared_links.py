"""Tab of the jobs page: links that running jobs share, and what sharing costs each job.

A heat map of running jobs and the links that they share.
"""

from __future__ import annotations

from datetime import UTC, datetime

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from dashboard.shared.bar import job_column, open_job
from dashboard.shared.caching import cached_clusters
from dashboard.shared.cards import (
    HEAT,
    INK,
    LIGHT,
    State,
    badge,
    card,
    csv_text,
    download,
    layers,
    number,
    share_bar,
    show_empty,
    show_no_fabric,
    show_unknown,
    theme_of,
    unknown,
)
from dashboard.shared.controls import moment, named, toggle
from dashboard.shared.link_map import CAPACITY
from dashboard.shared.traffic import (
    ITERATION,
    MOST_LINKS,
    SHARE,
    SLOWDOWN,
    Heat,
    busiest,
    cached_sharing,
    heat,
    pair_text,
    sharing_table,
)
from dashboard.shared.viewer import Site
from mapping.questions.live import Live
from mapping.traffic.shared_load import Interference
from registry.errors import UnknownName
from registry.model import Longs
from registry.registry import Registry

ROW, COLUMN = 24, 40
"""Height of a row and width of a column, in pixels."""
ALL_JOBS = "all jobs"
"""First row: the sum of all jobs."""
DARK_FROM = 0.55
"""Share above which numbers in cells have the other colour."""


def sharing_figure(heat: Heat, theme: str) -> alt.VConcatChart:
    """Return a heat map: columns are links, busiest first; rows are jobs, the first is their sum."""
    title = "Share of the link's capacity" if heat.of_capacity else "Estimated share of the link's traffic"
    totals = heat.links.assign(row=ALL_JOBS).drop(columns="jobs")
    data = pd.concat([totals, heat.cells]) if heat.of_capacity else heat.cells
    rows = [ALL_JOBS, *heat.rows] if heat.of_capacity else list(heat.rows)
    top = max(1.0, float(heat.links["share"].max()))
    base = alt.Chart(data).encode(
        x=alt.X(
            "place:O",
            title="Link, busiest first",
            scale=alt.Scale(domain=heat.links["place"].tolist(), paddingInner=0.06),
            axis=alt.Axis(labelAngle=0, ticks=False, domain=False, orient="top"),
        ),
        y=alt.Y(
            "row:N",
            title=None,
            scale=alt.Scale(domain=rows, paddingInner=0.08),
            axis=alt.Axis(labelLimit=240, ticks=False, domain=False, labelOverlap=False),
        ),
        tooltip=[
            alt.Tooltip("row:N", title="job"),
            alt.Tooltip("link:N", title="link"),
            alt.Tooltip("share:Q", format=".1%", title=title.lower()),
        ],
    )
    colours = HEAT[theme][1:] if heat.of_capacity else CAPACITY[theme]  # heat is for load alone
    ramp = alt.Scale(domain=[0, top], range=list(colours), nice=False)
    colour = alt.Color("share:Q", legend=None, scale=ramp)
    high, low = ("#ffffff", INK[LIGHT]) if theme == LIGHT else (INK[LIGHT], "#ffffff")
    above = alt.FieldGTPredicate(field="share", gt=DARK_FROM * top)
    ink = alt.condition(above, alt.value(high), alt.value(low))
    drawn = layers(
        base.mark_rect(cornerRadius=3).encode(color=colour),
        base.mark_text(fontSize=11).encode(text=alt.Text("share:Q", format=".0%"), color=ink),
    ).properties(width=COLUMN * len(heat.links), height=ROW * len(rows))
    # inside a concatenation the size applies to the cells alone, without names
    return alt.vconcat(
        drawn, description=f"{title}: jobs by links, {len(rows)} rows and {len(heat.links)} columns"
    )


STATE_TIME = "almanac job attach JOB PROFILE --iteration-seconds SECONDS"
"""Command that states the time of an iteration."""
SHARED, ALL = "shared", "all"
KINDS = {SHARED: "Shared", ALL: "All loaded"}
"""Choices of links by their value in the address."""

ABOUT = {
    SHARE: "The job's part of the traffic of the link for which it waits longest.",
    SLOWDOWN: "Time of an iteration with the other jobs over that without: it waits for its worst link. "
    "Unknown unless the time of an iteration of each job on its links is known.",
    ITERATION: "Time in which the job sends its profile once: stated with `almanac job attach`, of a trace, "
    "or measured by the counters of its hosts' own cables.",
}


def draw(registry: Registry, site: Site) -> None:
    """Draw the tab."""
    known = cached_clusters(registry).infos
    if not known:
        show_no_fabric()
        return
    try:
        cluster = known[named("cluster", list(known)) or next(iter(known))]
        left, right = st.columns([1, 3])
        with left:
            first, last = cluster.first_observed_at, max(datetime.now(UTC), cluster.last_observed_at)
            time = moment("Jobs that ran at (UTC)", "at", first, last)
        with right:
            kind = toggle("Links", "links", KINDS, default=SHARED)
        live, found = cached_sharing(registry, cluster, time)
    except UnknownName as error:
        show_unknown(error, "at" if error.kind == "fabric" else error.kind)
        return
    if not live.shared.link.size:
        _nothing(live, cluster.name)
        return
    rows = busiest(live.shared, found, MOST_LINKS, by_jobs=1 if kind == ALL else 2)
    _numbers(live, found, rows, kind, site)
    _heat(live, found, rows, site)
    _jobs(live, found, site)
    _left_out(live, site)


def _numbers(live: Live, found: Interference, rows: Longs, kind: str, site: Site) -> None:
    """Draw the most important numbers."""
    slow = found.slowdowns
    known = slow[~np.isnan(slow)]
    use = float(found.utilisation[rows[0]]) if rows.size else np.nan
    pair = pair_text(live.shared, int(rows[0]), site.viewer) if kind == SHARED and rows.size else ""
    columns = st.columns([2, 3, 7])
    with columns[0]:
        number("Running jobs", f"{len(live.running.jobs):,}", note=f"{len(live.shared):,} with known traffic")
    with columns[1]:
        if known.size:
            note = f"known of {len(known):,} of {len(slow):,} jobs"
            number("Largest slowdown", f"{known.max():.3g} ×", help=ABOUT[SLOWDOWN], note=note)
        else:
            unknown("Largest slowdown", STATE_TIME, help=ABOUT[SLOWDOWN])
    with columns[2]:
        number(
            "Busiest of these links",
            "none" if not rows.size else "unknown" if np.isnan(use) else f"{use:.0%} of its capacity",
            help="Estimated: the rates of all jobs over the capacity of the link.",
            note=pair,
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
            "No running job has a communication profile. Attach one:",
            STATE_TIME,
        )
    else:
        st.info("The running jobs send nothing between hosts, so no link is loaded.")


def _heat(live: Live, found: Interference, rows: Longs, site: Site) -> None:
    """Draw the heat map of jobs and links."""
    with card("Jobs on the busiest links"):
        if not rows.size:
            st.success("No link is loaded by more than one job.", icon=":material/check:")
            return
        shown = heat(live.shared, found, rows, site.viewer)
        if not shown.of_capacity:
            help = "Not every job has a time per iteration: each is assumed to send its profile once."
            badge(State.UNKNOWN, "estimated share of a link", help=help)
        theme = theme_of(st.context.theme.type)
        st.altair_chart(sharing_figure(shown, theme), width="content", key="heat")
        with st.popover("Links by number"):
            st.dataframe(
                shown.links,
                hide_index=True,
                column_config={"place": "number", "share": share_bar()},
                key="links",
            )


def _jobs(live: Live, found: Interference, site: Site) -> None:
    """Draw what sharing costs each job; the name of a job is a button that opens it."""
    table = sharing_table(live.shared, found, site.viewer)
    jobs = [f"{live.running.snapshot.cluster}/{job}" for job in table["job"]]
    with card("What sharing costs each job"):
        st.dataframe(
            table,
            hide_index=True,
            column_config={
                "job": job_column(jobs, width=100),
                SHARE: st.column_config.ProgressColumn(
                    format="percent", min_value=0, max_value=1, help=ABOUT[SHARE]
                ),
                SLOWDOWN: st.column_config.NumberColumn(format="%.3g ×", help=ABOUT[SLOWDOWN]),
                ITERATION: st.column_config.Column(help=ABOUT[ITERATION]),
            },
            placeholder="unknown",
            key="sharing",
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            open_job(site.jobs, jobs)
            download("CSV", lambda: csv_text(table), "shared-links.csv", key="sharing csv")


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
