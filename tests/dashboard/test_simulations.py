"""Simulated runs as tables and pictures; the page that lists and compares them, and who may see it."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import altair as alt
import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.pages import simulations as drawings
from dashboard.shared import simulated as tables
from dashboard.shared.cards import DARK, LIGHT
from dashboard.shared.simulated import simulated
from dashboard.shared.viewer import Access, Viewer
from registry import units
from registry.model import Simulation
from registry.registry import Registry
from registry.store.simulations import SimulationInfo, SimulationRecord, StoredSimulation
from tests.dashboard.conftest import Filled
from tests.dashboard.test_pages_charts import spec
from tests.dashboard.test_trends import NASTY, series
from tests.registry.model.test_profile_trace import simulation
from tests.support.apps import RUNS, address, messages, page, seen_by, table, titles

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def info(number: int, placement: str, **changed: Any) -> SimulationInfo:
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


def view(
    *runs: SimulationInfo, worst: tuple[float, ...] = (2.0, 3.0, 5.0), **columns: Any
) -> tables.SimulatedRuns:
    """Runs, the newest first, of placements p0, p1, ... with these worst links."""
    placed = series(list(worst), **columns)
    row_of = {name: row for row, name in enumerate(placed.id)}
    newest = tuple(sorted(runs, key=lambda run: run.recorded_at, reverse=True))
    return tables.SimulatedRuns(runs=newest, series=placed, row_of=row_of)


def test_the_list_has_costs_of_the_placement_and_of_the_simulation() -> None:
    seen = view(info(0, "p0"), info(1, "p2"), info(2, "elsewhere", trace=None, parameters={"rounds": 3}))
    table = tables.runs_table(seen, seen.runs)
    assert (table["run"].tolist(), table["throughput"].tolist()) == (["s2", "s1", "s0"], [25.0] * 3)
    np.testing.assert_array_equal(table["Worst link"], [np.nan, 5.0, 2.0])
    assert table["application"].tolist() == ["", "cg", "cg"]
    assert table["sent"].tolist() == ["3 rounds", *["trace t1, 2 times as fast"] * 2]
    text = "cg · greedy · 4 s · p0 · 2026-01-01 12:00:00 UTC · s0"
    assert tables.option_text(seen, info(0, "p0")) == text
    for parameters, sent in (
        ({}, "trace t1, as recorded"),
        ({"scale": "inf"}, "trace t1, all at once"),
        ({"scale": 0.25, "first": 10}, "trace t1, 0.25 times as fast, first 10 messages"),
    ):
        assert tables.sent_text(info(0, "p0", parameters=parameters)) == sent


def test_the_newest_run_of_each_placement_is_chosen_of_a_replay_in_which_only_these_differ() -> None:
    one = info(0, "p0")
    assert tables.replay(one) == tables.replay(
        info(1, "p1", completion_seconds=9.0, code_version="2", wall_seconds=3.0)
    )
    others: dict[str, Any] = {"cluster": "d", "snapshot": "c/2", "profile": "f2", "trace": None}
    others |= {"mode": "flits", "routing": "up-down", "seed": 4}
    others |= {"parameters": {"scale": 2.0, "packet_bytes": 4096}}
    changed = {tables.replay(info(0, "p0", **{name: value})) for name, value in others.items()}
    assert len({tables.replay(one), *changed}) == 9
    runs = [info(0, "p0"), info(1, "p1"), info(2, "p1"), info(3, "p2", seed=9), info(4, "p2")]
    newest = runs[::-1]
    assert [run.id for run in tables.newest_alike(newest, 6)] == ["s0", "s2", "s4"]
    assert [run.id for run in tables.newest_alike(newest, 2)] == ["s2", "s4"]
    assert [run.id for run in tables.newest_alike(newest[1:], 6)] == ["s3"]


def test_runs_are_compared_and_differences_are_marked() -> None:
    runs = [info(0, "p0"), info(1, "p2", seed=4)]
    faster = simulation(completion_seconds=2.0, link_busy_seconds=[1.0, 0.0, 0.5])
    facts = tables.facts_table(view(*runs), [stored(runs[0], simulation()), stored(runs[1], faster)])
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
    facts = tables.facts_table(view(run), [stored(run, nothing)]).set_index("fact")
    assert (facts.loc["throughput over that of A", "A"], facts.loc["completion", "A"]) == ("", "0 s")
    assert facts.loc["throughput", "A"] == "–"
    points = tables.over_time({"A": nothing})
    assert points[["run", "at", "delivered"]].to_numpy().tolist() == [["A", 0.0, 0.0]]
    for what in ("delivered", "latency"):
        assert spec(drawings.over_time_chart(points, what, "Delivered", units.BYTES, LIGHT))


def test_points_are_thinned_and_latencies_those_of_the_stored_percentiles() -> None:
    long = np.arange(1.0, 4001.0)
    runs = {"A": simulation(), "B": simulation(delivered_at=long, delivered=long, latency_over_time=long)}
    points = tables.over_time(runs)
    first = points[points["run"] == "A"]
    assert first["at"].tolist() == [0.0, 2.0, 4.0]
    assert first["delivered"].tolist() == [0.0, 80.0, 100.0]
    assert first["latency"].tolist()[1:] == [0.3, 0.5]
    second = points[points["run"] == "B"]
    assert (len(second), second["at"].iloc[0], second["at"].iloc[-1]) == (tables.POINTS, 0.0, 4000.0)
    table = tables.latencies({"A": simulation()})
    assert table["percentile"].tolist() == ["0", "1", "5", "25", "50", "75", "95", "99", "99.9", "100"]
    assert table["latency"].iloc[[0, -1]].tolist() == [0.1, 1.0]
    assert spec(drawings.latencies_chart(table, LIGHT))["encoding"]["y"]["scale"]["type"] == "log"
    zero = tables.latencies({"A": simulation(latency_seconds=np.linspace(0.0, 1.0, 10))})
    assert "type" not in spec(drawings.latencies_chart(zero, LIGHT))["encoding"]["y"]["scale"]


def test_only_complete_runs_are_compared_with_estimates_and_no_text_is_an_expression() -> None:
    runs = [info(0, "p0"), info(1, "p1", complete=False), info(2, "elsewhere"), info(3, "p2")]
    table = tables.predicted(view(*runs), runs, "congestion_seconds")
    assert (table["run"].tolist(), table["static"].tolist()) == (["s0", "s3"], [2.0, 5.0])
    runs = [info(number, f"p{number}") for number in range(3)]
    seen = view(*runs, strategy=(NASTY,) * 3)
    named = {tables.label(seen, run, number): simulation() for number, run in enumerate(runs)}
    assert list(named)[1] == f"B · {NASTY} · p1"
    table = tables.predicted(seen, runs, "hop_bytes")
    charts: list[alt.TopLevelMixin] = [
        drawings.over_time_chart(tables.over_time(named), "delivered", "Delivered bytes", units.BYTES, DARK),
        drawings.over_time_chart(tables.over_time(named), "latency", "Mean latency", units.SECONDS, DARK),
        drawings.latencies_chart(tables.latencies(named), DARK),
        drawings.against_static(table, ["s1"], "Hop-bytes", units.BYTES, DARK),
    ]
    for chart in charts:
        made = spec(chart)
        encodings = [part["encoding"] for part in made.get("layer", [made])]
        for channel in (channel for encoding in encodings for channel in encoding.values()):
            told = channel if isinstance(channel, dict) else {}
            assert "onerror" not in str({name: part for name, part in told.items() if name != "scale"})


def record(registry: Registry, placement: str, **changed: Any) -> SimulationRecord:
    """A run of a saved placement whose links sent as long as their bytes take."""
    stored = registry.placements.read(placement)
    assert stored.evaluation is not None
    assert stored.profile is not None
    carried = stored.evaluation.link_bytes
    busy = carried / registry.fabrics.read_content(stored.content).fabric.links.capacity
    end = 1.25 * float(busy.max())
    total = stored.evaluation.total_bytes
    ran = {"link_bytes": carried, "link_busy_seconds": busy, "completion_seconds": end}
    ran |= {"delivered_at": [end / 2, end], "delivered_bytes": total, "delivered": [0.0, total]}
    names: dict[str, Any] = {"placement": placement, "content": stored.content, "profile": stored.profile}
    return SimulationRecord(**names, simulation=simulation(**ran, **changed))


@pytest.fixture(scope="module")
def runs(filled: Filled) -> dict[str, str]:
    """Ids of runs by name, oldest first: an interrupted one, one flit by flit, and two of one replay.

    The placement of no job has none.
    """
    with filled.connect() as registry:
        kept = record(registry, filled.first, seed=77)
        cut = replace(kept, simulation=replace(kept.simulation, complete=False))
        found = {"cut": registry.simulations.save(cut)}
        found["flits"] = registry.simulations.save(record(registry, filled.second, mode="flits"))
        found["first"] = registry.simulations.save(record(registry, filled.first))
        found["second"] = registry.simulations.save(record(registry, filled.second))
    return found


def listed(app: AppTest) -> list[str]:
    return list(table(app, "run")["run"])


def test_the_page_opens_on_the_newest_run_and_its_replay(filled: Filled, runs: dict[str, str]) -> None:
    app = page(filled.connect, RUNS, curve="latency")
    charts = ["Over time", "Latency of messages", "Estimate against simulation"]
    assert titles(app) == [*charts, "Differences", "Link utilisation", "All runs"]
    assert listed(app) == [*runs.values()][::-1]
    assert app.multiselect(key="choose run").value == [runs["first"], runs["second"]]
    beside = table(app, "fact").set_index("fact")
    assert tuple(beside.loc["placement"]) == (filled.first, filled.second, "≠")
    assert beside.loc["throughput over that of A", "A"] == "1.000"
    assert beside.loc["Worst link, estimated", "A"]
    assert len(app.get("vega_lite_chart")) == 2
    assert not app.warning


def test_runs_of_the_address_are_compared_with_a_warning(filled: Filled, runs: dict[str, str]) -> None:
    app = page(filled.connect, RUNS, run=f"{runs['flits']},{runs['second']}")
    assert tuple(table(app, "fact").set_index("fact").loc["mode"]) == ("flits", "packets", "≠")
    assert "differ in their messages or networks" in messages(app)
    app.multiselect(key="choose run").set_value([runs["second"]]).run()
    assert not app.exception
    assert address(app)["run"] == runs["second"]
    assert list(table(app, "fact").set_index("fact").columns) == ["A", "differs"]


def test_links_are_shown_by_the_part_of_the_run_they_sent_in(filled: Filled, runs: dict[str, str]) -> None:
    app = page(filled.connect, RUNS, map=runs["second"])
    links = table(app, "from", "to", "A", "B")
    assert links[["A", "B"]].max().tolist() == pytest.approx([0.8, 0.8])
    assert any(text.value.startswith("B · ") and "80.0 % of the run on" in text.value for text in app.text)
    app.selectbox(key="choose map").set_value(runs["first"]).run()
    assert any(text.value.startswith("A · ") and "% of the run on" in text.value for text in app.text)


def test_runs_are_narrowed_and_a_placement_without_any_shows_its_command(
    filled: Filled, runs: dict[str, str]
) -> None:
    app = page(filled.connect, RUNS, placement=filled.second)
    assert listed(app) == [runs["second"], runs["flits"]]
    assert "No run matches" in messages(page(filled.connect, RUNS, cluster="tree"))
    assert listed(page(filled.connect, RUNS, cluster="ndr")) == [*runs.values()][::-1]
    app = page(filled.connect, RUNS, placement=filled.alone)
    assert "This placement was not simulated yet" in messages(app)
    command = f"almanac simulate cg --cluster tree --placement {filled.alone}"
    assert [code.value for code in app.code] == [command]


def test_an_unknown_name_is_reported_and_the_closest_can_be_clicked(
    filled: Filled, runs: dict[str, str]
) -> None:
    for wrong, start in (
        ({"run": runs["second"][:-1] + "x"}, (f"closest {runs['second']}",)),
        ({"application": "hpgc"}, ("closest", "forget")),
        ({"cluster": "nrd"}, ("closest ndr",)),
    ):
        app = page(filled.connect, RUNS, **wrong)
        assert "There is no" in messages(app)
        next(button for button in app.button if (button.key or "").startswith(start)).click().run()
        assert not [*app.exception, *app.error]


def test_an_interrupted_run_is_reported(filled: Filled, runs: dict[str, str]) -> None:
    app = page(filled.connect, RUNS, run=runs["cut"])
    assert "only the traffic delivered until then" in messages(app)
    assert table(app, "fact").set_index("fact").loc["interrupted", "A"] == "yes"


def test_one_user_sees_the_runs_of_their_jobs_only(filled: Filled, runs: dict[str, str]) -> None:
    with filled.connect() as registry:
        user = registry.jobs.read("4711").job.user
        assert {run.id for run in simulated(registry, Viewer(only=user)).runs} >= set(runs.values())
        assert simulated(registry, Viewer(only="eve")).runs == ()
    app = seen_by(Access(only="eve"), filled.connect, RUNS, run=runs["second"])
    assert not [*app.dataframe, *app.error]
