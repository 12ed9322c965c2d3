"""Whether placements get worse: control limits over a history, and what changed where they are left.

Judged is how far a placement's worst link is above its certified bound, against the placements of the same
application before it. The limit is the median and three times the scaled median absolute deviation of these
(Leys et al. 2013, Journal of Experimental Social Psychology 49, 764-766): one bad placement among them does
not move it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from registry.model.arrays import Bools, Floats, Longs, freeze
from registry.model.placement_series import PlacementSeries

WINDOW = 20
"""Placements before one that it is held against, at most."""
NEEDED = 5
"""And at least."""
DEVIATIONS = 3.0
CONSISTENT = 1.4826
"""Median absolute deviations in a standard deviation, of a normal distribution."""
WORSE = 1.05
"""Less than this times the median is no regression, however narrow the limits are."""

FABRIC, ROUTES, PROFILE, STRATEGY, HOSTS, ORDER, TRAFFIC, PROGRAM = CAUSES = (
    *("fabric", "routes", "profile", "strategy", "hosts", "order of ranks", "other jobs", "program"),
)
"""What may have changed since the last good placement."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quality:
    """How good the placements of a series are; n rows, those of the series.

    Attributes
    ----------
    ratio : float64[n]
        Worst link over its certified bound; NaN where either is not known.
    centre, limit : float64[n]
        Median of those before it, and what it must not exceed; NaN where there are fewer than `NEEDED`.
    regression : bool[n]
    last_good : int64[n]
        Row of the last one before it that was no regression; -1 where there is none.
    """

    ratio: Floats
    centre: Floats
    limit: Floats
    regression: Bools
    last_good: Longs

    def __post_init__(self) -> None:
        n = len(self.ratio)
        for name in ("ratio", "centre", "limit"):
            freeze(self, name, np.float64, n)
        freeze(self, "regression", np.bool_, n)
        freeze(self, "last_good", np.int64, n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """A placement that is worse than those before it.

    Attributes
    ----------
    row : int
        Of the series.
    id : str
    recorded_at : datetime
        UTC.
    cluster, application, profile_name, role, job : str
    ranks : int
    ratio, centre, limit : float
        As in `Quality`.
    last_good : str
        Id of the last one before it that was no regression.
    changed : tuple of str
        What differs between the two, of `CAUSES`.
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
    """Ratios, control limits and regressions of a series.

    Held against each other are placements of one cluster, application, profile (by its name: one that was
    recorded anew counts), number of ranks and role, with other jobs' traffic or without.
    """
    n = len(series)
    bound = series.bound_congestion_seconds
    known = (
        np.isfinite(series.congestion_seconds)
        & (bound > 0)
        & np.asarray([bool(p) for p in series.profile], bool)
    )
    ratio = np.where(known, series.congestion_seconds / np.where(known, bound, 1.0), np.nan)
    rows = np.flatnonzero(known)
    group = _groups(series)[rows]
    order = np.argsort(group, kind="stable")
    rows, group = rows[order], group[order]
    place = np.arange(len(rows))
    first = np.searchsorted(group, group)
    centre, limit = _limits(ratio[rows], place - first)
    worse = (ratio[rows] > limit) & (ratio[rows] >= WORSE * centre)
    good = np.maximum.accumulate(np.where(worse, -1, place)) if len(rows) else place
    before = np.append(-1, good[:-1])[: len(rows)]
    last_good = np.where(before >= first, rows[before], -1)
    return Quality(
        ratio=ratio,
        centre=_spread(n, rows, centre, np.nan),
        limit=_spread(n, rows, np.maximum(limit, WORSE * centre), np.nan),
        regression=_spread(n, rows, worse, False),
        last_good=_spread(n, rows, last_good, -1),
    )


def regressions(series: PlacementSeries, quality: Quality | None = None) -> tuple[Regression, ...]:
    """Placements that are worse than those before them, the newest first.

    Parameters
    ----------
    quality : Quality, optional
        Of `judge`, where it is at hand.
    """
    judged = judge(series) if quality is None else quality
    found = np.flatnonzero(judged.regression)[::-1].tolist()
    return tuple(_regression(series, judged, row) for row in found)


def changed(series: PlacementSeries, row: int, other: int) -> tuple[str, ...]:
    """What differs between two placements of a series, of `CAUSES` in their order.

    The order of ranks is told where the hosts are the same, and known of both.
    """

    def differs(*columns: Sequence[str]) -> bool:
        return any(column[row] != column[other] for column in columns)

    same_hosts = not differs(series.allocation)
    orders_known = bool(series.order[row] and series.order[other])
    told = {
        FABRIC: differs(series.snapshot),
        ROUTES: differs(series.tables, series.routing),
        PROFILE: differs(series.profile),
        STRATEGY: differs(series.strategy),
        HOSTS: not same_hosts,
        ORDER: same_hosts and orders_known and differs(series.order),
        TRAFFIC: differs(series.background),
        PROGRAM: differs(series.code_version),
    }
    return tuple(cause for cause in CAUSES if told[cause])


def _regression(series: PlacementSeries, judged: Quality, row: int) -> Regression:
    good = int(judged.last_good[row])
    moment: datetime = series.recorded_at[row].astype("datetime64[us]").item()
    return Regression(
        row=row,
        id=series.id[row],
        recorded_at=moment.replace(tzinfo=UTC),
        cluster=series.cluster[row],
        application=series.application[row],
        profile_name=series.profile_name[row],
        role=series.role[row],
        job=series.job[row],
        ranks=int(series.ranks[row]),
        ratio=float(judged.ratio[row]),
        centre=float(judged.centre[row]),
        limit=float(judged.limit[row]),
        last_good=series.id[good],
        changed=changed(series, row, good),
    )


def _groups(series: PlacementSeries) -> Longs:
    """int64[n]: the same number for placements that are held against each other."""
    number: dict[tuple[object, ...], int] = {}
    shared = (bool(text) for text in series.background)
    keys = zip(
        *(
            series.cluster,
            series.application,
            series.profile_name,
            series.ranks.tolist(),
            series.role,
            shared,
        ),
        strict=True,
    )
    return np.asarray([number.setdefault(key, len(number)) for key in keys], np.int64)


def _limits(ratio: Floats, earlier: Longs) -> tuple[Floats, Floats]:
    """Median of the ratios before each, and the upper control limit; NaN where too few are before.

    Parameters
    ----------
    ratio : float64[n]
        Groups one after the other, each by time.
    earlier : int64[n]
        Entries of its own group before each.
    """
    back = np.arange(1, WINDOW + 1)
    there = earlier[:, None] >= back
    source = np.maximum(np.arange(len(ratio))[:, None] - back, 0)
    window = np.where(there, ratio[source] if len(ratio) else 0.0, np.nan)
    count = np.minimum(earlier, WINDOW)
    centre = _median(window, count)
    deviation = _median(np.abs(window - centre[:, None]), count)
    few = count < NEEDED
    limit = centre + DEVIATIONS * CONSISTENT * deviation
    return np.where(few, np.nan, centre), np.where(few, np.nan, limit)


def _median(window: Floats, count: Longs) -> Floats:
    """float64[n]: median of the first so many of each row's sorted values; NaN stands behind them."""
    ordered = np.sort(window, axis=1)
    places = np.stack([np.maximum(count - 1, 0) // 2, count // 2], axis=1)
    return np.asarray(np.take_along_axis(ordered, np.minimum(places, WINDOW - 1), axis=1).mean(axis=1))


def _spread(n: int, rows: Longs, values: np.ndarray, default: object) -> np.ndarray:
    """The values at their rows of the series, and the default elsewhere."""
    whole = np.full(n, default, values.dtype)
    whole[rows] = values
    return whole
