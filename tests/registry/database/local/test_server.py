"""The embedded server: one a data folder, found by all, and gone when nobody needs it."""

from __future__ import annotations

import ipaddress
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
from filelock import FileLock

from registry.database.driver import Database
from registry.database.local import supervisor
from registry.database.local.files import ServerFiles, ServerState
from registry.database.local.server import ServerAddress, _await_answer, ensure_server, status, stop
from registry.errors import DatabaseError, DatabaseUnavailable
from tests.registry.database.local.test_files import STATE
from tests.support.waiting import PATIENCE, comes_true, has_ended

MARK = "MERGE (m:Mark {id: $id})"
START = """
import sys
from pathlib import Path
from registry.database.local.server import ensure_server
address = ensure_server(Path(sys.argv[1]), idle_seconds=300)
address.connect().close()
print(address.uri, address.pid)
"""
MARKS = "MATCH (m:Mark) RETURN collect(m.id) AS ids"


@pytest.fixture(scope="module")
def home(processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder that the tests of this module kill and start servers on, with a blank in its name."""
    folder = tmp_path_factory.mktemp("local") / "data folder"
    yield folder
    stop(folder)


@pytest.fixture
def running(home: Path) -> ServerAddress:
    return ensure_server(home, idle_seconds=300)


def state_of(home: Path) -> ServerState:
    state = ServerFiles(home).read_state()
    assert state is not None
    return state


def servers_on(home: Path) -> list[int]:
    argument = f"@{ServerFiles(home).arguments}"
    return [one.pid for one in psutil.process_iter(["cmdline"]) if argument in (one.info["cmdline"] or ())]


def mark(address: ServerAddress, identity: str) -> None:
    with address.connect() as database:
        database.write(lambda transaction: transaction.run(MARK, id=identity))


def marks(address: ServerAddress) -> set[str]:
    with address.connect() as database:
        rows = database.read(lambda transaction: transaction.run(MARKS))
        return set(rows[0]["ids"])


def test_processes_that_start_at_once_share_one_server(home: Path) -> None:
    # Not multiprocessing: pages under test put a module of their own in place of __main__.
    started = [
        subprocess.Popen([sys.executable, "-c", START, str(home)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    found = {process.communicate(timeout=PATIENCE)[0] for process in started}
    assert [process.returncode for process in started] == [0] * 4
    assert len(found) == 1
    assert len(servers_on(home)) == 1


def test_a_running_server_is_found_and_listens_on_loopback_only(home: Path, running: ServerAddress) -> None:
    assert ensure_server(home) == running
    shown = status(home)
    assert shown is not None
    assert (shown.address, shown.idle_seconds) == (running, 300)
    assert 50e6 < shown.memory_bytes < 1.5e9
    assert shown.started_at <= time.time()
    pids, listening = (state_of(home).java, state_of(home).supervisor), (psutil.CONN_LISTEN, psutil.CONN_NONE)
    found = [one for pid in pids for one in psutil.Process(pid).net_connections("inet")]
    addresses = [one.laddr for one in found if one.status in listening]
    assert len(addresses) == 2  # Bolt and HTTP
    assert all(ipaddress.ip_address(address.ip).is_loopback for address in addresses)


def test_nobody_else_can_read_its_password(home: Path, running: ServerAddress) -> None:
    assert len(running.password) >= 20
    assert running.password not in repr(running)
    for pid in (state_of(home).java, state_of(home).supervisor):
        process = psutil.Process(pid)
        assert running.password not in " ".join(process.cmdline())
        assert running.password not in " ".join(process.environ().values())
    password, paths = running.password.encode(), list(home.rglob("*"))
    holders = [path for path in paths if path.is_file() and password in path.read_bytes()]
    assert holders == [ServerFiles(home).password]
    for path in paths:
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077 or path.suffix == ".lock", path
    assert not stat.S_IMODE(ServerFiles(home).folder.stat().st_mode) & 0o077


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux kills children with their parent")
def test_java_dies_with_a_killed_supervisor_but_no_data(home: Path, running: ServerAddress) -> None:
    mark(running, "before kill -9 of the supervisor")
    state = state_of(home)
    os.kill(state.supervisor, signal.SIGKILL)
    assert comes_true(lambda: has_ended(state.java))
    assert status(home) is None
    again = ensure_server(home, idle_seconds=300)
    assert again.pid != running.pid
    assert "before kill -9 of the supervisor" in marks(again)


def test_a_killed_java_is_noticed_and_replaced(home: Path, running: ServerAddress) -> None:
    mark(running, "before kill -9 of java")
    state = state_of(home)
    with running.connect() as database:
        os.kill(state.java, signal.SIGKILL)
        with pytest.raises(DatabaseUnavailable):
            database.read(lambda transaction: transaction.run(MARKS))
    assert comes_true(lambda: has_ended(state.supervisor))
    assert not ServerFiles(home).state.exists()
    assert "before kill -9 of java" in marks(ensure_server(home, idle_seconds=300))


def test_an_interrupted_start_is_started_again(home: Path) -> None:
    """Who started the server is killed while it comes up; nobody was given its address."""
    stop(home)
    files = ServerFiles(home)
    starter = subprocess.Popen([sys.executable, "-c", START, str(home)])
    assert comes_true(lambda: (state := files.read_state()) is not None and state.java > 0)
    half = state_of(home)
    starter.kill()
    starter.wait()
    address = ensure_server(home, idle_seconds=300)
    assert marks(address) is not None
    assert has_ended(half.java) or half.supervisor == address.pid
    assert servers_on(home) == [state_of(home).java]


def test_a_state_file_of_processes_that_are_gone_is_not_believed(home: Path, running: ServerAddress) -> None:
    state = state_of(home)
    stop(home)
    files = ServerFiles(home)
    # The ids are used again by other programs: they are neither believed nor killed.
    with subprocess.Popen(["sleep", "60"]) as other:
        files.write_state(replace(state, supervisor=other.pid, java=other.pid))
        assert status(home) is None
        assert stop(home) is False
        files.state.write_text("{half a", "utf-8")
        assert status(home) is None
        assert other.poll() is None
        other.kill()


def test_it_stops_by_itself_but_not_under_an_open_connection(processes: None, tmp_path: Path) -> None:
    address = ensure_server(tmp_path, idle_seconds=0.4)
    state = state_of(tmp_path)
    port, java = state.bolt_port, cast("subprocess.Popen[bytes]", psutil.Process(state.java))
    with address.connect() as database:
        assert supervisor._is_connected(java, port)  # what a supervisor waits for the end of
        database.query("RETURN 1")
    assert comes_true(lambda: has_ended(state.supervisor))
    assert has_ended(state.java)
    assert status(tmp_path) is None


def test_a_server_that_cannot_start_is_an_error_and_leaves_nothing(processes: None, tmp_path: Path) -> None:
    (tmp_path / "graph").mkdir(parents=True)
    (tmp_path / "graph" / "databases").write_text("in the way", "utf-8")
    with pytest.raises(DatabaseUnavailable) as caught:
        ensure_server(tmp_path)
    assert "does not start" in caught.value.reason
    assert caught.value.remedy
    assert servers_on(tmp_path) == []
    assert not ServerFiles(tmp_path).state.exists()


def test_a_server_that_makes_its_database_is_waited_for(
    home: Path, running: ServerAddress, monkeypatch: Any
) -> None:
    real, refusals = ServerAddress.connect, [2]

    def connect(address: ServerAddress) -> Database:
        if refusals[0]:
            refusals[0] -= 1
            raise DatabaseUnavailable(address.uri, "the server has no database 'almanac'", "wait")
        return real(address)

    monkeypatch.setattr(ServerAddress, "connect", connect)
    _await_answer(ServerFiles(home), running)
    assert refusals == [0]


def test_a_folder_that_cannot_be_made_or_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(DatabaseUnavailable):
        ensure_server(tmp_path / "file" / "home")
    reason = r"/sys/almanac cannot be written \(.*\); set ALMANAC_HOME to"
    with pytest.raises(DatabaseUnavailable, match=reason):
        ensure_server(Path("/sys/almanac"))


def test_stopping_what_does_not_run_makes_nothing(tmp_path: Path) -> None:
    assert stop(tmp_path / "none") is False
    assert status(tmp_path / "none") is None
    assert not (tmp_path / "none").exists()


def test_a_server_of_another_machine_is_left_alone(tmp_path: Path) -> None:
    files = ServerFiles(tmp_path)
    files.prepare()
    files.write_state(replace(STATE, machine="login2"))
    with FileLock(files.run_lock), pytest.raises(DatabaseUnavailable, match="runs on login2"):
        ensure_server(tmp_path)
    assert files.state.exists()


def test_stopping_ends_both_processes(home: Path, running: ServerAddress) -> None:
    state = state_of(home)
    assert stop(home) is True
    assert (has_ended(state.supervisor), has_ended(state.java)) == (True, True)
    assert stop(home) is False


OPEN = {"/": 200, "/index.html": 200, "/api/v1/ready": 204, "/api/v1/health": 204}
CLOSED = (
    *("/api/v1/server", "/api/v1/databases", "/api/v1/query/almanac/sql/select%201", "/api/v1/mcp"),
    *("/api/v1/docs", "/api/v1/openapi.json", "/ws", "/api/v1/export/almanac", "/api/v1/sessions"),
    *("/prometheus", "/metrics", "/studio", "/config/server-users.jsonl", "/../config/server-users.jsonl"),
)


def test_without_the_password_http_gives_a_static_page_only(embedded_server: ServerAddress) -> None:
    """The server cannot be started without HTTP; docs/how-to/stored-data.md says what answers."""
    assert embedded_server.home is not None
    arguments = (embedded_server.home / "server" / "java.args").read_text()
    (port,) = re.findall(r"httpIncomingPort=(\d+)", arguments)
    answers = {}
    for path in (*OPEN, *CLOSED):
        connection = HTTPConnection("127.0.0.1", int(port), timeout=PATIENCE)
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read()
        answers[path] = answer.status
        assert b"almanac" not in text
        connection.close()
    assert {path: answers[path] for path in OPEN} == OPEN
    assert {answers[path] for path in CLOSED} <= {400, 401, 403, 404, 405}


def test_a_server_that_ended_with_too_little_memory_is_named(running: ServerAddress, home: Path) -> None:
    with running.connect() as database:
        with ServerFiles(home).log.open("a") as log:
            log.write("Terminating due to java.lang.OutOfMemoryError: Java heap space\n")
        os.kill(state_of(home).java, signal.SIGKILL)
        with pytest.raises(DatabaseError, match="too little memory") as found:
            database.write(lambda transaction: transaction.run(MARK, id="lost"))
        assert not isinstance(found.value, DatabaseUnavailable)
    assert comes_true(lambda: status(home) is None)
