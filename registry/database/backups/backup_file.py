"""File format of backups: gzipped JSON, one value per line, with a digest of all lines at the end.

    {"format": "fabric-almanac-dump", "version": 1, "schema": 1, "counts": {"Cluster": 1, ...}}
    {"section": "Cluster"}                      a label: one line per node, its properties
    {"id": "ndr", "name": "ndr"}
    {"section": "Content-OF->Cluster"}          a relationship: one line each, ends and properties
    ["ndr:5f0c", "ndr", {}]
    {"end": {"lines": 5, "sha256": "..."}}

Times are ``{"$time": ...}`` in UTC, bytes ``{"$bytes": ...}`` in base64. The file contains no time or
place of writing: the same registry gives the same bytes.
"""

from __future__ import annotations

import base64
import errno
import glob
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil

from registry.disk_space import no_space
from registry.errors import DatabaseError, InputError
from registry.model import as_utc

FORMAT = "fabric-almanac-dump"
VERSION = 1
LINE_BYTES = 300_000_000
"""Longest line that is written and read: the limit of other compressed files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """First line of a backup.

    Attributes
    ----------
    schema : int
        Schema version of the registry.
    counts : mapping of str to int
        Number of lines of each section.
    """

    schema: int
    counts: Mapping[str, int]
    format: str = FORMAT
    version: int = VERSION


class BackupWriter:
    """Writer of lines that computes their digest.

    Attributes
    ----------
    records : int
        Number of records written.
    bytes : int
        Length of all lines written, uncompressed.
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

    Raises
    ------
    InputError
        The file cannot be written.
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

    Raises
    ------
    InputError
        The file is no backup, damaged, or truncated.
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
