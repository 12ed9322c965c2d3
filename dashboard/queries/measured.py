"""Measured gains of placements, for the pages Trends and of a job; shared by all viewers."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from dashboard.queries.caching import CACHED, KEYS
from mapping.traffic.measured_gain import MeasuredGain, measured_gains
from registry.registry import Registry
from registry.store.fabrics import ClusterInfo


def gains_on(
    registry: Registry, clusters: Iterable[ClusterInfo], placements: Iterable[str]
) -> tuple[MeasuredGain, ...]:
    """Return what placements gained in measured runs, the newest first: one statement, none if cached.

    Parameters
    ----------
    clusters : iterable of ClusterInfo
        One cluster, or all; entries cached for older versions of them are not used.
    placements : iterable of str
        Ids of placements; gains of others are left out.
    """
    wanted = frozenset(placements)
    return tuple(one for one in _gains(registry, tuple(clusters)) if one.run.placement in wanted)


@st.cache_resource(max_entries=CACHED, show_spinner=False, hash_funcs=KEYS)
def _gains(registry: Registry, clusters: tuple[ClusterInfo, ...]) -> tuple[MeasuredGain, ...]:
    one = clusters[0].name if len(clusters) == 1 else None
    return measured_gains(registry.measured_runs.list(one))
