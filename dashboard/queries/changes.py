"""Data of the changes page: two states of a cluster's wiring, and when the wiring changed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from dashboard.queries.caching import KEYS
from registry.errors import UnknownName
from registry.pages.changes import SnapshotDiff, State, Timeline, read_snapshot_diff, read_timeline
from registry.registry import Registry

PAIRS_CACHED = 8
"""Number of cached comparisons of two states."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChangesView:
    """Data of the changes page.

    Attributes
    ----------
    timeline : Timeline
        All states of the cluster.
    before, after : State
        The two states that are compared.
    """

    timeline: Timeline
    before: State
    after: State


def changes_view(
    registry: Registry, cluster: str, start: datetime | None, end: datetime | None
) -> ChangesView:
    """Return two states of a cluster: one statement.

    Parameters
    ----------
    start, end : datetime or None
        Times of the two states. Default: the last state, and the state before the later one.

    Raises
    ------
    UnknownName
        No such cluster, or no observation of it until then.
    """
    line = read_timeline(registry.database, cluster)
    after = line.states[-1] if end is None else _as_of(line, end)
    number = line.states.index(after)
    before = line.states[max(number - 1, 0)] if start is None else _as_of(line, start)
    return ChangesView(timeline=line, before=before, after=after)


@st.cache_resource(max_entries=PAIRS_CACHED, show_spinner="Comparing the two states ...", hash_funcs=KEYS)
def cached_comparison(registry: Registry, cluster: str, before: State, after: State) -> SnapshotDiff:
    """Return the two states and their differences: one statement, none if they are cached."""
    return read_snapshot_diff(registry.database, cluster, before, after)


def _as_of(line: Timeline, time: datetime) -> State:
    found = line.as_of(time)
    if found is None:
        remedy = f"{line.cluster} was first seen at {line.states[0].at:%F %T} UTC"
        raise UnknownName("state", time.isoformat(), remedy=remedy)
    return found
