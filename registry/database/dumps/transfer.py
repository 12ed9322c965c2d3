"""Dump a whole registry to one file and load it: for backups, and to move between servers.

Labels and relationships are those of `registry.database.labels`; a database with any others is an error, so
that nothing is left out silently. A file is checked to its end before a load writes. An interrupted load
leaves a mark, after which only a new load opens the database.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any

from registry.database.driver import Database, Transaction
from registry.database.dumps.dumpfile import Header, encode, records, verify, writing
from registry.database.labels import LABELS, RELATIONSHIPS
from registry.database.schema import (
    MIGRATIONS,
    check_version,
    is_half_loaded,
    mark_loading,
    migrate,
)
from registry.errors import DatabaseError, InputError
from registry.progress import Progress, silent

PAGE_BYTES = 8 << 20
"""Approximate size of what one statement reads or writes, in bytes of the file's lines."""
PAGE_ROWS = 10_000
FIRST_PAGE_ROWS = 16
"""Number of nodes of a label that are read first, to learn their size."""

COUNT_NODES = "MATCH (n:{label}) RETURN count(n) AS count"
COUNT_ALL_NODES = "MATCH (n) WHERE NOT n:Schema RETURN count(n) AS count"
COUNT_RELATIONSHIPS = "MATCH (:{source})-[r:{type}]->(:{target}) RETURN count(r) AS count"
SUM_OF_WRITES = "MATCH (c:Cluster) RETURN coalesce(sum(c.seq), 0) AS count"
COUNT_ALL_RELATIONSHIPS = "MATCH ()-[r]->() RETURN count(r) AS count"
READ_IDS = "MATCH (n:{label}) RETURN collect(n.id) AS ids"
READ_NODES = """
UNWIND $ids AS id
MATCH (n:{label} {{id: id}})
RETURN properties(n) AS properties
"""
READ_RELATIONSHIPS = """
UNWIND $ids AS id
MATCH (a:{source} {{id: id}})-[r:{type}]->(b:{target})
RETURN a.id AS source, b.id AS target, properties(r) AS properties
"""
CREATE_NODES = """
UNWIND range(0, size($p0) - 1) AS i
CREATE (:{label} {{{properties}}})
"""
CREATE_RELATIONSHIPS = """
UNWIND range(0, size($source) - 1) AS i
MATCH (a:{source} {{id: $source[i]}})
WITH a, i
MATCH (b:{target} {{id: $target[i]}})
CREATE (a)-[:{type} {{{properties}}}]->(b)
"""
DELETE_SOME = """
MATCH (n:{label})
WITH n LIMIT $limit
DETACH DELETE n
RETURN count(*) AS count
"""
_KINDS = MappingProxyType({f"{one.source}-{one.type}->{one.target}": one for one in RELATIONSHIPS})
"""Relationships by the name of their section."""
_PROPERTY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Transferred:
    """Number of nodes and relationships of a dump or a load."""

    nodes: int
    relationships: int


def dump(database: Database, path: Path, progress: Progress = silent) -> Transferred:
    """Write a whole registry to one file, which gets its name only when it is complete.

    Raises
    ------
    SchemaVersionError
    DatabaseError
        The registry was written to meanwhile, or holds unknown labels or relationships.
    """
    check_version(database)
    writes, counts = _count(database, SUM_OF_WRITES), _known_counts(database)
    total = sum(counts.values())
    header = Header(schema=MIGRATIONS[-1].version, counts=counts)
    with writing(path, header) as sink:
        for section in counts:
            sink.section(section)
            for line in _section_lines(database, section):
                sink.record(line)
                if sink.records % 1000 == 0:
                    progress("reading the registry", sink.records, total)
        progress("reading the registry", sink.records, total)
        # every writer of a cluster counts itself; nodes of no cluster are never deleted
        changed = _known_counts(database) != counts or _count(database, SUM_OF_WRITES) != writes
        if sink.records != total or changed:
            raise DatabaseError("the registry was written to while it was dumped: dump it again")
    return _transferred(counts)


def load(database: Database, path: Path, progress: Progress = silent) -> Transferred:
    """Fill an empty database from a dump.

    An interrupted load starts again: what it had written is deleted first.

    Raises
    ------
    InputError
        The file is no dump, damaged, truncated, or of another schema; nothing was written.
    DatabaseError
        The database is not empty.
    SchemaVersionError
    """
    header = verify(path)
    if header.schema != MIGRATIONS[-1].version:
        raise InputError(
            f"the dump has schema version {header.schema}, this program {MIGRATIONS[-1].version}: "
            "load it with the program that made it, migrate there, and dump again",
            path=path,
        )
    migrate(database)
    if is_half_loaded(database):
        _clear(database, progress)
    elif _count(database, COUNT_ALL_NODES):
        raise DatabaseError(
            f"the database at {database.uri} is not empty: a dump can only be loaded into an empty one"
        )
    mark_loading(database, True)
    _write_all(database, path, sum(header.counts.values()), progress)
    if _known_counts(database) != header.counts:
        raise DatabaseError("the database does not hold what the dump does: load it again")
    mark_loading(database, False)
    return _transferred(header.counts)


def _transferred(counts: Any) -> Transferred:
    nodes = sum(counts[label] for label in LABELS)
    return Transferred(nodes=nodes, relationships=sum(counts.values()) - nodes)


def _count(database: Database, statement: str) -> int:
    return int(database.read(lambda transaction: transaction.run(statement))[0]["count"])


def _known_counts(database: Database) -> dict[str, int]:
    """Return the number of nodes of each label and of relationships of each kind.

    Raises
    ------
    DatabaseError
        There are other labels or relationships.
    """
    counts = {label: _count(database, COUNT_NODES.format(label=label)) for label in LABELS}
    nodes = sum(counts.values())
    for name, kind in _KINDS.items():
        statement = COUNT_RELATIONSHIPS.format(source=kind.source, type=kind.type, target=kind.target)
        counts[name] = _count(database, statement)
    unknown_nodes = _count(database, COUNT_ALL_NODES) - nodes
    unknown_relationships = _count(database, COUNT_ALL_RELATIONSHIPS) - (sum(counts.values()) - nodes)
    if unknown_nodes or unknown_relationships:
        raise DatabaseError(
            f"the database at {database.uri} holds {unknown_nodes} nodes and {unknown_relationships} "
            "relationships that the schema does not know"
        )
    return counts


def _section_lines(database: Database, section: str) -> Iterator[str]:
    """Yield the lines of one section, in the order of ids."""
    kind = _KINDS.get(section)
    label = section if kind is None else kind.source
    found = database.read(lambda transaction: transaction.run(READ_IDS.format(label=label)))
    ids = sorted(found[0]["ids"])
    if kind is None:
        statement = READ_NODES.format(label=label)
    else:
        statement = READ_RELATIONSHIPS.format(source=kind.source, type=kind.type, target=kind.target)

    def read(page: Sequence[str]) -> list[str]:
        rows = database.read(lambda transaction: transaction.run(statement, ids=page))
        if kind is None:
            kept = sorted((row["properties"]["id"], encode(row["properties"])) for row in rows)
            return [line for _, line in kept]
        lines = [encode((row["source"], row["target"], row["properties"])) for row in rows]
        keys = [(row["source"], row["target"]) for row in rows]
        return [line for _, line in sorted(zip(keys, lines, strict=True))]

    return _paged(ids, read)


def _paged(ids: Sequence[str], read: Callable[[Sequence[str]], list[str]]) -> Iterator[str]:
    """Yield the lines for all ids; the size of a page follows from the last page."""
    size, start = FIRST_PAGE_ROWS, 0
    while start < len(ids):
        lines = read(ids[start : start + size])
        yield from lines
        start += size
        fitting = size * PAGE_BYTES // max(1, sum(map(len, lines)))
        size = max(1, min(fitting, size * 16, PAGE_ROWS))


def _clear(database: Database, progress: Progress) -> None:
    """Delete what an interrupted load has left, in small transactions, as servers hold them in memory."""
    deleted = 0
    for label in LABELS:
        while count := _delete_some(database, label):
            deleted += count
            progress("deleting what an interrupted load has left", deleted)


def _delete_some(database: Database, label: str) -> int:
    statement = DELETE_SOME.format(label=label)
    return int(database.write(lambda transaction: transaction.run(statement, limit=1000))[0]["count"])


def _write_all(database: Database, path: Path, total: int, progress: Progress) -> None:
    done = 0
    for section, rows in _batches(path):
        database.write(partial(_write, section=section, rows=rows))
        done += len(rows)
        progress("writing the registry", done, total)


@dataclass(frozen=True, slots=True)
class _Row:
    """One record of a dump; ends are empty for a node."""

    ends: tuple[str, ...]
    properties: dict[str, Any]

    @property
    def shape(self) -> tuple[tuple[str, bool], ...]:
        """Names of the properties, each with True if it is a time; rows of one shape share a statement."""
        return tuple((name, isinstance(self.properties[name], datetime)) for name in sorted(self.properties))


def _batches(path: Path) -> Iterator[tuple[str, list[_Row]]]:
    """Yield the section and the rows of each transaction."""
    section, rows, length = "", list[_Row](), 0
    for name, number, size, value in records(path):
        if rows and (name != section or length + size > PAGE_BYTES or len(rows) == PAGE_ROWS):
            yield section, rows
            rows, length = [], 0
        section = name
        rows.append(_row(path, section, number, value))
        length += size
    if rows:
        yield section, rows


def _row(path: Path, section: str, number: int, value: Any) -> _Row:
    """Return a record; everything that becomes text of a statement is checked."""
    ends: tuple[str, ...] = ()
    properties = value
    if section in _KINDS and isinstance(value, list) and len(value) == 3:
        ends, properties = (str(value[0]), str(value[1])), value[2]
    elif section not in LABELS:
        raise InputError(f"the schema has no {section!r}", path=path, line=number)
    if not isinstance(properties, dict) or not all(map(_PROPERTY.fullmatch, properties)):
        raise InputError("these are not the properties of a node or relationship", path=path, line=number)
    return _Row(ends, properties)


def _write(transaction: Transaction, section: str, rows: Sequence[_Row]) -> None:
    """Create nodes or relationships, one statement per shape."""
    kind = _KINDS.get(section)
    for shape, group in groupby(sorted(rows, key=lambda row: row.shape), key=lambda row: row.shape):
        some = list(group)
        columns, moments = _columns(shape, some)
        if kind is None:
            statement = CREATE_NODES.format(label=section, properties=_assignments(shape))
        else:
            columns["source"], columns["target"] = map(list, zip(*(row.ends for row in some), strict=True))
            statement = CREATE_RELATIONSHIPS.format(
                source=kind.source, type=kind.type, target=kind.target, properties=_assignments(shape)
            )
        transaction.run_columns(statement, columns, batch=len(some), moments=moments)


def _assignments(shape: Sequence[tuple[str, bool]]) -> str:
    return ", ".join(
        f"{name}: $moments[$p{k}[i]]" if is_time else f"{name}: $p{k}[i]"
        for k, (name, is_time) in enumerate(shape)
    )


def _columns(
    shape: Sequence[tuple[str, bool]], rows: Sequence[_Row]
) -> tuple[dict[str, list[Any]], list[datetime]]:
    """Return a column per property; times are indices into the list of distinct times, as sending is slow."""
    number: dict[datetime, int] = {}
    columns: dict[str, list[Any]] = {}
    for k, (name, is_time) in enumerate(shape):
        values = [row.properties[name] for row in rows]
        columns[f"p{k}"] = [number.setdefault(value, len(number)) for value in values] if is_time else values
    return columns, list(number)
