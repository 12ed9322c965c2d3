"""Freshness of a cluster's data: age of the last good run of each source, and failures."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from registry.ingest_runs.runs import FAILED, SourceState

STALE = timedelta(days=7)
"""A source without a good run for longer is stale. Sources without a cluster (profiles) do not age."""

FRESH, OLD, FAILING, NEVER = "fresh", "stale", "failing", "never read"
STATES = (FRESH, OLD, FAILING, NEVER)
"""States of sources; all but the first need attention."""


class Freshness(NamedTuple):
    """Freshness of a source.

    Attributes
    ----------
    state : str
        One of `STATES`.
    words : str
        Description in one line, with the error if there is one.
    """

    state: str
    words: str


def freshness(source: SourceState, now: datetime) -> Freshness:
    """Return the freshness of a source; failing takes precedence over stale."""
    if source.last_good_at is None:
        return Freshness(NEVER, f"never read: {source.error}")
    age = now - source.last_good_at
    seen = f"last good {age_text(age)} ago"
    if source.last_outcome == FAILED:
        return Freshness(FAILING, f"{seen}; the last try failed: {source.error}")
    return Freshness(OLD if source.cluster and age > STALE else FRESH, seen)


def age_text(age: timedelta) -> str:
    """Return an age in the largest suitable unit: ``3 minutes``, ``1 hour``, ``12 days``."""
    seconds = max(age.total_seconds(), 0.0)
    for name, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count = int(seconds // size)
        if count or name == "second":
            return f"{count:,} {name}" if count == 1 else f"{count:,} {name}s"
    raise AssertionError
