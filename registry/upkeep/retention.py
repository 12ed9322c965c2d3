"""Retention: delete what rules do not keep of observations, counters, placements and ingest runs.

Each transaction deletes a few things and leaves a correct registry: a run that is interrupted is continued by
the next one. Never deleted are: the newest observation of each source; observations of a fabric or of
forwarding tables that a placement or simulation refers to, if no other one is kept; placements with
simulations or measured runs, and those of jobs that have not ended; the last run and the last good run of
each source. Jobs, profiles, measured runs, intended wiring and host layouts have no rule.

Number and size of what is stored, by cluster, and free space of the embedded server's disk.

The server adds up lengths; no bytes are sent.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from registry.database.driver import Database, Transaction
from registry.database.embedded_files import ServerFiles
from registry.errors import InvalidValue
from registry.installation import bytes_of
from registry.model.job import NOT_ENDED
from registry.progress import Progress, silent
from registry.store.counters import Retention, repeated, roll_up
from registry.store.ingest_runs import FAILED, RUN
from registry.store.observations import lock_cluster
from registry.upkeep.deletion import Deleted, carry_out, delete_observations
from registry.upkeep.rules import ALL, DAILY, NONE, Item, Keep

OBSERVATIONS_A_TRANSACTION = 20
ITEMS_A_TRANSACTION = 500
KEEP_ALL = Keep()
DAY = timedelta(days=1)

_CLUSTERS = """
MATCH (c:Cluster)
RETURN collect(c.id) AS names
"""

_OBSERVATIONS = """
MATCH (o:Observation)
WHERE o.cluster = $cluster
OPTIONAL MATCH (o)-[:SAW]->(x:Content)
OPTIONAL MATCH (o)-[:SAW]->(r:Routing)
RETURN o.id AS id, o.at AS at, o.source AS source, x.id AS content, r.id AS routing
ORDER BY at, o.seq
"""

_REFERENCES = tuple(
    f"MATCH (n:{label})\nWHERE n.cluster = $cluster\n"
    "RETURN collect(n.id) AS ids, collect(coalesce(n.snapshot, '')) AS snapshots,\n"
    "       collect(coalesce(n.tables, '')) AS tables\n"
    for label in ("Placement", "Simulation")
)

_PLACEMENTS = """
MATCH (p:Placement)
WHERE p.cluster = $cluster
RETURN p.id AS id, p.recorded_at AS at, coalesce(p.profile, '') AS profile, coalesce(p.role, '') AS role
"""

_SIMULATED, _MEASURED = (
    f"MATCH (s:{label})\nWHERE s.cluster = $cluster\nRETURN collect(DISTINCT s.placement) AS ids\n"
    for label in ("Simulation", "MeasuredRun")
)

_OF_RUNNING_JOBS = f"""
MATCH (j:Job)-[:HAS_PLACEMENT]->(p:Placement)
WHERE j.cluster = $cluster AND {NOT_ENDED}
RETURN collect(DISTINCT p.id) AS ids
"""

_RUNS = """
MATCH (r:IngestRun)
RETURN r.id AS id, r.cluster AS cluster, r.at AS at, r.formats AS formats, r.outcome AS outcome
"""

_COUNTERS = f"""
MATCH (c:Cluster {{id: $cluster}})
OPTIONAL MATCH (c)<-[o:OF]-(s:CounterSweep)
WITH c, count(s) AS sweeps, max({repeated("at", "s", "o")}) AS newest
OPTIONAL MATCH (c)<-[o:OF]-(r:CounterRollup)
RETURN newest, sweeps, count(r) AS summaries, min({repeated("bucket", "r", "o")}) AS oldest
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is kept of each kind of data; default: all of it."""

    observations: Keep = KEEP_ALL
    counters: Keep = KEEP_ALL
    placements: Keep = KEEP_ALL
    runs: Keep = KEEP_ALL

    def __post_init__(self) -> None:
        retention_of(self.counters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """What was deleted, or would be."""

    deleted: dict[str, dict[str, int]] = field(default_factory=dict)
    """Numbers by cluster (empty: runs without one) and by kind; only those above zero."""
    skipped: int = 0
    """Things that were used by new data meanwhile, and stay until the next run."""


class _Used(Exception):
    """Rolls a transaction back whose data are used by new results."""


def retention_of(rule: Keep) -> Retention:
    """Return what a rule means for counters, whose sweeps are summarised by hours and later by days.

    Raises:
        InvalidValue: It has steps other than ``all``, ``daily after N days`` and ``none after N days``.
    """
    usual = Retention()
    found = usual
    for step in rule.steps:
        if step.keep == DAILY and usual.full <= step.after <= usual.hourly:
            found = replace(found, hourly=step.after)
        elif step.keep == NONE and step.after >= found.hourly:
            found = replace(found, daily=step.after)
        elif step.keep != ALL:
            raise InvalidValue(
                "rule of counters",
                f"sweeps become hourly sums after {usual.full.days} days and daily sums after "
                f"{usual.hourly.days}: it takes 'all', 'daily after N days' (N from {usual.full.days} to "
                f"{usual.hourly.days}) and 'none after N days' (N from {usual.hourly.days})",
            )
    return found


def prune(
    database: Database, rules: Rules, now: datetime, *, dry_run: bool = False, progress: Progress = silent
) -> Pruned:
    """Delete what the rules do not keep."""
    work = _Pruning(database, now, dry_run, progress)
    names = database.read(lambda transaction: transaction.run(_CLUSTERS))[0]["names"]
    for cluster in sorted(names):
        gone = work.placements(cluster, rules.placements)
        work.counters(cluster, rules.counters)
        work.observations(cluster, rules.observations, gone)
    work.runs(rules.runs)
    return Pruned(deleted=work.deleted, skipped=work.skipped)


class _Pruning:
    """One call of `prune`."""

    def __init__(self, database: Database, now: datetime, dry_run: bool, progress: Progress) -> None:
        self.database = database
        self.now = now
        self.dry_run = dry_run
        self.progress = progress
        self.deleted: dict[str, dict[str, int]] = {}
        self.skipped = 0

    def placements(self, cluster: str, rule: Keep) -> set[str]:
        """Delete placements; return the ids of those that are deleted, or would be."""
        if rule.keeps_all:
            return set()
        rows = self._rows(_PLACEMENTS, cluster=cluster)
        items = [Item(row["id"], row["at"], (row["profile"], row["role"])) for row in rows]
        kept = {
            one
            for text in (_SIMULATED, _MEASURED, _OF_RUNNING_JOBS)
            for one in self._rows(text, cluster=cluster)[0]["ids"]
        }
        gone = sorted(rule.delete(items, self.now) - kept)

        def delete(transaction: Transaction, ids: Sequence[str], deleted: Deleted) -> None:
            deleted.delete(transaction, "Placement", ids)

        self._delete(cluster, "placements", gone, delete, ITEMS_A_TRANSACTION)
        return set(gone)

    def observations(self, cluster: str, rule: Keep, without: Collection[str]) -> None:
        """Delete observations; `without` are placements that are deleted, or would be."""
        if rule.keeps_all:
            return
        rows = self._rows(_OBSERVATIONS, cluster=cluster)
        items = [
            Item(
                row["id"],
                row["at"],
                (row["source"], str(row["content"] is None), str(row["routing"] is None)),
            )
            for row in rows
        ]
        gone = rule.delete(items, self.now)
        gone -= _last_seen(rows, gone, set(self._referred(cluster, without)))
        # the newest first: each is compared with the one before it, from which it differs least
        times = {row["id"]: row["at"] for row in reversed(rows) if row["id"] in gone}

        def delete(transaction: Transaction, ids: Sequence[str], deleted: Deleted) -> None:
            known = {row["id"] for row in transaction.run(_OBSERVATIONS, cluster=cluster)}
            chosen = {one: times[one] for one in ids if one in known}
            delete_observations(transaction, cluster, chosen, deleted)

        self._delete(cluster, "observations", list(times), delete, OBSERVATIONS_A_TRANSACTION)

    def counters(self, cluster: str, rule: Keep) -> None:
        """Summarise and delete counters day by day, the oldest first."""
        if rule.keeps_all:
            return
        wanted = retention_of(rule)

        def counted(transaction: Transaction) -> dict[str, Any]:
            return transaction.run(_COUNTERS, cluster=cluster)[0]

        before = self.database.read(counted)
        left, limits = before["sweeps"] + before["summaries"], [wanted]
        if before["oldest"] is not None and not self.dry_run:
            limits = _limits(wanted, min(self.now, before["newest"]) - before["oldest"])
        for number, limit in enumerate(limits):
            self.progress("pruning counters", number, len(limits))

            def work(transaction: Transaction, limit: Retention = limit) -> int:
                lock_cluster(transaction, cluster)
                roll_up(transaction, cluster, self.now, limit)
                after = counted(transaction)
                return int(after["sweeps"] + after["summaries"])

            left = carry_out(self.database, work, self.dry_run)
        self._add(cluster, "counters", before["sweeps"] + before["summaries"] - left)

    def runs(self, rule: Keep) -> None:
        """Delete entries of the log of ingests."""
        if rule.keeps_all:
            return
        rows = self._rows(_RUNS)
        clusters: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            clusters.setdefault(row["cluster"], []).append(row)
        for cluster, mine in sorted(clusters.items()):
            items = [Item(row["id"], row["at"], tuple(row["formats"])) for row in mine]
            gone = rule.delete(items, self.now) - _last_runs(mine)

            def delete(transaction: Transaction, ids: Sequence[str], deleted: Deleted) -> None:
                deleted.delete(transaction, RUN.label, ids)

            self._delete(cluster, "runs", sorted(gone), delete, ITEMS_A_TRANSACTION)

    def _delete(
        self,
        cluster: str,
        kind: str,
        ids: Sequence[str],
        delete: Callable[[Transaction, Sequence[str], Deleted], None],
        size: int,
    ) -> None:
        """Delete things in transactions of `size`; those that new results depend on stay."""
        done = 0
        for start in range(0, len(ids), size):
            some = ids[start : start + size]
            self.progress(f"pruning {kind}", start, len(ids))

            def work(transaction: Transaction, some: Sequence[str] = some) -> None:
                if cluster:
                    lock_cluster(transaction, cluster)
                deleted = Deleted()
                delete(transaction, some, deleted)
                if deleted.results:
                    raise _Used

            try:
                if not self.dry_run:
                    self.database.write(work)
                done += len(some)
            except _Used:
                self.skipped += len(some)
        if ids:
            self.progress(f"pruning {kind}", len(ids), len(ids))
        self._add(cluster, kind, done)

    def _add(self, cluster: str, kind: str, count: int) -> None:
        if count > 0:
            self.deleted.setdefault(cluster, {})[kind] = count

    def _referred(self, cluster: str, without: Collection[str]) -> Iterator[str]:
        """Yield the snapshots and forwarding tables of placements and simulations that stay."""
        for statement in _REFERENCES:
            row = self._rows(statement, cluster=cluster)[0]
            for identity, *names in zip(row["ids"], row["snapshots"], row["tables"], strict=True):
                if identity not in without:
                    yield from names

    def _rows(self, statement: str, **parameters: object) -> list[dict[str, Any]]:
        return self.database.read(lambda transaction: transaction.run(statement, **parameters))


def _last_seen(rows: Iterable[Mapping[str, Any]], gone: Collection[str], needed: Collection[str]) -> set[str]:
    """Return the observations that must stay: the last of each needed snapshot or tables, if none stays."""
    stay: set[str] = set()
    last: dict[str, str] = {}
    for row in rows:
        for name in (row["content"], row["routing"]):
            if name in needed:
                last[name] = row["id"]
                if row["id"] not in gone:
                    stay.add(name)
    return {identity for name, identity in last.items() if name not in stay}


def _last_runs(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the last run and the last good run of each format."""
    last: dict[tuple[str, bool], tuple[datetime, str]] = {}
    for row in rows:
        for name in row["formats"]:
            for good in {False, row["outcome"] != FAILED}:
                last[name, good] = max(last.get((name, good), (row["at"], row["id"])), (row["at"], row["id"]))
    return {identity for _, identity in last.values()}


def _limits(wanted: Retention, oldest: timedelta) -> list[Retention]:
    """Return rules for counters, each a day stricter than the one before, so that transactions are small."""
    usual = Retention()
    hours = range(min(usual.hourly.days, oldest.days), wanted.hourly.days, -1)
    limits = [replace(usual, hourly=max(day * DAY, usual.full)) for day in hours if day * DAY > usual.full]
    if wanted.daily is not None:
        days = range(oldest.days, wanted.daily.days, -1)
        limits += [replace(wanted, daily=day * DAY) for day in days]
    return [*limits, wanted]


_STATEMENTS = MappingProxyType(
    {
        "snapshots": """
MATCH (x:Content)
RETURN x.cluster AS cluster, count(x) AS count, sum(size(x.blob)) AS bytes
""",
        "forwarding tables": """
MATCH (r:Routing)-[:HAS_TABLE]->(t:ForwardingTable)
WITH DISTINCT r.cluster AS cluster, t
RETURN cluster, count(t) AS count, sum(size(t.ports)) AS bytes
""",
        "counter sweeps": """
MATCH (s:CounterSweep)
RETURN s.cluster AS cluster, count(s) AS count, sum(size(s.blob)) AS bytes
""",
        "summaries of counters": """
MATCH (r:CounterRollup)
RETURN r.cluster AS cluster, count(r) AS count, sum(size(r.blob)) AS bytes
""",
        "placements": """
MATCH (p:Placement)
OPTIONAL MATCH (p)-[:HAS_LOADS]->(l:LinkLoads)
RETURN p.cluster AS cluster, count(p) AS count,
       sum(size(p.host_of_rank) + CASE WHEN l IS NULL THEN 0 ELSE size(l.blob) END) AS bytes
""",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSize:
    """Number of records of one kind of a cluster, and the sum of their arrays as stored, in bytes."""

    cluster: str
    kind: str
    count: int
    bytes: int


def stored_sizes(database: Database) -> tuple[StoredSize, ...]:
    """Return the sizes of all clusters, by cluster and kind; one statement per kind."""
    sizes = []
    for kind, statement in _STATEMENTS.items():
        _, rows = database.query(statement)
        sizes += [StoredSize(cluster=row[0], kind=kind, count=row[1], bytes=row[2]) for row in rows]
    return tuple(sorted(sizes, key=lambda one: (one.cluster, one.kind)))


def free_bytes(database: Database) -> int | None:
    """Return the free space of the disk of the embedded server, or None for any other server."""
    return None if database.folder is None else shutil.disk_usage(database.folder).free


def file_bytes(database: Database) -> int | None:
    """Return the size of the embedded server's files, or None for any other server."""
    return None if database.folder is None else bytes_of([ServerFiles(database.folder).data])
