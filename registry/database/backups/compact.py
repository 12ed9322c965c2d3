"""Rewrite the embedded server's files, which never become smaller by themselves.

ArcadeDB stores a record of more than a page (64 KB) as a chain of pages, and hardly uses the pages of deleted
chains again. The counters of a large fabric are such records; they are summed and deleted every hour.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from registry.database.backups.backup import Watch, WrittenMeanwhile, backup
from registry.database.backups.restore import restore
from registry.database.driver import Database
from registry.database.local.damage import damage_text
from registry.database.local.files import ServerFiles
from registry.database.local.server import IDLE_SECONDS, ensure_server, replace_data, stop
from registry.database.pause import writers_paused
from registry.disk_space import bytes_of
from registry.errors import DatabaseError
from registry.progress import Progress, silent

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

    Parameters
    ----------
    home : Path
        Data folder. Its disk needs room for the new files and for a backup, which is compressed.
    idle_seconds : float
        The server that is started at the end stops by itself after this time without use.

    Raises
    ------
    SchemaVersionError
    DatabaseUnavailable
    DatabaseError
        Damaged files; no space is left; writers that did not wait; unknown labels or relationships.
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
