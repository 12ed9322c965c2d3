"""Jobs as tables: pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from dashboard.state.viewer import Viewer
from mapping.traffic.fragmentation import Fragmentation
from registry import units
from registry.pages.jobs import JobRow
from registry.records.placements.placements import StoredPlacementInfo

GAIN, OVER, WORST, SCATTER = "possible gain", "over the bound", "worst link", "fragmentation"
"""Columns that judge a job's placement."""
STARTED, ENDED = "started (UTC)", "ended (UTC)"

ABOUT: Mapping[str, str] = {
    WORST: "Bytes over capacity of the link that needs longest, for one sending of the job's profile: of the "
    "placement that it runs with where that was reported, else of the last one that was proposed.",
    OVER: "That, over what no placement on the job's hosts can be below.",
    GAIN: "Worst link of the placement that it runs with over that of a better one, both with other jobs' "
    "traffic on the links; as `almanac advise` found it last. 1 is nothing to gain.",
    "leaf switches": "Groups of hosts with the same nearest switches that the job has hosts in, on the "
    "fabric as it is now.",
    SCATTER: "Those groups over the fewest that so many hosts need on this fabric. 1 is the best there is.",
}
"""What the columns mean."""
UNITS = {WORST: units.SECONDS}
"""Columns with a unit, in base units."""


def jobs_table(
    rows: Sequence[JobRow], fragmentation: Sequence[Fragmentation | None], viewer: Viewer
) -> pd.DataFrame:
    """One row a job, in base units; blank or NaN where nothing is known."""
    return pd.DataFrame(
        {
            "job": [row.stored.job.id for row in rows],
            "name": [row.stored.job.name for row in rows],
            "user": [viewer.name(row.stored.job.user) for row in rows],
            "application": [row.application or "" for row in rows],
            "state": [row.stored.job.state for row in rows],
            "hosts": [len(row.stored.job.hosts) for row in rows],
            "ranks": [row.stored.job.ranks or sum(row.stored.job.slots) for row in rows],
            WORST: _numbers(
                [None if row.placement is None else row.placement.congestion_seconds for row in rows]
            ),
            OVER: _numbers([over_bound(row.placement) for row in rows]),
            GAIN: _numbers([None if row.advice is None else row.advice.gain for row in rows]),
            SCATTER: _numbers([None if f is None else f.times for f in fragmentation]),
            STARTED: _times([row.stored.job.started_at for row in rows]),
            ENDED: _times([row.stored.job.ended_at for row in rows]),
            "leaf switches": pd.array([None if f is None else f.groups for f in fragmentation], "Int64"),
            "cluster": [row.stored.cluster for row in rows],
        }
    )


def over_bound(placement: StoredPlacementInfo | None) -> float | None:
    """Worst link over the certified bound; None where either is not known or the bound is 0."""
    if placement is None or placement.congestion_seconds is None:
        return None
    bound = placement.bounds.get("congestion_seconds", 0.0)
    return placement.congestion_seconds / bound if bound > 0 else None


def _numbers(values: Sequence[float | None]) -> list[float]:
    return [np.nan if value is None else float(value) for value in values]


def _times(values: Sequence[object]) -> pd.Series:
    """Times in UTC without the zone, which the column's name tells."""
    return pd.to_datetime(pd.Series(list(values), dtype=object), utc=True).dt.tz_localize(None)
