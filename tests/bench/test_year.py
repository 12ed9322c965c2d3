"""The machine, month and year that are generated for measurements, and that all of it is stored."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from bench.dashboard.jobs import DAYS, month, profiles
from bench.dashboard.machine import CAPACITY, Machine, damaged, machine, story
from bench.year.__main__ import RULES, YearSoFar, rules_of, stored_bytes
from bench.year.history import CLUSTER, Accounting, Counting, History, Sizes, Wiring
from bench.year.history import COUNTERS as NAMES
from bench.year.measures import READS, Case, measure_ingests, summary
from mapping.routing.catalog import build_routes
from mapping.routing.forwarding_tables import complete
from registry.model import Fabric, Job
from registry.registry import Registry
from tests.support.sure import sure
from tests.support.switch_trees import rows_of

START = datetime(2025, 1, 1, tzinfo=UTC)
SMALL = Sizes(pods=2, leaves=4, jobs=40, advised=2, sweep_minutes=20)
"""32 hosts."""


def wires(fabric: Fabric) -> set[tuple[int, int, float]]:
    return set(rows_of(fabric.links, "source", "target", "capacity"))


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
    assert min(slow, lost) > 0
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
            assert begin <= (job.ended_at or sure(job.started_at)) <= end
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
    ago = {"week_ago": START + 2 * hour, "month_ago": START + hour}
    case = Case(registry=registry, now=history.time, job=job.id, hosts=job.hosts, **ago)
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


PODS, LEAVES = 6, 6
NOW = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
HOSTS = [f"n{index:05d}" for index in range(4_000)]


@pytest.fixture(scope="module")
def whole() -> Machine:
    return machine(PODS, LEAVES, LEAVES)


def test_every_device_has_an_identity_and_every_port_one_cable(whole: Machine) -> None:
    fabric = whole.fabric
    links = fabric.links
    own = np.append(fabric.adapters.guid, np.uint64(0))
    guid = np.where(links.source_adapter >= 0, own[links.source_adapter], fabric.guid[links.source])
    assert (guid > 0).all()
    assert len(set(zip(guid.tolist(), links.source_port.tolist(), strict=True))) == len(links)


def test_the_two_rows_of_a_cable_name_each_others_ports(whole: Machine) -> None:
    links = whole.fabric.links
    assert set(rows_of(links, "source", "source_port")) == set(rows_of(links, "target", "target_port"))


def test_the_tables_follow_shortest_paths_and_spread_all_to_all_evenly(whole: Machine) -> None:
    fabric = whole.fabric
    hosts = fabric.hosts
    source, target = np.nonzero(~np.eye(len(hosts), dtype=bool))
    (loads, hops), (even, least) = (
        build_routes(name, fabric, hosts).load(source, target, np.ones(len(source)))
        for name in ("tables", "shortest-paths")
    )
    assert np.array_equal(hops, least)
    assert loads.max() <= 1.25 * even.max()


def test_damage_takes_and_slows_cables_and_the_tables_still_join_all_hosts(whole: Machine) -> None:
    for damage in story(PODS, LEAVES):
        fabric = damaged(whole, damage)
        assert complete(fabric)
        assert len(whole.fabric.links) - len(fabric.links) == 2 * len(damage.lost)
        assert (fabric.links.capacity < whole.fabric.links.capacity[0]).sum() == 2 * len(damage.slow)


def test_a_cable_that_there_is_not_cannot_be_lost(whole: Machine) -> None:
    wrong = story(PODS, LEAVES)[1]
    with pytest.raises(ValueError, match="no such cables"):
        damaged(whole, type(wrong)(before_now=timedelta(0), lost=(("p00-leaf00", "p01-up00"),)))


def test_no_host_runs_two_jobs_at_once_and_a_quarter_runs_now() -> None:
    planned = month(NOW, HOSTS, 400, seed=0)
    assert len(planned) == 400
    assert sum(one.job.ended_at is None for one in planned) == 100
    busy: dict[str, datetime] = {}
    for job in (one.job for one in planned):
        start = sure(job.started_at)
        assert NOW - timedelta(days=DAYS) <= start <= NOW
        assert all(busy.get(host, start) <= start for host in job.hosts)
        busy |= dict.fromkeys(job.hosts, job.ended_at or NOW)


def test_a_month_is_the_same_for_a_seed_and_its_jobs_have_a_slot_for_each_rank() -> None:
    for one in month(NOW, HOSTS, 200, seed=1):
        if one.profile is not None:
            assert sum(one.job.slots) == one.job.ranks == profiles()[one.profile].ranks
    assert month(NOW, HOSTS, 100, seed=3) == month(NOW, HOSTS, 100, seed=3)
