"""Who sends to whom, as a picture."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd
from PIL import Image

from dashboard.figures.colours import HEAT
from dashboard.figures.layers import layers
from registry import units
from registry.model import Floats


def communication_matrix(matrix: Floats, ranks: int, theme: str) -> alt.LayerChart:
    """Bytes from rank (down) to rank (across) as a picture, logarithmic.

    Parameters
    ----------
    matrix : float64[k, k]
        Of `dashboard.tables.placements.communication`.
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
            x2="x2",
            y=alt.Y("y:Q", scale=down, title="from rank", axis=alt.Axis(grid=False)),
            y2="y2",
            url="url:N",
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
    return layers(image, scale).properties(title="Who sends to whom", width=side, height=side)


def _png(matrix: Floats, low: float, high: float, ramp: Sequence[str]) -> str:
    """The matrix as a picture in a data address: nothing where no bytes are sent."""
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
