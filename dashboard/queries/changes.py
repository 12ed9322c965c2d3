"""Differences of two states of a cluster's wiring."""

from __future__ import annotations

import streamlit as st

from dashboard.queries.caching import KEYS
from registry.pages.changes import SnapshotDiff, State, read_snapshot_diff
from registry.registry import Registry

PAIRS_CACHED = 8
"""Number of cached comparisons of two states."""


@st.cache_resource(max_entries=PAIRS_CACHED, show_spinner="Comparing the two states ...", hash_funcs=KEYS)
def cached_comparison(registry: Registry, cluster: str, before: State, after: State) -> SnapshotDiff:
    """Return the two states and their differences: one statement, none if they are cached."""
    return read_snapshot_diff(registry.database, cluster, before, after)
