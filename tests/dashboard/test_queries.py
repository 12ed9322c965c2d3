"""What pages read: findings, changes and histories, in few statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from almanac.demo.fill import CLUSTER
from dashboard.queries.changes import cached_comparison
from dashboard.queries.fabric import (
    cached_counters,
    cached_fabric_findings,
    cached_fabric_history,
    fabric_view,
)
from dashboard.queries.history import history
from dashboard.queries.overview import cached_findings, overview
from dashboard.state.viewer import Viewer
from mapping.checks.catalog import check
from mapping.checks.error_limits import ErrorLimits, port_errors
from mapping.service.placing import subject_of
from registry.database.driver import Database
from registry.registry import Registry
from tests.dashboard.conftest import RESCANNED, SCANNED, Filled
from tests.dashboard.queries.test_fabric import CountingDatabase


def test_findings_are_those_of_the_command(filled: Filled) -> None:
    with filled.connect() as registry:
        view = overview(registry, "tree", RESCANNED)
        assert cached_findings(registry, view, ErrorLimits()) == check(subject_of(registry, "tree"))


def test_findings_go_by_the_configured_limits(demonstration: Path) -> None:
    with Registry.open(home=demonstration, idle_seconds=300) as registry:
        view = overview(registry, CLUSTER, datetime.now(UTC))
        usual, patient = (
            {one.check for one in cached_findings(registry, view, limits)}
            for limits in (ErrorLimits(), ErrorLimits(errors={}))
        )
    assert "link-errors" in usual
    assert "link-errors" not in patient


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
        (lambda registry: history(registry, Viewer()), 3, 1),  # the measured runs are one
        (lambda registry: history(registry, Viewer(only="x")), 4, 2),
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


def test_changes_take_two_statements_and_none_when_seen_again(opened: Registry) -> None:
    database = CountingDatabase(opened.database)
    registry = Registry(cast(Database, database))
    for most in (2, 0):
        database.statements.clear()
        line = cached_fabric_history(registry, "tree", None).timeline
        assert line is not None
        cached_comparison(registry, "tree", line.states[0], line.states[-1])
        assert len(database.statements) == most


def test_counters_and_findings_of_the_fabric_page_are_those_of_the_commands(demonstration: Path) -> None:
    limits = ErrorLimits()
    with Registry.open(home=demonstration, idle_seconds=120) as opened:
        database = CountingDatabase(opened.database)
        registry = Registry(cast(Database, database))
        found = cached_fabric_history(registry, CLUSTER, None)
        view = fabric_view(registry, found, None, None)
        place = (registry, view.cluster, view.snapshot, view.snapshot.id, None)
        for counts in ((2, 4), (0, 0)):
            database.statements.clear()
            counters = cached_counters(*place, limits.period, limits)
            assert len(database.statements) == counts[0]
            findings = cached_fabric_findings(*place, limits, counters)
            assert len(database.statements) == counts[1]
        assert counters is not None
        grown = opened.counters.recent(CLUSTER, limits.period)
        assert grown is not None
        expected = port_errors(view.fabric, grown, limits)
        assert np.array_equal(counters.errors.amount, expected.amount)
        assert np.array_equal(counters.errors.excess, expected.excess)
        assert [(one.heading, one.subject) for one in findings] == [
            (one.heading, one.subject) for one in check(subject_of(opened, CLUSTER))
        ]
