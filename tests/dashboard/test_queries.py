"""What pages read, in few statements; the search over all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

import numpy as np
import pytest

from almanac.demo.fill import CLUSTER
from bench.dashboard.statements import CountingDatabase
from dashboard.queries import fabric as views
from dashboard.queries import job
from dashboard.queries.caching import cached_in_order, cached_pair, cached_placement
from dashboard.queries.changes import cached_comparison
from dashboard.queries.circuits import cached_plan, visible_plans
from dashboard.queries.clusters import cached_clusters
from dashboard.queries.history import history
from dashboard.queries.overview import cached_findings, overview
from dashboard.queries.search import search
from dashboard.queries.simulated import simulated, whole_runs
from dashboard.state.viewer import Viewer
from mapping import evaluate
from mapping.checks.catalog import check
from mapping.checks.error_limits import ErrorLimits, port_errors
from mapping.service.placing import subject_of
from mapping.traffic.device_names import link_text
from registry.database.driver import Database
from registry.database.local.server import ServerAddress
from registry.pages.fabric import read_fabric_history
from registry.pages.placements import open_placement
from registry.records.placements.records import PRESENT
from registry.registry import Registry
from tests.dashboard.conftest import MARKUP, RESCANNED, SCANNED, Filled
from tests.support import servers
from tests.support.apps import address, page

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


def comparison(registry: Registry) -> None:
    line = views.cached_fabric_history(registry, "tree", None).timeline
    assert line is not None
    cached_comparison(registry, "tree", line.states[0], line.states[-1])


def fabric(registry: Registry, at: datetime | None, placement: str | None) -> None:
    found = read_fabric_history(registry.database, "tree", at, counters=True)
    views.fabric_view(registry, found, at, placement, SEEN)


def job_page(registry: Registry, second: str, first: str) -> None:
    job.job_file(registry, "ndr/4711", SEEN)
    found = cached_placement(registry, second)
    cached_placement(registry, first)
    assert cached_in_order(second, found) is not None


def placement_page(registry: Registry, placement: str) -> None:
    found, key = job.owner(registry, placement, SEEN)
    assert key == "ndr/4711"
    job.job_file(registry, key, SEEN)
    cached_placement(registry, found.stored.id)


ASKED: dict[str, tuple[Callable[[Registry, Filled], object], int, int]] = {
    "clusters": (lambda registry, _: cached_clusters(registry), 1, 0),
    "overview": (lambda registry, _: overview(registry, "tree", RESCANNED), 3, 1),
    "history": (lambda registry, _: history(registry, SEEN), 3, 1),  # the measured runs are one
    "one user's history": (lambda registry, _: history(registry, OWN), 4, 2),
    "changes": (lambda registry, _: comparison(registry), 2, 0),
    "fabric": (lambda registry, _: fabric(registry, None, None), 3, 1),
    "the past": (lambda registry, _: fabric(registry, SCANNED, None), 3, 1),
    "a placement on the fabric": (lambda registry, of: fabric(registry, None, of.alone), 3, 1),
    "a job": (lambda registry, of: job_page(registry, of.second, of.first), 3, 0),
    "a placement": (lambda registry, of: placement_page(registry, of.second), 3, 0),
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
    with filled.connect() as registry:
        info = cached_clusters(registry).infos["tree"]
        assert {hit.label for hit in search(registry, info, "NODE001", SEEN)} >= {"node0010", "node0011"}
        (hit,) = search(registry, info, "bold", SEEN)
        assert hit.label == f"9 · {MARKUP} · eve"
        assert search(registry, info, "nothing-like-it", SEEN) == []
    with filled.connect() as registry:
        info = cached_clusters(registry).infos["tree"]
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
