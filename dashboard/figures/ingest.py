"""Age of the data of each source by days, and durations of ingest runs over time."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from dashboard.figures.style import DARK, INK, LIGHT, layers
from dashboard.tables.status import DAY_STATES
from registry.store.ingest_runs import OUTCOMES

OUTCOME_COLOURS = {LIGHT: ("#0b6e8f", "#8a94a6", "#b3262d"), DARK: ("#4cc3ea", "#7d8798", "#f38b21")}
"""Colour of each of `registry.store.ingest_runs.OUTCOMES`; failures stand out."""
OUTCOME_SHAPES = ("circle", "square", "triangle-up")
"""Shape of each outcome."""

DAY_COLOURS = {
    LIGHT: ("#cfead9", "#ffe0a8", "#f4b9b4", "#e3e7ed"),
    DARK: ("#1f5138", "#6b4b10", "#78282b", "#353c47"),
}
"""Colour of each of `dashboard.tables.status.DAY_STATES`, with a text of `INK` on it."""
ROW = 30
"""Height of a row of the grid, in pixels."""
FRAME = 90
"""Height of the days and the legend of the grid, in pixels."""


def age_grid(table: pd.DataFrame, theme: str) -> alt.LayerChart:
    """Return a grid of squares, a row for each source: the age of its latest data on each day.

    Parameters
    ----------
    table : DataFrame
        Result of `dashboard.tables.status.age_grid`.
    """
    days, sources = (list(dict.fromkeys(table[name])) for name in ("day", "source"))
    plain: Any = {"ticks": False, "domain": False}
    across = alt.Axis(orient="top", labelAngle=0, labelOverlap=False, **plain)
    base = alt.Chart(table).encode(
        x=alt.X("day:O", sort=days, title="day (UTC)", axis=across),
        y=alt.Y("source:N", sort=sources, title=None, axis=alt.Axis(labelLimit=160, **plain)),
        tooltip=[alt.Tooltip(f"{name}:N", title=title) for name, title in _GRID_TIPS.items()],
    )
    colours = alt.Scale(domain=list(DAY_STATES), range=list(DAY_COLOURS[theme]))
    legend = alt.Legend(orient="bottom", title=None, symbolType="square")
    squares = base.mark_rect(
        cornerRadius=3,
        width=alt.RelativeBandSize(band=0.94),
        height=alt.RelativeBandSize(band=0.9),
    ).encode(color=alt.Color("state:N", scale=colours, legend=legend))
    texts = base.mark_text(fontSize=10, color=INK[theme]).encode(text=alt.Text("text:N"))
    about = (
        "A row for each source and a square for each day: the age of the latest data at the end of the day."
    )
    height = ROW * len(sources) + FRAME
    return layers(squares, texts).properties(height=height, width="container", description=about)


_GRID_TIPS = {
    "source": "source",
    "date": "day (UTC)",
    "state": "state",
    "observed": "latest data",
    "runs": "runs",
    "failed": "failed runs",
}


def durations(runs: pd.DataFrame, theme: str) -> alt.Chart:
    """Return a chart with one mark per run: start, duration and outcome.

    Parameters
    ----------
    runs : DataFrame
        Columns ``at`` (UTC), ``seconds``, ``outcome``, ``source``, ``cluster``.
    """
    outcomes = list(OUTCOMES)
    chart: alt.Chart = (
        alt.Chart(runs)
        .mark_point(filled=True, size=60, opacity=0.9)
        .encode(
            x=alt.X(
                "at:T",
                title="start (UTC)",
                scale=alt.Scale(type="utc", padding=16),
                axis=alt.Axis(tickCount=8, format="%d %b %H:%M", labelOverlap=True),
            ),
            y=alt.Y("seconds:Q", title="duration (s)", scale=alt.Scale(type="symlog", constant=1, zero=True)),
            color=alt.Color(
                "outcome:N",
                scale=alt.Scale(domain=outcomes, range=list(OUTCOME_COLOURS[theme])),
                legend=alt.Legend(title="outcome", orient="top"),
            ),
            shape=alt.Shape("outcome:N", scale=alt.Scale(domain=outcomes, range=list(OUTCOME_SHAPES))),
            tooltip=[
                alt.Tooltip("at:T", format="%Y-%m-%d %H:%M:%S", title="start (UTC)", formatType="time"),
                alt.Tooltip("seconds:Q", format=".3~g", title="duration (s)"),
                *(alt.Tooltip(f"{name}:N") for name in ("outcome", "source", "cluster")),
            ],
        )
        .properties(title="Duration of runs", height=220, width="container")
    )
    return chart
