"""Write the history of a cluster hour by hour, as cron would have ingested it, by the registry's functions.

Each hour is one transaction: a scan, twelve sweeps of counters, the jobs that started or ended, and an entry
of the log for each of these ingests; counters older than a week become sums, as after every ingest of
counters. Each day adds placements of some jobs, evaluated on the fabric of their start, and advice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import numpy as np

from bench.year.accounting import Accounting
from bench.year.counting import Counting
from bench.year.wiring import Wiring
from ingest.generate.stencils import stencil
from mapping.distances.cost_model import CostModel
from mapping.evaluation.metrics import evaluate_on
from mapping.evaluation.report import baselines
from mapping.placement.case import PlacementCase
from registry.counters.sweeps import Retention, roll_up, save_sweep
from registry.database.driver import Transaction
from registry.fabrics.observations import draft_observation, lock_cluster
from registry.ingest_runs.runs import SAVED, Attempt, RunResult, record_run
from registry.ingest_runs.saving import save_all
from registry.model import Allocation, Fabric, Job, Metrics, Placement, Profile
from registry.model.intake import Intake
from registry.model.rank_order import order_of_job
from registry.progress import silent
from registry.records.placements.records import PRESENT, PROPOSED, PlacementRecord
from registry.records.placements.saving import placement_id, save_placements
from registry.registry import Registry
from registry.running.advice import AdviceRecord
from registry.version import code_version

CLUSTER = "year"
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SIDES = {8: (4, 4, 4), 16: (8, 4, 4), 32: (8, 8, 4)}
"""Grids of the application, by number of hosts of its jobs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Size of the cluster, and what happens per day; `seed` of all that is drawn.

    Attributes
    ----------
    pods, leaves : the cluster has ``pods * leaves ** 2`` hosts
    changes, jobs : changes of the wiring, and submitted jobs
    advised : jobs with a profile, two placements and advice
    sweep_minutes : time between two sweeps of counters
    """

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
    """A cluster and its history so far, which is written to a registry.

    Attributes
    ----------
    time : end of what is written
    """

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
