"""The table of all jobs. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from dashboard.state.viewer import Viewer
from dashboard.tables.columns import in_utc, numbers
from registry import units
from registry.pages.jobs import JobRow
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

    Parameters
    ----------
    shared : mapping of str to str
        Other jobs on the links of a job, by `StoredJob.id`.
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
