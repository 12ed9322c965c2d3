"""Reads for the fabric page: the states of a cluster, and the difference of two of them in one statement.

`Fabrics.observations` and `Fabrics.changes` return the same in several.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from registry.database.driver import Database, Transaction
from registry.errors import UnknownName
from registry.model import as_utc
from registry.model.views import one_line
from registry.store.changes import Changes, compare
from registry.store.fabrics import Snapshot, stored_snapshot

_STATES = """
UNWIND $contents AS id
MATCH (x:Content {id: id})
WITH collect(x.id) AS ids, collect(x.blob) AS blobs
OPTIONAL MATCH (:Routing {id: $before})-[h:HAS_TABLE]->(t:ForwardingTable)
WITH ids, blobs, collect(h.guid) AS guids_before, collect(t.id) AS tables_before
OPTIONAL MATCH (:Routing {id: $after})-[h:HAS_TABLE]->(t:ForwardingTable)
RETURN ids, blobs, guids_before, tables_before, collect(h.guid) AS guids_after, collect(t.id) AS tables_after
"""


class State(NamedTuple):
    """Wiring and forwarding tables of a cluster from one time until the next state."""

    at: datetime
    """Time of the first observation of this state, UTC."""
    content: str
    """Id of the snapshot."""
    routing: str | None
    """Id of the latest forwarding tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """States of a cluster by time, each different from the one before."""

    cluster: str
    states: tuple[State, ...]
    """At least one."""
    last_at: datetime
    """Time of the latest observation, UTC."""

    def as_of(self, at: datetime) -> State | None:
        """Return the state at a time, or None before the first."""
        found = bisect_right(self.states, as_utc(at), key=lambda state: state.at)
        return self.states[found - 1] if found else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SnapshotDiff:
    """Two states of a cluster, without forwarding tables, and their differences."""

    before: Snapshot
    after: Snapshot
    changes: Changes

    __repr__ = one_line


def read_snapshot_diff(database: Database, cluster: str, before: State, after: State) -> SnapshotDiff:
    """Return two states and their differences; one statement."""

    def work(transaction: Transaction) -> SnapshotDiff:
        wanted = sorted({before.content, after.content})
        row = transaction.run(
            _STATES, contents=wanted, before=before.routing or "", after=after.routing or ""
        )[0]
        blobs = dict(zip(row["ids"], row["blobs"], strict=True))
        for content in wanted:
            if content not in blobs:
                raise UnknownName("snapshot", content, blobs)
        first, second = (
            stored_snapshot(cluster, state.content, blobs[state.content], state.at, routing=state.routing)
            for state in (before, after)
        )
        changes = replace(
            compare(first.fabric, second.fabric),
            start=before.at,
            end=after.at,
            start_snapshot=before.content,
            end_snapshot=after.content,
            switches_rerouted=_rerouted_switches(row) if before.routing and after.routing else (),
        )
        return SnapshotDiff(before=first, after=second, changes=changes)

    return database.read(work)


def states_of(row: dict[str, Any]) -> tuple[State, ...]:
    """Return the states by time, from the columns ``at``, ``ids`` and ``kinds`` of the observations."""
    content: str | None = None
    routing: str | None = None
    states: list[State] = []
    # ArcadeDB does not guarantee the order of collected values
    order = sorted(range(len(row["at"])), key=row["at"].__getitem__)
    for at, ids, kinds in ((row["at"][k], row["ids"][k], row["kinds"][k]) for k in order):
        saw = dict(zip(kinds, ids, strict=True))
        content, routing = saw.get("Content", content), saw.get("Routing", routing)
        if content is None:
            continue
        state = State(at, content, routing)
        if states and states[-1].at == at:
            states[-1] = state
        elif not states or states[-1][1:] != state[1:]:
            states.append(state)
    return tuple(_without_repeats(states))


def _without_repeats(states: Sequence[State]) -> list[State]:
    """Return the states without those equal to the one before: two observations may have the same time."""
    result: list[State] = []
    for state in states:
        if not result or result[-1][1:] != state[1:]:
            result.append(state)
    return result


def _rerouted_switches(row: dict[str, Any]) -> tuple[str, ...]:
    old = dict(zip(row["guids_before"], row["tables_before"], strict=True))
    new = dict(zip(row["guids_after"], row["tables_after"], strict=True))
    return tuple(sorted(guid for guid in old.keys() | new.keys() if old.get(guid) != new.get(guid)))
