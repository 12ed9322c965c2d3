"""Replace the embedded server's data by a backup, whatever state they are in.

The data are built in a folder of their own, checked, and put in place of the old ones, which are kept. A
damaged database need not be opened for that, let alone emptied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from registry.database.backups.backup import backup
from registry.database.backups.compact import COPY_IDLE_SECONDS, remove_copy
from registry.database.backups.restore import (
    Records,
    check_backup,
    previous_path,
    require_no_previous,
    restore,
)
from registry.database.backups.sections import Transferred, all_nodes, section_counts
from registry.database.local.damage import damage, present_damage
from registry.database.local.files import ServerFiles
from registry.database.local.server import ensure_server, replace_data, stop
from registry.database.schema import check_version, is_half_loaded
from registry.errors import DatabaseError
from registry.progress import Progress, silent


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced:
    """What `replace` did.

    Attributes
    ----------
    restored : Transferred
    kept : Path or None
        Folder of the replaced data; None if there were none.
    unsaved : str
        Why the old content was not saved to `previous_path`; empty if it was, or if there was none.
    """

    restored: Transferred
    kept: Path | None
    unsaved: str


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

    Parameters
    ----------
    home : Path
        Data folder. Its disk needs room for the new data beside the old ones.
    check : callable, optional
        As in `restore`.

    Raises
    ------
    InputError
        The file is no backup, damaged, or of a newer schema; or `previous_path` exists.
    DatabaseUnavailable
    DatabaseError
        No space is left.
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
