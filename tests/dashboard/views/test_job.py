"""The page of a job: what is chosen, what is compared, what can be downloaded, and a search behind it."""

from __future__ import annotations

import time
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from almanac.demo.fill import CLUSTER
from dashboard.state.viewer import Viewer
from ingest.options import Options
from ingest.pipeline import ingest
from mapping.launchers.catalog import FORMATS
from mapping.placement.search.options import SearchOptions
from mapping.service.placing import place
from mapping.service.request import PlacementRequest
from registry.errors import InvalidValue
from registry.model import Job
from registry.model.intake import Intake
from registry.registry import Registry
from tests.dashboard.conftest import DATA, MARKUP, SCANNED, Connect, Filled
from tests.dashboard.test_app import JOB, address, messages, nothing, page

__all__ = ["nothing"]

WAIT = 120.0
"""Seconds; far more than any of it takes."""


@pytest.fixture(scope="module")
def connect(demonstration: Path) -> Connect:
    return lambda: Registry.open(home=demonstration, idle_seconds=120)


def table(app: AppTest, *columns: str) -> pd.DataFrame:
    """The table that has these columns."""
    found = [one.value for one in app.dataframe if set(columns) <= set(one.value.columns)]
    assert len(found) == 1, [list(one.value.columns) for one in app.dataframe]
    value: pd.DataFrame = found[0]
    return value


def test_the_page_opens_on_the_newest_placement(filled: Filled) -> None:
    app = page(filled.connect, JOB)
    assert address(app) == {"job": "none", "placement": filled.alone}
    assert [metric.label for metric in app.metric] == [
        "Worst link",
        "Worst link between switches",
        "Hop-bytes",
        "Average dilation",
    ]


def test_a_placement_is_compared_with_ranks_in_order(filled: Filled) -> None:
    app = page(filled.connect, JOB, placement=filled.second)
    assert address(app) == {"job": "ndr/4711", "placement": filled.second}
    assert all(metric.delta.endswith("against in order") for metric in app.metric)
    named = [text.value for text in app.text]
    assert named[0].startswith("In order: ")
    assert named[1].startswith("Placed: ")
    assert all(" → " in name for name in named)
    assert any("certified by" in caption.value for caption in app.caption)
    ranks = table(app, "host", "in order", "placed")
    assert ranks["ranks"].sum() == 64
    facts = table(app, "fact", "value")
    assert set(facts["fact"]) >= {"placement", "strategy", "seed", "snapshot", "code version"}


def test_two_placements_of_a_job_are_compared(filled: Filled) -> None:
    app = page(filled.connect, JOB, job="ndr/4711", placement=filled.second, beside=filled.first)
    assert not app.error
    assert all(f"against {filled.first}" in metric.delta or "as p" in metric.delta for metric in app.metric)
    assert app.text[0].value.startswith("P")  # an id begins with p
    assert {"host", filled.first, "placed"} <= set(table(app, "host", "placed").columns)
    app.selectbox(key="choose beside").set_value("in-order").run()
    assert address(app)["beside"] == "in-order"
    assert app.text[0].value.startswith("In order: ")


def test_a_jobs_other_placement_can_be_chosen(filled: Filled) -> None:
    app = page(filled.connect, JOB, job="4711", beside="in-order")
    assert address(app) == {"job": "ndr/4711", "placement": filled.second, "beside": "in-order"}
    app.selectbox(key="choose placement").set_value(filled.first).run()
    assert not app.exception
    assert address(app) == {"job": "ndr/4711", "placement": filled.first}


def test_another_job_can_be_written(filled: Filled) -> None:
    app = page(filled.connect, JOB, placement=filled.second)
    app.text_input(key="write job").set_value("tree/9").run()
    assert not app.exception
    assert address(app) == {"job": "tree/9"}


def test_the_worst_links_are_listed_with_both_placements_times(filled: Filled) -> None:
    app = page(filled.connect, JOB, placement=filled.second)
    links = table(app, "from", "to", "kind")
    columns = [name for name in links.columns if name.startswith(("In order", "Placed"))]
    assert len(columns) == 2
    worst = links[columns].max(axis=1)
    assert worst.is_monotonic_decreasing


def test_the_ranks_that_load_a_link_are_shown(filled: Filled) -> None:
    app = page(filled.connect, JOB, placement=filled.second)
    app.selectbox(key="choose link").set_value(_first_link(app)).run()
    assert not app.exception
    pairs = table(app, "from rank", "to rank")
    assert len(pairs) > 0
    assert "link" in address(app)
    again = page(filled.connect, JOB, **address(app))
    assert table(again, "from rank", "to rank").equals(pairs)


def _first_link(app: AppTest) -> str:
    """The name of the link that the table shows first, as the address tells it."""
    links = table(app, "from", "to", "kind")
    row = links.iloc[0]
    return f"{row['from']}:{str(row['from port']).rpartition('/')[2]}"


def test_an_unknown_link_is_reported(filled: Filled) -> None:
    app = page(filled.connect, JOB, placement=filled.second, link="nowhere:1")
    assert "nowhere" in messages(app)


def test_every_launcher_format_can_be_downloaded(filled: Filled) -> None:
    app = page(filled.connect, JOB, placement=filled.second)
    refused = {button.label for button in app.button if button.label in FORMATS}
    # these two launchers give consecutive ranks to a host, which this placement does not
    assert refused == {"torchrun-rank-order", "deepspeed-hostfile"}
    shown = [button.label for button in app.download_button if button.label in FORMATS]
    assert shown == [name for name in FORMATS.names if name not in refused]


def test_a_job_without_a_placement_shows_what_to_do(filled: Filled) -> None:
    app = page(filled.connect, JOB, job="tree/9")
    assert [code.value for code in app.code] == [
        "almanac job attach 9 PROFILE --cluster tree",
        "almanac map PROFILE --job 9 --cluster tree",
    ]


def test_markup_in_a_job_name_is_shown_as_it_is(filled: Filled) -> None:
    app = page(filled.connect, JOB, job="tree/9")
    assert table(app, "job", "name").iloc[0]["name"] == MARKUP
    assert not any(MARKUP in element.value for element in app.markdown)


def test_the_advice_for_a_running_job_is_compared_with_its_present_placement(
    connect: Connect,
) -> None:
    with connect() as registry:
        advice = next(one for one in registry.advices.list(CLUSTER) if one.proposed is not None)
    app = page(connect, JOB, job=f"{CLUSTER}/{advice.job}")
    assert f"Possible gain {advice.gain:.2f} times" in messages(app)
    app.button(key="show advice").click().run()
    assert not app.exception
    assert address(app) == {
        "job": f"{CLUSTER}/{advice.job}",
        "placement": advice.proposed,
        "beside": advice.present,
    }
    assert all(metric.delta.endswith("how it runs") for metric in app.metric)


def test_another_users_job_is_unknown_where_only_ones_own_are_shown(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.app.current", lambda access: Viewer(only="eve"))
    for given in ({"job": "ndr/4711"}, {"placement": filled.second}, {"placement": filled.alone}):
        app = page(filled.connect, JOB, **given)
        assert "There is no" in messages(app)
        assert not any(button.key and button.key.startswith("closest") for button in app.button)
        assert not app.metric
    assert "tree/9" in address(page(filled.connect, JOB))["job"]


def test_users_are_shown_as_pseudonyms(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    viewer = Viewer(key=b"secret")
    monkeypatch.setattr("dashboard.app.current", lambda access: viewer)
    app = page(filled.connect, JOB, job="ndr/4711")
    assert table(app, "job", "user").iloc[0]["user"] == viewer.name("demo")


def searched(app: AppTest) -> str:
    """What the page says when the search has ended."""
    end = time.monotonic() + WAIT
    while any(button.key == "place stop" for button in app.button):
        assert time.monotonic() < end
        time.sleep(0.2)
        app.run()
    assert not app.exception
    return "\n".join(element.value for element in app.success).replace("\\", "")


@pytest.fixture
def small(nothing: Connect) -> Connect:
    """A tree of 64 hosts and a job of 16 ranks on it, with its profile; no placement yet."""
    tree = DATA / "infiniband" / "fattree2-64-broken-link"
    hosts = tuple(f"node{number:04}" for number in range(1, 9))
    job = Job(id="7", state="RUNNING", user="ann", started_at=SCANNED, hosts=hosts, slots=(2,) * 8)
    with nothing() as registry:
        ingest(registry, [tree / "before.ibnetdiscover"], Options(cluster="tree", observed_at=SCANNED))
        ingest(registry, [DATA / "edges" / "npb_cg_S_16.csv.gz"], Options(name="cg"))
        registry.save(Intake(cluster="tree", jobs=(job,), source="test", observed_at=SCANNED))
        registry.jobs.attach("7", "cg")
    return nothing


def test_a_search_runs_behind_the_page_and_is_saved_to_the_history(small: Connect) -> None:
    app = page(small, JOB, job="tree/7")
    assert "almanac map" in app.code[0].value
    app.number_input(key="place seconds").set_value(1)
    app.button(key="place").click().run()
    assert not app.exception
    other = page(small, JOB, job="tree/7")  # a session that did not begin it
    assert [b.key for b in other.button if b.key == "place stop"] or other.success
    told = searched(app)
    assert told.startswith("Saved to the history as p")
    found = told.split()[5].rstrip(":")
    with small() as registry:
        assert registry.placements.read(found).placement.complete
    app.run()  # the page may have read the job's placements just before the search saved its own
    assert address(app)["placement"] == found
    app.button(key="place dismiss").click().run()
    assert not app.success


def test_a_search_that_is_stopped_keeps_the_best_so_far_which_can_be_shown(small: Connect) -> None:
    with small() as registry:
        options = SearchOptions(steps=100)
        request = PlacementRequest(profile="cg", job="7", cluster="tree", options=options)
        first = place(registry, request).record_id
    app = page(small, JOB, placement=first)
    app.number_input(key="place seconds").set_value(500)
    app.button(key="place").click().run()
    again = page(small, JOB, placement=first)  # as after a reload
    again.button(key="place stop").click().run()
    told = searched(again)
    assert "The search was stopped early" in told
    found = told.split()[5].rstrip(":")
    with small() as registry:
        assert not registry.placements.read(found).placement.complete
    again.button(key="place show").click().run()
    assert address(again) == {"job": "tree/7", "placement": found}


def test_errors_of_a_search_are_reported(small: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*of: object) -> None:
        raise InvalidValue("PlacementRequest.hosts", "are gone")

    monkeypatch.setattr("dashboard.views.placement_search.place", fail)
    app = page(small, JOB, job="tree/7")
    app.button(key="place").click().run()
    searched(app)
    assert "are gone" in messages(app)
