"""The page of a job: what is chosen, what is compared, what can be downloaded, and a search behind it."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.runtime.fragment import MemoryFragmentStorage
from streamlit.testing.v1 import AppTest

from almanac.demo.fill import CLUSTER
from dashboard.state.viewer import Viewer
from dashboard.widgets.messages import plain
from ingest.options import Options
from ingest.pipeline import ingest
from mapping.placement.search.options import SearchOptions
from mapping.service.placing import place
from mapping.service.request import PlacementRequest
from registry import units
from registry.errors import InvalidValue
from registry.model import Job
from registry.model.intake import Intake
from tests.dashboard.conftest import DATA, MARKUP, SCANNED, Connect, Filled
from tests.support.apps import JOBS, address, captions, messages, numbers, page, table
from tests.support.waiting import comes_true


def test_a_placement_without_a_job_is_shown(filled: Filled) -> None:
    app = page(filled.connect, JOBS, placement=filled.alone)
    assert address(app) == {"job": "none", "placement": filled.alone}
    assert list(numbers(app)) == ["Now (assumed)", "Better", "Best possible"]


def test_a_job_opens_on_how_it_runs_what_is_better_and_the_best_possible(filled: Filled) -> None:
    app = page(filled.connect, JOBS, job="ndr/4711")
    assert address(app) == {"job": "ndr/4711", "placement": filled.second}
    with filled.connect() as registry:
        stored = registry.placements.read(filled.second)
    assert stored.evaluation is not None
    assert stored.in_order is not None
    now, better = stored.in_order.congestion_seconds, stored.evaluation.congestion_seconds
    best = stored.evaluation.bounds["congestion_seconds"].value
    assert numbers(app) == {
        "Now (assumed)": units.short(now, "s"),
        "Better": units.short(better, "s"),
        "Best possible": units.short(best, "s"),
    }
    assert f"{now / best:.3g} × the best" in captions(app)
    assert f"{better / now - 1:+.0%}" in captions(app)


def test_the_job_and_its_user_are_named(connect: Connect) -> None:
    app = page(connect, JOBS, job=f"{CLUSTER}/4712")
    (title,) = (header.value for header in app.header)
    assert title.replace("\\", "") == "4712 · hpcg_16_64"
    said = captions(app)
    assert "64 ranks on 16 hosts" in said
    assert "4 leaves, 1 would do" in said
    assert "shares links with 4714, 4713" in said or "shares links with 4713, 4714" in said


def test_two_placements_of_a_job_are_compared(filled: Filled) -> None:
    given = {"job": "ndr/4711", "placement": filled.second, "beside": filled.first}
    app = page(filled.connect, JOBS, **given, tab="runs")
    assert not app.error
    costs = table(app, "cost", "found")
    assert {filled.first, "random mean", "best possible"} <= set(costs.columns)
    names = ["Worst link", "Worst link between switches", "Hop-bytes", "Average dilation"]
    assert costs["cost"].tolist() == names
    app.selectbox(key="choose beside").set_value("in-order").run()
    assert address(app)["beside"] == "in-order"
    assert "in order" in table(app, "cost", "found").columns
    ranks = page(filled.connect, JOBS, **given, tab="ranks")
    assert {"host", filled.first, "placed"} <= set(table(ranks, "host", "placed").columns)
    matrix = page(filled.connect, JOBS, **given, tab="communication")
    assert matrix.get("vega_lite_chart")
    assert not matrix.warning


def test_a_jobs_other_placement_can_be_chosen(filled: Filled) -> None:
    app = page(filled.connect, JOBS, job="4711", beside="in-order", tab="runs")
    shown = {"job": "ndr/4711", "placement": filled.second, "beside": "in-order", "tab": "runs"}
    assert address(app) == shown
    assert set(table(app, "placement", "what")["placement"]) == {filled.first, filled.second}
    app.selectbox(key="choose placement").set_value(filled.first).run()
    assert not app.exception
    assert address(app) == {"job": "ndr/4711", "placement": filled.first, "tab": "runs"}
    facts = table(app, "fact", "value")
    assert set(facts["fact"]) >= {"placement", "strategy", "seed", "snapshot", "code version"}


def test_the_worst_links_are_listed_with_both_times_and_the_ranks_that_load_one(filled: Filled) -> None:
    app = page(filled.connect, JOBS, placement=filled.second, tab="links")
    links = table(app, "from", "to", "kind")
    columns = [name for name in links.columns if name.startswith(("In order", "Found"))]
    assert len(columns) == 2
    worst = links[columns].max(axis=1)
    assert worst.is_monotonic_decreasing
    app.selectbox(key="choose link").set_value(links.iloc[0]["from"]).run()
    assert not app.exception
    pairs = table(app, "from rank", "to rank")
    assert len(pairs) > 0
    assert "link" in address(app)
    again = page(filled.connect, JOBS, **address(app))
    assert table(again, "from rank", "to rank").equals(pairs)
    unknown = page(filled.connect, JOBS, placement=filled.second, link="nowhere:1", tab="links")
    assert "nowhere" in messages(unknown)


def test_a_launcher_file_comes_with_the_command_that_uses_it_or_why_there_is_none(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(name: str) -> AppTest:
        """Choose a format, which a test of Streamlit cannot do in a menu."""
        chosen = iter([name])
        monkeypatch.setattr("streamlit.menu_button", lambda *of, **options: next(chosen, None))
        return page(filled.connect, JOBS, job="ndr/4711", placement=filled.second)

    app = opened("openmpi-rankfile")
    (command,) = (code.value for code in app.code)
    assert f"{filled.second}-openmpi-rankfile.txt" in command
    assert command.startswith("mpirun")
    (button,) = (one for one in app.get("download_button") if "openmpi" in one.proto.label)
    assert button
    for name in ("torchrun-rank-order", "deepspeed-hostfile"):  # give consecutive ranks to a host
        app = opened(name)
        assert "rank" in messages(app)
        assert not app.code


def test_a_job_without_a_placement_shows_what_to_do_and_its_name_as_it_is(filled: Filled) -> None:
    app = page(filled.connect, JOBS, job="tree/9")
    assert [code.value for code in app.code] == [
        "almanac job attach 9 PROFILE --cluster tree",
        "almanac map PROFILE --job 9 --cluster tree",
    ]
    shown = [element.value for kind in (app.header, app.caption) for element in kind]
    assert any(plain(MARKUP) in text for text in shown)
    assert not any(MARKUP in text for text in shown)


def test_the_page_of_a_running_job_opens_on_its_advice_or_what_was_found_since(connect: Connect) -> None:
    with connect() as registry:
        advice = next(one for one in registry.advices.list(CLUSTER) if one.proposed is not None)
    app = page(connect, JOBS, job=f"{CLUSTER}/{advice.job}")
    with connect() as registry:
        evaluation = registry.placements.read(address(app)["placement"]).evaluation
    assert evaluation is not None
    shown = evaluation.congestion_seconds
    # the tests in a browser search for this job too: theirs may be as good or better
    assert address(app)["placement"] == advice.proposed or shown <= advice.proposed_seconds
    assert numbers(app)["Now"] == units.short(advice.present_seconds, "s")
    assert numbers(app)["Better"] == units.short(shown, "s")


def test_users_are_shown_as_pseudonyms(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    viewer = Viewer(key=b"secret")
    monkeypatch.setattr("dashboard.app.current", lambda access: viewer)
    app = page(filled.connect, JOBS, job="ndr/4711")
    assert viewer.name("demo") in captions(app)
    assert "demo" not in captions(app).replace(viewer.name("demo"), "").replace("demo-", "")


def searched(app: AppTest) -> str:
    """What the page says when the search has ended."""
    assert comes_true(lambda: "place stop" not in [button.key for button in app.run().button])
    assert not app.exception
    return "\n".join(element.value for element in app.success).replace("\\", "")


@pytest.fixture
def small(nothing: Connect, monkeypatch: pytest.MonkeyPatch) -> Connect:
    """A tree of 64 hosts and a job of 27 ranks on it, with its profile; no placement yet.

    No placement of it meets a bound, so that a search goes on until it is stopped.
    """
    monkeypatch.setattr("dashboard.views.placement_search.cores", lambda: 2)  # no search in other processes
    tree = DATA / "infiniband" / "fattree2-64-broken-link"
    hosts = tuple(f"node{number:04}" for number in range(1, 10))
    job = Job(id="7", state="RUNNING", user="ann", started_at=SCANNED, hosts=hosts, slots=(3,) * 9)
    with nothing() as registry:
        ingest(registry, [tree / "before.ibnetdiscover"], Options(cluster="tree", observed_at=SCANNED))
        ingest(registry, [DATA / "edges" / "lulesh_s5_i10_27.csv.gz"], Options(name="lulesh"))
        registry.save(Intake(cluster="tree", jobs=(job,), source="test", observed_at=SCANNED))
        registry.jobs.attach("7", "lulesh")
    return nothing


def test_a_search_runs_behind_the_page_and_is_saved_to_the_history(
    small: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    around, register = [], MemoryFragmentStorage.register

    def recorded(self: MemoryFragmentStorage, key: str, fragment: Any, **of: Any) -> None:
        around.append(of["parent_fragment_id"])
        register(self, key, fragment, **of)

    monkeypatch.setattr(MemoryFragmentStorage, "register", recorded)
    app = page(small, JOBS, job="tree/7")
    assert "almanac map" in app.code[0].value
    alone = len(around)
    app.button(key="find").click().run()
    assert len(around) >= alone + 2  # the page's and the dialog's
    app.number_input(key="place seconds").set_value(1)
    app.button(key="place").click().run()
    assert not app.exception
    other = page(small, JOBS, job="tree/7")  # a session that did not begin it
    assert [b.key for b in other.button if b.key == "place stop"] or other.success
    told = searched(app)
    assert set(around) == {None}  # a fragment inside another one can leave the window empty
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
        request = PlacementRequest(profile="lulesh", job="7", cluster="tree", options=options)
        first = place(registry, request).record_id
    app = page(small, JOBS, placement=first)
    app.button(key="find").click().run()
    app.number_input(key="place seconds").set_value(500)
    app.button(key="place").click().run()
    again = page(small, JOBS, placement=first)  # as after a reload
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
    app = page(small, JOBS, job="tree/7")
    app.button(key="find").click().run()
    app.button(key="place").click().run()
    searched(app)
    assert "are gone" in messages(app)
