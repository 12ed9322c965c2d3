"""The embedded server: one a data folder, found by all, gone when nobody needs it; its files."""

from __future__ import annotations

import ipaddress
import os
import re
import resource
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest
from filelock import FileLock

from registry.database import embedded_files, supervisor
from registry.database.driver import Database
from registry.database.embedded_files import ServerFiles, ServerState, end_process, process, resident_bytes
from registry.database.embedded_server import ServerAddress, _await_answer, ensure_server, status, stop
from registry.errors import DatabaseError, DatabaseUnavailable
from tests.support.paths import ROOT
from tests.support.waiting import PATIENCE, SteeredClock, comes_true, has_ended

STATE = ServerState(supervisor=1, java=2, bolt_port=7687, machine="here", started_at=3.5, idle_seconds=60.0)


def test_a_state_is_read_as_it_was_written(tmp_path: Path) -> None:
    files = ServerFiles(tmp_path / "home")
    assert files.read_state() is None
    files.prepare()
    files.write_state(STATE)
    assert files.read_state() == STATE
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (files.folder, files.data, files.state)]
    assert modes == [0o700, 0o700, 0o600]
    assert [one.name for one in files.folder.iterdir()] == ["state.json"]
    for text in ("{half a", "[]", '{"supervisor": 1}'):
        files.state.write_text(text, "utf-8")
        assert files.read_state() is None


def test_a_password_is_made_once(tmp_path: Path) -> None:
    files = ServerFiles(tmp_path)
    files.prepare()
    password = files.read_password()
    assert len(password) == 32
    assert files.read_password() == password
    assert stat.S_IMODE(files.password.stat().st_mode) == 0o600


def test_a_process_is_recognised_by_its_arguments(processes: None) -> None:
    # A process has no arguments for a moment after Popen returns; cat has them when it answers.
    pipe = subprocess.PIPE
    with subprocess.Popen(["cat", "-u", "-"], stdin=pipe, stdout=pipe, bufsize=0) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"ready\n")
        assert child.stdout.readline() == b"ready\n"
        found = process(child.pid, "-u")
        assert found == psutil.Process(child.pid)
        assert resident_bytes(found) > 0
        assert process(child.pid, "-v") is None
        end_process(found, 10.0)
        child.wait()
        assert process(child.pid, "-u") is None
        assert resident_bytes(found) == 0
    assert process(0) is None
    assert process(os.getpid()) is not None
    end_process(None, 1.0)


def test_data_of_a_replacement_that_was_killed_are_put_back_and_replaced_ones_deleted(tmp_path: Path) -> None:
    files = ServerFiles(tmp_path)
    files.prepare()  # as another process does meanwhile
    (files.earlier / "databases").mkdir(parents=True)
    files.put_back()
    assert (files.data / "databases").is_dir()
    assert not files.earlier.exists()
    files.put_back()
    assert (files.data / "databases").is_dir()
    (files.earlier / "databases" / "old").mkdir(parents=True)
    files.put_back()
    assert [one.name for one in files.data.iterdir()] == ["databases"]
    assert list((files.data / "databases").iterdir()) == []
    assert not files.earlier.exists()


def test_the_log_tells_of_too_little_memory(tmp_path: Path) -> None:
    files = ServerFiles(tmp_path)
    assert files.out_of_memory() == ""
    files.prepare()
    files.log.write_bytes(b"started\n" * 2000)
    assert files.out_of_memory() == ""
    with files.log.open("ab") as log:
        log.write(b"Terminating due to java.lang.OutOfMemoryError: Java heap space\n")
    assert "too little memory" in files.out_of_memory()


def test_a_taken_port_is_replaced(processes: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ArcadeDB stays alive without its HTTP port; such a server is not used."""
    files = ServerFiles(tmp_path / "data folder")
    ensure_server(files.home)  # creates the database
    stop(files.home)
    free = supervisor._free_ports
    with socket.create_server(("127.0.0.1", 0)) as taken:
        offers = [[free(1)[0], taken.getsockname()[1]], free(2)]
        monkeypatch.setattr(supervisor, "_free_ports", lambda count: offers.pop(0))
        begun = ServerState(
            supervisor=os.getpid(), machine=embedded_files.machine_name(), started_at=0.0, idle_seconds=60.0
        )
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


START_LIMITED = """
import resource, sys
from pathlib import Path
from registry.database.embedded_server import ensure_server
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
    command = [sys.executable, "-c", START_LIMITED, *map(str, TOO_SMALL[name]), str(tmp_path)]
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
from registry.database.supervisor import die_with_parent
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


MARK = "MERGE (m:Mark {id: $id})"
START = """
import sys
from pathlib import Path
from registry.database.embedded_server import ensure_server
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
