"""Figures, and the map's picture in the format of the component."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import altair as alt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from dashboard.map.cells import Cells
from dashboard.map.layouts import draw_fabric
from dashboard.map.picture import Item, Picture, Points, pack
from dashboard.pages.job_data import communication_matrix, gauge
from dashboard.shared import link_map as colouring
from dashboard.shared.cards import DARK, HEAT, LIGHT
from dashboard.shared.link_map import link_map
from dashboard.shared.names import communication
from ingest.generate.direct import dragonfly
from ingest.generate.trees import extended_generalised_fat_tree
from registry import units
from registry.model import Fabric, Profile
from tests.support.infiniband_data import infiniband
from tests.support.small_fabrics import adapter_fabrics, plain_fabrics


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


def test_a_gauge_names_each_value_with_three_digits() -> None:
    for points, theme in (
        ({"in order": 0.0}, LIGHT),
        ({"now": 337e-6, "best possible": 337e-6}, DARK),
        ({"best possible": 72.5e-6, "found": 270e-6, "random": 403e-6, "now": 337e-6}, LIGHT),
    ):
        made = spec(gauge(points, theme))
        texts = {row["text"] for row in rows_of(made) if "text" in row}
        assert texts == {f"{name} {units.short(value, 's')}" for name, value in points.items()}
        assert all(text in made["description"] for text in texts)
        if len(points) == 4:
            assert "now 337 µs" in texts
            low, high = made["layer"][0]["encoding"]["x"]["scale"]["domain"]
            assert low < 72.5e-6
            assert high > 403e-6


KINDS = {"u1": np.uint8, "u2": np.uint16, "u4": np.uint32, "f4": np.float32}
MEGABYTE = 1_000_000


def unpacked(blob: bytes) -> dict[str, Any]:
    """The format as the component reads it: header, and an array for each name."""
    assert blob[:4] == b"FMAP"
    length = int.from_bytes(blob[4:8], "little")
    scene: dict[str, Any] = json.loads(blob[8 : 8 + length])
    for name, (kind, offset, count) in scene["arrays"].items():
        assert offset % 8 == 0
        assert offset >= 8 + length
        scene[name] = np.frombuffer(blob, np.dtype(KINDS[kind]).newbyteorder("<"), count, offset)
    return scene


def loads(fabric: Fabric, seed: int = 0) -> colouring.Colouring:
    rng = np.random.default_rng(seed)
    seconds = np.where(rng.random(len(fabric.links)) < 0.3, 0.0, rng.random(len(fabric.links)))
    return colouring.load("title", "legend", seconds)


def luminance(colour: str) -> float:
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("ramps", [HEAT, colouring.CAPACITY])
def test_the_hot_end_stands_out_on_light_and_dark_pages(ramps: dict[str, tuple[str, ...]]) -> None:
    light = [luminance(colour) for colour in ramps[LIGHT]]
    dark = [luminance(colour) for colour in ramps[DARK][1:]]  # the first is for no traffic
    assert light[1:] == sorted(light[1:], reverse=True)
    assert dark == sorted(dark)
    paper = {LIGHT: 1.0, DARK: luminance("#171614")}
    for theme, colours in colouring.DIFFERENCE.items():
        contrast = [abs(luminance(colour) - paper[theme]) for colour in colours]
        assert (max(contrast), min(contrast)) == (contrast[-1], contrast[2])


@given(plain_fabrics() | adapter_fabrics(), st.booleans())
def test_a_picture_is_read_back_as_it_was(fabric: Fabric, lines: bool) -> None:
    drawing = draw_fabric(fabric)
    picture = link_map(fabric, drawing, loads(fabric), lines=lines)
    scene = unpacked(pack(picture))
    assert scene["names"] == [fabric.names[v] for v in picture.vertices]
    for name, values in (("a", picture.a), ("bp", picture.b_port), ("cls", picture.step)):
        assert np.array_equal(scene[name], values)
    assert np.array_equal(scene["there"], picture.there.astype(np.float32), equal_nan=True)
    if isinstance(picture.shape, Cells):
        assert np.array_equal(scene["row"], picture.shape.row)
        starts = np.searchsorted(picture.shape.panel, np.arange(len(picture.shape.panels)))
        assert [panel["start"] for panel in scene["panels"]] == starts.tolist()
    else:
        assert isinstance(picture.shape, Points)
        assert np.allclose(scene["x"], picture.shape.x)


@pytest.mark.parametrize("lines", [True, False])
@pytest.mark.parametrize("name", ["ndr-dgx-minhop", "torus-4x4x4-dor", "irregular-16sw-updown"])
def test_a_picture_has_both_directions_of_each_cable(name: str, lines: bool) -> None:
    fabric = infiniband(name)
    colours = loads(fabric)
    picture = link_map(fabric, draw_fabric(fabric), colours, lines=lines)
    links = fabric.links
    assert len(picture.a) == (len(fabric.neighbour) // 2 if lines else len(links) // 2)
    for k in range(len(picture.a)):
        row, back = int(picture.rows[k]), int(picture.other_rows[k])
        a, b = (int(picture.vertices[end[k]]) for end in (picture.a, picture.b))
        assert {int(links.source[row]), int(links.target[row])} == {a, b}
        assert colours.values[row] >= colours.values[back]
        there, other = (row, back) if int(links.source[row]) == a else (back, row)
        assert (picture.there[k], picture.back[k]) == (colours.values[there], colours.values[other])
        assert picture.ports[picture.a_port[k]].endswith(str(links.source_port[there]))
        assert picture.ports[picture.b_port[k]].endswith(str(links.target_port[there]))


def test_the_legend_counts_every_cable_once_and_the_worst_is_in_its_last_step() -> None:
    fabric = infiniband("ndr-dgx-minhop")
    seconds = np.zeros(len(fabric.links))
    seconds[[3, 8]] = [2e-3, 1e-3]
    picture = link_map(fabric, draw_fabric(fabric), colouring.load("t", "l", seconds), lines=False)
    labels = [step.label for step in picture.steps]
    assert (labels[0], labels[-1]) == ("no traffic · 1,072", "1.6 to 2 ms · 1")
    assert sum(int(label.rsplit(" ", 1)[1].replace(",", "")) for label in labels) == len(picture.a)
    assert (picture.rows[picture.worst], picture.step[picture.worst]) == (3, len(labels) - 1)


def test_steps_of_no_traffic_unknown_values_capacities_and_a_scale_that_pictures_share() -> None:
    colours = colouring.load("t", "l", np.array([1.0, 2.0]), worst=10.0)
    assert colours.step_of(colours.values).tolist() == [2, 2]
    assert colours.steps[-1].text == "8 to 10 s"
    colours = colouring.load("t", "l", np.zeros(3))
    assert [step.text for step in colours.steps] == ["not known", "no traffic"]
    assert colours.step_of(colours.values).tolist() == [1, 1, 1]
    assert colours.marked == ""
    colours = colouring.share("t", "l", np.array([np.nan, 0.0, 0.2, 0.5]))
    assert (colours.step_of(colours.values).tolist(), colours.steps[-1].text) == ([0, 1, 3, 6], "40 to 50 %")
    few = colouring.capacity("t", "l", np.array([25e9, 50e9, 25e9]))
    assert [step.text for step in few.steps[1:]] == ["25 GB/s", "50 GB/s"]
    assert few.step_of(few.values).tolist() == [1, 2, 1]
    many = colouring.capacity("t", "l", np.arange(1.0, 101.0))
    assert len(many.steps) == 6
    assert (np.diff(many.step_of(many.values)) >= 0).all()
    assert np.bincount(many.step_of(many.values))[1:].min() >= 19


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=30))
def test_a_difference_has_five_steps_around_zero(values: list[float]) -> None:
    given_values = np.array(values)
    colours = colouring.difference("t", "l", given_values)
    step = colours.step_of(given_values)
    top = np.abs(given_values).max() or 0.01
    assert (np.abs(given_values[step == 3]) <= colouring.NEAR * top * (1 + 1e-12)).all()
    assert (given_values[step >= 4] > 0).all()
    assert (given_values[step <= 2] <= 0).all()
    assert set(step.tolist()) <= {1, 2, 3, 4, 5}


def test_only_the_requested_part_is_drawn() -> None:
    fabric = infiniband("ndr-dgx-minhop")
    only = np.zeros(len(fabric.links), bool)
    only[5] = True
    picture = link_map(fabric, draw_fabric(fabric), loads(fabric), lines=True, only=only)
    assert len(picture.a) == 1
    assert set(picture.vertices.tolist()) == {int(fabric.links.source[5]), int(fabric.links.target[5])}
    assert isinstance(picture.shape, Points)
    assert {level.text for level in picture.shape.levels} <= {"1 host", "1 leaf switch", "1 tier-2 switch"}
    assert len(picture.shape.levels) == 2


def test_a_pick_is_found_in_both_directions_and_back_and_one_that_cannot_be_is_none() -> None:
    fabric = infiniband("ndr-dgx-minhop")
    picture = link_map(fabric, draw_fabric(fabric), loads(fabric), lines=False)
    for row in (0, 7, len(fabric.links) - 1):
        place = picture.place(Item(link=row))
        assert place is not None
        found = picture.item(place["cable"], None)
        assert found is not None
        assert row in (found.link, int(picture.other_rows[place["cable"]]))
    vertex = picture.place(Item(vertex=11))
    assert vertex is not None
    assert picture.item(None, vertex["vertex"]) == Item(vertex=11)
    impossible: tuple[object, ...] = (None, -1, 10**9, "1", 1.5, [], {})
    for wrong in impossible:
        assert picture.item(wrong, wrong) is None
    assert picture.place(None) is None
    assert picture.place(Item(link=10**6)) is None


def test_the_digest_changes_with_values_only_and_the_name_with_places_only() -> None:
    fabric = infiniband("torus-4x4x4-dor")
    drawing = draw_fabric(fabric)

    def headers(picture: Picture, **more: Any) -> tuple[str, str]:
        scene = unpacked(pack(picture, **more))
        return scene["digest"], scene["drawing"]

    one = headers(link_map(fabric, drawing, loads(fabric, 0), lines=False))
    same = headers(link_map(fabric, drawing, loads(fabric, 0), lines=False), picked=Item(link=3), turn=5)
    other = headers(link_map(fabric, drawing, loads(fabric, 1), lines=False))
    assert one == same
    assert one[1] == other[1]
    assert one[0] != other[0]
    part = np.arange(len(fabric.links)) < 50
    assert headers(link_map(fabric, drawing, loads(fabric), lines=False, only=part))[1] != one[1]


@pytest.mark.parametrize("machine", ["tree", "dragonfly"])
def test_ten_thousand_hosts_take_less_than_a_megabyte(machine: str) -> None:
    fabric = (
        extended_generalised_fat_tree((24, 21, 20), (1, 24, 21), capacity=25e9)
        if machine == "tree"
        else dragonfly(16, 8, 5)
    )
    assert len(fabric.hosts) > 10_000
    assert fabric.cable_count > 30_000
    assert len(pack(link_map(fabric, draw_fabric(fabric), loads(fabric), lines=False))) < MEGABYTE


def test_text_of_a_name_is_data_and_nothing_else() -> None:
    nasty = "</script><img src=x onerror=alert(1)>"
    fabric = Fabric.from_arcs([nasty, "b"], [0, 1], [1, 0], 1.0)
    scene = unpacked(pack(link_map(fabric, draw_fabric(fabric), loads(fabric), lines=True)))
    assert scene["names"] == [nasty, "b"]


def test_errors_have_a_step_for_none_within_and_beyond_the_limits() -> None:
    found = colouring.errors("title", "legend", np.array([np.nan, 0.0, 0.4, 1.0, 1.1, 90.0]))
    assert [found.steps[step].text for step in found.step_of(found.values)] == [
        "not known",
        "no new errors",
        *["errors within the limits"] * 2,
        *["errors beyond the limits"] * 2,
    ]
    assert found.marked
    assert not colouring.errors("title", "legend", np.zeros(3)).marked
