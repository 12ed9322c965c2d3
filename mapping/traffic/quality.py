"""Quality of placements over time: control limits, regressions and their causes, medians by application.

The quality is the worst link of a placement divided by its certified bound. It is compared with earlier
placements of the same application. The limit is their median plus three times their scaled median absolute
deviation (Leys et al. 2013, Journal of Experimental Social Psychology 49, 764-766), which one bad placement
does not move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from registry.model.arrays import Bools, Floats, Longs, freeze
from registry.model.placement import PlacementSeries
from registry.model.views import one_line

WINDOW = 20
"""Largest number of earlier placements that one is compared with."""
NEEDED = 5
"""Smallest number of earlier placements for a limit."""
DEVIATIONS = 3.0
CONSISTENT = 1.4826
"""Median absolute deviations per standard deviation of a normal distribution."""
WORSE = 1.05
"""A ratio below this multiple of the median is no regression, however narrow the limits are."""

FABRIC, ROUTES, PROFILE, STRATEGY, HOSTS, ORDER, TRAFFIC, PROGRAM = CAUSES = (
    *("fabric", "routes", "profile", "strategy", "hosts", "order of ranks", "other jobs", "program"),
)
"""Possible changes since the last good placement."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quality:
    """Quality of the placements of a series, one row each (n rows).

    Attributes
    ----------
    ratio : float64[n]
        Worst link divided by its certified bound; NaN if either is unknown.
    centre, limit : float64[n]
        Median of the earlier placements, and the upper limit; NaN if there are fewer than `NEEDED`.
    regression : bool[n]
    last_good : int64[n]
        Row of the last earlier placement without a regression; -1 if there is none.
    """

    ratio: Floats
    centre: Floats
    limit: Floats
    regression: Bools
    last_good: Longs

    __repr__ = one_line

    def __post_init__(self) -> None:
        n = len(self.ratio)
        for name in ("ratio", "centre", "limit"):
            freeze(self, name, np.float64, n)
        freeze(self, "regression", np.bool_, n)
        freeze(self, "last_good", np.int64, n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """A placement that is worse than the earlier ones.

    Attributes
    ----------
    row : int
        Row of the series.
    id : str
    recorded_at : datetime
        UTC.
    cluster, application, profile_name, role, job : str
    ranks : int
    ratio, centre, limit : float
        As in `Quality`.
    last_good : str
        Id of the last earlier placement without a regression.
    changed : tuple of str
        Differences between the two, from `CAUSES`.
    """

    row: int
    id: str
    recorded_at: datetime
    cluster: str
    application: str
    profile_name: str
    role: str
    job: str
    ranks: int
    ratio: float
    centre: float
    limit: float
    last_good: str
    changed: tuple[str, ...]


def judge(series: PlacementSeries) -> Quality:
    """Return the ratios, control limits and regressions of a series.

    Placements are compared if they have the same cluster, application, profile name (so a new recording of
    the profile counts), number of ranks and role, and both have, or lack, other jobs' traffic.
    """
    n = len(series)
    bound = series.bound_congestion_seconds
    known = np.isfinite(series.congestion_seconds) & (bound > 0)
    known &= np.asarray([bool(profile) for profile in series.profile], bool)
    ratio = np.where(known, series.congestion_seconds / np.where(known, bound, 1.0), np.nan)
    rows = np.flatnonzero(known)
    group = _groups(series)[rows]
    order = np.argsort(group, kind="stable")
    rows, group = rows[order], group[order]
    position = np.arange(len(rows))
    first = np.searchsorted(group, group)
    centre, limit = _limits(ratio[rows], position - first)
    worse = (ratio[rows] > limit) & (ratio[rows] >= WORSE * centre)
    good = np.maximum.accumulate(np.where(worse, -1, position)) if len(rows) else position
    before = np.append(-1, good[:-1])[: len(rows)]
    last_good = np.where(before >= first, rows[before], -1)
    return Quality(
        ratio=ratio,
        centre=_scatter(n, rows, centre, np.nan),
        limit=_scatter(n, rows, np.maximum(limit, WORSE * centre), np.nan),
        regression=_scatter(n, rows, worse, False),
        last_good=_scatter(n, rows, last_good, -1),
    )


def regressions(series: PlacementSeries, quality: Quality | None = None) -> tuple[Regression, ...]:
    """Return the placements that are worse than earlier ones, newest first.

    Parameters
    ----------
    quality : Quality, optional
        Result of `judge`, if available.
    """
    judged = judge(series) if quality is None else quality
    found = np.flatnonzero(judged.regression)[::-1].tolist()
    return tuple(_regression(series, judged, row) for row in found)


def changed(series: PlacementSeries, row: int, other: int) -> tuple[str, ...]:
    """Return the differences between two placements of a series, from `CAUSES` in their order.

    The order of ranks is compared only if the hosts are the same and both orders are known.
    """

    def differs(*columns: Sequence[str]) -> bool:
        return any(column[row] != column[other] for column in columns)

    same_hosts = not differs(series.allocation)
    orders_known = bool(series.order[row] and series.order[other])
    different = {
        FABRIC: differs(series.snapshot),
        ROUTES: differs(series.tables, series.routing),
        PROFILE: differs(series.profile),
        STRATEGY: differs(series.strategy),
        HOSTS: not same_hosts,
        ORDER: same_hosts and orders_known and differs(series.order),
        TRAFFIC: differs(series.background),
        PROGRAM: differs(series.code_version),
    }
    return tuple(cause for cause in CAUSES if different[cause])


def _regression(series: PlacementSeries, judged: Quality, row: int) -> Regression:
    """Return the regression at a row of the series."""
    good = int(judged.last_good[row])
    time: datetime = series.recorded_at[row].astype("datetime64[us]").item()
    texts = ("id", "cluster", "application", "profile_name", "role", "job")
    known: dict[str, Any] = {name: getattr(series, name)[row] for name in texts}
    known |= {name: float(getattr(judged, name)[row]) for name in ("ratio", "centre", "limit")}
    return Regression(
        row=row,
        recorded_at=time.replace(tzinfo=UTC),
        ranks=int(series.ranks[row]),
        last_good=series.id[good],
        changed=changed(series, row, good),
        **known,
    )


def _groups(series: PlacementSeries) -> Longs:
    """Return the same number (int64[n]) for placements that are compared with each other."""
    number: dict[tuple[object, ...], int] = {}
    shared = (bool(text) for text in series.background)
    texts = series.cluster, series.application, series.profile_name, series.role
    keys = zip(*texts, series.ranks.tolist(), shared, strict=True)
    return np.asarray([number.setdefault(key, len(number)) for key in keys], np.int64)


def _limits(ratio: Floats, earlier: Longs) -> tuple[Floats, Floats]:
    """Return the median of the earlier ratios and the upper control limit; NaN if there are too few.

    Parameters
    ----------
    ratio : float64[n]
        Ratios by group, each group in order of time.
    earlier : int64[n]
        Number of earlier entries in the same group.
    """
    back = np.arange(1, WINDOW + 1)
    known = earlier[:, None] >= back
    source = np.maximum(np.arange(len(ratio))[:, None] - back, 0)
    window = np.where(known, ratio[source] if len(ratio) else 0.0, np.nan)
    count = np.minimum(earlier, WINDOW)
    centre = _median(window, count)
    deviation = _median(np.abs(window - centre[:, None]), count)
    few = count < NEEDED
    limit = centre + DEVIATIONS * CONSISTENT * deviation
    return np.where(few, np.nan, centre), np.where(few, np.nan, limit)


def _median(window: Floats, count: Longs) -> Floats:
    """Return the median (float64[n]) of the first `count` sorted values of each row, NaN sorted last."""
    ordered = np.sort(window, axis=1)
    middle = np.stack([np.maximum(count - 1, 0) // 2, count // 2], axis=1)
    return np.asarray(np.take_along_axis(ordered, np.minimum(middle, WINDOW - 1), axis=1).mean(axis=1))


def _scatter(n: int, rows: Longs, values: np.ndarray, default: object) -> np.ndarray:
    """Return the values at their rows of the series, and the default elsewhere."""
    whole = np.full(n, default, values.dtype)
    whole[rows] = values
    return whole


class ApplicationQuality(NamedTuple):
    """Medians of an application's evaluated placements on a cluster; NaN if unknown.

    Attributes
    ----------
    cluster, application : str
    placements : int
    over_bound : float
        Worst link divided by its certified lower bound; 1 is the best possible.
    over_in_order : float
        Worst link divided by that of the same ranks in order; below 1 is better.
    congestion_seconds : float
        Time of the worst link.
    """

    cluster: str
    application: str
    placements: int
    over_bound: float
    over_in_order: float
    congestion_seconds: float


def by_application(series: PlacementSeries) -> tuple[ApplicationQuality, ...]:
    """Return the quality of each application on each cluster, by application and cluster."""
    worst = series.congestion_seconds
    with np.errstate(divide="ignore", invalid="ignore"):
        over_bound = worst / series.bound_congestion_seconds
        over_in_order = worst / series.in_order_congestion_seconds
    rows: dict[tuple[str, str], list[int]] = {}
    for row in np.flatnonzero(np.isfinite(worst)).tolist():
        rows.setdefault((series.application[row], series.cluster[row]), []).append(row)
    return tuple(
        ApplicationQuality(
            cluster=cluster,
            application=application,
            placements=len(mine),
            over_bound=_known_median(over_bound[mine]),
            over_in_order=_known_median(over_in_order[mine]),
            congestion_seconds=_known_median(worst[mine]),
        )
        for (application, cluster), mine in sorted(rows.items())
    )


def _known_median(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else float("nan")
