"""Charts of the history page: placements over time, and two placements or clusters side by side."""

from __future__ import annotations

from typing import Any, NamedTuple

import altair as alt
import pandas as pd

from dashboard.figures.style import DARK, INK, LIGHT, layers

PLACED = {LIGHT: "#0b6e8f", DARK: "#4cc3ea"}
FLAGGED = {LIGHT: "#b3262d", DARK: "#fbe45b"}
LIMIT = {LIGHT: "#e0672f", DARK: "#f38b21"}
BOUND = {LIGHT: "#111820", DARK: "#f4f6f8"}
IN_ORDER = {LIGHT: "#7a8290", DARK: "#9aa3b2"}
PAIR = {LIGHT: ("#0b6e8f", "#e0a028"), DARK: ("#4cc3ea", "#f3c04a")}
"""Colours of A and B."""

KEY = (
    "By time of saving (UTC): ● present placement · ○ proposed · ▲ regression · ━ certified lower bound · "
    "╌ control limit · × ranks in order"
)
"""Legend of the marks of `small_multiple`."""

_NUMBERS = ("value", "bound", "limit", "in order")


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


def small_multiple(points: pd.DataFrame, title: str, unit: str, size: float, theme: str) -> Drawing:
    """Return a chart of the placements of one application on one cluster over time.

    Parameters
    ----------
    points : DataFrame
        Result of `dashboard.tables.history.points`.
    title : str
    unit : str
        Name and unit of the values.
    size : float
        Size of that unit in base units.
    """
    rows = points.copy()
    for name in _NUMBERS:
        rows[name] = rows[name] / size

    def layer(field: str, only: str, mark: dict[str, Any], **more: Any) -> dict[str, Any]:
        y = {"field": field, "type": "quantitative", "title": unit, "scale": {"zero": True}}
        return {"transform": [{"filter": only}], "mark": mark, "encoding": {"y": y, **more}}

    marks = _marks(theme)
    layers = [
        layer("limit", _known("limit"), marks["limit"], detail={"field": "group", "type": "nominal"}),
        layer("in order", _known("in order"), marks["in order"]),
        layer("bound", _known("bound"), marks["bound"]),
        layer("value", "datum.role != 'present'", marks["proposed"]),
        layer("value", "datum.role == 'present'", marks["ran"]),
        layer("value", "datum.flagged", marks["flagged"]),
    ]
    encoding = {"x": _OVER_TIME, "tooltip": _tooltip(unit)}
    about = {"title": title, "height": 250, "width": "container"}
    return Drawing(rows, {**about, "encoding": encoding, "layer": layers})


def side_by_side(costs: pd.DataFrame, theme: str) -> alt.LayerChart:
    """Return bars of the costs of placements A and B, each relative to the larger.

    Parameters
    ----------
    costs : DataFrame
        Result of `dashboard.tables.history.relative`.
    """
    order = list(dict.fromkeys(costs["cost"]))
    base = alt.Chart(costs).encode(
        y=alt.Y("cost:N", title=None, sort=order, axis=alt.Axis(ticks=False, domain=False, labelLimit=220)),
        yOffset="which:N",
        x=alt.X("share:Q", axis=None, scale=alt.Scale(domain=[0, 1.3], nice=False)),
        tooltip=["cost:N", "which:N", "shown:N"],
    )
    return layers(
        base.mark_bar().encode(color=_pair("which", ["A", "B"], theme)),
        base.mark_text(align="left", dx=5, color=INK[theme]).encode(text="shown:N"),
    ).properties(title="Costs of A and B, relative to the larger", height=58 * len(order), width="container")


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
    span = base.mark_line(color=INK[theme], opacity=0.4).encode(detail="application:N")
    dots = base.mark_point(filled=True, size=110, opacity=1).encode(
        color=_pair("cluster", list(clusters), theme, legend=True),
        shape=alt.Shape("cluster:N", scale=alt.Scale(domain=list(clusters), range=["circle", "diamond"])),
        tooltip=[
            "application:N",
            "cluster:N",
            "placements:Q",
            alt.Tooltip("over bound:Q", format=".3~f", title="over bound (times)"),
            alt.Tooltip("over in order:Q", format=".3~f", title="over in order (times)"),
        ],
    )
    height = 30 * max(rows["application"].nunique(), 2)
    title = "Distance from best, by application"
    return layers(span, dots).properties(title=title, height=height, width="container")


_OVER_TIME = {
    "field": "at",
    "type": "temporal",
    "title": None,
    "scale": {"type": "utc", "padding": 14},
    "axis": {"tickCount": 3, "format": "%d %b %H:%M", "labelOverlap": True},
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
        "limit": {
            "type": "line",
            "interpolate": "step-after",
            "strokeDash": [5, 4],
            "strokeWidth": 1.2,
            "color": LIMIT[theme],
        },
        "in order": point
        | {"shape": "cross", "angle": 45, "size": 28, "opacity": 0.6, "color": IN_ORDER[theme]},
        "bound": {"type": "tick", "orient": "horizontal", "thickness": 2, "size": 12, "color": BOUND[theme]},
        "proposed": {"type": "point", "filled": False, "size": 36, "strokeWidth": 1.5, "color": placed},
        "ran": point | {"size": 40, "opacity": 1, "color": placed},
        "flagged": point | {"shape": "triangle-up", "size": 130, "opacity": 1, "color": FLAGGED[theme]},
    }


def _known(column: str) -> str:
    """Return a filter for rows with a number in a column; one table serves all layers."""
    return f"isValid(datum['{column}']) && isFinite(datum['{column}'])"


def _pair(field: str, domain: list[str], theme: str, *, legend: bool = False) -> alt.Color:
    scale = alt.Scale(domain=domain, range=list(PAIR[theme]))
    return alt.Color(
        f"{field}:N", scale=scale, legend=alt.Legend(orient="top", title=None) if legend else None
    )
