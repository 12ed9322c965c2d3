"""What the page Trends draws and lists, from columns of placements made here."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import altair as alt
import numpy as np
import pytest

from dashboard.figures import history as drawings
from dashboard.figures.style import DARK, LIGHT
from dashboard.tables.history import (
    FLAGGED,
    POINTS,
    applications_table,
    facts_table,
    option_text,
    panels,
    placements_table,
    points,
    relative,
)
from mapping.traffic.quality import by_application, judge
from registry.model.placement_series import PlacementSeries
from tests.dashboard.test_figures import spec

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


def test_each_application_of_each_cluster_has_a_chart_and_those_that_got_worse_come_first() -> None:
    names = ("cg", "ft", "cg", "cg") + ("cg",) * 6
    clusters = ("c", "c", "d", "c") + ("c",) * 6
    several = series([2.0] * 9 + [5.0], application=names, cluster=clusters)
    found = panels(several, judge(several), np.arange(10))
    assert [(panel.title, panel.flagged) for panel in found] == [
        ("cg on c", 1),
        ("cg on d", 0),
        ("ft on c", 0),
    ]
    assert sorted(np.concatenate([panel.rows for panel in found]).tolist()) == list(range(10))


def test_charts_are_ordered_by_their_newest_regression() -> None:
    names = ("cg", "ft") * 20
    worst = [2.0] * 40
    for row in (20, 38):  # the oldest and the newest regression are both of cg
        worst[row] = 9.0
    worst[31] = 9.0
    several = series(worst, application=names)
    quality = judge(several)
    assert np.flatnonzero(quality.regression).tolist() == [20, 31, 38]
    found = panels(several, quality, np.arange(40))
    assert [(panel.title, panel.flagged) for panel in found] == [("cg on c", 2), ("ft on c", 1)]


def test_charts_hold_the_newest_placements_and_some_older_ones_that_are_flagged() -> None:
    worst = [2.0] * 8 + [5.0] + [2.0] * (POINTS + 50)
    many = series(worst)
    quality = judge(many)
    table = points(many, quality, np.arange(len(worst)), "congestion_seconds")
    assert table["flagged"].sum() == quality.regression.sum() == 1
    assert len(table) == POINTS + 1
    assert table["placement"].iloc[0] == "p8"
    assert table["placement"].iloc[-1] == many.id[-1]
    many = series([2.0, 2.0, 2.0, 5.0] * 200)
    all_flagged = replace(judge(many), regression=np.ones(800, bool))
    table = points(many, all_flagged, np.arange(800), "congestion_seconds")
    assert table["placement"].tolist() == list(many.id[-POINTS - FLAGGED :])


def test_limits_are_drawn_in_the_unit_of_the_cost() -> None:
    quality = judge(WORSE)
    table = points(WORSE, quality, np.arange(10), "congestion_seconds")
    assert table["limit"].iloc[8] == pytest.approx(quality.limit[8] * 1.0)
    assert table["limit"].isna().sum() == 5
    assert points(WORSE, quality, np.arange(10), "hop_bytes")["limit"].isna().all()


def test_a_chart_marks_what_got_worse_and_takes_no_text_for_an_expression() -> None:
    nasty = series([2.0] * 8 + [5.0], application=(NASTY,) * 9, strategy=(NASTY,) * 9)
    table = points(nasty, judge(nasty), np.arange(9), "congestion_seconds")
    drawn = drawings.sparkline(table, f"{NASTY} on c", "Worst link (s)", 1.0, DARK)
    made = spec(
        alt.LayerChart.from_dict({**drawn.spec, "data": {"values": []}})
    )  # checked against the schema
    assert made["layer"][-1]["transform"] == [{"filter": "datum.flagged"}]
    assert drawn.rows.loc[drawn.rows["flagged"], "placement"].tolist() == ["p8"]
    assert made["description"].startswith(f"{NASTY} on c")
    assert "onerror" not in str({name: part for name, part in made.items() if name != "description"})


def test_a_chart_has_the_layers_that_have_rows_and_its_band_ends_at_the_limit() -> None:
    judged = judge(WORSE)
    table = points(WORSE, judged, np.arange(10), "congestion_seconds")
    assert table["centre"].iloc[8] == 2.0  # median of the placements before, of bound 1 s
    drawn = drawings.sparkline(table, "cg on c", "Worst link (ms)", 1e-3, LIGHT)
    marks = [layer["mark"]["type"] for layer in drawn.spec["layer"]]
    assert marks == ["area", "tick", "point", "point"]  # band, bound, proposed, regression
    band = drawn.spec["layer"][0]["encoding"]
    assert (band["y"]["field"], band["y2"]["field"]) == ("limit", "centre")
    assert band["y"]["scale"]["domain"] == [0, 1.05 * 5000.0]
    few = points(series([2.0]), judge(series([2.0])), np.arange(1), "congestion_seconds")
    alone = drawings.sparkline(few, "cg on c", "Worst link (s)", 1.0, LIGHT)
    assert [layer["mark"]["type"] for layer in alone.spec["layer"]] == ["tick", "point"]
    assert alone.spec["encoding"]["x"]["scale"]["domain"] == ["2025-12-31T00:00:00Z", "2026-01-02T00:00:00Z"]


def test_the_list_has_all_costs_and_the_text_of_a_placement_the_worst() -> None:
    table = placements_table(WORSE, judge(WORSE), np.asarray([8, 0]))
    assert table["placement"].tolist() == ["p8", "p0"]
    assert table["Worst link"].tolist() == [5.0, 2.0]
    assert table["over bound"].tolist() == [5.0, 2.0]
    assert table["regression"].tolist() == [True, False]
    named = series([2e-3], job=("4711",))
    assert option_text(named, 0) == "cg · job 4711 · 2 ms · greedy · 2026-01-01 00:00:00 UTC · p0"


def test_two_placements_are_compared_fact_by_fact() -> None:
    facts = facts_table(WORSE, (0, 8)).set_index("fact")
    assert tuple(facts.loc["Worst link"]) == ("2 s", "5 s", "≠")
    assert tuple(facts.loc["Worst link, lower bound"]) == ("1 s", "1 s", "")
    assert tuple(facts.loc["strategy"]) == ("greedy", "greedy", "")
    assert facts.loc["saved at", "B"] == "2026-01-01 08:00:00 UTC"
    costs = relative(WORSE, (0, 8))
    assert costs[costs["cost"] == "Worst link"]["share"].tolist() == [0.4, 1.0]
    assert spec(drawings.dumbbell(costs, DARK))["layer"]


def test_applications_of_two_clusters_are_medians_of_their_placements() -> None:
    both = series([2.0, 3.0, 4.0, 8.0, np.nan], cluster=("c", "c", "c", "d", "d"))
    (first, second) = by_application(both)
    assert (first.cluster, first.placements, first.over_bound) == ("c", 3, 3.0)
    assert (second.cluster, second.placements, second.over_bound) == ("d", 1, 8.0)
    assert second.over_in_order == 2.0
    table = applications_table(both, ["c", "d"])
    assert table["over bound"].tolist() == [3.0, 8.0]
    assert spec(drawings.two_clusters(table, ("c", "d"), LIGHT))["layer"]
    assert applications_table(both, ["c"])["cluster"].tolist() == ["c"]
    unbounded = series([2.0, 3.0], bound_congestion_seconds=np.full(2, np.nan))
    (one,) = by_application(unbounded)
    assert one.placements == 2
    assert np.isnan(one.over_bound)  # counted and not judged
