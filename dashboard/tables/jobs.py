"""The table of all jobs. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from dashboard.state.viewer import Viewer
from dashboard.tables.columns import in_utc, numbers
from mapping.traffic.fragmentation import Fragmentation
from registry import units
from registry.pages.jobs import JobRow
from registry.records.placements.records import StoredPlacementInfo

GAIN, OVER, WORST, SCATTER = "possible gain", "over the bound", "worst link", "fragmentation"
"""Columns about the quality of a job's placement."""
STARTED, ENDED = "started (UTC)", "ended (UTC)"

ABOUT: Mapping[str, str] = {
    WORST: "Bytes over capacity of the link that takes longest, if the job's profile is sent once: for the "
    "placement that the job runs with, or else the last proposed one.",
    OVER: "Worst link over the lower bound for any placement on the job's hosts. 1 is the best possible.",
    GAIN: "Worst link of the present placement over that of a better one, both with the traffic of other "
    "jobs; latest result of `almanac advise`. 1 means nothing to gain.",
    "leaf switches": "Number of leaf switches (groups of hosts with the same switches) that the job's hosts "
    "are connected to, on the present fabric.",
    SCATTER: "These leaf switches over the fewest that could connect so many hosts. 1 is the best possible.",
}
"""Help texts of the columns."""
UNITS = {WORST: units.SECONDS}
"""Base units of columns."""


def jobs_table(
    rows: Sequence[JobRow], fragmentation: Sequence[Fragmentation | None], viewer: Viewer
) -> pd.DataFrame:
    """Return one row per job, in base units; blank or NaN if a value is not known."""
    return pd.DataFrame(
        {
            "job": [row.stored.job.id for row in rows],
            "name": [row.stored.job.name for row in rows],
            "user": [viewer.name(row.stored.job.user) for row in rows],
            "application": [row.application or "" for row in rows],
            "state": [row.stored.job.state for row in rows],
            "hosts": [len(row.stored.job.hosts) for row in rows],
            "ranks": [row.stored.job.ranks or sum(row.stored.job.slots) for row in rows],
            WORST: numbers(
                [None if row.placement is None else row.placement.congestion_seconds for row in rows]
            ),
            OVER: numbers([over_bound(row.placement) for row in rows]),
            GAIN: numbers([None if row.advice is None else row.advice.gain for row in rows]),
            SCATTER: numbers([None if f is None else f.times for f in fragmentation]),
            STARTED: in_utc(row.stored.job.started_at for row in rows),
            ENDED: in_utc(row.stored.job.ended_at for row in rows),
            "leaf switches": pd.array([None if f is None else f.groups for f in fragmentation], "Int64"),
            "cluster": [row.stored.cluster for row in rows],
        }
    )


def over_bound(placement: StoredPlacementInfo | None) -> float | None:
    """Return the worst link over its lower bound, or None if either is not known or the bound is 0."""
    if placement is None or placement.congestion_seconds is None:
        return None
    bound = placement.bounds.get("congestion_seconds", 0.0)
    return placement.congestion_seconds / bound if bound > 0 else None
