"""Data of the tab Simulations: all runs with their placements, and some runs in full."""

from __future__ import annotations

import streamlit as st

from dashboard.queries.caching import KEYS, SHARED, cached_jobs_of_user, cached_snapshot
from dashboard.queries.history import evaluated, history
from dashboard.state.viewer import Viewer
from dashboard.tables.simulated import SimulatedRuns
from registry.model.placement import PlacementSeries
from registry.pages.simulations import open_simulations
from registry.registry import Registry
from registry.store.simulations import SimulationInfo, StoredSimulation

LISTS = 2
"""Number of cached histories of placements."""
WHOLE = 8
"""Number of cached sets of runs with all their arrays."""


def simulated(registry: Registry, viewer: Viewer, placement: str | None = None) -> SimulatedRuns:
    """Return all visible runs: two statements, none if nothing is new; one more if limited to a user.

    Parameters
    ----------
    placement : str, optional
        Requested placement, which may be newer than every simulated one.
    """
    runs = _runs(registry)
    if runs:
        mine = None if viewer.only is None else cached_jobs_of_user(registry, viewer.only)
        wanted = frozenset({*(run.placement for run in runs), *([placement] if placement else [])})
        series = _series(registry, wanted, mine)
    else:
        series = history(registry, viewer).series
    row_of = {identity: row for row, identity in enumerate(series.id)}
    if viewer.only is not None:
        runs = tuple(run for run in runs if run.placement in row_of)
    return SimulatedRuns(runs=runs, series=series, row_of=row_of)


@st.cache_resource(ttl=SHARED, show_spinner=False, hash_funcs=KEYS)
def _runs(registry: Registry) -> tuple[SimulationInfo, ...]:
    """Return all runs without their arrays: one statement for all viewers in `SHARED`."""
    return registry.simulations.list()


@st.cache_resource(max_entries=WHOLE, show_spinner=False, hash_funcs=KEYS)
def whole_runs(registry: Registry, runs: tuple[str, ...]) -> tuple[StoredSimulation, ...]:
    """Return runs with all their arrays, and cache their fabrics: one statement, none if they are cached."""
    found = open_simulations(registry.database, runs)
    for one in found.values():
        cached_snapshot(registry, one.snapshot.id, one.snapshot)
    return tuple(found[run].stored for run in runs)


@st.cache_resource(max_entries=LISTS, show_spinner=False, hash_funcs=KEYS)
def _series(registry: Registry, wanted: frozenset[str], mine: frozenset[str] | None) -> PlacementSeries:
    """Return the evaluated placements, among them `wanted`; a placement never changes."""
    return evaluated(registry.placements.series(), mine)
