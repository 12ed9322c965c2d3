"""Data of the page Data: all sources, their runs by days, and the newest runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import streamlit as st

from dashboard.queries.caching import KEYS, SHARED
from dashboard.queries.clusters import cached_clusters
from registry.pages.ingests import Ingests, read_ingests
from registry.registry import Registry
from registry.store.ingest_runs import RunInfo

DAYS = 14
"""Number of days in the grid of sources, today included."""
RUNS = 1000
"""Maximum number of runs that are listed; the newest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestView:
    """Data of the page Data.

    Attributes
    ----------
    now : datetime
        When it was read, UTC.
    starts : tuple of datetime
        Start of each day of the grid, UTC.
    runs : tuple of RunInfo
        Newest first.
    """

    now: datetime
    starts: tuple[datetime, ...]
    ingests: Ingests
    runs: tuple[RunInfo, ...]


@st.cache_resource(ttl=SHARED, show_spinner=False, hash_funcs=KEYS)
def cached_ingests(registry: Registry) -> IngestView:
    """Return all sources and runs: two statements for all viewers in `SHARED`."""
    now = datetime.now(UTC)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    starts = tuple(today - timedelta(days=before) for before in reversed(range(DAYS)))
    return IngestView(
        now=now,
        starts=starts,
        ingests=read_ingests(registry.database, starts, cached_clusters(registry).infos.keys()),
        runs=registry.runs.list(limit=RUNS),
    )
