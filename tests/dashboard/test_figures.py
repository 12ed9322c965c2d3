from __future__ import annotations

import base64
import io
from typing import Any

import altair as alt
import numpy as np
import pytest
from PIL import Image

from dashboard.figures.placement import communication_matrix, gauge
from dashboard.figures.style import DARK, LIGHT
from dashboard.tables.placements import communication
from registry import units
from registry.model import Profile


def spec(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """The chart's specification, which is checked against Vega-Lite's schema on the way."""
    with alt.data_transformers.enable("default", max_rows=None):
        made: dict[str, Any] = chart.to_dict()
    return made


def rows_of(chart: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for data in chart["datasets"].values() for row in data]


def test_the_communication_matrix_is_a_picture_of_the_bytes() -> None:
    profile = Profile.from_edges([0, 1, 2], [1, 0, 3], [10.0, 1000.0, 100.0], ranks=4)
    made = spec(communication_matrix(communication(profile), 4, LIGHT))
    url = next(row["url"] for row in rows_of(made) if "url" in row)
    picture = Image.open(io.BytesIO(base64.b64decode(url.removeprefix("data:image/png;base64,"))))
    pixels = np.asarray(picture)
    assert pixels.shape == (4, 4, 4)
    assert (pixels[..., 3] > 0).tolist() == (communication(profile) > 0).tolist()
    assert pixels[0, 1, :3].tolist() == [0xF9, 0xD4, 0x8B]  # the least, in the coldest colour
    assert pixels[1, 0, :3].tolist() == [0x6A, 0x0A, 0x33]  # the most

    for edges in (0, 1):
        few = Profile.from_edges([0] * edges, [1] * edges, [1.0] * edges, ranks=2)
        spec(communication_matrix(communication(few), 2, DARK))


@pytest.mark.parametrize(
    ("points", "theme"),
    [
        ({"in order": 0.0}, LIGHT),
        ({"now": 337e-6, "best possible": 337e-6}, DARK),
        ({"best possible": 72.5e-6, "found": 270e-6, "random": 403e-6, "now": 337e-6}, LIGHT),
    ],
)
def test_a_gauge_names_each_value_with_three_digits(points: dict[str, float], theme: str) -> None:
    made = spec(gauge(points, theme))
    texts = {row["text"] for row in rows_of(made) if "text" in row}
    assert texts == {f"{name} {units.short(value, 's')}" for name, value in points.items()}
    assert all(text in made["description"] for text in texts)
    if len(points) == 4:
        assert "now 337 µs" in texts
        low, high = made["layer"][0]["encoding"]["x"]["scale"]["domain"]
        assert low < 72.5e-6
        assert high > 403e-6
