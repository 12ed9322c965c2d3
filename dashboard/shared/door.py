"""The door through which pages read what belongs to users: placements, jobs, plans, runs and log of ingests.

Caches are shared by all viewers, so that a page gets nothing from them but through here: what the viewer may
not see is unknown, without a hint that it is there. Pages import no other function that reads such data by an
id (`tests/dashboard/test_shared_reads.py`).

Data of the tab Circuits: plans of all clusters, and one in full; shared by all viewers.

Data of the page Data: all sources, their runs by days, and the newest runs.

Jobs with their placements, and the list of jobs; shared by all viewers, who get them from `door`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import streamlit as st

from dashboard.shared.caching import (
    CACHED,
    KEYS,
    SHARED,
    cached_clusters,
    cached_jobs_of_user,
    cached_pair,
    cached_placement,
)
from dashboard.shared.simulated import simulated, whole_runs
from dashboard.shared.viewer import Viewer
from registry.errors import UnknownName
from registry.registry import Registry
from registry.store.circuit_plans import CircuitPlanInfo, StoredCircuitPlan
from registry.store.ingest_runs import Ingests, RunInfo, SourceState, read_ingests
from registry.store.job_lists import JobChoices, JobFile, JobFilter, JobPage, JobRow
from registry.store.jobs import job_key
from registry.store.placement_rows import StoredPlacementInfo
from registry.store.placements import OpenPlacement
from registry.store.simulations import StoredSimulation


def visible_plans(registry: Registry, viewer: Viewer) -> Sequence[CircuitPlanInfo]:
    """Return all visible circuit plans, newest first: one statement; one more if limited to a user.

    A viewer who is limited to one user sees only plans made for this user's jobs alone.
    """
    found = _plans(registry)
    if viewer.only is None:
        return found
    mine = cached_jobs_of_user(registry, viewer.only)
    return [
        one for one in found if one.jobs and all(job_key(one.cluster or "", job) in mine for job in one.jobs)
    ]


@st.cache_resource(max_entries=CACHED, ttl=SHARED, show_spinner=False, hash_funcs=KEYS)
def cached_plan(registry: Registry, plan: str) -> StoredCircuitPlan:
    """Return a plan in full: one statement for all viewers in `SHARED`, since it may be applied later.

    Raises:
        UnknownName
    """
    return registry.circuit_plans.read(plan)


@st.cache_resource(ttl=SHARED, show_spinner=False, hash_funcs=KEYS)
def _plans(registry: Registry) -> tuple[CircuitPlanInfo, ...]:
    return registry.circuit_plans.list()


DAYS = 14
"""Number of days in the grid of sources, today included."""
RUNS = 1000
"""Maximum number of runs that are listed; the newest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestView:
    """Data of the page Data."""

    now: datetime
    """When it was read, UTC."""
    starts: tuple[datetime, ...]
    """Start of each day of the grid, UTC."""
    ingests: Ingests
    runs: tuple[RunInfo, ...]
    """Newest first."""


@st.cache_resource(ttl=SHARED, show_spinner=False, hash_funcs=KEYS)
def cached_ingests(registry: Registry) -> IngestView:
    """Return all sources and runs: two statements for all viewers in `SHARED`."""
    now = datetime.now(UTC)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    starts = tuple(today - timedelta(days=before) for before in reversed(range(DAYS)))
    return IngestView(
        now=now,
        starts=starts,
        ingests=read_ingests(registry.database, starts, cached_clusters(registry).infos.keys()),
        runs=registry.runs.list(limit=RUNS),
    )


JOBS_CACHED = 64
"""Number of cached jobs."""
PAGES_CACHED = 64
"""Number of cached pages of the list, each with one filter."""


@st.cache_resource(ttl=SHARED, show_spinner=False, hash_funcs=KEYS)
def cached_choices(registry: Registry) -> JobChoices:
    """Return what jobs can be filtered by: one statement for all viewers in `SHARED`."""
    return registry.job_pages.choices()


@st.cache_resource(
    max_entries=PAGES_CACHED, ttl=SHARED, show_spinner=False, hash_funcs=KEYS | {JobFilter: repr}
)
def cached_page(registry: Registry, wanted: JobFilter, limit: int, offset: int) -> JobPage:
    """Return some of the jobs that match a filter: one statement for all viewers in `SHARED`."""
    return registry.job_pages.page(wanted, limit=limit, offset=offset)


@st.cache_resource(max_entries=JOBS_CACHED, ttl=SHARED, show_spinner=False, hash_funcs=KEYS)
def cached_job(registry: Registry, job: str, cluster: str | None) -> JobFile:
    """Return a job with its placements: one statement for all viewers in `SHARED`."""
    return registry.job_pages.open(job, cluster)


HIDDEN = "not shown, as it may name other users' jobs"
"""Text in place of errors, warnings and files of ingest runs for a viewer who is limited to one user."""
MOST_APPLICATIONS = 10_000
"""Maximum number of a user's jobs, the newest, whose applications are offered."""


def placement(registry: Registry, name: str, viewer: Viewer) -> OpenPlacement:
    """Return a placement by its id, with its fabric and profile: one statement, none if it is cached.

    Raises:
        UnknownName: No such placement, or one of a job that the viewer may not see.
    """
    try:
        found = cached_placement(registry, name)
    except UnknownName as error:
        raise without_names(error, viewer) from error
    if not _is_seen(registry, found, viewer):
        raise UnknownName("placement", name)
    return found


def newest_placement(registry: Registry, viewer: Viewer) -> StoredPlacementInfo | None:
    """Return the newest placement; None for a viewer who is limited to one user."""
    found = registry.placements.history(limit=1) if viewer.only is None else ()
    return found[0] if found else None


def pair(registry: Registry, first: str, second: str, viewer: Viewer) -> tuple[OpenPlacement, OpenPlacement]:
    """Return two placements: one statement, none if they are cached.

    Raises:
        UnknownName: As for `placement`.
    """
    try:
        both = cached_pair(registry, first, second)
    except UnknownName as error:
        raise without_names(error, viewer) from error
    for name, found in zip((first, second), both, strict=True):
        if not _is_seen(registry, found, viewer):
            raise UnknownName("placement", name)
    return both


def job(registry: Registry, name: str, cluster: str | None, viewer: Viewer) -> JobFile:
    """Return a job with its placements: one statement, none if it is cached.

    Raises:
        UnknownName: No such job, one that the viewer may not see, or jobs of that id in several clusters.
    """
    try:
        found = cached_job(registry, name, cluster)
    except UnknownName as error:
        raise without_names(error, viewer) from error
    if not viewer.sees(found.stored.job.user):
        raise UnknownName("job", name)  # as one that is not there
    return found


def jobs(registry: Registry, wanted: JobFilter, limit: int, offset: int, viewer: Viewer) -> JobPage:
    """Return some of the visible jobs that match a filter: one statement for all viewers for a while."""
    return cached_page(registry, _limited(wanted, viewer), limit, offset)


def every_job(registry: Registry, wanted: JobFilter, limit: int, viewer: Viewer) -> Sequence[JobRow]:
    """Return the visible jobs that match a filter, read now: one statement."""
    return registry.job_pages.page(_limited(wanted, viewer), limit=limit).rows


def choices(registry: Registry, viewer: Viewer) -> JobChoices:
    """Return what the visible jobs can be filtered by: one statement; one more if limited to a user."""
    found = cached_choices(registry)
    if viewer.only is None:
        return found
    rows = cached_page(registry, JobFilter(users=(viewer.only,)), MOST_APPLICATIONS, 0).rows
    return replace(
        found,
        users=tuple(filter(viewer.sees, found.users)),
        applications=tuple(sorted({row.application for row in rows if row.application})),
    )


def plan(registry: Registry, name: str, viewer: Viewer) -> StoredCircuitPlan:
    """Return a circuit plan in full: one statement for all viewers for a while.

    Raises:
        UnknownName: No such plan, or one for jobs that the viewer may not see.
    """
    known = [one.id for one in visible_plans(registry, viewer)]
    if name not in known:
        raise UnknownName("plan", name, known)
    return cached_plan(registry, name)


def runs(registry: Registry, names: Sequence[str], viewer: Viewer) -> tuple[StoredSimulation, ...]:
    """Return simulated runs with all their arrays: one statement, none if they are cached.

    Raises:
        UnknownName: No such run, or one of a placement that the viewer may not see.
    """
    if viewer.only is not None:
        known = [one.id for one in simulated(registry, viewer).runs]
        for name in names:
            if name not in known:
                raise UnknownName("run", name, known)
    return whole_runs(registry, tuple(names))


def ingests(registry: Registry, viewer: Viewer) -> IngestView:
    """Return all sources and ingest runs, without texts that may name jobs of others."""
    found = cached_ingests(registry)
    return replace(
        found,
        ingests=replace(found.ingests, sources=sources(found.ingests.sources, viewer)),
        runs=tuple(_run(one, viewer) for one in found.runs),
    )


def sources(found: Sequence[SourceState], viewer: Viewer) -> tuple[SourceState, ...]:
    """Return the states of sources, without errors that may name jobs of others."""
    if viewer.only is None:
        return tuple(found)
    return tuple(replace(one, error=HIDDEN if one.error else "") for one in found)


def without_names(error: UnknownName, viewer: Viewer) -> UnknownName:
    """Return the error without names of other users' jobs, if the viewer is limited to one user."""
    return error if viewer.only is None else UnknownName(error.kind, error.name)


def _is_seen(registry: Registry, found: OpenPlacement, viewer: Viewer) -> bool:
    """Return True if a placement belongs to a visible job; one without a job belongs to no user."""
    if viewer.only is None:
        return True
    job = found.stored.job
    return job is not None and job_key(found.stored.cluster, job) in cached_jobs_of_user(
        registry, viewer.only
    )


def _limited(wanted: JobFilter, viewer: Viewer) -> JobFilter:
    return wanted if viewer.only is None else replace(wanted, users=(viewer.only,))


def _run(run: RunInfo, viewer: Viewer) -> RunInfo:
    if viewer.only is None:
        return run
    files, warnings, profiles = ((HIDDEN,) * len(one) for one in (run.files, run.warnings, run.profiles))
    error = HIDDEN if run.error else ""
    return replace(run, files=files, warnings=warnings, profiles=profiles, error=error)
