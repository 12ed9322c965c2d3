"""Communication profiles: the blob is the truth, ranks and who sends to whom a graph beside it.

The id of a profile is a hash of its application and its edges: the same recording is one profile,
however often and under however many names it is saved. A name belongs to the profile that was given
it last; giving a profile a name that it has already had changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from registry.database import codec
from registry.database.driver import Database, Transaction
from registry.errors import DatabaseError, InvalidValue, UnknownName
from registry.model import Profile

MAX_GRAPH_PAIRS = 100_000
"""Profiles with more pairs, or more ranks, than this are kept as a blob only (``in_graph`` is false)."""

_COLUMNS = ("indptr", "partner", "bytes", "messages")

_TAKE_APPLICATION = """
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

_CREATE = """
MATCH (a:Application {id: $application})
CREATE (p:Profile {
  id: $profile, name: $name, names: $names, named_at: $named_at, application: $application,
  ranks: $ranks, pairs: $pairs, bytes: $bytes, messages: $messages, self_edges: $self_edges,
  self_bytes: $self_bytes, missing_ranks: $missing_ranks, source: $source, recorded_at: $recorded_at,
  in_graph: $in_graph, blob: $blob})-[:OF]->(a)
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

_FIND = """
MATCH (p:Profile)
WHERE $name IN p.names OR p.id STARTS WITH $name
RETURN p.id AS id, p.names AS names, p.named_at AS named_at
"""

_KNOWN = """
MATCH (p:Profile)
RETURN collect(p.names) AS names
"""

_READ = """
MATCH (p:Profile {id: $profile})
RETURN p.name AS name, p.names AS names, p.application AS application, p.source AS source,
       p.self_edges AS self_edges, p.self_bytes AS self_bytes, p.missing_ranks AS missing_ranks,
       p.recorded_at AS recorded_at, p.blob AS blob
"""

_READ_MANY = """
UNWIND $profiles AS id
MATCH (p:Profile {id: id})
RETURN p.id AS id, p.name AS name, p.names AS names, p.application AS application, p.source AS source,
       p.self_edges AS self_edges, p.self_bytes AS self_bytes, p.missing_ranks AS missing_ranks,
       p.recorded_at AS recorded_at, p.blob AS blob
"""

_LIST = """
MATCH (p:Profile)
RETURN p.id AS id, p.name AS name, p.names AS names, p.application AS application, p.ranks AS ranks,
       p.pairs AS pairs, p.bytes AS bytes, p.messages AS messages, p.missing_ranks AS missing_ranks,
       p.source AS source, p.recorded_at AS recorded_at
ORDER BY recorded_at DESC, id
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredProfile:
    """A profile with its id, all its names and when it was first saved (UTC)."""

    id: str
    profile: Profile
    names: tuple[str, ...]
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileInfo:
    """What a list tells of a profile; `bytes` and `messages` are totals."""

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


class Profiles:
    """What the registry knows of profiles."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, name: str) -> StoredProfile:
        """The profile that was given this name last, or that has this id or unique beginning of one.

        Raises
        ------
        UnknownName
            With the closest names.
        """

        def work(transaction: Transaction) -> StoredProfile:
            profile = find_profile(transaction, name)
            return stored_profile(profile, name, transaction.run(_READ, profile=profile)[0])

        return self._database.read(work)

    def read_many(self, ids: Iterable[str]) -> dict[str, StoredProfile]:
        """Profiles by id, each once and under the name that it was given last; one statement.

        Raises
        ------
        UnknownName
            There is none of that id.
        """
        wanted = sorted(set(ids))
        if not wanted:
            return {}
        rows = self._database.read(lambda transaction: transaction.run(_READ_MANY, profiles=wanted))
        found = {row["id"]: stored_profile(row["id"], row["name"], row) for row in rows}
        if missing := sorted(set(wanted) - found.keys()):
            raise UnknownName("profile", missing[0])
        return found

    def list(self) -> tuple[ProfileInfo, ...]:
        """All profiles, the newest first."""
        rows = self._database.read(lambda transaction: transaction.run(_LIST))
        return tuple(
            ProfileInfo(names=tuple(row.pop("names")), missing_ranks=tuple(row.pop("missing_ranks")), **row)
            for row in rows
        )


def save_profile(transaction: Transaction, profile: Profile, at: datetime) -> tuple[str, bool]:
    """Save a profile; its id, and whether it, or its name for it, was not known before."""
    identity = profile_id(profile)
    name = profile.name or profile.application or identity
    transaction.run(_TAKE_APPLICATION, application=profile.application)
    known = transaction.run(_NAMES, profile=identity)
    if not known:
        _create(transaction, identity, name, profile, at)
        return identity, True
    names, named_at = known[0]["names"], known[0]["named_at"]
    if name in names:
        return identity, False
    transaction.run(
        _RENAME, profile=identity, name=name, names=[*names, name], named_at=[*named_at, _moment(at)]
    )
    return identity, True


def profile_id(profile: Profile) -> str:
    """Hash of application, edges and missing ranks: 16 hexadecimal digits."""
    columns = _columns(profile)
    columns["application"] = [profile.application]
    columns["missing_ranks"] = np.asarray(profile.missing_ranks, np.int64)
    return codec.digest(columns)[:16]


def find_profile(transaction: Transaction, name: str) -> str:
    """Id of the profile with that name or id; see `Profiles.read`.

    Raises
    ------
    UnknownName
    """
    rows = transaction.run(_FIND, name=name) if name else []
    named = [
        (moment, row["id"])
        for row in rows
        for given, moment in zip(row["names"], row["named_at"], strict=True)
        if given == name
    ]
    if named:
        return str(max(named)[1])
    if len(rows) == 1:
        return str(rows[0]["id"])
    if any(row["id"] == name for row in rows):
        return name
    known = {given for names in transaction.run(_KNOWN)[0]["names"] for given in names}
    raise UnknownName("profile", name, sorted(known))


def _create(transaction: Transaction, identity: str, name: str, profile: Profile, at: datetime) -> None:
    in_graph = profile.pairs <= MAX_GRAPH_PAIRS and profile.ranks <= MAX_GRAPH_PAIRS
    transaction.run(
        _CREATE,
        profile=identity,
        name=name,
        names=[name],
        named_at=[_moment(at)],
        application=profile.application,
        ranks=profile.ranks,
        pairs=profile.pairs,
        bytes=float(profile.bytes.sum()),
        messages=int(profile.messages.sum()),
        self_edges=profile.self_edges,
        self_bytes=profile.self_bytes,
        missing_ranks=list(profile.missing_ranks),
        source=profile.source,
        recorded_at=at,
        in_graph=in_graph,
        blob=codec.pack(_columns(profile)),
    )
    if in_graph:
        _create_graph(transaction, identity, profile)


def _create_graph(transaction: Transaction, identity: str, profile: Profile) -> None:
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


def _columns(profile: Profile) -> dict[str, codec.Column]:
    return {name: getattr(profile, name) for name in _COLUMNS}


def stored_profile(identity: str, asked: str, row: dict[str, Any]) -> StoredProfile:
    """The profile of a row with its node's properties, under the name asked for where it has that name."""
    names: Sequence[str] = row["names"]
    columns = codec.unpack(row["blob"])
    try:
        profile = Profile(
            **{name: columns[name] for name in _COLUMNS},
            name=asked if asked in names else row["name"],
            application=row["application"],
            source=row["source"],
            self_edges=row["self_edges"],
            self_bytes=row["self_bytes"],
            missing_ranks=tuple(row["missing_ranks"]),
        )
    except (KeyError, InvalidValue) as error:
        raise DatabaseError(f"the stored profile {identity} is damaged: {error}") from error
    return StoredProfile(id=identity, profile=profile, names=tuple(names), recorded_at=row["recorded_at"])


def _moment(at: datetime) -> str:
    """A time as text of one width, so that texts order as the times do."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")
