"""How many statements the pages of jobs take, and what they read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dashboard.queries import job
from dashboard.queries.caching import cached_in_order, cached_placement
from dashboard.state.viewer import Viewer
from registry.errors import UnknownName
from registry.records.placements.records import PRESENT
from registry.registry import Registry
from tests.dashboard.conftest import Filled
from tests.dashboard.queries.test_fabric import CountingDatabase, counted, opened

__all__ = ["counted", "opened"]
SEEN = Viewer()


def test_a_job_beside_another_placement_takes_three_statements_and_none_when_seen_again(
    counted: tuple[Registry, CountingDatabase], filled: Filled
) -> None:
    registry, database = counted
    for expected in (3, 0):
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


def test_the_best_placement_that_can_be_compared_with_how_the_job_runs_is_shown_first(
    counted: tuple[Registry, CountingDatabase], filled: Filled
) -> None:
    registry, _ = counted
    second, first = registry.placements.history("ndr")
    assert (second.id, first.id) == (filled.second, filled.first)
    assert job.shown_first([]) is None
    assert job.shown_first([second, first]) == second.id
    ran = replace(first, role=PRESENT, id="ran", congestion_seconds=3.0)
    slow, fast = (
        replace(second, id=name, congestion_seconds=time) for name, time in (("s", 2.0), ("f", 1.0))
    )
    assert job.shown_first([slow, ran]) == "s"
    assert job.shown_first([slow, fast, ran]) == job.shown_first([fast, slow, ran]) == "f"
    assert job.shown_first([slow, replace(fast, snapshot="other"), ran]) == "s"
    assert job.shown_first([replace(fast, congestion_seconds=None), slow, ran]) == "s"
    assert job.shown_first([replace(fast, snapshot="other"), ran]) == "f"
