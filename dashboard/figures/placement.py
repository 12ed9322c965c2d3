"""Figures of one placement: its costs, the communication matrix, and the job's hosts."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd
from PIL import Image

from dashboard.figures.style import DARK, HEAT, INK, LIGHT, SERIES_COLOURS, layers
from registry import units
from registry.model import Floats

GAUGE = {
    "best possible": ("#1a7f37", 1),
    "found": ("#0b6e8f", -1),
    "now": ("#b3262d", 1),
    "in order": ("#b3262d", 1),
    "random": ("#5f6775", -1),
}
"""Colour of each value of a gauge, and the side of its text: 1 below the line, -1 above it."""
GAUGE_HEIGHT = 76
"""Height of a gauge, in pixels."""


def gauge(points: Mapping[str, float], theme: str) -> alt.LayerChart:
    """Return a line from the best possible to a random placement, with a job's placements on it.

    Parameters
    ----------
    points : mapping of str to float
        Result of `dashboard.tables.placements.JobCosts.points`: seconds by name of `GAUGE`.
    """
    low, high = min(points.values()), max(points.values())
    edge = 0.16 * (high - low) or 0.16 * high or 1.0
    rows = pd.DataFrame({"name": list(points), "seconds": list(points.values())})
    rows["text"] = [f"{name} {units.short(value, units.SECONDS)}" for name, value in points.items()]
    rows["above"] = [GAUGE[name][1] < 0 for name in points]
    scale = alt.Scale(domain=[low - edge, high + edge], nice=False, zero=False)
    x = alt.X("seconds:Q", axis=None, scale=scale)
    colour = alt.Color(
        "name:N",
        legend=None,
        scale=alt.Scale(
            domain=list(GAUGE),
            range=[colour if theme == LIGHT else INK[DARK] for colour, _ in GAUGE.values()],
        ),
    )
    base = alt.Chart(rows).encode(x=x, tooltip=[alt.Tooltip("text:N", title="worst link")])
    span = alt.Chart(pd.DataFrame({"seconds": [low], "end": [high]})).encode(x=x, x2=alt.X2("end:Q"))
    parts = [span.mark_rule(strokeWidth=6, color=EMPTY[theme])]
    now = points.get("now", points.get("in order"))
    if now is not None and "found" in points:
        gain = pd.DataFrame({"seconds": [points["found"]], "end": [now]})
        coloured = alt.Chart(gain).encode(x=x, x2=alt.X2("end:Q"))
        parts.append(coloured.mark_rule(strokeWidth=6, color=SERIES_COLOURS[theme][2]))
    parts.append(base.mark_circle(size=150, opacity=1).encode(color=colour))
    for above, dy in ((True, -18), (False, 18)):
        texts = base.transform_filter(alt.FieldEqualPredicate(field="above", equal=above))
        parts.append(texts.mark_text(dy=dy, fontSize=13).encode(text=alt.Text("text:N"), color=colour))
    about = ", ".join(rows["text"])
    return layers(*parts).properties(
        height=GAUGE_HEIGHT, width="container", description=f"Time of the worst link: {about}"
    )


def communication_matrix(matrix: Floats, ranks: int, theme: str) -> alt.LayerChart:
    """Return a picture of the bytes from rank (down) to rank (across), logarithmic.

    Parameters
    ----------
    matrix : float64[k, k]
        Result of `dashboard.tables.placements.communication`.
    """
    unit = units.unit_for([float(matrix.max(initial=0.0))], units.BYTES)
    sent = matrix[matrix > 0]
    low, high = (float(sent.min()), float(sent.max())) if len(sent) else (1.0, 1.0)
    ramp = list(HEAT[theme][1:])
    corners = pd.DataFrame(
        {"x": [0, ranks], "y": [0, ranks], "bytes": [low / unit.size, max(high, low * 1.001) / unit.size]}
    )
    picture = pd.DataFrame({"url": [_png(matrix, low, high, ramp)], "x": 0, "x2": ranks, "y": 0, "y2": ranks})
    span = alt.Scale(domain=[0, ranks], nice=False)
    down = alt.Scale(domain=[ranks, 0], nice=False)
    image = (
        alt.Chart(picture)
        .mark_image(aspect=False, smooth=False, align="left", baseline="top")
        .encode(
            x=alt.X("x:Q", scale=span, title="to rank", axis=alt.Axis(grid=False)),
            x2=alt.X2("x2"),
            y=alt.Y("y:Q", scale=down, title="from rank", axis=alt.Axis(grid=False)),
            y2=alt.Y2("y2"),
            url=alt.Url("url:N"),
        )
    )
    scale = (
        alt.Chart(corners)
        .mark_point(opacity=0)
        .encode(
            x=alt.X("x:Q", scale=span),
            y=alt.Y("y:Q", scale=down),
            color=alt.Color(
                "bytes:Q", title=f"sent ({unit.name})", scale=alt.Scale(type="log", range=ramp, nice=False)
            ),
        )
    )
    side = 430
    return layers(image, scale).properties(title="Bytes between ranks", width=side, height=side)


def _png(matrix: Floats, low: float, high: float, ramp: Sequence[str]) -> str:
    """Return the matrix as a PNG image in a data URL; transparent if no bytes are sent."""
    stops = np.asarray([[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in ramp], float)
    sent = matrix > 0
    spread = np.log(high / low) if high > low else 1.0
    share = np.log(np.where(sent, matrix, low) / low) / spread if high > low else np.ones(matrix.shape)
    spots = np.linspace(0, 1, len(stops))
    channels = [np.interp(share, spots, stops[:, c]) for c in range(3)]
    pixels = np.dstack([*channels, np.where(sent, 255, 0)]).astype(np.uint8)
    data = io.BytesIO()
    Image.fromarray(pixels, "RGBA").save(data, "PNG")
    return "data:image/png;base64," + base64.b64encode(data.getvalue()).decode("ascii")


RANKS = {
    LIGHT: ("#440154", "#3b528b", "#21918c", "#5ec962", "#d9d21d"),
    DARK: ("#7e4a9e", "#5b78c7", "#2fb3ad", "#7fdc7f", "#fde725"),
}
"""Colours from the first rank to the last: viridis, lighter on dark pages, its end darker on light ones."""
EMPTY = {LIGHT: "#e6e9ee", DARK: "#343944"}
"""Colour of the job's hosts without ranks, and of the outline of other hosts."""
WIDTH, HEIGHT = 290, 840
"""Maximum size of all cells, in pixels."""
CELL, NAMED_ROW = (4.0, 18.0), 14.0
"""Minimum and maximum side of a cell, and minimum height of a row with a name, in pixels."""


def hosts_figure(
    rows: tuple[str, ...], cells: pd.DataFrame, title: str, ranks: int, theme: str
) -> alt.VConcatChart:
    """Return the hosts of a job: one cell per host, one row per switch.

    Parameters
    ----------
    rows : tuple of str
        Rows of `dashboard.tables.hosts.HostCells`.
    cells : DataFrame
        Result of `dashboard.tables.hosts.with_ranks`.
    ranks : int
        Number of ranks of the job, the end of the colour ramp.
    """
    columns, named = int(cells["place"].max()) + 1, len(rows) * NAMED_ROW <= HEIGHT
    low, high = CELL
    width = min(max(WIDTH / columns, low), high)
    height = min(max(HEIGHT / len(rows), low), high)
    names = alt.Axis(labelLimit=170, ticks=False, domain=False, labelOverlap=False, labelFontSize=11)
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
        title="median rank",
        scale=alt.Scale(domain=[0, max(ranks - 1, 1)], range=list(RANKS[theme])),
        legend=alt.Legend(orient="bottom", direction="horizontal", gradientLength=200, titleLimit=260),
    )
    used = base.transform_filter(taken).mark_rect().encode(color=colour)
    drawn = alt.layer(others, free, used).properties(width=columns * width, height=len(rows) * height)
    # inside a concatenation the size applies to the cells alone, without names and legend
    return alt.vconcat(drawn, title=title)
