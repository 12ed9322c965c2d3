"""State of one cluster for the person who looks after it: changes, problems, slowed jobs, advice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from mapping.checks.checks import check
from mapping.checks.finding import ErrorLimits, Finding
from mapping.questions.live import Live, traffic, with_counters
from mapping.questions.place import subject_of
from mapping.traffic.shared_load import HotLink, JobLoad, interference
from registry.errors import UnknownName
from registry.model.views import one_line
from registry.progress import Progress, silent
from registry.registry import Registry
from registry.store.changes import Changes
from registry.store.ingest_runs import FAILED, FRESH, OLD, Freshness, RunInfo, freshness
from registry.store.running_jobs import StoredAdvice

SLOWED = 1.05
"""Smallest slowdown, and smallest gain of advice, that is reported."""
MAX_RUNS = 2000
"""Most ingest runs that are searched for failed ones."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SlowedJob:
    """A running job that the traffic of others slows."""

    load: JobLoad
    """The job."""
    slowdown: float
    """Time of an iteration with the others over that without."""
    link: HotLink
    """The link for which it waits longest, with all jobs on it."""

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Today:
    """State of a cluster, and what happened since an earlier time."""

    cluster: str
    at: datetime
    since: datetime
    """Present and earlier time, UTC."""
    changes: Changes | None
    """Changes of the fabric, since its first scan if that is later; None if there is only one scan."""
    findings: tuple[Finding, ...]
    """Findings of all checks, worst first."""
    sources: dict[str, Freshness]
    """Sources that are stale, were never read or whose last ingest failed, by format."""
    failed: tuple[RunInfo, ...]
    """Ingest runs since then that failed, the newest first."""
    live: Live
    """Running jobs and their traffic."""
    slowed: tuple[SlowedJob, ...]
    """Jobs that others slow, largest slowdown first."""
    advice: tuple[StoredAdvice, ...]
    """Stored advice that still applies and is worth following, largest gain first."""
    advised: int
    """Number of running jobs with stored advice that still applies."""
    unjudged: int
    """Number of running jobs with traffic, but without the time of an iteration: slowed or not."""

    __repr__ = one_line

    @property
    def scanned(self) -> bool:
        """True if the fabric was scanned since the earlier time."""
        return self.live.running.snapshot.observed_at > self.since


def read_today(
    registry: Registry,
    cluster: str,
    since: datetime,
    *,
    limits: ErrorLimits | None = None,
    is_rare: Callable[[str], bool] = lambda format: False,
    progress: Progress = silent,
) -> Today:
    """Return the state of a cluster; save nothing.

    Args:
        since: Earlier time.
        limits: Limits of error counters.
        is_rare: Returns True for a format that is read only now and then, so that its age is no problem.

    Raises:
        UnknownName: An unknown cluster.
    """
    now = datetime.now(UTC)
    live = with_counters(registry, traffic(registry, cluster, progress=progress))
    advice = _valid_advice(live)
    states = {one.format: freshness(one, now) for one in registry.runs.sources(cluster)}
    runs = registry.runs.list(cluster, MAX_RUNS)
    return Today(
        cluster=cluster,
        at=now,
        since=since,
        changes=_changes(registry, cluster, since),
        findings=check(subject_of(registry, cluster, None, limits), progress=progress),
        sources={
            name or "unknown format": one
            for name, one in states.items()
            if one.state != FRESH and not (one.state == OLD and is_rare(name))
        },
        failed=tuple(run for run in runs if run.outcome == FAILED and run.at > since),
        live=live,
        slowed=_slowed(live),
        unjudged=int(np.isnan(interference(live.shared).slowdowns).sum()),
        advice=tuple(sorted((one for one in advice if one.gain >= SLOWED), key=lambda one: -one.gain)),
        advised=len(advice),
    )


def _changes(registry: Registry, cluster: str, since: datetime) -> Changes | None:
    """Return what changed since a time, or since the first scan if that is later; None with one scan."""
    try:
        return registry.fabrics.changes(cluster, since)
    except UnknownName:  # no observation until then; the cluster itself is known here
        first, *others = (one.at for one in registry.fabrics.observations(cluster) if one.snapshot)
        return registry.fabrics.changes(cluster, first) if others else None


def _valid_advice(live: Live) -> list[StoredAdvice]:
    """Return the stored advice of the jobs that still run with the placement of the advice."""
    return [
        job.advice
        for job in live.running.jobs
        if job.advice is not None and job.present is not None and job.advice.present == job.present.id
    ]


def _slowed(live: Live) -> tuple[SlowedJob, ...]:
    """Return the jobs that others slow, with the link for which each waits longest."""
    found = interference(live.shared)
    slowdowns = found.slowdowns
    numbers = np.flatnonzero(slowdowns >= SLOWED).tolist()  # unknown ones are NaN
    links = live.shared.links(found.worst_link[numbers])
    jobs = [
        SlowedJob(load=live.shared.jobs[number], slowdown=float(slowdowns[number]), link=link)
        for number, link in zip(numbers, links, strict=True)
    ]
    return tuple(sorted(jobs, key=lambda one: -one.slowdown))
