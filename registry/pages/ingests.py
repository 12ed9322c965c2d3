"""Reads for the page Data: the data of each source by the day of their observation; one statement."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from registry.database.driver import Database
from registry.model import as_utc
from registry.store.ingest_runs import FAILED, SourceState, source_states

_DAYS = """
MATCH (r:IngestRun)
UNWIND r.formats AS format
WITH r, format, CASE WHEN r.outcome = $failed THEN r.at ELSE coalesce(r.observed_at, r.at) END AS moment
WITH r, format, moment, size([start IN $starts WHERE start <= moment]) AS day ORDER BY r.at DESC
RETURN r.cluster AS cluster, format, r.outcome AS outcome, day, count(r) AS runs, max(r.at) AS at,
       head(collect(r.error)) AS error, max(moment) AS observed_at
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDay:
    """Data of a source that were observed on one day, and its runs that failed on it."""

    cluster: str
    format: str
    day: int
    """Number of the day, from 1; 0: before the first one."""
    runs: int
    failed: int
    """Number of runs that read data of that day or failed on it, and how many failed."""
    observed_at: datetime | None
    """Time of the latest data; None if there are none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingests:
    """All sources, and their runs by days."""

    sources: tuple[SourceState, ...]
    days: tuple[SourceDay, ...]


def read_ingests(database: Database, starts: Sequence[datetime], clusters: Collection[str]) -> Ingests:
    """Return all sources and their data by days; one statement.

    Args:
        starts: Start of each day, ascending.
        clusters: Names of the clusters that exist.
    """
    moments = [as_utc(start) for start in starts]
    rows = database.read(lambda transaction: transaction.run(_DAYS, starts=moments, failed=FAILED))
    found: dict[tuple[str, str, int], SourceDay] = {}
    for row in rows:
        key = (row["cluster"], row["format"], row["day"])
        before = found.get(key)
        bad = row["outcome"] == FAILED
        times = [None if bad else row["observed_at"], None if before is None else before.observed_at]
        found[key] = SourceDay(
            cluster=key[0],
            format=key[1],
            day=key[2],
            runs=row["runs"] + (0 if before is None else before.runs),
            failed=(row["runs"] if bad else 0) + (0 if before is None else before.failed),
            observed_at=max((time for time in times if time is not None), default=None),
        )
    return Ingests(sources=source_states(rows, clusters), days=tuple(found[key] for key in sorted(found)))
