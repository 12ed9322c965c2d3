"""Files of the local graph server and of the processes that look for it.

    HOME/server/start.lock   held while a server is looked for, started, or about to stop by itself
    HOME/server/run.lock     held by the supervisor as long as it lives: one server per data folder
    HOME/server/state.json   address of the server, written by the supervisor (0600)
    HOME/server/password     password of the server's only user, created once (0600)
    HOME/server/port         port of the last start, used again if it is free (0600)
    HOME/server/java.args    argument file of the Java process (0600)
    HOME/server/used         touched by each process that gets the address
    HOME/server/server.log   output of the last start
    HOME/graph/              the server's data
    HOME/graph/digests.json  digest of each file, while the server is stopped (0600)
    HOME/graph/damage.json   files that did not fit them at a start (0600)
    HOME/graph/keep          name under which these data are kept when others replace them
    HOME/graph.earlier/      data that are being replaced; they count while there are no others
    HOME/graph.replaced-N/   data that a restore replaced; kept until the user deletes them

The supervisor imports this module and must stay small: no numpy, no driver here.

Notice files of the embedded server that were damaged while it was stopped.

ArcadeDB has no checksums: of a cut bucket it reads what is left, or counts records that it cannot find. So
the supervisor writes the digest of each file when the server has closed its databases, and compares them
before the next start. What it finds is kept in a file with the data until other data take their place.
Without digests (the server was killed, or was one of an earlier version) only lengths and names are compared.

The supervisor imports this module and must stay small.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import socket
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

DATABASE_NAME = "almanac"
KEEP = "keep"
USER = "root"
OUT_OF_MEMORY = (
    "the embedded server ended, as it has too little memory for one transaction on so much data; the "
    "transaction changed nothing. almanac db prune shortens the history; a Neo4j server may have more memory"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """State of a server, as written by its supervisor."""

    supervisor: int
    java: int = 0
    """Process ids; `java` is 0 until the Java process is started."""
    bolt_port: int = 0
    """0 until the server listens."""
    machine: str
    """Host name: on a shared file system the processes may run on another machine."""
    started_at: float
    """Seconds since the epoch."""
    idle_seconds: float
    """The server stops by itself after this time without use."""


class ServerFiles:
    """Paths in one data folder, as listed above; `folder` is HOME/server, `data` is HOME/graph."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.data = home / "graph"
        self.digests = self.data / "digests.json"
        self.damage = self.data / "damage.json"
        self.earlier = home / "graph.earlier"
        self.folder = home / "server"
        self.start_lock = self.folder / "start.lock"
        self.run_lock = self.folder / "run.lock"
        self.state = self.folder / "state.json"
        self.password = self.folder / "password"
        self.port = self.folder / "port"
        self.arguments = self.folder / "java.args"
        self.java_argument = f"@{self.arguments}"  # the only one of our Java processes, which identifies them
        self.used = self.folder / "used"
        self.log = self.folder / "server.log"

    def prepare(self) -> None:
        """Create the folders, closed to other users."""
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder.mkdir(exist_ok=True, mode=0o700)
        self.data.mkdir(exist_ok=True, mode=0o700)

    def mark_kept(self) -> Path:
        """Return the folder to which the next replacement moves the data instead of deleting them."""
        numbers = [one.name.rpartition("-")[2] for one in self.home.glob("graph.replaced-*")]
        name = f"graph.replaced-{max((int(one) for one in numbers if one.isdecimal()), default=0) + 1}"
        write_private(self.data / KEEP, name)
        return self.home / name

    def put_back(self) -> None:
        """Put data back that an interrupted replacement moved away; delete or keep them if it is complete."""
        if not self.earlier.exists():
            return
        keep = self.earlier / KEEP
        if not (self.data.exists() and any(self.data.iterdir())):
            keep.unlink(missing_ok=True)
            self.earlier.replace(self.data)
        elif keep.exists():
            kept = self.home / Path(keep.read_text("utf-8")).name
            self.earlier.replace(kept)
            (kept / KEEP).unlink()
        else:
            shutil.rmtree(self.earlier)

    def out_of_memory(self) -> str:
        """Return what to do if the server ended with too little memory, else an empty text."""
        with suppress(OSError), self.log.open("rb") as file:
            file.seek(max(self.log.stat().st_size - 4096, 0))
            if b"java.lang.OutOfMemoryError" in file.read():
                return OUT_OF_MEMORY
        return ""

    def read_password(self) -> str:
        """Return the password; create a random one if there is none."""
        with suppress(FileNotFoundError):
            return self.password.read_text("ascii")
        write_private(self.password, secrets.token_urlsafe(24))
        return self.password.read_text("ascii")

    def read_state(self) -> ServerState | None:
        """Return the state that the supervisor wrote, or None without a readable state file."""
        try:
            return ServerState(**json.loads(self.state.read_text("utf-8")))
        except (FileNotFoundError, TypeError, ValueError):
            return None

    def write_state(self, state: ServerState) -> None:
        """Replace the state file in one step."""
        write_private(self.state, json.dumps(asdict(state)))


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, in one step."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)


def machine_name() -> str:
    """Return the name of this machine."""
    return socket.gethostname()


def process(pid: int, *arguments: str) -> psutil.Process | None:
    """Return the living process with this id if its command line contains the arguments, else None.

    Process ids are reused: the arguments keep us from killing the process of another program.
    """
    if not pid:
        return None
    try:
        found = psutil.Process(pid)
        alive = found.status() != psutil.STATUS_ZOMBIE and set(arguments) <= set(found.cmdline())
    except psutil.Error:
        return None
    return found if alive else None


def resident_bytes(found: psutil.Process | None) -> int:
    """Return the resident memory of a process; 0 if it has ended."""
    try:
        return int(found.memory_info().rss) if found else 0
    except psutil.Error:
        return 0


def end_process(found: psutil.Process | None, patience: float) -> None:
    """Ask a process to end; kill it if it has not ended after `patience` seconds."""
    if found is None:
        return
    with suppress(psutil.NoSuchProcess):
        found.terminate()
        try:
            found.wait(patience)
        except psutil.TimeoutExpired:
            found.kill()
            found.wait(patience)


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
