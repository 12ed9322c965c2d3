"""Traces: the blob is the truth, linked to the profile that was counted from it.

The id of a trace is a hash of its profile and its messages: the same recording is one trace, however often it
is saved. A profile may have several: what was sent alike at other times.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from registry.database import codec
from registry.database.driver import Database, Transaction
from registry.database.record_store import ById, find_by_prefix
from registry.errors import DatabaseError, InvalidValue
from registry.model import Trace

MAX_MESSAGES = 1 << 24
"""Most messages of a trace that are kept: 28 bytes each, uncompressed."""

_COLUMNS = ("at", "sender", "receiver", "bytes", "tag")

_KNOWN = """
MATCH (t:Trace {id: $trace})
RETURN t.id AS id
"""

_CREATE = """
MATCH (p:Profile {id: $profile})
CREATE (t:Trace {
  id: $trace, profile: $profile, ranks: $ranks, messages: $messages, bytes: $bytes,
  span_seconds: $span_seconds, recorded_at: $recorded_at, blob: $blob})-[:OF]->(p)
"""

_READ = """
MATCH (t:Trace {id: $trace})
RETURN t.id AS id, t.profile AS profile, t.ranks AS ranks, t.recorded_at AS recorded_at, t.blob AS blob
"""

_BY_ID = ById("trace", "Trace", _READ)

_TOLD = """
RETURN t.id AS id, t.profile AS profile, t.ranks AS ranks, t.messages AS messages, t.bytes AS bytes,
       t.span_seconds AS span_seconds, t.recorded_at AS recorded_at
ORDER BY recorded_at DESC, id
"""

_LIST = f"""
MATCH (t:Trace)
{_TOLD}
"""

_LIST_OF = f"""
MATCH (t:Trace)-[:OF]->(p:Profile {{id: $profile}})
{_TOLD}
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredTrace:
    """A trace with its id, the id of its profile, and when it was first saved (UTC)."""

    id: str
    profile: str
    trace: Trace
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceInfo:
    """What a list tells of a trace; `profile` is the id of its profile, `bytes` a total."""

    id: str
    profile: str
    ranks: int
    messages: int
    bytes: float
    span_seconds: float
    recorded_at: datetime


class Traces:
    """What the registry knows of traces."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, trace: str) -> StoredTrace:
        """A trace by its id or a unique beginning of it.

        Raises
        ------
        UnknownName
            With the closest ids.
        """

        def work(transaction: Transaction) -> StoredTrace:
            return _stored(find_by_prefix(transaction, _BY_ID, trace))

        return self._database.read(work)

    def list(self, profile: str | None = None) -> tuple[TraceInfo, ...]:
        """Traces, the newest first.

        Parameters
        ----------
        profile : str, optional
            Only those of the profile of this id.
        """

        def work(transaction: Transaction) -> list[dict[str, Any]]:
            if profile is None:
                return transaction.run(_LIST)
            return transaction.run(_LIST_OF, profile=profile)

        return tuple(TraceInfo(**row) for row in self._database.read(work))


def save_trace(transaction: Transaction, profile: str, trace: Trace, at: datetime) -> tuple[str, bool]:
    """Save a trace of a saved profile; its id and whether it is new.

    Parameters
    ----------
    profile : str
        Id of the profile that was counted from it.

    Raises
    ------
    InvalidValue
        It has more than `MAX_MESSAGES` messages.
    """
    if len(trace) > MAX_MESSAGES:
        raise InvalidValue("Trace", f"has {len(trace)} messages, more than the {MAX_MESSAGES} that are kept")
    identity = trace_id(profile, trace)
    if transaction.run(_KNOWN, trace=identity):
        return identity, False
    transaction.run(
        _CREATE,
        trace=identity,
        profile=profile,
        ranks=trace.ranks,
        messages=len(trace),
        bytes=trace.total_bytes,
        span_seconds=trace.span_seconds,
        recorded_at=at,
        blob=codec.pack(_columns(trace)),
    )
    return identity, True


def trace_id(profile: str, trace: Trace) -> str:
    """``t`` and 12 hexadecimal digits: a hash of the profile's id and the messages."""
    about: dict[str, codec.Column] = {"profile": [profile], "ranks": np.array([trace.ranks], np.int64)}
    return "t" + codec.digest({**about, **_columns(trace)})[:12]


def _columns(trace: Trace) -> dict[str, codec.Column]:
    return {name: getattr(trace, name) for name in _COLUMNS}


def _stored(row: dict[str, Any]) -> StoredTrace:
    columns = codec.unpack(row["blob"])
    try:
        trace = Trace(ranks=row["ranks"], **{name: columns[name] for name in _COLUMNS})
    except (KeyError, InvalidValue) as error:
        raise DatabaseError(f"the stored trace {row['id']} is damaged: {error}") from error
    return StoredTrace(id=row["id"], profile=row["profile"], trace=trace, recorded_at=row["recorded_at"])
