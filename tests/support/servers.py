"""What all workers of a test run share: one of each server, and registries that are filled once.

The process that was started (the controller of pytest-xdist, or pytest itself) makes a folder and names it in
the environment. Whoever needs a server first starts it there; the controller ends all of them.
"""

from __future__ import annotations

import base64
import dataclasses
import importlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock

from registry.database.embedded_files import ServerFiles
from registry.database.embedded_server import ServerAddress, ensure_server, stop
from registry.registry import Registry
from registry.upkeep.backup import backup
from registry.upkeep.restore import restore
from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE, comes_true, has_ended

FOLDER, CONTROLLER = "FABRIC_TESTS_FOLDER", "FABRIC_TESTS_CONTROLLER"
"""Environment variables: the folder of this run, and the process that ends it."""
IDLE_SECONDS = 3600.0
LONGEST_START = 900.0
"""Seconds: the first start of Neo4j on a machine copies its jars."""


class Unavailable(Exception):
    """Raised if a shared thing cannot run on this machine; the message says why."""


def begin() -> None:
    """Make the folder of a run; called by its controller alone."""
    os.environ[FOLDER] = tempfile.mkdtemp(prefix="fabric-tests-")
    os.environ[CONTROLLER] = str(os.getpid())


def end() -> None:
    """Stop all that was started for the run and delete its folder; called by its controller alone."""
    run = folder()
    keepers = [keeper for own in run.iterdir() if (keeper := _keeper(own)) is not None]
    try:
        for keeper in keepers:
            with suppress(psutil.NoSuchProcess):  # it may end at this moment, after Ctrl-C
                keeper.terminate()
        stop(run / "embedded")
        for keeper in psutil.wait_procs(keepers, 60)[1]:
            keeper.kill()
    finally:
        shutil.rmtree(run, ignore_errors=True)


def _keeper(own: Path) -> psutil.Process | None:
    """Return the process that holds open what has this folder, or None."""
    with suppress(OSError, ValueError, psutil.NoSuchProcess):
        return psutil.Process(int((own / "keeper.pid").read_text()))
    return None


def folder() -> Path:
    return Path(os.environ[FOLDER])


def worker() -> str:
    return os.environ.get("PYTEST_XDIST_WORKER", "alone")


def variables(address: ServerAddress) -> dict[str, str]:
    """Return the settings by which commands use a server."""
    found = {"ALMANAC_DB": address.uri, "ALMANAC_DB_USER": address.user}
    return found | {"ALMANAC_DB_PASSWORD": address.password, "ALMANAC_DB_NAME": address.name or ""}


def opened(address: ServerAddress) -> Registry:
    return Registry.open(address.uri, user=address.user, password=address.password, name=address.name)


# --- the embedded server ---------------------------------------------------------------------------------


def embedded(name: str) -> ServerAddress:
    """Return the address of an empty database of this worker on the embedded server of the run."""
    home = folder() / "embedded"
    server = ensure_server(home, idle_seconds=IDLE_SECONDS)
    database = f"{name}_{worker()}"
    _command(home, server, f"create database {database}")
    return dataclasses.replace(server, name=database)


def _command(home: Path, server: ServerAddress, text: str) -> None:
    """Give the server a command over HTTP, since Bolt knows none for databases."""
    port = re.findall(r"httpIncomingPort=(\d+)", ServerFiles(home.resolve()).arguments.read_text("utf-8"))[0]
    login = base64.b64encode(f"{server.user}:{server.password}".encode()).decode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v1/server",
        json.dumps({"command": text}).encode(),
        {"Authorization": f"Basic {login}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        answer.read()


def filled(name: str, fill: Callable[[Registry], Any]) -> tuple[ServerAddress, Any]:
    """Return a database of this worker that `fill` has filled, and what `fill` returned (as JSON).

    The first worker fills its own and saves a backup, from which others restore theirs.
    """
    address = embedded(name)
    dump, answer = folder() / f"{name}.backup", folder() / f"{name}.json"
    with FileLock(folder() / f"{name}.lock"), opened(address) as registry:
        if dump.exists():
            restore(registry.database, dump)
        else:
            answer.write_text(json.dumps(fill(registry)))
            backup(registry.database, dump)
    return address, json.loads(answer.read_text())


@contextmanager
def neo4j_alone() -> Iterator[None]:
    """Let one worker at a time use Neo4j, which has a single database."""
    with FileLock(folder() / "neo4j-in-use.lock"):
        yield


# --- other servers, each held open by a process of its own ---------------------------------------------


def kept(name: str, manager: str) -> Any:
    """Return what a context manager yields (as JSON) that a keeper process holds open until the run ends.

    Args:
        manager: ``module:function``; the function gets the folder of what it starts.

    Raises:
        Unavailable: The function raised it.
    """
    own = folder() / name
    own.mkdir(exist_ok=True)
    ready, log = own / "ready.json", own / "keeper.log"
    with FileLock(folder() / f"{name}.lock"):
        if not ready.exists():
            running = _keeper(own)  # of a worker that died while it waited
            keeper = _start(manager, own, log) if running is None else running.pid
            (own / "keeper.pid").write_text(str(keeper))
            comes_true(ready.exists, LONGEST_START, unless=lambda: has_ended(keeper))
            assert ready.exists(), log.read_text("utf-8", "replace")
    answer = json.loads(ready.read_text())
    if "unavailable" in answer:
        raise Unavailable(answer["unavailable"])
    return answer["value"]


def _start(manager: str, own: Path, log: Path) -> int:
    """Start a keeper and return its process, which may live longer than this worker and a `Popen`."""
    words = [sys.executable, "-m", "tests.support.servers", manager, str(own), os.environ[CONTROLLER]]
    output = (1, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    streams = [(os.POSIX_SPAWN_OPEN, *output), (os.POSIX_SPAWN_DUP2, 1, 2)]
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    return os.posix_spawn(sys.executable, words, variables, file_actions=streams)


def main(manager: str, own: str, controller: str) -> None:
    """Hold a context manager open until the controller ends or asks for the end."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    module, _, function = manager.partition(":")
    ready = Path(own, "ready.json")
    try:
        with getattr(importlib.import_module(module), function)(Path(own)) as value:
            _write(ready, {"value": value})
            psutil.Process(int(controller)).wait()
    except Unavailable as reason:
        _write(ready, {"unavailable": str(reason)})


def _write(path: Path, value: object) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(value))
    part.rename(path)


if __name__ == "__main__":
    # The module by its own name, so that its exceptions are those that others raise.
    importlib.import_module("tests.support.servers").main(*sys.argv[1:])
