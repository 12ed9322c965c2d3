"""What the page of simulated runs shows: all runs with the placements that they are of, and some in full."""

from __future__ import annotations

import streamlit as st

from dashboard.queries.history import history
from dashboard.tables.simulated import SimulatedRuns
from dashboard.viewer import Viewer
from registry.registry import Registry
from registry.simulations.records import SimulationInfo, StoredSimulation

LISTS = 2
"""Lists of runs that are kept in memory."""
WHOLE = 32
"""Runs with all their arrays that are kept in memory."""


def simulated(registry: Registry, viewer: Viewer) -> SimulatedRuns:
    """All runs that may be seen: three statements, one where nothing is new; one more for one user's."""
    placed = history(registry, viewer)
    versions = tuple((name, info.version) for name, info in placed.clusters.items())
    runs = _listed(registry, registry.database.uri, versions)
    row_of = {identity: row for row, identity in enumerate(placed.series.id)}
    if viewer.only is not None:
        runs = tuple(run for run in runs if run.placement in row_of)
    return SimulatedRuns(runs=runs, series=placed.series, row_of=row_of)


def whole_run(registry: Registry, run: str) -> StoredSimulation:
    """A run with all its arrays: one statement, and none when it is asked for again."""
    return _whole(registry, registry.database.uri, run)


@st.cache_resource(max_entries=LISTS, show_spinner=False)
def _listed(
    _registry: Registry, uri: str, versions: tuple[tuple[str, int], ...]
) -> tuple[SimulationInfo, ...]:
    return _registry.simulations.list()


@st.cache_resource(max_entries=WHOLE, show_spinner=False)
def _whole(_registry: Registry, uri: str, run: str) -> StoredSimulation:
    return _registry.simulations.read(run)
