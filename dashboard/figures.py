"""Figures from small tables: pure functions, one a picture.

Text from the database is data of a chart, never an expression.

Ramps are safe for the colour-blind; the hot end stands out: dark on a light page, bright on a dark one.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
from PIL import Image

from dashboard.tables import IN_ORDER, LOWER_BOUND, PLACED, RANDOM_MEAN, SERIES
from registry import units
from registry.model import Floats

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
"""Colour of each of `dashboard.tables.SERIES`."""


def theme_of(name: str | None) -> str:
    """`LIGHT` or `DARK`, from what the browser says."""
    return DARK if name == DARK else LIGHT


def communication_matrix(matrix: Floats, ranks: int, theme: str) -> alt.LayerChart:
    """Bytes from rank (down) to rank (across) as a picture, logarithmic.

    Parameters
    ----------
    matrix : float64[k, k]
        Of `dashboard.tables.communication`.
    """
    unit = units.unit_for([float(matrix.max(initial=0.0))], units.BYTES)
    sent = matrix[matrix > 0]
    low, high = (float(sent.min()), float(sent.max())) if len(sent) else (1.0, 1.0)
    ramp = list(HEAT[theme][1:])
    corners = pd.DataFrame(
        {"x": [0, ranks], "y": [0, ranks], "bytes": [low / unit.size, max(high, low * 1.001) / unit.size]}
    )
    picture = pd.DataFrame({"url": [_png(matrix, low, high, ramp)], "x": 0, "x2": ranks, "y": 0, "y2": ranks})
    span = alt.Scale(domain=[0, ranks], nice=False)
    down = alt.Scale(domain=[ranks, 0], nice=False)
    image = (
        alt.Chart(picture)
        .mark_image(aspect=False, smooth=False, align="left", baseline="top")
        .encode(
            x=alt.X("x:Q", scale=span, title="to rank", axis=alt.Axis(grid=False)),
            x2="x2",
            y=alt.Y("y:Q", scale=down, title="from rank", axis=alt.Axis(grid=False)),
            y2="y2",
            url="url:N",
        )
    )
    scale = (
        alt.Chart(corners)
        .mark_point(opacity=0)
        .encode(
            x=alt.X("x:Q", scale=span),
            y=alt.Y("y:Q", scale=down),
            color=alt.Color(
                "bytes:Q", title=f"sent ({unit.name})", scale=alt.Scale(type="log", range=ramp, nice=False)
            ),
        )
    )
    side = 430
    return layers(image, scale).properties(title="Who sends to whom", width=side, height=side)


def comparison(values: Mapping[str, float], base: str, theme: str) -> alt.LayerChart:
    """Bars of a placement and what it is compared with, the lower bound drawn across all.

    Parameters
    ----------
    values : mapping of str to float
        Of `dashboard.tables.comparison`.
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


def history_chart(rows: pd.DataFrame, title: str, unit: str, theme: str) -> alt.LayerChart:
    """Placements of one application over time, with what each is compared with.

    Parameters
    ----------
    rows : DataFrame
        Of `dashboard.tables.history_points`, its values in `unit`.
    """
    base = alt.Chart(rows).encode(
        x=alt.X(
            "at:T",
            title="saved at (UTC)",
            scale=alt.Scale(type="utc", padding=16),
            axis=alt.Axis(tickCount=3, format="%d %b %H:%M", labelOverlap=True),
        ),
        y=alt.Y("value:Q", title=unit, scale=alt.Scale(zero=True)),
        color=_series_colour(theme),
        tooltip=[
            "series:N",
            alt.Tooltip("value:Q", format=".4~g", title=unit),
            alt.Tooltip("at:T", format="%Y-%m-%d %H:%M:%S", title="at (UTC)", formatType="time"),
            *(f"{name}:N" for name in ("placement", "profile", "cluster", "job")),
        ],
    )
    mark = {
        name: base.transform_filter(alt.FieldEqualPredicate(field="series", equal=name)) for name in SERIES
    }
    return layers(
        mark[LOWER_BOUND].mark_tick(orient="horizontal", thickness=3, size=22),
        mark[RANDOM_MEAN].mark_point(shape="triangle-up", filled=True, size=70),
        mark[IN_ORDER].mark_point(shape="circle", size=140, strokeWidth=2.5),
        mark[PLACED].mark_point(shape="circle", filled=True, size=70, opacity=1),
    ).properties(title=title, height=230, width="container")


def _png(matrix: Floats, low: float, high: float, ramp: Sequence[str]) -> str:
    """The matrix as a picture in a data address: nothing where no bytes are sent."""
    stops = np.asarray([[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in ramp], float)
    sent = matrix > 0
    spread = np.log(high / low) if high > low else 1.0
    share = np.log(np.where(sent, matrix, low) / low) / spread if high > low else np.ones(matrix.shape)
    spots = np.linspace(0, 1, len(stops))
    channels = [np.interp(share, spots, stops[:, c]) for c in range(3)]
    pixels = np.dstack([*channels, np.where(sent, 255, 0)]).astype(np.uint8)
    data = io.BytesIO()
    Image.fromarray(pixels, "RGBA").save(data, "PNG")
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode("ascii")


def _series_colour(theme: str) -> alt.Color:
    scale = alt.Scale(domain=list(SERIES), range=list(SERIES_COLOURS[theme]))
    return alt.Color("series:N", scale=scale, legend=None)


def layers(*charts: Any) -> alt.LayerChart:
    return alt.LayerChart(layer=list(charts))
