"""The page of all jobs: which are badly placed, how scattered they are, and what remapping would give."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import streamlit as st

from dashboard import tables
from dashboard.queries.jobs import MOST_ROWS, JobsView, job_choices, jobs_view
from dashboard.state.site import Site
from dashboard.state.viewer import Viewer
from dashboard.tables.csv_files import csv_text
from dashboard.tables.jobs import ABOUT, ENDED, GAIN, OVER, SCATTER, STARTED, UNITS, jobs_table
from dashboard.widgets import filters
from dashboard.widgets.choices import moment
from dashboard.widgets.downloads import download
from dashboard.widgets.job_selection import open_job, picked_row
from dashboard.widgets.messages import show_empty, show_unknown
from registry.errors import UnknownName
from registry.pages.jobs import JobChoices, JobFilter
from registry.registry import Registry

ROWS = 100
"""Jobs of a page of the table."""
FIRST = datetime(2000, 1, 1, tzinfo=UTC)
"""Before any job."""
PAGE = "page"


def draw(registry: Registry, site: Site) -> None:
    """Draw the page."""
    st.title("Jobs")
    choices = job_choices(registry)
    if not choices.states and not choices.users:
        show_empty(
            "The registry holds no jobs yet. Bring some in, or look at the demo:",
            "scontrol show jobs -d | almanac ingest --cluster NAME -",
            "almanac demo",
        )
        return
    try:
        wanted = _filter(choices, site.viewer)
    except UnknownName as error:
        show_unknown(error, error.kind)
        return
    start = filters.page_start(ROWS, PAGE)
    view = jobs_view(registry, wanted, choices.clusters, limit=ROWS, offset=start)
    if not view.total:
        st.info("No job fits this choice.", icon=":material/filter_alt_off:")
        st.button("Show all jobs", on_click=st.query_params.clear, key="all jobs")
        return
    _table(view, site)
    filters.pager(view.total, ROWS, PAGE, "jobs, the newest first")
    _download(lambda: _all(registry, wanted, choices), site.viewer)


def _filter(choices: JobChoices, viewer: Viewer) -> JobFilter:
    """What the address or the widgets ask for.

    Raises
    ------
    UnknownName
    """
    clusters, users = list(choices.clusters), {viewer.name(u): u for u in choices.users if viewer.sees(u)}
    first = st.columns([2, 2, 3, 2, 3])
    with first[0]:
        cluster = filters.any_of("Cluster", "cluster", clusters, kind="cluster", resets=[PAGE])
    with first[1]:
        user = filters.any_of("User", "user", sorted(users), kind="user", resets=[PAGE])
    with first[2]:
        application = filters.any_of(
            "Application", "application", choices.applications, kind="application", resets=[PAGE]
        )
    with first[3]:
        state = filters.any_of("State", "state", choices.states, kind="state", resets=[PAGE])
    with first[4]:
        text = filters.written("Job", "text", hint="beginning of its id, or in its name", resets=[PAGE])
    second = st.columns([3, 3, 3, 3])
    last = datetime.now(UTC) + timedelta(days=1)
    with second[0]:
        since = moment("Ran after (UTC)", "since", FIRST, last, resets=[PAGE])
    with second[1]:
        until = moment("Ran before (UTC)", "until", FIRST, last, resets=[PAGE])
    with second[2]:
        gain = filters.at_least("Possible gain at least (times)", "gain", about=ABOUT[GAIN], resets=[PAGE])
    with second[3]:
        over = filters.at_least("Over the bound at least (times)", "over", about=ABOUT[OVER], resets=[PAGE])
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
    """The rows of the page; the one that is picked can be opened."""
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
    """All rows that fit, for the file."""
    return jobs_view(registry, wanted, choices.clusters, limit=MOST_ROWS)


def _download(read: Callable[[], JobsView], viewer: Viewer) -> None:
    """All that fit as CSV, read when it is asked for; in base units, which the columns' names tell."""

    def content() -> str:
        view = read()
        return csv_text(jobs_table(view.rows, view.fragmentation, viewer), UNITS)

    download("All of them as CSV", content, "jobs.csv", key="jobs csv")
