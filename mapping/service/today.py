"""State of one cluster for the person who looks after it: changes, problems, slowed jobs, advice."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from mapping.checks.catalog import check
from mapping.checks.error_limits import ErrorLimits
from mapping.checks.finding import Finding
from mapping.service.live import Live, traffic
from mapping.service.placing import subject_of
from mapping.traffic.shared_load import HotLink, JobLoad
from registry.errors import UnknownName
from registry.fabrics.changes import Changes
from registry.ingest_runs.runs import FAILED, FRESH, OLD, Freshness, RunInfo, freshness
from registry.model.views import one_line
from registry.progress import Progress, silent
from registry.registry import Registry
from registry.running.advice import StoredAdvice

SLOWED = 1.05
"""Smallest slowdown, and smallest gain of advice, that is reported."""
MAX_RUNS = 2000
"""Most ingest runs that are searched for failed ones."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SlowedJob:
    """A running job whose worst link others load, too.

    Attributes
    ----------
    load : JobLoad
        The job.
    alone_seconds, together_seconds : float
        Time of its worst link without and with the other jobs, in seconds per period.
    link : HotLink
        The link of `together_seconds`, with all jobs on it.
    """

    load: JobLoad
    alone_seconds: float
    together_seconds: float
    link: HotLink

    __repr__ = one_line

    @property
    def slowdown(self) -> float:
        """Factor by which the others slow the job's worst link."""
        return self.together_seconds / self.alone_seconds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Today:
    """State of a cluster, and what happened since an earlier time.

    Attributes
    ----------
    cluster : str
    at, since : datetime
        Present and earlier time, UTC.
    changes : Changes or None
        Changes of the fabric; None if there is no scan from before `since`.
    findings : tuple of Finding
        Findings of all checks, worst first.
    sources : dict of str to Freshness
        Sources that are stale, were never read or whose last ingest failed, by format.
    failed : tuple of RunInfo
        Ingest runs since then that failed, the newest first.
    live : Live
        Running jobs and their traffic.
    slowed : tuple of SlowedJob
        Jobs that others slow, largest slowdown first.
    advice : tuple of StoredAdvice
        Stored advice that still applies and is worth following, largest gain first.
    advised : int
        Number of running jobs with stored advice that still applies.
    """

    cluster: str
    at: datetime
    since: datetime
    changes: Changes | None
    findings: tuple[Finding, ...]
    sources: dict[str, Freshness]
    failed: tuple[RunInfo, ...]
    live: Live
    slowed: tuple[SlowedJob, ...]
    advice: tuple[StoredAdvice, ...]
    advised: int

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
    rare: Collection[str] = (),
    progress: Progress = silent,
) -> Today:
    """Return the state of a cluster; save nothing.

    Parameters
    ----------
    since : datetime
        Earlier time.
    limits : ErrorLimits, optional
        Limits of error counters.
    rare : collection of str
        Formats that are read only now and then, so that their age is no problem.

    Raises
    ------
    UnknownName
        An unknown cluster.
    """
    now = datetime.now(UTC)
    live = traffic(registry, cluster, progress=progress)
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
            if one.state != FRESH and not (one.state == OLD and name in rare)
        },
        failed=tuple(run for run in runs if run.outcome == FAILED and run.at > since),
        live=live,
        slowed=_slowed(live),
        advice=tuple(sorted((one for one in advice if one.gain >= SLOWED), key=lambda one: -one.gain)),
        advised=len(advice),
    )


def _changes(registry: Registry, cluster: str, since: datetime) -> Changes | None:
    try:
        return registry.fabrics.changes(cluster, since)
    except UnknownName:  # no observation until then; the cluster itself is known here
        return None


def _valid_advice(live: Live) -> list[StoredAdvice]:
    """Return the stored advice of the jobs that still run with the placement of the advice."""
    return [
        job.advice
        for job in live.running.jobs
        if job.advice is not None and job.present is not None and job.advice.present == job.present.id
    ]


def _slowed(live: Live) -> tuple[SlowedJob, ...]:
    """Return the jobs that others slow, with their worst link."""
    shared, seconds = live.shared, live.shared.seconds
    alone, together = shared.isolated_seconds(), shared.together_seconds()
    numbers = np.flatnonzero(shared.slowdowns() >= SLOWED).tolist()
    found = []
    for number in numbers:
        rows = shared.link[shared.indptr[number] : shared.indptr[number + 1]]
        (link,) = shared.links([rows[int(np.argmax(seconds[rows]))]])
        found.append(
            SlowedJob(
                load=shared.jobs[number],
                alone_seconds=float(alone[number]),
                together_seconds=float(together[number]),
                link=link,
            )
        )
    return tuple(sorted(found, key=lambda one: -one.slowdown))
