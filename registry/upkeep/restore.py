"""Fill a database from a backup, also one of another server or of an earlier schema version.

A file is checked to its end before anything is written. An interrupted restore leaves a mark, after which
only another restore opens the database: nobody works with a half of a registry.

Rewrite the embedded server's files, which never become smaller by themselves.

ArcadeDB stores a record of more than a page (64 KB) as a chain of pages, and hardly uses the pages of deleted
chains again. The counters of a large fabric are such records; they are summed and deleted every hour.

Replace the embedded server's data by a backup, whatever state they are in.

The data are built in a folder of their own, checked, and put in place of the old ones, which are kept. A
damaged database need not be opened for that, let alone emptied.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from registry.database.driver import Database, Transaction
from registry.database.embedded_files import ServerFiles, damage, damage_text, present_damage
from registry.database.embedded_server import IDLE_SECONDS, ensure_server, replace_data, stop
from registry.database.schema import (
    LABELS,
    MIGRATIONS,
    check_version,
    is_half_loaded,
    mark_loading,
    migrate,
    write_version,
    writers_paused,
)
from registry.errors import DatabaseError, InputError
from registry.installation import bytes_of, upgrade_advice
from registry.progress import Progress, silent
from registry.upkeep.backup import (
    COUNT_ALL_NODES,
    JOINS,
    PAGE_BYTES,
    PAGE_ROWS,
    Header,
    Transferred,
    Watch,
    WrittenMeanwhile,
    all_nodes,
    backup,
    count,
    records,
    section_counts,
    verify,
)

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
_SURROGATE = re.compile("[\ud800-\udfff]")
_PROPERTY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")

Records = Iterator[tuple[str, int, int, Any]]
"""Section, line number, length and value of each record of a backup."""


def restore(
    database: Database,
    path: Path,
    progress: Progress = silent,
    *,
    replace: bool = False,
    check: Callable[[Records], None] | None = None,
) -> Transferred:
    """Fill a database from a backup.

    An interrupted restore starts again: what it had written is deleted first.

    Args:
        replace: Replace what the database holds; it is first saved to `previous_path`.
        check: Called with all records before anything is written; raises if it rejects them.

    Raises:
        InputError: The file is no backup, damaged, truncated, or of a newer schema; nothing was written.
        DatabaseError: The database is not empty, and `replace` is false.
        SchemaVersionError
    """
    header = check_backup(path, check)
    _make_room(database, path, progress, replace=replace)
    _write_all(database, path, sum(header.counts.values()), progress)
    found = section_counts(database)
    if found != dict.fromkeys(found, 0) | dict(header.counts):
        raise DatabaseError("the database does not hold what the backup does: restore it again")
    if header.schema < MIGRATIONS[-1].version:
        write_version(database, header.schema)
        migrate(database)
    mark_loading(database, False)
    return Transferred.of(header.counts)


def check_backup(path: Path, check: Callable[[Records], None] | None = None) -> Header:
    """Return the header of a backup, after everything in it was checked that a restore relies on.

    Raises:
        InputError: The file is no backup, damaged, truncated, of a newer schema, or holds what cannot be
            stored.
    """
    header = verify(path)
    if header.schema > MIGRATIONS[-1].version:
        reason = f"the backup has schema version {header.schema}, this program {MIGRATIONS[-1].version}"
        raise InputError(f"{reason}: {upgrade_advice()}", path=path)
    unknown = sorted(header.counts.keys() - {*LABELS, *JOINS})
    if unknown:
        raise InputError(f"the header counts records of the unknown {unknown[0]!r}", path=path, line=1)
    checked = _checked(path, header)
    if check is not None:
        check(checked)
    for _ in checked:  # those that the check did not take
        pass
    return header


def _checked(path: Path, header: Header) -> Records:
    """Yield the records of a backup; raise at the first that cannot be stored, and if one is missing."""
    found, known = Counter[str](), {label: set[str]() for label in LABELS}
    for section, number, length, value in records(path):
        row = _row(path, section, number, value)
        found[section] += 1
        if row.ends:
            kind = JOINS[section]
            ends = zip((kind.source, kind.target), row.ends, strict=True)
            lost = [f"{label} {end!r}" for label, end in ends if end not in known[label]]
            if lost:
                reason = f"the relationship has an end that is not above it: {', '.join(lost)}"
                raise InputError(reason, path=path, line=number)
        elif row.properties["id"] in known[section]:
            reason = f"two records of {section} have the id {row.properties['id']!r}"
            raise InputError(reason, path=path, line=number)
        else:
            known[section].add(row.properties["id"])
        yield section, number, length, value
    names = found.keys() | header.counts.keys()
    wrong = sorted(name for name in names if found[name] != header.counts.get(name, 0))
    if wrong:
        name = wrong[0]
        reason = (
            f"the header counts {header.counts.get(name, 0)} records of {name!r}, there are {found[name]}"
        )
        raise InputError(reason, path=path, line=1)


def previous_path(path: Path) -> Path:
    """Return the file to which a restore with `replace` saves what the database held before."""
    return path.with_name(f"{path.name}.previous")


def require_no_previous(path: Path) -> None:
    """Raise `InputError` if what a database held before is saved there already."""
    if previous_path(path).exists():
        reason = "exists and would be overwritten by the content of the database: move it away"
        raise InputError(reason, path=previous_path(path))


def _make_room(database: Database, path: Path, progress: Progress, *, replace: bool) -> None:
    """Empty the database, and mark it as one that is being restored.

    Raises:
        DatabaseError: It is not empty, and `replace` is false.
        InputError: The content cannot be saved.
    """
    half = is_half_loaded(database)
    if not half and count(database, COUNT_ALL_NODES):
        if not replace:
            raise DatabaseError(
                f"the database at {database.uri} is not empty: restore with --replace, which first saves "
                f"its content to {previous_path(path)}"
            )
        require_no_previous(path)
        backup(database, previous_path(path), progress)
    migrate(database)
    mark_loading(database, True)
    if half or replace:
        _clear(database, progress)


def _clear(database: Database, progress: Progress) -> None:
    """Delete everything, in small transactions, as servers hold them in memory."""
    deleted = 0
    for label in LABELS:
        while count := _delete_some(database, label):
            deleted += count
            progress("emptying the database", deleted)


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
    """One record of a backup; ends are empty for a node."""

    ends: tuple[str, ...]
    properties: dict[str, Any]

    @property
    def shape(self) -> tuple[tuple[str, bool], ...]:
        """Names of the properties, each with True if it is a time; rows of one shape share a statement."""
        return tuple((name, isinstance(self.properties[name], datetime)) for name in sorted(self.properties))


def _batches(path: Path) -> Iterator[tuple[str, list[_Row]]]:
    """Yield the section and the rows of each transaction.

    A relationship counts with the nodes at its ends: ArcadeDB loads them, and those of a transaction stay in
    memory.
    """
    section, rows, length = "", list[_Row](), 0
    written, counted = Counter[str](), Counter[str]()
    for name, number, size, value in records(path):
        row = _row(path, name, number, value)
        if row.ends:
            last = rows[-1].ends if rows and name == section else ("", "")
            for label, end, before in zip(JOINS[name][::2], row.ends, last, strict=True):
                size += written[label] // max(counted[label], 1) if end != before else 0
        else:
            written[name] += size
            counted[name] += 1
        if rows and (name != section or length + size > PAGE_BYTES or len(rows) == PAGE_ROWS):
            yield section, rows
            rows, length = [], 0
        section = name
        rows.append(row)
        length += size
    if rows:
        yield section, rows


def _row(path: Path, section: str, number: int, value: Any) -> _Row:
    """Return a record; everything that becomes text of a statement is checked."""
    ends: tuple[str, ...] = ()
    properties = value
    if section in JOINS and isinstance(value, list) and len(value) == 3:
        ends, properties = (str(value[0]), str(value[1])), value[2]
    elif section not in LABELS:
        raise InputError(f"the schema has no {section!r}", path=path, line=number)
    if not isinstance(properties, dict) or not all(map(_PROPERTY.fullmatch, properties)):
        raise InputError("these are not the properties of a node or relationship", path=path, line=number)
    if not ends and not isinstance(properties.get("id"), str):
        raise InputError("the node has no id", path=path, line=number)
    for name, content in properties.items():
        if not _can_be_stored(content):
            raise InputError(f"no database stores the value of {name}", path=path, line=number)
    return _Row(ends, properties)


def _can_be_stored(value: Any) -> bool:
    """Return True for a plain value, and for a list of plain values of one type."""
    if isinstance(value, list):
        kinds = {float if type(one) is int else type(one) for one in value}
        plain = not any(one is None or isinstance(one, list) for one in value)
        return len(kinds) <= 1 and plain and all(map(_can_be_stored, value))
    if isinstance(value, str):
        return not _SURROGATE.search(value)
    if isinstance(value, int):
        return -(1 << 63) <= value < 1 << 63
    return value is None or isinstance(value, float | bytes | datetime)


def _write(transaction: Transaction, section: str, rows: Sequence[_Row]) -> None:
    """Create nodes or relationships, one statement per shape."""
    kind = JOINS.get(section)
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


COPY_IDLE_SECONDS = 3600.0
"""The server of the copy stops by itself after this time, if this process was killed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """Size of the server's data in bytes, before and after."""

    before: int
    after: int


def compact(home: Path, progress: Progress = silent, *, idle_seconds: float = IDLE_SECONDS) -> Compacted:
    """Write all that the embedded server of a data folder holds into new files, and use these.

    Others may read until the files are replaced, when the server is started again; writers wait. The old
    files are deleted last: until then an error or an interruption leaves the registry as it was.

    Args:
        home: Data folder. Its disk needs room for the new files and for a backup, which is compressed.
        idle_seconds: The server that is started at the end stops by itself after this time without use.

    Raises:
        SchemaVersionError
        DatabaseUnavailable
        DatabaseError: Damaged files; no space is left; writers that did not wait; unknown labels or
            relationships.
    """
    files = ServerFiles(home.resolve())
    copy = ServerFiles(files.home / "compact")
    with ensure_server(files.home, idle_seconds=idle_seconds, progress=progress).connect() as database:
        damaged = damage_text(files.home)
        if damaged:  # the new files would hold it, and nothing would name it any more
            raise DatabaseError(damaged)
        remove_copy(copy)  # of an interrupted call
        before = bytes_of([files.data])
        try:
            with writers_paused(database) as pause:
                watch = Watch(database, pause)

                def keep(
                    phase: str, done: float, total: float | None = None, best: float | None = None
                ) -> None:
                    watch.keep()
                    progress(phase, done, total, best)

                _write_copy(database, copy, keep)
                watch.check()
                pause.forget()  # the files with it are replaced
                replace_data(files.home, copy.data)
                # for those that wait
                ensure_server(files.home, idle_seconds=idle_seconds, progress=progress)
        except WrittenMeanwhile as error:
            raise DatabaseError("the registry was written to meanwhile: run the command again") from error
        finally:
            remove_copy(copy)
    return Compacted(before=before, after=bytes_of([files.data]))


def _write_copy(database: Database, copy: ServerFiles, progress: Progress) -> None:
    """Fill another embedded server with what a database holds, and stop it."""
    copy.prepare()
    file = copy.home / "registry.backup"
    backup(database, file, progress)
    with ensure_server(copy.home, idle_seconds=COPY_IDLE_SECONDS, progress=progress).connect() as fresh:
        restore(fresh, file, progress)
    stop(copy.home)


def remove_copy(copy: ServerFiles) -> None:
    """Stop the server of a copy and delete its folder."""
    if copy.home.exists():
        stop(copy.home)
        shutil.rmtree(copy.home)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """What `replace` did."""

    restored: Transferred
    kept: Path | None
    """Folder of the replaced data; None if there were none."""
    unsaved: str
    """Why the old content was not saved to `previous_path`; empty if it was, or if there was none."""


def replace(
    home: Path,
    path: Path,
    progress: Progress = silent,
    *,
    check: Callable[[Records], None] | None = None,
) -> Replaced:
    """Replace the data of an embedded server by those of a backup.

    Until the new data are complete and checked, an error or an interruption leaves the old ones in place.
    What others write meanwhile is in the kept folder only.

    Args:
        home: Data folder. Its disk needs room for the new data beside the old ones.
        check: As in `restore`.

    Raises:
        InputError: The file is no backup, damaged, or of a newer schema; or `previous_path` exists.
        DatabaseUnavailable
        DatabaseError: No space is left.
    """
    check_backup(path, check)
    files = ServerFiles(home.resolve())
    copy = ServerFiles(files.home / "restore")
    is_filled, unsaved = _save(files, path, progress)
    try:
        remove_copy(copy)  # of an interrupted call
        copy.prepare()
        restored = _build(copy, path, progress)
        kept = replace_data(files.home, copy.data, keep=is_filled)
    finally:
        remove_copy(copy)
    return Replaced(restored=restored, kept=kept, unsaved=unsaved)


def _save(files: ServerFiles, path: Path, progress: Progress) -> tuple[bool, str]:
    """Save what can be read; return False if there is nothing to keep, and why nothing could be saved."""
    if not files.data.exists() or not any(files.data.iterdir()):
        return False, ""
    try:
        with ensure_server(files.home, progress=progress).connect() as database:
            damaged = damage(files.home)
            if damaged or is_half_loaded(database):
                return True, damaged[0] if damaged else "an earlier restore was interrupted"
            if not all_nodes(database):
                return False, ""
            require_no_previous(path)
            backup(database, previous_path(path), progress)
    except DatabaseError as error:
        return True, error.reason
    return True, ""


def _build(copy: ServerFiles, path: Path, progress: Progress) -> Transferred:
    """Fill the server of a copy; then start it again, count what its files hold, and stop it."""
    with ensure_server(copy.home, idle_seconds=COPY_IDLE_SECONDS, progress=progress).connect() as database:
        restored = restore(database, path, progress)
        counts = section_counts(database)
    stop(copy.home)
    with ensure_server(copy.home, idle_seconds=COPY_IDLE_SECONDS, progress=progress).connect() as database:
        check_version(database)
        found = present_damage(copy.home)
        if found or section_counts(database) != counts:
            raise DatabaseError(
                f"the new database cannot be read: {', '.join(found) or 'records are missing'}"
            )
    stop(copy.home)
    return restored
