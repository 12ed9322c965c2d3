"""Measured gain on the page of a job and on Trends: nothing, then a number, then a verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard.views.measured import MEASURE
from mapping.placement.search.options import SearchOptions
from mapping.service.placing import place
from mapping.service.request import PlacementRequest
from registry.model import Profile
from registry.model.intake import Intake
from registry.model.measured_run import MeasuredRun
from tests.dashboard.conftest import Connect
from tests.support.apps import JOBS, captions, numbers, page
from tests.support.fat_tree import at, fat_tree

TRENDS = "trends"
GAIN = "Measured gain"


@pytest.fixture
def placed(nothing: Connect) -> MeasuredRun:
    """A run with the only placement, which is stored; the run is not."""
    pairs = Profile.from_edges([0, 1], [2, 3], [8e6, 8e6], ranks=4, name="pairs", application="wrf")
    with nothing() as registry:
        registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree(), profiles=(pairs,)))
        fabric = registry.fabrics.read("toy").fabric
        hosts = tuple(fabric.names[host] for host in fabric.hosts[:2].tolist())
        request = PlacementRequest(
            profile="pairs", cluster="toy", hosts=hosts, slots=2, options=SearchOptions(steps=100)
        )
        found = place(registry, request).record_id
    return MeasuredRun(
        cluster="toy",
        application="wrf",
        program="x",
        ranks=4,
        launcher="MPICH 4",
        hosts=hosts,
        slots=(2, 2),
        placement=found,
        started_at=at(0),
        wall_seconds=1.0,
    )


def save(connect: Connect, run: MeasuredRun, *seconds: float) -> None:
    with connect() as registry:
        for time in seconds:
            registry.measured_runs.save(replace(run, wall_seconds=time))


def listed(app: AppTest) -> list[dict[Any, Any]]:
    """The rows of measured gains, if the page has any."""
    tables = [one.value for one in app.dataframe if "measured gain" in one.value.columns]
    return [row for table in tables for row in table.to_dict("records")]


def test_without_a_measured_run_one_line_says_how(nothing: Connect, placed: MeasuredRun) -> None:
    app = page(nothing, JOBS, placement=placed.placement or "", tab="runs")
    assert GAIN not in numbers(app)
    assert not listed(app)
    app = page(nothing, TRENDS)
    assert [MEASURE in one.value for one in app.caption].count(True) == 1
    assert GAIN not in [one.value for one in app.header]
    assert not listed(app)


def test_a_run_is_shown_when_it_is_saved_and_judged_when_there_are_three_of_each(
    nothing: Connect, placed: MeasuredRun
) -> None:
    shown = {"placement": placed.placement or "", "tab": "runs"}
    in_order = replace(placed, placement=None)
    page(nothing, TRENDS)
    save(nothing, placed, 1.2)
    st.cache_resource.clear()  # all viewers share what a page reads for 25 s
    app = page(nothing, JOBS, **shown)
    assert numbers(app)[GAIN] == "–"
    assert "a run: 1.2 s placed (1 run)" in captions(app)
    save(nothing, in_order, 0.9, 1.0)
    save(nothing, placed, 1.3, 1.1)
    st.cache_resource.clear()
    app = page(nothing, TRENDS)
    (row,) = listed(app)
    assert (row["verdict"], row["runs placed"], row["runs in order"]) == ("○ too few runs to judge", 3, 2)
    assert row["measured gain"] == pytest.approx(0.95 / 1.2)
    assert not [one for one in app.caption if MEASURE in one.value]
    save(nothing, in_order, 0.95)
    st.cache_resource.clear()
    app = page(nothing, TRENDS, application="wrf")
    assert [row["verdict"] for row in listed(app)] == ["▲ measured worse than in order"]
    app = page(nothing, JOBS, **shown)
    assert numbers(app)[GAIN] == "0.79 ×"
    assert "error: measured worse than in order" in captions(app)
    assert "a run: 1.2 s placed (3 runs), 950 ms in order (3 runs)" in captions(app)
    assert [row["verdict"] for row in listed(app)] == ["▲ measured worse than in order"]


def test_a_second_program_with_the_same_placement_is_counted(nothing: Connect, placed: MeasuredRun) -> None:
    save(nothing, placed, 1.0)
    save(nothing, replace(placed, program="y"), 0.002)
    app = page(nothing, JOBS, placement=placed.placement or "", tab="runs")
    assert "1 more program: see Runs" in captions(app)
    assert sorted(row["placed (s)"] for row in listed(app)) == [0.002, 1.0]
