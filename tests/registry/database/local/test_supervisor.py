"""The supervisor of the local server, without its own process; processes that end with their parent."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from registry.database.driver import Database
from registry.database.local import supervisor
from registry.database.local.files import ServerFiles, ServerState, machine_name
from registry.database.local.server import ensure_server, stop
from tests.registry.database.local.test_files import STATE
from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE, SteeredClock


def test_a_taken_port_is_replaced(processes: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ArcadeDB stays alive without its HTTP port; such a server is not used."""
    files = ServerFiles(tmp_path / "data folder")
    ensure_server(files.home)  # creates the database
    stop(files.home)
    free = supervisor._free_ports
    with socket.create_server(("127.0.0.1", 0)) as taken:
        offers = [[free(1)[0], taken.getsockname()[1]], free(2)]
        monkeypatch.setattr(supervisor, "_free_ports", lambda count: offers.pop(0))
        begun = ServerState(supervisor=os.getpid(), machine=machine_name(), started_at=0.0, idle_seconds=60.0)
        java, state = supervisor._start(files, begun)
        try:
            assert offers == []
            uri = f"bolt://127.0.0.1:{state.bolt_port}"
            Database.connect(uri, user="root", password=files.read_password()).close()
        finally:
            supervisor._stop(java)
            files.state.unlink()


def test_java_listens_on_loopback_with_our_folder_and_ports() -> None:
    files = ServerFiles(Path('/a "b"'))
    lines = supervisor._java_arguments(files, 1234, 1235).splitlines()
    assert lines[-1] == '"com.arcadedb.server.ArcadeDBServer"'
    assert {
        '"-Darcadedb.bolt.host=127.0.0.1"',
        '"-Darcadedb.bolt.port=1234"',
        '"-Darcadedb.server.httpIncomingPort=1235"',
        '"-Darcadedb.server.rootPath=/a \\"b\\"/graph"',
        '"-Darcadedb.txWalFlush=2"',  # commits are forced to disk
        '"-Xmx1g"',
    } <= set(lines)


START = """
import resource, sys
from pathlib import Path
from registry.database.local.server import ensure_server
from registry.errors import DatabaseUnavailable

resource.setrlimit(int(sys.argv[1]), (int(sys.argv[2]), int(sys.argv[2])))
try:
    ensure_server(Path(sys.argv[3]))
except DatabaseUnavailable as error:
    print(error)
"""


TOO_SMALL = {
    "address space (ulimit -v) is 2,000,000,000": (resource.RLIMIT_AS, 2_000_000_000),
    "open files (ulimit -n) is 100": (resource.RLIMIT_NOFILE, 100),
    "size of a file (ulimit -f) is 100,000": (resource.RLIMIT_FSIZE, 100_000),
}


@pytest.mark.parametrize("name", TOO_SMALL)
def test_a_limit_that_is_too_small_is_named(processes: None, tmp_path: Path, name: str) -> None:
    command = [sys.executable, "-c", START, *map(str, TOO_SMALL[name]), str(tmp_path)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
    assert f"does not start: the limit of {name} and it needs" in shown
    assert "raise it, or set ALMANAC_DB" in shown
    assert not (tmp_path / "server" / "state.json").exists()


def test_a_limit_that_may_be_raised_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {one: (10, resource.RLIM_INFINITY) for one, _, _ in supervisor.LIMITS}
    given[resource.RLIMIT_FSIZE] = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    set_to: dict[int, tuple[int, int]] = {}
    monkeypatch.setattr(resource, "getrlimit", given.__getitem__)
    monkeypatch.setattr(resource, "setrlimit", set_to.__setitem__)
    supervisor._require_limits()
    assert set_to == {
        resource.RLIMIT_AS: (4_000_000_000, resource.RLIM_INFINITY),
        resource.RLIMIT_NOFILE: (512, resource.RLIM_INFINITY),
    }


def test_an_unused_server_stops_if_the_clock_was_set_back(tmp_path: Path, monkeypatch: Any) -> None:
    files = ServerFiles(tmp_path)
    files.used.parent.mkdir(parents=True, exist_ok=True)
    files.used.touch()
    tomorrow = time.time() + 86400
    os.utime(files.used, (tomorrow, tomorrow))
    clock = SteeredClock()
    monkeypatch.setattr(supervisor, "time", clock)
    monkeypatch.setattr(supervisor, "_is_connected", lambda java, port: clock.now < 1.0)
    java = cast("subprocess.Popen[bytes]", SimpleNamespace(poll=lambda: None))  # does not end
    supervisor._watch(files, replace(STATE, idle_seconds=0.2), java)
    assert 1.15 < clock.now < 1.35  # not under an open connection, then after 0.2 s


PARENT = """
import subprocess, sys, time
from registry.database.local.end_with_parent import die_with_parent
child = subprocess.Popen(["sleep", "600"], preexec_fn=die_with_parent())
print(child.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux does this")
def test_a_child_ends_with_a_killed_parent(processes: None) -> None:
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        assert child.is_running()
        os.kill(parent.pid, signal.SIGKILL)
    gone, _ = psutil.wait_procs([child], timeout=PATIENCE)
    assert gone == [child] or child.status() == psutil.STATUS_ZOMBIE
