"""Colours that all figures share, and layered charts.

The colour ramps are safe for colour-blind readers. High load stands out: dark on a light page, bright on a
dark one.
"""

from __future__ import annotations

from typing import Any

import altair as alt

LIGHT, DARK = "light", "dark"


@alt.theme.register("almanac", enable=True)
def _theme() -> alt.theme.ThemeConfig:
    """Describe a chart as a whole to screen readers, not each of its marks, of which some have no text."""
    return {"config": {"mark": {"aria": False}}}


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
    """Return `LIGHT` or `DARK`, by the theme name of the browser."""
    return DARK if name == DARK else LIGHT


def layers(*charts: Any) -> alt.LayerChart:
    """Return one chart with the given layers, the last on top."""
    return alt.LayerChart(layer=list(charts))
