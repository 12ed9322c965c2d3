"""The page of all jobs: quality of their placements, fragmentation, and possible gains."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import streamlit as st

from dashboard import tables
from dashboard.queries.jobs import MOST_ROWS, JobsView, job_choices, jobs_view
from dashboard.state.site import Site
from dashboard.state.viewer import Viewer
from dashboard.tables.jobs import ABOUT, ENDED, GAIN, OVER, SCATTER, STARTED, UNITS, jobs_table
from dashboard.widgets.controls import any_of, at_least, moment, page_start, pager, text_field
from dashboard.widgets.downloads import csv_text, download
from dashboard.widgets.messages import show_empty, show_unknown
from dashboard.widgets.navigation import open_job, picked_row
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
    choices = job_choices(registry)
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
    _download(lambda: _all(registry, wanted, choices), site.viewer)


def _filter(choices: JobChoices, viewer: Viewer) -> JobFilter:
    """Draw the filters, and return the filter for the registry.

    Raises
    ------
    UnknownName
    """
    clusters, users = list(choices.clusters), {viewer.name(u): u for u in choices.users if viewer.sees(u)}
    first = st.columns([2, 2, 3, 2, 3])
    with first[0]:
        cluster = any_of("Cluster", "cluster", clusters, kind="cluster", resets=[PAGE])
    with first[1]:
        user = any_of("User", "user", sorted(users), kind="user", resets=[PAGE])
    with first[2]:
        application = any_of(
            "Application", "application", choices.applications, kind="application", resets=[PAGE]
        )
    with first[3]:
        state = any_of("State", "state", choices.states, kind="state", resets=[PAGE])
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
    times = {
        name: st.column_config.NumberColumn(format="%.2f ×", help=ABOUT[name])
        for name in (OVER, GAIN, SCATTER)
    }
    shown = tables.in_units(table, UNITS)
    named = dict(zip(table.columns, shown.columns, strict=True))
    helps = {
        named[name]: st.column_config.NumberColumn(help=ABOUT[name]) for name in ABOUT if name not in times
    }
    when = st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm")
    event = st.dataframe(
        shown,
        hide_index=True,
        column_config={**times, **helps, STARTED: when, ENDED: when},
        on_select="rerun",
        selection_mode="single-row",
        height="content" if len(table) < 20 else 640,
        placeholder="",
        key="jobs",
    )
    open_job(site.job, [row.stored.id for row in view.rows], picked_row(event, len(view.rows)), "open")


def _all(registry: Registry, wanted: JobFilter, choices: JobChoices) -> JobsView:
    """Return all matching rows, for the file."""
    return jobs_view(registry, wanted, choices.clusters, limit=MOST_ROWS)


def _download(read: Callable[[], JobsView], viewer: Viewer) -> None:
    """Draw a download of all matching jobs as CSV, in base units; they are read when it is pressed."""

    def content() -> str:
        view = read()
        return csv_text(jobs_table(view.rows, view.fragmentation, viewer), UNITS)

    download("All matching jobs as CSV", content, "jobs.csv", key="jobs csv")
