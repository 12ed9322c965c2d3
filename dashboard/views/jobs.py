"""The page of all jobs: quality of their placements, fragmentation, and possible gains."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import streamlit as st

from dashboard.queries.jobs import MOST_ROWS, JobsView, jobs_view
from dashboard.state.site import Site
from dashboard.state.viewer import Viewer
from dashboard.tables.columns import in_units
from dashboard.tables.jobs import ABOUT, ENDED, GAIN, OVER, SCATTER, STARTED, UNITS, jobs_table
from dashboard.widgets.controls import any_of, at_least, moment, page_start, pager, text_field
from dashboard.widgets.messages import show_empty, show_unknown
from dashboard.widgets.navigation import open_job
from dashboard.widgets.tables import csv_text, download, picked_row
from registry.errors import UnknownName
from registry.pages.jobs import JobChoices, JobFilter
from registry.registry import Registry

ROWS = 100
"""Rows of a page of the table."""
FIRST = datetime(2000, 1, 1, tzinfo=UTC)
"""Earliest time that can be chosen, before any job."""
PAGE = "page"


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    st.title("Jobs")
    choices = registry.job_pages.choices()
    if not choices.states and not choices.users:
        show_empty(
            "The registry holds no jobs yet. Ingest some, or load the demonstration:",
            "scontrol show jobs -d | almanac ingest --cluster NAME -",
            "almanac demo",
        )
        return
    try:
        wanted = _filter(choices, site.viewer)
    except UnknownName as error:
        show_unknown(error, error.kind)
        return
    start = page_start(ROWS, PAGE)
    view = jobs_view(registry, wanted, choices.clusters, limit=ROWS, offset=start)
    if not view.total:
        st.info("No job matches this choice.", icon=":material/filter_alt_off:")
        st.button("Show all jobs", on_click=st.query_params.clear, key="all jobs")
        return
    _table(view, site)
    pager(view.total, ROWS, PAGE, "jobs, the newest first")

    def every_job() -> str:
        """Return all matching jobs as CSV; they are read when the button is pressed."""
        found = jobs_view(registry, wanted, choices.clusters, limit=MOST_ROWS)
        return csv_text(jobs_table(found.rows, found.fragmentation, site.viewer), UNITS)

    download("All matching jobs as CSV", every_job, "jobs.csv", key="jobs csv")


def _filter(choices: JobChoices, viewer: Viewer) -> JobFilter:
    """Draw the filters, and return the filter for the registry.

    Raises
    ------
    UnknownName
    """
    clusters, users = list(choices.clusters), {viewer.name(u): u for u in choices.users if viewer.sees(u)}
    first = st.columns([2, 2, 3, 2, 3])
    with first[0]:
        cluster = any_of("cluster", clusters, resets=[PAGE])
    with first[1]:
        user = any_of("user", sorted(users), resets=[PAGE])
    with first[2]:
        application = any_of("application", choices.applications, resets=[PAGE])
    with first[3]:
        state = any_of("state", choices.states, resets=[PAGE])
    with first[4]:
        text = text_field("Job", "text", hint="start of the id, or part of the name", resets=[PAGE])
    second = st.columns([3, 3, 3, 3])
    last = datetime.now(UTC) + timedelta(days=1)
    with second[0]:
        since = moment("Ran after (UTC)", "since", FIRST, last, resets=[PAGE])
    with second[1]:
        until = moment("Ran before (UTC)", "until", FIRST, last, resets=[PAGE])
    with second[2]:
        gain = at_least("Minimum gain (times)", "gain", about=ABOUT[GAIN], resets=[PAGE])
    with second[3]:
        over = at_least("Minimum distance from best (times)", "over", about=ABOUT[OVER], resets=[PAGE])
    return JobFilter(
        cluster=cluster,
        user=None if user is None else users[user],
        users=None if viewer.only is None else (viewer.only,),
        application=application,
        state=state,
        since=None if since is None else since.replace(second=0, microsecond=0),
        until=until,
        minimum_gain=gain,
        minimum_ratio=over,
        text=text,
    )


def _table(view: JobsView, site: Site) -> None:
    """Draw the rows of the page; a selected job can be opened."""
    table = jobs_table(view.rows, view.fragmentation, site.viewer)
    shown = in_units(table, UNITS)
    number, times = st.column_config.NumberColumn, {OVER, GAIN, SCATTER}
    helps = {
        title: number(format="%.2f ×" if name in times else None, help=ABOUT[name])
        for name, title in zip(table.columns, shown.columns, strict=True)
        if name in ABOUT
    }
    when = st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm")
    event = st.dataframe(
        shown,
        hide_index=True,
        column_config={**helps, STARTED: when, ENDED: when},
        on_select="rerun",
        selection_mode="single-row",
        height="content" if len(table) < 20 else 640,
        placeholder="",
        key="jobs",
    )
    open_job(site.job, [row.stored.id for row in view.rows], picked_row(event, len(view.rows)), "open")
