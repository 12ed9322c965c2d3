"""Append-only records: stored once under a hash of their content, found by a prefix of it, newest first.

Each kind of stored data declares a `RecordKind`, which makes the statements. `Store` is the base of the
classes through which the registry offers stored data, `Records` of those that find a record by a prefix.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Container, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

from registry.database.driver import Database, Transaction
from registry.database.values import reading
from registry.errors import UnknownName

if TYPE_CHECKING:
    from registry.database import codec

Stored = TypeVar("Stored")

NODES_PER_BATCH = 500
"""Records that one statement creates: they carry arrays."""


class Join(NamedTuple):
    """A relationship between a record and another node."""

    type: str
    label: str
    """Type of the relationship, label of the other node."""
    incoming: bool = False
    """True if the relationship leads from the other node to the record."""


OF_CLUSTER = Join("OF", "Cluster")
"""Relationship of everything that is stored by cluster."""


class NewRecord(NamedTuple):
    """A record to be created."""

    id: str
    properties: Mapping[str, object]
    """Properties of the node; those that are None are left out."""
    owner: str = ""
    """Id of the node at the other end of `RecordKind.owner`."""
    joined: Mapping[Join, Sequence[str]] = {}
    """Ids of the nodes at the other end of `RecordKind.joins`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordKind:
    """A kind of record: its names, its relationships and the statements made from them.

    Statements call the record ``n``.
    """

    name: str
    """Name of the kind in messages."""
    label: str
    letter: str = ""
    """First letter of ids."""
    digits: int = 12
    """Hexadecimal digits of ids."""
    owner: Join | None = None
    """Relationship that is created together with the record."""
    joins: tuple[Join, ...] = ()
    """Other relationships."""
    read: str = ""
    """Statement that returns a row per record of ``$ids``; default: its properties as ``node``."""

    def __post_init__(self) -> None:
        if not self.read:
            text = f"UNWIND $ids AS id\nMATCH (n:{self.label} {{id: id}})\nRETURN n AS node\n"
            object.__setattr__(self, "read", text)

    @property
    def prefix_statement(self) -> str:
        """Statement for the ids that begin with ``$prefix``."""
        return f"MATCH (n:{self.label})\nWHERE n.id STARTS WITH $prefix\nRETURN collect(n.id) AS ids\n"

    @property
    def ids_statement(self) -> str:
        """Statement for all ids."""
        return f"MATCH (n:{self.label})\nRETURN collect(n.id) AS ids\n"

    @property
    def create_statement(self) -> str:
        """Statement that creates a node per row of ``$id``, ``$properties`` and ``$owner``."""
        match, path = "", ""
        if self.owner is not None:
            match = f"MATCH (o:{self.owner.label} {{id: $owner[i]}})\n"
            path = f"-[:{self.owner.type}]->(o)"
        return (
            f"UNWIND range(0, size($id) - 1) AS i\n{match}"
            f"CREATE (n:{self.label} {{id: $id[i]}}){path}\nSET n += $properties[i]\n"
        )

    def join_statement(self, join: Join) -> str:
        """Return the statement that creates a relationship per row of ``$id`` and ``$other``."""
        path = f"(o)-[:{join.type}]->(n)" if join.incoming else f"(n)-[:{join.type}]->(o)"
        return (
            f"UNWIND range(0, size($id) - 1) AS i\nMATCH (n:{self.label} {{id: $id[i]}})\n"
            f"MATCH (o:{join.label} {{id: $other[i]}})\nCREATE {path}\n"
        )

    def list_statement(
        self,
        rows: type[Any],
        where: str = "",
        *,
        path: str = "",
        then: str = "",
        computed: Collection[str] = (),
    ) -> str:
        """Return the statement for the rows of a list, the newest first.

        Args:
            rows: Dataclass of the rows; its fields are properties of the record.
            where: Condition on the record.
            path: Path from the record to another node.
            then, computed: Clauses after the condition, and the fields that they compute.
        """
        condition = f"WHERE {where}\n" if where else ""
        columns = ", ".join(
            field.name if field.name in computed else f"n.{field.name} AS {field.name}"
            for field in fields(rows)
        )
        return (
            f"MATCH (n:{self.label}){path}\n{condition}{then}"
            f"RETURN {columns}\nORDER BY recorded_at DESC, id\n"
        )

    def statements(self) -> dict[str, str]:
        """Return all statements of the kind by name, except lists."""
        return {
            "read": self.read,
            "known": known_statement(self.label),
            "prefix": self.prefix_statement,
            "ids": self.ids_statement,
            "create": self.create_statement,
            **{f"join {join.type} {join.label}": self.join_statement(join) for join in self.joins},
        }

    def identity(self, columns: Mapping[str, codec.Column], provenance: object = None) -> str:
        """Return the id of a record: the letter and a hash of its provenance (JSON) and its columns."""
        from registry.database import codec  # numpy, which what only reads ids does without

        if provenance is not None:
            columns = {"provenance": [json.dumps(provenance, sort_keys=True)], **columns}
        return self.letter + codec.digest(columns)[: self.digits]

    def known(self, transaction: Transaction, ids: Collection[str]) -> set[str]:
        """Return those of the ids that are stored."""
        return known_ids(transaction, self.label, ids)

    def create(self, transaction: Transaction, records: Sequence[NewRecord]) -> None:
        """Create records whose ids are not stored yet, with their relationships."""
        columns: dict[str, list[Any]] = {"id": [record.id for record in records]}
        columns["properties"] = [
            {name: value for name, value in record.properties.items() if value is not None}
            for record in records
        ]
        if self.owner is not None:
            columns["owner"] = [record.owner for record in records]
        transaction.run_columns(self.create_statement, columns, batch=NODES_PER_BATCH)
        for join in self.joins:
            pairs = [(record.id, other) for record in records for other in record.joined.get(join, ())]
            ends = {"id": [one for one, _ in pairs], "other": [other for _, other in pairs]}
            transaction.run_columns(self.join_statement(join), ends)

    def find(self, transaction: Transaction, prefix: str) -> dict[str, Any]:
        """Return the row of the record with this id, or of the only one whose id begins with it."""
        found = transaction.run(self.read, ids=[prefix])
        if not found:
            ids = transaction.run(self.prefix_statement, prefix=prefix)[0]["ids"] if prefix else []
            if len(ids) != 1:
                raise self._unknown(transaction, prefix)
            found = transaction.run(self.read, ids=ids)
        return found[0]

    def require_all(self, transaction: Transaction, ids: Collection[str], found: Container[str]) -> None:
        """Raise `UnknownName`, with the closest ids, for the first id that was not found."""
        for one in ids:
            if one not in found:
                raise self._unknown(transaction, one)

    def reading(self, identity: str) -> AbstractContextManager[None]:
        """Turn a missing or invalid field of the record that is being read into `DatabaseError`."""
        return reading(f"the stored {self.name} {identity}")

    def _unknown(self, transaction: Transaction, text: str) -> UnknownName:
        return UnknownName(self.name, text, transaction.run(self.ids_statement)[0]["ids"])


class Store:
    """Stored data of a database; the base of what the registry offers of each kind of data."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _rows(self, statement: str, limit: int | None = None, **parameters: object) -> list[dict[str, Any]]:
        """Return the rows of a list in one read transaction, or the first rows if there is a limit."""
        return self._database.read(
            lambda transaction: limited_rows(transaction, statement, limit, **parameters)
        )


class Records(Store, Generic[Stored]):
    """Stored records of one kind; an unknown id raises `UnknownName`, with the closest ids."""

    kind: ClassVar[RecordKind]

    def read(self, prefix: str) -> Stored:
        """Return a record by its id or a unique beginning of it."""
        return self._database.read(lambda transaction: self._stored(self.kind.find(transaction, prefix)))

    def _stored(self, row: dict[str, Any]) -> Stored:
        """Return the record of a row of `RecordKind.read`."""
        raise NotImplementedError


def known_statement(label: str) -> str:
    """Return the statement for those of ``$ids`` that a label has."""
    return f"UNWIND $ids AS id\nMATCH (n:{label} {{id: id}})\nRETURN collect(n.id) AS ids\n"


def known_ids(transaction: Transaction, label: str, ids: Collection[str]) -> set[str]:
    """Return those of the ids that nodes of a label have."""
    return set(transaction.run(known_statement(label), ids=sorted(set(ids)))[0]["ids"]) if ids else set()


def delete_statement(label: str) -> str:
    """Return the statement that deletes the nodes of a label with ``$ids``."""
    return f"UNWIND $ids AS id\nMATCH (n:{label} {{id: id}})\nDETACH DELETE n\n"


def delete_ids(transaction: Transaction, label: str, ids: Sequence[str]) -> None:
    """Delete the nodes of a label that have these ids."""
    if ids:
        transaction.run(delete_statement(label), ids=ids)


def hashed_id(cluster: str, *parts: str) -> str:
    """Return an id: the cluster and 16 hexadecimal digits, a hash of the parts."""
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    return f"{cluster}/{digest[:16]}"


def limited_rows(
    transaction: Transaction, statement: str, limit: int | None, **parameters: object
) -> list[dict[str, Any]]:
    """Return the first rows of a statement that ends with its ``ORDER BY``, or all rows without a limit."""
    if limit is None:  # no number means "no limit" on both servers
        return transaction.run(statement, **parameters)
    return transaction.run(f"{statement}LIMIT $limit", limit=limit, **parameters)
