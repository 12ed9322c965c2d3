"""The generated year: what changes, is counted and is reported, and that all of it is stored and read."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from bench.dashboard.machine import CAPACITY
from bench.year.__main__ import RULES, YearSoFar, rules_of, stored_bytes
from bench.year.accounting import Accounting
from bench.year.counting import NAMES, Counting
from bench.year.ingests import measure_ingests
from bench.year.reads import READS, Case, summary
from bench.year.wiring import Wiring
from bench.year.writing import CLUSTER, History, Sizes
from registry.model import Fabric, Job
from registry.registry import Registry

START = datetime(2025, 1, 1, tzinfo=UTC)
SMALL = Sizes(pods=2, leaves=4, jobs=40, advised=2, sweep_minutes=20)
"""32 hosts."""


def wires(fabric: Fabric) -> set[tuple[int, int, float]]:
    links = fabric.links
    return set(zip(links.source.tolist(), links.target.tolist(), links.capacity.tolist(), strict=True))


def test_the_wiring_changes_so_often_and_no_host_loses_its_cable() -> None:
    wiring = Wiring.of(SMALL.pods, SMALL.leaves, 30, seed=0)
    before, quiet = wires(wiring.present()), 0
    for _ in range(240):
        changes = wiring.pass_hours(1.0)
        fabric = wiring.present()
        now = wires(fabric)
        assert len(before ^ now) <= 4 * changes  # a slow cable is another wire in both directions
        assert set(fabric.links.source.tolist()) >= set(fabric.hosts.tolist())
        before, quiet = now, quiet + (changes == 0)
    assert 230 <= wiring.changes <= 370  # 300, and four standard deviations
    assert 40 <= quiet <= 100  # exp(-30 / 24) of the hours


def test_a_cable_fails_in_both_directions_and_its_ports_are_listed() -> None:
    wiring = Wiring.of(SMALL.pods, SMALL.leaves, 1000, seed=1)
    wiring.pass_hours(24.0)
    fabric = wiring.present()
    there = wires(fabric)
    assert there == {(target, source, capacity) for source, target, capacity in there}
    slow = int((fabric.links.capacity < CAPACITY).sum())
    lost = len(wiring.whole.links) - len(fabric.links)
    assert slow > 0
    assert lost > 0
    assert len(fabric.ports) == slow + lost


def test_counters_only_grow_and_never_faster_than_the_cable() -> None:
    counting = Counting.of(Wiring.of(SMALL.pods, SMALL.leaves, 30, seed=0).whole, seed=0)
    step = timedelta(minutes=5)
    first, second = (counting.sweep(START + number * step, step) for number in (1, 2))
    grown = second.values - first.values
    assert first.names == NAMES
    assert (grown >= 0).all()
    assert grown[:, :2].max() <= CAPACITY * 300
    assert (grown[:, 0] > 0).mean() > 0.99


@pytest.fixture(scope="module")
def reported() -> list[tuple[Job, ...]]:
    accounting = Accounting([f"n{n}" for n in range(2000)], 500, np.random.default_rng(0))
    hour = timedelta(hours=1)
    return [accounting.between(START + n * hour, START + (n + 1) * hour) for n in range(72)]


def test_no_host_runs_two_jobs_at_once(reported: list[tuple[Job, ...]]) -> None:
    ended = sorted(
        (job.started_at, job.ended_at, job.hosts)
        for job in itertools.chain(*reported)
        if job.started_at is not None and job.ended_at is not None
    )
    busy: dict[str, datetime] = {}
    for start, end, hosts in ended:
        assert all(busy.get(host, start) <= start for host in hosts)
        busy |= dict.fromkeys(hosts, end)
    assert len(ended) > 1000


def test_a_job_is_reported_when_it_starts_and_when_it_ends(reported: list[tuple[Job, ...]]) -> None:
    for number, jobs in enumerate(reported):
        begin, end = START + timedelta(hours=number), START + timedelta(hours=number + 1)
        for job in jobs:
            assert job.started_at is not None
            moment = job.ended_at or job.started_at
            assert begin <= moment <= end
    started = [job for jobs in reported for job in jobs if job.ended_at is None]
    assert len({job.id for job in started}) == len(started)
    assert np.median([len(job.hosts) for job in started]) == 16


def test_all_that_is_written_is_stored_and_every_read_finds_it(registry: Registry) -> None:
    history = History.begin(registry, SMALL, START)
    history.write_day(registry)
    done = history.written
    assert (done.scans, done.sweeps, done.placements) == (24, 72, 4)
    assert len(registry.fabrics.observations(CLUSTER)) == 24
    assert len({one.snapshot for one in registry.fabrics.observations(CLUSTER)}) <= done.snapshots
    assert len(registry.counters.list(CLUSTER)) == 72
    assert len(registry.placements.history(CLUSTER)) == 4
    assert len(registry.runs.list(CLUSTER, 1000)) == done.ingests
    stored = registry.jobs.list(CLUSTER)
    assert 0 < len(stored) <= done.jobs
    job, hour = stored[0].job, timedelta(hours=1)
    case = Case(
        registry=registry,
        now=history.time,
        week_ago=START + 2 * hour,
        month_ago=START + hour,
        job=job.id,
        hosts=job.hosts,
    )
    assert len(READS) == 10
    assert all(read(case) is not None for read in READS.values())

    measured = measure_ingests(registry, history, hours=1)
    assert [one["repeats"] for one in measured.values()] == [1, 3, 1]
    assert len(registry.counters.list(CLUSTER)) == 75
    assert len(registry.fabrics.observations(CLUSTER)) == 25


def test_a_run_goes_on_where_the_last_one_ended(registry: Registry, tmp_path: Path) -> None:
    history, path = History.begin(registry, SMALL, START), tmp_path / "history.pickle"
    for _ in range(24):
        history.hour()
    YearSoFar(history, days=1, write_seconds=2.0).save(path)
    again = YearSoFar.at(path, registry, SMALL)
    assert (again.days, again.write_seconds, again.history.time) == (1, 2.0, history.time)
    for one, other in zip(history.hour(), again.history.hour(), strict=True):
        assert (one.jobs, one.observed_at) == (other.jobs, other.observed_at)
        first, second = ([sweep.values.tolist() for sweep in intake.counters] for intake in (one, other))
        assert first == second
    with pytest.raises(SystemExit, match="of another size"):
        YearSoFar.at(path, registry, Sizes())


def test_times_are_summarised() -> None:
    found = summary([0.1] * 19 + [0.5, 0.7])
    assert found == {"repeats": 21, "median_seconds": 0.1, "p95_seconds": 0.5}


def test_the_rules_of_the_variant_with_retention_are_rules() -> None:
    assert not any(getattr(rules_of(RULES), kind).keeps_all for kind in RULES)


def test_bytes_are_those_of_all_files_by_their_kind(tmp_path: Path) -> None:
    folder = tmp_path / "graph" / "databases"
    folder.mkdir(parents=True)
    for name, size in (("Job_0.1.v0.bucket", 7), ("Job_0_1.2.umtidx", 5), ("txlog_1.wal", 3)):
        (folder / name).write_bytes(bytes(size))
    assert stored_bytes(tmp_path) == {"all": 15, "Job": 12, "txlog": 3}
