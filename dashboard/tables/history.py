"""Tables and charts' data of the page Trends. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dashboard.tables.placements import METRICS
from mapping.traffic.job_loads import Quality, by_application
from registry import units
from registry.model import Longs
from registry.model.placement import PlacementSeries

POINTS = 150
"""Maximum number of placements in a chart: the newest ones."""
FLAGGED = 50
"""Maximum number of older regressions that a chart also shows: the newest of them."""
FACTS = {
    "cluster": "cluster",
    "application": "application",
    "profile": "profile_name",
    "profile id": "profile",
    "ranks": "ranks",
    "job": "job",
    "role": "role",
    "strategy": "strategy",
    "objective": "objective",
    "routing": "routing",
    "snapshot": "snapshot",
    "tables": "tables",
    "hosts and slots": "allocation",
    "ranks on hosts": "order",
    "code version": "code_version",
}
"""Facts of a placement apart from its costs, and their columns of the series."""


class Panel(NamedTuple):
    """A chart: the placements of an application on a cluster.

    Attributes
    ----------
    application, cluster : str
    rows : int64[k]
        Rows of the series, ascending.
    flagged : int
        Number of regressions among them.
    """

    application: str
    cluster: str
    rows: Longs
    flagged: int

    @property
    def title(self) -> str:
        """Text for both names."""
        return f"{self.application} on {self.cluster}"


def panels(series: PlacementSeries, quality: Quality, rows: Longs) -> list[Panel]:
    """Return a chart for each application on each cluster: the newest regression first, then the newest.

    Parameters
    ----------
    rows : int64[k]
        Rows of the series to show, ascending.
    """
    grouped: dict[tuple[str, str], list[int]] = {}
    for row in rows.tolist():
        grouped.setdefault((series.application[row], series.cluster[row]), []).append(row)
    found = []
    for (application, cluster), mine in grouped.items():
        flagged = np.flatnonzero(quality.regression[mine])
        newest = mine[int(flagged[-1])] if len(flagged) else -1
        name = application or "unknown application"
        panel = Panel(name, cluster, np.asarray(mine, np.int64), len(flagged))
        found.append(((-newest, -mine[-1], panel.title), panel))
    return [panel for _, panel in sorted(found, key=lambda one: one[0])]


def points(series: PlacementSeries, quality: Quality, rows: Longs, metric: str) -> pd.DataFrame:
    """Return the newest placements of a chart and the newest older regressions, in base units.

    Unknown values are NaN. Placements of one ``group`` have one limit.
    """
    older, newest = rows[:-POINTS], rows[-POINTS:]
    mine = np.r_[older[quality.regression[older]][-FLAGGED:], newest]
    bound = _values(series, f"bound_{metric}", mine)
    judged = bound if metric == "congestion_seconds" else np.full(len(mine), np.nan)
    return pd.DataFrame(
        {
            "at": pd.to_datetime(series.recorded_at[mine], utc=True),
            "value": _values(series, metric, mine),
            "bound": bound,
            "centre": quality.centre[mine] * judged,
            "limit": quality.limit[mine] * judged,
            "in order": _values(series, f"in_order_{metric}", mine),
            "flagged": quality.regression[mine],
            "role": _values(series, "role", mine),
            "placement": _values(series, "id", mine),
            "profile": _values(series, "profile_name", mine),
            "group": [f"{series.profile_name[k]} {series.ranks[k]} {series.role[k]}" for k in mine.tolist()],
            "job": _values(series, "job", mine),
            "strategy": _values(series, "strategy", mine),
        }
    )


def placements_table(series: PlacementSeries, quality: Quality, rows: Longs) -> pd.DataFrame:
    """Return placements with their costs in base units, in the order of the rows."""

    def columns(*titles: str) -> dict[str, Any]:
        return {title: _values(series, FACTS[title], rows) for title in titles}

    return pd.DataFrame(
        {
            "placement": _values(series, "id", rows),
            "saved at (UTC)": series.recorded_at[rows].astype("datetime64[s]"),
            **columns("application", "cluster", "job", "role", "ranks"),
            **{about.title: _values(series, metric, rows) for metric, about in METRICS.items()},
            "over bound": quality.ratio[rows],
            "regression": quality.regression[rows],
            **columns("profile", "strategy", "objective", "routing", "snapshot", "code version"),
        }
    )


def option_text(series: PlacementSeries, row: int) -> str:
    """Return the text of a placement in a list to choose from."""
    cost = units.short(float(series.congestion_seconds[row]), units.SECONDS)
    job = f"job {series.job[row]}" if series.job[row] else ""
    parts = (series.application[row], job, cost, series.strategy[row], moment_of(series, row), series.id[row])
    return " · ".join(part for part in parts if part)


def moment_of(series: PlacementSeries, row: int) -> str:
    """Return the time at which a placement was saved, as text in UTC."""
    return str(series.recorded_at[row].astype("datetime64[s]")).replace("T", " ") + " UTC"


def facts_table(series: PlacementSeries, pair: Sequence[int]) -> pd.DataFrame:
    """Return two placements side by side: costs with units, then provenance; differences are marked."""
    rows = np.asarray(pair, np.int64)
    lines: list[tuple[str, list[str]]] = []
    for metric, about in METRICS.items():
        lines.append((about.title, [_cost(value, about.base) for value in getattr(series, metric)[rows]]))
        bounds = _values(series, f"bound_{metric}", rows)
        if np.isfinite(bounds).any():
            lines.append((f"{about.title}, lower bound", [_cost(value, about.base) for value in bounds]))
    lines += [(fact, [str(getattr(series, column)[row]) for row in pair]) for fact, column in FACTS.items()]
    lines.insert(0, ("saved at", [moment_of(series, row) for row in pair]))
    return pd.DataFrame(
        {
            "fact": [fact for fact, _ in lines],
            "A": [both[0] for _, both in lines],
            "B": [both[1] for _, both in lines],
            "differs": ["≠" if both[0] != both[1] else "" for _, both in lines],
        }
    )


def relative(series: PlacementSeries, pair: Sequence[int]) -> pd.DataFrame:
    """Return the costs of two placements: ``cost``, ``which``, ``share`` (of the larger) and ``shown``."""
    rows = []
    for metric, about in METRICS.items():
        values = [float(getattr(series, metric)[row]) for row in pair]
        top = max(values, default=0.0) or 1.0
        rows += [
            (about.title, which, value / top, units.short(value, about.base))
            for which, value in zip("AB", values, strict=True)
        ]
    return pd.DataFrame(rows, columns=["cost", "which", "share", "shown"])


def applications_table(series: PlacementSeries, clusters: Sequence[str]) -> pd.DataFrame:
    """Return the placements of each application on each of the clusters: their number and median quality."""
    rows = [
        (
            one.application or "unknown application",
            one.cluster,
            one.placements,
            one.over_bound,
            one.over_in_order,
        )
        for one in by_application(series)
        if one.cluster in clusters
    ]
    return pd.DataFrame(rows, columns=["application", "cluster", "placements", "over bound", "over in order"])


def _values(series: PlacementSeries, name: str, rows: Longs) -> Any:
    """Return some rows of a column: a list of texts or an array of numbers; NaN without such a column."""
    column = getattr(series, name, None)
    if isinstance(column, tuple):
        return [column[row] for row in rows.tolist()]
    return np.full(len(rows), np.nan) if column is None else column[rows]


def _cost(value: float, base: str) -> str:
    return units.short(float(value), base) if np.isfinite(value) else ""
