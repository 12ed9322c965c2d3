"""Durations of ingest runs over time."""

from __future__ import annotations

import altair as alt
import pandas as pd

from dashboard.figures.style import DARK, LIGHT
from registry.ingest_runs.runs import OUTCOMES

OUTCOME_COLOURS = {LIGHT: ("#0b6e8f", "#8a94a6", "#b3262d"), DARK: ("#4cc3ea", "#7d8798", "#f38b21")}
"""Colour of each of `registry.ingest_runs.runs.OUTCOMES`; failures stand out."""
OUTCOME_SHAPES = ("circle", "square", "triangle-up")
"""Shape of each outcome."""


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
                *(f"{name}:N" for name in ("outcome", "source", "cluster")),
            ],
        )
        .properties(title="Duration of runs", height=240, width="container")
    )
    return chart
