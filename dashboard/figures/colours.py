"""Colours of all figures.

Ramps are safe for the colour-blind; the hot end stands out: dark on a light page, bright on a dark one.
"""

from __future__ import annotations

LIGHT, DARK = "light", "dark"

HEAT = {
    LIGHT: ("#d3d8e0", "#f9d48b", "#f3a04a", "#e0672f", "#b3262d", "#6a0a33"),
    DARK: ("#454b57", "#5a2a6e", "#93305f", "#cf4446", "#f38b21", "#fbe45b"),
}
INK = {LIGHT: "#3a414d", DARK: "#c3c9d3"}
SERIES_COLOURS = {
    LIGHT: ("#7a8290", "#b3b9c4", "#0b6e8f", "#111820"),
    DARK: ("#9aa3b2", "#5f6775", "#4cc3ea", "#f4f6f8"),
}
"""Colour of each of `dashboard.tables.placements.SERIES`."""


def theme_of(name: str | None) -> str:
    """`LIGHT` or `DARK`, from what the browser says."""
    return DARK if name == DARK else LIGHT
