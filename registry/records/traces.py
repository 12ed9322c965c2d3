"""Traces: messages with their times, stored as arrays and linked to the profile counted from them.

The id of a trace is a hash of its profile and its messages, so the same recording is stored once. A profile
may have several traces: the same messages sent at other times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from registry.database import codec
from registry.database.driver import Transaction
from registry.database.record_store import Join, NewRecord, RecordKind, Records
from registry.errors import InvalidValue
from registry.model import Trace
from registry.model.views import one_line

MAX_MESSAGES = 1 << 24
"""Most messages of a trace that can be stored: 28 bytes each, uncompressed."""

TRACE = RecordKind(
    name="trace",
    label="Trace",
    letter="t",
    owner=Join("OF", "Profile"),
)

_COLUMNS = ("at", "sender", "receiver", "bytes", "tag")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredTrace:
    """A trace with its id, the id of its profile, and the time when it was first saved (UTC)."""

    id: str
    profile: str
    trace: Trace
    recorded_at: datetime

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceInfo:
    """A row of the list of traces; `profile` is the id of its profile, `bytes` a total."""

    id: str
    profile: str
    ranks: int
    messages: int
    bytes: float
    span_seconds: float
    recorded_at: datetime


_LIST = TRACE.list_statement(TraceInfo)
_LIST_OF_PROFILE = TRACE.list_statement(TraceInfo, path="-[:OF]->(:Profile {id: $profile})")


class Traces(Records[StoredTrace]):
    """Stored traces."""

    kind = TRACE

    def list(self, profile: str | None = None) -> tuple[TraceInfo, ...]:
        """Return the traces of all profiles or of the profile with this id, the newest first."""
        rows = self._rows(_LIST) if profile is None else self._rows(_LIST_OF_PROFILE, profile=profile)
        return tuple(TraceInfo(**row) for row in rows)

    def _stored(self, row: dict[str, Any]) -> StoredTrace:
        return stored_trace(row["node"])


def stored_trace(node: Mapping[str, Any]) -> StoredTrace:
    """Return the trace of the properties of its node."""
    columns = codec.unpack(node["blob"])
    with TRACE.reading(node["id"]):
        trace = Trace(ranks=node["ranks"], **{name: columns[name] for name in _COLUMNS})
    return StoredTrace(id=node["id"], profile=node["profile"], trace=trace, recorded_at=node["recorded_at"])


def save_trace(transaction: Transaction, profile: str, trace: Trace, time: datetime) -> tuple[str, bool]:
    """Save a trace of a stored profile; return its id and True if it is new.

    Parameters
    ----------
    profile : str
        Id of the profile counted from the trace.
    time : datetime
        Time at which it is recorded.

    Raises
    ------
    InvalidValue
        It has more than `MAX_MESSAGES` messages.
    """
    if len(trace) > MAX_MESSAGES:
        raise InvalidValue("Trace", f"has {len(trace)} messages, at most {MAX_MESSAGES} can be stored")
    identity = trace_id(profile, trace)
    if TRACE.known(transaction, [identity]):
        return identity, False
    properties = {
        "profile": profile,
        "ranks": trace.ranks,
        "messages": len(trace),
        "bytes": trace.total_bytes,
        "span_seconds": trace.span_seconds,
        "recorded_at": time,
        "blob": codec.pack(codec.columns_of(trace, _COLUMNS)),
    }
    TRACE.create(transaction, [NewRecord(identity, properties, owner=profile)])
    return identity, True


def trace_id(profile: str, trace: Trace) -> str:
    """Return the id of a trace: ``t`` and 12 hexadecimal digits, a hash of the profile's id and messages."""
    return TRACE.identity(
        {
            "profile": [profile],
            "ranks": np.array([trace.ranks], np.int64),
            **codec.columns_of(trace, _COLUMNS),
        }
    )
