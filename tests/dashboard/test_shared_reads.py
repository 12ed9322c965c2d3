"""What pages read, in few statements; the search over all; parameters that name what is another user's."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from almanac.demo.demo import CLUSTER
from bench.dashboard.statements import CountingDatabase
from dashboard.pages import job_data as job
from dashboard.pages.overview import cached_findings, overview
from dashboard.shared import door
from dashboard.shared import fabric as views
from dashboard.shared.caching import cached_clusters, cached_in_order, cached_pair, cached_placement
from dashboard.shared.door import cached_plan, visible_plans
from dashboard.shared.placements import history
from dashboard.shared.search import search
from dashboard.shared.simulated import simulated, whole_runs
from dashboard.shared.viewer import Access, Viewer
from mapping import evaluate
from mapping.checks.checks import check
from mapping.checks.finding import ErrorLimits, port_errors
from mapping.questions.place import subject_of
from mapping.traffic.names import link_text
from registry.database.driver import Database
from registry.database.embedded_server import ServerAddress
from registry.errors import UnknownName
from registry.registry import Registry
from registry.store.fabric_history import read_fabric_history
from registry.store.placement_rows import PRESENT
from registry.store.placements import open_placement
from tests.dashboard.conftest import MARKUP, RESCANNED, SCANNED, Filled
from tests.support import paths, servers
from tests.support.apps import FABRIC, JOB, PAGES, address, page, seen_by, whole

SEEN, OWN = Viewer(), Viewer(only="x")


@pytest.fixture(scope="module")
def opened(filled: Filled) -> Iterator[Registry]:
    with filled.connect() as registry:
        yield registry


@pytest.fixture(scope="module")
def demo_opened(demonstration: ServerAddress) -> Iterator[Registry]:
    with servers.opened(demonstration) as registry:
        yield registry


def counted(registry: Registry) -> tuple[Registry, list[str]]:
    """Return the registry over a database that lists the statements that it runs, and this list."""
    database = CountingDatabase(registry.database)
    return Registry(cast(Database, database)), database.statements


def fabric(registry: Registry, at: datetime | None, placement: str | None) -> None:
    found = read_fabric_history(registry.database, "tree", at, counters=True)
    views.fabric_view(registry, found, at, placement, SEEN)


def job_page(registry: Registry, second: str, first: str) -> None:
    job.job_file(registry, "ndr/4711", SEEN)
    found = cached_placement(registry, second)
    cached_placement(registry, first)
    assert cached_in_order(second, found) is not None


ASKED: dict[str, tuple[Callable[[Registry, Filled], object], int, int]] = {
    "overview": (lambda registry, _: overview(registry, "tree", RESCANNED), 3, 1),
    "history": (lambda registry, _: history(registry, SEEN), 3, 1),  # the measured runs are one
    "one user's history": (lambda registry, _: history(registry, OWN), 4, 2),
    "fabric": (lambda registry, _: fabric(registry, None, None), 3, 1),
    "the past": (lambda registry, _: fabric(registry, SCANNED, None), 3, 1),
    "a placement on the fabric": (lambda registry, of: fabric(registry, None, of.alone), 3, 1),
    "a job": (lambda registry, of: job_page(registry, of.second, of.first), 3, 0),
    "a pair": (lambda registry, of: cached_pair(registry, of.second, of.first), 1, 1),
    "the newest job": (lambda registry, _: job.newest(registry, SEEN), 3, 1),
}
"""What is asked of the small registry, most statements the first time, and most when it is seen again."""


@pytest.mark.parametrize("name", ASKED)
def test_views_take_few_statements(opened: Registry, filled: Filled, name: str) -> None:
    ask, cold, warm = ASKED[name]
    registry, statements = counted(opened)
    for most in (cold, warm):
        statements.clear()
        ask(registry, filled)
        assert len(statements) <= most


def test_runs_and_plans_take_few_statements(demo_opened: Registry) -> None:
    registry, statements = counted(demo_opened)
    for viewer, most in ((SEEN, (3, 1)), (OWN, (4, 2))):
        for allowed in most:
            statements.clear()
            found = simulated(registry, viewer)
            assert len(statements) <= allowed
            assert bool(found.runs) == (viewer is SEEN)
    runs = tuple(run.id for run in simulated(registry, SEEN).runs)
    for allowed in (1, 0):
        statements.clear()
        whole_runs(registry, runs)
        assert len(statements) <= allowed
    statements.clear()
    (info,) = visible_plans(registry, SEEN)
    assert cached_plan(registry, info.id).id == info.id
    assert len(statements) == 2


def test_findings_are_those_of_the_command_by_the_configured_limits(
    opened: Registry, demo_opened: Registry
) -> None:
    view = overview(opened, "tree", RESCANNED)
    assert cached_findings(opened, view, ErrorLimits()) == check(subject_of(opened, "tree"))
    view = overview(demo_opened, CLUSTER, datetime.now(UTC))
    usual, patient = (
        {one.check for one in cached_findings(demo_opened, view, limits)}
        for limits in (ErrorLimits(), ErrorLimits(errors={}))
    )
    assert "link-errors" in usual
    assert "link-errors" not in patient


def test_changes_are_counted_from_a_day_before(opened: Registry) -> None:
    view = overview(opened, "tree", RESCANNED + (RESCANNED - SCANNED))
    assert view.changes is None  # first seen within the day
    later = overview(opened, "tree", SCANNED + (RESCANNED - SCANNED) * 6)
    assert later.changes is not None
    assert len(later.changes.cables_vanished) == 2


def test_one_users_view_has_the_placements_of_their_jobs_only(opened: Registry, filled: Filled) -> None:
    mine = history(opened, Viewer(only=opened.jobs.read("4711").job.user))
    assert set(mine.series.id) == {filled.first, filled.second}
    assert len(history(opened, Viewer(only="nobody")).series) == 0
    assert len(history(opened, Viewer()).series) == 3


def test_counters_and_findings_of_the_fabric_page_are_those_of_the_commands(demo_opened: Registry) -> None:
    limits = ErrorLimits()
    registry, statements = counted(demo_opened)
    view = views.fabric_view(registry, views.cached_fabric_history(registry, CLUSTER, None), None, None, SEEN)
    place = (registry, view.cluster, view.snapshot, view.snapshot.id, None)
    for counts in ((2, 4), (0, 0)):
        statements.clear()
        counters = views.cached_counters(*place, limits.period, limits)
        assert len(statements) == counts[0]
        findings = views.cached_fabric_findings(*place, limits, counters)
        assert len(statements) == counts[1]
    assert counters is not None
    grown = demo_opened.counters.recent(CLUSTER, limits.period)
    assert grown is not None
    expected = port_errors(view.fabric, grown, limits)
    assert np.array_equal(counters.errors.amount, expected.amount)
    assert np.array_equal(counters.errors.excess, expected.excess)
    assert [(one.heading, one.subject) for one in findings] == [
        (one.heading, one.subject) for one in check(subject_of(demo_opened, CLUSTER))
    ]


def test_saved_loads_and_costs_are_those_of_the_drawn_fabric(opened: Registry, filled: Filled) -> None:
    whole = open_placement(opened.database, filled.second)
    assert whole.profile is not None
    assert whole.stored.evaluation is not None
    again = evaluate(whole.snapshot.fabric, whole.profile.profile, whole.stored.placement)
    assert np.allclose(again.link_bytes, whole.stored.evaluation.link_bytes)
    in_order = cached_in_order(filled.second, whole)
    assert in_order is not None
    assert whole.stored.in_order is not None
    assert in_order.congestion_seconds == pytest.approx(whole.stored.in_order.congestion_seconds)


def test_the_best_placement_comparable_with_the_job_is_first(opened: Registry, filled: Filled) -> None:
    rows = opened.placements.history()
    by_id = {row.id: row for row in rows}
    second, first = by_id[filled.second], by_id[filled.first]
    assert [row.id for row in job.comparable(second, rows)] == [filled.first]
    assert job.comparable(by_id[filled.alone], rows) == []  # of another profile and wiring
    assert job.shown_first([]) is None
    assert job.shown_first([second, first]) == second.id
    ran = replace(first, role=PRESENT, id="ran", congestion_seconds=3.0)
    slow, fast = (
        replace(second, id=name, congestion_seconds=time) for name, time in (("s", 2.0), ("f", 1.0))
    )
    again = replace(ran, id="again", congestion_seconds=0.5)
    assert job.shown_first([slow, ran]) == job.shown_first([slow, again, ran]) == "s"
    assert job.shown_first([slow, fast, ran]) == job.shown_first([fast, slow, ran]) == "f"
    assert job.shown_first([slow, replace(fast, snapshot="other"), ran]) == "s"
    assert job.shown_first([replace(fast, congestion_seconds=None), slow, ran]) == "s"
    assert job.shown_first([replace(fast, snapshot="other"), ran]) == "f"


def test_a_complete_name_leads_to_one_thing(filled: Filled) -> None:
    for cluster, text, kind, expected in (
        ("tree", "node0001", "host", {"cluster": "tree", "host": "node0001"}),
        ("tree", " node0001 ", "host", {"cluster": "tree", "host": "node0001"}),
        ("ndr", "4711", "job", {"job": "ndr/4711"}),
        ("tree", "eve", "user", {"cluster": "tree", "user": "eve"}),
        ("tree", "pabcdef0", "placement", {"placement": "pabcdef0"}),
    ):
        with filled.connect() as registry:
            (hit,) = search(registry, cached_clusters(registry).infos[cluster], text, SEEN)
        assert (hit.kind, dict(hit.address)) == (kind, expected)


def test_links_guids_and_parts_of_names_are_found_but_no_jobs_and_users_of_others(filled: Filled) -> None:
    with filled.connect() as registry:
        info = cached_clusters(registry).infos["tree"]
        fabric = registry.fabrics.read("tree").fabric
        switch = int(fabric.switches[0])
        (hit,) = search(registry, info, f"{int(fabric.guid[switch]):#018x}", SEEN)
        assert (hit.kind, hit.label) == ("switch", fabric.names[switch])
        name = link_text(fabric, 0)
        (hit,) = search(registry, info, name.replace(":", " : "), SEEN)
        assert (hit.kind, hit.address["link"]) == ("link", name)
        assert {hit.label for hit in search(registry, info, "NODE001", SEEN)} >= {"node0010", "node0011"}
        (hit,) = search(registry, info, "bold", SEEN)
        assert hit.label == f"9 · {MARKUP} · eve"
        assert search(registry, info, "nothing-like-it", SEEN) == []
        mallory = Viewer(only="mallory")
        assert search(registry, info, "eve", mallory) == []
        assert search(registry, info, "bold", mallory) == []
        assert search(registry, info, "eve", Viewer(key=b"k" * 32)) == []


def test_the_field_opens_a_single_hit_and_lists_several(filled: Filled) -> None:
    app = page(filled.connect, "data", cluster="tree")
    app.text_input(key="search").set_value("node001").run()
    labels = [str(link.proto.label) for link in app.get("page_link")]
    assert "host: node0010" in labels
    assert app.text_input(key="search").value == ""
    app.text_input(key="search").set_value("node0010").run()
    assert address(app) == {"cluster": "tree", "host": "node0010"}
    assert not app.exception


PLACEMENTS = ("placement", "a", "b", "beside", "map", "run", "plan", "link", "load", "inside")
JOBS = ("job", "text", "user", "cluster", "cluster a", "cluster b", "application")
OTHER = (
    *("at", "from", "to", "since", "until", "range", "live", "wall", "tab", "show", "colour", "shape"),
    *("compare", "links", "curve", "outcome", "metric", "rule", "page", "gain", "over", "state"),
    *("host", "switch", "device", "down", "drain", "slow", "add"),
)
"""Parameters of the address: those that may name a placement or a result, a job, and the others."""
PICKED = re.compile(
    r"(?:query_params(?:\.get|\.get_all|\.pop)?[([]|named\(|any_of\(|tabbed\(|parsed_moment\()\"([a-z ]+)\""
    r"|(?:choose|moment|at_least|chips|text_field|toggle|timeline)\(\s*\"[^\"]*\",\s*\"([a-z ]+)\""
)
"""Where the pages read a parameter."""
READS = re.compile(
    r"\b(cached_placement|cached_pair|_both|cached_plan|whole_runs|cached_page|cached_choices|cached_ingests)\b"
    r"|registry\.(placements|jobs|job_pages|simulations|circuit_plans|measured_runs|runs|advices|traces|running)\b"
)
"""Functions and stores that know no viewer."""
ALLOWED = {
    "placement_search.py",  # saves what it finds for the shown job; reads nothing by an id of an address
    *("door.py", "caching.py", "simulated.py", "placements.py", "search.py"),  # what the door reads from
}


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted((paths.ROOT / "dashboard" / folder).rglob("*.py"))


def test_every_parameter_of_a_page_is_tried() -> None:
    known = {*PLACEMENTS, *JOBS, *OTHER}
    used = {
        name
        for path in sources("pages", "shared")
        for found in PICKED.findall(path.read_text("utf-8"))
        for name in found
        if name
    }
    assert {"placement", "job", "run", "plan", "load", "beside"} <= used
    assert used <= known, used - known


def test_pages_read_what_belongs_to_users_through_the_door_only() -> None:
    wrong = {
        f"{path.name}: {line}"
        for path in sources("pages", "map", "shared")
        for line in ast.unparse(ast.parse(path.read_text("utf-8"))).splitlines()
        if READS.search(line) and not line.startswith("from registry.") and path.name not in ALLOWED
    }
    assert not wrong


def shown(app: AppTest, identity: str) -> str:
    """Return all of a page and its address, with an id and the present time left out."""
    kinds = " ".join(element.type for element in app.main)
    text = "\n".join((whole(app), str(sorted(address(app).items())), kinds))
    text = text.replace(identity, "ID").replace(identity.rpartition("/")[2], "ID")
    return re.sub(r"\d\d:\d\d:\d\d|\d+ (second|minute)s? ago", "", text)


@pytest.mark.parametrize("name", [*PAGES, JOB])
def test_another_users_placement_or_job_is_as_unknown_as_one_that_is_not_there(
    filled: Filled, name: str
) -> None:
    missing = "p" + "0" * (len(filled.second) - 1)
    access = Access(only="eve")
    pairs = [(parameter, filled.second, missing) for parameter in PLACEMENTS]
    pairs += [(parameter, "ndr/4711", "ndr/9999") for parameter in ("job", "text", "load")]
    for parameter, others, none in pairs:
        seen = [seen_by(access, filled.connect, name, **{parameter: given}) for given in (others, none)]
        real, unreal = map(shown, seen, (others, none))
        assert real == unreal, (name, parameter)
        assert "4711" not in real, (name, parameter)


@pytest.mark.parametrize("parameter", [*OTHER, *JOBS])
@pytest.mark.parametrize("name", [FABRIC, JOB])
def test_no_other_parameter_shows_a_placement_beside_it(filled: Filled, name: str, parameter: str) -> None:
    given = {"cluster": "ndr", "placement": filled.second, parameter: filled.first}
    app = seen_by(Access(only="eve"), filled.connect, name, **given)
    assert not re.search(r"(?<!\d)4711(?!\d)", whole(app) + str(address(app)))
    assert not {"ranks", "strategy"} & {column for table in app.dataframe for column in table.value.columns}


def test_the_owner_opens_what_others_do_not(filled: Filled) -> None:
    with filled.connect() as registry:
        user = registry.jobs.read("4711").job.user
        own, other = Viewer(only=user), Viewer(only="eve")
        assert door.placement(registry, filled.second, own).stored.id == filled.second
        assert door.pair(registry, filled.first, filled.second, own)[0].stored.id == filled.first
        assert door.job(registry, "4711", "ndr", own).stored.job.user == user
        for viewer, name in ((other, filled.second), (other, filled.alone), (own, filled.alone)):
            refused(registry, name, viewer)
        assert door.placement(registry, filled.alone, Viewer()).stored.id == filled.alone
        assert door.choices(registry, other).users == ("eve",)
        assert "hpcg" not in " ".join(door.choices(registry, other).applications)


def refused(registry: Registry, name: str, viewer: Viewer) -> None:
    for read in (
        lambda: door.placement(registry, name, viewer),
        lambda: door.pair(registry, name, name, viewer),
    ):
        with pytest.raises(UnknownName) as caught:
            read()
        assert (caught.value.kind, caught.value.name, caught.value.close) == ("placement", name, ())


def test_ingest_runs_name_nothing_of_others(filled: Filled) -> None:
    with filled.connect() as registry:
        everything, limited = (door.ingests(registry, viewer) for viewer in (Viewer(), Viewer(only="eve")))
        assert any(run.files for run in everything.runs)
        assert {text for run in limited.runs for text in (*run.files, *run.warnings)} == {door.HIDDEN}
        assert [len(run.files) for run in limited.runs] == [len(run.files) for run in everything.runs]
