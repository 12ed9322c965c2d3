"""The table of all jobs. Pure functions.

The list of all jobs: how far each is from the best, what it could gain, and with whom it shares links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.shared import door
from dashboard.shared.bar import job_column, open_job
from dashboard.shared.caching import cached_clusters
from dashboard.shared.cards import csv_text, download, show_empty, show_unknown
from dashboard.shared.controls import any_of, at_least, chips, moment, named, page_start, pager, text_field
from dashboard.shared.traffic import in_utc, numbers, sharers_of
from dashboard.shared.viewer import Site, Viewer
from registry import units
from registry.errors import UnknownName
from registry.registry import Registry
from registry.store.job_lists import JobChoices, JobFilter, JobRow
from registry.store.placement_rows import StoredPlacementInfo

STATE, JOB, DISTANCE, GAIN = "state", "job", "distance from best", "possible gain"
SHARED, STARTED = "shares links with", "started"
"""Columns of `jobs_table`."""
WORST = "worst link"

ABOUT: Mapping[str, str] = {
    DISTANCE: "Time of the worst link over the lower bound for any placement on the job's hosts: for the "
    "placement that the job runs with, or else the last proposed one. 1 is the best possible.",
    GAIN: "Worst link of the present placement over that of a better one, both with the traffic of other "
    "jobs; latest result of `almanac advise`. 1 means nothing to gain.",
    SHARED: "Running jobs whose estimated traffic uses some of the same links.",
}
"""Help texts of the columns."""
UNITS = {WORST: units.SECONDS}
"""Base units of columns of `jobs_file`."""
SIGNS = {
    "▶": ("RUNNING", "COMPLETING", "R"),
    "✓": ("COMPLETED", "CD"),
    "◌": ("PENDING", "CONFIGURING", "PD", "SUSPENDED"),
}
"""Signs of the states of jobs; other states are failures of some kind."""


def state_text(state: str) -> str:
    """Return the state of a job as a sign and a word; an unknown state is a question mark."""
    if not state:
        return "? unknown"
    sign = next((sign for sign, states in SIGNS.items() if state.upper() in states), "✕")
    return f"{sign} {state.lower()}"


def jobs_table(rows: Sequence[JobRow], shared: Mapping[str, str], viewer: Viewer) -> pd.DataFrame:
    """Return one row per job; blank or NaN if a value is not known.

    Args:
        shared: Other jobs on the links of a job, by `StoredJob.id`.
    """
    return pd.DataFrame(
        {
            STATE: [state_text(row.stored.job.state) for row in rows],
            JOB: [_job_text(row, viewer) for row in rows],
            "hosts": [len(row.stored.job.hosts) for row in rows],
            DISTANCE: numbers([over_bound(row.placement) for row in rows]),
            GAIN: numbers([None if row.advice is None else row.advice.gain for row in rows]),
            SHARED: [shared.get(row.stored.id, "") for row in rows],
            STARTED: in_utc(row.stored.job.started_at for row in rows).dt.tz_localize("UTC"),
        }
    )


def jobs_file(rows: Sequence[JobRow], viewer: Viewer) -> pd.DataFrame:
    """Return all that is known of jobs, one row per job in base units, for a file."""
    jobs = [row.stored.job for row in rows]
    return pd.DataFrame(
        {
            "job": [job.id for job in jobs],
            "name": [job.name for job in jobs],
            "user": [viewer.name(job.user) for job in jobs],
            "application": [row.application or "" for row in rows],
            "state": [job.state for job in jobs],
            "hosts": [len(job.hosts) for job in jobs],
            "ranks": [job.ranks or sum(job.slots) for job in jobs],
            WORST: numbers(
                [None if row.placement is None else row.placement.congestion_seconds for row in rows]
            ),
            DISTANCE: numbers([over_bound(row.placement) for row in rows]),
            GAIN: numbers([None if row.advice is None else row.advice.gain for row in rows]),
            "started (UTC)": in_utc(job.started_at for job in jobs),
            "ended (UTC)": in_utc(job.ended_at for job in jobs),
            "cluster": [row.stored.cluster for row in rows],
        }
    )


def _job_text(row: JobRow, viewer: Viewer) -> str:
    """Return the id of a job, what it runs, and its user."""
    job = row.stored.job
    return " · ".join(part for part in (job.id, row.application or job.name, viewer.name(job.user)) if part)


def over_bound(placement: StoredPlacementInfo | None) -> float | None:
    """Return the worst link over its lower bound, or None if either is not known or the bound is 0."""
    if placement is None or placement.congestion_seconds is None:
        return None
    bound = placement.bounds.get("congestion_seconds", 0.0)
    return placement.congestion_seconds / bound if bound > 0 else None


ROWS = 100
"""Rows of a page of the table."""
MOST_ROWS = 100_000
"""Maximum number of rows in a downloaded file."""
MOST_CHIPS = 8
"""Maximum number of users as chips; more are a select box."""
HEIGHT = 480
"""Height of a long table in pixels."""
FIRST = datetime(2000, 1, 1, tzinfo=UTC)
"""Earliest time that can be chosen, before any job."""
PAGE = "page"
MORE = ("application", "since", "until", "gain", "over")
"""Parameters of the address behind "More filters"."""


def draw(registry: Registry, site: Site) -> None:
    """Draw the list."""
    choices = door.choices(registry, site.viewer)
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
    found = door.jobs(registry, wanted, ROWS, page_start(ROWS, PAGE), site.viewer)
    if not found.total:
        st.info("No job matches this choice.", icon=":material/filter_alt_off:")
        st.button("Show all jobs", on_click=st.query_params.clear, key="all jobs")
        return
    _table(registry, found.rows, site)

    def every_job() -> str:
        """Return all matching jobs as CSV; they are read when the button is pressed."""
        rows = door.every_job(registry, wanted, MOST_ROWS, site.viewer)
        return csv_text(jobs_file(rows, site.viewer), UNITS)

    with st.container(horizontal=True, vertical_alignment="bottom"):
        open_job(site.jobs, [row.stored.id for row in found.rows])
        pager(found.total, ROWS, PAGE, "jobs, the newest first" if found.total > 1 else "job")
        download("CSV", every_job, "jobs.csv", key="jobs csv")


def _filter(choices: JobChoices, viewer: Viewer) -> JobFilter:
    """Draw the filters, and return the filter for the registry.

    Raises:
        UnknownName
    """
    users = {viewer.name(user): user for user in choices.users}
    cluster = named("cluster", list(choices.clusters))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        state = chips("State", "state", choices.states, show=state_text, resets=[PAGE])
        if len(users) <= MOST_CHIPS:
            user = chips("User", "user", sorted(users), resets=[PAGE])
        else:
            user = any_of("user", sorted(users), resets=[PAGE])
        text = text_field("Job", "text", hint="id or name", resets=[PAGE])
        active = sum(name in st.query_params for name in MORE)
        with st.popover(f"More filters ({active})" if active else "More filters", icon=":material/tune:"):
            application = any_of("application", choices.applications, resets=[PAGE])
            last = datetime.now(UTC) + timedelta(days=1)
            since = moment("Ran after (UTC)", "since", FIRST, last, resets=[PAGE])
            until = moment("Ran before (UTC)", "until", FIRST, last, resets=[PAGE])
            gain = at_least("Minimum gain (times)", "gain", about=ABOUT[GAIN], resets=[PAGE])
            over = at_least("Minimum distance (times)", "over", about=ABOUT[DISTANCE], resets=[PAGE])
    return JobFilter(
        cluster=cluster,
        user=None if user is None else users[user],
        application=application,
        state=state,
        since=None if since is None else since.replace(second=0, microsecond=0),
        until=until,
        minimum_gain=gain,
        minimum_ratio=over,
        text=text,
    )


def _table(registry: Registry, rows: tuple[JobRow, ...], site: Site) -> None:
    """Draw the rows of the page; the name of a job is a button that opens it."""
    stored = [row.stored for row in rows]
    others = sharers_of(registry, cached_clusters(registry).infos, stored, site.viewer)
    table = jobs_table(rows, {job: ", ".join(names) for job, names in others.items()}, site.viewer)

    st.dataframe(
        table,
        hide_index=True,
        column_config={
            STATE: st.column_config.Column(width=110),
            JOB: job_column([one.id for one in stored], width=230),
            "hosts": st.column_config.NumberColumn(width=60),
            DISTANCE: _bar(DISTANCE, table),
            GAIN: _bar(GAIN, table),
            SHARED: st.column_config.Column(help=ABOUT[SHARED], width=170),
            STARTED: st.column_config.DatetimeColumn(format="distance"),
        },
        height="content" if len(table) < 12 else HEIGHT,
        placeholder="",
        key="jobs",
    )


def _bar(name: str, table: Any) -> Any:
    """Return the settings of a column of factors, drawn as bars from 1 to the largest one."""
    top = max(float(table[name].max(skipna=True)), 2.0) if table[name].notna().any() else 2.0
    return st.column_config.ProgressColumn(
        help=ABOUT[name], format="%.2f ×", min_value=1, max_value=top, width=130
    )
