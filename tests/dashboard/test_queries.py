"""What pages read: findings, changes and histories, in few statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import pytest

from dashboard.queries.changes import cached_comparison, changes_view
from dashboard.queries.history import history
from dashboard.queries.overview import cached_findings, overview
from dashboard.queries.traffic import clusters
from dashboard.state.viewer import Viewer
from mapping.checks.catalog import check
from mapping.service.placing import subject_of
from registry.database.driver import Database
from registry.registry import Registry
from tests.dashboard.conftest import RESCANNED, SCANNED, Filled
from tests.dashboard.queries.test_fabric import CountingDatabase


def test_findings_are_those_of_the_command(filled: Filled) -> None:
    with filled.connect() as registry:
        view = overview(registry, "tree", RESCANNED)
        assert cached_findings(view) == check(subject_of(registry, "tree"))


def test_changes_are_counted_from_a_day_before(filled: Filled) -> None:
    with filled.connect() as registry:
        view = overview(registry, "tree", RESCANNED + (RESCANNED - SCANNED))
        assert view.changes is None  # first seen within the day
        later = overview(registry, "tree", SCANNED + (RESCANNED - SCANNED) * 6)
        assert later.changes is not None
        assert len(later.changes.cables_vanished) == 2


def test_one_users_view_has_the_placements_of_their_jobs_only(filled: Filled) -> None:
    with filled.connect() as registry:
        job = registry.jobs.read("4711").job
        mine = history(registry, Viewer(only=job.user))
        assert set(mine.series.id) == {filled.first, filled.second}
        assert len(history(registry, Viewer(only="nobody")).series) == 0
        assert len(history(registry, Viewer()).series) == 3


@pytest.fixture(scope="module")
def opened(filled: Filled) -> Iterator[Registry]:
    with filled.connect() as registry:
        yield registry


Ask = Callable[[Registry], object]


@pytest.mark.parametrize(
    ("ask", "cold", "warm"),
    [
        (lambda registry: overview(registry, "tree", RESCANNED), 3, 1),
        (lambda registry: history(registry, Viewer()), 2, 1),
        (lambda registry: history(registry, Viewer(only="x")), 3, 2),
    ],
    ids=["overview", "history", "one user's history"],
)
def test_views_take_few_statements(opened: Registry, ask: Ask, cold: int, warm: int) -> None:
    database = CountingDatabase(opened.database)
    registry = Registry(cast(Database, database))
    for most in (cold, warm):
        database.statements.clear()
        ask(registry)
        assert len(database.statements) <= most


def test_the_changes_view_takes_three_statements_and_two_when_seen_again(opened: Registry) -> None:
    database = CountingDatabase(opened.database)
    registry = Registry(cast(Database, database))
    for most in (3, 2):
        database.statements.clear()
        clusters(registry)
        view = changes_view(registry, "tree", None, None)
        cached_comparison(registry, view.timeline.cluster, view.before, view.after)
        assert len(database.statements) <= most
