"""Charts of circuit plans: throughput before and after, the course of the search, connected hosts."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import altair as alt
import pandas as pd

from dashboard.figures.style import DARK, INK, LIGHT, SERIES_COLOURS, layers
from dashboard.tables.circuits import PRESENT, PROPOSED, STATES, UPPER_BOUND

SIDE = 380
"""Width and height of the matrix, in pixels."""
STATE_COLOURS = {LIGHT: ("#9aa3b2", "#e0672f", "#0b6e8f"), DARK: ("#6d7686", "#f38b21", "#4cc3ea")}
"""Colours of circuits that stay, are removed and are added."""
STATE_SHAPES = ("square", "cross", "circle")
NAMED = 20
"""Maximum number of hosts that a matrix shows by name; more are shown by number."""
_SERIES = (PRESENT, PROPOSED, UPPER_BOUND)


def throughput_bars(rows: pd.DataFrame, theme: str) -> alt.LayerChart:
    """Return bars of the throughput before and after, and of the certified upper bound.

    Parameters
    ----------
    rows : DataFrame
        Result of `dashboard.tables.circuits.throughputs`.
    """
    grey, _, colour, ink = SERIES_COLOURS[theme]
    top = float(rows["value"].max()) if len(rows) else 1.0
    base = alt.Chart(rows).encode(
        x=alt.X("value:Q", axis=None, scale=alt.Scale(domain=[0, 1.9 * (top or 1.0)], nice=False)),
        y=alt.Y(
            "series:N",
            title=None,
            scale=alt.Scale(domain=list(_SERIES)),
            axis=alt.Axis(ticks=False, domain=False, labelLimit=220, labelOverlap=False),
        ),
        tooltip=[alt.Tooltip("series:N"), alt.Tooltip("shown:N")],
    )
    colours = alt.Scale(domain=list(_SERIES), range=[grey, colour, ink])
    return layers(
        base.mark_bar().encode(color=alt.Color("series:N", scale=colours, legend=None)),
        base.mark_text(align="left", dx=5, color=INK[theme]).encode(text=alt.Text("shown:N")),
    ).properties(height=46 * len(_SERIES), width="container")


def trail_chart(rows: pd.DataFrame, bound: float | None, theme: str) -> alt.LayerChart:
    """Return a chart of the throughput of each iteration, the best so far, and the certified upper bound.

    Parameters
    ----------
    rows : DataFrame
        Result of `dashboard.tables.circuits.trail_table`.
    bound : float or None
        Upper bound, or None if throughput is unlimited.
    """
    grey, _, colour, ink = SERIES_COLOURS[theme]
    x = alt.X("iteration:Q", title="iteration", axis=alt.Axis(tickMinStep=1, format="d"))
    tooltip: list[alt.Tooltip] = [
        alt.Tooltip("iteration:Q"),
        alt.Tooltip("throughput:Q", format=".4~g", title="profiles/s"),
        alt.Tooltip("best:Q", format=".4~g", title="best so far"),
        alt.Tooltip("bottleneck:N"),
    ]

    def along(field: str) -> alt.Chart:
        y = alt.Y(f"{field}:Q", title="profiles/s", scale=alt.Scale(zero=True))
        return alt.Chart(rows).encode(x=x, y=y, tooltip=tooltip)

    parts = [
        along("best").mark_line(interpolate="step-after", strokeWidth=2, color=colour),
        along("throughput").mark_point(filled=True, size=30, opacity=0.8, color=grey),
    ]
    if bound is not None:
        limit = pd.DataFrame({"bound": [bound]})
        rule = alt.Chart(limit).mark_rule(strokeDash=[4, 3], strokeWidth=1.5, color=ink)
        y = alt.Y("bound:Q", title="profiles/s", scale=alt.Scale(zero=True))
        parts.append(rule.encode(y=y, tooltip=[alt.Tooltip("bound:Q", format=".4~g", title="bound")]))
    title = "Search: ● iteration · ━ best so far · ╌ certified upper bound"
    return layers(*parts).properties(title=title, height=260, width="container")


def circuit_matrix(rows: pd.DataFrame, nodes: int, theme: str, what: Collection[str] = STATES) -> alt.Chart:
    """Return a matrix of the nodes that circuits connect, symmetric; colour and shape show the changes.

    Parameters
    ----------
    rows : DataFrame
        Result of `dashboard.tables.circuits.circuits_table`.
    nodes : int
    what : collection of str
        Which of `dashboard.tables.circuits.STATES` to draw; names of hosts come from all rows.
    """
    columns = {"a": "b", "b": "a", "a node": "b node", "b node": "a node"}
    both = pd.concat([rows, rows.rename(columns=columns)], ignore_index=True)
    both = both.rename(columns={"a node": "across", "b node": "down"})
    size = min(max((0.55 * SIDE / max(nodes, 1)) ** 2, 4.0), 400.0)
    across, down = _by_name(both, nodes) if nodes <= NAMED else _by_number(nodes)
    chart: alt.Chart = (
        alt.Chart(both[both["what"].isin(list(what))])
        .mark_point(filled=True, size=size, opacity=1)
        .encode(
            x=across,
            y=down,
            color=alt.Color(
                "what:N",
                title=None,
                scale=alt.Scale(domain=list(STATES), range=list(STATE_COLOURS[theme])),
                legend=alt.Legend(orient="top"),
            ),
            shape=alt.Shape("what:N", scale=alt.Scale(domain=list(STATES), range=list(STATE_SHAPES))),
            tooltip=[
                *(alt.Tooltip(f"{name}:N") for name in ("a", "b", "what")),
                alt.Tooltip("bytes:Q", format=".4~s", title="bytes of a profile"),
                alt.Tooltip("busy:Q", format=".1%", title="busy"),
            ],
        )
        .properties(width=SIDE, height=SIDE, description="Connected hosts, symmetric.")
    )
    return chart


def _by_name(rows: pd.DataFrame, nodes: int) -> tuple[alt.X, alt.Y]:
    """Return the axes of the matrix with the hosts' names, in the order of the nodes."""
    names = dict(enumerate(map(str, range(nodes)))) | {
        number: str(name) for number, name in zip(rows["across"], rows["a"], strict=True)
    }
    scale = alt.Scale(domain=list(names.values()))
    style: dict[str, Any] = {"grid": True, "labelLimit": 90, "labelFontSize": 10, "labelOverlap": False}
    x = alt.X("a:N", title=None, scale=scale, axis=alt.Axis(**style, labelAngle=-90))
    y = alt.Y("b:N", title=None, scale=scale, axis=alt.Axis(**style))
    return x, y


def _by_number(nodes: int) -> tuple[alt.X, alt.Y]:
    span = [-0.5, nodes - 0.5]
    axis = alt.Axis(grid=False, tickMinStep=1, format="d")
    x = alt.X("across:Q", title="node", scale=alt.Scale(domain=span, nice=False), axis=axis)
    y = alt.Y("down:Q", title="node", scale=alt.Scale(domain=span[::-1], nice=False), axis=axis)
    return x, y
