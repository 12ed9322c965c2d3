"""Charts of simulated runs: traffic and latency over time, latencies, estimate against simulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from dashboard.figures.style import DARK, INK, LIGHT, layers
from dashboard.tables.simulated import letter
from registry import units
from registry.units import Unit

RUNS = {
    LIGHT: ("#0b6e8f", "#e0a028", "#7a4fa3", "#b3262d", "#2f8f5b", "#7a8290"),
    DARK: ("#4cc3ea", "#f3c04a", "#c39be8", "#f2767c", "#6fd39b", "#9aa3b2"),
}
"""Colours of the runs A, B, ...; their number limits the runs in a chart."""
_DASHES = ([1, 0], [6, 3], [2, 2], [9, 3, 2, 3], [4, 2], [12, 4])
"""Dashes of their lines, so that runs differ without colours too."""
_DOTTED = 60
"""Maximum number of point marks on a line; more would hide its dashes."""
_HEIGHT = 250


def over_time(points: pd.DataFrame, what: str, title: str, base: str, theme: str) -> alt.Chart:
    """Return a chart over simulated time, one line per run.

    Parameters
    ----------
    points : DataFrame
        Result of `dashboard.tables.simulated.over_time`.
    what : str
        Column to draw: ``delivered`` or ``latency``.
    title : str
    base : str
        Unit of the column, of `registry.units`.
    """
    clock = units.unit_for(points["at"].tolist(), units.SECONDS)
    few = len(points) <= _DOTTED * max(points["run"].nunique(), 1)
    rows, unit = _in_unit(points[points[what].notna()], what, base)
    rows["at"] = rows["at"] / clock.size
    chart: alt.Chart = (
        alt.Chart(rows)
        .mark_line(point={"size": 18} if few else False)
        .encode(
            x=alt.X("at:Q", title=f"simulated time ({clock.name})"),
            y=alt.Y(f"{what}:Q", title=f"{title} ({unit.name})", scale=alt.Scale(zero=True)),
            tooltip=[
                alt.Tooltip("run:N"),
                alt.Tooltip("at:Q", format=".4~g", title=f"time ({clock.name})"),
                alt.Tooltip(f"{what}:Q", format=".4~g", title=f"{title} ({unit.name})"),
            ],
            **_by_run(rows, theme),
        )
        .properties(height=_HEIGHT, width="container")
    )
    return chart


def latencies(table: pd.DataFrame, theme: str) -> alt.Chart:
    """Return the latency of messages by percentile, one line per run; logarithmic if all are above zero.

    Parameters
    ----------
    table : DataFrame
        Result of `dashboard.tables.simulated.latencies`.
    """
    rows, unit = _in_unit(table, "latency", units.SECONDS)
    positive = bool((rows["latency"] > 0).all())
    scale = alt.Scale(type="log") if positive else alt.Scale(zero=True)
    order = list(dict.fromkeys(rows["percentile"]))
    chart: alt.Chart = (
        alt.Chart(rows)
        .mark_line(point={"size": 30})
        .encode(
            x=alt.X("percentile:O", sort=order, title="percentile of messages", axis=alt.Axis(labelAngle=0)),
            y=alt.Y("latency:Q", title=f"latency ({unit.name})", scale=scale),
            tooltip=[
                alt.Tooltip("run:N"),
                alt.Tooltip("percentile:O"),
                alt.Tooltip("latency:Q", format=".4~g", title=f"latency ({unit.name})"),
            ],
            **_by_run(rows, theme, legend=False),
        )
        .properties(height=_HEIGHT, width="container", description="Latency of messages by percentile.")
    )
    return chart


def against_static(
    table: pd.DataFrame, chosen: Sequence[str], title: str, base: str, theme: str
) -> alt.LayerChart:
    """Return the completion time of simulated runs over an estimated cost; chosen runs filled, with letters.

    Parameters
    ----------
    table : DataFrame
        Result of `dashboard.tables.simulated.predicted`.
    chosen : sequence of str
        Ids of the chosen runs, in the order of their letters.
    title : str
        Name of the cost.
    base : str
        Unit of the cost.
    """
    rows, unit = _in_unit(table, "static", base)
    rows, clock = _in_unit(rows, "completion", units.SECONDS)
    mine = rows["run"].isin(list(chosen))
    letters = {run: letter(number) for number, run in enumerate(chosen)}
    rows["letter"] = [letters.get(run, "") for run in rows["run"]]

    def dots(part: pd.DataFrame) -> alt.Chart:
        return alt.Chart(part).encode(
            x=alt.X("static:Q", title=f"{title} ({unit.name})", scale=alt.Scale(zero=False)),
            y=alt.Y("completion:Q", title=f"completion ({clock.name})", scale=alt.Scale(zero=False)),
            tooltip=[
                alt.Tooltip("run:N"),
                alt.Tooltip("placement:N"),
                alt.Tooltip("strategy:N"),
                alt.Tooltip("static:Q", format=".4~g", title=f"{title} ({unit.name})"),
                alt.Tooltip("completion:Q", format=".4~g", title=f"completion ({clock.name})"),
            ],
        )

    others = [dots(rows[~mine]).mark_point(filled=False, size=60, strokeWidth=1.5, color=INK[theme])]
    return layers(
        *(others if (~mine).any() else ()),  # Vega warns of layers without rows
        dots(rows[mine]).mark_point(filled=True, size=90, opacity=1, color=RUNS[theme][0]),
        dots(rows[mine])
        .mark_text(align="left", dx=9, fontWeight="bold", color=INK[theme])
        .encode(text=alt.Text("letter:N")),
    ).properties(height=_HEIGHT, width="container")


def _in_unit(table: pd.DataFrame, column: str, base: str) -> tuple[pd.DataFrame, Unit]:
    unit = units.unit_for(table[column].tolist(), base)
    scaled = table.copy()
    scaled[column] = scaled[column] / unit.size
    return scaled, unit


def _by_run(rows: pd.DataFrame, theme: str, *, legend: bool = True) -> dict[str, Any]:
    """Return colour and dashes of each run, with one legend for both or none."""
    names = list(dict.fromkeys(rows["run"]))
    shown = alt.Legend(
        orient="top",
        title=None,
        columns=2,
        labelLimit=110,
        symbolType="stroke",
        symbolSize=400,
        symbolStrokeWidth=2.5,
    )
    both = shown if legend else None
    colours = alt.Scale(domain=names, range=list(RUNS[theme][: len(names)]))
    dashes: Any = list(_DASHES[: len(names)])
    return {
        "color": alt.Color("run:N", scale=colours, legend=both),
        "strokeDash": alt.StrokeDash("run:N", scale=alt.Scale(domain=names, range=dashes), legend=both),
    }
