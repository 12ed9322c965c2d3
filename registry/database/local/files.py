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
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

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
    """State of a server, as written by its supervisor.

    Attributes
    ----------
    supervisor, java : int
        Process ids; `java` is 0 until the Java process is started.
    bolt_port : int
        0 until the server listens.
    machine : str
        Host name: on a shared file system the processes may run on another machine.
    started_at : float
        Seconds since the epoch.
    idle_seconds : float
        The server stops by itself after this time without use.
    """

    supervisor: int
    java: int = 0
    bolt_port: int = 0
    machine: str
    started_at: float
    idle_seconds: float


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
