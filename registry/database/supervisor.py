"""Detached process that starts, watches and stops the Java process of the local graph server.

``python -m registry.database.supervisor HOME IDLE_SECONDS`` leaves the terminal and its parent, locks
the data folder and prints one line of JSON when the server listens (``{"bolt_port": ...}``) or has failed
(``{"error": ...}``). The Java process never outlives it: the supervisor stops it before it ends, and on Linux
the kernel kills it if the supervisor is killed.

Child processes that end with their parent, whatever ends it; small, as `almanac run` imports it first.
"""

from __future__ import annotations

import ctypes
import dataclasses
import importlib.util
import ipaddress
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import psutil
from filelock import FileLock, Timeout

from registry.database.embedded_files import (
    DATABASE_NAME,
    USER,
    ServerFiles,
    ServerState,
    end_process,
    machine_name,
    note_damage,
    process,
    write_digests,
    write_private,
)

PR_SET_PDEATHSIG = 1


def die_with_parent() -> Callable[[], None]:
    """Return a function for child processes, so that the kernel kills them with this one (Linux)."""
    libc = ctypes.CDLL(None)
    parent = os.getpid()

    def in_child() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return in_child


LISTEN_SECONDS = 60.0
LOCK_SECONDS = 45.0
"""Longer than an earlier server takes to stop."""
STOP_SECONDS = 20.0
ATTEMPTS = 3
"""Number of pairs of ports that are tried."""
HEAP = "1g"
LIMITS = (
    (resource.RLIMIT_AS, "address space (ulimit -v)", 4_000_000_000),
    (resource.RLIMIT_NOFILE, "open files (ulimit -n)", 512),
    (resource.RLIMIT_FSIZE, "size of a file (ulimit -f)", 1_000_000_000),
)
"""Limits of the operating system, their names, and what the server needs.

Measured: 3.7 GB of addresses and 229 open files."""
MAIN_CLASS = "com.arcadedb.server.ArcadeDBServer"


class StartFailed(Exception):
    """The server does not start; the message is the reason."""


class PortTaken(StartFailed):
    """Another program took the port that was free a moment ago."""


def main(arguments: list[str]) -> int:
    """Run the supervisor; see the module docstring."""
    files, idle_seconds = ServerFiles(Path(arguments[0])), float(arguments[1])
    _leave_parent()
    report = _take_over_streams(files)
    signal.signal(signal.SIGTERM, _on_stop)
    try:
        with FileLock(files.run_lock, timeout=LOCK_SECONDS):
            state = ServerState(
                supervisor=os.getpid(),
                machine=machine_name(),
                started_at=time.time(),
                idle_seconds=idle_seconds,
            )
            _supervise(files, state, report)
    except Timeout:
        report({"error": f"another server has the data folder {files.home}"})
        return 1
    except (StartFailed, OSError) as error:
        report({"error": str(error)})
        return 1
    return 0


def _supervise(files: ServerFiles, state: ServerState, report: Callable[[dict[str, object]], None]) -> None:
    """Start the server, report it, watch it and stop it."""
    old = files.read_state()
    if old is not None:
        # Its supervisor is gone, or we would not have the lock; end Java unless the kernel has done so.
        end_process(process(old.java, files.java_argument), STOP_SECONDS)
    files.log.write_bytes(b"")
    java = None
    try:
        _require_limits()
        files.write_state(state)
        note_damage(files)
        java, state = _start(files, state)
        report({"bolt_port": state.bolt_port})
        _watch(files, state, java)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        files.state.unlink(missing_ok=True)
        if java is not None:
            _stop(java)
            write_digests(files)


def _start(files: ServerFiles, state: ServerState) -> tuple[subprocess.Popen[bytes], ServerState]:
    """Start a server on free ports; return its process and state."""
    for _ in range(ATTEMPTS - 1):
        with suppress(PortTaken):
            return _start_once(files, state)
    return _start_once(files, state)


def _start_once(files: ServerFiles, state: ServerState) -> tuple[subprocess.Popen[bytes], ServerState]:
    """Start a server once, on the port of the last start if it is free."""
    bolt, http = _free_ports(2)
    bolt = _last_port(files) or bolt
    write_private(files.arguments, _java_arguments(files, bolt, http))
    java = _run_java(files)
    try:
        files.write_state(dataclasses.replace(state, java=java.pid))
        _await_listening(java, {bolt, http})
        listening = dataclasses.replace(state, java=java.pid, bolt_port=bolt)
        files.write_state(listening)
        write_private(files.port, str(bolt))
    except BaseException:
        _stop(java)
        raise
    return java, listening


def _require_limits() -> None:
    """Raise limits that are too small for the server as far as that is allowed.

    Raises:
        StartFailed: A limit that cannot be raised is too small.
    """
    for limit, name, needed in LIMITS:
        soft, hard = resource.getrlimit(limit)
        if soft == resource.RLIM_INFINITY or soft >= needed:
            continue
        if hard != resource.RLIM_INFINITY and hard < needed:
            raise StartFailed(
                f"the limit of {name} is {hard:,} and it needs {needed:,}: raise it, or set ALMANAC_DB to a "
                "server elsewhere"
            )
        resource.setrlimit(limit, (needed, hard))


def _watch(files: ServerFiles, state: ServerState, java: subprocess.Popen[bytes]) -> None:
    """Return when Java has ended or the server has been unused for `idle_seconds`."""
    pause = min(1.0, max(0.05, state.idle_seconds / 4))
    touched, idle_since = files.used.stat().st_mtime_ns, time.monotonic()  # the clock of files may be set
    while java.poll() is None:
        time.sleep(pause)
        before, touched = touched, files.used.stat().st_mtime_ns
        if touched != before or _is_connected(java, state.bolt_port):
            idle_since = time.monotonic()
        if time.monotonic() - idle_since <= state.idle_seconds:
            continue
        try:
            # Processes that get the address touch `used` under this lock: before this check or after our end.
            with FileLock(files.start_lock, timeout=0):
                if files.used.stat().st_mtime_ns == touched:
                    files.state.unlink(missing_ok=True)
                    return
        except Timeout:
            continue


def _is_connected(java: subprocess.Popen[bytes], port: int) -> bool:
    return any(one.status == psutil.CONN_ESTABLISHED and one.laddr.port == port for one in _connections(java))


def _await_listening(java: subprocess.Popen[bytes], ports: set[int]) -> None:
    """Wait until Java listens on all ports, on loopback only."""
    deadline = time.monotonic() + LISTEN_SECONDS
    while time.monotonic() < deadline:
        if java.poll() is not None:
            raise StartFailed(f"the Java process ended with status {java.returncode}")
        missing = ports - _listening(java)
        if not missing:
            return
        # ArcadeDB does not end if a port is taken: it goes on without it.
        if {port for port in missing if _is_taken(port)} - _listening(java):
            raise PortTaken("another program took its port")
        time.sleep(0.1)
    raise StartFailed(f"the server does not listen after {LISTEN_SECONDS:.0f} s")


def _listening(java: subprocess.Popen[bytes]) -> set[int]:
    addresses = [one.laddr for one in _connections(java) if one.status == psutil.CONN_LISTEN]
    for address in addresses:
        if not ipaddress.ip_address(address.ip).is_loopback:
            raise StartFailed(f"the server listens on {address.ip}, not only on this machine")
    return {address.port for address in addresses}


def _connections(java: subprocess.Popen[bytes]) -> list[Any]:
    try:
        return list(psutil.Process(java.pid).net_connections("tcp"))
    except psutil.Error:
        return []


def _is_taken(port: int) -> bool:
    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex(("127.0.0.1", port)) == 0


def _java_arguments(files: ServerFiles, bolt: int, http: int) -> str:
    """Return the argument file of the Java process."""
    settings = {
        "server.rootPath": files.data,
        "server.rootPasswordPath": files.password,
        "server.defaultDatabases": f"{DATABASE_NAME}[{USER}]",
        "server.plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
        "server.logsDirectory": files.data / "log",
        "bolt.host": "127.0.0.1",
        "bolt.port": bolt,
        "server.httpIncomingHost": "127.0.0.1",
        "server.httpIncomingPort": http,
        "ha.enabled": "false",
        # A committed transaction survives loss of power.
        "txWalFlush": 2,
    }
    lines = [
        "-Xms64m",
        f"-Xmx{HEAP}",
        "-XX:+ExitOnOutOfMemoryError",
        "-Djava.net.preferIPv4Stack=true",
        "-Djava.awt.headless=true",
        "--add-opens=java.base/java.util.concurrent.atomic=ALL-UNNAMED",
        "--add-opens=java.base/java.nio.channels.spi=ALL-UNNAMED",
        *(f"-Darcadedb.{key}={value}" for key, value in settings.items()),
        "-cp",
        f"{_wheel() / 'jars'}{os.sep}*",
        MAIN_CLASS,
    ]
    return "".join(f"{_quoted(line)}\n" for line in lines)


def _quoted(argument: str) -> str:
    escaped = argument.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _wheel() -> Path:
    # Not imported: the package would load a Java virtual machine into this process.
    found = importlib.util.find_spec("arcadedb_embedded")
    if found is None or not found.submodule_search_locations:
        raise StartFailed("the package arcadedb-embedded is not installed")
    return Path(found.submodule_search_locations[0])


def _run_java(files: ServerFiles) -> subprocess.Popen[bytes]:
    # The server keeps its first password; the file is authoritative.
    (files.data / "config" / "server-users.jsonl").unlink(missing_ok=True)
    java = _wheel() / "jre" / "bin" / "java"
    if not os.access(java, os.X_OK):
        raise StartFailed(f"{java} is missing or cannot be run")
    die_with_us = die_with_parent() if sys.platform == "linux" else None
    return subprocess.Popen(  # noqa: S603
        [java, files.java_argument],
        cwd=files.data,
        stdin=subprocess.DEVNULL,
        preexec_fn=die_with_us,
    )


def _stop(java: subprocess.Popen[bytes]) -> None:
    java.terminate()
    try:
        java.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        java.kill()
        java.wait()


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def _last_port(files: ServerFiles) -> int | None:
    """Return the port of the last start if it is free: clients that wait for the server find it again."""
    with suppress(OSError, ValueError, OverflowError), socket.socket() as one:
        port = int(files.port.read_text("ascii"))
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that were just closed
        one.bind(("127.0.0.1", port))
        return port
    return None


def _leave_parent() -> None:
    """Become a child of init: the process that started us may end, and need not wait for us."""
    if os.fork():
        os._exit(0)
    os.setsid()
    os.umask(0o077)


def _take_over_streams(files: ServerFiles) -> Callable[[dict[str, object]], None]:
    """Send all output to the log; return a function that writes one line to the original output."""
    pipe = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    log = os.open(files.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    os.close(nowhere)

    def report(message: dict[str, object]) -> None:
        # Only the first report counts; if the parent has ended, the next process reads the state file.
        with suppress(OSError, ValueError), pipe:
            pipe.write(json.dumps(message) + "\n")

    return report


def _on_stop(number: int, frame: object) -> NoReturn:
    raise SystemExit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
