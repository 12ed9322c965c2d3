from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from dashboard.layouts.model import cables
from dashboard.tables.links import (
    bundles,
    busier_direction,
    hottest_links,
    link_text,
    loaded_links,
    port_text,
    port_texts,
)
from registry.model import Fabric
from tests.support.infiniband_data import infiniband
from tests.support.small_fabrics import adapter_fabrics


def test_hottest_links_are_named_with_ports_and_the_worst_comes_first() -> None:
    fabric = infiniband("ndr-dgx-minhop")
    loads = np.zeros(len(fabric.links))
    row = int(np.flatnonzero(fabric.links.source_adapter >= 0)[0])
    loads[[row, row + 1]] = [2 * fabric.links.capacity[row], fabric.links.capacity[row + 1]]
    rows, table = hottest_links(fabric, loads, 10)
    assert rows.tolist() == [row, row + 1]
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
    pairs = cables(fabric)
    found = bundles(fabric, pairs, values)
    assert found.cables.sum() == fabric.cable_count
    a, b = pairs.a[found.cable], pairs.b[found.cable]
    assert len(set(zip(a.tolist(), b.tolist(), strict=True))) == len(found)
    ends = np.sort(np.c_[fabric.links.source, fabric.links.target], axis=1)
    for one, other, row, value in zip(a, b, found.row, found.value, strict=True):
        assert value == values[(ends == (one, other)).all(axis=1)].max() == values[row]


@given(adapter_fabrics())
def test_the_hotter_direction_of_a_cable_is_the_one_that_is_known(fabric: Fabric) -> None:
    pairs = cables(fabric)
    values = np.arange(1.0, len(fabric.links) + 1)
    values[::3] = np.nan
    found, row = busier_direction(pairs, values)
    for value, there, back in zip(found, pairs.there, pairs.back, strict=True):
        known = [values[r] for r in (there, back) if not np.isnan(values[r])]
        assert np.array_equal(value, max(known, default=np.nan), equal_nan=True)
    assert np.array_equal(values[row], found, equal_nan=True)


@pytest.mark.parametrize("name", ["ndr-dgx-minhop", "torus-4x4x4-dor"])
def test_texts_of_all_ports_are_those_of_each(name: str) -> None:
    fabric = infiniband(name)
    texts, source, target = port_texts(fabric)
    for row in range(len(fabric.links)):
        assert texts[source[row]] == port_text(fabric, row, "source")
        assert texts[target[row]] == port_text(fabric, row, "target")
    assert texts[0] == ""


def test_loaded_links_are_sorted_by_the_worse_of_two_placements() -> None:
    fabric = infiniband("fattree2-64-traffic")
    before, after = np.zeros(len(fabric.links)), np.zeros(len(fabric.links))
    before[[3, 9]], after[[9, 4]] = [5.0, 1.0], [2.0, 3.0]
    rows, table = loaded_links(fabric, {"before": before, "after": after}, after * 10, None)
    assert rows.tolist() == [3, 4, 9]
    assert table["before"].tolist() == [5, 0, 1]
    assert table["after"].tolist() == [0, 3, 2]
    assert table["load"].tolist() == [0, 30, 20]
    assert loaded_links(fabric, {"before": before}, before, 1)[0].tolist() == [3]
