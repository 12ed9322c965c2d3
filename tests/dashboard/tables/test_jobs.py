"""Jobs, hosts and loaded links as tables, and tables as files: pure functions."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard import figures
from dashboard.figures.placement import RANKS, hosts_figure
from dashboard.tables.hosts import host_cells, with_ranks
from dashboard.tables.links import loaded_links
from dashboard.widgets.tables import csv_text
from mapping.traffic.fragmentation import Neighbours
from registry.model import Allocation, Fabric
from tests.dashboard.figures.test_link_map import luminance
from tests.support.infiniband_data import infiniband

FABRICS = ("ndr-dgx-minhop", "torus-4x4x4-dor", "fattree2-64-traffic")


@pytest.mark.parametrize("name", FABRICS)
def test_every_host_near_a_jobs_hosts_is_one_cell(name: str) -> None:
    fabric = infiniband(name)
    near, hosts = Neighbours.of(fabric), fabric.hosts[::5]
    found = host_cells(fabric, near, hosts)
    cells = found.cells
    assert not cells.duplicated(["row", "place"]).any()
    assert set(cells.loc[cells["mine"], "host"]) == {fabric.names[v] for v in hosts.tolist()}
    touched = set(near.group[hosts].tolist())
    expected = {fabric.names[v] for v in fabric.hosts.tolist() if near.group[v] in touched}
    assert set(cells["host"]) == expected
    assert set(cells["row"]) == set(found.rows)


def test_rows_are_the_switches_that_the_hosts_hang_on() -> None:
    fabric = infiniband("fattree2-64-traffic")
    found = host_cells(fabric, Neighbours.of(fabric), fabric.hosts[:9])
    assert found.rows == ("leaf01", "leaf02")
    assert found.cells.groupby("row")["place"].apply(list).to_dict() == {
        "leaf01": list(range(8)),
        "leaf02": list(range(8)),
    }


def test_hosts_that_forward_themselves_run_on_in_rows() -> None:
    names = [f"n{number}" for number in range(40)]
    ring = Fabric.from_arcs(
        names,
        list(range(40)),
        [*range(1, 40), 0],
        1e9,
        forwards=np.ones(40, bool),
        slots=np.ones(40, np.int32),
    )
    found = host_cells(ring, Neighbours.of(ring), ring.hosts)
    assert found.rows == ("hosts 1 to 32", "hosts 33 to 40")
    assert found.cells["host"].tolist() == names


def test_the_ranks_of_each_cell_are_told() -> None:
    fabric = infiniband("fattree2-64-traffic")
    allocation = Allocation.of(fabric, fabric.hosts[:4].tolist(), 2)
    found = host_cells(fabric, Neighbours.of(fabric), allocation.hosts)
    cells = with_ranks(found.cells, fabric, allocation.host_of_slot[:7]).set_index("host")
    first, second, third, fourth = (fabric.names[v] for v in allocation.hosts.tolist())
    assert cells.loc[[first, second, third, fourth], "ranks"].tolist() == ["0-1", "2-3", "4-5", "6"]
    assert cells["count"].sum() == 7
    assert cells.loc[first, "middle"] == 0.5
    assert cells.loc[~cells["mine"], "middle"].isna().all()


@pytest.mark.parametrize("theme", [figures.LIGHT, figures.DARK])
def test_hosts_are_drawn_with_a_title_and_near_ranks_in_near_colours(theme: str) -> None:
    fabric = infiniband("fattree2-64-traffic")
    allocation = Allocation.of(fabric, fabric.hosts[:4].tolist(), 2)
    found = host_cells(fabric, Neighbours.of(fabric), allocation.hosts)
    cells = with_ranks(found.cells, fabric, allocation.host_of_slot)
    made = hosts_figure(found.rows, cells, "Its ranks, placed", 8, theme).to_dict()
    assert made["title"] == "Its ranks, placed"
    bright = [luminance(colour) for colour in RANKS[theme]]
    assert bright == sorted(bright)


def test_loaded_links_stand_in_the_order_of_the_worse_of_two_placements() -> None:
    fabric = infiniband("fattree2-64-traffic")
    before, after = np.zeros(len(fabric.links)), np.zeros(len(fabric.links))
    before[[3, 9]], after[[9, 4]] = [5.0, 1.0], [2.0, 3.0]
    rows, table = loaded_links(fabric, {"before": before, "after": after}, after * 10, None)
    assert rows.tolist() == [3, 4, 9]
    assert table["before"].tolist() == [5, 0, 1]
    assert table["after"].tolist() == [0, 3, 2]
    assert table["load"].tolist() == [0, 30, 20]
    assert loaded_links(fabric, {"before": before}, before, 1)[0].tolist() == [3]


@given(st.lists(st.text(max_size=12).filter(lambda text: "\0" not in text and "\r" not in text), max_size=5))
def test_no_cell_of_a_file_begins_as_a_formula(names: list[str]) -> None:
    text = csv_text(pd.DataFrame({"name": names, "number": -1.5}))
    read = pd.read_csv(io.StringIO(text), keep_default_na=False, dtype={"name": str})
    assert not any(str(name).startswith(("=", "+", "-", "@", "\t")) for name in read["name"])
    assert (read["number"] == -1.5).all()
    assert [name.removeprefix("'") for name in read["name"]] == [name.removeprefix("'") for name in names]


def test_times_and_nothing_are_written_plainly() -> None:
    at = pd.to_datetime(pd.Series(["2026-01-02T03:04:05", None]))
    assert csv_text(pd.DataFrame({"at": at, "n": [1.0, np.nan]})) == "at,n\n2026-01-02T03:04:05Z,1.0\n,\n"


def test_a_file_names_base_units_behind_its_columns() -> None:
    table = pd.DataFrame({"load": [1.0], "job": ["7"]})
    assert csv_text(table, {"load": "s", "not there": "B"}) == "load (s),job\n1.0,7\n"
    assert list(table.columns) == ["load", "job"]
