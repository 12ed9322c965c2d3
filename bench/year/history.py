"""Write the history of a cluster hour by hour, as cron would have ingested it, by the registry's functions.

Each hour is one transaction: a scan, twelve sweeps of counters, the jobs that started or ended, and an entry
of the log for each of these ingests; counters older than a week become sums, as after every ingest of
counters. Each day adds placements of some jobs, evaluated on the fabric of their start, and advice.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import numpy as np

from bench.dashboard.jobs import ACCOUNTS, USERS
from bench.dashboard.machine import CAPACITY, SLOTS, cable_ends, machine, with_faults
from ingest.generate.stencils import stencil
from mapping.cost.metrics import evaluate_on
from mapping.cost.report import baselines
from mapping.distances.cost_model import CostModel
from mapping.placement.case import PlacementCase
from registry.database.driver import Transaction
from registry.model import (
    Allocation,
    CounterSweep,
    Fabric,
    Floats,
    Guids,
    Ints,
    Job,
    Longs,
    Metrics,
    Placement,
    Profile,
)
from registry.model.intake import Intake
from registry.model.placement import order_of_job
from registry.progress import silent
from registry.registry import Registry
from registry.store.counters import Retention, roll_up, save_sweep
from registry.store.ingest_runs import SAVED, Attempt, RunResult, record_run
from registry.store.observations import draft_observation, lock_cluster
from registry.store.placement_rows import PRESENT, PROPOSED, PlacementRecord
from registry.store.placements import placement_id, save_placements
from registry.store.running_jobs import AdviceRecord
from registry.store.saving import save_all
from registry.units import code_version

OUTSTANDING = 20
"""Faults at a time on average."""
SLOW_SHARE = 0.3
"""Part of the faults that are cables with a quarter of their lanes; the others are cables that are gone."""


@dataclass(slots=True)
class Wiring:
    """A fabric and its present faults."""

    whole: Fabric
    draw: np.random.Generator
    per_day: float
    changes: int = 0
    _slow: dict[int, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, pods: int, leaves: int, per_day: float, seed: int) -> Wiring:
        """Return a three-level fat tree with ``pods * leaves ** 2`` hosts that has no faults yet."""
        whole = replace(machine(pods, leaves, leaves).fabric, tables=None)
        return cls(whole, np.random.default_rng([seed, 0]), per_day)

    def pass_hours(self, hours: float) -> int:
        """Let faults occur and be repaired; return the number of changes."""
        count = int(self.draw.poisson(self.per_day * hours / 24))
        for _ in range(count):
            repaired = self.draw.random() < len(self._slow) / (2 * OUTSTANDING)
            if repaired:
                del self._slow[int(self.draw.choice(list(self._slow)))]
            else:
                self._fail()
        self.changes += count
        return count

    def present(self) -> Fabric:
        """Return the fabric as a scan finds it now."""
        lost, slow = (np.zeros(len(self.whole.links), np.bool_) for _ in range(2))
        for row, is_slow in self._slow.items():
            both = [row, self._back(row)]
            (slow if is_slow else lost)[both] = True
        return with_faults(self.whole, lost, slow)

    def _fail(self) -> None:
        """Slow down or take away a cable that has no fault; only switches lose theirs."""
        links, is_host = self.whole.links, self.whole.kind == 0
        while True:
            row = int(self.draw.integers(len(links)))
            of_host = is_host[links.source[row]] or is_host[links.target[row]]
            if row not in self._slow and self._back(row) not in self._slow:
                self._slow[row] = bool(of_host or self.draw.random() < SLOW_SHARE)
                return

    def _back(self, row: int) -> int:
        """Return the row of the other direction of a cable; the tree has no parallel cables."""
        links = self.whole.links
        low, high = np.searchsorted(links.source, [links.target[row], links.target[row] + 1])
        return int(low + np.flatnonzero(links.target[low:high] == links.source[row])[0])


COUNTERS = (
    *("xmit_bytes", "rcv_bytes", "xmit_packets", "rcv_packets", "xmit_wait"),
    *("symbol_errors", "link_downed", "xmit_discards"),
)
ERRORS_PER_DAY = 40
"""Of all ports and counters together."""
PACKET_BYTES = 2048


@dataclass(slots=True)
class Counting:
    """The counters of all ports of a fabric; every sweep differs from the one before in nearly every port."""

    guid: Guids
    port: Ints
    """uint64[p]; Ports, ascending."""
    values: Longs
    """int64[8, p]; Present values of `NAMES`."""
    draw: np.random.Generator

    @classmethod
    def of(cls, fabric: Fabric, seed: int) -> Counting:
        """Return the counters of a fabric's ports with random first values."""
        draw = np.random.default_rng([seed, 1])
        guid, port = cable_ends(fabric)
        order = np.lexsort((port, guid))
        values = draw.integers(1 << 36, 1 << 44, (len(COUNTERS), len(port)))
        values[5:] = 0
        return cls(guid[order], port[order], values, draw)

    def sweep(self, at: datetime, since: timedelta) -> CounterSweep:
        """Let the counters grow and return them."""
        ports, seconds = len(self.port), since.total_seconds()
        busy = 0.25 + 0.15 * np.sin(2 * np.pi * (at.hour + at.minute / 60) / 24)
        sent, received = self.draw.gamma(0.6, busy / 0.6, (2, ports)).clip(max=0.95) * CAPACITY * seconds
        waited = self.draw.integers(0, 1 << 20, ports)
        grown = (sent, received, sent / PACKET_BYTES, received / PACKET_BYTES, waited)
        self.values[:5] += np.stack(grown).astype(np.int64)
        errors = int(self.draw.poisson(ERRORS_PER_DAY * seconds / 86400))
        self.values[self.draw.integers(5, 8, errors), self.draw.integers(0, ports, errors)] += 1
        return CounterSweep(
            at=at, guid=self.guid, port=self.port, names=COUNTERS, values=np.ascontiguousarray(self.values.T)
        )


JOB_HOSTS = 2 ** np.arange(9)
SHARES = np.array([0.08, 0.07, 0.10, 0.15, 0.25, 0.15, 0.10, 0.07, 0.03])
"""Part of the jobs with so many hosts; the median is 16."""
USE = 0.8
"""Part of the cluster's hours that jobs use."""
SPREAD = 0.8
"""Standard deviation of the logarithm of the jobs' hours."""


@dataclass(slots=True)
class Accounting:
    """The jobs of a cluster."""

    hosts: Sequence[str]
    per_day: int
    draw: np.random.Generator
    submitted: int = 0
    _events: list[tuple[datetime, str, Job]] = field(default_factory=list)
    _free_at: Floats = field(init=False)

    def __post_init__(self) -> None:
        self._free_at = np.zeros(len(self.hosts))

    def between(self, start: datetime, end: datetime) -> tuple[Job, ...]:
        """Submit the jobs of a period; return those that started or ended in it, as they are at its end."""
        share = (end - start) / timedelta(days=1)
        count = int(self.draw.poisson(self.per_day * share))
        for part in np.sort(self.draw.random(count)).tolist():
            self._submit(start + (end - start) * part)
        found: dict[str, Job] = {}
        while self._events and self._events[0][0] <= end:
            _, identity, job = heapq.heappop(self._events)
            found[identity] = job
        return tuple(found.values())

    def _submit(self, at: datetime) -> None:
        """Give a job the first hosts of the earliest time when enough are free."""
        counts = np.minimum(JOB_HOSTS, len(self.hosts) // 4)
        size = int(self.draw.choice(counts, p=SHARES))
        earliest = float(np.partition(self._free_at, size - 1)[size - 1])
        begun = datetime.fromtimestamp(int(np.ceil(max(at.timestamp(), earliest))), UTC)
        chosen = np.flatnonzero(self._free_at <= begun.timestamp())[:size]
        mean = USE * 24 * len(self.hosts) / (self.per_day * float(counts @ SHARES))
        hours = float(self.draw.lognormal(np.log(mean) - SPREAD**2 / 2, SPREAD))
        ended = (begun + timedelta(hours=hours)).replace(microsecond=0)
        self._free_at[chosen] = ended.timestamp()
        self.submitted += 1
        user = int(self.draw.integers(len(USERS)))
        job = Job(
            id=str(1_000_000 + self.submitted),
            name=f"run-{user}-{size}",
            user=USERS[user],
            account=ACCOUNTS[user % len(ACCOUNTS)],
            partition="batch",
            state="RUNNING",
            submitted_at=at.replace(microsecond=0),
            started_at=begun,
            hosts=tuple(self.hosts[host] for host in chosen.tolist()),
            slots=(SLOTS,) * size,
            ranks=SLOTS * size,
            distribution="block",
            source="slurm-sacct",
        )
        state = "FAILED" if self.draw.random() < 0.1 else "COMPLETED"
        heapq.heappush(self._events, (begun, job.id, job))
        heapq.heappush(self._events, (ended, job.id, replace(job, state=state, ended_at=ended)))


CLUSTER = "year"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SIDES = {8: (4, 4, 4), 16: (8, 4, 4), 32: (8, 8, 4)}
"""Grids of the application, by number of hosts of its jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Size of the cluster, and what happens per day; `seed` of all that is drawn."""

    pods: int = 5
    leaves: int = 20
    changes: int = 30
    jobs: int = 500
    advised: int = 25
    sweep_minutes: int = 5
    seed: int = 0


@dataclass(slots=True)
class Written:
    """Numbers of what was written so far."""

    scans: int = 0
    snapshots: int = 0
    changes: int = 0
    sweeps: int = 0
    jobs: int = 0
    placements: int = 0
    ingests: int = 0


@dataclass(slots=True)
class History:
    """A cluster and its history so far, which is written to a registry."""

    sizes: Sizes
    time: datetime
    wiring: Wiring
    counting: Counting
    accounting: Accounting
    profiles: dict[int, tuple[str, Profile]]
    written: Written = field(default_factory=Written)

    @classmethod
    def begin(cls, registry: Registry, sizes: Sizes, start: datetime) -> History:
        """Begin a history in an empty registry."""
        wiring = Wiring.of(sizes.pods, sizes.leaves, sizes.changes, sizes.seed)
        whole = wiring.whole
        applications = tuple(stencil(sides, 7, bytes=4e6, periodic=True) for sides in SIDES.values())
        registry.save(Intake(profiles=applications, source="edges"))
        stored = (registry.profiles.read(one.name).id for one in applications)
        return cls(
            sizes=sizes,
            time=start,
            wiring=wiring,
            counting=Counting.of(whole, sizes.seed),
            accounting=Accounting(
                [whole.names[host] for host in whole.hosts.tolist()],
                sizes.jobs,
                np.random.default_rng([sizes.seed, 2]),
            ),
            profiles=dict(zip(SIDES, zip(stored, applications, strict=True), strict=True)),
        )

    def write_day(self, registry: Registry) -> None:
        """Write the next day."""
        started: list[tuple[Job, str, Fabric]] = []
        for _ in range(24):
            started += self._write_hour(registry)
        self._place(registry, started[: self.sizes.advised])

    def hour(self) -> tuple[Intake, Intake, Intake]:
        """Return what the next hour's ingests read: the scan, the counters, the jobs."""
        begin, end = self.time, self.time + HOUR
        self.wiring.pass_hours(1.0)
        step = timedelta(minutes=self.sizes.sweep_minutes)
        times = [begin + step * (number + 1) for number in range(HOUR // step)]
        self.time = end
        scan = Intake(
            cluster=CLUSTER,
            observed_at=end,
            fabric=self.wiring.present(),
            source="ibnetdiscover",
            files=("scan.txt",),
        )
        counted = Intake(
            cluster=CLUSTER,
            counters=tuple(self.counting.sweep(at, step) for at in times),
            source="perfquery",
            files=("counters.txt",),
        )
        reported = Intake(
            cluster=CLUSTER,
            jobs=self.accounting.between(begin, end),
            observed_at=end,
            source="slurm-sacct",
            files=("sacct.json",),
        )
        return scan, counted, reported

    def _write_hour(self, registry: Registry) -> list[tuple[Job, str, Fabric]]:
        """Write an hour; return the jobs that started and can be advised, with their snapshot."""
        scan, counted, reported = self.hour()
        seen = draft_observation(scan)
        moment = self.time

        def work(transaction: Transaction) -> tuple[bool, str]:
            receipt = save_all(transaction, scan, seen, moment, silent)
            record_run(transaction, _attempt(scan, moment), _result(receipt.snapshot or ""))
            seq = lock_cluster(transaction, CLUSTER)
            for sweep in counted.counters:
                save_sweep(transaction, CLUSTER, sweep, seq, source=counted.source)
                record_run(transaction, _attempt(counted, sweep.at), _result())
            roll_up(transaction, CLUSTER, moment, Retention())
            if reported.jobs:
                save_all(transaction, reported, None, moment, silent)
                record_run(transaction, _attempt(reported, moment), _result(jobs=len(reported.jobs)))
            return receipt.new_content, receipt.snapshot or ""

        new, snapshot = registry.database.write(work)
        done = self.written
        done.scans += 1
        done.snapshots += new
        done.changes = self.wiring.changes
        done.sweeps += len(counted.counters)
        done.jobs = self.accounting.submitted
        done.ingests += 1 + len(counted.counters) + bool(reported.jobs)
        assert seen is not None
        assert seen.fabric is not None
        return [
            (job, snapshot, seen.fabric)
            for job in reported.jobs
            if job.ended_at is None and len(job.hosts) in self.profiles
        ]

    def _place(self, registry: Registry, chosen: Sequence[tuple[Job, str, Fabric]]) -> None:
        """Save placements of jobs as they run and as proposed, and advice."""
        if not chosen:
            return
        placed: list[tuple[PlacementRecord, datetime]] = []
        advice: list[AdviceRecord] = []
        for job, snapshot, fabric in chosen:
            identity, profile = self.profiles[len(job.hosts)]
            registry.jobs.attach(job.id, identity, CLUSTER)
            assert job.started_at is not None
            at = job.started_at + timedelta(minutes=5)
            present, proposed = _placements(job, snapshot, fabric, identity, profile)
            placed += [(present, at), (proposed, at)]
            advice.append(_advice(job, at, present, proposed))

        def work(transaction: Transaction) -> None:
            lock_cluster(transaction, CLUSTER)
            save_placements(transaction, placed)

        registry.database.write(work)
        registry.advices.save(advice)
        self.written.placements += len(placed)


def _attempt(intake: Intake, at: datetime) -> Attempt:
    digest = f"{int(at.timestamp()):064x}"  # of files that nobody wrote
    return Attempt(
        started_at=at,
        cluster=CLUSTER,
        formats=(intake.source,),
        files=intake.files,
        digest=digest,
        key=f"{intake.source} {digest}",
    )


def _result(snapshot: str = "", jobs: int = 0) -> RunResult:
    return RunResult(outcome=SAVED, seconds=1.0, snapshot=snapshot, jobs=jobs)


def _placements(
    job: Job, snapshot: str, fabric: Fabric, profile_id: str, profile: Profile
) -> Iterator[PlacementRecord]:
    """Return the scheduler's placement, and one with some ranks exchanged; both are evaluated."""
    allocation = Allocation.of(fabric, job.hosts, job.slots)
    case = PlacementCase(fabric=fabric, profile=profile, allocation=allocation, costs=CostModel())
    in_order, random = baselines(case)
    present = order_of_job(job).on(fabric)
    hosts = present.host_of_rank.copy()
    draw = np.random.default_rng(int(job.id))
    for a, b in draw.integers(len(hosts), size=(4, 2)).tolist():
        hosts[a], hosts[b] = hosts[b], hosts[a]
    other = Placement(
        host_of_rank=hosts,
        allocation=allocation,
        strategy="given",
        objective="congestion",
        parameters={"exchanged pairs": 4},
        seed=int(job.id),
    )
    for role, placement in ((PRESENT, present), (PROPOSED, other)):
        yield PlacementRecord(
            cluster=CLUSTER,
            content=snapshot,
            profile=profile_id,
            job=job.id,
            placement=placement,
            evaluation=evaluate_on(case, placement),
            in_order=Metrics.of(in_order),
            random=random,
            code_version=code_version(),
            role=role,
        )


def _advice(job: Job, at: datetime, present: PlacementRecord, proposed: PlacementRecord) -> AdviceRecord:
    before, after = _worst(present), _worst(proposed)
    better = after < before
    return AdviceRecord(
        cluster=CLUSTER,
        job=job.id,
        at=at,
        present=placement_id(present),
        proposed=placement_id(proposed) if better else None,
        present_seconds=before,
        proposed_seconds=after if better else before,
        moved=int((present.placement.host_of_rank != proposed.placement.host_of_rank).sum()) if better else 0,
    )


def _worst(record: PlacementRecord) -> float:
    assert record.evaluation is not None
    return record.evaluation.congestion_seconds
