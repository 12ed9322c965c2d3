"""Measure a registry after 1, 6 and 12 months: size and time of ten reads, with and without retention.

Run ``python -m bench.speed.year`` in the project's folder: a cluster of 2,000 hosts is scanned every hour, 30
cables a day fail or return, 500 jobs a day run. Counters of all switch ports are swept every five minutes in
the week before each measurement, and hourly before: earlier sweeps are only stored as sums of hours and days,
which have the same size either way. For the registry with retention, a copy is pruned by `Size.rules`, backed
up and restored. Writes ``bench/results/year.json``; begins with an estimate of the time it will take.

``--small`` is a trial of six days on 20 hosts, ``--days N`` one of N days: they print, and write no record.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from bench.support.machine import save
from bench.support.paths import RESULTS
from ingest.generate.fat_trees import three_level
from registry.database.backups.backup import backup
from registry.database.backups.restore import restore
from registry.database.local.server import ensure_server, stop
from registry.maintenance.retention import Rules, prune
from registry.maintenance.rules import Keep
from registry.model import SWITCH, CounterSweep, Fabric, Job
from registry.model.counters import COUNTERS
from registry.model.intake import Intake
from registry.pages.overview import read_overview
from registry.registry import Registry

RECORD = RESULTS / "year.json"
CLUSTER = "year"
START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
REPEATS = 3
"""Each read counts by the median of so many."""
SWEPT = ("xmit_bytes", "rcv_bytes", "xmit_packets", "rcv_packets", "xmit_wait", "symbol_errors")
COUNTED = tuple(name for name in COUNTERS if name in SWEPT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Size of a run: the fabric, jobs and changes a day, and days.

    Attributes
    ----------
    days : tuple of int
        Days of the measurements.
    sweep_days : float
        Days before each measurement with all sweeps.
    keep_days : int
        Days after which observations and ingest runs are pruned.
    """

    pods: int = 10
    leaves: int = 10
    hosts: int = 20
    jobs: int = 500
    changes: int = 30
    days: tuple[int, ...] = (30, 182, 365)
    sweep_days: float = 7.0
    keep_days: int = 30

    @property
    def rules(self) -> Rules:
        """What is kept with retention."""
        return Rules(
            observations=Keep.parse(f"daily after {self.keep_days} days"),
            counters=Keep.parse("daily after 30 days"),
            runs=Keep.parse(f"none after {self.keep_days} days"),
        )


SMALL = Size(pods=2, leaves=2, hosts=5, jobs=20, changes=6, days=(1, 3, 6), sweep_days=0.25, keep_days=1)


class Machine:
    """A cluster whose cables fail and return, and whose counters grow."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.generator = np.random.default_rng(0)
        plain = three_level(size.pods, size.leaves, size.hosts, slots=64)
        guid = np.where(plain.kind == SWITCH, np.arange(len(plain)) + 0xB00000, 0).astype(np.uint64)
        links = plain.links
        ends = np.sort(np.column_stack([links.source, links.target]), axis=1)
        self.cable = np.unique(ends, axis=0, return_inverse=True)[1].ravel()
        forth, back = np.argsort(self.cable, kind="stable").reshape(-1, 2).T
        port = np.arange(len(links)) - np.searchsorted(links.source, links.source) + 1
        far = np.empty_like(port)
        far[forth], far[back] = port[back], port[forth]
        links = replace(links, source_port=port, target_port=far)
        self.whole = replace(plain, guid=guid, links=links)
        self.up = np.ones(int(self.cable.max()) + 1, np.bool_)
        from_switch = guid[links.source] > 0
        self.ports = guid[links.source][from_switch], links.source_port[from_switch]
        self.values = np.zeros((int(from_switch.sum()), len(COUNTED)), np.int64)

    def scan(self) -> Fabric:
        """Return the fabric after the changes of an hour."""
        for _ in range(int(self.generator.poisson(self.size.changes / 24))):
            down = np.flatnonzero(~self.up)
            some = down if len(down) > 10 else np.arange(len(self.up))
            self.up[self.generator.choice(some)] ^= True
        return replace(self.whole, links=self.whole.links.take(np.flatnonzero(self.up[self.cable])))

    def sweep(self, at: datetime) -> CounterSweep:
        """Return the counters at a time; they grow at random."""
        self.values += self.generator.integers(0, 1 << 30, self.values.shape)
        guid, port = self.ports
        zeros = np.zeros(len(guid), np.int32)
        return CounterSweep(
            at=at,
            guid=guid,
            lid=zeros,
            port=port,
            names=COUNTED,
            values=self.values.copy(),
            saturated=np.zeros(self.values.shape, np.bool_),
        )

    def jobs(self, day: int) -> tuple[Job, ...]:
        """Return the jobs that started on a day, each on neighbouring hosts."""
        names = [self.whole.names[v] for v in self.whole.hosts.tolist()]
        found = []
        for number in range(self.size.jobs):
            count = min(int(2 ** self.generator.uniform(0.0, 6.0)), len(names))
            first = int(self.generator.integers(0, len(names) - count + 1))
            started = START + day * DAY + timedelta(seconds=int(self.generator.integers(0, 86400)))
            ended = started + timedelta(minutes=int(self.generator.integers(10, 720)))
            found.append(
                Job(
                    id=str(1000 + day * self.size.jobs + number),
                    user=f"user{number % 50}",
                    hosts=tuple(names[first : first + count]),
                    slots=(64,) * count,
                    started_at=started,
                    ended_at=ended,
                )
            )
        return tuple(found)


def main(size: Size, record: Path | None) -> None:
    """Fill a registry day by day, and measure it and its pruned copy."""
    steps: dict[str, Any] = {}
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        home, machine = Path(folder) / "home", Machine(size)
        for day in range(size.days[-1]):
            with served(home) as registry:
                fill_day(registry, machine, day)
                if day == 0:
                    _estimate(time.perf_counter() - begin, size)
            if day + 1 in size.days:
                now = START + (day + 1) * DAY
                with served(home) as registry:  # started again, as that with retention is
                    steps[f"day {day + 1}"] = measure(registry, home, now)
                steps[f"day {day + 1}, with retention"] = pruned(home, Path(folder), now, size.rules)
    sizes = {"hosts": len(machine.whole.hosts), "jobs_a_day": size.jobs, "changes_a_day": size.changes}
    save(record, sizes, steps)


def fill_day(registry: Registry, machine: Machine, day: int) -> None:
    """Ingest the scans, sweeps and jobs of a day."""
    size = machine.size
    near = any(0 <= last - day - 1 < size.sweep_days for last in size.days)
    for hour in range(24):
        at = START + day * DAY + hour * HOUR
        registry.save(
            Intake(cluster=CLUSTER, observed_at=at, fabric=machine.scan(), source="scan", files=("scan",))
        )
        for minute in range(0, 60, 5) if near else (0,):
            sweep = machine.sweep(at + timedelta(minutes=minute))
            registry.save(Intake(cluster=CLUSTER, counters=(sweep,), source="perfquery", files=("counters",)))
    registry.save(Intake(cluster=CLUSTER, observed_at=at, jobs=machine.jobs(day), source="slurm"))


def measure(registry: Registry, home: Path, now: datetime) -> dict[str, Any]:
    """Return the size of a registry, its number of nodes, and the seconds of each read."""
    fabric = registry.fabrics.read(CLUSTER).fabric
    hosts = [fabric.names[v] for v in fabric.hosts.tolist()[:64]]
    job = registry.running(CLUSTER, now).jobs
    reads: dict[str, Callable[[], object]] = {
        "clusters": registry.fabrics.clusters,
        "fabric": lambda: registry.fabrics.read(CLUSTER),
        "earlier fabric": lambda: registry.fabrics.read(CLUSTER, START + DAY / 2),
        "changes of a day": lambda: registry.fabrics.changes(CLUSTER, now - DAY),
        "subgraph of 64 hosts": lambda: registry.fabrics.subgraph(CLUSTER, hosts),
        "rates": lambda: registry.counters.rates(CLUSTER),
        "counters of a day": lambda: registry.counters.between(CLUSTER, now - DAY),
        "job": lambda: registry.jobs.read("1000", CLUSTER),
        "running jobs": lambda: registry.running(CLUSTER, now - HOUR),
        "overview page": lambda: read_overview(registry.database, CLUSTER, now - DAY),
    }
    nodes = registry.database.query("MATCH (n) RETURN count(n)")[1][0][0]
    files = [path for path in home.rglob("*") if path.is_file()]
    return {
        "database_bytes": sum(path.stat().st_size for path in files),
        "nodes": nodes,
        "running_jobs": len(job),
        "seconds": {name: _seconds(read) for name, read in reads.items()},
    }


def pruned(home: Path, folder: Path, now: datetime, rules: Rules) -> dict[str, Any]:
    """Return the measurement of a copy of a stopped registry, pruned, backed up and restored."""
    copy, fresh, file = folder / "copy", folder / "fresh", folder / "year.backup"
    shutil.copytree(home, copy)
    begin = time.perf_counter()
    with served(copy) as registry:
        deleted = prune(registry.database, rules, now).deleted
        seconds = time.perf_counter() - begin
        backup(registry.database, file)
    with served(fresh) as registry:
        restore(registry.database, file)
    with served(fresh) as registry:
        found = measure(registry, fresh, now)
    for path in (copy, fresh):
        shutil.rmtree(path)
    file.unlink()
    return found | {"prune_seconds": round(seconds, 1), "deleted": deleted.get(CLUSTER, {})}


@contextmanager
def served(home: Path) -> Any:
    """Open the registry of a data folder, and stop its server afterwards."""
    ensure_server(home, idle_seconds=600.0)
    try:
        with Registry.open(home=home) as registry:
            yield registry
    finally:
        stop(home)


def _seconds(read: Callable[[], object]) -> float:
    taken = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        read()
        taken.append(time.perf_counter() - begin)
    return round(statistics.median(taken), 4)


def _estimate(seconds: float, size: Size) -> None:
    """Print how long filling will take, by the time of the first day."""
    near = sum(min(size.sweep_days, last) for last in size.days)
    sweeps = 24 * size.days[-1] + 24 * 11 * near
    first = 24 * 12 if size.days[0] <= size.sweep_days else 24
    share = (24 + first) / (24 * size.days[-1] + sweeps)
    print(f"the first day took {seconds:.0f} s: about {seconds / share / 3600:.1f} hours for all", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a trial of six days on 20 hosts")
    parser.add_argument("--days", type=int, help="a trial of so many days")
    given = parser.parse_args()
    chosen = SMALL if given.small else Size()
    if given.days:
        chosen = replace(chosen, days=(given.days,))
    main(chosen, None if given.small or given.days else RECORD)
