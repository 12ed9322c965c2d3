"""Data of the history page: all placements as columns, and their quality."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from dashboard.queries.caching import KEYS
from dashboard.queries.traffic import clusters
from dashboard.state.viewer import Viewer
from mapping.traffic.quality import Quality, Regression, judge, regressions
from registry.fabrics.fabrics import ClusterInfo
from registry.jobs.jobs import jobs_of_user
from registry.model.placement_series import PlacementSeries
from registry.registry import Registry

CACHED = 2
"""Number of cached histories."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """Data of the history page.

    Attributes
    ----------
    clusters : dict of str to ClusterInfo
    series : PlacementSeries
        Evaluated placements, oldest first.
    quality : Quality
        Quality of each row of the series.
    regressions : tuple of Regression
    """

    clusters: dict[str, ClusterInfo]
    series: PlacementSeries
    quality: Quality
    regressions: tuple[Regression, ...]


def history(registry: Registry, viewer: Viewer) -> History:
    """Return all visible placements: two statements, one if nothing is new; one more if limited to a user."""
    known = clusters(registry)
    versions = tuple((info.name, info.version) for info in known.values())
    mine = None if viewer.only is None else jobs_of_user(registry.database, viewer.only)
    series, quality, found = _judged(registry, versions, mine)
    return History(clusters=known, series=series, quality=quality, regressions=found)


def evaluated(series: PlacementSeries, mine: frozenset[str] | None) -> PlacementSeries:
    """Return the evaluated placements; only those of jobs with these keys, if keys are given."""
    keep = np.isfinite(series.congestion_seconds)
    if mine is not None:
        keys = (f"{cluster}/{job}" for cluster, job in zip(series.cluster, series.job, strict=True))
        keep &= np.fromiter((key in mine for key in keys), bool, len(series))
    return series.take(np.flatnonzero(keep))


@st.cache_resource(max_entries=CACHED, show_spinner="Judging the placements ...", hash_funcs=KEYS)
def _judged(
    registry: Registry, versions: tuple[tuple[str, int], ...], mine: frozenset[str] | None
) -> tuple[PlacementSeries, Quality, tuple[Regression, ...]]:
    series = evaluated(registry.placements.series(), mine)
    quality = judge(series)
    return series, quality, regressions(series, quality)
