"""Deletion of observations, jobs, profiles and ingest runs, each in one transaction.

What others saved for the deleted data (placements, simulations, traces, circuit plans, measured runs) is
deleted on demand only. The same files can be ingested again afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from registry.database.driver import Database, Transaction
from registry.errors import ChangeRefused
from registry.fabrics import derived
from registry.fabrics.observations import OBSERVATION, lock_cluster, read_content
from registry.fabrics.timeline import FOREVER
from registry.ingest_runs.runs import RUN
from registry.jobs.jobs import find_job
from registry.maintenance.dependents import NAMES, Deleted, count_texts, named
from registry.profile_names import find_profile

T = TypeVar("T")

REMEDY = "--dry-run lists them, --with-dependents deletes it nevertheless"
ONLY_REMEDY = "ingest another scan first, or delete the cluster: almanac cluster delete"

_LAST = """
MATCH (o:Observation)-[:SAW]->(x:Content)
WHERE o.cluster = $cluster AND o.at <= $at
WITH o, x ORDER BY o.at DESC, o.seq DESC LIMIT 1
RETURN o.id AS id, x.id AS content
"""

_NEXT = """
MATCH (o:Observation)-[:SAW]->(:Content)
WHERE o.cluster = $cluster AND o.at > $at
RETURN min(o.at) AS at
"""

_OTHERS = """
MATCH (o:Observation)-[:SAW]->(:Content)
WHERE o.cluster = $cluster
RETURN sum(CASE WHEN o.id = $id THEN 1 ELSE 0 END) AS itself, count(o) AS all
"""

_FORGET_FILES = """
MATCH (r:IngestRun)
WHERE r.cluster = $cluster AND r.key <> ''
SET r.key = ''
"""

_FORGET_FILES_OF_PROFILE = """
MATCH (r:IngestRun)
WHERE $profile IN r.profiles AND r.key <> ''
SET r.key = ''
"""

_CLUSTERS_OF_PROFILE = tuple(
    f"MATCH (:Profile {{id: $profile}})<-[:{type}]-(n:{label})\nRETURN collect(DISTINCT n.cluster) AS names\n"
    for label, type in (
        ("Placement", "OF"),
        ("Simulation", "REPLAYS"),
        ("Reconfiguration", "FOR"),
        ("MeasuredRun", "RAN"),
        ("Job", "RAN"),
    )
)

_JOBS_OF_PROFILE = """
MATCH (:Profile {id: $profile})<-[:RAN]-(j:Job)
RETURN collect(DISTINCT j.id) AS ids
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """What a deletion deletes, or deleted.

    Attributes
    ----------
    counts : mapping of str to int
        Number of deleted nodes by name of their kind (`NAMES`).
    dependents : mapping of str to tuple of str
        Ids of the placements, simulations, traces and circuit plans that depended on the data, by kind.
    jobs : tuple of str
        Ids of jobs that stay without their profile.
    """

    counts: Mapping[str, int]
    dependents: Mapping[str, tuple[str, ...]]
    jobs: tuple[str, ...] = ()


class _Undo(Exception):
    """Rolls a transaction back and carries its result out of it."""

    def __init__(self, result: Any) -> None:
        self.result = result


def carry_out(database: Database, work: Callable[[Transaction], T], dry_run: bool) -> T:
    """Run work in one transaction; after a dry run nothing of it is stored."""

    def rehearse(transaction: Transaction) -> T:
        raise _Undo(work(transaction))

    if not dry_run:
        return database.write(work)
    try:
        return database.write(rehearse)
    except _Undo as undone:
        result: T = undone.result
        return result


def delete_observation(
    database: Database, prefix: str, *, with_dependents: bool = False, dry_run: bool = False
) -> Deletion:
    """Delete an observation, and change the derived graph as if it had never been there.

    Its snapshot and its forwarding tables are deleted if no other observation saw them; then placements and
    simulations on them depend on the observation.

    Parameters
    ----------
    prefix : str
        Id of the observation, or a unique beginning of it.
    with_dependents : bool
        Delete what depends on it too.
    dry_run : bool
        Only return what would be deleted.

    Raises
    ------
    UnknownName
    ChangeRefused
        Something depends on it, or it is the cluster's only observation of a fabric.
    """

    def work(transaction: Transaction) -> Deletion:
        found = OBSERVATION.find(transaction, prefix)["node"]
        cluster = str(found["cluster"])
        lock_cluster(transaction, cluster)
        others = transaction.run(_OTHERS, cluster=cluster, id=found["id"])[0]
        if others["itself"] and others["all"] == 1:
            because = [f"it is the only one of the fabric of {cluster}"]
            raise ChangeRefused(f"observation {found['id']}", because, ONLY_REMEDY)
        deleted = Deleted()
        delete_observations(transaction, cluster, {found["id"]: found["at"]}, deleted)
        forget_files(transaction, cluster)
        return _checked(f"observation {found['id']}", deleted, with_dependents or dry_run)

    return carry_out(database, work, dry_run)


def delete_observations(
    transaction: Transaction, cluster: str, observations: Mapping[str, datetime], deleted: Deleted
) -> None:
    """Delete observations of a locked cluster one by one, and update the derived graph.

    Parameters
    ----------
    observations : mapping of str to datetime
        Time of each observation by its id.
    deleted : Deleted
        What was deleted is added here.
    """
    for identity, at in observations.items():
        valid = transaction.run(_LAST, cluster=cluster, at=at)
        fabric = None
        if valid and valid[0]["id"] == identity:  # otherwise no part of the graph comes from it
            fabric = read_content(transaction, valid[0]["content"])
        deleted.delete(transaction, "Observation", [identity])
        if fabric is None:
            continue
        left = transaction.run(_LAST, cluster=cluster, at=at)
        until = transaction.run(_NEXT, cluster=cluster, at=at)[0]["at"] or FOREVER
        if not left or left[0]["content"] != valid[0]["content"]:
            before = read_content(transaction, left[0]["content"]) if left else None
            derived.apply(transaction, cluster, fabric, before, at, until)


def delete_job(
    database: Database,
    job: str,
    cluster: str | None = None,
    *,
    with_dependents: bool = False,
    dry_run: bool = False,
) -> Deletion:
    """Delete a job with the advice on it; placements and circuit plans of the job depend on it.

    Raises
    ------
    UnknownName
    ChangeRefused
    """

    def work(transaction: Transaction) -> Deletion:
        found = find_job(transaction, job, cluster)
        lock_cluster(transaction, found.cluster)
        deleted = Deleted()
        deleted.delete(transaction, "Job", [found.id])
        forget_files(transaction, found.cluster)
        return _checked(f"job {job} of {found.cluster}", deleted, with_dependents or dry_run)

    return carry_out(database, work, dry_run)


def delete_profile(
    database: Database, name: str, *, with_dependents: bool = False, dry_run: bool = False
) -> Deletion:
    """Delete a profile; its traces, and placements, simulations and circuit plans with it, depend on it.

    Jobs that ran it stay, without a profile.

    Parameters
    ----------
    name : str
        Name or id of the profile.

    Raises
    ------
    UnknownName
    ChangeRefused
    """

    def work(transaction: Transaction) -> Deletion:
        profile = find_profile(transaction, name)
        names = {
            cluster
            for statement in _CLUSTERS_OF_PROFILE
            for cluster in transaction.run(statement, profile=profile)[0]["names"]
        }
        for cluster in sorted(names):
            lock_cluster(transaction, cluster)
        jobs = transaction.run(_JOBS_OF_PROFILE, profile=profile)[0]["ids"]
        deleted = Deleted()
        deleted.delete(transaction, "Profile", [profile])
        transaction.run(_FORGET_FILES_OF_PROFILE, profile=profile)
        return _checked(f"profile {name}", deleted, with_dependents or dry_run, jobs)

    return carry_out(database, work, dry_run)


def delete_runs(database: Database, ids: Collection[str], *, dry_run: bool = False) -> Deletion:
    """Delete entries of the log of ingests by id or unique beginning of it; what they saved stays.

    Raises
    ------
    UnknownName
    """

    def work(transaction: Transaction) -> Deletion:
        deleted = Deleted()
        found = [RUN.find(transaction, one)["node"]["id"] for one in ids]
        deleted.delete(transaction, RUN.label, found)
        return _checked("", deleted, True)

    return carry_out(database, work, dry_run)


def forget_files(transaction: Transaction, cluster: str) -> None:
    """Let files that were ingested for a cluster be read again, though they were read before."""
    transaction.run(_FORGET_FILES, cluster=cluster)


def _checked(what: str, deleted: Deleted, allowed: bool, jobs: Collection[str] = ()) -> Deletion:
    """Return what was deleted, or raise if results depended on it and that is not allowed."""
    if not allowed and (deleted.results or jobs):
        because = count_texts(named(deleted.results) | ({"jobs that ran it": len(jobs)} if jobs else {}))
        raise ChangeRefused(f"{what} is in use", because, REMEDY)
    return Deletion(
        counts=named(deleted.nodes),
        dependents={NAMES[label]: tuple(sorted(ids)) for label, ids in sorted(deleted.results.items())},
        jobs=tuple(sorted(jobs)),
    )
