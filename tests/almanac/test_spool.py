"""Ingests that wait for the database; tasks: when, their states, and locks; commands that collect."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from threading import Event
from typing import Any, cast

import pytest

from almanac.serve import collectors
from almanac.serve.collectors import Surroundings, run_task
from almanac.serve.configuration import Task
from almanac.serve.service import TaskState, TaskStates, repeat
from almanac.spool import DRAFT, MAX_TRIES, REJECTED, Applied, Spool, locked, read_entry
from ingest.options import Options
from registry.errors import (
    CommandFailed,
    ConfigError,
    DamagedEntry,
    DatabaseError,
    DatabaseUnavailable,
    SchemaVersionError,
    SpoolFull,
    StillRunning,
    WritersPaused,
)
from registry.registry import Registry
from tests.almanac.conftest import Almanac
from tests.support import paths
from tests.support.waiting import comes_true, has_ended

LINKS = "source,source_port,target,target_port,rate\nn{0},1,s1,{0},4xHDR\n"
JANUARY, MARCH = datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 3, 5, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ALMANAC_SPOOL_FOLDER", str(tmp_path / "spool"))
    return tmp_path / "spool"


@pytest.fixture
def spool(folder: Path) -> Spool:
    return Spool(folder, 1_000_000)


def scan(folder: Path, name: str = "links.csv", port: int = 1, when: datetime | None = None) -> Path:
    path = folder / name
    path.write_text(LINKS.format(port))
    if when is not None:
        os.utime(path, (when.timestamp(), when.timestamp()))
    return path


class Refusing:
    def __init__(self, error: Exception) -> None:
        self.error, self.saved = error, 0

    def same(self, key: str) -> None:
        raise self.error

    def failed(self, attempt: object, error: BaseException) -> None:
        self.saved += 1


def apply(spool: Spool, registry: object) -> list[Applied]:
    return list(spool.apply(cast(Registry, registry)))


AWAY = DatabaseUnavailable("bolt://x", "refused", "start it")


def test_files_wait_while_the_database_is_away_and_are_saved_with_their_own_times(
    almanac: Almanac, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = ("ingest", "--spool", "--cluster", "c")
    with monkeypatch.context() as away:
        away.setenv("ALMANAC_DB", "bolt://127.0.0.1:1")
        for name, port, when in (("first.csv", 1, MARCH), ("second.csv", 2, JANUARY)):
            assert "queued as" in almanac.ok(*queue, scan(tmp_path, name, port, when)).out
            (tmp_path / name).unlink()
        listed = almanac.json("spool", "list")
        assert [row["files"] for row in listed] == [
            [str(tmp_path / name)] for name in ("first.csv", "second.csv")
        ]
        almanac.refused("spool", "apply", code=3)
        assert [row["rejected"] for row in almanac.json("spool", "list")] == [False, False]
    applied = almanac.json("spool", "apply")
    assert [(row["entry"], row["outcome"]) for row in applied] == [
        (row["entry"], "applied") for row in listed
    ]
    assert almanac.json("cluster", "list")[0]["observations"] == 2
    changes = almanac.json("cluster", "changes", "c", "--from", "2026-01-06", "--to", "2026-03-06")
    assert (changes["hosts_appeared"], changes["hosts_vanished"]) == (["n1"], ["n2"])
    assert almanac("spool", "list").out == "nothing waits\n"

    with monkeypatch.context() as away:
        away.setenv("ALMANAC_DB", "bolt://127.0.0.1:1")
        assert almanac.json(*queue, scan(tmp_path, "a.csv", 3, datetime(2026, 4, 5, tzinfo=UTC))).keys() == {
            "queued"
        }
    # an ingest is saved after those that wait
    done = almanac.ok(*queue, "--json", scan(tmp_path, "b.csv", 4, datetime(2026, 5, 5, tzinfo=UTC)))
    assert (done.json["files"], done.json["new_snapshot"]) == ([str(tmp_path / "b.csv")], True)
    assert "applied: " + str(tmp_path / "a.csv") in done.err
    assert almanac.json("cluster", "list")[0]["observations"] == 4
    assert list(folder.glob("0*")) == []


def test_a_faulty_file_is_rejected_and_tried_again(almanac: Almanac, folder: Path, tmp_path: Path) -> None:
    bad, unknown = tmp_path / "bad.csv", tmp_path / ("bad" * 80)
    bad.write_text("source,source_port,target,target_port,rate\nn1,one,s1,1,4xHDR\n")
    assert f"{bad}:2:" in almanac.refused("ingest", "--spool", "--cluster", "c", bad)
    almanac.ok("ingest", "--spool", "--cluster", "c", scan(tmp_path))
    (row,) = almanac.json("spool", "list")
    assert row["rejected"]
    assert row["reason"].startswith("InputError: ")
    assert "rejected: InputError" in almanac("spool", "list").out
    again = almanac("spool", "apply", "--rejected", "--json")
    assert (again.code, [one["outcome"] for one in again.json]) == (1, ["rejected"])
    almanac.refused("ingest", "--spool", "--dry-run", bad, code=2)
    unknown.write_text("nothing that any tool prints\n")
    Spool(folder, 10**6).queue([str(unknown)], Options(cluster="c"))
    done = almanac("spool", "apply")
    assert done.code == 1
    assert max(map(len, done.out.splitlines())) < 400  # a reason is short in the log and whole in JSON
    assert max(len(row["reason"]) for row in almanac.json("spool", "list")) > 400


def test_standard_input_is_queued(
    offline: Almanac, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scan(tmp_path).open() as handle:
        monkeypatch.setattr("sys.stdin", handle)
        offline.ok("ingest", "--spool", "--cluster", "c", "-")
    (entry,) = map(read_entry, Spool(folder, 10**6).waiting())
    assert Path(entry.paths[0]).read_text() == LINKS.format(1)


def test_nobody_else_can_read_the_spool(spool: Spool, tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        spool.queue([str(scan(tmp_path)), str(paths.DATA / "slurm")], Options(cluster="c"))
    finally:
        os.umask(mask)
    found = [spool.folder, *spool.folder.rglob("*")]
    assert len(found) > 10
    modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in found}
    assert modes == {(True, 0o700), (False, 0o600)}
    spool.folder.chmod(0o755)
    with pytest.raises(ConfigError, match="chmod 700"):
        Spool(spool.folder, 10)


def changed(change: Callable[[str], str]) -> Callable[[Path], object]:
    """Damage an entry by changing the text of its options."""
    return lambda folder: (folder / "entry.json").write_text(change((folder / "entry.json").read_text()))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "shorter": lambda folder: (folder / "files/0/links.csv").write_text("x"),
    "missing": lambda folder: (folder / "files/0/links.csv").unlink(),
    "another": lambda folder: (folder / "files/0/more").write_text(""),
    "link": lambda folder: (folder / "files/0/more").symlink_to("/etc/passwd"),
    "no options": lambda folder: (folder / "entry.json").unlink(),
    "half": changed(lambda text: text[:200]),
    "list": changed(lambda text: "[]"),
    "version": changed(lambda text: '{"version": 99}'),
    "option": changed(lambda text: text.replace('"strict"', '"stricter"')),
    "outside": changed(lambda text: text.replace('"files/0/links.csv"\n ]', '"/etc/passwd"\n ]')),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_entries_are_set_aside_and_others_applied(spool: Spool, tmp_path: Path, damage: str) -> None:
    first, second = (spool.queue([str(scan(tmp_path))], Options(cluster="c")) for _ in range(2))
    DAMAGES[damage](spool.folder / first)
    done = apply(spool, Refusing(AWAY))
    assert [(one.name, one.waits) for one in done] == [(first, False), (second, True)]
    assert isinstance(done[0].error, DamagedEntry)
    assert "DamagedEntry: " in (spool.folder / REJECTED / first / "reason.txt").read_text()
    assert next((one.rejected, one.entry is None) for one in spool.entries()) == (False, False)
    assert len(spool.entries()) == 2


def test_an_entry_waits_while_the_database_is_away_and_is_refused_only_so_often(tmp_path: Path) -> None:
    for error, tries in (
        (AWAY, None),
        (SchemaVersionError(5, 9, "almanac db migrate"), None),
        (WritersPaused("pause"), None),
        (DatabaseError("no space left on /data, 2 MB free: make room"), None),
        (DatabaseError("the database refused: too long"), MAX_TRIES),
    ):
        spool = Spool(tmp_path / str(error)[:20].replace("/", ""), 1_000_000)
        name = spool.queue([str(scan(tmp_path))], Options(cluster="c"))
        spool.queue([str(scan(tmp_path))], Options(cluster="c"))
        results = [apply(spool, Refusing(error))[0] for _ in range(MAX_TRIES)]
        assert all(one.waits for one in results[:-1])
        assert {one.name for one in results} == {name}
        assert results[-1].waits == (tries is None)


def test_the_size_is_bounded_and_the_newest_is_refused(spool: Spool, tmp_path: Path) -> None:
    small = Spool(spool.folder, 4000)
    big = tmp_path / "big"
    big.write_bytes(b"x" * 2500)
    name = small.queue([str(big)], Options(cluster="c"))
    with pytest.raises(SpoolFull, match="spool_megabytes"):
        small.queue([str(big)], Options(cluster="c"))
    assert [path.name for path in small.waiting()] == [name]
    assert list(small.folder.glob(f"{DRAFT}*")) == []
    (small.folder / name / "entry.json").write_text("")
    assert not apply(small, Refusing(AWAY))[0].waits
    small.queue([str(big)], Options(cluster="c"))
    assert small.rejected() == []


def test_few_rejected_entries_are_kept(spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("almanac.spool.MAX_REJECTED", 2)
    names = [spool.queue([str(scan(tmp_path))], Options()) for _ in range(4)]
    for name in names:
        (spool.folder / name / "entry.json").write_text("")
    assert len(apply(spool, None)) == 4
    spool.queue([str(scan(tmp_path))], Options())
    assert [folder.name for folder in spool.rejected()] == names[2:]


def test_no_clock_changes_the_order(spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = spool.queue([str(scan(tmp_path))], Options(cluster="c"))
    monkeypatch.setattr("time.time_ns", lambda: 5)
    second = spool.queue([str(scan(tmp_path))], Options(cluster="c"))
    assert [path.name for path in spool.waiting()] == [first, second]


def test_drafts_of_ended_processes_are_deleted_those_of_others_are_not(spool: Spool, tmp_path: Path) -> None:
    (spool.folder / f"{DRAFT}old").mkdir()
    with spool.draft() as draft:
        spool.queue([str(scan(tmp_path))], Options())
        assert list(spool.folder.glob(f"{DRAFT}*")) == [draft.folder]
    assert list(spool.folder.glob(f"{DRAFT}*")) == []


def test_two_processes_apply_each_entry_once(spool: Spool, tmp_path: Path) -> None:
    names = [spool.queue([str(scan(tmp_path))], Options()) for _ in range(6)]
    for name in names:
        (spool.folder / name / "entry.json").write_text("")
    found: list[str] = []
    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(lambda: found.extend(one.name for one in apply(spool, None)))
    assert sorted(found) == names
    held: Iterator[Any] = spool.apply(cast(Registry, None))
    spool.queue([str(scan(tmp_path))], Options())
    for name in (path.name for path in spool.waiting()):
        (spool.folder / name / "entry.json").write_text("")
    next(held)
    assert list(spool.apply(cast(Registry, None), wait=False)) == []


def test_options_times_and_folders_are_kept(spool: Spool, tmp_path: Path) -> None:
    options = Options(cluster="c", hosts=("a", "b"), slots=(2, 3), observed_at=MARCH, rate=1e9, strict=True)
    deep = tmp_path / "in" / "deep"
    deep.mkdir(parents=True)
    scan(deep, "x.csv", 3, JANUARY)
    name = spool.queue([str(tmp_path / "in") + "/", str(scan(tmp_path, "top.csv"))], options)
    entry = read_entry(spool.folder / name)
    entry.check()
    assert entry.options == options
    copied, top = map(Path, entry.paths)
    assert (copied / "deep" / "x.csv").stat().st_mtime == JANUARY.timestamp()
    assert top.read_text() == LINKS.format(1)
    assert entry.size == len(LINKS.format(3)) + len(LINKS.format(1))


def test_recordings_of_one_folder_stay_one_recording(spool: Spool) -> None:
    given = sorted((paths.DATA / "openmpi").rglob("*.prof"))
    if not given:
        pytest.skip("no recording is shipped unpacked")
    entry = read_entry(spool.folder / spool.queue([str(one) for one in given], Options()))
    assert len({Path(path).parent for path in entry.paths}) == len({one.parent for one in given})


class Clock:
    """Time that passes only while the schedule waits and the task works."""

    def __init__(self, end: float, work: tuple[float, ...] = ()) -> None:
        self.now, self.end, self.works, self.starts = 1000.0, 1000.0 + end, list(work), list[float]()

    def wait(self, seconds: float) -> bool:
        self.now += seconds
        return self.now > self.end

    def work(self, task: Task) -> None:
        self.starts.append(self.now - 1000.0)
        self.now += self.works.pop(0) if self.works else 0.0


def starts_of(clock: Clock, interval: float, jitter: float = 0.0, seed: int = 0) -> list[float]:
    task = Task(name="t", command=("true",), interval=interval, timeout=1, jitter=jitter)
    repeat(task, clock.work, cast(Event, clock), Random(seed), lambda: clock.now)
    return clock.starts


def test_a_task_starts_at_every_interval_unless_it_runs_and_delays_do_not_add_up() -> None:
    assert starts_of(Clock(35), 10) == [0, 10, 20, 30]
    assert starts_of(Clock(75, (4, 25, 0, 20)), 10) == [0, 10, 40, 50, 70]
    found = starts_of(Clock(1005), 10, jitter=4)
    delays = [start - 10 * turn for turn, start in enumerate(found)]
    assert len(found) == 101
    assert 0 <= min(delays) < 0.5
    assert 3.5 < max(delays) <= 4
    assert found == starts_of(Clock(1005), 10, jitter=4)
    assert found != starts_of(Clock(1005), 10, jitter=4, seed=1)


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def task_named(name: str, format: str | None = None) -> Task:
    options = Options(cluster="c", format=format)
    return Task(name=name, command=("true",), interval=1, timeout=1, jitter=0, options=options)


def test_states_are_kept_over_restarts(tmp_path: Path) -> None:
    path = tmp_path / "states"
    first = TaskStates(path, [task_named("a"), task_named("b")])
    first.started("a", NOON)
    first.succeeded("a", NOON, ("x", "y"))
    first.failed("b", NOON, "why\x1b")
    first.failed("gone", NOON, "is no task of this service")
    again = TaskStates(path, [task_named("a"), task_named("b"), task_named("c", "z")])
    assert again.all() == {
        "a": TaskState(started_at=NOON, succeeded_at=NOON, formats=("x", "y")),
        "b": TaskState(failed_at=NOON, error="why\x1b"),
        "c": TaskState(),
    }
    assert [again.formats(task_named(name)) for name in "abc"] == [("x", "y"), (), ()]
    assert again.formats(task_named("c", "z")) == ("z",)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_damaged_file_and_a_full_disk_do_not_stop_a_task(tmp_path: Path) -> None:
    path = tmp_path / "states"
    for text in ("", "[]", "null", '{"a": 1}', '{"a": {"started_at": 5}}', '{"a": {}}'):
        path.write_text(text)
        states = TaskStates(path, [task_named("a")])
        assert states.all() == {"a": TaskState()}
        states.succeeded("a", NOON)
        assert TaskStates(path, [task_named("a")]).all()["a"].succeeded_at == NOON
    states = TaskStates(tmp_path / "nosuch" / "states", [task_named("a")])
    states.started("a", NOON)
    assert states.all()["a"].started_at == NOON


HOLD = """
import subprocess, sys, time
from pathlib import Path
from almanac.spool import locked
with locked(Path(sys.argv[1]), wait=False) as lock:
    child = subprocess.Popen(["sleep", "3000"], pass_fds=(lock,))
    print(child.pid, flush=True)
    time.sleep(3000)
"""


def is_free(path: Path) -> bool:
    with locked(path, wait=False) as lock:
        return lock is not None


def test_a_lock_is_held_by_one_and_free_after_the_block(tmp_path: Path) -> None:
    with locked(tmp_path / "lock") as lock:
        assert lock is not None
        assert not is_free(tmp_path / "lock")
    assert is_free(tmp_path / "lock")


def test_a_lock_is_held_until_the_command_of_a_killed_process_ends(tmp_path: Path, processes: None) -> None:
    path = tmp_path / "lock"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    child = int(holder.stdout.readline())
    try:
        assert not is_free(path)
        holder.kill()
        holder.wait()
        holder.stdout.close()
        assert not is_free(path)
    finally:
        subprocess.run(["kill", "-9", str(child)], check=True)
    with locked(path, wait=True) as lock:
        assert lock is not None


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
