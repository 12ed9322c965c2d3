"""Charts of the page Trends: placements over time, and two placements or clusters compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import pandas as pd

from dashboard.figures.style import DARK, INK, LIGHT, layers

PLACED = {LIGHT: "#0b6e8f", DARK: "#4cc3ea"}
FLAGGED = {LIGHT: "#b3262d", DARK: "#fbe45b"}
LIMIT = {LIGHT: "#e0672f", DARK: "#f38b21"}
BOUND = {LIGHT: "#111820", DARK: "#f4f6f8"}
IN_ORDER = {LIGHT: "#7a8290", DARK: "#9aa3b2"}
PAIR = {LIGHT: ("#0b6e8f", "#e0a028"), DARK: ("#4cc3ea", "#f3c04a")}
"""Colours of A and B."""

KEY = "By time of saving (UTC): ● present placement · ○ proposed · ▲ regression · ━ certified lower bound."
"""Legend of the marks of `sparkline`."""

_NUMBERS = ("value", "bound", "centre", "limit", "in order")
HEIGHT = 118
"""Height of a sparkline, in pixels."""
DAY = pd.Timedelta(days=1)
"""Least space beside the first and the last placement."""


class Drawing(NamedTuple):
    """A table and its chart, for ``st.vega_lite_chart``.

    Attributes
    ----------
    rows : DataFrame
    spec : dict
        Specification of Vega-Lite 6, without data. It is written out because a page has many such charts and
        Altair needs a quarter of a second to validate one; the tests validate it.
    """

    rows: pd.DataFrame
    spec: dict[str, Any]


def sparkline(points: pd.DataFrame, title: str, unit: str, size: float, theme: str) -> Drawing:
    """Return a small chart of the placements of one application on one cluster over time.

    Parameters
    ----------
    points : DataFrame
        Result of `dashboard.tables.history.points`.
    title : str
        Description for screen readers.
    unit : str
        Name and unit of the values.
    size : float
        Size of that unit in base units.
    """
    rows = points.copy()
    for name in _NUMBERS:
        rows[name] = rows[name] / size
    marks, present = _marks(theme), rows["role"] == "present"
    top_value = float(np.nanmax(rows[["value", "bound", "limit"]].to_numpy(float), initial=0.0))

    def layer(field: str, only: str, mark: dict[str, Any], **more: Any) -> dict[str, Any]:
        axis = {"tickCount": 3, "title": None, "grid": False}
        y = {"field": field, "type": "quantitative", "scale": {"domain": [0, 1.05 * top_value]}, "axis": axis}
        return {"transform": [{"filter": only}], "mark": mark, "encoding": {"y": y, **more}}

    group = {"field": "group", "type": "nominal"}
    top = {"y2": {"field": "centre"}, "detail": group}
    drawn = [
        ("limit", layer("limit", _known("limit"), marks["band"], **top)),
        ("value", layer("value", "datum.role == 'present'", marks["line"], detail=group), present),
        ("bound", layer("bound", _known("bound"), marks["bound"])),
        ("value", layer("value", "datum.role != 'present'", marks["proposed"]), ~present),
        ("value", layer("value", "datum.role == 'present'", marks["ran"]), present),
        ("value", layer("value", "datum.flagged", marks["flagged"]), rows["flagged"]),
    ]
    encoding = {"x": _over_time(rows["at"]), "tooltip": _tooltip(unit)}
    about = {"description": f"{title}: {unit} over time", "height": HEIGHT, "width": "container"}
    return Drawing(rows, {**about, "encoding": encoding, "layer": _with_data(rows, drawn)})


def dumbbell(costs: pd.DataFrame, theme: str) -> alt.LayerChart:
    """Return the costs of placements A and B, each relative to the larger, joined by a line.

    Parameters
    ----------
    costs : DataFrame
        Result of `dashboard.tables.history.relative`.
    """
    order = list(dict.fromkeys(costs["cost"]))
    texts = costs.groupby("cost", sort=False)["shown"].agg(" → ".join).rename("both").reset_index()
    y = alt.Y("cost:N", title=None, sort=order, axis=None)
    axis = alt.Axis(format="%", tickCount=3, grid=False)
    x = alt.X("share:Q", title="share of the larger", scale=alt.Scale(domain=[0, 1], nice=False), axis=axis)
    base = alt.Chart(costs).encode(
        y=y, x=x, tooltip=[alt.Tooltip(f"{name}:N") for name in ("cost", "which", "shown")]
    )
    span = base.mark_line(color=INK[theme], opacity=0.4, strokeWidth=3).encode(detail=alt.Detail("cost:N"))
    legend = alt.Legend(orient="top", title=None)
    shapes = alt.Scale(domain=["A", "B"], range=["circle", "diamond"])
    shape = alt.Shape("which:N", scale=shapes, legend=legend)
    dots = base.mark_point(filled=True, size=130, opacity=1).encode(
        color=_pair("which", ["A", "B"], theme, legend=True), shape=shape
    )
    names = alt.Chart(texts.assign(text=texts["cost"] + ": " + texts["both"])).mark_text(
        align="left", baseline="bottom", dy=-9, color=INK[theme]
    )
    labels = names.encode(y=y, x=alt.XDatum(0), text=alt.Text("text:N"))
    about = "Costs of placements A and B, each relative to the larger of the two."
    height = 52 * len(order) + 60
    return layers(span, dots, labels).properties(height=height, width="container", description=about)


def two_clusters(rows: pd.DataFrame, clusters: tuple[str, str], theme: str) -> alt.LayerChart:
    """Return a chart of applications on two clusters by the distance of their placements from the bound.

    Parameters
    ----------
    rows : DataFrame
        Result of `dashboard.tables.history.applications_table`.
    """
    y = alt.Y("application:N", title=None, axis=alt.Axis(ticks=False, labelLimit=220))
    x = alt.X("over bound:Q", title="worst link / lower bound (median)", scale=alt.Scale(zero=False))
    base = alt.Chart(rows[rows["over bound"].notna()]).encode(x=x, y=y)
    span = base.mark_line(color=INK[theme], opacity=0.4).encode(detail=alt.Detail("application:N"))
    dots = base.mark_point(filled=True, size=110, opacity=1).encode(
        color=_pair("cluster", list(clusters), theme, legend=True),
        shape=alt.Shape("cluster:N", scale=alt.Scale(domain=list(clusters), range=["circle", "diamond"])),
        tooltip=[
            alt.Tooltip("application:N"),
            alt.Tooltip("cluster:N"),
            alt.Tooltip("placements:Q"),
            alt.Tooltip("over bound:Q", format=".3~f", title="over bound (times)"),
            alt.Tooltip("over in order:Q", format=".3~f", title="over in order (times)"),
        ],
    )
    height = 30 * max(rows["application"].nunique(), 2)
    title = "Distance from best, by application"
    return layers(span, dots).properties(title=title, height=height, width="container")


def _over_time(times: pd.Series) -> dict[str, Any]:
    """Return the axis of times, with its ends: Vega would warn if it had none before the data are there."""
    first, last = times.min(), times.max()
    space = max((last - first) / 20, DAY)
    ends = [time.strftime("%Y-%m-%dT%H:%M:%SZ") for time in (first - space, last + space)]
    return {
        "field": "at",
        "type": "temporal",
        "title": None,
        "scale": {"type": "utc", "domain": ends},
        "axis": {"tickCount": 3, "format": "%d %b", "labelOverlap": True, "grid": False},
    }


def _tooltip(unit: str) -> list[dict[str, Any]]:
    """Return the fields that are shown for the mark under the pointer."""
    numbers = {"value": unit, "bound": "lower bound", "limit": "control limit"}
    at = {"field": "at", "type": "temporal", "title": "time (UTC)", "format": "%Y-%m-%d %H:%M:%S"}
    return [
        *(
            {"field": name, "type": "quantitative", "title": title, "format": ".4~g"}
            for name, title in numbers.items()
        ),
        at | {"formatType": "time"},
        *({"field": name, "type": "nominal"} for name in ("placement", "profile", "job", "role", "strategy")),
    ]


def _marks(theme: str) -> dict[str, dict[str, Any]]:
    """Return the mark of each kind of value."""
    placed, point = PLACED[theme], {"type": "point", "filled": True}
    return {
        "band": {
            "type": "area",
            "interpolate": "step-after",
            "color": LIMIT[theme],
            "fillOpacity": 0.35,
            "line": {"color": LIMIT[theme], "strokeDash": [4, 3], "strokeWidth": 1.2},
        },
        "line": {"type": "line", "strokeWidth": 1, "opacity": 0.5, "color": placed},
        "bound": {"type": "tick", "orient": "horizontal", "thickness": 1.5, "size": 8, "color": BOUND[theme]},
        "proposed": {"type": "point", "filled": False, "size": 24, "strokeWidth": 1.2, "color": placed},
        "ran": point | {"size": 22, "opacity": 1, "color": placed},
        "flagged": point | {"shape": "triangle-up", "size": 90, "opacity": 1, "color": FLAGGED[theme]},
    }


def _with_data(rows: pd.DataFrame, drawn: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Return the layers that have rows: Vega warns of layers without.

    Parameters
    ----------
    drawn : sequence of (str, dict) or (str, dict, bool[n])
        Column that a layer needs, the layer, and the rows that it draws (default: all).
    """
    return [
        layer
        for column, layer, *only in drawn
        if bool((np.isfinite(rows[column]) & (only[0] if only else True)).any())
    ]


def _known(column: str) -> str:
    """Return a filter for rows with a number in a column; one table serves all layers."""
    return f"isValid(datum['{column}']) && isFinite(datum['{column}'])"


def _pair(field: str, domain: list[str], theme: str, *, legend: bool = False) -> alt.Color:
    scale = alt.Scale(domain=domain, range=list(PAIR[theme]))
    return alt.Color(
        f"{field}:N", scale=scale, legend=alt.Legend(orient="top", title=None) if legend else None
    )
