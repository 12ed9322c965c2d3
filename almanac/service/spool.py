"""The spool: a folder of ingests that wait until the database is available, applied in order of arrival.

An entry is written under a temporary name and renamed, so a killed process leaves no incomplete entry.
Folders have mode 0700 and files 0600. An entry that cannot be applied is moved to the folder ``rejected``
with the reason, so that it does not delay the others.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from almanac.service.entries import (
    FULL,
    DamagedEntry,
    Draft,
    Entry,
    SpoolFull,
    next_try,
    private,
    read_entry,
    sync,
)
from almanac.service.locks import locked
from ingest.options import Options
from registry.errors import (
    AlmanacError,
    ConfigError,
    DatabaseError,
    DatabaseUnavailable,
    SchemaVersionError,
    WritersPaused,
)
from registry.installation import bytes_of, no_space
from registry.progress import Progress, silent

if TYPE_CHECKING:
    from ingest.pipeline import Report
    from registry.registry import Registry

REJECTED, REASON, DRAFT, LOCK = "rejected", "reason.txt", ".draft-", ".lock"
MAX_REJECTED = 1000
"""Largest number of rejected entries that are kept."""
MAX_TRIES = 20
"""Number of times that an entry is tried if the database answers but refuses it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """Result of applying an entry.

    Attributes
    ----------
    name : str
        Name of the entry.
    collector : str
        Name of the collector that wrote it; empty for `almanac ingest`, or if it is damaged.
    report : Report or None
        None if it was not ingested.
    error : Exception or None
        Why it was not ingested.
    waits : bool
        True if the entry stays in the spool, as the database is away or full; otherwise it is rejected.
    """

    name: str
    collector: str = ""
    report: Report | None = None
    error: Exception | None = None
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SpooledInfo:
    """An entry in a list.

    Attributes
    ----------
    name : str
    queued_at : datetime
        Time when it was queued, UTC.
    entry : Entry or None
        None if it is damaged.
    rejected : bool
    reason : str
        Why it was rejected.
    bytes : int
    """

    name: str
    queued_at: datetime
    entry: Entry | None
    rejected: bool
    reason: str
    bytes: int


class Spool:
    """Folder of waiting ingests; several processes may use it at the same time.

    Attributes
    ----------
    folder : Path
    limit : int
        Maximum size in bytes.

    Raises
    ------
    ConfigError
        The folder cannot be created, or other users can read it.
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

        Raises
        ------
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

        Raises
        ------
        InputError, SpoolFull
        """
        with self.draft() as draft:
            return self.add(draft, paths, draft.copy(paths), options)

    def apply(
        self, registry: Registry, *, wait: bool = True, progress: Progress = silent
    ) -> Iterator[Applied]:
        """Ingest the waiting entries, the oldest first; yield the result of each.

        It ends if the database is away or full, since the later entries have to wait too.

        Parameters
        ----------
        wait : bool
            True to wait while another process applies entries; False to do nothing then.
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
