from __future__ import annotations

import numpy as np
from hypothesis import given

from dashboard.layouts.model import cables
from dashboard.tables.links import (
    bundles,
    busier_direction,
    hottest_links,
    loaded_links,
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
    near, far = fabric.names[fabric.links.source[row]], fabric.names[fabric.links.target[row]]
    adapter = fabric.adapters.names[fabric.links.source_adapter[row]].removeprefix(near)
    assert first["from"] == f"{near}{adapter}:{fabric.links.source_port[row]}"
    assert first["to"] == f"{far}:{fabric.links.target_port[row]}"
    assert first["kind"] == "host cable"


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
