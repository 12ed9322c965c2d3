"""A job's hosts switch by switch, coloured by the ranks that sit there."""

from __future__ import annotations

import altair as alt
import pandas as pd

from dashboard.figures.colours import DARK, INK, LIGHT

RANKS = {
    LIGHT: ("#440154", "#3b528b", "#21918c", "#5ec962", "#d9d21d"),
    DARK: ("#7e4a9e", "#5b78c7", "#2fb3ad", "#7fdc7f", "#fde725"),
}
"""From the first rank to the last: viridis, lifted on a dark page, darkened at its end on a light one."""
EMPTY = {LIGHT: "#e6e9ee", DARK: "#343944"}
"""Hosts of the job without a rank, and other hosts' outline."""
WIDTH, HEIGHT = 290, 840
"""Most pixels of the cells."""
CELL, NAMED_ROW = (4.0, 18.0), 14.0
"""Least and most of a cell's side; lowest row that has room for a name, in pixels."""


def hosts_figure(
    rows: tuple[str, ...], cells: pd.DataFrame, title: str, ranks: int, theme: str
) -> alt.VConcatChart:
    """A cell a host, a row a switch.

    Parameters
    ----------
    rows : tuple of str
        Of `dashboard.tables.hosts.HostCells`.
    cells : DataFrame
        Of `dashboard.tables.hosts.with_ranks`.
    ranks : int
        Of the job: the end of the ramp.
    """
    columns, named = int(cells["place"].max()) + 1, len(rows) * NAMED_ROW <= HEIGHT
    low, high = CELL
    width = min(max(WIDTH / columns, low), high)
    height = min(max(HEIGHT / len(rows), low), high)
    names = alt.Axis(labelLimit=230, ticks=False, domain=False, labelOverlap=False, labelFontSize=11)
    base = alt.Chart(cells).encode(
        x=alt.X("place:O", axis=None, scale=alt.Scale(domain=list(range(columns)), paddingInner=0.12)),
        y=alt.Y(
            "row:N",
            title=None,
            axis=names if named else None,
            scale=alt.Scale(domain=list(rows), paddingInner=0.12),
        ),
        tooltip=[
            alt.Tooltip("host:N"),
            alt.Tooltip("row:N", title="on"),
            alt.Tooltip("count:Q", title="ranks of this job"),
            alt.Tooltip("ranks:N", title="these ranks"),
        ],
    )
    mine = alt.FieldEqualPredicate(field="mine", equal=True)
    taken = alt.FieldGTPredicate(field="count", gt=0)
    others = base.mark_rect(fillOpacity=0, stroke=EMPTY[theme], strokeWidth=1)
    free = base.transform_filter(mine).mark_rect(fill=EMPTY[theme], stroke=INK[theme], strokeWidth=0.5)
    colour = alt.Color(
        "middle:Q",
        title="middle one of its ranks",
        scale=alt.Scale(domain=[0, max(ranks - 1, 1)], range=list(RANKS[theme])),
        legend=alt.Legend(orient="bottom", direction="horizontal", gradientLength=200, titleLimit=260),
    )
    used = base.transform_filter(taken).mark_rect().encode(color=colour)
    drawn = alt.layer(others, free, used).properties(width=columns * width, height=len(rows) * height)
    # in a concatenation the size is that of the cells: the page does not fit names and legend into it
    return alt.vconcat(drawn, title=title)
