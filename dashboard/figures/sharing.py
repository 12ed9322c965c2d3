"""A heat map of running jobs and links, with the total time of each link above it."""

from __future__ import annotations

import altair as alt
import pandas as pd

from dashboard.figures.style import HEAT, INK
from registry import units

ROW, COLUMN, TOTALS = 18, 22, 90
"""Height of a row, width of a column, height of the bars above, in pixels."""


def sharing_figure(
    rows: tuple[str, ...], cells: pd.DataFrame, links: pd.DataFrame, theme: str
) -> alt.VConcatChart:
    """Return a heat map: columns are links, busiest first; rows are jobs.

    Parameters
    ----------
    rows, cells, links
        Fields of `dashboard.tables.sharing.Heat`.
    """
    unit = units.unit_for(links["seconds"].tolist(), units.SECONDS)
    places = links["place"].tolist()
    in_unit = [frame.assign(seconds=frame["seconds"] / unit.size) for frame in (links, cells)]
    total = _bars(in_unit[0], places, unit.name, theme)
    map_ = _cells(in_unit[1], places, rows, unit.name, theme)
    both: alt.VConcatChart = alt.vconcat(total, map_).resolve_scale(x="independent")
    return both


def _bars(links: pd.DataFrame, places: list[int], unit: str, theme: str) -> alt.Chart:
    """Return bars of the time of all jobs on each link."""
    title = "Time of all jobs, per period"
    chart: alt.Chart = (
        alt.Chart(links)
        .mark_bar(color=INK[theme])
        .encode(
            x=alt.X("place:O", title=None, axis=None, scale=_across(places)),
            y=alt.Y("seconds:Q", title=unit, axis=alt.Axis(tickCount=3)),
            tooltip=[*_tooltip(unit), alt.Tooltip("jobs:Q", title="jobs on it")],
        )
        .properties(title=title, width=COLUMN * len(places), height=TOTALS)
    )
    return chart


def _cells(cells: pd.DataFrame, places: list[int], rows: tuple[str, ...], unit: str, theme: str) -> alt.Chart:
    """Return the cells: the time of each job on each link."""
    top = float(cells["seconds"].max()) if len(cells) else 1.0
    colour = alt.Color(
        "seconds:Q",
        title=f"time of its bytes ({unit})",
        scale=alt.Scale(domain=[0, top or 1.0], range=list(HEAT[theme][1:]), nice=False),
        legend=alt.Legend(orient="right", gradientLength=110, titleLimit=260),
    )
    chart: alt.Chart = (
        alt.Chart(cells)
        .mark_rect()
        .encode(
            x=alt.X(
                "place:O",
                title="link (1 is the busiest)",
                scale=_across(places),
                axis=alt.Axis(labelAngle=0, labelOverlap=True, ticks=False),
            ),
            y=alt.Y(
                "row:N",
                title=None,
                scale=alt.Scale(domain=list(rows), paddingInner=0.08),
                axis=alt.Axis(labelLimit=240, ticks=False, domain=False, labelOverlap=False),
            ),
            color=colour,
            tooltip=[
                alt.Tooltip("row:N", title="job"),
                *_tooltip(unit),
                alt.Tooltip("part:Q", format=".1%", title="share of the link's bytes"),
            ],
        )
        .properties(title="Time of each job", width=COLUMN * len(places), height=ROW * max(len(rows), 1))
    )
    return chart


def _across(places: list[int]) -> alt.Scale:
    return alt.Scale(domain=places, paddingInner=0.08)


def _tooltip(unit: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("link:N", title="link"),
        alt.Tooltip("seconds:Q", format=".4~g", title=f"time ({unit})"),
    ]
