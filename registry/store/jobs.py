"""Jobs as reported by their scheduler, with the hosts on which they ran and their profiles.

A job that is reported again is updated: fields of the newer record count, its empty fields keep the older
value, and guessed slots do not replace reported ones of the same hosts. A job is joined to hosts through
allocations, to profiles by `attach`; the latest of each counts and none is removed.

One transaction cannot hold the accounting of a year: it is saved in `batches`. Each job is saved as a whole
and saving it again adds nothing, so an interrupted call can be repeated.

What was attached to jobs: the profile that each ran, and the time in which it sends the profile once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from registry.database.bulk_writes import instant, instants
from registry.database.driver import Database, Transaction
from registry.database.stored_kinds import Store
from registry.errors import InvalidValue, UnknownName, list_names
from registry.model import Job
from registry.model.job import NOT_ENDED
from registry.model.views import one_line
from registry.store.allocations import HostSlots, save_allocations, unknown_hosts
from registry.store.observations import lock_cluster
from registry.store.profile_names import find_profile
from registry.store.timeline import require_cluster

STATED, FROM_TRACE = "stated", "trace"
"""Origins of the time of an iteration."""

_ATTACH = """
UNWIND range(0, size($job) - 1) AS i
MATCH (j:Job {id: $job[i]})
MATCH (p:Profile {id: $profile[i]})
CREATE (j)-[:RAN {at: $at, iteration_seconds: $seconds[i], iteration_from: $origin[i]}]->(p)
"""

_SPANS = """
UNWIND $profiles AS id
MATCH (p:Profile {id: id})<-[:OF]-(t:Trace)
WITH id, t ORDER BY t.recorded_at
RETURN id, collect(t.span_seconds) AS spans
"""


class Attachment(NamedTuple):
    """What is attached to a job."""

    profile: str | None
    """Id of a profile."""
    seconds: float | None
    """Time of an iteration: that in which the job sends the profile once."""
    origin: str
    """`STATED`, `FROM_TRACE` or empty."""


def save_attachments(
    transaction: Transaction,
    profiles: Mapping[str, str],
    known: Mapping[str, Attachment],
    seconds: float | None,
) -> None:
    """Attach profiles to jobs of a locked cluster; what is attached already is not saved again.

    Args:
        profiles: Id of the profile by id of the job's node.
        known: Present attachment of each of these jobs.
        seconds: Time of an iteration; None: the span of the profile's newest trace, if it has any.

    Raises:
        InvalidValue: The time is not above zero.
    """
    if seconds is not None and not 0 < seconds < math.inf:
        raise InvalidValue("iteration_seconds", f"is {seconds:g}, must be above zero and finite")
    rows = transaction.run(_SPANS, profiles=sorted(set(profiles.values()))) if seconds is None else []
    spans = {row["id"]: row["spans"][-1] or None for row in rows}  # a trace of one message spans no time
    new = []
    for job, profile in profiles.items():
        time = seconds or (None if known[job][::2] == (profile, STATED) else spans.get(profile))
        if known[job].profile != profile or time not in (None, known[job].seconds):
            new.append((job, profile, time, STATED if seconds else FROM_TRACE if time else None))
    columns = {
        name: [row[k] for row in new] for k, name in enumerate(("job", "profile", "seconds", "origin"))
    }
    transaction.run_columns(_ATTACH, columns, at=datetime.now(UTC))


JOB_FIELDS = tuple(field.name for field in fields(Job) if field.name not in ("id", "hosts", "slots"))
"""Fields of a `Job` that are stored as properties of the same name."""
JOBS_A_TRANSACTION = 5_000
HOSTS_A_TRANSACTION = 50_000
"""Hosts of all jobs of one transaction, each counted as often as it occurs: one relationship each."""

_TIMES = ("submitted_at", "started_at", "ended_at")
_VALUES = ", ".join(f"j.{name} = {instant(name) if name in _TIMES else f'${name}[i]'}" for name in JOB_FIELDS)

_RETURN = f"""
OPTIONAL MATCH (j)-[r:RAN_ON]->(a:Allocation)
WITH j, r, a ORDER BY r.seq
WITH j, collect(a.hosts) AS hosts, collect(a.slots) AS slots
OPTIONAL MATCH (j)-[x:RAN]->(p:Profile)
WITH j, hosts, slots, x, p ORDER BY x.at
WITH j, hosts, slots, collect([p.id, x.iteration_seconds, x.iteration_from, p.name]) AS attached
RETURN j.job AS id, j.cluster AS cluster, j.as_of AS as_of, hosts, slots, attached,
       {", ".join(f"j.{name} AS {name}" for name in JOB_FIELDS)}
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

_KEYS_OF = """
MATCH (j:Job)
WHERE j.cluster = $cluster
RETURN collect(j.id) AS keys
"""

_KEYS = """
MATCH (j:Job)
RETURN collect(j.id) AS keys
"""

_IDS = """
MATCH (j:Job)
WHERE $cluster IS NULL OR j.cluster = $cluster
RETURN collect(j.job) AS ids
"""

_MERGE = f"""
UNWIND range(0, size($key) - 1) AS i
MERGE (j:Job {{id: $key[i]}})
SET j.cluster = $cluster, j.job = $id[i], j.as_of = {instant("as_of")}, {_VALUES}
"""

_RAN_ON = """
UNWIND range(0, size($key) - 1) AS i
MATCH (j:Job {id: $key[i]})
MATCH (a:Allocation {id: $allocation[i]})
CREATE (j)-[:RAN_ON {seq: $seq}]->(a)
"""

_JOBS_OF_USER = """
MATCH (j:Job)
WHERE j.user = $user
RETURN collect(j.id) AS ids
"""

SAME_START = timedelta(minutes=2)
"""Largest difference of two starts of a job that are the same one."""

IS_RUNNING = f"j.started_at <= $at AND (j.ended_at > $at OR {NOT_ENDED})"


def with_allocation_and_profile(carried: str = "") -> str:
    """Return the clauses for a job's latest ``allocation`` and attachment: ``ran`` and its ``application``.

    ``ran`` lists the id of the profile, the time of an iteration with its origin, and the profile's name.

    Args:
        carried: Other variables of the row, each followed by a comma and a blank.
    """
    return f"""
WITH {carried}j
OPTIONAL MATCH (j)-[r:RAN_ON]->(a:Allocation)
WITH {carried}j, r, a ORDER BY r.seq DESC
WITH {carried}j, head(collect(a)) AS allocation
OPTIONAL MATCH (j)-[x:RAN]->(f:Profile)
WITH {carried}j, allocation, x, f ORDER BY x.at DESC
WITH {carried}j, allocation, head(collect([f.id, x.iteration_seconds, x.iteration_from, f.name])) AS ran,
     head(collect(f.application)) AS application
"""


def with_advice(carried: str = "") -> str:
    """Return the clauses for the newest advice; they follow `with_allocation_and_profile`."""
    return f"""
WITH {carried}j, allocation, ran, application
OPTIONAL MATCH (j)-[:HAS_ADVICE]->(v:Advice)
WITH {carried}j, allocation, ran, application, v ORDER BY v.at DESC
WITH {carried}j, allocation, ran, application, head(collect(v)) AS advice
"""


JOB_EXPRESSIONS = {
    "id": "j.job",
    "cluster": "j.cluster",
    "as_of": "j.as_of",
    "hosts": "CASE WHEN allocation IS NULL THEN [] ELSE [allocation.hosts] END",
    "slots": "CASE WHEN allocation IS NULL THEN [] ELSE [allocation.slots] END",
    "attached": "[ran]",
    **{name: f"j.{name}" for name in JOB_FIELDS},
}
"""Expressions for the columns that `registry.store.jobs.stored_jobs` reads."""
JOB_COLUMNS = ", ".join(f"{expression} AS {name}" for name, expression in JOB_EXPRESSIONS.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJob:
    """A job with its cluster and what was attached to it."""

    id: str
    cluster: str
    job: Job
    profile: str | None
    """Id of its profile, or None if it is unknown."""
    as_of: datetime
    iteration_seconds: float | None = None
    """Time in which the job sends its profile once, or None if it is unknown."""
    iteration_from: str = ""
    """Origin of that time, of `registry.store.jobs`; empty if it is unknown."""
    profile_name: str = ""
    """Name that its profile was given last; empty if the profile is unknown."""

    __repr__ = one_line


class Jobs(Store):
    """Stored jobs; an unknown job or profile raises `UnknownName`, with the closest ones."""

    def read(self, job: str, cluster: str | None = None) -> StoredJob:
        """Return a job by the scheduler's id.

        Args:
            cluster: Needed if two clusters have a job with this id.
        """
        return self._database.read(lambda transaction: find_job(transaction, job, cluster))

    def unknown_hosts(self, stored: StoredJob) -> tuple[str, ...]:
        """Return the hosts of a job that were never part of its cluster's fabric, by name."""
        return self._database.read(
            lambda transaction: unknown_hosts(transaction, stored.cluster, stored.job.hosts)
        )

    def list(self, cluster: str | None = None) -> tuple[StoredJob, ...]:
        """Return the jobs of a cluster or of all, the latest started first and those never started last."""

        def work(transaction: Transaction) -> list[StoredJob]:
            found = transaction.run(_KEYS) if cluster is None else transaction.run(_KEYS_OF, cluster=cluster)
            keys, listed = found[0]["keys"], list[StoredJob]()
            for start in range(0, len(keys), JOBS_A_TRANSACTION):  # more exceed the memory of a server
                some = keys[start : start + JOBS_A_TRANSACTION]
                listed += stored_jobs(transaction.run(_STORED, jobs=some))
            return listed

        return tuple(sorted(self._database.read(work), key=newest_first))

    def attach(
        self, job: str, profile: str, cluster: str | None = None, *, iteration_seconds: float | None = None
    ) -> str:
        """Record the profile, by name or id, that a job ran; return the id of the profile.

        Args:
            iteration_seconds: Time in which the job sends the profile once (default: the span of the
                profile's newest trace).

        Raises:
            InvalidValue: The time is not above zero.
        """

        def work(transaction: Transaction) -> str:
            stored = find_job(transaction, job, cluster)
            lock_cluster(transaction, stored.cluster)
            found = find_profile(transaction, profile)
            stored = find_job(transaction, job, stored.cluster)
            save_attachments(transaction, {stored.id: found}, _attached([stored]), iteration_seconds)
            return found

        return self._database.write(work)

    def attach_many(
        self, cluster: str, profiles: Mapping[str, str], *, iteration_seconds: float | None = None
    ) -> None:
        """Record the profile, by name or id, that each job of a cluster ran; all or none. See `attach`."""

        def work(transaction: Transaction) -> None:
            lock_cluster(transaction, cluster)
            found = {name: find_profile(transaction, name) for name in set(profiles.values())}
            wanted = {job_key(cluster, job): found[name] for job, name in profiles.items()}
            known = jobs_by_key(transaction, list(wanted))
            for missing in [job for job in profiles if job_key(cluster, job) not in known][:1]:
                find_job(transaction, missing, cluster)  # raises with the closest ids
            save_attachments(transaction, wanted, _attached(known.values()), iteration_seconds)

        self._database.write(work)


def _attached(jobs: Iterable[StoredJob]) -> dict[str, Attachment]:
    return {one.id: Attachment(one.profile, one.iteration_seconds, one.iteration_from) for one in jobs}


def jobs_of_user(database: Database, user: str) -> frozenset[str]:
    """Return the ids (cluster and scheduler's id) of the jobs of a user; one statement."""
    rows = database.read(lambda transaction: transaction.run(_JOBS_OF_USER, user=user))
    return frozenset(rows[0]["ids"])


def batches(jobs: Iterable[Job]) -> list[tuple[Job, ...]]:
    """Return the jobs in batches of one transaction, in order; the hosts of a job are never split."""
    found: list[tuple[Job, ...]] = []
    batch: list[Job] = []
    hosts = 0
    for job in jobs:
        if batch and (len(batch) == JOBS_A_TRANSACTION or hosts + len(job.hosts) > HOSTS_A_TRANSACTION):
            found.append(tuple(batch))
            batch, hosts = [], 0
        batch.append(job)
        hosts += len(job.hosts)
    return [*found, tuple(batch)] if batch else found


def save_jobs(transaction: Transaction, cluster: str, jobs: Sequence[Job], as_of: datetime, seq: int) -> int:
    """Save jobs of a locked cluster; return the number of new or changed jobs.

    They must be one of `batches`. Hosts that the cluster lacks are kept by name.
    """
    keys = list(dict.fromkeys(job_key(cluster, job.id) for job in jobs))
    known = jobs_by_key(transaction, keys)
    merged = dict(known)
    for job in jobs:
        key = job_key(cluster, job.id)
        stored = StoredJob(id=key, cluster=cluster, job=job, profile=None, as_of=as_of)
        merged[key] = _merge(merged[key], stored) if key in merged else stored
    changed = [merged[key] for key in keys if key not in known or differs(merged[key], known[key])]
    _write(transaction, cluster, changed)
    moved = [
        stored
        for stored in changed
        if stored.job.hosts and (stored.id not in known or _slots(stored) != _slots(known[stored.id]))
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


def jobs_by_key(transaction: Transaction, keys: Sequence[str]) -> dict[str, StoredJob]:
    """Return those of the jobs that are stored, by the ids of their nodes."""
    return {stored.id: stored for stored in stored_jobs(transaction.run(_STORED, jobs=keys))}


def job_key(cluster: str, job: str) -> str:
    """Return the id of a job's node."""
    return f"{cluster}/{job}"


def find_job(transaction: Transaction, job: str, cluster: str | None = None) -> StoredJob:
    """Return a job by the scheduler's id; see `Jobs.read`."""
    found = stored_jobs(transaction.run(_READ, job=job))
    mine = [stored for stored in found if cluster in (None, stored.cluster)]
    if len(mine) == 1:
        return mine[0]
    if mine:
        *others, last = sorted(stored.cluster for stored in mine)
        reason = f"job {job} is in clusters {', '.join(others)} and {last}; add --cluster NAME"
        raise UnknownName("job", job, reason=reason)
    if cluster is not None:
        require_cluster(transaction, cluster)
    remedy = f"it is in cluster {list_names([stored.cluster for stored in found])}" if found else ""
    known = [] if found else transaction.run(_IDS, cluster=cluster)[0]["ids"]
    raise UnknownName("job", job, known, remedy=remedy)


def stored_jobs(rows: Sequence[dict[str, Any]]) -> list[StoredJob]:
    """Return the jobs of rows with `id`, `cluster`, `as_of` and `JOB_FIELDS`.

    The last entry of the lists `hosts`, `slots` and `attached` counts.
    """
    jobs = []
    for row in rows:
        hosts, slots = row["hosts"], row["slots"]
        profile, seconds, origin, name = row["attached"][-1]
        jobs.append(
            StoredJob(
                id=job_key(row["cluster"], row["id"]),
                cluster=row["cluster"],
                job=Job(
                    id=row["id"],
                    hosts=tuple(hosts[-1]) if hosts else (),
                    slots=tuple(slots[-1]) if slots else (),
                    **{name: row[name] for name in JOB_FIELDS} | {"guessed": bool(row["guessed"])},
                ),
                profile=profile,
                as_of=row["as_of"],
                iteration_seconds=seconds,
                iteration_from=origin or "",
                profile_name=name or "",
            )
        )
    return jobs


def _merge(known: StoredJob, given: StoredJob) -> StoredJob:
    """Return one job of two records: each field of the newer one, or of the older one if it is empty.

    A job that has ended runs again only if it started again, after its end or, if that is unknown, after it
    was seen to have ended. A start that differs little is the same one: some sources compute it.
    """
    newer, older = (given, known) if given.as_of >= known.as_of else (known, given)
    plain = {name: getattr(newer.job, name) or getattr(older.job, name) for name in JOB_FIELDS}
    started = newer.job.started_at
    if older.job.started_at and started and abs(started - older.job.started_at) <= SAME_START:
        plain["started_at"] = older.job.started_at
    if older.job.has_ended and not newer.job.has_ended:
        if started is not None and started >= (older.job.ended_at or older.as_of):
            plain["ended_at"] = None
        else:
            plain["state"] = older.job.state or plain["state"]
    allocated = newer if newer.job.hosts else older
    if set(newer.job.hosts) == set(older.job.hosts) and _certainty(older.job) > _certainty(newer.job):
        allocated = older
    plain["guessed"] = allocated.job.guessed
    hosts, slots = _slots(allocated)
    merged = Job(id=given.job.id, hosts=hosts, slots=slots, **plain)
    return replace(known, job=merged, as_of=newer.as_of)


def _certainty(job: Job) -> int:
    """Return how reliable the slots are: 2 as reported, 1 an even share of ranks, 0 an even share of CPUs."""
    return 2 if not job.guessed else 1 if job.ranks else 0


def differs(given: StoredJob, known: StoredJob) -> bool:
    """Return True if the two jobs differ in more than their source."""
    return replace(given.job, source=known.job.source) != known.job


def _write(transaction: Transaction, cluster: str, changed: Sequence[StoredJob]) -> None:
    columns: dict[str, list[Any]] = {
        name: [getattr(stored.job, name) for stored in changed] for name in ("id", *JOB_FIELDS)
    }
    for name in _TIMES:
        columns |= instants(name, columns.pop(name))
    columns |= instants("as_of", [stored.as_of for stored in changed])
    columns["key"] = [stored.id for stored in changed]
    transaction.run_columns(_MERGE, columns, cluster=cluster)


def _slots(stored: StoredJob) -> tuple[tuple[str, ...], tuple[int, ...]]:
    return stored.job.hosts, stored.job.slots


def newest_first(stored: StoredJob) -> tuple[bool, float, str, str]:
    """Return the key that sorts jobs by start, the latest first and those never started last."""
    started = stored.job.started_at
    return started is None, -started.timestamp() if started else 0.0, stored.cluster, stored.job.id
