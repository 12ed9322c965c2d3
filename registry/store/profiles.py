"""Communication profiles: stored as arrays, and up to a size also as a graph of ranks.

The id of a profile is a hash of its application and its edges, so the same recording is stored once, however
often and under however many names it is saved. A name belongs to the profile that was given it last.

Traces: messages with their times, stored as arrays and linked to the profile counted from them.

The id of a trace is a hash of its profile and its messages, so the same recording is stored once. A profile
may have several traces: the same messages sent at other times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from registry.database import codec
from registry.database.driver import Transaction
from registry.database.schema import require_writable
from registry.database.stored_kinds import Join, NewRecord, RecordKind, Records
from registry.errors import InvalidValue, UnknownName
from registry.model import Profile, Trace
from registry.model.views import one_line
from registry.store.profile_names import find_profile

MAX_GRAPH_PAIRS = 100_000
"""Profiles with more pairs or ranks than this are stored as arrays only (``in_graph`` is false)."""

PROFILE = RecordKind(
    name="profile",
    label="Profile",
    digits=16,
    owner=Join("OF", "Application"),
)

_COLUMNS = ("indptr", "partner", "bytes", "messages")

_LOCK_APPLICATION = """
MERGE (a:Application {id: $application})
SET a.taken = true
"""

_NAMES = """
MATCH (p:Profile {id: $profile})
RETURN p.names AS names, p.named_at AS named_at
"""

_RENAME = """
MATCH (p:Profile {id: $profile})
SET p.name = $name, p.names = $names, p.named_at = $named_at
"""

_CREATE_RANKS = """
UNWIND range(0, size($id) - 1) AS i
MATCH (p:Profile {id: $profile})
CREATE (p)-[:HAS_RANK]->(:Rank {id: $id[i], index: $index[i]})
"""

_CREATE_SENDS = """
UNWIND range(0, size($source) - 1) AS i
MATCH (a:Rank {id: $source[i]})
MATCH (b:Rank {id: $target[i]})
CREATE (a)-[:SENDS {bytes: $bytes[i], messages: $messages[i]}]->(b)
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredProfile:
    """A profile with its id, all its names, and the time when it was first saved (UTC)."""

    id: str
    profile: Profile
    names: tuple[str, ...]
    recorded_at: datetime

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileInfo:
    """A row of the list of profiles; `bytes` and `messages` are totals."""

    id: str
    name: str
    names: tuple[str, ...]
    application: str
    ranks: int
    pairs: int
    bytes: float
    messages: int
    missing_ranks: tuple[int, ...]
    source: str
    recorded_at: datetime


_LIST = PROFILE.list_statement(ProfileInfo)


class Profiles(Records[StoredProfile]):
    """Stored profiles; an unknown name or id raises `UnknownName`, with the closest names."""

    kind = PROFILE

    def read(self, name: str) -> StoredProfile:
        """Return the profile that was given this name last, or that has this id or unique prefix of an id."""

        def work(transaction: Transaction) -> StoredProfile:
            row = transaction.run(PROFILE.read, ids=[find_profile(transaction, name)])[0]
            return stored_profile(row["node"], name)

        return self._database.read(work)

    def read_many(self, ids: Iterable[str]) -> dict[str, StoredProfile]:
        """Return profiles by id, each under its latest name; one statement."""
        wanted = sorted(set(ids))
        if not wanted:
            return {}
        rows = self._rows(PROFILE.read, ids=wanted)
        found = {row["node"]["id"]: stored_profile(row["node"]) for row in rows}
        if missing := sorted(set(wanted) - found.keys()):
            raise UnknownName("profile", missing[0])
        return found

    def list(self) -> tuple[ProfileInfo, ...]:
        """Return all profiles, the newest first."""
        return tuple(
            ProfileInfo(names=tuple(row.pop("names")), missing_ranks=tuple(row.pop("missing_ranks")), **row)
            for row in self._rows(_LIST)
        )


def save_profile(transaction: Transaction, profile: Profile, time: datetime) -> tuple[str, bool]:
    """Save a profile; return its id and True if the profile or its name is new."""
    identity = profile_id(profile)
    name = profile.name or profile.application or identity
    transaction.run(_LOCK_APPLICATION, application=profile.application)
    require_writable(transaction)
    known = transaction.run(_NAMES, profile=identity)
    if not known:
        _create(transaction, identity, name, profile, time)
        return identity, True
    names, named_at = known[0]["names"], known[0]["named_at"]
    if name in names:
        return identity, False
    changed = {"names": [*names, name], "named_at": [*named_at, _time_text(time)]}
    transaction.run(_RENAME, profile=identity, name=name, **changed)
    return identity, True


def profile_id(profile: Profile) -> str:
    """Return the id of a profile: 16 hexadecimal digits, a hash of application, edges and missing ranks."""
    missing = np.asarray(profile.missing_ranks, np.int64)
    return PROFILE.identity(
        {
            **codec.columns_of(profile, _COLUMNS),
            "application": [profile.application],
            "missing_ranks": missing,
        }
    )


def stored_profile(node: dict[str, Any], name: str = "") -> StoredProfile:
    """Return the profile of the properties of its node, under the given name if it has that name."""
    columns = codec.unpack(node["blob"])
    names = tuple(node["names"])
    with PROFILE.reading(node["id"]):
        profile = Profile(
            **{column: columns[column] for column in _COLUMNS},
            name=name if name in names else node["name"],
            missing_ranks=tuple(node["missing_ranks"]),
            **{field: node[field] for field in ("application", "source", "self_edges", "self_bytes")},
        )
    return StoredProfile(id=node["id"], profile=profile, names=names, recorded_at=node["recorded_at"])


def _create(transaction: Transaction, identity: str, name: str, profile: Profile, time: datetime) -> None:
    """Create the node of a profile and, if it is small enough, the graph of its ranks."""
    in_graph = profile.pairs <= MAX_GRAPH_PAIRS and profile.ranks <= MAX_GRAPH_PAIRS
    properties = {
        "name": name,
        "names": [name],
        "named_at": [_time_text(time)],
        "application": profile.application,
        "ranks": profile.ranks,
        "pairs": profile.pairs,
        "bytes": float(profile.bytes.sum()),
        "messages": int(profile.messages.sum()),
        "self_edges": profile.self_edges,
        "self_bytes": profile.self_bytes,
        "missing_ranks": list(profile.missing_ranks),
        "source": profile.source,
        "recorded_at": time,
        "in_graph": in_graph,
        "blob": codec.pack(codec.columns_of(profile, _COLUMNS)),
    }
    PROFILE.create(transaction, [NewRecord(identity, properties, owner=profile.application)])
    if in_graph:
        _create_graph(transaction, identity, profile)


def _create_graph(transaction: Transaction, identity: str, profile: Profile) -> None:
    """Create a node per rank and a relationship per pair of ranks."""
    ranks = [f"{identity}/{index}" for index in range(profile.ranks)]
    transaction.run_columns(
        _CREATE_RANKS, {"id": ranks, "index": list(range(profile.ranks))}, profile=identity
    )
    transaction.run_columns(
        _CREATE_SENDS,
        {
            "source": [ranks[rank] for rank in profile.sender.tolist()],
            "target": [ranks[rank] for rank in profile.partner.tolist()],
            "bytes": profile.bytes,
            "messages": profile.messages,
        },
    )


def _time_text(time: datetime) -> str:
    """Return a time as text of fixed width, so that texts sort like times."""
    return time.astimezone(UTC).isoformat(timespec="microseconds")


MAX_MESSAGES = 1 << 24
"""Most messages of a trace that can be stored: 28 bytes each, uncompressed."""

TRACE = RecordKind(
    name="trace",
    label="Trace",
    letter="t",
    owner=Join("OF", "Profile"),
)

_TRACE_COLUMNS = ("at", "sender", "receiver", "bytes", "tag")


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


_LIST_TRACES = TRACE.list_statement(TraceInfo)
_LIST_OF_PROFILE = TRACE.list_statement(TraceInfo, path="-[:OF]->(:Profile {id: $profile})")


class Traces(Records[StoredTrace]):
    """Stored traces."""

    kind = TRACE

    def list(self, profile: str | None = None) -> tuple[TraceInfo, ...]:
        """Return the traces of all profiles or of the profile with this id, the newest first."""
        rows = self._rows(_LIST_TRACES) if profile is None else self._rows(_LIST_OF_PROFILE, profile=profile)
        return tuple(TraceInfo(**row) for row in rows)

    def _stored(self, row: dict[str, Any]) -> StoredTrace:
        return stored_trace(row["node"])


def stored_trace(node: Mapping[str, Any]) -> StoredTrace:
    """Return the trace of the properties of its node."""
    columns = codec.unpack(node["blob"])
    with TRACE.reading(node["id"]):
        trace = Trace(ranks=node["ranks"], **{name: columns[name] for name in _TRACE_COLUMNS})
    return StoredTrace(id=node["id"], profile=node["profile"], trace=trace, recorded_at=node["recorded_at"])


def save_trace(transaction: Transaction, profile: str, trace: Trace, time: datetime) -> tuple[str, bool]:
    """Save a trace of a stored profile; return its id and True if it is new.

    Args:
        profile: Id of the profile counted from the trace.
        time: Time at which it is recorded.

    Raises:
        InvalidValue: It has more than `MAX_MESSAGES` messages.
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
        "blob": codec.pack(codec.columns_of(trace, _TRACE_COLUMNS)),
    }
    TRACE.create(transaction, [NewRecord(identity, properties, owner=profile)])
    return identity, True


def trace_id(profile: str, trace: Trace) -> str:
    """Return the id of a trace: ``t`` and 12 hexadecimal digits, a hash of the profile's id and messages."""
    return TRACE.identity(
        {
            "profile": [profile],
            "ranks": np.array([trace.ranks], np.int64),
            **codec.columns_of(trace, _TRACE_COLUMNS),
        }
    )
