"""Running jobs against links as a heat map, with all jobs' time of each link above it."""

from __future__ import annotations

import altair as alt
import pandas as pd

from dashboard.figures.colours import HEAT, INK
from registry import units

ROW, COLUMN, TOTALS = 18, 22, 90
"""Height of a row, width of a column, height of the bars above, in pixels."""


def sharing_figure(
    rows: tuple[str, ...], cells: pd.DataFrame, links: pd.DataFrame, theme: str
) -> alt.VConcatChart:
    """Columns are links, the hottest first; rows are jobs.

    Parameters
    ----------
    rows, cells, links
        Of `dashboard.tables.sharing.Heat`.
    """
    unit = units.unit_for(links["seconds"].tolist(), units.SECONDS)
    bars, heat = (
        links.assign(seconds=links["seconds"] / unit.size),
        cells.assign(seconds=cells["seconds"] / unit.size),
    )
    places = links["place"].tolist()
    across = alt.X("place:O", title=None, axis=None, scale=alt.Scale(domain=places, paddingInner=0.08))
    ramp = list(HEAT[theme][1:])
    top = float(heat["seconds"].max()) if len(heat) else 1.0
    colour = alt.Color(
        "seconds:Q",
        title=f"its bytes' time ({unit.name})",
        scale=alt.Scale(domain=[0, top or 1.0], range=ramp, nice=False),
        legend=alt.Legend(orient="right", gradientLength=110, titleLimit=260),
    )
    told = [
        alt.Tooltip("link:N", title="link"),
        alt.Tooltip("seconds:Q", format=".4~g", title=f"time ({unit.name})"),
    ]
    total = (
        alt.Chart(bars)
        .mark_bar(color=INK[theme])
        .encode(
            x=across,
            y=alt.Y("seconds:Q", title=unit.name, axis=alt.Axis(tickCount=3)),
            tooltip=[*told, alt.Tooltip("jobs:Q", title="jobs on it")],
        )
        .properties(
            title="All jobs' bytes over capacity, a period", width=COLUMN * len(places), height=TOTALS
        )
    )
    map_ = (
        alt.Chart(heat)
        .mark_rect()
        .encode(
            x=alt.X(
                "place:O",
                title="link, the hottest is 1",
                scale=alt.Scale(domain=places, paddingInner=0.08),
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
                *told,
                alt.Tooltip("part:Q", format=".1%", title="of all bytes on it"),
            ],
        )
        .properties(
            title="Each job's own part of that", width=COLUMN * len(places), height=ROW * max(len(rows), 1)
        )
    )
    both: alt.VConcatChart = alt.vconcat(total, map_).resolve_scale(x="independent")
    return both
