"""Placements with what they cost and where they come from: append-only, found again by a short id.

`placement_saving` tells what is written of one, `placement_batches` writes, `placement_rows` reads back.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from registry.database.driver import Database, Transaction
from registry.database.record_store import ById, find_by_prefix
from registry.fabrics.observations import lock_cluster
from registry.fabrics.timeline import FOREVER
from registry.model import as_utc
from registry.model.placement_series import PlacementSeries
from registry.records.placements.batches import save_placement, save_placements
from registry.records.placements.columns import (
    BEGINNING,
    READ_SERIES,
    READ_SERIES_OF_CLUSTER,
    placement_series,
)
from registry.records.placements.records import PlacementRecord, StoredPlacement, StoredPlacementInfo
from registry.records.placements.rows import INFO, placement_info, profile_names, stored_placement
from registry.records.placements.saving import placement_id

__all__ = [
    "PlacementRecord",
    "Placements",
    "StoredPlacement",
    "StoredPlacementInfo",
    "placement_id",
    "save_placement",
]

_READ = """
MATCH (p:Placement {id: $placement})-[:IN]->(x:Content)
OPTIONAL MATCH (p)-[:OF]->(f:Profile)
OPTIONAL MATCH (j:Job)-[:HAS_PLACEMENT]->(p)
OPTIONAL MATCH (p)-[:HAS_LOADS]->(l:LinkLoads)
RETURN p, x.id AS content, f.id AS profile, j.job AS job, l.blob AS loads
"""

BY_ID = ById("placement", "Placement", _READ)

_COUNT = """
MATCH (p:Placement)
RETURN count(p) AS placements
"""

_ASKED = """
($cluster IS NULL OR p.cluster = $cluster) AND ($application IS NULL OR p.application = $application)
AND (p.recorded_at < $before OR (p.recorded_at = $before AND p.id > $after_id))
"""

_TELL = f"""
WITH collect({INFO}) AS placements
{profile_names("placements")}
RETURN placements, profile_ids, profile_names
"""
_ORDER = "WITH p ORDER BY p.recorded_at DESC, p.id"

_HISTORY = f"""
MATCH (p:Placement)
WHERE p.recorded_at <= $before AND {_ASKED}
{_ORDER}
{_TELL}
"""

_HISTORY_OF_CLUSTER = f"""
MATCH (p:Placement)
WHERE p.cluster = $cluster AND {_ASKED}
{_ORDER}
{_TELL}
"""

_HISTORY_OF_JOB = f"""
MATCH (j:Job)-[:HAS_PLACEMENT]->(p:Placement)
WHERE j.job = $job AND {_ASKED}
{_ORDER}
{_TELL}
"""

_SOME, _SOME_OF_CLUSTER, _SOME_OF_JOB = (
    statement.replace(_ORDER, f"{_ORDER} LIMIT $limit")
    for statement in (_HISTORY, _HISTORY_OF_CLUSTER, _HISTORY_OF_JOB)
)
"""The same, so many at most: no limit is large enough to mean none on both servers."""


class Placements:
    """What the registry knows of placements."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, record: PlacementRecord) -> str:
        """Save a placement; its id. One that is there already adds nothing.

        Raises
        ------
        UnknownName
            No such content, profile or job.
        InvalidPlacement
            Ranks, vertices or link loads do not fit profile or fabric.
        """
        return self.save_many([record])[0]

    def save_many(self, records: Sequence[PlacementRecord]) -> tuple[str, ...]:
        """Save placements, all of them or none; the id of each.

        Raises
        ------
        UnknownName, InvalidPlacement
            As `save`.
        """

        def work(transaction: Transaction) -> tuple[str, ...]:
            for cluster in sorted({record.cluster for record in records}):
                lock_cluster(transaction, cluster)
            now = datetime.now(UTC)
            return save_placements(transaction, [(record, now) for record in records])

        return self._database.write(work) if records else ()

    def read(self, placement: str) -> StoredPlacement:
        """A placement by its id or a unique beginning of it.

        Raises
        ------
        UnknownName
        """

        def work(transaction: Transaction) -> StoredPlacement:
            return stored_placement(find_by_prefix(transaction, BY_ID, placement))

        return self._database.read(work)

    def count(self) -> int:
        """How many placements there are."""

        def work(transaction: Transaction) -> int:
            return int(transaction.run(_COUNT)[0]["placements"])

        return self._database.read(work)

    def history(
        self,
        cluster: str | None = None,
        application: str | None = None,
        job: str | None = None,
        *,
        limit: int | None = None,
        before: StoredPlacementInfo | None = None,
    ) -> tuple[StoredPlacementInfo, ...]:
        """Placements that fit what is given, the newest first; one statement.

        Parameters
        ----------
        limit : int, optional
            So many at most.
        before : StoredPlacementInfo, optional
            Only what comes behind this row: the last one of the page before.
        """
        asked: dict[str, Any] = {
            "cluster": cluster,
            "application": application,
            "before": FOREVER if before is None else as_utc(before.recorded_at),
            "after_id": "" if before is None else before.id,
        }
        whole, some = _HISTORY, _SOME
        if job is not None:
            whole, some = _HISTORY_OF_JOB, _SOME_OF_JOB
            asked["job"] = job
        elif cluster is not None:
            whole, some = _HISTORY_OF_CLUSTER, _SOME_OF_CLUSTER
        if limit is not None:
            asked["limit"] = limit
        statement = whole if limit is None else some

        def work(transaction: Transaction) -> list[dict[str, Any]]:
            return transaction.run(statement, **asked)

        (row,) = self._database.read(work)
        names = dict(zip(row["profile_ids"], row["profile_names"], strict=True))
        return tuple(placement_info(values, names) for values in row["placements"])

    def series(
        self, cluster: str | None = None, application: str | None = None, since: datetime | None = None
    ) -> PlacementSeries:
        """Placements that fit what is given as columns, the oldest first; one statement.

        Parameters
        ----------
        since : datetime, optional
            Recorded then or later.
        """
        asked = {"application": application, "since": BEGINNING if since is None else as_utc(since)}

        def work(transaction: Transaction) -> list[dict[str, Any]]:
            if cluster is None:
                return transaction.run(READ_SERIES, **asked)
            return transaction.run(READ_SERIES_OF_CLUSTER, cluster=cluster, **asked)

        return placement_series(self._database.read(work)[0])
