"""Times of the commonest reads, and of ingests of a scan, a sweep of counters and an hour's jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from bench.year.history import CLUSTER, History
from registry.registry import Registry
from registry.store.fabric_history import read_overview
from registry.store.job_lists import JobFilter

REPEATS, WARM_UP = 21, 3
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What one repeat of a read asks for."""

    registry: Registry
    now: datetime
    week_ago: datetime
    month_ago: datetime
    job: str
    hosts: tuple[str, ...]


READS: Mapping[str, Callable[[Case], object]] = {
    "overview": lambda case: read_overview(case.registry.database, CLUSTER, case.now - DAY),
    "fabric now": lambda case: case.registry.fabrics.read(CLUSTER),
    "fabric a month ago": lambda case: case.registry.fabrics.read(CLUSTER, case.month_ago),
    "subgraph of a job": lambda case: case.registry.fabrics.subgraph(CLUSTER, case.hosts, case.now),
    "running jobs": lambda case: case.registry.running(CLUSTER, case.now),
    "jobs": lambda case: case.registry.job_pages.page(JobFilter(cluster=CLUSTER, since=case.week_ago)),
    "job": lambda case: case.registry.job_pages.open(case.job, CLUSTER),
    "changes of a week": lambda case: case.registry.fabrics.changes(CLUSTER, case.week_ago, case.now),
    "ports of a day": lambda case: case.registry.counters.recent(CLUSTER, DAY, case.now),
    "placements of a month": lambda case: case.registry.placements.series(CLUSTER, since=case.now - 30 * DAY),
}
"""Calls of the registry by the name of the read."""


def measure_reads(
    registry: Registry, now: datetime, seed: int, repeats: int = REPEATS
) -> dict[str, dict[str, float]]:
    """Return median and 95th percentile of each read in seconds, warm."""
    cases = _cases(registry, now, seed, repeats)
    return {name: _measured(read, cases) for name, read in READS.items()}


def _measured(read: Callable[[Case], object], cases: Sequence[Case]) -> dict[str, float]:
    seconds = []
    for case in (*cases[:WARM_UP], *cases):
        begin = time.perf_counter()
        if read(case) is None:
            raise RuntimeError("a read found nothing")
        seconds.append(time.perf_counter() - begin)
    return summary(seconds[WARM_UP:])


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """Return number, median and 95th percentile of some times."""
    return {
        "repeats": len(seconds),
        "median_seconds": round(float(np.median(seconds)), 4),
        "p95_seconds": round(float(np.quantile(seconds, 0.95)), 4),
    }


def _cases(registry: Registry, now: datetime, seed: int, repeats: int) -> list[Case]:
    """Return different times of the last day, and jobs of the last week."""
    draw = np.random.default_rng([seed, 3])
    wanted = JobFilter(cluster=CLUSTER, since=now - 7 * DAY)
    jobs = [row.stored.job for row in registry.job_pages.page(wanted, limit=10 * repeats).rows]
    chosen = [jobs[index] for index in draw.permutation(len(jobs))[:repeats]]
    moments = [now - timedelta(minutes=float(one)) for one in draw.uniform(0, 20 * 60, repeats)]
    return [
        Case(
            registry=registry,
            now=moment,
            week_ago=moment - 7 * DAY,
            month_ago=moment - 29 * DAY,
            job=job.id,
            hosts=job.hosts,
        )
        for job, moment in zip(chosen, moments, strict=True)
    ]


HOURS = 3


def measure_ingests(registry: Registry, history: History, hours: int = HOURS) -> dict[str, dict[str, float]]:
    """Save the next hours of a history by `Registry.save`, each file alone; return the times of each kind."""
    seconds: dict[str, list[float]] = {"scan": [], "sweep": [], "jobs of an hour": []}
    for _ in range(hours):
        scan, counted, reported = history.hour()
        several = [("scan", scan), ("jobs of an hour", reported)]
        several[1:1] = [("sweep", replace(counted, counters=(sweep,))) for sweep in counted.counters]
        for name, intake in several:
            begin = time.perf_counter()
            registry.save(replace(intake, started_at=history.time))
            seconds[name].append(time.perf_counter() - begin)
    return {name: summary(values) for name, values in seconds.items()}
