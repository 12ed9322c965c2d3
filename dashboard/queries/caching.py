"""Caches of fabrics and placements, shared by all sessions.

Objects whose id is computed from their content never change, and their arrays are read-only: they are cached
without copies.
"""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard import layouts
from dashboard.layouts import Drawing
from mapping import evaluate
from mapping.distances.cost_model import CostModel
from mapping.placement.strategies.in_order import in_order
from registry.errors import DisconnectedAllocation, UnreachablePair
from registry.fabrics.fabrics import Snapshot
from registry.model import Evaluation, Fabric, Floats
from registry.pages.placements import OpenPlacement, open_placement, open_placements
from registry.registry import Registry

CACHED = 16
"""Number of cached fabrics, and of cached placements."""


def cached_placement(registry: Registry, placement: str) -> OpenPlacement:
    """Return a placement with its fabric and profile: one statement, none if it is cached."""
    return _opened(registry, registry.database.uri, placement)


def cached_pair(registry: Registry, first: str, second: str) -> tuple[OpenPlacement, OpenPlacement]:
    """Return two placements with fabrics and profiles: one statement, none if they are cached."""
    uri = registry.database.uri
    found = _both(registry, uri, first, second)
    one, other = (
        _opened(registry, uri, name, each) for name, each in zip((first, second), found, strict=True)
    )
    return one, other


def cached_snapshot(registry: Registry, content: str, found: Snapshot | None = None) -> Snapshot:
    """Return a fabric by the id of its content: one statement, none if it is cached or given as `found`."""
    return _content(registry, registry.database.uri, content, found)


@st.cache_resource(max_entries=CACHED, show_spinner=False)
def drawing(content: str, _fabric: Fabric, _registry: Registry | None = None) -> Drawing:
    """Return positions and cells for drawing a fabric; computed once.

    A free layout is slow to compute: with a registry it is read from there, or stored there once computed.
    """

    def spread(fabric: Fabric) -> tuple[Floats, Floats]:
        if _registry is None:
            return layouts.free(fabric)
        stored = _registry.drawings.read(content, layouts.RULE)
        if stored is not None and len(stored.x) == len(fabric):
            return stored.x, stored.y
        x, y = layouts.free(fabric)
        _registry.drawings.save(content, layouts.RULE, x, y, np.zeros(len(fabric), np.int32))
        return x, y

    return layouts.draw(_fabric, spread)


@st.cache_resource(max_entries=4 * CACHED, show_spinner="Evaluating the ranks in order ...")
def cached_in_order(placement: str, _opened: OpenPlacement) -> Evaluation | None:
    """Return the costs of the same ranks placed in order, or None if profile or routes are missing."""
    stored, profile, fabric = _opened.stored, _opened.profile, _opened.snapshot.fabric
    if profile is None or stored.evaluation is None:
        return None
    if stored.evaluation.routing == "tables" and fabric.tables is None:
        return None
    baseline = in_order(stored.placement.ranks, stored.placement.allocation)
    try:
        return evaluate(
            fabric,
            profile.profile,
            baseline,
            CostModel(routing=stored.evaluation.routing, rails=stored.evaluation.rails),
        )
    except (DisconnectedAllocation, UnreachablePair):
        return None


@st.cache_resource(max_entries=CACHED, show_spinner=False)
def _content(_registry: Registry, uri: str, content: str, _found: Snapshot | None) -> Snapshot:
    return _registry.fabrics.read_content(content) if _found is None else _found


@st.cache_resource(max_entries=CACHED, show_spinner=False)
def _opened(
    _registry: Registry, uri: str, placement: str, _found: OpenPlacement | None = None
) -> OpenPlacement:
    """Read the placement, if it is not given."""
    return open_placement(_registry.database, placement) if _found is None else _found


@st.cache_resource(max_entries=CACHED, show_spinner=False)
def _both(_registry: Registry, uri: str, first: str, second: str) -> tuple[OpenPlacement, OpenPlacement]:
    found = open_placements(_registry.database, [first, second])
    return found[first], found[second]
