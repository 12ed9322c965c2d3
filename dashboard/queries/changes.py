"""What the changes page shows: two states of a cluster's wiring, and when it became another."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from registry.errors import UnknownName
from registry.pages.changes import SnapshotDiff, State, Timeline, read_snapshot_diff, read_timeline
from registry.registry import Registry

PAIRS = 8
"""Pairs of states that are kept in memory."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChangesView:
    """What the changes page shows.

    Attributes
    ----------
    timeline : Timeline
        All states of the cluster.
    before, after : State
        The two that are compared.
    """

    timeline: Timeline
    before: State
    after: State


def changes_view(
    registry: Registry, cluster: str, start: datetime | None, end: datetime | None
) -> ChangesView:
    """Two states of a cluster: one statement.

    Parameters
    ----------
    start, end : datetime or None
        The states as of these times; unless told, the last one and the one before the later state.

    Raises
    ------
    UnknownName
        No such cluster, or nothing was seen of it until then.
    """
    line = read_timeline(registry.database, cluster)
    after = line.states[-1] if end is None else _as_of(line, end)
    number = line.states.index(after)
    before = line.states[max(number - 1, 0)] if start is None else _as_of(line, start)
    return ChangesView(timeline=line, before=before, after=after)


def between_kept(registry: Registry, view: ChangesView) -> SnapshotDiff:
    """The two states with what differs: one statement, and none when it is asked for again."""
    return _between(registry, registry.database.uri, view.timeline.cluster, view.before, view.after)


def _as_of(line: Timeline, at: datetime) -> State:
    found = line.as_of(at)
    if found is None:
        first = line.states[0].at
        raise UnknownName(
            "state", at.isoformat(), remedy=f"{line.cluster} was first seen at {first:%F %T} UTC"
        )
    return found


@st.cache_resource(max_entries=PAIRS, show_spinner="Comparing the two states ...")
def _between(_registry: Registry, uri: str, cluster: str, before: State, after: State) -> SnapshotDiff:
    return read_snapshot_diff(_registry.database, cluster, before, after)
