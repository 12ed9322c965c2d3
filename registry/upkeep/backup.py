"""Write a whole registry to one file, as it was at one moment, while others read and write it.

The first attempt stops nobody. If a writer came in between, the next ones pause all writers while they read;
those wait and go on afterwards.

File format of backups: gzipped JSON, one value per line, with a digest of all lines at the end.

    {"format": "fabric-almanac-dump", "version": 1, "schema": 1, "counts": {"Cluster": 1, ...}}
    {"section": "Cluster"}                      a label: one line per node, its properties
    {"id": "ndr", "name": "ndr"}
    {"section": "Content-OF->Cluster"}          a relationship: one line each, ends and properties
    ["ndr:5f0c", "ndr", {}]
    {"end": {"lines": 5, "sha256": "..."}}

Times are ``{"$time": ...}`` in UTC, bytes ``{"$bytes": ...}`` in base64. The file contains no time or
place of writing: the same registry gives the same bytes.

Sections of a backup: one per label and per relationship of `registry.database.schema`.

A database with other labels or relationships is an error, so that nothing is left out silently.
"""

from __future__ import annotations

import base64
import errno
import glob
import gzip
import hashlib
import json
import os
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import psutil

from registry.database.driver import Database
from registry.database.embedded_files import REMEDY, damage_text
from registry.database.schema import LABELS, MIGRATIONS, RELATIONSHIPS, Pause, check_version, writers_paused
from registry.errors import DatabaseError, InputError, RegistryBusy
from registry.installation import no_space
from registry.model import as_utc
from registry.progress import Progress, silent

FORMAT = "fabric-almanac-dump"
VERSION = 1
LINE_BYTES = 300_000_000
"""Longest line that is written and read: the limit of other compressed files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """First line of a backup."""

    schema: int
    """Schema version of the registry."""
    counts: Mapping[str, int]
    """Number of lines of each section."""
    format: str = FORMAT
    version: int = VERSION


class BackupWriter:
    """Writer of lines that computes their digest.

    Attributes:
        records: Number of records written.
        bytes: Length of all lines written, uncompressed.
    """

    def __init__(self, file: gzip.GzipFile, header: Header) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._lines = 0
        self.records = 0
        self.bytes = 0
        self._write(encode(asdict(header)))

    def section(self, name: str) -> None:
        """Begin a section."""
        self._write(encode({"section": name}))

    def record(self, line: str) -> None:
        """Write one encoded record."""
        self._write(line)
        self.records += 1

    def close(self) -> None:
        """Write the last line."""
        self._write(encode({"end": {"lines": self._lines, "sha256": self._digest.hexdigest()}}))

    def _write(self, line: str) -> None:
        data = line.encode() + b"\n"
        if len(data) > LINE_BYTES:
            raise DatabaseError(f"a record has more than {LINE_BYTES:,} bytes, the limit of a backup's lines")
        self._digest.update(data)
        self._file.write(data)
        self._lines += 1
        self.bytes += len(data)


@contextmanager
def writing(path: Path, header: Header) -> Iterator[BackupWriter]:
    """Open a backup for writing; only its owner can read it, and it gets its name when it is complete.

    Raises:
        InputError: The file cannot be written.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        _remove_leftovers(path)
        with (
            os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as raw,
            gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
        ):
            writer = BackupWriter(packed, header)
            yield writer
            writer.close()
            packed.close()
            raw.flush()
            os.fsync(raw.fileno())
        fresh.replace(path)
    except OSError as error:
        full = no_space(path.parent) if error.errno == errno.ENOSPC else ""
        raise InputError(f"cannot be written: {full or error.strerror or error}", path=path) from error
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


def _remove_leftovers(path: Path) -> None:
    """Remove what killed processes left of earlier backups with the same name."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.new"):
        pid = left.name.removesuffix(".new").rpartition(".")[2]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            left.unlink(missing_ok=True)


def verify(path: Path) -> Header:
    """Return the header of a backup, after the digest of the whole file was checked.

    Raises:
        InputError: The file is no backup, damaged, or truncated.
    """
    header: Header | None = None
    digest, last, number = hashlib.sha256(), b"", 0
    for number, line in _lines(path):  # noqa: B007 - the last number is used below
        if header is None:
            header = _header(path, line)
        digest.update(last)
        last = line
    end = {"end": {"lines": number - 1, "sha256": digest.hexdigest()}}
    if header is None or last != encode(end).encode() + b"\n":
        raise InputError("the backup is truncated or damaged: its last line does not fit the rest", path=path)
    return header


def records(path: Path) -> Iterator[tuple[str, int, int, Any]]:
    """Yield section, line number, length in bytes and value of each record of a verified backup."""
    section = ""
    for number, line in _lines(path):
        value = _decode(path, number, line)
        if isinstance(value, dict) and "section" in value and len(value) == 1:
            section = str(value["section"])
        elif number > 1 and not (isinstance(value, dict) and "end" in value):
            yield section, number, len(line), value


def encode(value: object) -> str:
    """Return a value as one line of JSON; the same value always gives the same text."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_tagged)


def decode(line: str | bytes) -> Any:
    """Return the value of a line of JSON that `encode` gave."""
    return json.loads(line, object_hook=_untagged)


def _tagged(value: object) -> object:
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    if isinstance(value, datetime):
        return {"$time": as_utc(value).isoformat()}
    raise TypeError(f"a backup cannot hold a {type(value).__name__}")


def _untagged(value: dict[str, Any]) -> Any:
    if len(value) == 1:
        if "$bytes" in value:
            return base64.b64decode(value["$bytes"], validate=True)
        if "$time" in value:
            return as_utc(datetime.fromisoformat(value["$time"]))
    return value


def _decode(path: Path, number: int, line: bytes) -> Any:
    try:
        return decode(line)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        text = line[:200].decode("utf-8", "replace")
        raise InputError(f"not a line of a backup: {error}", path=path, line=number, text=text) from error


def _header(path: Path, line: bytes) -> Header:
    """Return the header of a backup, all of whose values are checked."""
    header = None
    with suppress(ValueError, TypeError, RecursionError):
        header = Header(**json.loads(line))
    if header is None or header.format != FORMAT:
        raise InputError("this is not a backup of a registry", path=path, line=1)
    if not _is_count(header.version) or header.version != VERSION:
        reason = f"the backup is of version {header.version}, this program reads {VERSION}"
        raise InputError(reason, path=path, line=1)
    if not _is_count(header.schema) or header.schema < 1:
        raise InputError("the header of the backup has no schema version", path=path, line=1)
    counts = header.counts
    if not isinstance(counts, dict) or not all(map(_is_count, counts.values())):
        raise InputError("the header of the backup has no number of lines of each section", path=path, line=1)
    return header


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        with gzip.open(path, "rb") as file:
            while line := file.readline(LINE_BYTES + 1):
                number += 1
                if len(line) > LINE_BYTES:
                    raise InputError("the line is too long for a backup", path=path, line=number)
                yield number, line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        reason = f"the backup is truncated or damaged: {error}"
        raise InputError(reason, path=path, line=number + 1) from error
    except OSError as error:
        raise InputError(error.strerror or str(error), path=path) from error


PAGE_BYTES = 8 << 20
"""Approximate size of what one statement reads or writes, in bytes of the file's lines."""
PAGE_ROWS = 10_000

COUNT_NODES = "MATCH (n:{label}) RETURN count(n) AS count"
COUNT_ALL_NODES = "MATCH (n) WHERE NOT n:Schema RETURN count(n) AS count"
COUNT_RELATIONSHIPS = "MATCH (:{source})-[r:{type}]->(:{target}) RETURN count(r) AS count"
COUNT_FROM_TARGETS = """
MATCH (b:{target})
WITH b
MATCH (b)<-[r:{type}]-(:{source})
RETURN count(r) AS count
"""
"""Reads the relationships, which counting them from their sources does not."""
COUNT_IDS = "MATCH (n:{label}) RETURN count(n.id) AS count"
COUNT_ALL_RELATIONSHIPS = "MATCH ()-[r]->() RETURN count(r) AS count"
JOINS = MappingProxyType({f"{one.source}-{one.type}->{one.target}": one for one in RELATIONSHIPS})
"""Relationships by the name of their section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transferred:
    """Number of nodes and relationships of a backup."""

    nodes: int
    relationships: int

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> Transferred:
        """Return the numbers of all sections together."""
        nodes = sum(counts.get(label, 0) for label in LABELS)
        return cls(nodes=nodes, relationships=sum(counts.values()) - nodes)


def count(database: Database, statement: str) -> int:
    """Return the number that a statement counts."""
    return int(database.read(lambda transaction: transaction.run(statement))[0]["count"])


def all_nodes(database: Database) -> int:
    """Return the number of nodes of all labels but that of the schema, known or not."""
    return count(database, COUNT_ALL_NODES)


def known_counts(database: Database) -> dict[str, int]:
    """Return the number of nodes of each label and of relationships of each kind."""
    counts = {label: count(database, COUNT_NODES.format(label=label)) for label in LABELS}
    for name, kind in JOINS.items():
        statement = COUNT_RELATIONSHIPS.format(source=kind.source, type=kind.type, target=kind.target)
        counts[name] = count(database, statement)
    return counts


def lost_records(database: Database, counts: Mapping[str, int]) -> list[str]:
    """Return what cannot be read of the counted records, one text for each section.

    Files of a server that are damaged while it runs, or after it was killed, show in nothing else.
    """
    found = []
    for label in LABELS:
        read = count(database, COUNT_IDS.format(label=label))
        if read != counts[label]:
            found.append(f"{counts[label]:,} {label} records are counted and {read:,} can be read")
    for name, kind in JOINS.items():
        statement = COUNT_FROM_TARGETS.format(source=kind.source, type=kind.type, target=kind.target)
        read = count(database, statement)
        if read != counts[name]:
            found.append(f"{name} has {counts[name]:,} relationships by its sources, {read:,} by its targets")
    return found


def section_counts(database: Database) -> dict[str, int]:
    """Return `known_counts` of a database that has nothing else, and of which all can be read.

    Raises:
        DatabaseError: There are other labels or relationships, or records are lost.
    """
    counts = known_counts(database)
    lost = lost_records(database, counts)
    if lost:
        raise DatabaseError(f"records of the database are lost: {'; '.join(lost)}; {REMEDY}")
    nodes = sum(counts[label] for label in LABELS)
    unknown_nodes = count(database, COUNT_ALL_NODES) - nodes
    unknown_relationships = count(database, COUNT_ALL_RELATIONSHIPS) - (sum(counts.values()) - nodes)
    if unknown_nodes or unknown_relationships:
        few = min(unknown_nodes, unknown_relationships) < 0
        damaged = damage_text(database.folder) or (f"its files are damaged: {REMEDY}" if few else "")
        raise DatabaseError(
            f"the database at {database.uri} holds {unknown_nodes} nodes and {unknown_relationships} "
            f"relationships that the schema does not know{damaged and f'; {damaged}'}"
        )
    return counts


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

    Raises:
        SchemaVersionError
        DatabaseError: The registry was written to in every attempt, or holds unknown labels or relationships.
        InputError: The file cannot be written.
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

    Args:
        work: Called with a `Watch`, whose `keep` it calls often and whose `check` before it keeps a result.

    Raises:
        SchemaVersionError
        DatabaseError: The registry was written to in every attempt.
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

        Raises:
            WrittenMeanwhile
        """
        if self._pause is not None:
            self._pause.renew()
        elif time.monotonic() > self._checked + LOOK_SECONDS:
            self.check()

    def check(self) -> None:
        """Raise if a writer came in between.

        Raises:
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
