"""What the page of simulated runs shows: all runs with the placements that they are of, and some in full."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.queries.caching import content_kept
from dashboard.queries.history import evaluated, history
from dashboard.state.viewer import Viewer
from dashboard.tables.simulated import SimulatedRuns
from registry.jobs.jobs import jobs_of_user
from registry.model.placement_series import PlacementSeries
from registry.pages.simulations import open_simulations
from registry.records.simulations import StoredSimulation
from registry.registry import Registry

LISTS = 2
"""Histories of placements that are kept in memory."""
WHOLE = 8
"""Choices of runs with all their arrays that are kept in memory."""


def simulated(registry: Registry, viewer: Viewer, placement: str | None = None) -> SimulatedRuns:
    """All runs that may be seen: two statements, one where nothing is new; one more for one user's.

    Parameters
    ----------
    placement : str, optional
        One that is asked for, which may be newer than all that were simulated.
    """
    runs = registry.simulations.list()
    if runs:
        mine = None if viewer.only is None else jobs_of_user(registry.database, viewer.only)
        wanted = frozenset({*(run.placement for run in runs), *([placement] if placement else [])})
        series = _series(registry, registry.database.uri, wanted, mine)
    else:
        series = history(registry, viewer).series
    row_of = {identity: row for row, identity in enumerate(series.id)}
    if viewer.only is not None:
        runs = tuple(run for run in runs if run.placement in row_of)
    return SimulatedRuns(runs=runs, series=series, row_of=row_of)


def whole_runs(registry: Registry, runs: Sequence[str]) -> tuple[StoredSimulation, ...]:
    """Runs with all their arrays, their fabrics kept: one statement, none when they are asked for again."""
    return _whole(registry, registry.database.uri, tuple(runs))


@st.cache_resource(max_entries=LISTS, show_spinner=False)
def _series(
    _registry: Registry, uri: str, wanted: frozenset[str], mine: frozenset[str] | None
) -> PlacementSeries:
    """Evaluated placements, among them `wanted`: a placement never changes."""
    return evaluated(_registry.placements.series(), mine)


@st.cache_resource(max_entries=WHOLE, show_spinner=False)
def _whole(_registry: Registry, uri: str, runs: tuple[str, ...]) -> tuple[StoredSimulation, ...]:
    found = open_simulations(_registry.database, runs)
    for one in found.values():
        content_kept(_registry, one.snapshot.id, one.snapshot)
    return tuple(found[run].stored for run in runs)
