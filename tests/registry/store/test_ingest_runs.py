"""Ingest runs: good, unchanged and failed ones, each remembered; how fresh what a source brought is."""

# mypy: disable-error-code="union-attr"

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ingest.options import Options
from ingest.pipeline import ingest
from registry.database.driver import Database
from registry.errors import AlmanacError, DatabaseError, DatabaseUnavailable, InputError, UnknownName
from registry.model import CounterSweep, Job
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store import ingest_runs
from registry.store.ingest_runs import (
    FAILED,
    FAILING,
    FRESH,
    NEVER,
    OLD,
    RETENTION,
    SAVED,
    STALE,
    UNCHANGED,
    Attempt,
    SourceState,
    age_text,
    freshness,
    record_run,
)
from tests.support.fat_tree import at, fat_tree
from tests.support.inputs import DATA

SCAN = DATA / "infiniband/fattree2-64-ftree/ibnetdiscover.txt"
TABLES = DATA / "infiniband/fattree2-64-ftree/opensm-lfts.dump"
SMALL = DATA / "infiniband/mixed-speeds-oversubscribed/ibnetdiscover.txt"
HERE = Options(cluster="here")


def test_every_run_is_recorded_and_no_file_is_parsed_again(registry: Registry, monkeypatch: Any) -> None:
    ingest(registry, [SCAN], HERE, dry_run=True)
    assert registry.runs.list() == ()
    saved = ingest(registry, [SCAN, TABLES], HERE)
    with monkeypatch.context() as patch:
        patch.setattr("ingest.pipeline._sources", None)
        same = ingest(registry, [SCAN, TABLES], HERE)
    with pytest.raises(UnknownName):
        ingest(registry, [TABLES], Options(cluster="there"))
    failed, again, first = registry.runs.list()
    assert (first.outcome, again.outcome, failed.outcome) == (SAVED, UNCHANGED, FAILED)
    assert first.formats == again.formats == ("ibnetdiscover", "opensm-lfts")
    assert first.files == (str(SCAN), str(TABLES))
    assert first.digest == again.digest != ""
    assert first.seconds > 0
    assert (failed.cluster, failed.formats, failed.error_kind) == ("there", ("opensm-lfts",), "UnknownName")
    assert "there is no cluster 'there'" in failed.error
    assert first.at < again.at < failed.at
    assert registry.runs.list("here") == (again, first)
    assert registry.runs.list(limit=1) == (failed,)
    assert (saved.same_as, same.same_as.id, same.warnings) == (None, first.id, saved.warnings)
    assert not same.receipt.new_observation
    assert same.receipt.snapshot == saved.receipt.snapshot == registry.fabrics.read("here").id
    assert same.receipt.routing == saved.receipt.routing


def test_other_bytes_times_names_or_options_are_read(registry: Registry, tmp_path: Any) -> None:
    scan = tmp_path / "scan.txt"
    scan.write_bytes(SMALL.read_bytes())
    ingest(registry, [scan], HERE)
    os.utime(scan, (1_577_836_800, 1_577_836_800))
    for options in (HERE, replace(HERE, rate=1e9), Options(cluster="there")):
        assert ingest(registry, [scan], options).same_as is None
    assert ingest(registry, [scan.rename(tmp_path / "other")], HERE).same_as is None


def test_a_placement_is_read_again_for_the_fabric_may_be_another(registry: Registry, tmp_path: Any) -> None:
    ingest(registry, [SCAN], HERE)
    order = tmp_path / "hosts.txt"
    order.write_text("node0001\nnode0002\n")
    options = replace(HERE, format="hostfile")
    first = ingest(registry, [order], options)
    ingest(registry, [DATA / "infiniband/fattree2-64-dead-spine/ibnetdiscover.txt"], HERE)
    again = ingest(registry, [order], options)
    assert again.same_as is None
    assert first.receipt.ids("placements") != again.receipt.ids("placements")


def test_a_file_that_cannot_be_read_is_a_failed_run(registry: Registry, tmp_path: Any) -> None:
    bad = tmp_path / "cut.dump"
    bad.write_bytes(TABLES.read_bytes()[:5000])
    with pytest.raises(InputError, match="truncated") as caught:
        ingest(registry, [bad], HERE)
    with pytest.raises(InputError):
        ingest(registry, [tmp_path / "missing"], HERE)
    missing, cut = registry.runs.list()
    assert (cut.formats, cut.files, cut.error) == (("opensm-lfts",), (str(bad),), str(caught.value))
    assert (missing.formats, missing.files) == (("",), (str(tmp_path / "missing"),))
    assert registry.fabrics.clusters() == ()


def test_the_last_good_run_of_each_source_is_known(registry: Registry) -> None:
    job = Job(id="1", hosts=("node00",), slots=(1,))
    scan = Intake(cluster="toy", observed_at=at(0), fabric=fat_tree(), source="scan", files=("s",))
    scan = replace(scan, started_at=at(0))
    jobs = Intake(cluster="toy", jobs=(job,), source="jobs", files=("j",), started_at=at(1))
    registry.save(scan)
    registry.save(replace(scan, files=()))  # by a program without files: recorded only where it is new
    assert [run.outcome for run in registry.runs.list()] == [SAVED]
    registry.save(jobs)
    registry.save(replace(scan, started_at=at(2)))
    bad = replace(jobs, jobs=(replace(job, hosts=("nodeX",)),), started_at=at(3))
    with pytest.raises(UnknownName):
        registry.save(bad)
    by_jobs, by_scan = registry.runs.sources("toy")
    assert (by_scan.format, by_scan.last_good_at) == ("scan", at(2))
    assert (by_scan.last_outcome, by_scan.error) == (UNCHANGED, "")
    assert (by_jobs.format, by_jobs.last_good_at, by_jobs.last_at) == ("jobs", at(1), at(3))
    assert "nodeX" in by_jobs.error
    assert [one.format for one in registry.runs.last_good("toy")] == ["jobs", "scan"]
    assert registry.runs.sources("other") == ()


def test_the_time_of_the_data_of_a_run_is_that_of_the_observation(registry: Registry) -> None:
    job = Job(id="1", hosts=("node00",), slots=(1,))
    rates = CounterSweep.of(at(-30), {})
    plain = Intake(cluster="toy", source="x", files=("f",))
    scan = replace(plain, fabric=fat_tree(), observed_at=at(-60), files_at=at(0))
    assert scan.data_at == at(-60)
    assert replace(scan, counters=(rates,)).data_at == at(-60)
    assert replace(plain, counters=(CounterSweep.of(at(-90), {}), rates)).data_at == at(-30)
    assert replace(plain, jobs=(job,), files_at=at(-5)).data_at == at(-5)
    assert replace(plain, jobs=(job,), observed_at=at(-9), files_at=at(-5)).data_at == at(-9)
    assert replace(plain, jobs=(job,)).data_at is None
    registry.save(replace(scan, started_at=at(10)))
    registry.save(replace(scan, observed_at=at(-600), started_at=at(20)))  # an older scan, ingested later
    (source,) = registry.runs.sources("toy")
    assert (source.last_good_at, source.observed_at) == (at(20), at(-60))
    assert [run.observed_at for run in registry.runs.list()] == [at(-600), at(-60)]


def test_a_source_that_never_was_good_is_known_but_not_among_the_good(registry: Registry) -> None:
    files = tuple(f"file{number}" for number in range(1500))
    attempt = Attempt(started_at=at(0), cluster="toy", formats=("scan",), files=files)
    registry.failed(attempt, InputError("long\n" * 5000))
    (source,) = registry.runs.sources()
    assert (source.last_good_at, registry.runs.last_good()) == (None, ())
    (run,) = registry.runs.list()  # with what is too long cut
    assert (len(run.files), run.files[-1]) == (1001, "... and 500 more")
    assert (len(run.error), "\n" in run.error) == (1000, False)
    assert source.error == run.error


def test_the_record_never_hides_the_error(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    errors: list[DatabaseError] = [DatabaseError("the disk is full")]
    asked = []

    def broken(self: Database, work: Any) -> Any:
        asked.append(work)
        raise errors[0]

    monkeypatch.setattr(Database, "write", broken)
    with pytest.raises(DatabaseError, match="disk is full"):
        registry.save(Intake(files=("f",)))
    with pytest.raises(InputError, match="cannot be read"):
        ingest(registry, ["no such file"], HERE)
    asked.clear()
    errors[0] = DatabaseUnavailable("bolt://x", "refused", "start it")
    with pytest.raises(DatabaseUnavailable):
        registry.save(Intake(files=("f",)))
    assert len(asked) == 1  # no failure is recorded if the server is gone


def note(registry: Registry, minutes: float, outcome: str, format: str = "scan") -> None:
    attempt = Attempt(started_at=at(minutes), cluster="toy", formats=(format,), files=("f",))
    error: AlmanacError | None = InputError("x") if outcome == FAILED else None
    result = ingest_runs.RunResult(outcome=outcome, seconds=1.0, error=error)
    registry.database.write(lambda transaction: record_run(transaction, attempt, result))


def test_old_runs_that_recorded_nothing_are_forgotten_but_for_the_last_good(registry: Registry) -> None:
    for minute, outcome in enumerate([SAVED, UNCHANGED, FAILED, UNCHANGED, FAILED]):
        note(registry, minute, outcome)
    note(registry, 5, UNCHANGED, "jobs")
    note(registry, RETENTION / timedelta(minutes=1) + 60, FAILED)
    left = [(run.at, run.outcome, run.formats[0]) for run in registry.runs.list()][::-1]
    last = (at(RETENTION / timedelta(minutes=1) + 60), FAILED, "scan")
    assert left == [(at(0), SAVED, "scan"), (at(3), UNCHANGED, "scan"), (at(5), UNCHANGED, "jobs"), last]
    assert {one.format: one.last_good_at for one in registry.runs.sources()} == {"scan": at(3), "jobs": at(5)}


def source(**changed: Any) -> SourceState:
    plain: dict[str, Any] = {"cluster": "toy", "format": "x", "last_at": at(0), "last_outcome": SAVED}
    return SourceState(**plain | {"last_good_at": at(0), "error": ""} | changed)


@pytest.mark.parametrize(
    ("changed", "age", "state"),
    [
        ({}, STALE, FRESH),
        ({}, STALE + timedelta(seconds=1), OLD),
        ({"cluster": ""}, 10 * STALE, FRESH),
        ({"last_outcome": FAILED, "error": "cut off"}, timedelta(), FAILING),
        ({"last_outcome": FAILED, "last_good_at": None}, timedelta(), NEVER),
    ],
)
def test_a_source_is_fresh_stale_failing_or_was_never_read(changed: Any, age: timedelta, state: str) -> None:
    assert freshness(source(**changed), at(0) + age).state == state


def test_the_age_counts_from_the_observation_and_not_from_the_ingest() -> None:
    words = freshness(source(last_outcome=FAILED, error="cut off"), at(120)).words
    assert words == "observed 2 hours ago; the last try failed: cut off"
    old = source(observed_at=at(0) - 10 * STALE)
    assert freshness(old, at(1)) == (OLD, "observed 70 days ago, ingested 1 minute ago")
    assert old.age(at(0)) == 10 * STALE
    assert source().age(at(0)) == timedelta()  # recorded by an earlier program: the ingest counts
    assert source(last_good_at=None, observed_at=at(0)).age(at(0)) is None


def test_an_age_is_in_the_largest_unit() -> None:
    ages = (timedelta(seconds=-5), timedelta(seconds=1), timedelta(seconds=90), timedelta(hours=23.9))
    assert [age_text(age) for age in ages] == ["0 seconds", "1 second", "1 minute", "23 hours"]
    assert age_text(timedelta(days=1200)) == "1,200 days"
