from __future__ import annotations

import base64
import io
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from dashboard import figures, link_figures, tables
from dashboard.layouts import draw
from dashboard.link_tables import load_classes
from registry.model import Fabric, Profile
from tests.infiniband_data import infiniband

NASTY = "<img src=x onerror=alert(1)> datum.x'\"\\ {{y}}"


def spec(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """The chart's specification, which is checked against Vega-Lite's schema on the way."""
    with alt.data_transformers.enable("default", max_rows=None):
        made: dict[str, Any] = chart.to_dict()
    return made


def rows_of(chart: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for data in chart["datasets"].values() for row in data]


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2."""
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("ramps", [figures.HEAT, link_figures.CAPACITY])
def test_the_hot_end_stands_out_on_light_and_dark_pages(ramps: dict[str, tuple[str, ...]]) -> None:
    light = [luminance(colour) for colour in ramps[figures.LIGHT]]
    dark = [luminance(colour) for colour in ramps[figures.DARK][1:]]  # the first is for no traffic
    assert light[1:] == sorted(light[1:], reverse=True)
    assert dark == sorted(dark)


@pytest.mark.parametrize("theme", [figures.LIGHT, figures.DARK])
@pytest.mark.parametrize("lines", [True, False])
@pytest.mark.parametrize("name", ["ndr-dgx-minhop", "torus-4x4x4-dor"])
def test_congestion_of_every_kind_of_fabric_is_drawn_with_counts_in_the_legend(
    name: str, lines: bool, theme: str
) -> None:
    fabric = infiniband(name)
    seconds = np.zeros(len(fabric.links))
    seconds[[3, 8]] = [2e-3, 1e-3]
    made = spec(link_figures.links_figure(fabric, draw(fabric), "title", theme, seconds=seconds, lines=lines))
    labels = {row["class"] for row in rows_of(made) if "class" in row}
    assert any(label.startswith("1.6 to 2 ms · ") for label in labels)
    marked = [row for row in rows_of(made) if row.get("marked")]
    assert {row["class"] for row in marked} == {label for label in labels if label.startswith("1.6 to 2 ms")}


def test_only_the_part_that_is_asked_for_is_drawn() -> None:
    fabric = infiniband("ndr-dgx-minhop")
    only = np.zeros(len(fabric.links), bool)
    only[:1] = True
    chart = link_figures.links_figure(
        fabric, draw(fabric), "", figures.LIGHT, seconds=only * 1.0, lines=True, only=only
    )
    rows = rows_of(spec(chart))
    assert len([row for row in rows if "link" in row and not row.get("marked")]) <= 1
    assert len([row for row in rows if "host" in row or "switch" in row]) == 2


def test_lines_are_drawn_coldest_first() -> None:
    fabric = infiniband("torus-4x4x4-dor")
    seconds = np.linspace(1, 0, len(fabric.links))
    drawing = draw(fabric)
    made = spec(link_figures.links_figure(fabric, drawing, "", figures.LIGHT, seconds=seconds, lines=True))
    steps = next(
        [row["step"] for row in data]
        for data in made["datasets"].values()
        if len(data) > 1 and "step" in data[0]
    )
    assert steps == sorted(steps)


def test_names_are_data_and_never_part_of_an_expression() -> None:
    fabric = Fabric.from_arcs([NASTY, NASTY + "2"], [0, 1], [1, 0], 1.0)
    made = spec(
        link_figures.links_figure(
            fabric, draw(fabric), "t", figures.LIGHT, seconds=np.array([1.0, 2.0]), lines=True
        )
    )
    made.pop("datasets")
    assert NASTY[:8] not in repr(made)


def test_of_parallel_cables_that_are_equally_hot_the_line_is_still_pointed_out() -> None:
    fabric = Fabric.from_arcs(["a", "b"], [0, 0, 1, 1], [1, 1, 0, 0], 1.0)
    seconds = np.array([0.0, 3.0, 3.0, 0.0])
    made = spec(
        link_figures.links_figure(fabric, draw(fabric), "", figures.LIGHT, seconds=seconds, lines=True)
    )
    assert any(row.get("marked") for row in rows_of(made))


def test_one_colour_a_class() -> None:
    for count in range(1, 7):
        classes = load_classes(np.arange(float(count)), "links")
        paint = link_figures.paint(classes, "legend", figures.HEAT, figures.LIGHT)
        assert len(paint.colours) == len(classes.labels)
        assert len(set(paint.colours)) == len(classes.labels)


def test_the_communication_matrix_is_a_picture_of_the_bytes() -> None:
    profile = Profile.from_edges([0, 1, 2], [1, 0, 3], [10.0, 1000.0, 100.0], ranks=4)
    made = spec(figures.communication_matrix(tables.communication(profile), 4, figures.LIGHT))
    url = next(row["url"] for row in rows_of(made) if "url" in row)
    picture = Image.open(io.BytesIO(base64.b64decode(url.removeprefix("data:image/png;base64,"))))
    pixels = np.asarray(picture)
    assert pixels.shape == (4, 4, 4)
    assert (pixels[..., 3] > 0).tolist() == (tables.communication(profile) > 0).tolist()
    assert pixels[0, 1, :3].tolist() == [0xF9, 0xD4, 0x8B]  # the least, in the coldest colour
    assert pixels[1, 0, :3].tolist() == [0x6A, 0x0A, 0x33]  # the most


@pytest.mark.parametrize("edges", [0, 1])
def test_a_profile_with_no_or_one_pair_is_drawn(edges: int) -> None:
    profile = Profile.from_edges([0] * edges, [1] * edges, [1.0] * edges, ranks=2)
    spec(figures.communication_matrix(tables.communication(profile), 2, figures.DARK))


@pytest.mark.parametrize("values", [{"placed": 0.0}, {"in order": 2e-3, "placed": 1e-3, "lower bound": 5e-4}])
def test_costs_are_drawn_with_their_units(values: dict[str, float]) -> None:
    made = spec(figures.comparison(values, "s", figures.LIGHT))
    shown = {row["series"]: row["shown"] for row in rows_of(made)}
    assert set(shown) == set(values)
    if len(values) > 1:
        assert shown["in order"] == "2 ms"


def test_the_history_draws_every_point_and_the_bound() -> None:
    points = pd.DataFrame(
        {
            "at": pd.to_datetime(["2026-01-01T00:00:00Z"] * 4, utc=True),
            "series": list(tables.SERIES),
            "value": [4.0, 5.0, 2.0, 1.0],
            "placement": "p1",
            "profile": NASTY,
            "cluster": "c",
            "job": "",
        }
    )
    made = spec(figures.history_chart(points, "app on c", "Worst link (ms)", figures.LIGHT))
    assert len(made["layer"]) == 4
    assert len(rows_of(made)) == 4
