"""Write a whole registry to one file, as it was at one moment, while others read and write it.

The first attempt stops nobody. If a writer came in between, the next ones pause all writers while they read;
those wait and go on afterwards.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar

from registry.database.backups.backup_file import Header, decode, encode, writing
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
from registry.errors import DatabaseError, RegistryBusy
from registry.progress import Progress, silent

T = TypeVar("T")

ATTEMPTS = 5
"""Attempts to read one state; all but the first pause the writers."""
LOOK_SECONDS = 1.0
"""Time between two looks for writers while none is paused."""
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


class WrittenMeanwhile(Exception):
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

    def work(watch: Watch) -> Transferred:
        counts = section_counts(database)
        total = sum(counts.values())
        with writing(path, Header(schema=MIGRATIONS[-1].version, counts=counts)) as sink:
            for section in counts:
                sink.section(section)
                for line in _section_lines(database, section):
                    sink.record(line)
                    watch.keep()
                    if sink.records % 1000 == 0:
                        progress("reading the registry", sink.records, total)
            progress("reading the registry", sink.records, total)
            # nodes of no cluster are counted only
            if sink.records != total or known_counts(database) != counts:
                raise WrittenMeanwhile
            watch.check()
        return Transferred.of(counts)

    return read_one_state(database, work)


def read_one_state(database: Database, work: Callable[[Watch], T]) -> T:
    """Run work that reads a registry as it is at one moment, again if a writer came in between.

    Parameters
    ----------
    work : callable
        Called with a `Watch`, whose `keep` it calls often and whose `check` before it keeps a result.

    Raises
    ------
    SchemaVersionError
    DatabaseError
        The registry was written to in every attempt.
    """
    check_version(database)
    for attempt in range(ATTEMPTS):
        with writers_paused(database) if attempt else nullcontext() as pause, suppress(WrittenMeanwhile):
            watch = Watch(database, pause)
            try:
                result = work(watch)
            except DatabaseError:  # two states may contradict each other
                watch.check()
                if pause is None:
                    continue
                raise
            watch.check()
            return result
    raise RegistryBusy("the registry was written to in every attempt to read it: run the command again")


class Watch:
    """Notices writers while a registry is read, or pauses them."""

    def __init__(self, database: Database, pause: Pause | None) -> None:
        self._database = database
        self._pause = pause
        self._writes = _writes(database)
        self._checked = time.monotonic()

    def keep(self) -> None:
        """Renew the pause; without one, look for writers from time to time.

        Raises
        ------
        WrittenMeanwhile
        """
        if self._pause is not None:
            self._pause.renew()
        elif time.monotonic() > self._checked + LOOK_SECONDS:
            self.check()

    def check(self) -> None:
        """Raise if a writer came in between.

        Raises
        ------
        WrittenMeanwhile
        """
        self._checked = time.monotonic()
        if _writes(self._database) != self._writes:
            raise WrittenMeanwhile


def read_section(database: Database, section: str) -> Iterator[Any]:
    """Yield the records of a section as they are in a backup, in the order of ids."""
    return map(decode, _section_lines(database, section))


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
