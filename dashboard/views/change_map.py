"""Part of the changes page: what changed, on the map."""

from __future__ import annotations

import streamlit as st

from dashboard.components.fabric_map import fabric_map
from dashboard.figures import colouring
from dashboard.figures.colours import DARK, LIGHT
from dashboard.figures.link_map import LINES_LIMIT, link_map
from dashboard.layouts import Drawing, draw
from dashboard.tables.changes import GONE, KINDS, UNCHANGED, Overlay, overlay
from dashboard.widgets.choices import toggle
from registry.pages.changes import SnapshotDiff

COLOURS = {
    LIGHT: ("#dfe3e8", "#8cc5e3", "#f0b35c", "#0b6e8f", "#b3262d"),
    DARK: ("#3a4048", "#31618c", "#b0762f", "#4cc3ea", "#ff8a5c"),
}
KEPT = 4
"""Pairs of states whose map is kept in memory."""
WHOLE, CHANGED = "whole", "changed"


def draw_changes(between: SnapshotDiff) -> None:
    """Two states of a wiring at once: links that are new, gone, faster or slower stand out."""
    found, drawing = _overlay(between.before.id, between.after.id, between)
    if not found.differs:
        st.caption("No cable differs between the two.")
        return
    few = len(drawing.cables) <= LINES_LIMIT
    shapes = {WHOLE: "The whole fabric", CHANGED: "Only what changed, as lines"}
    shape = toggle("Map", "map", shapes, default=WHOLE)
    changed = found.kind != UNCHANGED
    title = "Cables that changed from the earlier state to the later one"
    colours = colouring.kinds(title, "Cables", found.kind, KINDS, COLOURS, gone=KINDS[GONE - 1 :])
    picture = link_map(
        found.fabric,
        drawing,
        colours,
        lines=few or shape == CHANGED,
        only=changed if shape == CHANGED else None,
        height=460,
    )
    fabric_map(picture, key="changes map")
    if (found.kind == GONE).any():
        st.caption("Cables that are gone are drawn where they were.")


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _overlay(before: str, after: str, _between: SnapshotDiff) -> tuple[Overlay, Drawing]:
    found = overlay(_between.before.fabric, _between.after.fabric, _between.changes)
    return found, draw(found.fabric)
