"""Advice on running jobs: what another placement would gain, by job and time; append-only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from registry.database.driver import Transaction
from registry.database.record_store import Join, NewRecord, RecordKind, Store, known_ids
from registry.errors import UnknownName
from registry.fabrics.observations import lock_cluster
from registry.jobs.jobs import IS_RUNNING, job_key
from registry.model import Time, as_utc

_TO_JOB = Join("HAS_ADVICE", "Job", incoming=True)
_OF, _PROPOSES = Join("OF", "Placement"), Join("PROPOSES", "Placement")
ADVICE = RecordKind(name="advice", label="Advice", joins=(_TO_JOB, _OF, _PROPOSES))

_NEWEST = """
WITH j, a ORDER BY a.at
WITH j, collect(a) AS advices
RETURN advices[size(advices) - 1] AS advice
"""

_RUNS = f"($at IS NULL OR ({IS_RUNNING}))"

_LIST = f"""
MATCH (j:Job)-[:HAS_ADVICE]->(a:Advice)
WHERE j.cluster = $cluster AND {_RUNS}
{_NEWEST}
"""

_LIST_ALL = f"""
MATCH (j:Job)-[:HAS_ADVICE]->(a:Advice)
WHERE {_RUNS}
{_NEWEST}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceRecord:
    """Advice on a running job.

    Attributes
    ----------
    cluster, job : str
        Name of the cluster; the scheduler's id of the job.
    at : datetime
        Time of the fabric and the jobs that were examined; with a time zone.
    present : str
        Id of the stored placement that the job runs with.
    proposed : str or None
        Id of a better placement, or None if none was found.
    present_seconds, proposed_seconds : float
        Load of the worst link of each with the traffic of other jobs, in seconds per period; equal if no
        better placement was found.
    in_background : int
        Number of jobs whose traffic was the background.
    moved : int
        Number of ranks that the proposed placement moves.
    """

    cluster: str
    job: str
    at: datetime
    present: str
    proposed: str | None = None
    present_seconds: float
    proposed_seconds: float
    in_background: int = 0
    moved: int = 0

    @property
    def gain(self) -> float:
        """Present worst link divided by the proposed one: >= 1, and 1 if there is nothing to gain."""
        if self.proposed is None or self.proposed_seconds <= 0.0:
            return 1.0
        return max(1.0, self.present_seconds / self.proposed_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAdvice(AdviceRecord):
    """Advice as it was saved."""

    id: str


class Advices(Store):
    """Stored advice; an unknown job or placement raises `UnknownName`."""

    def save(self, records: Sequence[AdviceRecord]) -> tuple[str, ...]:
        """Save all advice or none; return the id of each. Advice that is stored already adds nothing."""
        by_id = {advice_id(record): record for record in records}

        def work(transaction: Transaction) -> None:
            for cluster in sorted({record.cluster for record in records}):
                lock_cluster(transaction, cluster)
            known = ADVICE.known(transaction, by_id)
            new = {name: record for name, record in by_id.items() if name not in known}
            _check(transaction, new.values())
            ADVICE.create(transaction, [_new(name, record) for name, record in new.items()])

        if by_id:
            self._database.write(work)
        return tuple(advice_id(record) for record in records)

    def list(
        self, cluster: str | None = None, *, running_at: Time | None = None, limit: int | None = None
    ) -> tuple[StoredAdvice, ...]:
        """Return the newest advice of each job, the largest gain first.

        Parameters
        ----------
        cluster : str, optional
            Only jobs on this cluster.
        running_at : datetime, optional
            Only jobs that run at this time.
        limit : int, optional
            At most so many.
        """
        moment = None if running_at is None else as_utc(running_at)
        if cluster is None:
            rows = self._rows(_LIST_ALL, at=moment)
        else:
            rows = self._rows(_LIST, cluster=cluster, at=moment)
        found = (stored_advice(row["advice"]) for row in rows)
        return tuple(sorted(found, key=lambda one: (-one.gain, one.id))[:limit])


def advice_id(record: AdviceRecord) -> str:
    """Return the id of advice: cluster, job and time, as a job has one advice at a time."""
    return f"{record.cluster}/{record.job}/{as_utc(record.at).isoformat()}"


def stored_advice(node: dict[str, Any]) -> StoredAdvice:
    """Return the advice of the properties of its node."""
    return StoredAdvice(**{field.name: node.get(field.name) for field in fields(StoredAdvice)})  # type: ignore[arg-type]


def _check(transaction: Transaction, records: Iterable[AdviceRecord]) -> None:
    """Raise `UnknownName` for a job or placement that is not stored."""
    jobs = {job_key(record.cluster, record.job): record.job for record in records}
    if missing := sorted(jobs.keys() - known_ids(transaction, "Job", jobs)):
        raise UnknownName("job", jobs[missing[0]])
    named = {name for record in records for name in (record.present, record.proposed) if name is not None}
    if missing := sorted(named - known_ids(transaction, "Placement", named)):
        raise UnknownName("placement", missing[0])


def _new(name: str, record: AdviceRecord) -> NewRecord:
    joined = {
        _TO_JOB: [job_key(record.cluster, record.job)],
        _OF: [record.present],
        _PROPOSES: [] if record.proposed is None else [record.proposed],
    }
    return NewRecord(name, {**asdict(record), "gain": record.gain}, joined=joined)
