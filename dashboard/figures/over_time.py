"""Charts of one link or device over time: utilisation by owner, and new errors."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import altair as alt
import pandas as pd

from dashboard.figures.style import DARK, INK, LIGHT
from dashboard.tables.columns import in_utc
from dashboard.tables.ports import NOT_ATTRIBUTED
from registry.model import Floats

OWNERS = {
    LIGHT: ("#0b6e8f", "#e0a028", "#7b4fa3", "#2f8f5b", "#c2566b", "#5b6b7d", "#8a6d3b"),
    DARK: ("#4cc3ea", "#f3c04a", "#b892e0", "#6fd39b", "#f08fa0", "#a9b8c9", "#cfae78"),
}
"""Colours of owners and of counters, in the order of the legend."""
REST = {LIGHT: "#b3b9c4", DARK: "#5f6775"}
MARK = "#c2410c"
"""Colour of marks of changes, which is seen on light and dark pages."""
HEIGHT = 250
SMALL_WIDTH, SMALL_HEIGHT = 64, 36
"""Size of a line beside a number."""
_AXIS = alt.Axis(title=None, tickCount=4, format="%H:%M", labelOverlap=True, grid=False)
_TIME = alt.Tooltip("time:T", title="until (UTC)", format="%Y-%m-%d %H:%M", formatType="utc")


def _legend(theme: str) -> alt.Legend:
    """Return a flat legend below a narrow chart."""
    return alt.Legend(
        orient="bottom", title=None, columns=2, labelColor=INK[theme], offset=4, padding=0, rowPadding=1
    )


def sparkline(times: Sequence[datetime], shares: Floats, title: str, theme: str) -> alt.Chart:
    """Return a small line of utilisation over time, without axes.

    Parameters
    ----------
    times : sequence of datetime
    shares : float64[k]
        NaN where nothing is known.
    """
    rows = pd.DataFrame({"time": in_utc(times), "share": shares}).dropna()
    chart: alt.Chart = (
        alt.Chart(rows, description=f"{title} over time", width=SMALL_WIDTH, height=SMALL_HEIGHT, padding=0)
        .mark_line(color=OWNERS[theme][0], point={"size": 8, "color": OWNERS[theme][0]})
        .encode(
            x=alt.X("time:T", scale=alt.Scale(type="utc"), axis=None),
            y=alt.Y("share:Q", axis=None, scale=alt.Scale(domainMin=0)),
            tooltip=[_TIME, alt.Tooltip("share:Q", format=".3p", title="of capacity")],
        )
        .configure_view(strokeWidth=0)
    )
    return chart


def utilisation(rows: pd.DataFrame, title: str, theme: str) -> alt.Chart:
    """Return a stacked chart of the utilisation of a link over time.

    Parameters
    ----------
    rows : DataFrame
        Result of `dashboard.tables.ports.owners_over_time`.
    """
    owners = list(dict.fromkeys(rows["owner"]))
    colours = [
        REST[theme] if owner == NOT_ATTRIBUTED else OWNERS[theme][number % len(OWNERS[theme])]
        for number, owner in enumerate(owners)
    ]
    chart: alt.Chart = (
        alt.Chart(rows, title=title, description=f"{title}: the owners of the traffic, stacked, over time")
        .mark_area(interpolate="step-before", line=False)
        .encode(
            x=alt.X("time:T", scale=alt.Scale(type="utc"), axis=_AXIS),
            y=alt.Y("share:Q", title=None, stack="zero", axis=alt.Axis(format=".0%", tickCount=4)),
            color=alt.Color(
                "owner:N",
                scale=alt.Scale(domain=owners, range=colours),
                legend=_legend(theme),
            ),
            order=alt.Order("number:Q"),
            tooltip=[_TIME, "owner:N", alt.Tooltip("share:Q", format=".3p", title="of capacity")],
        )
        .transform_calculate(number=f"indexof({owners!r}, datum.owner)")
        .properties(height=HEIGHT, width="container")
    )
    return chart


def new_errors(rows: pd.DataFrame, title: str, theme: str) -> alt.Chart:
    """Return a stacked chart of new errors over time.

    Parameters
    ----------
    rows : DataFrame
        Result of `dashboard.tables.ports.new_errors`.
    """
    counters = list(dict.fromkeys(rows["counter"]))
    colours = [OWNERS[theme][number % len(OWNERS[theme])] for number in range(len(counters))]
    chart: alt.Chart = (
        alt.Chart(rows, title=title, description=f"{title}: errors by counter, stacked, over time")
        .mark_bar(width=6)
        .encode(
            x=alt.X("time:T", scale=alt.Scale(type="utc", padding=8), axis=_AXIS),
            y=alt.Y("errors:Q", title=None, axis=alt.Axis(tickMinStep=1, tickCount=4, format="~s")),
            color=alt.Color(
                "counter:N",
                scale=alt.Scale(domain=counters, range=colours),
                legend=_legend(theme),
            ),
            tooltip=[_TIME, "counter:N", alt.Tooltip("errors:Q", format=",")],
        )
        .properties(height=HEIGHT, width="container")
    )
    return chart


def change_marks(places: Sequence[int], texts: Sequence[str]) -> alt.Chart:
    """Return marks above a slider, at the stops at which something changed.

    Parameters
    ----------
    places : sequence of int
        Numbers of these stops.
    texts : sequence of str
        Text of every stop of the slider.
    """
    rows = pd.DataFrame({"place": list(places), "what": [texts[place] for place in places]})
    about = f"Marks of {len(rows)} changes above the time slider"
    scale = alt.Scale(domain=[0, max(len(texts) - 1, 1)], nice=False)
    chart: alt.Chart = (
        alt.Chart(rows, description=about, padding={"left": 8, "right": 8, "top": 0, "bottom": 0})
        .mark_point(shape="triangle-down", filled=True, size=70, opacity=1, color=MARK)
        .encode(x=alt.X("place:Q", axis=None, scale=scale), tooltip=alt.Tooltip("what:N", title="changed"))
        .properties(width="container", height=14)
        .configure_view(strokeWidth=0)
    )
    return chart
