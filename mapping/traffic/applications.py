"""How well each application is placed on each cluster, over all its placements of a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from registry.model.placement_series import PlacementSeries


class ApplicationQuality(NamedTuple):
    """An application's evaluated placements on a cluster; medians, NaN where nothing is known.

    Attributes
    ----------
    cluster, application : str
    placements : int
    over_bound : float
        Worst link over its certified lower bound; 1 is the best possible.
    over_in_order : float
        Worst link over that of the same ranks in order; below 1 is better than those.
    congestion_seconds : float
        Worst link.
    """

    cluster: str
    application: str
    placements: int
    over_bound: float
    over_in_order: float
    congestion_seconds: float


def by_application(series: PlacementSeries) -> tuple[ApplicationQuality, ...]:
    """Each application on each cluster, by application and cluster."""
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
            over_bound=_median(over_bound[mine]),
            over_in_order=_median(over_in_order[mine]),
            congestion_seconds=_median(worst[mine]),
        )
        for (application, cluster), mine in sorted(rows.items())
    )


def _median(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    known = values[np.isfinite(values)]
    return float(np.median(known)) if len(known) else float("nan")
