"""An attended launcher is the launcher for all outside; whatever a child process does, this one goes on."""

from __future__ import annotations

import math
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from almanac.running.processes import PreparedChild, answer_within, attend
from registry.errors import ConfigError, Unplaced
from tests.support import paths
from tests.support.launchers import HYDRA_ON_LOOPBACK, OPEN_MPI_ON_LOOPBACK, require
from tests.support.waiting import PATIENCE, comes_true, has_ended

pytestmark = pytest.mark.usefixtures("processes")

ATTEND = """
import os, re, signal, sys
for name in (signal.SIGINT, signal.SIGHUP):  # ignored where the tests run in the background
    signal.signal(name, signal.SIG_DFL)
from almanac.running.processes import Steps, attend, end_as
steps = Steps(re.compile(sys.argv[1].encode())) if sys.argv[1] else None
code, seconds = attend(sys.argv[2:], os.environ, steps)
end_as(code)
"""
COUNTING = """
n=0; trap 'n=$((n+1))' {signal}; echo ready
while [ $n = 0 ]; do sleep 0.1; done
sleep 0.3; exit $((40+n))
"""
"""Shell that ends with 40 and the number of signals that it got within some time of the first."""


def start(words: Sequence[str], pattern: str = "", **settings: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", ATTEND, pattern, *words],
        env={**os.environ, "PYTHONPATH": str(paths.ROOT)},
        start_new_session=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings},
    )


def test_it_ends_as_the_launcher_ends() -> None:
    for end, pattern in (
        *((end, "") for end in ("exit 0", "exit 143", "exit 255", "kill -SEGV $$", "kill -KILL $$")),
        *((end, "step") for end in ("exit 3", "kill -SEGV $$")),
    ):
        words = ["sh", "-c", f"echo out; echo err >&2; {end}"]
        plain = subprocess.run(words, capture_output=True, check=False)
        attended = start(words, pattern)
        assert attended.communicate(timeout=300) == (plain.stdout, plain.stderr) == (b"out\n", b"err\n")
        assert attended.returncode == plain.returncode


def test_a_signal_reaches_the_launcher_once() -> None:
    for name, group in (
        *((name, False) for name in ("TERM", "HUP", "USR1", "WINCH")),
        *((name, True) for name in ("INT", "TERM")),
    ):
        with start(["sh", "-c", COUNTING.format(signal=name)]) as attended:
            assert attended.stdout is not None
            assert attended.stdout.readline() == b"ready\n"
            (os.killpg if group else os.kill)(attended.pid, getattr(signal, f"SIG{name}"))
            assert attended.wait(300) == 41


def test_an_interrupt_of_the_terminal_reaches_the_launcher_once() -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.environ["PYTHONPATH"] = str(paths.ROOT)
        os.execv(
            sys.executable, [sys.executable, "-c", ATTEND, "", "sh", "-c", COUNTING.format(signal="INT")]
        )
    messages = b""
    while b"ready" not in messages:
        messages += os.read(terminal, 100)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 41


def test_the_launcher_does_not_outlive_us() -> None:
    with start(["sh", "-c", "echo $$; exec sleep 3000"]) as attended:
        assert attended.stdout is not None
        launcher = int(attended.stdout.readline())
        attended.kill()
        attended.wait(300)
    assert comes_true(lambda: not os.path.exists(f"/proc/{launcher}"))


@pytest.mark.parametrize("pattern", ["", "step"])
def test_standard_input_and_unfinished_lines_pass(pattern: str) -> None:
    attended = start(["cat"], pattern, stdin=subprocess.PIPE)
    assert attended.stdin is not None
    assert attended.stdout is not None
    attended.stdin.write(b"no end of line")
    attended.stdin.flush()
    assert attended.stdout.read(14) == b"no end of line"
    assert attended.communicate(b"\0" * 1_000_000, timeout=300)[0] == b"\0" * 1_000_000
    assert attended.returncode == 0


@pytest.mark.parametrize("pattern", ["", "step"])
def test_a_launcher_whose_output_nobody_reads_ends(pattern: str) -> None:
    with start(["yes"], pattern) as attended:
        assert attended.stdout is not None
        attended.stdout.read(10)
        attended.stdout.close()
        assert attended.wait(300) == -signal.SIGPIPE


def test_a_daemon_that_keeps_the_output_open_is_not_waited_for() -> None:
    words = ["sh", "-c", "sleep 3000 & echo $!; exit 5"]
    with start(words, "step", stderr=subprocess.DEVNULL) as attended:
        assert attended.wait(300) == 5
        assert attended.stdout is not None
        os.kill(int(attended.stdout.readline()), signal.SIGKILL)


def test_a_launcher_that_cannot_be_started_is_an_error() -> None:
    for word, kind in (("/no/such/launcher", FileNotFoundError), ("/etc/passwd", PermissionError)):
        with pytest.raises(kind):
            attend([word], os.environ, None)
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def mpi(name: str, *words: str) -> list[str]:
    require(name)
    if name == "mpiexec.hydra":
        return [name, *HYDRA_ON_LOOPBACK, "-n", "2", *words]
    return [name, "--allow-run-as-root", "--oversubscribe", *OPEN_MPI_ON_LOOPBACK, "-n", "2", *words]


@pytest.mark.parametrize(("name", "code"), [("mpirun.openmpi", 7), ("mpiexec.hydra", 200)])
def test_exit_codes_of_real_launchers(name: str, code: int) -> None:
    words = mpi(name, "sh", "-c", f"exit {code}")
    plain = subprocess.run(words, capture_output=True, check=False)
    attended = start(words, "step")
    attended.communicate(timeout=PATIENCE)
    assert attended.returncode == plain.returncode != 0


def test_real_launchers_end_while_their_ranks_run() -> None:
    for name, sent, codes in (
        ("mpirun.openmpi", signal.SIGTERM, {1}),
        ("mpiexec.hydra", signal.SIGINT, {0, 2}),
    ):
        words = mpi(name, "sh", "-c", "echo running; exec sleep 3000")
        plain = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        for one in (start(words), plain):
            assert one.stdout is not None
            assert [one.stdout.readline() for _ in range(2)] == [b"running\n"] * 2
            one.send_signal(sent)
            one.communicate(timeout=300)
            assert one.returncode in codes


def test_a_launcher_is_ended_before_its_ranks_run() -> None:
    """Only Open MPI: Hydra itself may crash or wait forever if it is interrupted while it starts."""
    words = mpi("mpirun.openmpi", "sleep", "3000")
    attended = start(["sh", "-c", 'echo ready; exec "$@"', "sh", *words])
    assert attended.stdout is not None
    assert attended.stdout.readline() == b"ready\n"
    attended.send_signal(signal.SIGTERM)
    attended.communicate(timeout=300)
    assert attended.returncode != 0


def fail(error: BaseException) -> None:
    raise error


def test_the_result_comes_back_and_what_takes_too_long_is_killed() -> None:
    large = "x" * 1_000_000
    assert answer_within(30, lambda: (large, os.getpid()))[0] == large
    assert answer_within(30, lambda: os.getpid()) != os.getpid()
    with pytest.raises(Unplaced, match=r"within 0\.2 s"):
        answer_within(0.2, lambda: time.sleep(600))


def test_an_error_is_a_reason() -> None:
    for work, reason in (
        (lambda: fail(ConfigError("db", "no such place")), "no such place"),
        (lambda: fail(RuntimeError("boom")), "RuntimeError: boom"),
        (lambda: fail(KeyboardInterrupt()), "KeyboardInterrupt"),
        (lambda: fail(MemoryError()), "MemoryError"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "ended unexpectedly"),
        (lambda: os._exit(0), "ended unexpectedly"),
    ):
        with pytest.raises(Unplaced, match=reason):
            answer_within(30, work)


def finish_at_lowest_priority(path: Path) -> None:
    comes_true(lambda: os.getpriority(os.PRIO_PROCESS, 0) == 19, 50)
    write_complete(path, os.getpriority(os.PRIO_PROCESS, 0))


def write_process(path: Path) -> None:
    write_complete(path, os.getpid())


def write_complete(path: Path, number: int) -> None:
    part = path.with_suffix(".part")
    part.write_text(str(number))
    part.rename(path)


def misconfigured() -> None:
    raise ConfigError("db", "no such place")


def test_a_child_gets_ready_before_it_is_asked_and_may_fail_at_it(tmp_path: Path) -> None:
    with PreparedChild((tmp_path / "ready").touch) as child:
        assert comes_true((tmp_path / "ready").exists)
        assert child.answer(30, partial(math.prod, [2, 3]), 0.0) == 6
    with PreparedChild(partial(fail, SystemExit(3))) as child:
        assert child.answer(30, partial(len, "x" * 1_000_000), 0.0) == 1_000_000


def test_an_error_of_the_child_is_a_reason() -> None:
    for work, reason in (
        (misconfigured, "no such place"),
        (partial(fail, MemoryError("x")), "MemoryError: x"),
    ):
        with PreparedChild(bool) as child, pytest.raises(Unplaced, match=reason):
            child.answer(30, work, 0.0)


def end_at_once(path: Path) -> None:
    write_process(path)
    os._exit(1)


@pytest.mark.parametrize("moment", ["before it is asked", "while it works"])
def test_a_child_that_is_killed_is_a_reason(moment: str, tmp_path: Path) -> None:
    path = tmp_path / "process"
    with PreparedChild(partial(end_at_once, path) if moment == "before it is asked" else bool) as child:
        if moment == "before it is asked":
            assert comes_true(path.exists)
            assert comes_true(lambda: has_ended(int(path.read_text())))
        with pytest.raises(Unplaced, match="ended unexpectedly"):
            child.answer(30, partial(os._exit, 1), 0.0)


def test_its_time_counts_from_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def nobody_answers(reading: object, writing: object, special: object, seconds: float) -> object:
        waits.append(seconds)
        return [], [], []

    with PreparedChild(bool) as child, monkeypatch.context() as patch:
        child._began -= 20
        patch.setattr(select, "select", nobody_answers)
        with pytest.raises(Unplaced, match="within 300 s"):
            child.answer(300, partial(len, "x"), 0.0)
    assert 0 < waits[0] <= 280


def test_a_child_that_is_not_asked_ends(tmp_path: Path) -> None:
    with PreparedChild(partial(write_process, tmp_path / "process")):
        assert comes_true((tmp_path / "process").exists)
    process = int((tmp_path / "process").read_text())
    assert comes_true(lambda: has_ended(process))


def test_what_may_go_on_finishes_later_at_the_lowest_priority(tmp_path: Path) -> None:
    with PreparedChild(bool) as child, pytest.raises(Unplaced, match="the next run uses what it finds"):
        child.answer(0.2, partial(finish_at_lowest_priority, tmp_path / "result"), 60)
    assert comes_true((tmp_path / "result").exists)
    assert (tmp_path / "result").read_text() == "19"


def test_what_goes_on_ends_after_its_time(tmp_path: Path) -> None:
    with PreparedChild(partial(write_process, tmp_path / "process")) as child:
        assert comes_true((tmp_path / "process").exists)
        with pytest.raises(Unplaced):
            child.answer(0.5, partial(time.sleep, 600), 0.5)
    process = int((tmp_path / "process").read_text())
    assert comes_true(lambda: has_ended(process))


def test_what_it_prints_is_not_seen(capfd: pytest.CaptureFixture[str]) -> None:
    answer_within(30, lambda: os.write(1, b"a progress bar"))
    assert capfd.readouterr() == ("", "")
