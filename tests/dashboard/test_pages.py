"""Rules of all pages: empty, broken, unknown names, markup, what a viewer may see; and the overview."""

from __future__ import annotations

import gc
import re
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import numpy as np
import pytest
import streamlit as st

from almanac.demo.demo import CLUSTER
from bench.dashboard.statements import CountingDatabase
from dashboard.app import prepare
from dashboard.pages import overview
from dashboard.server import keep_for_good
from dashboard.shared.viewer import EVERYTHING, OTHERS, Access, Viewer
from mapping.checks.checks import check
from mapping.checks.finding import Finding, Severity
from mapping.questions.live import traffic
from mapping.questions.place import subject_of
from mapping.traffic.names import find_link, short_link
from mapping.traffic.shared_load import JobLoad, SharedLoad
from registry.database.driver import Database
from registry.errors import DatabaseUnavailable
from registry.model import Job, Metrics
from registry.model.placement import LoadedLinks
from registry.registry import Registry
from registry.store.changes import Changes, compare
from registry.store.ingest_runs import SourceState
from registry.store.jobs import StoredJob
from registry.store.running_jobs import PresentPlacement, RunningJob, StoredAdvice
from tests.dashboard.conftest import MARKUP, Connect, Filled
from tests.support import apps
from tests.support.apps import PAGES, address, messages, numbers, page, seen_by, titles, whole
from tests.support.fat_tree import fat_tree


@pytest.mark.parametrize("name", [*PAGES, apps.JOB])
def test_an_empty_registry_shows_what_to_run(nothing: Connect, name: str) -> None:
    app = page(nothing, name)
    commands = [code.value for code in app.code]
    assert "almanac demo" in commands
    assert "The registry holds" in messages(app)
    if name == apps.OVERVIEW:
        assert titles(app) == ["1\\. Scan", "2\\. Jobs", "3\\. Profiles", "Or an example"]
        begins = [" ".join(code.split()[:2]) for code in commands]
        assert begins == ["almanac ingest", "scontrol show", "almanac job", "almanac demo"]
    if name == apps.CIRCUITS:
        assert any(command.startswith("almanac cluster optical NAME") for command in commands)


class Lost:
    uri = "bolt://127.0.0.1:1"

    def __getattr__(self, name: str) -> object:
        raise DatabaseUnavailable(self.uri, "connection reset", "start it")

    def close(self) -> None:
        """Do nothing: there is no connection."""


@pytest.mark.parametrize(("name", "lost"), [(apps.OVERVIEW, False), (apps.JOB, True)])
def test_a_database_that_is_down_is_reported_and_found_again(filled: Filled, name: str, lost: bool) -> None:
    down = [True]

    def connect() -> Registry:
        if not down[0]:
            return filled.connect()
        return Registry(cast(Database, Lost())) if lost else Registry.open(Lost.uri)

    app = page(connect, name)
    assert "The database does not answer" in messages(app)
    assert "almanac doctor" in [code.value for code in app.code]
    down[0] = False
    app.button(key="try_again").click().run()
    assert not app.exception
    assert not app.error


def test_an_unknown_name_is_reported_and_the_closest_can_be_clicked(filled: Filled) -> None:
    for name, wrong, closest in (
        *((apps.OVERVIEW, {"cluster": "nrd"}, "ndr"), (apps.DATA, {"cluster": "nrd"}, "ndr")),
        (apps.FABRIC, {"cluster": "nrd"}, "ndr"),
        *((apps.FABRIC, {"cluster": "tree", "placement": "?"}, None), (apps.JOBS, {"cluster": "nrd"}, "ndr")),
        (apps.JOBS, {"user": "evee"}, "eve"),
        *((apps.JOBS, {"state": "PENDIN"}, "PENDING"), (apps.INTERFERENCE, {"cluster": "nrd"}, "ndr")),
        *((apps.JOB, {"job": "4712"}, "4711"), (apps.JOB, {"job": "ndr/4711", "placement": "?"}, None)),
        *((apps.JOB, {"placement": "?"}, None), (apps.HISTORY, {"cluster": "trees"}, "tree")),
        (apps.HISTORY, {"compare": "clusters", "cluster b": "tre"}, "tree"),
    ):
        wrong = {key: filled.second[:-1] + "x" if value == "?" else value for key, value in wrong.items()}
        app = page(filled.connect, name, **wrong)
        assert "There is no" in messages(app)
        start = "forget" if closest is None else f"closest {closest}"
        next(button for button in app.button if (button.key or "").startswith(start)).click().run()
        assert not app.exception
        assert not app.error
        assert closest is None or name == apps.JOB or closest in address(app).values()


def test_the_overview_shows_all_that_it_is_for(connect: Connect) -> None:
    app = page(connect, apps.OVERVIEW)
    assert titles(app) == ["Load now", "Busiest links", "Jobs to act on", "Last 24 hours"]
    shown = numbers(app)
    assert [*shown] == ["Fabric health", "Peak link", "Running jobs", "Best possible gain", "Age of data"]
    with connect() as registry:
        live, rates = traffic(registry, CLUSTER), registry.counters.rates(CLUSTER)
        gains = [one.advice.gain for one in live.running.jobs if one.advice is not None]
        found = check(subject_of(registry, CLUSTER))
    worst = max(one.severity for one in found)
    assert shown["Fabric health"] == str(sum(one.severity == worst for one in found))
    assert shown["Peak link"] == f"{100 * np.nanmax(rates.share):.3g} %"
    assert shown["Running jobs"] == str(len(live.running.jobs))
    assert shown["Best possible gain"] == f"{max(gains):.3g} ×"
    assert not app.error
    links = {str(link.proto.page): str(link.proto.query_string) for link in app.get("page_link")}
    assert {"fabric", "jobs", "trends"} <= {link.rpartition("/")[2] for link in links}
    assert not app.code


def test_what_was_never_read_is_a_card_with_its_command(filled: Filled) -> None:
    app = page(filled.connect, apps.OVERVIEW)
    app.selectbox(key="choose cluster").set_value("tree").run()
    assert address(app) == {"cluster": "tree"}
    asked = [f"almanac ingest --cluster tree {what}" for what in ("COUNTERS", "JOBS")]
    assert [code.value for code in app.code] == asked
    assert "never read" in whole(app)


def test_pages_show_nothing_to_one_who_is_not_named(filled: Filled) -> None:
    for name in PAGES:
        app = seen_by(Access(only="header:X-Forwarded-User"), filled.connect, name)
        assert "you are not logged in" in messages(app)
        assert "Open them through the proxy that logs you in" in whole(app)
        assert not app.dataframe


@pytest.mark.parametrize("name", PAGES)
def test_no_page_shows_a_hidden_user(connect: Connect, name: str) -> None:
    with connect() as registry:
        users = {stored.job.user for stored in registry.jobs.list() if stored.job.user}
    assert users
    shown = whole(seen_by(Access(key=b"k" * 32), connect, name))
    assert not [user for user in users if re.search(rf"(?<![\w-]){re.escape(user)}(?![\w-])", shown)]


def test_another_user_is_unknown_without_a_hint_and_markup_in_names_does_nothing(filled: Filled) -> None:
    for told in ({"job": "4711"}, {"placement": filled.alone}):
        app = seen_by(Access(only="eve"), filled.connect, apps.JOB, **told)
        assert "There is no" in messages(app)
        assert not [button for button in app.button if (button.key or "").startswith("closest")]
        assert not [*app.dataframe, *app.metric]
    for name in PAGES:
        app = page(filled.connect, name, cluster="tree")
        shown = [element.value for kind in (app.markdown, app.caption) for element in kind]
        assert not any(MARKUP in text for text in shown)


def test_the_first_page_shows_what_was_read_before_a_browser_asked(filled: Filled) -> None:
    with filled.connect() as registry:
        counting = CountingDatabase(registry.database)

        def connect() -> Registry:
            return Registry(cast(Database, counting))

        st.cache_resource.clear()
        prepare(connect)
        read = len(counting.statements)
        page(connect, "")
        assert len(counting.statements) == read > 0
        st.cache_resource.clear()


def test_a_database_that_is_away_is_left_to_the_page_to_report() -> None:
    def connect() -> Registry:
        raise DatabaseUnavailable("bolt://nowhere", "no answer", "start it")

    st.cache_resource.clear()
    prepare(connect)


def test_bugs_are_not_hidden() -> None:
    def connect() -> Registry:
        raise ZeroDivisionError("a bug")

    app = apps.app_of(apps.script, connect, EVERYTHING).run()
    assert app.exception[0].message == "a bug"


def test_what_the_pages_keep_is_not_searched_for_garbage_again() -> None:
    """A search of all objects after each run of a page took 0.1 s."""
    gc.collect()  # of what other tests left
    before = len(gc.get_objects())
    try:
        keep_for_good()
        assert gc.get_freeze_count() > 0.9 * before
        assert len(gc.get_objects()) < 0.1 * before
    finally:
        gc.unfreeze()


NOW = datetime(2026, 1, 10, tzinfo=UTC)

TREE = fat_tree()


def loaded(job: str, user: str, row: int, size: float) -> JobLoad:
    loads = np.zeros(len(TREE.links))
    loads[row] = size
    return JobLoad(job=job, user=user, application="cg", loads=LoadedLinks.of(loads))


def test_busy_links_are_measured_ones_and_name_their_jobs_as_far_as_may_be_seen() -> None:
    shared = SharedLoad.of(TREE, [loaded("1", "ann", 5, 3.0), loaded("2", "bob", 5, 1.0)])
    share = np.full(len(TREE.links), np.nan)
    share[[2, 5]] = 0.25, 0.5
    first, second = overview.busiest_links(shared, share, 10, Viewer())
    assert (first.row, first.part, first.jobs) == (5, 0.5, "1, 2")
    assert (second.row, second.part, second.jobs) == (2, 0.25, overview.NOT_ATTRIBUTED)
    assert first.short == short_link(TREE, 5)
    assert find_link(TREE, first.full) == 5
    assert overview.busiest_links(shared, share, 10, Viewer(only="bob"))[0].jobs == f"{OTHERS}, 2"
    shared = SharedLoad.of(TREE, [loaded("1", "ann", 3, 3.0), loaded("2", "bob", 4, 6.0)])
    found = overview.busiest_links(shared, None, 10, Viewer())  # without counters: by the estimated time
    capacity = TREE.links.capacity
    assert capacity[3] == capacity[4]
    assert [(one.row, one.part, one.jobs) for one in found] == [(4, 1.0, "2"), (3, 0.5, "1")]
    assert found[0].seconds == 6.0 / capacity[4]


def running(job: str, user: str, gain: float | None) -> RunningJob:
    """A job, with the advice of a search unless none was made."""
    found: dict[str, Any] = {"at": NOW - timedelta(hours=2), "present": "p1", "proposed": "p2", "moved": 4}
    found |= {"present_seconds": gain, "proposed_seconds": 1.0}
    advice = StoredAdvice(id=f"a{job}", cluster="c", job=job, **found)
    stored = StoredJob(id=f"c/{job}", cluster="c", job=Job(id=job, user=user), profile="f", as_of=NOW)
    known = None if gain is None else advice
    return RunningJob(stored=stored, application="cg", present=None, advice=known)


def test_jobs_come_by_their_gain_with_their_distance_from_best() -> None:
    metrics = Metrics(**dict.fromkeys((field.name for field in fields(Metrics)), 3.0))
    nothing: dict[str, Any] = {field.name: None for field in fields(PresentPlacement)}
    present = PresentPlacement(**(nothing | {"metrics": metrics, "bound_seconds": 1.5}))
    job = replace(running("1", "ann", None), present=present)
    assert overview.jobs_to_act([job], Viewer())[0].distance == 2.0
    for unknown in (None, replace(present, bound_seconds=None), replace(present, metrics=None)):
        assert overview.jobs_to_act([replace(job, present=unknown)], Viewer())[0].distance is None
    gains = (("3", "ann", None), ("4", "ann", 1.0), ("1", "ann", 1.5), ("2", "bob", 3.0))
    jobs = [running(*one) for one in gains]
    listed = overview.jobs_to_act(jobs, Viewer())
    assert [one.key for one in listed] == ["c/2", "c/1", "c/4", "c/3"]
    assert (listed[0].label, listed[0].gain, listed[0].moves) == ("2 · cg · bob", 3.0, 4)
    assert (listed[3].gain, listed[3].seconds) == (None, None)
    assert [one.key for one in overview.jobs_to_act(jobs, Viewer(only="bob"))] == ["c/2"]
    assert "bob" not in overview.jobs_to_act(jobs, Viewer(key=b"k" * 32))[0].label


def test_new_tables_are_a_change_of_their_own_and_health_is_the_worst_finding() -> None:
    for rerouted in (True, False):
        lines = overview.changes_lines(compare(TREE, fat_tree(without=(0,))), rerouted)
        assert ("the forwarding tables changed" in lines) is rerouted
        assert lines[0].endswith(" vanished")
    assert overview.changes_lines(Changes(), False) == []
    found = [Finding(severity, "a", "a") for severity in (Severity.NOTE, Severity.WARNING, Severity.WARNING)]
    assert overview.health(found) == (Severity.WARNING, "2 warnings, 1 note")
    assert overview.health(()) == (None, "no findings")


def test_events_come_worst_first_with_the_page_that_shows_them() -> None:
    found = [
        Finding(Severity.WARNING, "a", "MF0;a:MQM9700/U1:3: one cable up", 2, "rails"),
        Finding(Severity.ERROR, "b", "b is cut off"),
    ]
    good = NOW - timedelta(days=1)
    failed: dict[str, Any] = {"last_at": NOW, "last_outcome": "failed", "last_good_at": good}
    state = SourceState(cluster="c", format="perfquery", error="cut off", **failed)
    scanned = NOW - timedelta(minutes=3)
    listed = overview.events(found, (), ["cable vanished"], [state], NOW, scanned)
    assert [one.word for one in listed] == ["error", "failing", "warning", "changed"]
    assert [one.where for one in listed] == ["fabric", "data", "fabric", "changes"]
    assert [one.time for one in listed] == [scanned, NOW, scanned, scanned]
    assert (listed[1].text, listed[2].text) == ("perfquery: cut off", "a:3: one cable up")
    assert overview.events((), (), (), (), NOW, NOW) == []
