"""Placements read as columns: one list a column, for rows of 20,000 take ten times as long."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from registry.model.placement_series import Moments, PlacementSeries
from registry.records.placements.records import PROPOSED
from registry.records.placements.rows import BOUNDED, METRICS, profile_names

BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
"""Before everything that is recorded."""

_PLAIN = ("id", "cluster", "strategy", "objective", "routing", "code_version", "ranks", "complete")
_OPTIONAL = ("application", "profile", "job", "tables", "snapshot", "allocation", "background")
_NUMBERS = (
    *METRICS,
    *(f"bound_{name}" for name in BOUNDED),
    *(f"in_order_{name}" for name in METRICS),
)
_ABSENT = -1.0
"""Stands for a number that is not there: collected lists leave out what is null. None is negative."""

_COLLECTED = ", ".join(
    (
        *(f"collect(p.{name}) AS {name}" for name in _PLAIN),
        *(f"collect(coalesce(p.{name}, '')) AS {name}" for name in _OPTIONAL),
        *(f"collect(coalesce(p.{name}, {_ABSENT})) AS {name}" for name in _NUMBERS),
        f"collect(coalesce(p.role, '{PROPOSED}')) AS role",
        "collect(coalesce(p.rank_order, '')) AS rank_order",
        "collect(toString(p.recorded_at)) AS recorded_at",  # a time itself takes longer to send than a row
    )
)
_RETURN = f"""
WITH {_COLLECTED}
{profile_names("id")}
RETURN *
"""

READ_SERIES = f"""
MATCH (p:Placement)
WHERE p.recorded_at >= $since AND ($application IS NULL OR p.application = $application)
{_RETURN}
"""

READ_SERIES_OF_CLUSTER = f"""
MATCH (p:Placement)
WHERE p.cluster = $cluster AND p.recorded_at >= $since
      AND ($application IS NULL OR p.application = $application)
{_RETURN}
"""


def placement_series(row: dict[str, Any]) -> PlacementSeries:
    """The series of the row of `READ_SERIES` or `READ_SERIES_OF_CLUSTER`, in the series' order."""
    names = dict(zip(row["profile_ids"], row["profile_names"], strict=True))
    columns: dict[str, Any] = {name: tuple(row[name]) for name in (*_PLAIN[:-2], *_OPTIONAL, "role")}
    for name in _NUMBERS:
        values = np.asarray(row[name], np.float64)
        columns[name] = np.where(values == _ABSENT, np.nan, values)
    series = PlacementSeries(
        **columns,
        profile_name=tuple(names.get(identity, "") for identity in row["profile"]),
        order=tuple(row["rank_order"]),
        recorded_at=_moments(row["recorded_at"]),
        ranks=np.asarray(row["ranks"], np.int32),
        complete=np.asarray(row["complete"], np.bool_),
    )
    by_id = np.asarray(sorted(range(len(series)), key=series.id.__getitem__), np.int64)
    return series.take(by_id[np.argsort(series.recorded_at[by_id], kind="stable")])


def _moments(texts: list[str]) -> Moments:
    """datetime64[us]: of ISO texts in UTC, whichever way a server writes the zone."""
    plain = [text.partition("Z")[0].partition("+")[0][:26] for text in texts]
    return np.asarray(plain, "datetime64[us]")
