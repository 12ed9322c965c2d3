"""Jobs that run on a cluster at a time, with the fabric; read in one statement.

Advice on running jobs: what another placement would gain, by job and time; append-only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

from registry.database import codec
from registry.database.driver import Database, Transaction
from registry.database.stored_kinds import Join, NewRecord, RecordKind, Store, known_ids
from registry.errors import UnknownName
from registry.model import Metrics, Placement, Time, as_utc
from registry.model.placement import LoadedLinks
from registry.model.views import one_line
from registry.store.fabrics import Snapshot, stored_snapshot
from registry.store.jobs import (
    IS_RUNNING,
    JOB_EXPRESSIONS,
    StoredJob,
    job_key,
    stored_jobs,
    with_advice,
    with_allocation_and_profile,
)
from registry.store.observations import lock_cluster
from registry.store.placement_rows import METRICS, PLACEMENT, PRESENT, SEARCHED, placement_of, unpack_loads
from registry.store.tables import unpack_tables
from registry.store.timeline import no_fabric

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
    """Advice on a running job."""

    cluster: str
    job: str
    """Name of the cluster; the scheduler's id of the job."""
    at: datetime
    """Time of the fabric and the jobs that were examined; with a time zone."""
    present: str
    """Id of the stored placement that the job runs with."""
    proposed: str | None = None
    """Id of a better placement, or None if none was found."""
    present_seconds: float
    proposed_seconds: float
    """Load of the worst link of each with the traffic of other jobs, in seconds per period; equal if no
    better placement was found."""
    in_background: int = 0
    """Number of jobs whose traffic was the background."""
    moved: int = 0
    """Number of ranks that the proposed placement moves."""

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

        Args:
            cluster: Only jobs on this cluster.
            running_at: Only jobs that run at this time.
            limit: At most so many.
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


_PLACED = (
    *("id", "recorded_at", "snapshot", "tables", "profile", "rails", "parameters", "seed"),
    *("host_of_rank", *SEARCHED, *METRICS, "bound_congestion_seconds"),
)
_JOB_COLUMNS = {
    **JOB_EXPRESSIONS,
    "application": "application",
    "advice": "advice",
    "loads": "l.blob",
    "allocation_hosts": "b.hosts",
    "allocation_slots": "b.slots",
    "rank_hosts": "CASE WHEN p.snapshot <> content.id THEN p.hosts END",
    **{f"p_{name}": f"p.{name}" for name in _PLACED},
}
_PARTS = "content, j, allocation, ran, application, advice"

# only the ids of a job's placements are collected: servers limit the size of a statement's data
_RUNNING = f"""
MATCH (o:Observation)-[:SAW]->(content:Content)
WHERE o.cluster = $cluster AND o.at <= $at
WITH o, content ORDER BY o.at DESC, o.seq DESC LIMIT 1
CALL {{
  WITH content
  OPTIONAL MATCH (q:Observation)-[:SAW]->(r:Routing)
  WHERE q.cluster = $cluster AND q.at <= $at
  WITH q, r ORDER BY q.at DESC, q.seq DESC LIMIT 1
  OPTIONAL MATCH (r)-[h:HAS_TABLE]->(t:ForwardingTable)
  WITH r, t, collect(h.guid) AS sharing
  WITH r, collect(sharing) AS guids, collect(t.ports) AS ports
  RETURN r.id AS routing, r.lids AS lids, guids, ports
}}
CALL {{
  WITH content
  MATCH (j:Job)
  WHERE j.cluster = $cluster AND {IS_RUNNING}
  {with_allocation_and_profile("content, ")}
  {with_advice("content, ")}
  OPTIONAL MATCH (j)-[:HAS_PLACEMENT]->(p:Placement)
  WHERE p.role = '{PRESENT}'
  WITH {_PARTS}, p.id AS id, p.recorded_at AS at ORDER BY at DESC, id
  WITH {_PARTS}, head(collect(id)) AS present
  OPTIONAL MATCH (j)-[:HAS_PLACEMENT]->(p:Placement)
  WHERE p.id = present
  OPTIONAL MATCH (p)-[:HAS_LOADS]->(l:LinkLoads)
  WHERE p.snapshot = content.id
  OPTIONAL MATCH (p)-[:ON]->(b:Allocation)
  WHERE p.snapshot <> content.id
  RETURN collect([{", ".join(_JOB_COLUMNS.values())}]) AS jobs
}}
RETURN o.at AS at, content.id AS content, content.blob AS blob, routing, lids, guids, ports, jobs
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PresentPlacement:
    """Placement with which a job runs, as reported."""

    id: str
    recorded_at: datetime
    """UTC."""
    snapshot: str
    """Id of the snapshot on which it was evaluated."""
    tables: str | None
    """Id of the forwarding tables of its evaluation."""
    profile: str | None
    """Id of the profile of its evaluation."""
    routing: str
    rails: str
    """Rules of its evaluation; empty if it was not evaluated."""
    placement: Placement | None
    """The placement on the fabric of `Running.snapshot`; None if that fabric lacks hosts."""
    missing_hosts: tuple[str, ...]
    """Hosts that `Running.snapshot` lacks."""
    metrics: Metrics | None
    """Metrics of its evaluation."""
    bound_seconds: float | None
    """Certified lower bound of the time of its worst link."""
    loads: LoadedLinks | None
    """Loads of the links of `Running.snapshot`; None unless it was evaluated on that snapshot."""

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunningJob:
    """A running job."""

    stored: StoredJob
    """The job, with the id of its profile if one is attached."""
    application: str | None
    """Application of the profile."""
    present: PresentPlacement | None
    """Latest placement that was reported for the job."""
    advice: StoredAdvice | None
    """Latest advice."""

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Running:
    """Jobs that run on a cluster at a time."""

    snapshot: Snapshot
    """Fabric at that time, with its forwarding tables if there are any."""
    jobs: tuple[RunningJob, ...]
    """Jobs that had started and not ended; the latest started first, then by id."""
    at: datetime
    """UTC."""

    __repr__ = one_line


def running(database: Database, cluster: str, at: Time | None = None) -> Running:
    """Return the jobs that run on a cluster at a time, with the fabric; one statement.

    Args:
        at: Default: now.
    """
    moment = datetime.now(UTC) if at is None else as_utc(at)

    def work(transaction: Transaction) -> Running:
        found = transaction.run(_RUNNING, cluster=cluster, at=moment)
        if not found:
            raise no_fabric(transaction, cluster, moment)
        return _running(cluster, moment, found[0])

    return database.read(work)


def _running(cluster: str, time: datetime, row: dict[str, Any]) -> Running:
    """Return the fabric and the running jobs of a row of `_RUNNING`."""
    tables = None
    if row["lids"] is not None:
        tables = unpack_tables(row["lids"], row["guids"], row["ports"])
    routing = row["routing"]
    snapshot = stored_snapshot(
        cluster, row["content"], row["blob"], row["at"], routing=routing, tables=tables
    )
    rows = [dict(zip(_JOB_COLUMNS, values, strict=True)) for values in row["jobs"]]
    hosts = {host for one in rows for key in ("rank_hosts", "allocation_hosts") for host in one[key] or ()}
    vertex = snapshot.fabric.known_vertices(hosts)
    jobs = [_job(one, stored, vertex) for one, stored in zip(rows, stored_jobs(rows), strict=True)]
    return Running(snapshot=snapshot, jobs=tuple(sorted(jobs, key=_newest_first)), at=time)


def _job(row: dict[str, Any], stored: StoredJob, vertex: Mapping[str, int]) -> RunningJob:
    placed = {name: row[f"p_{name}"] for name in _PLACED}
    return RunningJob(
        stored=stored,
        application=row["application"],
        present=None if placed["id"] is None else _present(row, placed, vertex),
        advice=None if row["advice"] is None else stored_advice(row["advice"]),
    )


def _present(row: dict[str, Any], placed: dict[str, Any], vertex: Mapping[str, int]) -> PresentPlacement:
    """Return the present placement of a row, on the fabric with these vertices."""
    missing = (
        []
        if row["rank_hosts"] is None
        else sorted({*row["rank_hosts"], *row["allocation_hosts"]} - vertex.keys())
    )
    metrics = {name: placed[name] for name in METRICS}
    with PLACEMENT.reading(placed["id"]):
        placement = None if missing else _placement(row, placed, vertex)
    return PresentPlacement(
        id=placed["id"],
        recorded_at=placed["recorded_at"],
        snapshot=placed["snapshot"],
        tables=placed["tables"],
        profile=placed["profile"],
        routing=placed["routing"],
        rails=placed["rails"] or "",
        placement=placement,
        missing_hosts=tuple(missing),
        metrics=None if None in metrics.values() else Metrics(**metrics),
        bound_seconds=placed["bound_congestion_seconds"],
        loads=None if row["loads"] is None else unpack_loads(row["loads"]),
    )


def _placement(row: dict[str, Any], placed: dict[str, Any], vertex: Mapping[str, int]) -> Placement:
    """Return the placement on the present fabric: by vertices if it was evaluated on it, else by names."""
    vertices = codec.unpack(placed["host_of_rank"])
    if row["rank_hosts"] is not None:
        vertices |= {
            "host_of_rank": [vertex[name] for name in row["rank_hosts"]],
            "hosts": [vertex[name] for name in row["allocation_hosts"]],
            "slots": row["allocation_slots"],
        }
    return placement_of(placed, vertices)


def _newest_first(job: RunningJob) -> tuple[float, str]:
    started = job.stored.job.started_at
    return -started.timestamp() if started else 0.0, job.stored.job.id
