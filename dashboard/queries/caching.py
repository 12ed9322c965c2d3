"""What has an id made from its content never changes, so it is kept, for all sessions alike and not copied:
every array of it is read-only.
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

KEPT = 16
"""Fabrics, and placements with theirs, that are kept in memory."""


def open_kept(registry: Registry, placement: str) -> OpenPlacement:
    """A placement with its fabric and profile: one statement, and none when it is asked for again."""
    return _opened(registry, registry.database.uri, placement)


def both_kept(registry: Registry, first: str, second: str) -> tuple[OpenPlacement, OpenPlacement]:
    """Two placements as of `open_kept`: one statement for both, and none when they are asked for again."""
    uri = registry.database.uri
    found = _both(registry, uri, first, second)
    one, other = (
        _opened(registry, uri, name, each) for name, each in zip((first, second), found, strict=True)
    )
    return one, other


def content_kept(registry: Registry, content: str, found: Snapshot | None = None) -> Snapshot:
    """A fabric's content by its id: one statement; none when it is asked for again, or was found already."""
    return _content(registry, registry.database.uri, content, found)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def drawing(content: str, _fabric: Fabric, _registry: Registry | None = None) -> Drawing:
    """How the fabric of a content is drawn: computed once.

    A free layout, which is slow to compute, is read from the registry if one is given, and stored there once.
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


@st.cache_resource(max_entries=4 * KEPT, show_spinner="Evaluating the ranks in order ...")
def evaluated_in_order(placement: str, _opened: OpenPlacement) -> Evaluation | None:
    """What the same ranks cost in order; None where profile or routes are missing."""
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


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _content(_registry: Registry, uri: str, content: str, _found: Snapshot | None) -> Snapshot:
    return _registry.fabrics.read_content(content) if _found is None else _found


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _opened(
    _registry: Registry, uri: str, placement: str, _found: OpenPlacement | None = None
) -> OpenPlacement:
    """Read now, unless it was found already."""
    return open_placement(_registry.database, placement) if _found is None else _found


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _both(_registry: Registry, uri: str, first: str, second: str) -> tuple[OpenPlacement, OpenPlacement]:
    found = open_placements(_registry.database, [first, second])
    return found[first], found[second]
