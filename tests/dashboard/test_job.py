"""The page of a job: what is chosen, compared and downloaded, a search behind it; tables of placements."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from streamlit.runtime.fragment import MemoryFragmentStorage
from streamlit.testing.v1 import AppTest

from almanac.demo.demo import CLUSTER
from dashboard.shared import names as placements
from dashboard.shared.cards import plain
from dashboard.shared.viewer import Viewer
from ingest.options import Options
from ingest.pipeline import ingest
from mapping.placement.search import SearchOptions
from mapping.questions.place import PlacementRequest, place
from registry import units
from registry.errors import InvalidValue
from registry.model import Allocation, Bound, Evaluation, Job, Metrics, Placement, Profile
from registry.model.intake import Intake
from registry.store.placement_rows import PRESENT, PROPOSED, StoredPlacement, StoredPlacementInfo
from tests.dashboard.conftest import DATA, MARKUP, SCANNED, Connect, Filled
from tests.support.apps import JOBS, address, captions, messages, numbers, page, table
from tests.support.sure import sure
from tests.support.waiting import comes_true


def test_a_job_or_a_placement_without_one_opens_on_now_better_and_best_possible(filled: Filled) -> None:
    app = page(filled.connect, JOBS, placement=filled.alone)
    assert address(app) == {"job": "none", "placement": filled.alone}
    assert list(numbers(app)) == ["Now (assumed)", "Better", "Best possible"]
    app = page(filled.connect, JOBS, job="ndr/4711")
    assert address(app) == {"job": "ndr/4711", "placement": filled.second}
    with filled.connect() as registry:
        stored = registry.placements.read(filled.second)
    evaluation = sure(stored.evaluation)
    now, better = sure(stored.in_order).congestion_seconds, evaluation.congestion_seconds
    best = evaluation.bounds["congestion_seconds"].value
    shown = {"Now (assumed)": now, "Better": better, "Best possible": best}
    assert numbers(app) == {name: units.short(seconds, "s") for name, seconds in shown.items()}
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
    assert links[columns].max(axis=1).is_monotonic_decreasing
    app.selectbox(key="choose link").set_value(links.iloc[0]["from"]).run()
    assert not app.exception
    pairs = table(app, "from rank", "to rank")
    assert len(pairs) > 0
    assert "link" in address(app)
    assert table(page(filled.connect, JOBS, **address(app)), "from rank", "to rank").equals(pairs)
    unknown = page(filled.connect, JOBS, placement=filled.second, link="nowhere:1", tab="links")
    assert "nowhere" in messages(unknown)


def test_launcher_files_come_with_command_or_reason(filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(name: str) -> AppTest:
        """Choose a format, which a test of Streamlit cannot do in a menu."""
        chosen = iter([name])
        monkeypatch.setattr("streamlit.menu_button", lambda *of, **options: next(chosen, None))
        return page(filled.connect, JOBS, job="ndr/4711", placement=filled.second)

    app = opened("openmpi-rankfile")
    (command,) = (code.value for code in app.code)
    assert f"{filled.second}-openmpi-rankfile.txt" in command
    assert command.startswith("mpirun")
    assert ["openmpi" in one.proto.label for one in app.get("download_button")].count(True) == 1
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
        shown = sure(registry.placements.read(address(app)["placement"]).evaluation).congestion_seconds
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
    assert comes_true(lambda: "place stop" not in [button.key for button in app.run().button])
    assert not app.exception
    return "\n".join(element.value for element in app.success).replace("\\", "")


@pytest.fixture
def small(nothing: Connect, monkeypatch: pytest.MonkeyPatch) -> Connect:
    """A tree of 64 hosts and a job of 27 ranks on it, with its profile; no placement yet.

    No placement of it meets a bound, so that a search goes on until it is stopped.
    """
    monkeypatch.setattr("dashboard.pages.placement_search.cores", lambda: 2)  # no search in other processes
    tree = DATA / "infiniband" / "fattree2-64-broken-link"
    hosts = tuple(f"node{number:04}" for number in range(1, 10))
    job = Job(id="7", state="RUNNING", user="ann", started_at=SCANNED, hosts=hosts, slots=(3,) * 9)
    with nothing() as registry:
        ingest(registry, [tree / "before.ibnetdiscover"], Options(cluster="tree", observed_at=SCANNED))
        ingest(registry, [DATA / "edges" / "lulesh_s5_i10_27.csv.gz"], Options(name="lulesh"))
        registry.save(Intake(cluster="tree", jobs=(job,), source="test", observed_at=SCANNED))
        registry.jobs.attach("7", "lulesh")
    return nothing


def test_a_search_runs_behind_the_page_and_is_saved(small: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
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

    monkeypatch.setattr("dashboard.pages.placement_search.place", fail)
    app = page(small, JOBS, job="tree/7")
    app.button(key="find").click().run()
    app.button(key="place").click().run()
    searched(app)
    assert "are gone" in messages(app)


COSTS = ("congestion_seconds", "network_congestion_seconds", "hop_bytes", "average_dilation")


def metrics(*costs: float) -> Metrics:
    return Metrics(**dict(zip(COSTS, costs, strict=True)))


def info(name: str = "p1") -> StoredPlacementInfo:
    """A placement of job 4711, at twice its bound and half the cost of ranks in order."""
    plain: dict[str, Any] = {field.name: "" for field in fields(StoredPlacementInfo)}
    plain |= {"id": name, "recorded_at": datetime(2026, 1, 1, tzinfo=UTC), "cluster": "c", "snapshot": "c/1"}
    plain |= {"application": "cg", "profile": "cg_16", "profile_id": "1", "job": "4711", "strategy": "greedy"}
    plain |= {"ranks": 16, "complete": True, "role": PROPOSED, "bounds": {"congestion_seconds": 1e-3}}
    plain |= dict(zip(COSTS, (2e-3, 1e-3, 5e6, 2.5), strict=True))
    plain |= {"in_order": metrics(4e-3, 3e-3, 9e6, 4.5), "random": None}
    return StoredPlacementInfo(**plain)


def test_texts_of_a_placement_and_of_a_change() -> None:
    assert placements.relative_change(50.0, 100.0) == ("-50.0 % against in order", True)
    assert placements.relative_change(101.0, 100.0) == ("+1.0 % against in order", False)
    assert placements.relative_change(100.01, 100.0) == ("as in order", None)
    for before in (0.0, None):
        assert placements.relative_change(1.0, before) == (None, None)
    assert (
        placements.placement_text(info()) == "cg_16 · job 4711 · 2 ms · greedy · 2026-01-01 00:00:00 UTC · p1"
    )
    table = placements.placements_table([info(), replace(info("p2"), role=PRESENT, congestion_seconds=None)])
    assert (table["what"].tolist(), table["worst link"].tolist()) == (["proposed", "ran with"], ["2 ms", ""])


def test_communication_sums_all_bytes_whatever_the_bins() -> None:
    rng = np.random.default_rng(0)
    source, target = rng.integers(0, 100, (2, 3000))
    profile = Profile.from_edges(source, target, rng.random(3000), ranks=100)
    for bins in (1, 7, 64, 512):
        matrix = placements.communication(profile, bins)
        assert matrix.shape == (min(bins, 100),) * 2
        assert matrix.sum() == pytest.approx(profile.bytes.sum())
    profile = Profile.from_edges([0, 2], [1, 0], [5.0, 7.0], ranks=3)
    assert placements.communication(profile).tolist() == [[0, 5, 0], [0, 0, 0], [7, 0, 0]]


def test_ranks_of_each_host_are_folded() -> None:
    table = placements.ranks_per_host(["b", "a"], {"in order": ["b", "b", "a"], "placed": ["a", "b", "b"]})
    assert table.to_dict("records") == [
        {"host": "b", "ranks": 2, "in order": "0-1", "placed": "1-2"},
        {"host": "a", "ranks": 1, "in order": "2", "placed": "0"},
    ]


def stored(role: str, seconds: float, *, bound: float | None = None) -> StoredPlacement:
    costs = dict(zip(COSTS, (seconds, seconds / 2, 4e6, 2.0), strict=True))
    others = {"total_bytes": 2e6, "max_dilation": 3, "mean_congestion_seconds": seconds / 4}
    found: dict[str, Any] = {**costs, **others, "routing": "tables", "rails": "each"}
    found["link_bytes"] = np.zeros(0)
    found["bounds"] = {} if bound is None else {"congestion_seconds": Bound(value=bound, proof="cut")}
    allocation = Allocation(hosts=np.array([0, 1]), slots=np.array([1, 1]))
    placed = Placement(host_of_rank=np.array([0, 1]), allocation=allocation, strategy="greedy")
    told: dict[str, Any] = {"id": f"p-{role}", "cluster": "c", "content": "c/1", "role": role}
    told |= {"placement": placed, "hosts": ("a", "b"), "recorded_at": datetime(2026, 1, 1, tzinfo=UTC)}
    told |= {"in_order": metrics(9.0, 8.0, 7.0, 6.0), "random": metrics(12.0, 8.0, 7.0, 6.0)}
    return StoredPlacement(**told, evaluation=Evaluation(**found))


def test_costs_are_set_between_the_best_possible_and_random_ones_and_in_order_is_assumed() -> None:
    ran, found = stored(PRESENT, 8.0, bound=1.0), stored(PROPOSED, 6.0, bound=2.0)
    both = placements.job_costs(found, ran)
    assert both == placements.job_costs(ran, found)
    assert tuple(both) == (8.0, False, 6.0, 2.0, 12.0)
    assert both.change == pytest.approx(-0.25)
    assert both.points() == {"best possible": 2.0, "found": 6.0, "random": 12.0, "now": 8.0}
    only = placements.job_costs(stored(PROPOSED, 6.0), None)
    assert tuple(only) == (9.0, True, 6.0, None, 12.0)
    assert only.points() == {"found": 6.0, "random": 12.0, "in order": 9.0}
    alone = placements.job_costs(stored(PRESENT, 8.0), None)
    assert (alone.now, alone.assumed, alone.better, alone.change) == (8.0, False, None, None)
    table = placements.cost_table(stored(PROPOSED, 6.0, bound=2.0), stored(PRESENT, 8.0), "how it runs")
    assert table.iloc[0].tolist() == ["Worst link", "6 s", "8 s", "12 s", "2 s", "cut"]
    in_order = placements.cost_table(stored(PROPOSED, 6.0), None, "in order")
    assert in_order.iloc[0].tolist() == ["Worst link", "6 s", "9 s", "12 s", "", ""]
