"""Whatever happens in the child process, this process goes on."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from almanac.running.call import Unplaced
from almanac.running.guarded import answer_within
from registry.errors import ConfigError


def fail(error: BaseException) -> None:
    raise error


def test_the_result_comes_back() -> None:
    large = "x" * 1_000_000
    assert answer_within(30, lambda: (large, os.getpid()))[0] == large
    assert answer_within(30, lambda: os.getpid()) != os.getpid()


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (lambda: fail(ConfigError("db", "no such place")), "no such place"),
        (lambda: fail(RuntimeError("boom")), "RuntimeError: boom"),
        (lambda: fail(KeyboardInterrupt()), "KeyboardInterrupt"),
        (lambda: fail(MemoryError()), "MemoryError"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "ended unexpectedly"),
        (lambda: os._exit(0), "ended unexpectedly"),
    ],
)
def test_an_error_is_a_reason(work: object, reason: str) -> None:
    with pytest.raises(Unplaced, match=reason):
        answer_within(30, work)  # type: ignore[arg-type]


def test_what_takes_too_long_is_killed() -> None:
    begin = time.monotonic()
    with pytest.raises(Unplaced, match=r"within 0\.2 s"):
        answer_within(0.2, lambda: time.sleep(60))
    assert time.monotonic() - begin < 30


def test_what_may_go_on_finishes_later_at_the_lowest_priority(tmp_path: Path) -> None:
    def work() -> None:
        time.sleep(1.0)
        (tmp_path / "part").write_text(str(os.getpriority(os.PRIO_PROCESS, 0)))
        (tmp_path / "part").rename(tmp_path / "result")

    with pytest.raises(Unplaced, match="the next run uses what it finds"):
        answer_within(0.2, work, goes_on=60)
    end = time.monotonic() + 60
    while not (tmp_path / "result").exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert (tmp_path / "result").read_text() == "19"


def test_what_goes_on_ends_after_its_time(tmp_path: Path) -> None:
    def work() -> None:
        (tmp_path / "process").write_text(str(os.getpid()))
        time.sleep(600)

    with pytest.raises(Unplaced):
        answer_within(0.5, work, goes_on=0.5)
    process = int((tmp_path / "process").read_text())
    end = time.monotonic() + 60
    while Path(f"/proc/{process}/stat").exists() and time.monotonic() < end:
        if Path(f"/proc/{process}/stat").read_text().split()[2] == "Z":  # nobody reaps it in a container
            break
        time.sleep(0.05)
    assert time.monotonic() < end


def test_what_it_prints_is_not_seen(capfd: pytest.CaptureFixture[str]) -> None:
    answer_within(30, lambda: os.write(1, b"a progress bar"))
    assert capfd.readouterr() == ("", "")
