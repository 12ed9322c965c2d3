"""Caches of fabrics and placements, shared by all sessions.

Objects whose id is computed from their content never change, and their arrays are read-only: they are cached
without copies.

The clusters of the registry, which every page offers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import streamlit as st

from dashboard.map.layouts import RULE, Collapsed, Drawing, collapse, draw_fabric, free
from mapping import evaluate
from mapping.distances.cost_model import CostModel
from mapping.placement.methods.baselines import in_order
from mapping.questions.live import Live
from registry.errors import DatabaseError, DisconnectedAllocation, UnreachablePair
from registry.model import Evaluation, Fabric, Floats
from registry.registry import Registry
from registry.store.fabrics import ClusterInfo, Snapshot
from registry.store.jobs import jobs_of_user
from registry.store.placements import OpenPlacement, open_placement, open_placements

CACHED = 16
"""Number of cached fabrics, and of cached placements."""
SHARED = timedelta(seconds=25)
"""How long all viewers share what a page reads: less than the time between two refreshes of a page."""
KEYS: dict[str | type[Any], Callable[[Any], Any]] = {
    Registry: lambda registry: registry.database.uri,
    ClusterInfo: lambda cluster: (cluster.name, cluster.version),
    Live: lambda live: live.running.at.isoformat(),
}
"""What identifies an argument of a cached function; saving something about a cluster changes its version."""


@st.cache_resource(max_entries=CACHED, show_spinner=False, hash_funcs=KEYS)
def cached_placement(
    registry: Registry, placement: str, _found: OpenPlacement | None = None
) -> OpenPlacement:
    """Return a placement with its fabric and profile: one statement, none if it is cached or given."""
    return open_placement(registry.database, placement) if _found is None else _found


def cached_pair(registry: Registry, first: str, second: str) -> tuple[OpenPlacement, OpenPlacement]:
    """Return two placements with fabrics and profiles: one statement, none if they are cached."""
    both = _both(registry, first, second)
    return cached_placement(registry, first, both[0]), cached_placement(registry, second, both[1])


@st.cache_resource(max_entries=CACHED, show_spinner=False, hash_funcs=KEYS)
def _both(registry: Registry, first: str, second: str) -> tuple[OpenPlacement, OpenPlacement]:
    found = open_placements(registry.database, [first, second])
    return found[first], found[second]


@st.cache_resource(max_entries=CACHED, show_spinner=False, hash_funcs=KEYS)
def cached_snapshot(registry: Registry, snapshot_id: str, _found: Snapshot | None = None) -> Snapshot:
    """Return a snapshot by its id: one statement, none if it is cached or given."""
    return registry.fabrics.read_content(snapshot_id) if _found is None else _found


@st.cache_resource(max_entries=CACHED, ttl=SHARED, show_spinner=False, hash_funcs=KEYS)
def cached_jobs_of_user(registry: Registry, user: str) -> frozenset[str]:
    """Return the keys of a user's jobs: one statement for all viewers in `SHARED`."""
    return jobs_of_user(registry.database, user)


@st.cache_resource(max_entries=CACHED, show_spinner=False)
def drawing(snapshot_id: str, _fabric: Fabric, _registry: Registry | None = None) -> Drawing:
    """Return positions and cells for drawing a fabric; computed once.

    A free layout is slow to compute: with a registry it is read from there, or stored there once computed.
    """

    def spread(fabric: Fabric) -> tuple[Floats, Floats]:
        if _registry is None:
            return free(fabric)
        stored = _registry.drawings.read(snapshot_id, RULE)
        if stored is not None and len(stored.x) == len(fabric):
            return stored.x, stored.y
        x, y = free(fabric)
        with suppress(DatabaseError):  # the database may allow pages to read only
            _registry.drawings.save(snapshot_id, RULE, x, y, np.zeros(len(fabric), np.int32))
        return x, y

    return draw_fabric(_fabric, spread)


@st.cache_resource(max_entries=CACHED, show_spinner=False)
def cached_groups(snapshot_id: str, _fabric: Fabric, _drawing: Drawing, most: int) -> Collapsed | None:
    """Return the racks, pods or groups in which a fabric has at most `most` lines, or None."""
    return collapse(_fabric, _drawing.layout, _drawing.cables, most)


@st.cache_resource(max_entries=4 * CACHED, show_spinner="Evaluating the ranks in order ...")
def cached_in_order(placement_id: str, _opened: OpenPlacement) -> Evaluation | None:
    """Return the costs of the same ranks placed in order, or None if profile or routes are missing."""
    placement, evaluation = _opened.stored.placement, _opened.stored.evaluation
    profile, fabric = _opened.profile, _opened.snapshot.fabric
    if profile is None or evaluation is None or (evaluation.routing == "tables" and fabric.tables is None):
        return None
    baseline = in_order(placement.ranks, placement.allocation)
    costs = CostModel(routing=evaluation.routing, rails=evaluation.rails)
    try:
        return evaluate(fabric, profile.profile, baseline, costs=costs)
    except (DisconnectedAllocation, UnreachablePair):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """All clusters by name, and when they were read."""

    infos: Mapping[str, ClusterInfo]
    read_at: datetime


@st.cache_resource(ttl=SHARED, show_spinner=False, hash_funcs=KEYS)
def cached_clusters(registry: Registry) -> Clusters:
    """Return all clusters: one statement for all viewers in `SHARED`."""
    read_at = datetime.now(UTC)
    return Clusters(infos={info.name: info for info in registry.fabrics.clusters()}, read_at=read_at)
