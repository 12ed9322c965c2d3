"""The links of a fabric as a figure: lines between machines, or tiers in which one cell is one cable."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from dashboard.figures import DARK, HEAT, INK, LIGHT, layers
from dashboard.layouts import TREE, Drawing, Layout
from dashboard.link_tables import Classes, bundles, capacity_classes, link_text, load_classes, matrix_cells
from registry.model import HOST, SWITCH, Bools, Fabric, Floats, Longs

CAPACITY = {
    LIGHT: ("#c6d3e3", "#9dbbdb", "#6f9fce", "#437fb9", "#1f5c99", "#0a3566"),
    DARK: ("#33455c", "#3b628c", "#4b82b8", "#6ca4d6", "#9cc7ec", "#d8ecfd"),
}
MARK = {LIGHT: "#0077d6", DARK: "#3fd0ff"}
PAPER = {LIGHT: "#ffffff", DARK: "#171614"}

LINES_LIMIT = 2000
"""Most cables that are shown as lines; more are shown as tiers."""
LINES_HEIGHT = 520
LINES_KEY = "■ switches · ● hosts · one line for all cables of a pair, in the colour of the highest"
MATRIX_WIDTH, MATRIX_HEIGHT = 860, 420
"""Size that a panel of the tier matrix is made to fill, in pixels."""
CELL = (2.0, 16.0)
"""Smallest and largest side of a cell, in pixels."""
NAMED_ROW = 10.0
"""Lowest row of cells that has room for a name, in pixels."""

Across = Callable[[str], alt.X]
"""Encoding of a field that runs from left to right."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Paint:
    """How values are coloured.

    Attributes
    ----------
    classes : Classes
        With an entry for each row of the table that is drawn.
    colours : tuple of str
        One for each label.
    legend, theme : str
    """

    classes: Classes
    colours: tuple[str, ...]
    legend: str
    theme: str

    def colour(self) -> alt.Color:
        """The encoding, with a legend that shows the most salient step first."""
        labels = list(self.classes.labels)
        return alt.Color(
            "class:N",
            scale=alt.Scale(domain=labels, range=list(self.colours)),
            legend=alt.Legend(
                title=self.legend, values=labels[::-1], orient="bottom", columns=3, labelLimit=320
            ),
        )

    def label(self) -> list[str]:
        """Label of each row."""
        return [self.classes.labels[step] for step in self.classes.index]


def paint(classes: Classes, legend: str, ramps: Mapping[str, tuple[str, ...]], theme: str) -> Paint:
    """Colours of a ramp (`HEAT` or `CAPACITY`) for the classes, spread over it evenly."""
    ramp, count = ramps[theme], len(classes.labels)
    spots = (
        np.linspace(0, len(ramp) - 1, count).round().astype(int) if count > 1 else [0 if classes.idle else 3]
    )
    return Paint(classes=classes, colours=tuple(ramp[spot] for spot in spots), legend=legend, theme=theme)


def links_figure(
    fabric: Fabric,
    drawing: Drawing,
    title: str,
    theme: str,
    *,
    seconds: Floats | None,
    lines: bool,
    worst: float | None = None,
    only: Bools | None = None,
) -> alt.LayerChart | alt.VConcatChart:
    """The links of a fabric by congestion, the worst pointed out, or by capacity.

    Parameters
    ----------
    seconds : float64[m] or None
        Of each row of ``fabric.links``; None: capacity is shown.
    lines : bool
        Lines between machines; else tiers with one cell a cable.
    worst : float, optional
        Top of the scale; the largest of the seconds by default.
    only : bool[m], optional
        Links that are drawn, with their machines and the other direction; all by default.
    """
    values = fabric.links.capacity if seconds is None else seconds
    marked = None if seconds is None or not seconds.any() else int(np.argmax(seconds))
    cables, shown = drawing.cables, None
    if only is not None:
        drawn = np.append(only, False)[cables[["there", "back"]].to_numpy()]  # -1 is no link
        cables = cables[drawn.any(axis=1)]
        shown = np.zeros(len(fabric), bool)
        shown[cables[["a", "b"]].to_numpy().ravel()] = True
    table = bundles(fabric, cables, values) if lines else matrix_cells(fabric, drawing.layout, cables, values)
    given = table["value"].to_numpy()
    what = "lines" if lines else "cables"
    if seconds is None:
        colours = paint(capacity_classes(given, what), "Data rate, each direction", CAPACITY, theme)
    else:
        colours = paint(load_classes(given, what, worst), "Bytes over capacity", HEAT, theme)
    if lines:
        return fabric_lines(fabric, drawing.layout, table, colours, title, marked=marked, shown=shown)
    return fabric_matrix(fabric, table, colours, title, marked=marked)


def fabric_lines(
    fabric: Fabric,
    layout: Layout,
    lines: pd.DataFrame,
    colours: Paint,
    title: str,
    *,
    marked: int | None = None,
    shown: Bools | None = None,
) -> alt.LayerChart:
    """Machines and the lines between them.

    Parameters
    ----------
    lines : DataFrame
        Of `dashboard.tables.bundles`.
    marked : int, optional
        Row of ``fabric.links`` that is pointed out.
    shown : bool[n], optional
        Vertices that are drawn; all by default.
    """
    spread = layout if shown is None else _stretched(layout, shown)
    visible = np.ones(len(fabric), bool) if shown is None else shown
    margin = 0.02 if layout.form != TREE else 0.13 if shown is None else 0.26
    across = partial(_across, margin)
    rows = _line_rows(fabric, spread, lines, colours, marked)
    last = max(len(colours.colours) - 1, 1)
    width = alt.StrokeWidth("step:Q", scale=alt.Scale(domain=[0, last], range=[0.7, 3.0]), legend=None)
    rule = (
        alt.Chart(rows)
        .mark_rule()
        .encode(
            x=across("x"),
            y=_upwards("y"),
            x2="x2",
            y2="y2",
            color=colours.colour(),
            strokeWidth=width,
            tooltip=["link:N", "class:N", "cables:Q"],
        )
    )
    charts = [
        rule,
        *_worst(rows[rows["marked"]], across, colours.theme),
        *_machines(fabric, spread, visible, across, colours.theme),
        *_tier_names(spread, visible, across, -margin, colours.theme),
    ]
    heading = alt.TitleParams(title, subtitle=LINES_KEY, subtitleColor=INK[colours.theme])
    return layers(*charts).properties(title=heading, height=LINES_HEIGHT, width="container").interactive()


def fabric_matrix(
    fabric: Fabric, cells: pd.DataFrame, colours: Paint, title: str, *, marked: int | None = None
) -> alt.VConcatChart:
    """Tiers as matrices in which one cell is one cable.

    Parameters
    ----------
    cells : DataFrame
        Of `dashboard.tables.matrix_cells`.
    marked : int, optional
        Row of ``fabric.links`` that is pointed out.
    """
    table = cells.assign(
        cable=[link_text(fabric, row) for row in cells["link"]], marked=cells["link"] == marked
    )
    table["class"] = colours.label()
    tree = bool((cells["upper"] > 1).any())
    panels: list[alt.LayerChart] = []
    for tiers, panel in table.groupby(["upper", "lower"]):
        upper, lower = np.asarray(tiers).tolist()
        name = f"{tier_name(upper, tree)} to {tier_name(lower, tree)} · {len(panel):,} cables"
        panels.insert(0, _matrix_panel(panel, colours, name))
    return alt.vconcat(*panels, title=title)


def tier_name(tier: int, tree: bool) -> str:
    """What the machines of a tier are called."""
    if tier == 0:
        return "hosts"
    if not tree:
        return "switches"
    return "leaf switches" if tier == 1 else f"tier-{tier} switches"


def _line_rows(
    fabric: Fabric, layout: Layout, lines: pd.DataFrame, colours: Paint, marked: int | None
) -> pd.DataFrame:
    a, b = lines["a"].to_numpy(), lines["b"].to_numpy()
    rows = pd.DataFrame(
        {
            "x": layout.x[a],
            "y": layout.y[a],
            "x2": layout.x[b],
            "y2": layout.y[b],
            "middle_x": (layout.x[a] + layout.x[b]) / 2,
            "middle_y": (layout.y[a] + layout.y[b]) / 2,
            "class": colours.label(),
            "step": colours.classes.index,
            "link": [link_text(fabric, row) for row in lines["row"]],
            "cables": lines["cables"].to_numpy(),
            "marked": _ends_at(fabric, a, b, marked),
        }
    )
    return rows.sort_values("step", kind="stable")  # the hottest are drawn last


def _ends_at(fabric: Fabric, a: Longs, b: Longs, link: int | None) -> Bools:
    """Whether each pair of vertices is that of a link; no pair is that of no link."""
    if link is None:
        return np.zeros(len(a), bool)
    ends = sorted((int(fabric.links.source[link]), int(fabric.links.target[link])))
    found: Bools = (a == ends[0]) & (b == ends[1])
    return found


def _stretched(layout: Layout, shown: Bools) -> Layout:
    """The layout with what is shown from border to border, in a tree each tier by itself."""
    x = layout.x.copy()
    if layout.form == TREE:
        for tier in np.unique(layout.tier[shown]):
            members = np.flatnonzero(shown & (layout.tier == tier))
            order = members[np.argsort(x[members], kind="stable")]
            x[order] = (np.arange(len(order)) + 0.5) / len(order)
    else:
        low, high = float(x[shown].min()), float(x[shown].max())
        x = (x - low) / (high - low) if high > low else x
    return replace(layout, x=x)


def _worst(rows: pd.DataFrame, across: Across, theme: str) -> list[alt.Chart]:
    """A halo around the line that is pointed out, and what it is, towards the middle of the page."""
    leftwards = bool((rows["middle_x"] > 0.7).any())
    words: dict[str, Any] = {
        "align": "right" if leftwards else "left",
        "dx": -14 if leftwards else 14,
        "dy": -12,
        "fontSize": 13,
        "fontWeight": "bold",
    }
    base = alt.Chart(rows)
    halo = base.mark_rule(opacity=0.45, color=MARK[theme], strokeWidth=11)
    back = base.mark_text(stroke=PAPER[theme], strokeWidth=5, strokeJoin="round", **words)
    text = base.mark_text(color=MARK[theme], **words)
    middle = {"x": across("middle_x"), "y": _upwards("middle_y"), "text": alt.value("worst link")}
    return [
        halo.encode(x=across("x"), y=_upwards("y"), x2="x2", y2="y2"),
        back.encode(**middle),
        text.encode(**middle),
    ]


def _machines(fabric: Fabric, layout: Layout, visible: Bools, across: Across, theme: str) -> list[alt.Chart]:
    charts: list[alt.Chart] = []
    for kind, name, mark, size in ((HOST, "host", "circle", 24), (SWITCH, "switch", "square", 90)):
        chosen = np.flatnonzero(visible & (fabric.kind == kind))
        names = [fabric.names[v] for v in chosen]
        spots = pd.DataFrame({"x": layout.x[chosen], "y": layout.y[chosen], name: names})
        dots = alt.Chart(spots).mark_point(shape=mark, size=size, filled=True, opacity=1, color=INK[theme])
        charts.append(dots.encode(x=across("x"), y=_upwards("y"), tooltip=[f"{name}:N"]))
    return charts


def _tier_names(layout: Layout, visible: Bools, across: Across, left: float, theme: str) -> list[alt.Chart]:
    """What the tiers of a tree are, at the left border."""
    if layout.form != TREE:
        return []
    counts = np.bincount(layout.tier[visible])
    levels = np.flatnonzero(counts).tolist()
    rows = pd.DataFrame(
        {
            "x": left,
            "y": [level / int(layout.tier.max()) for level in levels],
            "tier": [f"{counts[level]:,} {tier_name(level, tree=True)}" for level in levels],
        }
    )
    text = alt.Chart(rows).mark_text(align="left", fontWeight="bold", fontSize=12, color=INK[theme])
    return [text.encode(x=across("x"), y=_upwards("y"), text="tier:N")]


def _matrix_panel(panel: pd.DataFrame, colours: Paint, title: str) -> alt.LayerChart:
    columns, rows = int(panel["column"].max()) + 1, int(panel["line"].max()) + 1
    low, high = CELL
    width, height = np.clip([MATRIX_WIDTH / columns, MATRIX_HEIGHT / rows], low, high)
    alone = bool((panel.groupby("line")["device"].nunique() == 1).all())
    if alone and height >= NAMED_ROW:
        names = panel.drop_duplicates("line").sort_values("line")["device"].tolist()
        y = alt.Y("device:N", sort=names, title=None, axis=_row_names(height))
    else:
        y = alt.Y("line:O", axis=None)
    base = alt.Chart(panel[["column", "line", "device", "class", "cable", "marked"]]).encode(
        x=alt.X("column:O", axis=None), y=y, tooltip=["cable:N", "class:N"]
    )
    inset = 0.5 if min(width, height) >= 5 else 0.0
    cells = base.mark_rect(xOffset=inset, x2Offset=-inset, yOffset=inset, y2Offset=-inset)
    frame = base.transform_filter("datum.marked").mark_rect(
        fillOpacity=0, stroke=MARK[colours.theme], strokeWidth=3, strokeOpacity=1
    )
    return layers(cells.encode(color=colours.colour()), frame).properties(
        title=title, width=columns * width, height=rows * height
    )


def _row_names(height: float) -> alt.Axis:
    return alt.Axis(
        labelLimit=260, labelFontSize=min(height - 1, 11), labelOverlap=False, ticks=False, domain=False
    )


def _across(margin: float, field: str) -> alt.X:
    return alt.X(f"{field}:Q", axis=None, scale=alt.Scale(domain=[-margin, 1.02], nice=False))


def _upwards(field: str) -> alt.Y:
    return alt.Y(f"{field}:Q", axis=None, scale=alt.Scale(domain=[-0.06, 1.06], nice=False))
