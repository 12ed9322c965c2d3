"""Data of the page Trends: all placements as columns, and their quality.

Measured gains of placements, for the pages Trends and of a job; shared by all viewers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import streamlit as st

from dashboard.shared.caching import CACHED, KEYS, cached_clusters, cached_jobs_of_user
from dashboard.shared.viewer import Viewer
from mapping.traffic.job_loads import Quality, Regression, judge, regressions
from mapping.traffic.measured_gain import MeasuredGain, measured_gains
from registry.model.placement import PlacementSeries
from registry.registry import Registry
from registry.store.fabrics import ClusterInfo


def gains_on(
    registry: Registry, clusters: Iterable[ClusterInfo], placements: Iterable[str]
) -> tuple[MeasuredGain, ...]:
    """Return what placements gained in measured runs, the newest first: one statement, none if cached.

    Args:
        clusters: One cluster, or all; entries cached for older versions of them are not used.
        placements: Ids of placements; gains of others are left out.
    """
    wanted = frozenset(placements)
    return tuple(one for one in _gains(registry, tuple(clusters)) if one.run.placement in wanted)


@st.cache_resource(max_entries=CACHED, show_spinner=False, hash_funcs=KEYS)
def _gains(registry: Registry, clusters: tuple[ClusterInfo, ...]) -> tuple[MeasuredGain, ...]:
    one = clusters[0].name if len(clusters) == 1 else None
    return measured_gains(registry.measured_runs.list(one))


HISTORIES_CACHED = 2
"""Number of cached histories."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """Data of the page Trends."""

    clusters: Mapping[str, ClusterInfo]
    series: PlacementSeries
    """Evaluated placements, oldest first."""
    quality: Quality
    """Quality of each row of the series."""
    regressions: tuple[Regression, ...]
    gains: tuple[MeasuredGain, ...]
    """What placements of the series gained in measured runs."""


def history(registry: Registry, viewer: Viewer) -> History:
    """Return all visible placements: three statements, none if nothing is new; one more for one user."""
    known = cached_clusters(registry).infos
    series, quality, found = judged(registry, known.values(), viewer.only)
    gains = gains_on(registry, known.values(), series.id)
    return History(clusters=known, series=series, quality=quality, regressions=found, gains=gains)


def judged(
    registry: Registry, clusters: Iterable[ClusterInfo], user: str | None
) -> tuple[PlacementSeries, Quality, tuple[Regression, ...]]:
    """Return all placements, their quality and regressions: one statement, none if nothing is new.

    Args:
        clusters: All clusters; entries cached for older versions of them are not used.
        user: Only placements of this user's jobs, which takes one more statement.
    """
    versions = tuple((info.name, info.version) for info in clusters)
    mine = None if user is None else cached_jobs_of_user(registry, user)
    return _judged(registry, versions, mine)


def evaluated(series: PlacementSeries, mine: frozenset[str] | None) -> PlacementSeries:
    """Return the evaluated placements; only those of jobs with these keys, if keys are given."""
    keep = np.isfinite(series.congestion_seconds)
    if mine is not None:
        keys = (f"{cluster}/{job}" for cluster, job in zip(series.cluster, series.job, strict=True))
        keep &= np.fromiter((key in mine for key in keys), bool, len(series))
    return series.take(np.flatnonzero(keep))


@st.cache_resource(max_entries=HISTORIES_CACHED, show_spinner="Judging the placements ...", hash_funcs=KEYS)
def _judged(
    registry: Registry, versions: tuple[tuple[str, int], ...], mine: frozenset[str] | None
) -> tuple[PlacementSeries, Quality, tuple[Regression, ...]]:
    series = evaluated(registry.placements.series(), mine)
    quality = judge(series)
    return series, quality, regressions(series, quality)
