"""Jobs as their scheduler told of them, where they ran, and which profile each was.

A job told of again is brought up to date: what the newer record says counts, what it leaves open is
kept. Hosts are joined to the job through allocations, profiles by `attach`; of both the latest counts
and none is taken away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

from registry.allocations import HostSlots, require_hosts, save_allocations
from registry.database import Database, Transaction
from registry.errors import UnknownName
from registry.model import Job
from registry.profiles import find_profile

_PLAIN = tuple(field.name for field in fields(Job) if field.name not in ("id", "hosts", "slots"))

_RETURN = f"""
OPTIONAL MATCH (j)-[r:RAN_ON]->(a:Allocation)
WITH j, r, a ORDER BY r.seq
WITH j, collect(a.hosts) AS hosts, collect(a.slots) AS slots
OPTIONAL MATCH (j)-[x:RAN]->(p:Profile)
WITH j, hosts, slots, x, p ORDER BY x.at
WITH j, hosts, slots, collect(p.id) AS profiles
RETURN j.job AS id, j.cluster AS cluster, j.as_of AS as_of, hosts, slots, profiles,
       {", ".join(f"j.{name} AS {name}" for name in _PLAIN)}
"""

_STORED = f"""
UNWIND $jobs AS id
MATCH (j:Job {{id: id}})
{_RETURN}
"""

_READ = f"""
MATCH (j:Job)
WHERE j.job = $job
{_RETURN}
"""

_LIST = f"""
MATCH (j:Job)
WHERE j.cluster = $cluster
{_RETURN}
"""

_LIST_ALL = f"""
MATCH (j:Job)
{_RETURN}
"""

_IDS = """
MATCH (j:Job)
RETURN collect(j.job) AS ids
"""

_MERGE = f"""
UNWIND range(0, size($key) - 1) AS i
MERGE (j:Job {{id: $key[i]}})
SET j.cluster = $cluster, j.job = $id[i], j.as_of = $as_of[i],
    {", ".join(f"j.{name} = ${name}[i]" for name in _PLAIN)}
"""

_RAN_ON = """
UNWIND range(0, size($key) - 1) AS i
MATCH (j:Job {id: $key[i]})
MATCH (a:Allocation {id: $allocation[i]})
CREATE (j)-[:RAN_ON {seq: $seq}]->(a)
"""

_ATTACH = """
MATCH (j:Job {id: $job})
MATCH (p:Profile {id: $profile})
CREATE (j)-[:RAN {at: $at}]->(p)
"""

_TAKE = """
MATCH (j:Job {id: $job})
SET j.taken = true
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJob:
    """A job, its cluster, and the id of the profile that it ran, where that is known."""

    id: str
    cluster: str
    job: Job
    profile: str | None
    as_of: datetime


class Jobs:
    """What the registry knows of jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, job: str, cluster: str | None = None) -> StoredJob:
        """A job by the scheduler's id.

        Parameters
        ----------
        cluster : str, optional
            Needed where two clusters have a job of that id.

        Raises
        ------
        UnknownName
        """
        return self._database.read(lambda transaction: find_job(transaction, job, cluster))

    def list(self, cluster: str | None = None) -> tuple[StoredJob, ...]:
        """Jobs of a cluster, or of all, the latest started first; those that never started last."""

        def work(transaction: Transaction) -> list[StoredJob]:
            if cluster is None:
                return _stored(transaction.run(_LIST_ALL))
            return _stored(transaction.run(_LIST, cluster=cluster))

        return tuple(sorted(self._database.read(work), key=_newest_first))

    def attach(self, job: str, profile: str, cluster: str | None = None) -> str:
        """Remember which profile, by name or id, a job ran; the profile's id.

        Raises
        ------
        UnknownName
        """

        def work(transaction: Transaction) -> str:
            stored = find_job(transaction, job, cluster)
            transaction.run(_TAKE, job=stored.id)
            found = find_profile(transaction, profile)
            if find_job(transaction, job, stored.cluster).profile != found:
                transaction.run(_ATTACH, job=stored.id, profile=found, at=datetime.now(UTC))
            return found

        return self._database.write(work)


def save_jobs(transaction: Transaction, cluster: str, jobs: Sequence[Job], as_of: datetime, seq: int) -> int:
    """Save jobs of a cluster that is taken; the number of those that told something new.

    Raises
    ------
    UnknownName
        A host that the cluster never had.
    """
    require_hosts(transaction, cluster, (host for job in jobs for host in job.hosts))
    keys = list(dict.fromkeys(job_key(cluster, job.id) for job in jobs))
    known = {stored.id: stored for stored in _stored(transaction.run(_STORED, jobs=keys))}
    told = dict(known)
    for job in jobs:
        stored = _told(cluster, job, as_of)
        before = told.get(stored.id)
        told[stored.id] = stored if before is None else _merge(before, stored)
    changed = [told[key] for key in keys if key not in known or _differs(told[key], known[key])]
    _write(transaction, cluster, changed)
    moved = [
        stored
        for stored in changed
        if stored.job.hosts and (stored.id not in known or _room(stored) != _room(known[stored.id]))
    ]
    allocations = [
        HostSlots(cluster=cluster, hosts=stored.job.hosts, slots=stored.job.slots) for stored in moved
    ]
    save_allocations(transaction, cluster, allocations)
    joined = {
        "key": [stored.id for stored in moved],
        "allocation": [allocation.id for allocation in allocations],
    }
    transaction.run_columns(_RAN_ON, joined, seq=seq)
    return len(changed)


def job_key(cluster: str, job: str) -> str:
    """Id of a job's node."""
    return f"{cluster}/{job}"


def find_job(transaction: Transaction, job: str, cluster: str | None = None) -> StoredJob:
    """See `Jobs.read`."""
    found = _stored(transaction.run(_READ, job=job))
    mine = [stored for stored in found if cluster in (None, stored.cluster)]
    if len(mine) == 1:
        return mine[0]
    if mine:
        owners = " and ".join(sorted(repr(stored.cluster) for stored in mine))
        raise UnknownName("job", job, remedy=f"the clusters {owners} have one each: name the cluster")
    remedy = f"cluster {found[0].cluster!r} has one" if found else ""
    known = [] if found else transaction.run(_IDS)[0]["ids"]
    raise UnknownName("job", job, known, remedy=remedy)


def _stored(rows: Sequence[dict[str, Any]]) -> list[StoredJob]:
    jobs = []
    for row in rows:
        hosts, slots = row["hosts"], row["slots"]
        jobs.append(
            StoredJob(
                id=job_key(row["cluster"], row["id"]),
                cluster=row["cluster"],
                job=Job(
                    id=row["id"],
                    hosts=tuple(hosts[-1]) if hosts else (),
                    slots=tuple(slots[-1]) if slots else (),
                    **{name: row[name] for name in _PLAIN},
                ),
                profile=row["profiles"][-1] if row["profiles"] else None,
                as_of=row["as_of"],
            )
        )
    return jobs


def _told(cluster: str, job: Job, as_of: datetime) -> StoredJob:
    return StoredJob(id=job_key(cluster, job.id), cluster=cluster, job=job, profile=None, as_of=as_of)


def _merge(before: StoredJob, told: StoredJob) -> StoredJob:
    """Field by field what the newer record says, or else the older one."""
    newer, older = (told, before) if told.as_of >= before.as_of else (before, told)
    plain = {name: getattr(newer.job, name) or getattr(older.job, name) for name in _PLAIN}
    hosts, slots = _room(newer if newer.job.hosts else older)
    merged = Job(id=told.job.id, hosts=hosts, slots=slots, **plain)
    return replace(before, job=merged, as_of=newer.as_of)


def _differs(told: StoredJob, known: StoredJob) -> bool:
    """Whether anything but the file that tells it is new."""
    return replace(told.job, source=known.job.source) != known.job


def _write(transaction: Transaction, cluster: str, changed: Sequence[StoredJob]) -> None:
    columns: dict[str, list[Any]] = {
        name: [getattr(stored.job, name) for stored in changed] for name in ("id", *_PLAIN)
    }
    columns["key"] = [stored.id for stored in changed]
    columns["as_of"] = [stored.as_of for stored in changed]
    transaction.run_columns(_MERGE, columns, cluster=cluster)


def _room(stored: StoredJob) -> tuple[tuple[str, ...], tuple[int, ...]]:
    return stored.job.hosts, stored.job.slots


def _newest_first(stored: StoredJob) -> tuple[bool, float, str, str]:
    started = stored.job.started_at
    return started is None, -started.timestamp() if started else 0.0, stored.cluster, stored.job.id
