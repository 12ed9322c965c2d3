"""Validity intervals of facts, computed from all observations or updated by one more.

An observation at time *t* states which facts are valid from *t* until the next observation. The intervals of
a fact are the maximal half-open runs ``[start, end)`` of observations that contain it; the last one is open
(`FOREVER`). Of two observations at the same time the one that arrived later counts.

`intervals` computes them from all observations. `edits` returns the changes by one observation at any time:
only facts that differ from the observation before, and only between the two observations around it. Both
give the same intervals, whatever the order of arrival.

What of a cluster was observed last at or before a time: the ids of snapshot and forwarding tables.

No arrays are read, and numpy is not imported: `almanac run` asks this before each job.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, pairwise
from typing import Generic, NamedTuple, TypeVar

from registry import units
from registry.database.driver import Transaction
from registry.errors import InconsistentGraph, UnknownName
from registry.model import Time, as_utc

FOREVER = datetime(9999, 12, 31, tzinfo=UTC)
"""End of an open interval."""

Fact = TypeVar("Fact", bound=Hashable)


def time_or_latest(at: Time | None) -> datetime:
    """Return a time in UTC, or a time after all others if none is given."""
    return FOREVER if at is None else as_utc(at)


class Interval(NamedTuple):
    """Half-open interval, UTC."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits(Generic[Fact]):
    """Changes of stored intervals; an interval is identified by its fact and its start."""

    removed: list[tuple[Fact, Interval]]
    moved: list[tuple[Fact, Interval]]
    """Stored intervals with a new end."""
    opened: list[tuple[Fact, Interval]]


def without_repeats(observations: Iterable[tuple[datetime, str]]) -> list[tuple[datetime, str]]:
    """Return the observations that differ from the one before, of each time only the last to arrive."""
    found: list[tuple[datetime, str]] = []
    for at, content in dict(observations).items():
        if not found or found[-1][1] != content:
            found.append((at, content))
    return found


def intervals(observations: Iterable[tuple[datetime, Collection[Fact]]]) -> dict[Fact, list[Interval]]:
    """Return the intervals of each fact, ascending.

    Args:
        observations: Facts by time, those of the same time by arrival; read one after the other.
    """
    found: dict[Fact, list[Interval]] = {}
    since: dict[Fact, datetime] = {}
    for (at, facts), (following, _) in pairwise(chain(observations, [(FOREVER, ())])):
        if at == following:
            continue  # the last of each time counts
        present = set(facts)
        for fact in [fact for fact in since if fact not in present]:
            found.setdefault(fact, []).append(Interval(since.pop(fact), at))
        for fact in present:
            since.setdefault(fact, at)
    for fact, start in since.items():
        found.setdefault(fact, []).append(Interval(start, FOREVER))
    return found


def edits(
    before: Collection[Fact],
    after: Collection[Fact],
    at: datetime,
    until: datetime,
    touching: Mapping[Fact, Sequence[Interval]],
) -> Edits[Fact]:
    """Return the changes of stored intervals by one observation.

    Args:
        before: Facts of the last observation at or before `at`; empty if there is none.
        after: Facts of the new observation.
        at, until: Time of the observation, and of the next one; `FOREVER` if there is none.
        touching: Stored intervals that overlap or touch ``[at, until]``, of the facts that differ.

    Raises:
        InconsistentGraph: The stored intervals contradict the observations.
    """
    old, new = set(before), set(after)
    result: Edits[Fact] = Edits(removed=[], moved=[], opened=[])
    if at == until:
        return result
    for fact in before:
        if fact not in new:
            _remove(result, fact, at, until, touching.get(fact, ()))
    for fact in after:
        if fact not in old:
            _add(result, fact, at, until, touching.get(fact, ()))
    return result


def _remove(
    result: Edits[Fact], fact: Fact, at: datetime, until: datetime, stored: Sequence[Interval]
) -> None:
    whole = next((span for span in stored if span.start <= at and until <= span.end), None)
    if whole is None:
        raise InconsistentGraph(f"the graph lacks {fact} at {at.isoformat()}: it must be rebuilt")
    if whole.start < at:
        result.moved.append((fact, Interval(whole.start, at)))
    else:
        result.removed.append((fact, whole))
    if until < whole.end:
        result.opened.append((fact, Interval(until, whole.end)))


def _add(result: Edits[Fact], fact: Fact, at: datetime, until: datetime, stored: Sequence[Interval]) -> None:
    left = next((span for span in stored if span.end == at), None)
    right = next((span for span in stored if span.start == until), None)
    end = until if right is None else right.end
    if right is not None:
        result.removed.append((fact, right))
    if left is not None:
        result.moved.append((fact, Interval(left.start, end)))
    else:
        result.opened.append((fact, Interval(at, end)))


_CONTENT_AS_OF = """
MATCH (o:Observation)-[:SAW]->(x:Content)
WHERE o.cluster = $cluster AND o.at <= $at
WITH o, x ORDER BY o.at DESC, o.seq DESC LIMIT 1
RETURN o.at AS at, x.id AS content
"""

_ROUTING_AS_OF = """
MATCH (o:Observation)-[:SAW]->(r:Routing)
WHERE o.cluster = $cluster AND o.at <= $at
WITH o, r ORDER BY o.at DESC, o.seq DESC LIMIT 1
RETURN r.id AS routing
"""

_FIRST = """
MATCH (o:Observation)-[:SAW]->(:Content)
WHERE o.cluster = $cluster
RETURN min(o.at) AS at
"""

_CLUSTER_NAMES = """
MATCH (c:Cluster)
RETURN collect(c.id) AS names
"""

_OBSERVED = """
MATCH (o:Observation)-[:SAW]->(:Content)
RETURN collect(DISTINCT o.cluster) AS names
"""


def content_as_of(transaction: Transaction, cluster: str, at: datetime) -> tuple[datetime, str] | None:
    """Return time and snapshot id of the last observation of a fabric at or before a time, or None."""
    found = transaction.run(_CONTENT_AS_OF, cluster=cluster, at=at)
    return (found[0]["at"], found[0]["content"]) if found else None


def routing_as_of(transaction: Transaction, cluster: str, at: datetime) -> str | None:
    """Return the id of the last forwarding tables at or before a time, or None."""
    found = transaction.run(_ROUTING_AS_OF, cluster=cluster, at=at)
    return found[0]["routing"] if found else None


def observed_clusters(transaction: Transaction) -> list[str]:
    """Return the names of all clusters with a fabric."""
    names: list[str] = transaction.run(_OBSERVED)[0]["names"]
    return sorted(names)


def require_cluster(transaction: Transaction, cluster: str) -> None:
    """Raise `UnknownName`, with the known names, if there is no such cluster."""
    known = transaction.run(_CLUSTER_NAMES)[0]["names"]
    if cluster not in known:
        raise UnknownName("cluster", cluster, known)


def no_fabric(transaction: Transaction, cluster: str, at: datetime) -> UnknownName:
    """Return the error for a cluster without a fabric at or before a time."""
    # a writer creates the node of the cluster by locking it, before it finds it empty
    names = [name for name in transaction.run(_CLUSTER_NAMES)[0]["names"] if name != cluster]
    if content_as_of(transaction, cluster, FOREVER) is None:
        return UnknownName("cluster", cluster, names, remedy="ingest a scan of its fabric first")
    first = units.moment_text(transaction.run(_FIRST, cluster=cluster)[0]["at"])
    reason = f"cluster {cluster} was not observed at or before {units.moment_text(at)}"
    return UnknownName("fabric", cluster, reason=f"{reason}; its first scan is of {first}")
