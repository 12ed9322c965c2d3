"""Reads for the pages of jobs: a page of the table of jobs, and one job with its placements.

Each function runs one statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from registry.database.driver import Transaction
from registry.database.stored_kinds import Store
from registry.errors import DatabaseError
from registry.model import as_utc
from registry.store.jobs import (
    JOB_COLUMNS,
    StoredJob,
    find_job,
    newest_first,
    stored_jobs,
    with_advice,
    with_allocation_and_profile,
)
from registry.store.placement_rows import INFO, StoredPlacementInfo, placement_info, profile_names
from registry.store.running_jobs import StoredAdvice, stored_advice


def _matching(of_cluster: bool) -> str:
    """Return the clauses for the jobs that match a filter, with allocation, profile and newest advice."""
    return f"""
MATCH (j:Job)
WHERE {"j.cluster = $cluster AND" if of_cluster else ""} ($user IS NULL OR j.user = $user)
      AND ($users IS NULL OR j.user IN $users) AND ($state IS NULL OR j.state = $state)
      AND ($since IS NULL OR j.ended_at IS NULL OR j.ended_at > $since)
      AND ($until IS NULL OR coalesce(j.started_at, j.submitted_at) < $until)
      AND ($text = '' OR j.job STARTS WITH $text OR toLower(j.name) CONTAINS toLower($text))
{with_allocation_and_profile()}
WHERE $application IS NULL OR application = $application
{with_advice()}
WHERE $minimum_gain IS NULL OR advice.gain >= $minimum_gain
"""


def _with_placement(carried: str) -> str:
    """Return the clauses for a job's latest evaluated placement ``p``, present ones first."""
    # "present" < "proposed"; sorting the placements of all jobs takes twice as long
    return f"""
OPTIONAL MATCH (j)-[:HAS_PLACEMENT]->(p:Placement)
WHERE p.congestion_seconds IS NOT NULL
WITH {carried}, collect(p) AS judged
WITH {carried}, reduce(best = head(judged), q IN judged |
       CASE WHEN q.role < best.role OR (q.role = best.role AND (q.recorded_at > best.recorded_at
                 OR (q.recorded_at = best.recorded_at AND q.id < best.id))) THEN q ELSE best END) AS p
"""


def _cut(*carried: str) -> str:
    """Return the clauses that cut a page out of all jobs in order; an empty page is one row without a job."""
    parts = ", ".join(f"one[{number}] AS {name}" for number, name in enumerate(carried))
    return f"""
WITH {", ".join(carried)}
ORDER BY j.started_at IS NULL, j.started_at DESC, j.cluster, j.job
WITH collect([{", ".join(carried)}]) AS jobs
WITH size(jobs) AS total, jobs[$offset..$end] AS page
{profile_names("total")}
UNWIND CASE WHEN size(page) = 0 THEN [[]] ELSE page END AS one
WITH {_COUNTED}, {parts}
"""


_COUNTED = "total, profile_ids, profile_names"
_PARTS = ("j", "allocation", "ran", "application", "advice")
_RETURN = f"""
RETURN total, {JOB_COLUMNS}, application, advice, CASE WHEN p IS NOT NULL THEN {INFO} END AS placement,
       profile_ids, profile_names
"""


def _page(of_cluster: bool) -> str:
    return (
        _matching(of_cluster) + _cut(*_PARTS) + _with_placement(f"{_COUNTED}, {', '.join(_PARTS)}") + _RETURN
    )


def _page_by_ratio(of_cluster: bool) -> str:
    """Return the statement that filters by ratio: it reads the placements of all jobs, not of a page."""
    judged = (
        _with_placement(", ".join(_PARTS))
        + "WHERE p.congestion_seconds >= $ratio * p.bound_congestion_seconds"
    )
    return _matching(of_cluster) + judged + _cut(*_PARTS, "p") + _RETURN


_PAGE, _PAGE_OF_CLUSTER = _page(False), _page(True)
_PAGE_BY_RATIO, _PAGE_OF_CLUSTER_BY_RATIO = _page_by_ratio(False), _page_by_ratio(True)

_CHOICES = """
OPTIONAL MATCH (j:Job)
WHERE $cluster IS NULL OR j.cluster = $cluster
WITH collect(DISTINCT j.user) AS users, collect(DISTINCT j.state) AS states
CALL {
  WITH users
  MATCH (:Job)-[:RAN]->(f:Profile)
  RETURN collect(DISTINCT f.application) AS applications
}
CALL {
  WITH users
  MATCH (o:Observation)-[:SAW]->(x:Content)
  WITH o, x ORDER BY o.at, o.seq
  WITH o.cluster AS cluster, collect(x.id) AS seen
  RETURN collect([cluster, seen[size(seen) - 1]]) AS clusters
}
RETURN users, states, applications, clusters
"""

_OPEN = f"""
MATCH (j:Job)
WHERE j.job = $job AND ($cluster IS NULL OR j.cluster = $cluster)
{with_allocation_and_profile()}
{with_advice()}
OPTIONAL MATCH (j)-[:HAS_PLACEMENT]->(p:Placement)
WITH j, allocation, ran, application, advice, p ORDER BY p.recorded_at DESC, p.id
WITH j, allocation, ran, application, advice,
     collect(CASE WHEN p IS NOT NULL THEN {INFO} END) AS placements
{profile_names("j")}
RETURN {JOB_COLUMNS}, application, advice, placements, profile_ids, profile_names
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Conditions on jobs; None or empty conditions are ignored."""

    cluster: str | None = None
    user: str | None = None
    users: tuple[str, ...] | None = None
    """Jobs of one of these users."""
    application: str | None = None
    state: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    """Jobs that ran or waited between the two."""
    minimum_gain: float | None = None
    """Jobs with at least this gain by their newest advice."""
    minimum_ratio: float | None = None
    """Jobs whose worst link is at least so many times its certified bound."""
    text: str = ""
    """Jobs whose id begins with it, or whose name contains it, ignoring case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    """A row of the table of jobs."""

    stored: StoredJob
    application: str | None
    """Application of its profile."""
    placement: StoredPlacementInfo | None
    """Latest evaluated placement; present ones come before proposed ones."""
    advice: StoredAdvice | None
    """Latest advice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """Some of the matching jobs, and the number of all of them."""

    rows: tuple[JobRow, ...]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChoices:
    """Choices of the filters, sorted."""

    users: tuple[str, ...]
    applications: tuple[str, ...]
    states: tuple[str, ...]
    clusters: Mapping[str, str]
    """Id of the latest snapshot of each cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFile:
    """A job with its placements (the newest first) and its latest advice."""

    stored: StoredJob
    application: str | None
    placements: tuple[StoredPlacementInfo, ...]
    advice: StoredAdvice | None


class JobPages(Store):
    """Reads for the pages of jobs."""

    def page(self, wanted: JobFilter, *, limit: int = 100, offset: int = 0) -> JobPage:
        """Return the jobs that match a filter, the latest started first; jobs that never started come last.

        Args:
            limit, offset: At most `limit` jobs, after the first `offset`.
        """
        parameters: dict[str, Any] = {
            "user": wanted.user,
            "users": None if wanted.users is None else list(wanted.users),
            "state": wanted.state,
            "application": wanted.application,
            "since": None if wanted.since is None else as_utc(wanted.since),
            "until": None if wanted.until is None else as_utc(wanted.until),
            "text": wanted.text,
            "minimum_gain": wanted.minimum_gain,
            "offset": offset,
            "end": offset + limit,
        }
        if wanted.cluster is not None:
            parameters["cluster"] = wanted.cluster
        if wanted.minimum_ratio is not None:
            parameters["ratio"] = wanted.minimum_ratio
        statement = _statement(wanted)
        rows = self._rows(statement, **parameters)
        found = [row for row in rows if row["id"] is not None]
        jobs = stored_jobs(found)
        return JobPage(
            # later clauses of the statement do not keep the order of rows
            rows=tuple(sorted(map(_row, found, jobs), key=lambda row: newest_first(row.stored))),
            total=rows[0]["total"] if rows else 0,
        )

    def choices(self, cluster: str | None = None) -> JobChoices:
        """Return users and states of the jobs of a cluster or of all, and all applications and clusters."""
        (row,) = self._rows(_CHOICES, cluster=cluster)
        return JobChoices(
            users=_names(row["users"]),
            applications=_names(row["applications"]),
            states=_names(row["states"]),
            clusters=dict(sorted(row["clusters"])),
        )

    def open(self, job: str, cluster: str | None = None) -> JobFile:
        """Return a job with its placements and its latest advice.

        Args:
            job: Scheduler's id, or cluster and id joined by ``/``.
            cluster: Needed if two clusters have a job with this id.
        """
        if cluster is None and "/" in job:
            cluster, _, job = job.partition("/")

        def work(transaction: Transaction) -> JobFile:
            rows = transaction.run(_OPEN, job=job, cluster=cluster)
            if len(rows) != 1:
                stored = find_job(transaction, job, cluster)  # raises with the known jobs
                raise DatabaseError(f"job {stored.id} changed while it was read")
            (row,), (stored,) = rows, stored_jobs(rows)
            names = dict(zip(row["profile_ids"], row["profile_names"], strict=True))
            return JobFile(
                stored=stored,
                application=row["application"],
                placements=tuple(placement_info(values, names) for values in row["placements"]),
                advice=None if row["advice"] is None else stored_advice(row["advice"]),
            )

        return self._database.read(work)


def _statement(wanted: JobFilter) -> str:
    if wanted.minimum_ratio is None:
        return _PAGE if wanted.cluster is None else _PAGE_OF_CLUSTER
    return _PAGE_BY_RATIO if wanted.cluster is None else _PAGE_OF_CLUSTER_BY_RATIO


def _row(row: dict[str, Any], stored: StoredJob) -> JobRow:
    names = dict(zip(row["profile_ids"], row["profile_names"], strict=True))
    return JobRow(
        stored=stored,
        application=row["application"],
        placement=None if row["placement"] is None else placement_info(row["placement"], names),
        advice=None if row["advice"] is None else stored_advice(row["advice"]),
    )


def _names(values: list[str]) -> tuple[str, ...]:
    return tuple(sorted(value for value in values if value))
