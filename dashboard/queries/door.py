"""The door through which pages read what belongs to users: placements, jobs, plans, runs and log of ingests.

Caches are shared by all viewers, so that a page gets nothing from them but through here: what the viewer may
not see is unknown, without a hint that it is there. Pages import no other function that reads such data by an
id (`tests/dashboard/test_queries.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dashboard.queries.caching import cached_jobs_of_user, cached_pair, cached_placement
from dashboard.queries.circuits import cached_plan, visible_plans
from dashboard.queries.ingests import IngestView, cached_ingests
from dashboard.queries.jobs import cached_choices, cached_job, cached_page
from dashboard.queries.simulated import simulated, whole_runs
from dashboard.state.viewer import Viewer
from registry.errors import UnknownName
from registry.pages.jobs import JobChoices, JobFile, JobFilter, JobPage, JobRow
from registry.pages.placements import OpenPlacement
from registry.registry import Registry
from registry.store.circuit_plans import StoredCircuitPlan
from registry.store.ingest_runs import RunInfo, SourceState
from registry.store.jobs import job_key
from registry.store.simulations import StoredSimulation

HIDDEN = "not shown, as it may name other users' jobs"
"""Text in place of errors, warnings and files of ingest runs for a viewer who is limited to one user."""
MOST_APPLICATIONS = 10_000
"""Maximum number of a user's jobs, the newest, whose applications are offered."""


def placement(registry: Registry, name: str, viewer: Viewer) -> OpenPlacement:
    """Return a placement by its id, with its fabric and profile: one statement, none if it is cached.

    Raises
    ------
    UnknownName
        No such placement, or one of a job that the viewer may not see.
    """
    try:
        found = cached_placement(registry, name)
    except UnknownName as error:
        raise without_names(error, viewer) from error
    if not _is_seen(registry, found, viewer):
        raise UnknownName("placement", name)
    return found


def pair(registry: Registry, first: str, second: str, viewer: Viewer) -> tuple[OpenPlacement, OpenPlacement]:
    """Return two placements: one statement, none if they are cached.

    Raises
    ------
    UnknownName
        As for `placement`.
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

    Raises
    ------
    UnknownName
        No such job, one that the viewer may not see, or jobs of that id in several clusters.
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

    Raises
    ------
    UnknownName
        No such plan, or one for jobs that the viewer may not see.
    """
    known = [one.id for one in visible_plans(registry, viewer)]
    if name not in known:
        raise UnknownName("plan", name, known)
    return cached_plan(registry, name)


def runs(registry: Registry, names: Sequence[str], viewer: Viewer) -> tuple[StoredSimulation, ...]:
    """Return simulated runs with all their arrays: one statement, none if they are cached.

    Raises
    ------
    UnknownName
        No such run, or one of a placement that the viewer may not see.
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
