"""The page Trends: tables and figures, regressions with their cause, comparisons, and measured gain."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import altair as alt
import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from almanac.demo.demo import CLUSTER
from dashboard.pages import trends_data as drawings
from dashboard.pages import trends_data as tables
from dashboard.pages.trends import MEASURE
from dashboard.shared.cards import DARK, LIGHT
from dashboard.shared.placements import history
from dashboard.shared.viewer import Viewer
from mapping.placement.search import SearchOptions
from mapping.questions.place import PlacementRequest, place
from mapping.traffic.job_loads import by_application, judge
from registry.model import Profile
from registry.model.intake import Intake
from registry.model.job import MeasuredRun
from registry.model.placement import PlacementSeries
from tests.dashboard.conftest import Connect, Filled
from tests.dashboard.test_pages_charts import spec
from tests.support.apps import JOBS, address, captions, messages, numbers, page, table
from tests.support.fat_tree import at, fat_tree

NASTY = "<img src=x onerror=alert(1)> datum.x'\"\\ {{y}}"


def series(worst: list[float], **columns: Any) -> PlacementSeries:
    """Placements an hour apart with these worst links (s), all of bound 1 s and 4 s in order."""
    n = len(worst)
    costs = [field.name for field in fields(PlacementSeries) if field.name.endswith(("seconds", "hop_bytes"))]
    texts = {"cluster": "c", "application": "cg", "profile": "f1", "profile_name": "cg_16"}
    texts |= {"role": "proposed", "strategy": "greedy"}
    numbers = dict.fromkeys(costs, np.nan) | {"hop_bytes": 1e6, "average_dilation": 2.0}
    numbers |= {"bound_congestion_seconds": 1.0, "in_order_congestion_seconds": 4.0}
    numbers |= {"in_order_average_dilation": np.nan}
    plain: dict[str, Any] = {
        field.name: (texts.get(field.name, ""),) * n for field in fields(PlacementSeries)
    }
    plain |= {name: np.full(n, value) for name, value in numbers.items()}
    plain |= {"congestion_seconds": np.asarray(worst), "network_congestion_seconds": np.asarray(worst) / 2}
    plain |= {"id": tuple(f"p{k}" for k in range(n)), "ranks": np.full(n, 16), "complete": np.ones(n, bool)}
    plain["recorded_at"] = np.datetime64("2026-01-01", "us") + np.arange(n) * np.timedelta64(1, "h")
    return PlacementSeries(**{name: columns.get(name, plain[name]) for name in plain})


WORSE = series([2.0] * 8 + [5.0] + [2.0])


def test_charts_of_applications_come_by_their_newest_regression() -> None:
    names, clusters = ("cg", "ft", "cg") + ("cg",) * 7, ("c", "c", "d") + ("c",) * 7
    several = series([2.0] * 9 + [5.0], application=names, cluster=clusters)
    found = tables.panels(several, judge(several), np.arange(10))
    flagged = [(panel.title, panel.flagged) for panel in found]
    assert flagged == [("cg on c", 1), ("cg on d", 0), ("ft on c", 0)]
    assert sorted(np.concatenate([panel.rows for panel in found]).tolist()) == list(range(10))
    worst = [2.0] * 40
    for row in (20, 31, 38):  # the oldest and the newest regression are both of cg
        worst[row] = 9.0
    several = series(worst, application=("cg", "ft") * 20)
    quality = judge(several)
    assert np.flatnonzero(quality.regression).tolist() == [20, 31, 38]
    found = tables.panels(several, quality, np.arange(40))
    assert [(panel.title, panel.flagged) for panel in found] == [("cg on c", 2), ("ft on c", 1)]


def test_charts_hold_the_newest_placements_and_some_older_ones_that_are_flagged() -> None:
    worst = [2.0] * 8 + [5.0] + [2.0] * (tables.POINTS + 50)
    many = series(worst)
    quality = judge(many)
    table = tables.points(many, quality, np.arange(len(worst)), "congestion_seconds")
    assert table["flagged"].sum() == quality.regression.sum() == 1
    assert len(table) == tables.POINTS + 1
    assert table["placement"].iloc[0] == "p8"
    assert table["placement"].iloc[-1] == many.id[-1]
    many = series([2.0, 2.0, 2.0, 5.0] * 200)
    all_flagged = replace(judge(many), regression=np.ones(800, bool))
    table = tables.points(many, all_flagged, np.arange(800), "congestion_seconds")
    assert table["placement"].tolist() == list(many.id[-tables.POINTS - tables.MOST_FLAGGED :])


def test_a_chart_has_limits_in_the_unit_of_the_cost_and_layers_that_have_rows() -> None:
    quality = judge(WORSE)
    table = tables.points(WORSE, quality, np.arange(10), "congestion_seconds")
    assert table["limit"].iloc[8] == pytest.approx(quality.limit[8] * 1.0)
    assert table["limit"].isna().sum() == 5
    assert tables.points(WORSE, quality, np.arange(10), "hop_bytes")["limit"].isna().all()
    assert table["centre"].iloc[8] == 2.0  # median of the placements before, of bound 1 s
    drawn = drawings.sparkline(table, "cg on c", "Worst link (ms)", 1e-3, LIGHT)
    marks = [layer["mark"]["type"] for layer in drawn.spec["layer"]]
    assert marks == ["area", "tick", "point", "point"]  # band, bound, proposed, regression
    band = drawn.spec["layer"][0]["encoding"]
    assert (band["y"]["field"], band["y2"]["field"]) == ("limit", "centre")
    assert band["y"]["scale"]["domain"] == [0, 1.05 * 5000.0]
    few = tables.points(series([2.0]), judge(series([2.0])), np.arange(1), "congestion_seconds")
    alone = drawings.sparkline(few, "cg on c", "Worst link (s)", 1.0, LIGHT)
    assert [layer["mark"]["type"] for layer in alone.spec["layer"]] == ["tick", "point"]
    assert alone.spec["encoding"]["x"]["scale"]["domain"] == ["2025-12-31T00:00:00Z", "2026-01-02T00:00:00Z"]


def test_a_chart_marks_what_got_worse_and_takes_no_text_for_an_expression() -> None:
    nasty = series([2.0] * 8 + [5.0], application=(NASTY,) * 9, strategy=(NASTY,) * 9)
    table = tables.points(nasty, judge(nasty), np.arange(9), "congestion_seconds")
    drawn = drawings.sparkline(table, f"{NASTY} on c", "Worst link (s)", 1.0, DARK)
    made = spec(alt.LayerChart.from_dict({**drawn.spec, "data": {"values": []}}))  # fits the schema
    assert made["layer"][-1]["transform"] == [{"filter": "datum.flagged"}]
    assert drawn.rows.loc[drawn.rows["flagged"], "placement"].tolist() == ["p8"]
    assert made["description"].startswith(f"{NASTY} on c")
    assert "onerror" not in str({name: part for name, part in made.items() if name != "description"})


def test_the_list_has_all_costs_and_the_text_of_a_placement_the_worst() -> None:
    table = tables.placements_table(WORSE, judge(WORSE), np.asarray([8, 0]))
    columns = ["placement", "Worst link", "over bound", "regression"]
    assert table[columns].to_numpy().tolist() == [["p8", 5.0, 5.0, True], ["p0", 2.0, 2.0, False]]
    named = series([2e-3], job=("4711",))
    assert tables.option_text(named, 0) == "cg · job 4711 · 2 ms · greedy · 2026-01-01 00:00:00 UTC · p0"


def test_two_placements_are_compared_fact_by_fact() -> None:
    facts = tables.facts_table(WORSE, (0, 8)).set_index("fact")
    assert tuple(facts.loc["Worst link"]) == ("2 s", "5 s", "≠")
    assert tuple(facts.loc["Worst link, lower bound"]) == ("1 s", "1 s", "")
    assert tuple(facts.loc["strategy"]) == ("greedy", "greedy", "")
    assert facts.loc["saved at", "B"] == "2026-01-01 08:00:00 UTC"
    costs = tables.relative(WORSE, (0, 8))
    assert costs[costs["cost"] == "Worst link"]["share"].tolist() == [0.4, 1.0]
    assert spec(drawings.dumbbell(costs, DARK))["layer"]


def test_applications_of_two_clusters_are_medians_of_their_placements() -> None:
    both = series([2.0, 3.0, 4.0, 8.0, np.nan], cluster=("c", "c", "c", "d", "d"))
    (first, second) = by_application(both)
    assert (first.cluster, first.placements, first.over_bound) == ("c", 3, 3.0)
    assert (second.cluster, second.placements, second.over_bound) == ("d", 1, 8.0)
    assert second.over_in_order == 2.0
    table = tables.applications_table(both, ["c", "d"])
    assert table["over bound"].tolist() == [3.0, 8.0]
    assert spec(drawings.two_clusters(table, ("c", "d"), LIGHT))["layer"]
    assert tables.applications_table(both, ["c"])["cluster"].tolist() == ["c"]
    unbounded = series([2.0, 3.0], bound_congestion_seconds=np.full(2, np.nan))
    (one,) = by_application(unbounded)
    assert one.placements == 2
    assert np.isnan(one.over_bound)  # counted and not judged


TRENDS = "trends"


def test_each_application_has_a_row_and_the_cluster_filters_them(filled: Filled) -> None:
    app = page(filled.connect, TRENDS)
    assert set(table(app, "placement")["placement"]) == {filled.first, filled.second, filled.alone}
    bold = [one.value for one in app.markdown if one.value.startswith("**")]
    assert len(bold) == 2
    app.selectbox(key="choose cluster").set_value("tree").run()
    assert list(table(app, "placement")["placement"]) == [filled.alone]
    assert address(app)["cluster"] == "tree"


def test_a_regression_names_its_cause_and_is_compared_with_the_last_good_one(connect: Connect) -> None:
    with connect() as registry:
        (regression,) = history(registry, Viewer()).regressions
    assert regression.changed
    app = page(connect, TRENDS, cluster=CLUSTER)
    assert f"{regression.ratio:.3g} ×, limit {regression.limit:.3g} ×" in captions(app)
    assert f"Changed: {', '.join(regression.changed)}" in captions(app).splitlines()
    app.button(key="compare 0").click().run()
    assert (address(app)["a"], address(app)["b"]) == (regression.last_good, regression.id)
    facts = table(app, "differs").set_index("fact")
    assert facts.loc["snapshot", "differs"] == "≠"


def test_two_placements_are_compared_and_two_clusters(filled: Filled) -> None:
    app = page(filled.connect, TRENDS, a=filled.first, b=filled.second)
    facts = table(app, "differs").set_index("fact")
    assert (facts.loc["profile", "differs"], facts.loc["ranks on hosts", "differs"]) == ("", "≠")
    assert (table(app, "link").iloc[:, 3].diff().dropna() <= 1e-9).all()
    unknown = page(filled.connect, TRENDS, a=filled.first[:-1] + "x", b=filled.second)
    assert "There is no placement" in messages(unknown)
    app = page(filled.connect, TRENDS, compare="clusters")
    facts = table(app, "fact").set_index("fact")
    assert (facts.loc["hosts", "A"], facts.loc["hosts", "B"]) == ("121", "63")
    assert set(table(app, "over bound", "over in order")["cluster"]) == {"ndr", "tree"}


GAIN = "Measured gain"


@pytest.fixture
def placed(nothing: Connect) -> MeasuredRun:
    """A run with the only placement, which is stored; the run is not."""
    pairs = Profile.from_edges([0, 1], [2, 3], [8e6, 8e6], ranks=4, name="pairs", application="wrf")
    with nothing() as registry:
        registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree(), profiles=(pairs,)))
        fabric = registry.fabrics.read("toy").fabric
        hosts = tuple(fabric.names[host] for host in fabric.hosts[:2].tolist())
        few: dict[str, Any] = {"slots": 2, "options": SearchOptions(steps=100)}
        found = place(
            registry, PlacementRequest(profile="pairs", cluster="toy", hosts=hosts, **few)
        ).record_id
    ran: dict[str, Any] = {"cluster": "toy", "application": "wrf", "program": "x", "launcher": "MPICH 4"}
    ran |= {"ranks": 4, "slots": (2, 2), "started_at": at(0), "wall_seconds": 1.0, "placement": found}
    return MeasuredRun(hosts=hosts, **ran)


def save(connect: Connect, run: MeasuredRun, *seconds: float) -> None:
    with connect() as registry:
        for time in seconds:
            registry.measured_runs.save(replace(run, wall_seconds=time))


def listed(app: AppTest) -> list[dict[Any, Any]]:
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


def test_a_saved_run_is_shown_and_judged_with_three_of_each(nothing: Connect, placed: MeasuredRun) -> None:
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
