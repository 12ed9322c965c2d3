"""Commands of the service: what they write is queued; they end in time, with everything that they started."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from almanac.service import collectors
from almanac.service.collectors import CommandFailed, StillRunning, Surroundings, run_task
from almanac.service.configuration import Task
from almanac.service.entries import SpoolFull, read_entry
from almanac.service.spool import Spool
from ingest.options import Options
from tests.support.waiting import comes_true, has_ended


@pytest.fixture
def around(tmp_path: Path, processes: None) -> Surroundings:
    environment = {**os.environ, "ALMANAC_DB_PASSWORD": "hidden"}
    return Surroundings(Spool(tmp_path / "spool", 100_000), threading.Event(), environment)


def collector(*command: str, timeout: float = 60, name: str = "scan") -> Task:
    options = Options(cluster="c")
    return Task(name=name, command=command, interval=60, timeout=timeout, jitter=0, options=options)


def shell(text: str, *words: str, timeout: float = 60) -> Task:
    return collector("sh", "-c", text, "sh", *words, timeout=timeout)


def no_drafts(around: Surroundings) -> bool:
    return [path.name for path in around.spool.folder.glob(".draft-*")] == []


def test_what_a_command_prints_or_writes_is_queued_for_its_cluster(around: Surroundings) -> None:
    name = run_task(shell('echo "$1"; echo "$HOME" >&2', "a | b; $(c)"), around)
    assert name is not None
    entry = read_entry(around.spool.folder / name)
    entry.check()
    assert (entry.given, entry.collector, entry.options) == (("scan",), "scan", Options(cluster="c"))
    assert Path(entry.paths[0]).read_text() == "a | b; $(c)\n"
    assert no_drafts(around)
    name = run_task(shell('echo x > "$1/x.txt"; mkdir "$1/d"; echo y > "$1/d/y"; echo', "{output}"), around)
    entry = read_entry(around.spool.folder / str(name))
    assert sorted(entry.files) == ["files/0/d/y", "files/0/x.txt"]
    assert Path(entry.paths[0]).is_dir()


def test_a_command_that_fails_queues_nothing(around: Surroundings) -> None:
    for task, words in (
        (collector("/nosuch"), "/nosuch cannot be started"),
        (collector("a\0b"), "cannot be started"),
        (shell("echo half; echo no card >&2; exit 3"), "exit code 3: no card$"),
        (shell("kill -SEGV $$"), "by signal 11"),
        (shell("echo nothing found >&2"), "wrote nothing: nothing found"),
        (shell(": {output}"), "wrote nothing"),
        (shell("while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done"), "more than 100000 bytes"),
    ):
        with pytest.raises(CommandFailed, match=words):
            run_task(task, around)
        assert around.spool.waiting() == []
        assert no_drafts(around)


def test_a_full_spool_is_an_error_and_a_stop_of_the_service_ends_a_command(
    around: Surroundings, tmp_path: Path
) -> None:
    small = Surroundings(Spool(tmp_path / "spool", 50), around.stop, around.environment)
    with pytest.raises(SpoolFull):
        run_task(shell("echo 1"), small)
    threading.Timer(0.1, around.stop.set).start()
    with pytest.raises(CommandFailed, match="the service stopped"):
        run_task(collector("sleep", "3000", timeout=3000), around)


def test_a_timeout_kills_the_group_and_an_end_what_is_left_behind(
    around: Surroundings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collectors, "GRACE_SECONDS", 0.5)
    pids = tmp_path / "pids"
    text = 'trap "" TERM; (trap "" TERM; sleep 3000 & echo $! >> "$1"; wait) & echo $$ $! >> "$1"; wait; wait'
    with pytest.raises(CommandFailed, match="did not end within 1 s and was killed"):
        run_task(shell(text, str(pids), timeout=1), around)
    found = [int(pid) for pid in pids.read_text().split()]
    assert len(found) == 3
    assert comes_true(lambda: all(map(has_ended, found)))
    pid = tmp_path / "pid"
    run_task(shell('sleep 3000 & echo $! > "$1"; echo done', str(pid)), around)
    assert comes_true(lambda: has_ended(int(pid.read_text())))


def test_a_command_is_not_started_while_its_last_run_goes_on(around: Surroundings, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    task = shell('echo x >> "$1"; sleep 3000', str(begun))

    def run_until_stopped() -> None:
        with pytest.raises(CommandFailed):
            run_task(task, around)

    first = threading.Thread(target=run_until_stopped)
    first.start()
    assert comes_true(begun.exists)
    again = Surroundings(Spool(around.spool.folder, 1000), threading.Event(), around.environment)
    with pytest.raises(StillRunning):
        run_task(task, again)
    run_task(collector("echo", "1", name="other"), again)
    around.stop.set()
    first.join(300)
    assert not first.is_alive()
    assert begun.read_text() == "x\n"


def test_collectors_get_no_password_and_almanac_is_a_process_of_its_own(around: Surroundings) -> None:
    name = run_task(shell("env"), around)
    text = Path(read_entry(around.spool.folder / str(name)).paths[0]).read_text()
    assert "hidden" not in text
    assert "PATH=" in text
    task = Task(name="v", command=("--version",), interval=60, timeout=60, jitter=0)
    assert run_task(task, around) is None
    wrong = Task(name="w", command=("nosuch",), interval=60, timeout=60, jitter=0)
    with pytest.raises(CommandFailed, match=r"exit code 2: .*No such command"):
        run_task(wrong, around)
    assert around.spool.waiting() == [around.spool.folder / str(name)]  # of the first command
