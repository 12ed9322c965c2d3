"""Notice files of the embedded server that were damaged while it was stopped.

ArcadeDB has no checksums: of a cut bucket it reads what is left, or counts records that it cannot find. So
the supervisor writes the digest of each file when the server has closed its databases, and compares them
before the next start. What it finds is kept in a file with the data until other data take their place.
Without digests (the server was killed, or was one of an earlier version) only lengths and names are compared.

The supervisor imports this module and must stay small.
"""

from __future__ import annotations

import json
import re
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from registry.database.local.files import ServerFiles, write_private

FOLDERS = ("databases", "config")
"""Folders of the server's data whose files are compared."""
CHANGING = frozenset({"server-users.jsonl", "database.lck"})
"""Files that are made anew at each start, or exist only while the server runs."""
REMEDY = "almanac db restore --replace BACKUP builds the database anew and keeps these files"
PIECE = 1 << 20
AGAIN_SECONDS = 0.5
"""Time between two looks at the files of a running server, which may be writing one."""
PARTS = ("buckets", "indexes")
"""Keys of a type in the schema that name files."""
_PAGED = re.compile(r"(?P<name>.+)\.\d+\.(?P<page>\d+)\.v\d+\.\w+")
"""Name of a file of pages of the same length."""


def write_digests(files: ServerFiles) -> None:
    """Write the digests of all files of a stopped server; nothing if it was killed or no space is left."""
    if any(path.name == "database.lck" for path in _paths(files, changing=True)):
        return
    with suppress(OSError):
        digests = {_name(files, path): [path.stat().st_size, _digest(path)] for path in _paths(files)}
        write_private(files.digests, json.dumps(digests))


def note_damage(files: ServerFiles) -> None:
    """Compare all files with their digests before a start, and add what is damaged to the list of damage."""
    found = [*_compared(files), *_structure(files)]
    if found:
        write_private(files.damage, json.dumps(list(dict.fromkeys([*_noted(files), *found]))))
    files.digests.unlink(missing_ok=True)


def damage(home: Path) -> tuple[str, ...]:
    """Return what was found before the last start, one text a file."""
    return tuple(_noted(ServerFiles(home)))


def present_damage(home: Path) -> tuple[str, ...]:
    """Return `damage`, and what can be found beside a running server."""
    files = ServerFiles(home)
    found = list(_structure(files))
    if found:
        time.sleep(AGAIN_SECONDS)
        found = [one for one in _structure(files) if one in found]
    return tuple(dict.fromkeys([*_noted(files), *found]))


def damage_text(home: Path | None) -> str:
    """Return one line about the damaged files of a data folder and what to do; empty if there are none."""
    found = damage(home) if home is not None else ()
    if not found:
        return ""
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"files of the embedded database are damaged: {found[0]}{more}; {REMEDY}"


def _paths(files: ServerFiles, *, changing: bool = False) -> Iterator[Path]:
    for folder in FOLDERS:
        for path in sorted((files.data / folder).rglob("*")):
            if path.is_file() and (changing or (path.name not in CHANGING and path.suffix != ".wal")):
                yield path


def _name(files: ServerFiles, path: Path) -> str:
    return path.relative_to(files.data).as_posix()


def _digest(path: Path) -> int:
    digest = 0
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest = zlib.crc32(piece, digest)
    return digest


def _noted(files: ServerFiles) -> list[str]:
    try:
        return [str(one) for one in json.loads(files.damage.read_text("utf-8"))]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError):
        return [f"{files.damage.name} cannot be read"]


def _compared(files: ServerFiles) -> Iterator[str]:
    """Yield each file that is not as the server left it."""
    try:
        digests: dict[str, Any] = json.loads(files.digests.read_text("utf-8"))
        expected = [(name, int(size), int(digest)) for name, (size, digest) in digests.items()]
    except FileNotFoundError:
        return
    except (OSError, ValueError, TypeError, AttributeError):
        yield f"{files.digests.name} cannot be read"
        return
    for name, size, digest in expected:
        path = files.data / name
        try:
            found = path.stat().st_size
            changed = found == size and _digest(path) != digest
        except FileNotFoundError:
            yield f"{name} is missing"
        except OSError as error:
            yield f"{name} cannot be read: {error.strerror}"
        else:
            if changed:
                yield f"{name} was changed while the server was stopped"
            elif found != size:
                yield f"{name} has {found:,} bytes instead of {size:,}"


def _structure(files: ServerFiles) -> Iterator[str]:
    """Yield each file of a database that its own files show to be missing or cut."""
    for folder in sorted((files.data / "databases").glob("*/")):
        is_closed = not any(path.stat().st_size for path in folder.glob("*.wal"))
        schema = _json(folder / "schema.json") or (None if is_closed else _json(folder / "schema.prev.json"))
        if not schema or not isinstance(schema.get("types"), dict):
            if any(folder.glob("*.bucket")):
                yield f"{_name(files, folder)}/schema.json is missing or cannot be read"
            continue
        pages = {match["name"]: path for path in folder.iterdir() if (match := _PAGED.fullmatch(path.name))}
        needed = {name for one in schema["types"].values() for part in PARTS for name in one.get(part, ())}
        for name in sorted(needed - pages.keys()):
            yield f"{_name(files, folder)}/{name} is missing"
        if is_closed:  # otherwise the log of transactions completes them
            yield from _cut(files, folder, pages)


def _cut(files: ServerFiles, folder: Path, pages: dict[str, Path]) -> Iterator[str]:
    """Yield the files that end within a page, and the empty ones whose records are counted."""
    counts = _json(folder / "statistics.json") or {}
    for name, path in sorted(pages.items()):
        match = _PAGED.fullmatch(path.name)
        with suppress(FileNotFoundError):
            size = path.stat().st_size
            counted = counts.get(name)
            if match is not None and size % max(int(match["page"]), 1):
                yield f"{_name(files, path)} ends within a page"
            elif not size and isinstance(counted, dict) and counted.get("count"):
                yield f"{_name(files, path)} is empty"


def _json(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
