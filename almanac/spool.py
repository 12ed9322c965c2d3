"""The spool: a folder of ingests that wait until the database is available, applied in order of arrival.

An entry is written under a temporary name and renamed, so a killed process leaves no incomplete entry.
Folders have mode 0700 and files 0600. An entry that cannot be applied is moved to the folder ``rejected``
with the reason, so that it does not delay the others.

Entries of the spool: one ingest each, with its files and options, as a folder.

A `Draft` is filled with files and then becomes an `Entry`: ``entry.json`` holds the options of the ingest and
the size and SHA-256 of each file, so that an entry that was cut short or changed is found.

Locks between processes, on files; the kernel releases them when the last holder ends, even if killed.

When tasks run: at a fixed interval, each with a random delay.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from almanac.output.stored_data import MAX_REASON
from ingest.options import Options
from ingest.reading.source import ANCHOR, STANDARD_INPUT
from registry.errors import (
    AlmanacError,
    ConfigError,
    DamagedEntry,
    DatabaseError,
    DatabaseUnavailable,
    InputError,
    SchemaVersionError,
    SpoolFull,
    WritersPaused,
    shorten,
)
from registry.installation import bytes_of, no_space
from registry.progress import Progress, silent

if TYPE_CHECKING:
    from ingest.pipeline import Report
    from registry.registry import Registry


ENTRY, FILES = "entry.json", "files"
VERSION = 1
PIECE = 1 << 20
FULL = "it is full: apply it (almanac spool apply), or raise the setting spool_megabytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An ingest that waits in the spool."""

    folder: Path
    """Folder of the entry."""
    queued_at: datetime
    """Time when it was queued, UTC."""
    options: Options
    """Options of the ingest."""
    given: tuple[str, ...]
    """Paths as given to ``almanac ingest``, or the name of the collector."""
    inputs: tuple[str, ...]
    """Paths of the copies to ingest, relative to the folder."""
    files: dict[str, tuple[int, str]]
    """Bytes and SHA-256 of each copied file, by path relative to the folder."""
    collector: str = ""
    """Name of the collector that wrote the files; empty for those of ``almanac ingest``."""
    tries: int = 0
    """Number of times that the database refused it."""

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

        Raises:
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

    Attributes:
        files: Folder in it for the files.
        room: Bytes that still fit into the spool.
    """

    def __init__(self, folder: Path, room: int) -> None:
        self.folder, self.room = folder, room
        self.files = folder / FILES
        self.files.mkdir(0o700)

    def copy(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Copy files, folders or standard input with their times; return the paths of the copies to ingest.

        Files of one folder stay together, since formats may consist of several files.

        Raises:
            InputError: A path cannot be read.
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

    Raises:
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


@contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[int | None]:
    """Hold a lock during the block; yield its descriptor, or None if another process holds it.

    A process that inherits the descriptor holds the lock too, until it ends or the block ends.

    Args:
        wait: True to wait until the lock is free.
    """
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield None
            return
        try:
            yield number
        finally:
            fcntl.flock(number, fcntl.LOCK_UN)
    finally:
        os.close(number)


REJECTED, REASON, DRAFT, LOCK = "rejected", "reason.txt", ".draft-", ".lock"
MAX_REJECTED = 1000
"""Largest number of rejected entries that are kept."""
MAX_TRIES = 20
"""Number of times that an entry is tried if the database answers but refuses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """Result of applying an entry."""

    name: str
    """Name of the entry."""
    collector: str = ""
    """Name of the collector that wrote it; empty for `almanac ingest`, or if it is damaged."""
    report: Report | None = None
    """None if it was not ingested."""
    error: Exception | None = None
    """Why it was not ingested."""
    waits: bool = False
    """True if the entry stays in the spool, as the database is away or full; otherwise it is rejected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpooledInfo:
    """An entry in a list."""

    name: str
    queued_at: datetime
    """Time when it was queued, UTC."""
    entry: Entry | None
    """None if it is damaged."""
    rejected: bool
    reason: str
    """Why it was rejected."""
    bytes: int


class Spool:
    """Folder of waiting ingests; several processes may use it at the same time.

    Attributes:
        limit: Maximum size in bytes.

    Raises:
        ConfigError: The folder cannot be created, or other users can read it.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder, self.limit = folder, limit
        try:
            folder.mkdir(0o700, parents=True, exist_ok=True)
            (folder / REJECTED).mkdir(0o700, exist_ok=True)
            found = folder.stat()
        except OSError as error:
            raise ConfigError("spool_folder", f"cannot be created: {error}", path=folder) from error
        if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ConfigError("spool_folder", f"other users can read it; run: chmod 700 {folder}")

    def waiting(self) -> list[Path]:
        """Return the folders of the waiting entries, the oldest first."""
        return sorted(path for path in self.folder.iterdir() if path.name.isdigit())

    def rejected(self) -> list[Path]:
        """Return the folders of the rejected entries, the oldest first."""
        return sorted(path for path in (self.folder / REJECTED).iterdir() if path.name.isdigit())

    def entries(self) -> tuple[SpooledInfo, ...]:
        """Return the waiting entries, the oldest first, then the rejected ones."""
        return tuple(_info(folder, self.folder) for folder in (*self.waiting(), *self.rejected()))

    @contextmanager
    def draft(self) -> Iterator[Draft]:
        """Yield a temporary folder, which is deleted after the block unless `add` made it an entry."""
        with ExitStack() as stack:
            with locked(self.folder / LOCK):
                self._delete_abandoned()
                folder = Path(tempfile.mkdtemp(prefix=DRAFT, dir=self.folder))
                stack.callback(shutil.rmtree, folder, ignore_errors=True)
                stack.enter_context(locked(folder / LOCK))
            yield Draft(folder, self.limit - bytes_of(self.waiting()))

    def add(
        self,
        draft: Draft,
        given: Sequence[str],
        inputs: Sequence[str],
        options: Options,
        collector: str = "",
    ) -> str:
        """Make a draft the newest entry; return its name.

        Raises:
            SpoolFull
        """
        try:
            draft.entry(given, inputs, options, collector)
            with locked(self.folder / LOCK):
                waiting, size = self.waiting(), bytes_of([draft.folder])
                if bytes_of(waiting) + size > self.limit:
                    raise SpoolFull(self.folder, FULL)
                self._delete_rejected(self.limit - size - bytes_of(waiting))
                number = max(time.time_ns(), int(waiting[-1].name) + 1 if waiting else 0)
                name = f"{number:020d}"
                draft.folder.rename(self.folder / name)
                sync(self.folder)
        except OSError as error:
            raise SpoolFull(self.folder, no_space(self.folder) or str(error)) from error
        return name

    def queue(self, paths: Sequence[str], options: Options) -> str:
        """Copy the files of an ingest into a new entry; return its name.

        Raises:
            InputError, SpoolFull
        """
        with self.draft() as draft:
            return self.add(draft, paths, draft.copy(paths), options)

    def apply(
        self, registry: Registry, *, wait: bool = True, progress: Progress = silent
    ) -> Iterator[Applied]:
        """Ingest the waiting entries, the oldest first; yield the result of each.

        It ends if the database is away or full, since the later entries have to wait too.

        Args:
            wait: True to wait while another process applies entries; False to do nothing then.
        """
        with locked(self.folder / ".apply", wait=wait) as lock:
            while lock is not None and (waiting := self.waiting()):
                applied = self._apply_one(waiting[0], registry, progress)
                yield applied
                if applied.waits:
                    return

    def try_again(self) -> int:
        """Put the rejected entries back among the waiting ones; return their number."""
        with locked(self.folder / LOCK):
            folders = self.rejected()
            for folder in folders:
                (folder / REASON).unlink(missing_ok=True)
                folder.rename(self.folder / folder.name)
        return len(folders)

    def _apply_one(self, folder: Path, registry: Registry, progress: Progress) -> Applied:
        """Ingest one entry; delete it if it is saved, reject it if its content is the reason of a failure."""
        from ingest.pipeline import ingest

        try:
            entry = read_entry(folder)
            entry.check()
        except DamagedEntry as error:
            return self._reject(folder, error)
        try:
            report = ingest(registry, entry.paths, entry.options, progress=progress)
        except DatabaseError as error:
            if _is_away(error) or next_try(entry).tries < MAX_TRIES:
                return Applied(name=folder.name, collector=entry.collector, error=error, waits=True)
            return self._reject(folder, error, entry.collector)
        except Exception as error:  # of whatever kind: the next entries must not wait for a faulty one
            _name_given_file(error, entry)
            return self._reject(folder, error, entry.collector)
        shutil.rmtree(folder)
        report = replace(report, intake=replace(report.intake, files=entry.given))
        return Applied(name=folder.name, collector=entry.collector, report=report)

    def _reject(self, folder: Path, error: Exception, collector: str = "") -> Applied:
        """Move an entry to the rejected ones, with the reason."""
        with suppress(OSError), open(folder / REASON, "w", encoding="utf-8", opener=private) as file:
            file.write(f"{type(error).__name__}: {error}\n")
        folder.rename(self.folder / REJECTED / folder.name)
        return Applied(name=folder.name, collector=collector, error=error)

    def _delete_abandoned(self) -> None:
        """Delete the drafts of processes that ended before they were complete."""
        for folder in self.folder.glob(f"{DRAFT}*"):
            with suppress(FileNotFoundError), locked(folder / LOCK, wait=False) as lock:
                if lock is not None:
                    shutil.rmtree(folder, ignore_errors=True)

    def _delete_rejected(self, room: int) -> None:
        """Delete rejected entries, the oldest first, until few enough are left and fit into `room` bytes."""
        sizes = {folder: bytes_of([folder]) for folder in self.rejected()}
        for folder in list(sizes):
            if len(sizes) > MAX_REJECTED or sum(sizes.values()) > room:
                shutil.rmtree(folder)
                del sizes[folder]


def _name_given_file(error: Exception, entry: Entry) -> None:
    """Let an error name the file as it was given, not the copy in the spool."""
    path = error.path if isinstance(error, AlmanacError) else None
    for copy, given in zip(entry.paths, entry.given, strict=False):
        if isinstance(error, AlmanacError) and path is not None and path.startswith(copy):
            error.path = given + path.removeprefix(copy)


def _info(folder: Path, spool: Path) -> SpooledInfo:
    """Return a row of the list of entries."""
    entry, reason = None, ""
    try:
        entry = read_entry(folder)
        reason = (folder / REASON).read_text("utf-8").strip() if folder.parent != spool else ""
    except (DamagedEntry, OSError) as error:
        reason = str(error)
    return SpooledInfo(
        name=folder.name,
        queued_at=datetime.fromtimestamp(int(folder.name) / 1e9, UTC),
        entry=entry,
        rejected=folder.parent != spool,
        reason=reason,
        bytes=bytes_of([folder]),
    )


def _is_away(error: DatabaseError) -> bool:
    """Return True if any entry would fail now: the server is away, full, paused or of another schema."""
    full = "no space left" in f"{error} {error.__cause__}".lower()
    return full or isinstance(error, DatabaseUnavailable | SchemaVersionError | WritersPaused)


def spooled_to_json(info: SpooledInfo) -> dict[str, Any]:
    """Return a row of ``almanac spool list``."""
    entry = info.entry
    return {
        "entry": info.name,
        "queued_at": info.queued_at,
        "rejected": info.rejected,
        "reason": info.reason or None,
        "cluster": None if entry is None else entry.options.cluster,
        "files": [] if entry is None else list(entry.given),
        "bytes": info.bytes,
    }


def applied_to_json(applied: Sequence[Applied]) -> list[dict[str, Any]]:
    """Return the document of ``almanac spool apply``."""
    return [
        {
            "entry": one.name,
            "outcome": "applied" if one.report is not None else "waits" if one.waits else "rejected",
            "files": [] if one.report is None else list(one.report.intake.files),
            "error": None if one.error is None else str(one.error),
        }
        for one in applied
    ]


def applied_text(applied: Applied) -> str:
    """Return one line on what became of an entry of the spool."""
    if applied.report is None:
        state = "waits" if applied.waits else "is rejected"
        return f"{applied.name} {state}: {shorten(str(applied.error), MAX_REASON)}"
    files = ", ".join(applied.report.intake.files)
    count = len(applied.report.warnings)
    warnings = f"; {count} warnings: {shorten(applied.report.warnings[0], MAX_REASON)}" if count else ""
    return f"{applied.name} applied: {files}{warnings}"
