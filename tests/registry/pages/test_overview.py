"""The overview of clusters in one statement, against the same data read piece by piece."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest

from registry.counters.counters import rates_of
from registry.errors import InputError, UnknownName
from registry.ingest_runs.runs import FAILED, Attempt
from registry.jobs.jobs import jobs_of_user
from registry.model import Job, LinkRates
from registry.model.intake import Intake
from registry.pages.fabric import read_fabric_history
from registry.pages.overview import read_overview
from registry.registry import Registry
from tests.registry.counters.test_counters import save, sweep
from tests.registry.fabrics.test_intended import PLAN
from tests.support.fat_tree import at


def test_an_empty_registry_has_no_clusters(registry: Registry) -> None:
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


def test_its_plan_and_its_counters_are_read_too(several: Registry) -> None:
    several.save(Intake(cluster="toy", observed_at=at(50), intended=PLAN))
    save(several, *(sweep(minute) for minute in (60, 70, 80)))
    found = read_overview(several.database, "toy", at(0))
    assert found.plan is not None
    assert found.plan.id == several.intended.read("toy").id
    assert [one.at for one in found.sweeps] == [at(70), at(80)]
    assert read_overview(several.database, "big", at(0)).plan is None
    assert read_overview(several.database, "big", at(0)).sweeps == ()


def test_an_unknown_cluster_is_an_error_with_the_closest(several: Registry) -> None:
    for ask in (
        lambda: read_overview(several.database, "toi", at(0)),
        lambda: read_fabric_history(several.database, "toi"),
    ):
        with pytest.raises(UnknownName) as error:
            ask()
        assert error.value.close == ("toy",)


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


def test_a_users_jobs_are_found(several: Registry) -> None:
    jobs = tuple(Job(id=str(k), user=user, hosts=("node00",), slots=(1,)) for k, user in enumerate("aba"))
    several.save(Intake(cluster="toy", jobs=jobs, source="test", observed_at=at(60)))
    assert jobs_of_user(several.database, "a") == {"toy/0", "toy/2"}
    assert jobs_of_user(several.database, "c") == frozenset()
