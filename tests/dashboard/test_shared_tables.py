"""Small tables: columns, jobs, hosts, links, changes and measured gains."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.map.layout import cables
from dashboard.pages import jobs
from dashboard.pages.fabric_changes import FASTER, GONE, NEW, SLOWER, UNCHANGED, overlay
from dashboard.pages.job_data import RANKS, hosts_figure
from dashboard.pages.trends_data import Verdict, gain_text, gains_table, times_text, verdict
from dashboard.shared import names as links
from dashboard.shared.cards import DARK, LIGHT
from dashboard.shared.names import host_cells, with_ranks
from dashboard.shared.traffic import folded, in_units, in_utc, numbers
from dashboard.shared.viewer import Viewer
from mapping.traffic.job_loads import Neighbours
from mapping.traffic.measured_gain import MeasuredGain
from registry import units
from registry.model import Allocation, Fabric, Job
from registry.model.job import StoredMeasuredRun
from registry.store.changes import compare
from registry.store.job_lists import JobRow
from registry.store.jobs import StoredJob
from tests.dashboard.test_job import info
from tests.dashboard.test_pages_charts import luminance
from tests.support.fat_tree import at
from tests.support.infiniband_data import infiniband
from tests.support.small_fabrics import adapter_fabrics


def test_columns_have_units_utc_ranges_and_may_miss_values() -> None:
    east = datetime(2026, 1, 1, 2, tzinfo=UTC).astimezone()
    column = in_utc([east, None])
    assert column[0] == pd.Timestamp("2026-01-01 02:00")
    assert pd.isna(column[1])
    table = pd.DataFrame({"time": [0.00123456, 0.0002], "job": ["1", "2"]})
    scaled = in_units(table, {"time": units.SECONDS})
    assert (scaled["time (ms)"].tolist(), scaled["job"].tolist()) == ([1.23, 0.2], ["1", "2"])
    assert numbers([1, 2.5])[:2] == [1.0, 2.5]
    assert np.isnan(numbers([None])).all()
    assert folded([]) == ""
    assert folded([0, 1, 2, 5, 7, 8]) == "0-2, 5, 7-8"


NOW = datetime(2026, 1, 10, tzinfo=UTC)


def row(job: Job, *, placed: bool) -> JobRow:
    stored = StoredJob(id=f"c/{job.id}", cluster="c", job=job, profile=None, as_of=NOW)
    return JobRow(stored=stored, application="cg", placement=info() if placed else None, advice=None)


def test_unknown_values_of_a_job_are_blank() -> None:
    placed = Job(id="1", user="ann", state="RUNNING", hosts=("a", "b"), slots=(2, 3), started_at=NOW)
    rows = [row(placed, placed=True), row(Job(id="2", user="bob"), placed=False)]
    table = jobs.jobs_table(rows, {"c/1": "7, 8"}, Viewer())
    assert table[jobs.STATE].tolist() == ["▶ running", "? unknown"]
    assert table[jobs.JOB].tolist() == ["1 · cg · ann", "2 · cg · bob"]
    assert table["hosts"].tolist() == [2, 0]
    assert table[jobs.DISTANCE].iloc[0] == 2.0
    assert table[[jobs.DISTANCE, jobs.GAIN]].iloc[1].isna().all()
    assert (table[jobs.SHARED].tolist(), table[jobs.STARTED].isna().tolist()) == (["7, 8", ""], [False, True])
    viewer = Viewer(key=b"k")
    assert jobs.jobs_table(rows, {}, viewer)[jobs.JOB].iloc[0] == f"1 · cg · {viewer.name('ann')}"


def test_a_job_has_a_state_base_units_and_a_distance_from_a_bound_above_zero() -> None:
    placed = Job(id="1", user="ann", hosts=("a", "b"), slots=(2, 3), started_at=NOW)
    (found,) = jobs.jobs_file([row(placed, placed=True)], Viewer()).to_dict("records")
    assert (found["ranks"], found[jobs.WORST], found[jobs.DISTANCE], found["cluster"]) == (5, 2e-3, 2.0, "c")
    assert jobs.UNITS == {jobs.WORST: "s"}
    texts = [jobs.state_text(state) for state in ("RUNNING", "COMPLETED", "PENDING", "TIMEOUT")]
    assert texts == ["▶ running", "✓ completed", "◌ pending", "✕ timeout"]
    assert jobs.over_bound(None) is None
    assert jobs.over_bound(replace(info(), bounds={"congestion_seconds": 0.0})) is None
    assert jobs.over_bound(replace(info(), congestion_seconds=None)) is None
    assert math.isclose(jobs.over_bound(info()) or 0.0, 2.0)


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


def test_rows_are_the_switches_of_the_hosts_or_hosts_that_forward_themselves_in_turn() -> None:
    fabric = infiniband("fattree2-64-traffic")
    found = host_cells(fabric, Neighbours.of(fabric), fabric.hosts[:9])
    assert found.rows == ("leaf01", "leaf02")
    places = found.cells.groupby("row")["place"].apply(list).to_dict()
    assert places == {row: list(range(8)) for row in found.rows}
    names = [f"n{number}" for number in range(40)]
    ring = Fabric.from_arcs(names, range(40), [*range(1, 40), 0], 1e9)
    found = host_cells(ring, Neighbours.of(ring), ring.hosts)
    assert (found.rows, found.cells["host"].tolist()) == (("hosts 1 to 32", "hosts 33 to 40"), names)


def test_the_ranks_of_each_cell_are_shown_and_drawn_in_near_colours() -> None:
    fabric = infiniband("fattree2-64-traffic")
    allocation = Allocation.of(fabric, fabric.hosts[:4].tolist(), 2)
    found = host_cells(fabric, Neighbours.of(fabric), allocation.hosts)
    cells = with_ranks(found.cells, fabric, allocation.host_of_slot[:7]).set_index("host")
    first, second, third, fourth = (fabric.names[v] for v in allocation.hosts.tolist())
    assert cells.loc[[first, second, third, fourth], "ranks"].tolist() == ["0-1", "2-3", "4-5", "6"]
    assert cells["count"].sum() == 7
    assert cells.loc[first, "middle"] == 0.5
    assert cells.loc[~cells["mine"], "middle"].isna().all()
    for theme in (LIGHT, DARK):
        made = hosts_figure(found.rows, cells.reset_index(), "Its ranks, placed", 8, theme).to_dict()
        assert made["title"] == "Its ranks, placed"
        bright = [luminance(colour) for colour in RANKS[theme]]
        assert bright == sorted(bright)


def test_hottest_links_are_named_with_ports_and_the_worst_comes_first() -> None:
    fabric = infiniband("ndr-dgx-minhop")
    loads = np.zeros(len(fabric.links))
    row = int(np.flatnonzero(fabric.links.source_adapter >= 0)[0])
    loads[[row, row + 1]] = [2 * fabric.links.capacity[row], fabric.links.capacity[row + 1]]
    rows, table = links.hottest_links(fabric, loads, 10)
    assert rows.tolist() == [row, row + 1]
    assert (table["time"].tolist(), table["of the worst"].tolist()) == ([2.0, 1.0], [1.0, 0.5])
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
    found = links.bundles(fabric, pairs, values)
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
    found, row = links.busier_direction(pairs, values)
    for value, there, back in zip(found, pairs.there, pairs.back, strict=True):
        known = [values[r] for r in (there, back) if not np.isnan(values[r])]
        assert np.array_equal(value, max(known, default=np.nan), equal_nan=True)
    assert np.array_equal(values[row], found, equal_nan=True)


def test_loaded_links_are_sorted_by_the_worse_of_two_placements() -> None:
    fabric = infiniband("fattree2-64-traffic")
    before, after = np.zeros(len(fabric.links)), np.zeros(len(fabric.links))
    before[[3, 9]], after[[9, 4]] = [5.0, 1.0], [2.0, 3.0]
    rows, table = links.loaded_links(fabric, {"before": before, "after": after}, after * 10, None)
    assert rows.tolist() == [3, 4, 9]
    assert table["before"].tolist() == [5, 0, 1]
    assert table["after"].tolist() == [0, 3, 2]
    assert table["load"].tolist() == [0, 30, 20]
    assert links.loaded_links(fabric, {"before": before}, before, 1)[0].tolist() == [3]


Ends = tuple[str, str, int, int]


def ends(fabric: Fabric, row: int) -> Ends:
    links = fabric.links
    return (
        fabric.names[links.source[row]],
        fabric.names[links.target[row]],
        int(links.source_port[row]),
        int(links.target_port[row]),
    )


def counted(fabric: Fabric) -> Counter[Ends]:
    return Counter(ends(fabric, row) for row in range(len(fabric.links)))


@given(adapter_fabrics(), st.integers(0, 5))
def test_every_link_of_both_states_is_there_once(fabric: Fabric, seed: int) -> None:
    rng = np.random.default_rng(seed)
    kept = np.flatnonzero(rng.random(len(fabric.links)) < 0.7)
    other = replace(fabric, links=fabric.links.take(kept))
    for before, after, kind in ((fabric, other, GONE), (other, fabric, NEW)):
        found = overlay(before, after, compare(before, after))
        same, changed = (
            Counter(ends(found.fabric, row) for row in np.flatnonzero(found.kind == k).tolist())
            for k in (UNCHANGED, kind)
        )
        assert same == counted(other)
        assert changed == counted(fabric) - counted(other)
        assert found.differs == (len(kept) < len(fabric.links))


def test_a_change_of_speed_is_shown_by_its_sign_and_what_is_lost_or_renamed_is_still_drawn() -> None:
    fabric = infiniband("ndr-dgx-minhop")
    capacity = fabric.links.capacity.copy()
    capacity[3] *= 2
    capacity[9] /= 2
    after = replace(fabric, links=replace(fabric.links, capacity=capacity))
    found = overlay(fabric, after, compare(fabric, after))
    assert np.flatnonzero(found.kind == FASTER).tolist() == [3]
    assert np.flatnonzero(found.kind == SLOWER).tolist() == [9]
    fabric = infiniband("ndr-dgx-minhop")
    switch, host = int(fabric.switches[0]), int(fabric.hosts[-1])
    names = [*fabric.names]
    names[switch] = "another name"
    links = fabric.links
    kept = np.flatnonzero((links.source != host) & (links.target != host))
    after = replace(fabric, names=tuple(names), links=links.take(kept))
    found = overlay(fabric, after, compare(fabric, after))
    assert "another name" in found.fabric.names
    assert fabric.names[switch] not in found.fabric.names
    gone = np.flatnonzero(found.kind == GONE)
    assert len(gone) == len(links) - len(kept)
    assert all(fabric.names[host] in ends(found.fabric, row)[:2] for row in gone.tolist())


OF_RUN: dict[str, Any] = {"id": "m1", "recorded_at": at(9), "started_at": at(5), "wall_seconds": 1.0}
OF_RUN |= {"cluster": "toy", "application": "cg", "program": "x", "launcher": "MPICH 4", "placement": "p1"}
OF_RUN |= {"ranks": 4, "hosts": ("a", "b"), "slots": (2, 2)}
RUN = StoredMeasuredRun(**OF_RUN, congestion_seconds=2.0, in_order_congestion_seconds=3.0)
WORSE = MeasuredGain(run=RUN, placed=(1.2, 1.3, 1.1), in_order=(1.0, 0.9, 0.95), per_step=False)
QUICKER = replace(WORSE, placed=(0.004, 0.005, 0.006, 0.007), in_order=(0.009, 0.011, 0.01), per_step=True)
ALONE = replace(WORSE, placed=(2.0,), in_order=())


def test_the_verdict_is_that_of_the_rule_and_open_with_few_runs() -> None:
    for one, found in (
        (WORSE, Verdict.WORSE),
        (QUICKER, Verdict.NOT_WORSE),
        (replace(WORSE, placed=(1.2, 1.3)), Verdict.OPEN),
        (replace(WORSE, in_order=(1.0, 0.9)), Verdict.OPEN),
        (ALONE, Verdict.OPEN),
    ):
        assert verdict(one) == found


def test_rows_and_texts_have_medians_gains_and_numbers_of_runs() -> None:
    first, second, third = gains_table([WORSE, QUICKER, ALONE]).to_dict("records")
    assert (first["placed (s)"], first["in order (s)"], first["runs placed"]) == (1.2, 0.95, 3)
    assert first["estimated gain"] == 1.5
    assert first["measured gain"] == pytest.approx(0.95 / 1.2)
    assert first["verdict"] == "▲ measured worse than in order"
    assert (first["time of"], first["launcher"], first["placement"]) == ("run", "MPICH 4", "p1")
    assert (second["runs placed"], second["runs in order"], second["time of"]) == (4, 3, "step")
    assert second["measured gain"] == pytest.approx(0.01 / 0.0055)
    assert second["verdict"] == "● not worse than in order"
    assert math.isnan(third["measured gain"])
    assert math.isnan(third["in order (s)"])
    assert third["runs in order"] == 0
    assert math.isnan(first["other load placed (%)"])
    other = replace(WORSE, placed_other_load=0.0, in_order_other_load=0.1234)
    (loaded,) = gains_table([other]).to_dict("records")
    assert (loaded["other load placed (%)"], loaded["other load in order (%)"]) == (0.0, 12.3)
    assert gains_table([]).empty
    assert times_text(WORSE) == "a run: 1.2 s placed (3 runs), 950 ms in order (3 runs)"
    assert times_text(QUICKER) == "a step: 5.5 ms placed (4 runs), 10 ms in order (3 runs)"
    assert times_text(ALONE) == "a run: 2 s placed (1 run)"
    assert (gain_text(WORSE.gain), gain_text(QUICKER.gain), gain_text(None)) == ("0.79 ×", "1.82 ×", "–")
