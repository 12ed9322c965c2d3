"""A placement's costs beside what they are compared with, as bars."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import pandas as pd

from dashboard.figures.colours import INK, SERIES_COLOURS
from dashboard.figures.layers import layers
from dashboard.tables.placements import LOWER_BOUND, SERIES
from registry import units


def comparison(values: Mapping[str, float], base: str, theme: str) -> alt.LayerChart:
    """Bars of a placement and what it is compared with, the lower bound drawn across all.

    Parameters
    ----------
    values : mapping of str to float
        Of `dashboard.tables.placements.comparison`.
    base : str
        Their unit, of `registry.units`.
    """
    rows = pd.DataFrame({"series": list(values), "value": list(values.values())})
    rows["shown"] = [units.text(value, base) for value in values.values()]
    top = alt.Scale(domain=[0, max(values.values()) * 1.45 or 1.0], nice=False)
    x = alt.X("value:Q", axis=None, scale=top)
    names = alt.Axis(ticks=False, domain=False, grid=False, labelPadding=6)
    bars = alt.Chart(rows).encode(
        x=x,
        y=alt.Y("series:N", scale=alt.Scale(domain=list(SERIES)), title=None, axis=names),
        tooltip=["series:N", "shown:N"],
    )
    bound = alt.Chart(rows[rows["series"] == LOWER_BOUND]).encode(x=x)
    return layers(
        bars.mark_bar(height={"band": 0.75}).encode(color=_series_colour(theme)),
        bars.mark_text(align="left", dx=5, color=INK[theme]).encode(text="shown:N"),
        bound.mark_rule(strokeDash=[4, 3], strokeWidth=1.5, color=SERIES_COLOURS[theme][-1]),
    ).properties(height=28 * len(SERIES), width="container")


def _series_colour(theme: str) -> alt.Color:
    scale = alt.Scale(domain=list(SERIES), range=list(SERIES_COLOURS[theme]))
    return alt.Color("series:N", scale=scale, legend=None)
