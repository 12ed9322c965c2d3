"""Simulated runs as tables and pictures, from runs made here."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import altair as alt
import numpy as np

from dashboard.figures import simulated as drawings
from dashboard.figures.style import DARK, LIGHT
from dashboard.tables.simulated import (
    POINTS,
    SimulatedRuns,
    facts_table,
    label,
    latencies,
    newest_alike,
    option_text,
    over_time,
    predicted,
    replay,
    runs_table,
    sent_text,
)
from registry import units
from registry.model import Simulation
from registry.records.simulations import SimulationInfo, StoredSimulation
from tests.dashboard.tables.test_history import NASTY, series
from tests.dashboard.test_figures import spec
from tests.registry.model.test_trace import simulation

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def info(number: int, placement: str, **changed: Any) -> SimulationInfo:
    """A run that was saved so many minutes after noon."""
    found: dict[str, Any] = {
        field.name: getattr(simulation(), field.name, None) for field in fields(SimulationInfo)
    }
    found |= {"id": f"s{number}", "recorded_at": NOON + timedelta(minutes=number), "placement": placement}
    found |= {"cluster": "c", "snapshot": "c/1", "profile": "f1", "trace": "t1", "code_version": "1"}
    found |= {"median_latency_seconds": 0.5, "latency_99_seconds": 0.9, "max_latency_seconds": 1.0}
    found |= {"parameters": {"scale": 2.0, "packet_bytes": 2048}, "wall_seconds": 1.0}
    return SimulationInfo(**(found | changed))


def stored(run: SimulationInfo, result: Simulation) -> StoredSimulation:
    same = ("id", "cluster", "recorded_at", "placement", "profile", "trace", "parameters")
    of_run = {name: getattr(run, name) for name in same}
    return StoredSimulation(**of_run, content=run.snapshot, simulation=result)


def view(*runs: SimulationInfo, worst: tuple[float, ...] = (2.0, 3.0, 5.0), **columns: Any) -> SimulatedRuns:
    """Runs, the newest first, of placements p0, p1, ... with these worst links."""
    placed = series(list(worst), **columns)
    row_of = {name: row for row, name in enumerate(placed.id)}
    newest = tuple(sorted(runs, key=lambda run: run.recorded_at, reverse=True))
    return SimulatedRuns(runs=newest, series=placed, row_of=row_of)


def test_the_list_has_costs_of_the_placement_and_of_the_simulation() -> None:
    seen = view(info(0, "p0"), info(1, "p2"), info(2, "elsewhere", trace=None, parameters={"rounds": 3}))
    table = runs_table(seen, seen.runs)
    assert table["run"].tolist() == ["s2", "s1", "s0"]
    assert table["throughput"].tolist() == [25.0] * 3
    np.testing.assert_array_equal(table["Worst link"], [np.nan, 5.0, 2.0])
    assert table["application"].tolist() == ["", "cg", "cg"]
    assert table["sent"].tolist() == ["3 rounds", *["trace t1, 2 times as fast"] * 2]
    text = "cg · greedy · 4 s · p0 · 2026-01-01 12:00:00 UTC · s0"
    assert option_text(seen, info(0, "p0")) == text
    for parameters, sent in (
        ({}, "trace t1, as recorded"),
        ({"scale": "inf"}, "trace t1, all at once"),
        ({"scale": 0.25, "first": 10}, "trace t1, 0.25 times as fast, first 10 messages"),
    ):
        assert sent_text(info(0, "p0", parameters=parameters)) == sent


def test_runs_are_one_replay_where_only_the_placement_differs() -> None:
    one = info(0, "p0")
    assert replay(one) == replay(info(1, "p1", completion_seconds=9.0, code_version="2", wall_seconds=3.0))
    others: dict[str, Any] = {"cluster": "d", "snapshot": "c/2", "profile": "f2", "trace": None}
    others |= {"mode": "flits", "routing": "up-down", "seed": 4}
    others |= {"parameters": {"scale": 2.0, "packet_bytes": 4096}}
    changed = {replay(info(0, "p0", **{name: value})) for name, value in others.items()}
    assert len({replay(one), *changed}) == 9


def test_the_newest_run_of_each_placement_of_the_newest_replay_is_chosen_the_oldest_first() -> None:
    runs = [info(0, "p0"), info(1, "p1"), info(2, "p1"), info(3, "p2", seed=9), info(4, "p2")]
    newest = runs[::-1]
    assert [run.id for run in newest_alike(newest, 6)] == ["s0", "s2", "s4"]
    assert [run.id for run in newest_alike(newest, 2)] == ["s2", "s4"]
    assert [run.id for run in newest_alike(newest[1:], 6)] == ["s3"]


def test_runs_are_compared_and_differences_are_marked() -> None:
    runs = [info(0, "p0"), info(1, "p2", seed=4)]
    faster = simulation(completion_seconds=2.0, link_busy_seconds=[1.0, 0.0, 0.5])
    facts = facts_table(view(*runs), [stored(runs[0], simulation()), stored(runs[1], faster)])
    facts = facts.set_index("fact")
    assert tuple(facts.loc["completion"]) == ("4 s", "2 s", "≠")
    assert tuple(facts.loc["throughput over that of A"]) == ("1.000", "2.000", "≠")
    assert tuple(facts.loc["busiest link"]) == ("75.0 % of the run", "50.0 % of the run", "≠")
    assert tuple(facts.loc["Worst link, estimated"]) == ("2 s", "5 s", "≠")
    assert tuple(facts.loc["sent"]) == ("trace t1, 2 times as fast", "trace t1, 2 times as fast", "")
    assert tuple(facts.loc["network"]) == ("packet_bytes 2048", "packet_bytes 2048", "")
    assert facts.loc["seed", "differs"] == "≠"
    assert tuple(facts.loc["50 % latency"])[:2] == ("500 ms", "500 ms")


def test_nothing_delivered_is_shown_without_a_ratio() -> None:
    run = info(0, "p0", completion_seconds=0.0, delivered_bytes=0.0)
    nothing = simulation(
        completion_seconds=0.0, delivered_bytes=0.0, delivered_at=[], delivered=[], latency_over_time=[]
    )
    facts = facts_table(view(run), [stored(run, nothing)]).set_index("fact")
    assert (facts.loc["throughput over that of A", "A"], facts.loc["completion", "A"]) == ("", "0 s")
    assert facts.loc["throughput", "A"] == "–"
    points = over_time({"A": nothing})
    assert points[["run", "at", "delivered"]].to_numpy().tolist() == [["A", 0.0, 0.0]]
    for what in ("delivered", "latency"):
        assert spec(drawings.over_time(points, what, "Delivered", units.BYTES, LIGHT))


def test_points_begin_with_nothing_and_long_runs_are_thinned() -> None:
    long = np.arange(1.0, 4001.0)
    runs = {
        "A": simulation(),
        "B": simulation(delivered_at=long, delivered=long, latency_over_time=long),
    }
    points = over_time(runs)
    first = points[points["run"] == "A"]
    assert first["at"].tolist() == [0.0, 2.0, 4.0]
    assert first["delivered"].tolist() == [0.0, 80.0, 100.0]
    assert first["latency"].tolist()[1:] == [0.3, 0.5]
    second = points[points["run"] == "B"]
    assert (len(second), second["at"].iloc[0], second["at"].iloc[-1]) == (POINTS, 0.0, 4000.0)


def test_latencies_are_shown_at_the_stored_percentiles_and_on_a_linear_scale_if_one_is_zero() -> None:
    table = latencies({"A": simulation()})
    assert table["percentile"].tolist() == ["0", "1", "5", "25", "50", "75", "95", "99", "99.9", "100"]
    assert table["latency"].iloc[[0, -1]].tolist() == [0.1, 1.0]
    assert spec(drawings.latencies(table, LIGHT))["encoding"]["y"]["scale"]["type"] == "log"
    zero = latencies({"A": simulation(latency_seconds=np.linspace(0.0, 1.0, 10))})
    assert "type" not in spec(drawings.latencies(zero, LIGHT))["encoding"]["y"]["scale"]


def test_only_complete_runs_of_evaluated_placements_are_compared_with_estimates() -> None:
    runs = [info(0, "p0"), info(1, "p1", complete=False), info(2, "elsewhere"), info(3, "p2")]
    table = predicted(view(*runs), runs, "congestion_seconds")
    assert table["run"].tolist() == ["s0", "s3"]
    assert table["static"].tolist() == [2.0, 5.0]


def test_pictures_take_no_text_for_an_expression() -> None:
    runs = [info(number, f"p{number}") for number in range(3)]
    seen = view(*runs, strategy=(NASTY,) * 3)
    named = {label(seen, run, number): simulation() for number, run in enumerate(runs)}
    assert list(named)[1] == f"B · {NASTY} · p1"
    table = predicted(seen, runs, "hop_bytes")
    charts: list[alt.TopLevelMixin] = [
        drawings.over_time(over_time(named), "delivered", "Delivered bytes", units.BYTES, DARK),
        drawings.over_time(over_time(named), "latency", "Mean latency", units.SECONDS, DARK),
        drawings.latencies(latencies(named), DARK),
        drawings.against_static(table, ["s1"], "Hop-bytes", units.BYTES, DARK),
    ]
    for chart in charts:
        made = spec(chart)
        encodings = [part["encoding"] for part in made.get("layer", [made])]
        for channel in (channel for encoding in encodings for channel in encoding.values()):
            told = channel if isinstance(channel, dict) else {}
            assert "onerror" not in str({name: part for name, part in told.items() if name != "scale"})
