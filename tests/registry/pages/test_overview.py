"""How clusters stand and what became another, in a statement each, against the same piece by piece."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

from registry.counters.counters import rates_of
from registry.errors import InputError, UnknownName
from registry.fabrics.changes import in_words, summary
from registry.ingest_runs.runs import (
    FAILED,
    FAILING,
    FRESH,
    NEVER,
    OLD,
    SAVED,
    STALE,
    Attempt,
    SourceState,
    age_text,
    freshness,
)
from registry.jobs.jobs import jobs_of_user
from registry.model import Job, LinkRates
from registry.model.intake import Intake
from registry.pages.changes import read_snapshot_diff, read_timeline
from registry.pages.fabric import read_fabric_history
from registry.pages.overview import read_overview
from registry.registry import Registry
from tests.registry.counters.test_counters import save, sweep
from tests.registry.fabrics.test_intended import PLAN
from tests.support.fat_tree import at, fat_tree, tree_tables

WHOLE = fat_tree()
CUT = fat_tree(without=(0,))
SLOW = fat_tree(slow=(1,))
NONE = timedelta()


def see(registry: Registry, cluster: str, minute: float, **seen: Any) -> None:
    registry.save(Intake(cluster=cluster, observed_at=at(minute), **seen))


@pytest.fixture
def several(registry: Registry) -> Registry:
    """A cluster that lost a cable and got it back, told late and out of order, with tables; and another."""
    see(registry, "toy", 30, fabric=WHOLE, tables=tree_tables())
    see(registry, "toy", 10, fabric=WHOLE)
    see(registry, "toy", 20, fabric=CUT)
    see(registry, "toy", 40, fabric=WHOLE)
    see(registry, "toy", 50, fabric=SLOW)
    see(registry, "big", 5, fabric=fat_tree(leaves=3))
    return registry


def test_an_empty_registry_stands_for_nothing(registry: Registry) -> None:
    found = read_overview(registry.database, None, at(0))
    assert (found.clusters, found.sources, found.cluster) == ({}, (), None)
    assert (found.before, found.plan, found.sweeps) == (None, None, ())
    assert read_overview(registry.database, "toy", at(0)).cluster is None


def test_clusters_and_sources_are_those_of_their_lists(several: Registry) -> None:
    several.failed(Attempt(started_at=at(60), cluster="toy", formats=("x", "y")), InputError("first"))
    several.failed(Attempt(started_at=at(80), cluster="toy", formats=("x",)), InputError("last"))
    several.failed(Attempt(started_at=at(70), cluster="toy", formats=("x",)), InputError("late"))
    found = read_overview(several.database, None, at(0))
    assert found.cluster == "big"
    assert tuple(found.clusters.values()) == several.fabrics.clusters()
    assert found.sources == several.runs.sources()
    errors = {source.format: source.error for source in found.sources if source.last_outcome == FAILED}
    assert errors == {"x": "last", "y": "first"}


def test_the_cluster_is_compared_with_what_it_was_before(several: Registry) -> None:
    found = read_overview(several.database, "toy", at(35))
    expected = several.fabrics.read("toy", at(35))
    assert found.before is not None
    assert (found.before.id, found.before.observed_at) == (expected.id, expected.observed_at)
    assert found.before.routing == expected.routing is not None
    assert found.before.fabric.cable_count == expected.fabric.cable_count
    cut = read_overview(several.database, "toy", at(25)).before
    assert cut is not None
    assert cut.id != found.before.id
    assert read_overview(several.database, "toy", at(9)).before is None


def test_its_plan_and_its_counters_come_along(several: Registry) -> None:
    several.save(Intake(cluster="toy", observed_at=at(50), intended=PLAN))
    save(several, *(sweep(minute) for minute in (60, 70, 80)))
    found = read_overview(several.database, "toy", at(0))
    assert found.plan is not None
    assert found.plan.id == several.intended.read("toy").id
    assert [one.at for one in found.sweeps] == [at(70), at(80)]
    assert read_overview(several.database, "big", at(0)).plan is None
    assert read_overview(several.database, "big", at(0)).sweeps == ()


def test_a_cluster_that_there_is_not_is_told_with_the_closest(several: Registry) -> None:
    for ask in (
        lambda: read_overview(several.database, "toi", at(0)),
        lambda: read_fabric_history(several.database, "toi"),
    ):
        with pytest.raises(UnknownName) as error:
            ask()
        assert error.value.close == ("toy",)
    with pytest.raises(UnknownName):
        read_timeline(several.database, "toi")


def test_the_version_of_a_cluster_changes_with_everything_that_is_saved(several: Registry) -> None:
    def versions() -> dict[str, int]:
        return {info.name: info.version for info in several.fabrics.clusters()}

    first = versions()
    job = Job(id="1", user="ann", hosts=("node00",), slots=(1,))
    several.save(Intake(cluster="toy", jobs=(job,), source="test", observed_at=at(60)))
    second = versions()
    assert second["toy"] != first["toy"]
    assert second["big"] == first["big"]


def test_rates_of_the_sweeps_are_those_of_the_counters(several: Registry) -> None:
    fabric = several.fabrics.read("toy").fabric

    def measured(moment: datetime | None = None) -> LinkRates | None:
        history = read_fabric_history(several.database, "toy", moment, counters=True)
        return rates_of(fabric, history.sweeps)

    assert measured() is None
    save(several, *(sweep(minute) for minute in (60, 70, 85)))
    for moment in (None, at(84), at(70)):
        found, expected = measured(moment), several.counters.rates("toy", moment)
        assert found is not None
        assert (found.start, found.end) == (expected.start, expected.end)
        assert np.array_equal(found.bytes_per_second, expected.bytes_per_second, equal_nan=True)
        assert np.array_equal(found.hottest(3), expected.hottest(3))
    assert measured(at(65)) is None


def test_the_hottest_rows_carry_something_and_come_in_order(several: Registry) -> None:
    save(several, *(sweep(minute) for minute in (60, 70)))
    rates = several.counters.rates("toy")
    rows = rates.hottest(100)
    assert len(rows) == 3
    share = rates.share[rows]
    assert (share[:-1] >= share[1:]).all()
    assert len(rates.hottest(2)) == 2


def test_states_follow_each_other_in_time_whenever_they_were_told(several: Registry) -> None:
    line = read_timeline(several.database, "toy")
    observations = several.fabrics.observations("toy")
    assert [state.at for state in line.states] == [at(10), at(20), at(30), at(50)]
    assert line.last_at == at(50)
    for moment in (10, 15, 20, 30, 45, 50, 99):
        state, expected = line.as_of(at(moment)), several.fabrics.read("toy", at(moment))
        assert state is not None
        assert (state.content, state.routing) == (expected.id, expected.routing)
    assert line.as_of(at(9)) is None
    assert {state.content for state in line.states} == {one.snapshot for one in observations}
    assert read_fabric_history(several.database, "toy").timeline == line


@pytest.mark.parametrize(("start", "end"), [(10, 20), (20, 30), (30, 50), (50, 10)])
def test_what_differs_between_two_states_is_what_the_fabrics_say(
    several: Registry, start: int, end: int
) -> None:
    line = read_timeline(several.database, "toy")
    before, after = line.as_of(at(start)), line.as_of(at(end))
    assert before is not None
    assert after is not None
    found = read_snapshot_diff(several.database, "toy", before, after)
    expected = several.fabrics.changes("toy", at(start), at(end))
    for name in ("cables_appeared", "cables_vanished", "capacity_changed", "switches_rerouted", "renamed"):
        assert getattr(found.changes, name) == getattr(expected, name)
    assert found.before.fabric.cable_count == several.fabrics.read("toy", at(start)).fabric.cable_count
    assert found.after.id == after.content


def test_rerouted_switches_are_told(several: Registry) -> None:
    see(several, "toy", 60, fabric=WHOLE, tables=tree_tables(turn=1))
    line = read_timeline(several.database, "toy")
    found = read_snapshot_diff(several.database, "toy", line.states[-2], line.states[-1])
    assert found.changes.switches_rerouted == several.fabrics.changes("toy", at(50), at(60)).switches_rerouted
    assert found.changes.switches_rerouted


def test_changes_are_told_in_words_and_counted(several: Registry) -> None:
    found = several.fabrics.changes("toy", at(10), at(20))
    assert in_words(found) == ["cable leaf0 port 3 - spine0 port 1 vanished"]
    assert summary(found) == "1 cable vanished"
    slower = several.fabrics.changes("toy", at(10), at(50))
    assert in_words(slower) == ["cable leaf0 port 4 - spine1 port 1 now carries 25 GB/s, before 50 GB/s"]
    assert summary(slower) == "1 cable changed in speed"
    assert summary(several.fabrics.changes("toy", at(10), at(10))) == "nothing changed"


def test_bundles_are_counted_by_their_cables(registry: Registry) -> None:
    whole, less = fat_tree(cables=3), fat_tree(cables=3, without=(0, 1))
    see(registry, "toy", 0, fabric=whole)
    see(registry, "toy", 1, fabric=less)
    assert summary(registry.fabrics.changes("toy", at(0), at(1))) == "2 cables vanished"


def test_a_users_jobs_are_found(several: Registry) -> None:
    jobs = tuple(Job(id=str(k), user=user, hosts=("node00",), slots=(1,)) for k, user in enumerate("aba"))
    several.save(Intake(cluster="toy", jobs=jobs, source="test", observed_at=at(60)))
    assert jobs_of_user(several.database, "a") == {"toy/0", "toy/2"}
    assert jobs_of_user(several.database, "c") == frozenset()


def source(**told: Any) -> SourceState:
    plain: dict[str, Any] = {
        "cluster": "toy",
        "format": "x",
        "last_at": at(0),
        "last_outcome": SAVED,
        "last_good_at": at(0),
    }
    return SourceState(**{**plain, "error": "", **told})


@pytest.mark.parametrize(
    ("told", "age", "state"),
    [
        ({}, STALE, FRESH),
        ({}, STALE + timedelta(seconds=1), OLD),
        ({"cluster": ""}, 10 * STALE, FRESH),
        ({"last_outcome": FAILED, "error": "cut off"}, NONE, FAILING),
        ({"last_outcome": FAILED, "last_good_at": None}, NONE, NEVER),
    ],
)
def test_a_source_is_fresh_stale_failing_or_was_never_read(
    told: dict[str, object], age: timedelta, state: str
) -> None:
    assert freshness(source(**told), at(0) + age).state == state


def test_what_is_wrong_with_a_source_is_in_the_words() -> None:
    words = freshness(source(last_outcome=FAILED, error="cut off"), at(120)).words
    assert words == "last good 2 hours ago; the last try failed: cut off"


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (timedelta(seconds=-5), "0 seconds"),
        (timedelta(seconds=1), "1 second"),
        (timedelta(seconds=90), "1 minute"),
        (timedelta(hours=23, minutes=59), "23 hours"),
        (timedelta(days=1200), "1,200 days"),
    ],
)
def test_ages_are_told_in_the_largest_unit(age: timedelta, text: str) -> None:
    assert age_text(age) == text
