"""Placements with their cost and provenance: saved once, found by a short id, listed as rows or as columns.

`saving` makes what is stored of a placement, `rows` reads it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from registry.database.driver import Transaction
from registry.database.record_store import Records
from registry.fabrics.observations import lock_cluster
from registry.fabrics.timeline import FOREVER
from registry.model import Time, as_utc
from registry.model.placement_series import PlacementSeries
from registry.records.placements.records import PlacementRecord, StoredPlacement, StoredPlacementInfo
from registry.records.placements.rows import (
    BEGINNING,
    INFO,
    PLACEMENT,
    READ_SERIES,
    READ_SERIES_OF_CLUSTER,
    placement_info,
    placement_series,
    profile_names,
    stored_placement,
)
from registry.records.placements.saving import save_placements

_COUNT = """
MATCH (p:Placement)
RETURN count(p) AS placements
"""

_FILTER = """
($cluster IS NULL OR p.cluster = $cluster) AND ($application IS NULL OR p.application = $application)
AND (p.recorded_at < $before OR (p.recorded_at = $before AND p.id > $after_id))
"""

_RETURN = f"""
WITH collect({INFO}) AS placements
{profile_names("placements")}
RETURN placements, profile_ids, profile_names
"""
_ORDER = "WITH p ORDER BY p.recorded_at DESC, p.id"

_HISTORY = f"""
MATCH (p:Placement)
WHERE p.recorded_at <= $before AND {_FILTER}
{_ORDER}
{_RETURN}
"""

_HISTORY_OF_CLUSTER = f"""
MATCH (p:Placement)
WHERE p.cluster = $cluster AND {_FILTER}
{_ORDER}
{_RETURN}
"""

_HISTORY_OF_JOB = f"""
MATCH (j:Job)-[:HAS_PLACEMENT]->(p:Placement)
WHERE j.job = $job AND {_FILTER}
{_ORDER}
{_RETURN}
"""

_PAGE, _PAGE_OF_CLUSTER, _PAGE_OF_JOB = (
    statement.replace(_ORDER, f"{_ORDER} LIMIT $limit")
    for statement in (_HISTORY, _HISTORY_OF_CLUSTER, _HISTORY_OF_JOB)
)
"""The same statements with a limit: no number means "no limit" on both servers."""


class Placements(Records[StoredPlacement]):
    """Stored placements."""

    kind = PLACEMENT

    def save(self, record: PlacementRecord) -> str:
        """Save a placement and return its id; one that is stored already adds nothing.

        Raises
        ------
        UnknownName
            No such snapshot, profile or job.
        InvalidPlacement
            Ranks, vertices or link loads do not fit the profile or the fabric.
        """
        return self.save_many([record])[0]

    def save_many(
        self, records: Sequence[PlacementRecord], times: Sequence[datetime] | None = None
    ) -> tuple[str, ...]:
        """Save all placements or none; return the id of each.

        Parameters
        ----------
        times : sequence of datetime, optional
            Time at which each was recorded (default: now).
        """

        def work(transaction: Transaction) -> tuple[str, ...]:
            for cluster in sorted({record.cluster for record in records}):
                lock_cluster(transaction, cluster)
            recorded = [datetime.now(UTC)] * len(records) if times is None else map(as_utc, times)
            return save_placements(transaction, list(zip(records, recorded, strict=True)))

        return self._database.write(work) if records else ()

    def count(self) -> int:
        """Return the number of stored placements."""
        return int(self._rows(_COUNT)[0]["placements"])

    def history(
        self,
        cluster: str | None = None,
        application: str | None = None,
        job: str | None = None,
        *,
        limit: int | None = None,
        before: StoredPlacementInfo | None = None,
    ) -> tuple[StoredPlacementInfo, ...]:
        """Return the placements that match, the newest first; one statement.

        Parameters
        ----------
        cluster, application, job : str, optional
            Only placements on this cluster, of this application, of this job.
        limit : int, optional
            At most so many.
        before : StoredPlacementInfo, optional
            Only placements after this row: the last one of the previous page.
        """
        parameters: dict[str, Any] = {
            "cluster": cluster,
            "application": application,
            "before": FOREVER if before is None else as_utc(before.recorded_at),
            "after_id": "" if before is None else before.id,
        }
        whole, page = _HISTORY, _PAGE
        if job is not None:
            whole, page = _HISTORY_OF_JOB, _PAGE_OF_JOB
            parameters["job"] = job
        elif cluster is not None:
            whole, page = _HISTORY_OF_CLUSTER, _PAGE_OF_CLUSTER
        if limit is not None:
            whole, parameters["limit"] = page, limit
        (row,) = self._database.read(lambda transaction: transaction.run(whole, **parameters))
        names = dict(zip(row["profile_ids"], row["profile_names"], strict=True))
        return tuple(placement_info(values, names) for values in row["placements"])

    def series(
        self, cluster: str | None = None, application: str | None = None, since: Time | None = None
    ) -> PlacementSeries:
        """Return the placements that match as columns, the oldest first; one statement.

        Parameters
        ----------
        since : datetime, optional
            Only placements recorded at this time or later.
        """
        earliest = BEGINNING if since is None else as_utc(since)
        parameters: dict[str, Any] = {"application": application, "since": earliest}
        if cluster is None:
            (row,) = self._rows(READ_SERIES, **parameters)
        else:
            (row,) = self._rows(READ_SERIES_OF_CLUSTER, cluster=cluster, **parameters)
        return placement_series(row)

    def _stored(self, row: dict[str, Any]) -> StoredPlacement:
        return stored_placement(row)
