from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from dashboard.layouts import cables, layout
from dashboard.link_tables import (
    bundles,
    capacity_classes,
    hotter,
    hottest_links,
    link_text,
    load_classes,
    matrix_cells,
)
from registry.model import Fabric
from tests.infiniband_data import infiniband
from tests.small_fabrics import adapter_fabrics


def test_load_classes_tell_range_unit_and_count() -> None:
    classes = load_classes(np.array([0.0, 0.001, 0.010, 0.0099]), "links")
    assert classes.labels[0] == "no traffic · 1 links"
    assert classes.labels[1] == "0 to 2 ms · 1"
    assert classes.labels[5] == "8 to 10 ms · 2"
    assert classes.index.tolist() == [0, 1, 5, 5]


def test_two_figures_share_a_scale_that_is_given() -> None:
    classes = load_classes(np.array([1.0, 2.0]), "links", worst=10.0)
    assert classes.index.tolist() == [1, 1]
    assert classes.labels[-1] == "8 to 10 s · 0"


def test_a_fabric_without_traffic_has_one_class() -> None:
    classes = load_classes(np.zeros(3), "cables")
    assert classes.labels == ("no traffic · 3 cables",)
    assert classes.idle


def test_few_capacities_are_told_one_by_one() -> None:
    classes = capacity_classes(np.array([25e9, 50e9, 25e9]), "lines")
    assert classes.labels == ("25 GB/s · 2 lines", "50 GB/s · 1 lines")
    assert classes.index.tolist() == [0, 1, 0]


def test_many_capacities_are_told_in_steps_that_hold_each_once() -> None:
    capacity = np.arange(1.0, 101.0)
    classes = capacity_classes(capacity, "lines")
    assert len(classes.labels) == 5
    assert np.bincount(classes.index).sum() == 100
    assert (np.diff(classes.index) >= 0).all()


def test_hottest_links_are_named_with_ports_and_the_worst_comes_first() -> None:
    fabric = infiniband("ndr-dgx-minhop")
    loads = np.zeros(len(fabric.links))
    row = int(np.flatnonzero(fabric.links.source_adapter >= 0)[0])
    loads[[row, row + 1]] = [2 * fabric.links.capacity[row], fabric.links.capacity[row + 1]]
    table = hottest_links(fabric, loads, 10)
    assert table["time"].tolist() == [2.0, 1.0]
    assert table["of the worst"].tolist() == [1.0, 0.5]
    first = table.iloc[0]
    assert first["from"] == fabric.names[fabric.links.source[row]]
    assert first["from port"].endswith(f"/{fabric.links.source_port[row]}")
    assert first["to port"] == str(fabric.links.target_port[row])
    assert first["kind"] == "host cable"


def test_a_link_without_known_ports_is_named_by_its_ends() -> None:
    fabric = Fabric.from_arcs(["a", "b"], [0], [1], 1.0)
    assert link_text(fabric, 0) == "a → b"


@given(adapter_fabrics())
def test_lines_hold_all_cables_and_are_as_hot_as_the_hottest(fabric: Fabric) -> None:
    values = np.arange(1.0, len(fabric.links) + 1)
    table = bundles(fabric, cables(fabric), values)
    assert table["cables"].sum() == fabric.cable_count
    assert not table.duplicated(["a", "b"]).any()
    ends = np.sort(np.c_[fabric.links.source, fabric.links.target], axis=1)
    for a, b, row, value in table[["a", "b", "row", "value"]].to_numpy():
        assert value == values[(ends == (a, b)).all(axis=1)].max() == values[int(row)]


@pytest.mark.parametrize("name", ["ndr-dgx-minhop", "torus-4x4x4-dor", "mixed-speeds-oversubscribed"])
def test_every_cable_is_one_cell_of_the_tiers(name: str) -> None:
    fabric = infiniband(name)
    pairs = cables(fabric)
    values = np.arange(float(len(fabric.links)))
    cells = matrix_cells(fabric, layout(fabric), pairs, values)
    assert sorted(cells["link"]) == sorted(hotter(pairs, values)[1])
    assert not cells.duplicated(["upper", "lower", "line", "column"]).any()
    assert (cells["value"] == values[cells["link"]]).all()


def test_a_row_of_a_trees_tiers_is_a_switch() -> None:
    fabric = infiniband("ndr-dgx-minhop")
    cells = matrix_cells(fabric, layout(fabric), cables(fabric), fabric.links.capacity)
    for _, panel in cells.groupby(["upper", "lower"]):
        assert (panel.groupby("line")["device"].nunique() == 1).all()
    assert set(zip(cells["upper"], cells["lower"], strict=True)) == {(1, 0), (2, 1)}
