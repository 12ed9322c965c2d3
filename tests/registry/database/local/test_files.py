"""Files of a data folder, and the processes that they name."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import psutil

from registry.database.local.files import ServerFiles, ServerState, end_process, process, resident_bytes

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
