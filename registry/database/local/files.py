"""What the local graph server and those who look for it keep on disk.

    HOME/server/start.lock   held while a server is looked for, started, or about to stop by itself
    HOME/server/run.lock     held by the supervisor as long as it lives: one server a data folder
    HOME/server/state.json   where the server is, written by the supervisor (0600)
    HOME/server/password     of the server's only user, made once (0600)
    HOME/server/java.args    argument file of the Java process (0600)
    HOME/server/used         touched by each process that is given the address
    HOME/server/server.log   output of the last start
    HOME/graph/              the server's data

The supervisor imports this and so keeps a process of a few megabytes: no numpy, no driver here.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

DATABASE_NAME = "almanac"
USER = "root"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """What the supervisor tells of its server.

    Attributes
    ----------
    supervisor, java : int
        Process ids; `java` is 0 while no Java process was started.
    bolt_port : int
        0 until the server listens.
    machine : str
        Host name: on a shared file system the processes may be another machine's.
    started_at : float
        Seconds since the epoch.
    idle_seconds : float
        The server stops by itself after so long without use.
    """

    supervisor: int
    java: int = 0
    bolt_port: int = 0
    machine: str
    started_at: float
    idle_seconds: float


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """Paths of one data folder."""

    home: Path

    @property
    def folder(self) -> Path:
        """Folder of everything but the data."""
        return self.home / "server"

    @property
    def start_lock(self) -> Path:
        """Lock that makes starts, stops and look-ups go one after the other."""
        return self.folder / "start.lock"

    @property
    def run_lock(self) -> Path:
        """Lock of the living supervisor."""
        return self.folder / "run.lock"

    @property
    def state(self) -> Path:
        """State file."""
        return self.folder / "state.json"

    @property
    def password(self) -> Path:
        """Password file."""
        return self.folder / "password"

    @property
    def arguments(self) -> Path:
        """Argument file of the Java process."""
        return self.folder / "java.args"

    @property
    def used(self) -> Path:
        """File whose time stamp is the last time that the address was given out."""
        return self.folder / "used"

    @property
    def log(self) -> Path:
        """Log of the supervisor and the server."""
        return self.folder / "server.log"

    @property
    def data(self) -> Path:
        """The server's root folder."""
        return self.home / "graph"

    def prepare(self) -> None:
        """Make the folders, closed to other users."""
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder.mkdir(exist_ok=True, mode=0o700)
        self.data.mkdir(exist_ok=True, mode=0o700)

    def read_password(self) -> str:
        """The password; made at random where there is none yet."""
        with suppress(FileNotFoundError):
            return self.password.read_text("ascii")
        write_private(self.password, secrets.token_urlsafe(24))
        return self.password.read_text("ascii")

    def read_state(self) -> ServerState | None:
        """What the supervisor wrote; None without a readable state file."""
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
    """Name of this machine."""
    return socket.gethostname()


def process(pid: int, *arguments: str) -> psutil.Process | None:
    """The living process with that id, if its command line holds those arguments.

    Process ids are used again; arguments that only our process has keep us from taking, and
    killing, somebody else's.
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
    """Resident memory of a process; 0 for one that is gone."""
    try:
        return int(found.memory_info().rss) if found else 0
    except psutil.Error:
        return 0


def end_process(found: psutil.Process | None, patience: float) -> None:
    """Ask a process to end, kill it when it has not ended after `patience` seconds."""
    if found is None:
        return
    with suppress(psutil.NoSuchProcess):
        found.terminate()
        try:
            found.wait(patience)
        except psutil.TimeoutExpired:
            found.kill()
            found.wait(patience)
