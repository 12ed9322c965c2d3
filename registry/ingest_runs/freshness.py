"""Whether a cluster's data are fresh: how old each source's last good news is, and whether it fails."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from registry.ingest_runs.runs import FAILED, SourceState

STALE = timedelta(days=7)
"""What brought no good news of a cluster for longer is stale. Profiles, which name none, do not age."""

FRESH, OLD, FAILING, NEVER = "fresh", "stale", "failing", "never read"
STATES = (FRESH, OLD, FAILING, NEVER)
"""What a source can be; all but the first ask for a look."""


class Freshness(NamedTuple):
    """How a source does.

    Attributes
    ----------
    state : str
        One of `STATES`.
    words : str
        The same in a line, with what is wrong.
    """

    state: str
    words: str


def freshness(source: SourceState, now: datetime) -> Freshness:
    """How a source does now: failing counts more than old."""
    if source.last_good_at is None:
        return Freshness(NEVER, f"never read: {source.error}")
    age = now - source.last_good_at
    seen = f"last good {age_text(age)} ago"
    if source.last_outcome == FAILED:
        return Freshness(FAILING, f"{seen}; the last try failed: {source.error}")
    return Freshness(OLD if source.cluster and age > STALE else FRESH, seen)


def age_text(age: timedelta) -> str:
    """An age in the largest unit of which there is one: ``3 minutes``, ``1 hour``, ``12 days``."""
    seconds = max(age.total_seconds(), 0.0)
    for name, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count = int(seconds // size)
        if count or name == "second":
            return f"{count:,} {name}" if count == 1 else f"{count:,} {name}s"
    raise AssertionError
