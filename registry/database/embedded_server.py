"""Find, start on demand and stop the local graph server, which needs no installation.

ArcadeDB runs as a child of a detached supervisor (`registry.database.supervisor`) and listens on
loopback only; every process of the same user finds it by the files of `registry.database.embedded_files`. No
other process opens the database files, since that would lock out all others.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

import registry
from registry.database.driver import Database
from registry.database.embedded_files import (
    DATABASE_NAME,
    USER,
    ServerFiles,
    ServerState,
    damage_text,
    end_process,
    machine_name,
    process,
    resident_bytes,
)
from registry.errors import DatabaseUnavailable
from registry.installation import no_space
from registry.progress import Progress, silent

IDLE_SECONDS = 900.0
START_SECONDS = 120.0
"""Longest wait for a start, including the stop of an earlier server."""
ANSWER_SECONDS = 20.0
"""Longest wait for the first answer of a listening server."""
STOP_SECONDS = 40.0
SUPERVISOR = "registry.database.supervisor"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """Address and credentials of a server."""

    uri: str
    user: str
    password: str = field(repr=False)
    name: str | None = None
    """Arguments of `Database.connect`."""
    pid: int | None = None
    """Supervisor of the server, if it is the local one."""
    home: Path | None = None
    """Data folder of the local server."""

    def connect(self) -> Database:
        """Connect to the server."""
        return Database.connect(
            self.uri, user=self.user, password=self.password, name=self.name, folder=self.home
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """State of a running local server."""

    address: ServerAddress
    started_at: float
    """Seconds since the epoch."""
    idle_seconds: float
    """It stops after this time without use."""
    memory_bytes: int
    """Resident memory of the server."""


def ensure_server(
    home: Path, *, idle_seconds: float = IDLE_SECONDS, progress: Progress = silent
) -> ServerAddress:
    """Return the address of the server of a data folder; start the server if none answers.

    Args:
        home: Data folder; created if it is missing.
        idle_seconds: A server that is started now stops by itself after this time without an open connection.

    Raises:
        DatabaseUnavailable: The server does not start, or another machine runs one on the folder.
    """
    files = ServerFiles(home.resolve())
    if not hasattr(os, "fork"):
        raise _failure(files, "it needs Linux or macOS; on this system give the address of a Neo4j server")
    with _exclusive(files):
        files.used.touch(0o600)
        running = _running(files)
        if running is not None and _answers(running):
            return running
        _end(files)
        return _start(files, idle_seconds, progress)


def status(home: Path) -> ServerStatus | None:
    """Return the running server of a data folder, or None; starts nothing."""
    files = ServerFiles(home.resolve())
    state = files.read_state()
    address = _running(files)
    if state is None or address is None:
        return None
    return ServerStatus(
        address=address,
        started_at=state.started_at,
        idle_seconds=state.idle_seconds,
        memory_bytes=resident_bytes(process(state.java, files.java_argument)),
    )


def stop(home: Path) -> bool:
    """Stop the server of a data folder; return False if none was running.

    Raises:
        DatabaseUnavailable: Another machine runs it.
    """
    files = ServerFiles(home.resolve())
    if not files.folder.is_dir():
        return False
    with _exclusive(files):
        was_running = _running(files) is not None
        _end(files)
    return was_running


def replace_data(home: Path, fresh: Path, *, keep: bool = False) -> Path | None:
    """Stop the server of a data folder and put other data in place of its own.

    Args:
        fresh: Data of a stopped server, on the same file system; moved.
        keep: Keep the replaced data, in the folder that is returned; otherwise they are deleted.
    """
    files = ServerFiles(home.resolve())
    with _exclusive(files):
        _end(files)
        files.put_back()
        kept = files.mark_kept() if keep else None
        files.data.replace(files.earlier)
        fresh.replace(files.data)
        files.put_back()
    return kept


@contextmanager
def _exclusive(files: ServerFiles) -> Iterator[None]:
    """Hold the lock under which processes find, start and stop the server one at a time."""
    try:
        files.prepare()
        with FileLock(files.start_lock, timeout=START_SECONDS * 2):
            yield
    except Timeout as error:
        raise _failure(files, "another process has been starting it for too long") from error
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise _failure(files, str(error)) from error
        raise DatabaseUnavailable(
            str(files.home),
            f"{error.filename} cannot be written ({error.strerror})",
            "set ALMANAC_HOME to a folder that you can write, or --db to the address of a server",
        ) from error


def _running(files: ServerFiles) -> ServerAddress | None:
    """Return the address of the state file if both processes live on this machine, else None."""
    state = files.read_state()
    if state is None or not state.bolt_port or state.machine != machine_name():
        return None
    if _supervisor(files, state) is None or process(state.java, files.java_argument) is None:
        return None
    return ServerAddress(
        uri=f"bolt://127.0.0.1:{state.bolt_port}",
        user=USER,
        password=files.read_password(),
        name=DATABASE_NAME,
        pid=state.supervisor,
        home=files.home,
    )


def _answers(address: ServerAddress) -> bool:
    try:
        address.connect().close()
    except DatabaseUnavailable:
        return False
    return True


def _start(files: ServerFiles, idle_seconds: float, progress: Progress) -> ServerAddress:
    """Start the server and return its address once it answers."""
    files.put_back()
    report = _launch(files, idle_seconds, progress)
    if "bolt_port" not in report:
        raise _failure(files, str(report.get("error", "its supervisor ended")))
    state = files.read_state()
    address = _running(files) if state and state.bolt_port == report["bolt_port"] else None
    if address is None:
        raise _failure(files, "it ended at once")
    try:
        _await_answer(files, address)
    except DatabaseUnavailable as error:
        _end(files)
        raise _failure(files, error.reason) from error
    return address


def _await_answer(files: ServerFiles, address: ServerAddress) -> None:
    """Wait until a listening server answers a query: on its first start it creates its database.

    Raises:
        DatabaseUnavailable: It does not answer in time, or has ended.
    """
    deadline = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            address.connect().close()
        except DatabaseUnavailable:
            if time.monotonic() > deadline or _running(files) is None:
                raise
            time.sleep(0.1)
        else:
            return


def _launch(files: ServerFiles, idle_seconds: float, progress: Progress) -> dict[str, object]:
    """Start the supervisor and return its report; empty if it died."""
    files.read_password()
    command = [sys.executable, "-P", "-m", SUPERVISOR, str(files.home), str(idle_seconds)]
    package_root = str(Path(registry.__file__).parents[1])
    search = os.pathsep.join(filter(None, (package_root, os.environ.get("PYTHONPATH"))))
    with subprocess.Popen(  # noqa: S603 - our own interpreter and module
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": search},
        cwd=files.folder,
    ) as supervisor:
        began = time.monotonic()
        while (waited := time.monotonic() - began) < START_SECONDS:
            progress("starting the local graph server", waited)
            try:
                line, _ = supervisor.communicate(timeout=0.5)
            except subprocess.TimeoutExpired:
                continue
            return dict(json.loads(line)) if line.strip() else {}
    _end(files)
    return {"error": f"it did not start within {START_SECONDS:.0f} s"}


def _end(files: ServerFiles) -> None:
    """End the processes of the state file; the data folder is free afterwards."""
    state = files.read_state()
    if state is None:
        return
    if state.machine != machine_name():
        _require_unlocked(files, state)
    else:
        end_process(_supervisor(files, state), STOP_SECONDS)
        end_process(process(state.java, files.java_argument), STOP_SECONDS)
    files.state.unlink(missing_ok=True)


def _require_unlocked(files: ServerFiles, state: ServerState) -> None:
    """Raise if a supervisor on another machine holds the lock of the data folder."""
    try:
        with FileLock(files.run_lock, timeout=0):
            return
    except Timeout:
        raise DatabaseUnavailable(
            str(files.home),
            f"the server of this data folder runs on {state.machine}",
            "work there, stop it there (almanac db stop), or set ALMANAC_HOME to another folder",
        ) from None


def _supervisor(files: ServerFiles, state: ServerState) -> psutil.Process | None:
    return process(state.supervisor, SUPERVISOR, str(files.home))


def _failure(files: ServerFiles, why: str) -> DatabaseUnavailable:
    damaged = damage_text(files.home)
    return DatabaseUnavailable(
        str(files.home),
        f"the local graph server does not start: {no_space(files.home) or why}",
        f"its log is {files.log}; {damaged or 'almanac doctor checks the rest'}",
    )
