"""The page of simulated runs: what is listed, what stands beside each other, and who may see it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.queries.simulated import simulated
from dashboard.state.viewer import Access, Viewer
from registry.records.simulations import SimulationRecord
from registry.registry import Registry
from tests.dashboard.conftest import Filled
from tests.registry.model.test_trace import simulation
from tests.support.apps import RUNS, address, messages, page, seen_by, table, titles


def record(registry: Registry, placement: str, **changed: Any) -> SimulationRecord:
    """A run of a saved placement whose links sent as long as their bytes take."""
    stored = registry.placements.read(placement)
    assert stored.evaluation is not None
    assert stored.profile is not None
    carried = stored.evaluation.link_bytes
    busy = carried / registry.fabrics.read_content(stored.content).fabric.links.capacity
    end = 1.25 * float(busy.max())
    run = simulation(
        link_bytes=carried,
        link_busy_seconds=busy,
        completion_seconds=end,
        delivered_at=[end / 2, end],
        delivered_bytes=stored.evaluation.total_bytes,
        delivered=[0.0, stored.evaluation.total_bytes],
        **changed,
    )
    return SimulationRecord(
        placement=placement, content=stored.content, profile=stored.profile, simulation=run
    )


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


def test_the_page_opens_on_the_newest_run_and_those_of_its_replay(
    filled: Filled, runs: dict[str, str]
) -> None:
    app = page(filled.connect, RUNS, curve="latency")
    charts = ["Over time", "Latency of messages", "Estimate against simulation"]
    assert titles(app) == [*charts, "Differences", "Link utilisation", "All runs"]
    assert listed(app) == [runs[name] for name in ("second", "first", "flits", "cut")]
    assert app.multiselect(key="choose run").value == [runs["first"], runs["second"]]
    beside = table(app, "fact").set_index("fact")
    assert tuple(beside.loc["placement"]) == (filled.first, filled.second, "≠")
    assert beside.loc["throughput over that of A", "A"] == "1.000"
    assert beside.loc["Worst link, estimated", "A"]
    assert len(app.get("vega_lite_chart")) == 2
    assert not app.warning


def test_runs_of_the_address_are_compared_with_a_warning_if_they_differ(
    filled: Filled, runs: dict[str, str]
) -> None:
    app = page(filled.connect, RUNS, run=f"{runs['flits']},{runs['second']}")
    assert tuple(table(app, "fact").set_index("fact").loc["mode"]) == ("flits", "packets", "≠")
    assert "differ in their messages or networks" in messages(app)
    app.multiselect(key="choose run").set_value([runs["second"]]).run()
    assert not app.exception
    assert address(app)["run"] == runs["second"]
    assert list(table(app, "fact").set_index("fact").columns) == ["A", "differs"]


def test_links_are_shown_by_the_part_of_the_run_in_which_they_were_sending(
    filled: Filled, runs: dict[str, str]
) -> None:
    app = page(filled.connect, RUNS, map=runs["second"])
    links = table(app, "from", "to", "A", "B")
    assert links[["A", "B"]].max().tolist() == pytest.approx([0.8, 0.8])
    assert any(text.value.startswith("B · ") and "80.0 % of the run on" in text.value for text in app.text)
    app.selectbox(key="choose map").set_value(runs["first"]).run()
    assert any(text.value.startswith("A · ") and "% of the run on" in text.value for text in app.text)


def test_runs_are_narrowed_by_cluster_application_and_placement(filled: Filled, runs: dict[str, str]) -> None:
    app = page(filled.connect, RUNS, placement=filled.second)
    assert listed(app) == [runs["second"], runs["flits"]]
    assert "No run matches" in messages(page(filled.connect, RUNS, cluster="tree"))
    assert listed(page(filled.connect, RUNS, cluster="ndr")) == [
        runs[name] for name in ("second", "first", "flits", "cut")
    ]


def test_a_placement_without_runs_is_reported_with_the_command_that_simulates_it(
    filled: Filled, runs: dict[str, str]
) -> None:
    app = page(filled.connect, RUNS, placement=filled.alone)
    assert "This placement was not simulated yet" in messages(app)
    command = f"almanac simulate cg --cluster tree --placement {filled.alone}"
    assert [code.value for code in app.code] == [command]


@pytest.mark.parametrize(
    ("wrong", "closest"),
    [({"run": "?"}, "second"), ({"cluster": "nrd"}, "ndr"), ({"application": "hpgc"}, None)],
)
def test_an_unknown_name_is_reported_and_the_closest_can_be_clicked(
    filled: Filled, runs: dict[str, str], wrong: dict[str, str], closest: str | None
) -> None:
    told = {key: runs["second"][:-1] + "x" if value == "?" else value for key, value in wrong.items()}
    app = page(filled.connect, RUNS, **told)
    assert "There is no" in messages(app)
    name = runs.get(closest or "", closest)
    keys = (f"closest {name}",) if name else ("closest", "forget")
    next(button for button in app.button if (button.key or "").startswith(keys)).click().run()
    assert not app.exception
    assert not app.error


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
    assert not app.dataframe
    assert not app.error
