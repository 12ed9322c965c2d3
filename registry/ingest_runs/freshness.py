"""Freshness of the sources of a cluster: the one place that decides how old data are, and which are stale."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from registry.ingest_runs.runs import FAILED, SourceState
from registry.units import counted

STALE = timedelta(days=7)
"""A source whose data were observed longer ago is stale. Sources without a cluster (profiles) do not age."""

FRESH, OLD, FAILING, NEVER, NO_CLUSTER = "fresh", "stale", "failing", "never read", "no such cluster"
STATES = (FRESH, OLD, FAILING, NEVER, NO_CLUSTER)
"""States of sources."""
NO_ALARM = (FRESH, NO_CLUSTER)
"""States that need no attention: a cluster that never existed is a typing error."""


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
    if not source.known:
        return Freshness(NO_CLUSTER, f"no such cluster: {source.error}")
    age = source.age(now)
    if age is None or source.last_good_at is None:
        return Freshness(NEVER, f"never read: {source.error}")
    read = age_text(now - source.last_good_at)
    seen = f"observed {age_text(age)} ago" + ("" if read == age_text(age) else f", ingested {read} ago")
    if source.last_outcome == FAILED:
        return Freshness(FAILING, f"{seen}; the last try failed: {source.error}")
    return Freshness(OLD if source.cluster and age > STALE else FRESH, seen)


def age_text(age: timedelta) -> str:
    """Return an age in the largest suitable unit: ``3 minutes``, ``1 hour``, ``12 days``."""
    seconds = max(age.total_seconds(), 0.0)
    for name, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count = int(seconds // size)
        if count or name == "second":
            return counted(count, name)
    raise AssertionError
