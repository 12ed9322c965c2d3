"""Hosts of a job and the ranks on them, switch by switch."""

from __future__ import annotations

import numpy as np
import pytest

from dashboard.figures.placement import RANKS, hosts_figure
from dashboard.figures.style import DARK, LIGHT
from dashboard.tables.hosts import host_cells, with_ranks
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


def test_the_ranks_of_each_cell_are_shown() -> None:
    fabric = infiniband("fattree2-64-traffic")
    allocation = Allocation.of(fabric, fabric.hosts[:4].tolist(), 2)
    found = host_cells(fabric, Neighbours.of(fabric), allocation.hosts)
    cells = with_ranks(found.cells, fabric, allocation.host_of_slot[:7]).set_index("host")
    first, second, third, fourth = (fabric.names[v] for v in allocation.hosts.tolist())
    assert cells.loc[[first, second, third, fourth], "ranks"].tolist() == ["0-1", "2-3", "4-5", "6"]
    assert cells["count"].sum() == 7
    assert cells.loc[first, "middle"] == 0.5
    assert cells.loc[~cells["mine"], "middle"].isna().all()


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_hosts_are_drawn_with_a_title_and_near_ranks_in_near_colours(theme: str) -> None:
    fabric = infiniband("fattree2-64-traffic")
    allocation = Allocation.of(fabric, fabric.hosts[:4].tolist(), 2)
    found = host_cells(fabric, Neighbours.of(fabric), allocation.hosts)
    cells = with_ranks(found.cells, fabric, allocation.host_of_slot)
    made = hosts_figure(found.rows, cells, "Its ranks, placed", 8, theme).to_dict()
    assert made["title"] == "Its ranks, placed"
    bright = [luminance(colour) for colour in RANKS[theme]]
    assert bright == sorted(bright)
