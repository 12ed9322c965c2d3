"""Write a whole registry to one file, as it was at one moment, while others read and write it.

The first attempt stops nobody. If a writer came in between, the next ones pause all writers while they read;
those wait and go on afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

from registry.database.backups.backup_file import Header, encode, writing
from registry.database.backups.sections import (
    JOINS,
    PAGE_BYTES,
    PAGE_ROWS,
    Transferred,
    known_counts,
    section_counts,
)
from registry.database.driver import Database
from registry.database.pause import Pause, writers_paused
from registry.database.schema import MIGRATIONS, check_version
from registry.errors import DatabaseError
from registry.progress import Progress, silent

ATTEMPTS = 5
"""Attempts to read one state; all but the first pause the writers."""
FIRST_PAGE_ROWS = 16
"""Number of nodes of a label that are read first, to learn their size."""

READ_WRITES = """
MATCH (c:Cluster)
RETURN collect([c.id, c.seq]) AS writes
"""
"""Every writer of a cluster counts itself."""
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


class _WrittenMeanwhile(Exception):
    """The registry changed while it was read."""


def backup(database: Database, path: Path, progress: Progress = silent) -> Transferred:
    """Write a whole registry to one file, which gets its name only when it is complete.

    Raises
    ------
    SchemaVersionError
    DatabaseError
        The registry was written to in every attempt, or holds unknown labels or relationships.
    InputError
        The file cannot be written.
    """
    check_version(database)
    for attempt in range(ATTEMPTS):
        try:
            with writers_paused(database) if attempt else nullcontext() as pause:
                return _attempt(database, path, pause, progress)
        except _WrittenMeanwhile:
            continue
    raise DatabaseError("the registry was written to in every attempt to read it: write the backup again")


def _attempt(database: Database, path: Path, pause: Pause | None, progress: Progress) -> Transferred:
    """Write the file once.

    Raises
    ------
    _WrittenMeanwhile
        A writer came in between; there is no new file.
    """
    writes = _writes(database)
    try:
        counts = section_counts(database)
    except DatabaseError:
        if pause is not None and _writes(database) == writes:
            raise
        raise _WrittenMeanwhile from None  # counts of two states may contradict each other
    total = sum(counts.values())
    with writing(path, Header(schema=MIGRATIONS[-1].version, counts=counts)) as sink:
        for section in counts:
            sink.section(section)
            for line in _section_lines(database, section):
                sink.record(line)
                if pause is not None:
                    pause.renew()
                if sink.records % 1000 == 0:
                    progress("reading the registry", sink.records, total)
            if _writes(database) != writes:
                raise _WrittenMeanwhile
        progress("reading the registry", sink.records, total)
        # nodes of no cluster are counted only
        if sink.records != total or known_counts(database) != counts or _writes(database) != writes:
            raise _WrittenMeanwhile
    return Transferred.of(counts)


def _writes(database: Database) -> list[tuple[str, int]]:
    """Return each cluster with its number of writes."""
    found = database.read(lambda transaction: transaction.run(READ_WRITES))[0]["writes"]
    return sorted((name, seq or 0) for name, seq in found)


def _section_lines(database: Database, section: str) -> Iterator[str]:
    """Yield the lines of one section, in the order of ids."""
    kind = JOINS.get(section)
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
