"""Entries of the spool: one ingest each, with its files and options, as a folder.

A `Draft` is filled with files and then becomes an `Entry`: ``entry.json`` holds the options of the ingest and
the size and SHA-256 of each file, so that an entry that was cut short or changed is found.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from ingest.options import Options
from ingest.reading.source import ANCHOR, STANDARD_INPUT
from registry.errors import AlmanacError, InputError
from registry.installation import no_space

ENTRY, FILES = "entry.json", "files"
VERSION = 1
PIECE = 1 << 20
FULL = "it is full: apply it (almanac spool apply), or raise the setting spool_megabytes"


class SpoolFull(AlmanacError):
    """The folder of waiting ingests has no room for another one.

    Attributes
    ----------
    folder : Path
    """

    def __init__(self, folder: Path, why: str) -> None:
        self.folder = folder
        super().__init__(f"the ingest cannot be queued in {folder}: {why}")


class DamagedEntry(AlmanacError):
    """An entry of the spool is incomplete, was changed, or is of an unknown version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An ingest that waits in the spool.

    Attributes
    ----------
    folder : Path
        Folder of the entry.
    queued_at : datetime
        Time when it was queued, UTC.
    options : Options
        Options of the ingest.
    given : tuple of str
        Paths as given to ``almanac ingest``, or the name of the collector.
    inputs : tuple of str
        Paths of the copies to ingest, relative to the folder.
    files : mapping of str to (int, str)
        Bytes and SHA-256 of each copied file, by path relative to the folder.
    collector : str
        Name of the collector that wrote the files; empty for those of ``almanac ingest``.
    tries : int
        Number of times that the database refused it.
    """

    folder: Path
    queued_at: datetime
    options: Options
    given: tuple[str, ...]
    inputs: tuple[str, ...]
    files: dict[str, tuple[int, str]]
    collector: str = ""
    tries: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the copies to ingest."""
        return tuple(str(self.folder / name) for name in self.inputs)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(size for size, _ in self.files.values())

    def write(self) -> None:
        """Write ``entry.json``, completely or not at all."""
        stored = {name: value for name, value in asdict(self).items() if name != "folder"}
        stored["queued_at"] = self.queued_at.isoformat()
        when = self.options.observed_at
        stored["options"]["observed_at"] = None if when is None else when.isoformat()
        part = self.folder / f".{ENTRY}"
        with open(part, "w", encoding="utf-8", opener=private) as file:
            json.dump({"version": VERSION, **stored}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self.folder / ENTRY)

    def check(self) -> None:
        """Compare the files with their sizes and hashes.

        Raises
        ------
        DamagedEntry
        """
        found = dict(_hashes(self.folder))
        names = {*self.files, *found}
        wrong = [name for name in names if found.get(name) != self.files.get(name)]
        wrong += [one for one in self.inputs if not any(f"{name}/".startswith(f"{one}/") for name in names)]
        if wrong:
            raise DamagedEntry(f"{min(wrong)} is missing or was changed", path=self.folder)


class Draft:
    """A temporary folder that is filled with files.

    Attributes
    ----------
    folder : Path
    files : Path
        Folder in it for the files.
    room : int
        Bytes that still fit into the spool.
    """

    def __init__(self, folder: Path, room: int) -> None:
        self.folder, self.room = folder, room
        self.files = folder / FILES
        self.files.mkdir(0o700)

    def copy(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Copy files, folders or standard input with their times; return the paths of the copies to ingest.

        Files of one folder stay together, since formats may consist of several files.

        Raises
        ------
        InputError
            A path cannot be read.
        SpoolFull
        """
        places: dict[str, str] = {}
        names = []
        for path in paths:
            above, name = os.path.split(path.rstrip("/"))
            place = places.setdefault(above, str(len(places)))
            (self.files / place).mkdir(0o700, exist_ok=True)
            names.append(f"{FILES}/{place}/{name}")
            for one in (path, *_companions(path)):
                self._copy(one, self.files / place / os.path.basename(one.rstrip("/")))
        return tuple(names)

    def _copy(self, source: str, target: Path) -> None:
        """Copy a file, standard input, or a folder with everything in it."""
        try:
            if source == STANDARD_INPUT:
                self._fill(target, sys.stdin.buffer)
            elif os.path.isdir(source):
                target.mkdir(0o700, exist_ok=True)
                for name in sorted(os.listdir(source)):
                    self._copy(os.path.join(source, name), target / name)
            else:
                with open(source, "rb") as reading:
                    status = os.fstat(reading.fileno())
                    self._fill(target, reading)
                os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
        except OSError as error:
            if full := no_space(self.folder.parent):
                raise SpoolFull(self.folder.parent, full) from error
            raise InputError(f"cannot be read: {error.strerror or error}", path=source) from error

    def _fill(self, target: Path, reading: BinaryIO) -> None:
        with open(target, "wb", opener=private) as writing:
            while piece := reading.read(PIECE):
                self.room -= len(piece)
                if self.room < 0:
                    raise SpoolFull(self.folder.parent, FULL)
                writing.write(piece)

    def entry(
        self, given: Sequence[str], inputs: Sequence[str], options: Options, collector: str = ""
    ) -> Entry:
        """Write everything to the disk and return the entry of this folder."""
        for path in sorted(self.files.rglob("*")):
            path.chmod(0o700 if path.is_dir() else 0o600)
            sync(path)
        entry = Entry(
            folder=self.folder,
            queued_at=datetime.now(UTC),
            options=options,
            given=tuple(given),
            inputs=tuple(inputs),
            files=dict(_hashes(self.folder)),
            collector=collector,
        )
        entry.write()
        sync(self.folder)
        return entry


def read_entry(folder: Path) -> Entry:
    """Read an entry; `Entry.check` compares its files.

    Raises
    ------
    DamagedEntry
    """
    try:
        stored: dict[str, Any] = json.loads((folder / ENTRY).read_text("utf-8"))
        if stored.pop("version") != VERSION:
            raise ValueError("it was written by another version of the program")
        stored["files"] = {name: (int(size), str(hash)) for name, (size, hash) in stored["files"].items()}
        stored["queued_at"] = datetime.fromisoformat(stored["queued_at"])
        lists = {name: tuple(stored[name]) for name in ("given", "inputs")}
        return Entry(**{**stored, **lists, "folder": folder, "options": _options(stored["options"])})
    except (OSError, ValueError, TypeError, KeyError, AttributeError, AlmanacError) as error:
        raise DamagedEntry(f"cannot be read: {error}", path=folder / ENTRY) from error


def private(path: str, flags: int) -> int:
    """Open a file that only this user can read; an `opener` of `open`."""
    return os.open(path, flags, 0o600)


def sync(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def next_try(entry: Entry) -> Entry:
    """Return an entry after one more refusal by the database; also on disk, if it can be written."""
    again = replace(entry, tries=entry.tries + 1)
    with suppress(OSError):
        again.write()
    return again


def _options(stored: dict[str, Any]) -> Options:
    known = {field.name for field in fields(Options)}
    if unknown := stored.keys() - known:
        raise ValueError(f"unknown option {min(unknown)}")
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
    }
    if values.get("observed_at") is not None:
        values["observed_at"] = datetime.fromisoformat(values["observed_at"])
    return Options(**values)


def _companions(path: str) -> Iterable[str]:
    """Return the files beside the anchor file of an OTF2 archive."""
    if not path.endswith(ANCHOR):
        return ()
    trunk = path.removesuffix(ANCHOR)
    return filter(os.path.exists, (f"{trunk}.def", f"{trunk}.marker", trunk))


def _hashes(folder: Path) -> Iterator[tuple[str, tuple[int, str]]]:
    """Yield size and SHA-256 of each file, by path relative to the entry's folder."""
    for path in sorted((folder / FILES).rglob("*")):
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise DamagedEntry("neither a file nor a folder", path=path)
        if path.is_file():
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                yield path.relative_to(folder).as_posix(), (os.fstat(file.fileno()).st_size, digest)
