"""How many statements the pages of jobs take, and what they read."""

from __future__ import annotations

import pytest

from dashboard.queries import job
from dashboard.queries.caching import cached_in_order, cached_placement
from dashboard.queries.jobs import jobs_view
from dashboard.state.viewer import Viewer
from registry.errors import UnknownName
from registry.pages.jobs import JobFilter
from registry.registry import Registry
from tests.dashboard.conftest import Filled
from tests.dashboard.queries.test_fabric import CountingDatabase, counted, opened

__all__ = ["counted", "opened"]
SEEN = Viewer()


def test_a_job_beside_another_placement_takes_three_statements_and_one_when_seen_again(
    counted: tuple[Registry, CountingDatabase], filled: Filled
) -> None:
    registry, database = counted
    for expected in (3, 1):
        database.statements.clear()
        file = job.job_file(registry, "ndr/4711", SEEN)
        view = job.JobView(
            file=file,
            opened=cached_placement(registry, filled.second),
            beside=cached_placement(registry, filled.first),
        )
        assert view.opened is not None
        assert cached_in_order(filled.second, view.opened) is not None
        assert len(database.statements) == expected


def test_a_placement_alone_takes_three_statements_with_its_job(
    counted: tuple[Registry, CountingDatabase], filled: Filled
) -> None:
    registry, database = counted
    opened_one, key = job.owner(registry, filled.second, SEEN)
    assert key == "ndr/4711"
    job.job_file(registry, key, SEEN)
    cached_placement(registry, opened_one.stored.id)
    assert len(database.statements) <= 3


def test_the_page_without_an_address_takes_three_statements(
    counted: tuple[Registry, CountingDatabase],
) -> None:
    registry, database = counted
    found = job.newest(registry, SEEN)
    assert not isinstance(found, str)
    assert found is not None
    assert len(database.statements) <= 3


def test_the_table_of_jobs_takes_a_statement_a_fabric_once_and_two_for_the_rest(
    counted: tuple[Registry, CountingDatabase],
) -> None:
    registry, database = counted
    clusters = len(registry.job_pages.choices().clusters)
    for most in (2 + clusters, 2):
        database.statements.clear()
        choices = registry.job_pages.choices()
        view = jobs_view(registry, JobFilter(), choices.clusters, limit=100)
        assert view.total == 2
        assert len(database.statements) <= most
    database.statements.clear()
    jobs_view(registry, JobFilter(cluster="ndr"), choices.clusters, limit=100)
    assert len(database.statements) == 1


def test_fragmentation_is_known_where_the_fabric_has_the_hosts(
    counted: tuple[Registry, CountingDatabase],
) -> None:
    registry, _ = counted
    choices = registry.job_pages.choices()
    view = jobs_view(registry, JobFilter(), choices.clusters, limit=100)
    assert all(found is not None and found.groups >= found.fewest >= 1 for found in view.fragmentation)
    nowhere = jobs_view(registry, JobFilter(), {}, limit=100)
    assert nowhere.fragmentation == (None, None)


def test_a_job_that_may_not_be_seen_is_unknown_without_a_hint(
    counted: tuple[Registry, CountingDatabase], filled: Filled
) -> None:
    registry, _ = counted
    own = Viewer(only="eve")
    for name in ("ndr/4711", "4711", "ndr/4712"):
        with pytest.raises(UnknownName) as error:
            job.job_file(registry, name, own)
        assert error.value.close == ()
    with pytest.raises(UnknownName) as error:
        job.owner(registry, filled.second[:-1] + "x", own)
    assert error.value.close == ()


def test_only_placements_of_one_profile_and_wiring_are_comparable(
    counted: tuple[Registry, CountingDatabase], filled: Filled
) -> None:
    registry, _ = counted
    rows = registry.placements.history()
    by_id = {row.id: row for row in rows}
    beside = job.comparable(by_id[filled.second], rows)
    assert [row.id for row in beside] == [filled.first]
    assert job.comparable(by_id[filled.alone], rows) == []
