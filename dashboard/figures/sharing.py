"""A heat map of running jobs and the links that they share."""

from __future__ import annotations

import altair as alt
import pandas as pd

from dashboard.figures.colouring import CAPACITY
from dashboard.figures.style import HEAT, INK, LIGHT, layers
from dashboard.tables.sharing import Heat

ROW, COLUMN = 24, 40
"""Height of a row and width of a column, in pixels."""
ALL_JOBS = "all jobs"
"""First row: the sum of all jobs."""
DARK_FROM = 0.55
"""Share above which numbers in cells have the other colour."""


def sharing_figure(heat: Heat, theme: str) -> alt.VConcatChart:
    """Return a heat map: columns are links, busiest first; rows are jobs, the first is their sum."""
    title = "Share of the link's capacity" if heat.of_capacity else "Estimated share of the link's traffic"
    totals = heat.links.assign(row=ALL_JOBS).drop(columns="jobs")
    data = pd.concat([totals, heat.cells]) if heat.of_capacity else heat.cells
    rows = [ALL_JOBS, *heat.rows] if heat.of_capacity else list(heat.rows)
    top = max(1.0, float(heat.links["share"].max()))
    base = alt.Chart(data).encode(
        x=alt.X(
            "place:O",
            title="Link, busiest first",
            scale=alt.Scale(domain=heat.links["place"].tolist(), paddingInner=0.06),
            axis=alt.Axis(labelAngle=0, ticks=False, domain=False, orient="top"),
        ),
        y=alt.Y(
            "row:N",
            title=None,
            scale=alt.Scale(domain=rows, paddingInner=0.08),
            axis=alt.Axis(labelLimit=240, ticks=False, domain=False, labelOverlap=False),
        ),
        tooltip=[
            alt.Tooltip("row:N", title="job"),
            alt.Tooltip("link:N", title="link"),
            alt.Tooltip("share:Q", format=".1%", title=title.lower()),
        ],
    )
    colours = HEAT[theme][1:] if heat.of_capacity else CAPACITY[theme]  # heat is for load alone
    ramp = alt.Scale(domain=[0, top], range=list(colours), nice=False)
    colour = alt.Color("share:Q", legend=None, scale=ramp)
    high, low = ("#ffffff", INK[LIGHT]) if theme == LIGHT else (INK[LIGHT], "#ffffff")
    above = alt.FieldGTPredicate(field="share", gt=DARK_FROM * top)
    ink = alt.condition(above, alt.value(high), alt.value(low))
    drawn = layers(
        base.mark_rect(cornerRadius=3).encode(color=colour),
        base.mark_text(fontSize=11).encode(text=alt.Text("share:Q", format=".0%"), color=ink),
    ).properties(width=COLUMN * len(heat.links), height=ROW * len(rows))
    # inside a concatenation the size applies to the cells alone, without names
    return alt.vconcat(
        drawn, description=f"{title}: jobs by links, {len(rows)} rows and {len(heat.links)} columns"
    )
