"""An attended launcher is, for everyone outside, the launcher: exit code, signals, streams."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from almanac.running.attended import attend
from tests.support import paths
from tests.support.launchers import HYDRA_ON_LOOPBACK, OPEN_MPI_ON_LOOPBACK, require
from tests.support.waiting import PATIENCE, comes_true

pytestmark = pytest.mark.usefixtures("processes")

ATTEND = """
import os, re, signal, sys
for name in (signal.SIGINT, signal.SIGHUP):  # ignored where the tests run in the background
    signal.signal(name, signal.SIG_DFL)
from almanac.running.attended import Steps, attend, end_as
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


@pytest.mark.parametrize(
    ("end", "pattern"),
    [
        *((end, "") for end in ("exit 0", "exit 143", "exit 255", "kill -SEGV $$", "kill -KILL $$")),
        *((end, "step") for end in ("exit 3", "kill -SEGV $$")),
    ],
)
def test_it_ends_as_the_launcher_ends(end: str, pattern: str) -> None:
    words = ["sh", "-c", f"echo out; echo err >&2; {end}"]
    plain = subprocess.run(words, capture_output=True, check=False)
    attended = start(words, pattern)
    assert attended.communicate(timeout=300) == (plain.stdout, plain.stderr) == (b"out\n", b"err\n")
    assert attended.returncode == plain.returncode


@pytest.mark.parametrize(
    ("name", "group"),
    [
        *((name, False) for name in ("TERM", "HUP", "USR1", "WINCH")),
        *((name, True) for name in ("INT", "TERM")),
    ],
)
def test_a_signal_reaches_the_launcher_once(name: str, group: bool) -> None:
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


@pytest.mark.parametrize(
    ("name", "sent", "codes"),
    [("mpirun.openmpi", signal.SIGTERM, {1}), ("mpiexec.hydra", signal.SIGINT, {0, 2})],
)
def test_real_launchers_are_ended_while_their_ranks_run(
    name: str, sent: signal.Signals, codes: set[int]
) -> None:
    words = mpi(name, "sh", "-c", "echo running; exec sleep 3000")
    plain = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
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
