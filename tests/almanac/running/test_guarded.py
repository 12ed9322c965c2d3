"""Whatever happens in the child process, this process goes on."""

from __future__ import annotations

import math
import os
import select
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from almanac.running.call import Unplaced
from almanac.running.guarded import PreparedChild, answer_within
from registry.errors import ConfigError
from tests.support.waiting import comes_true, has_ended

pytestmark = pytest.mark.usefixtures("processes")


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
    with pytest.raises(Unplaced, match=r"within 0\.2 s"):
        answer_within(0.2, lambda: time.sleep(600))


def finish_at_lowest_priority(path: Path) -> None:
    comes_true(lambda: os.getpriority(os.PRIO_PROCESS, 0) == 19, 50)
    write_whole(path, os.getpriority(os.PRIO_PROCESS, 0))


def write_process(path: Path) -> None:
    write_whole(path, os.getpid())


def write_whole(path: Path, number: int) -> None:
    """Write a file that is absent or complete."""
    part = path.with_suffix(".part")
    part.write_text(str(number))
    part.rename(path)


def nothing() -> None:
    pass


def misconfigured() -> None:
    raise ConfigError("db", "no such place")


def test_a_child_gets_ready_before_it_is_asked(tmp_path: Path) -> None:
    with PreparedChild((tmp_path / "ready").touch) as child:
        assert comes_true((tmp_path / "ready").exists)
        assert child.answer(30, partial(math.prod, [2, 3]), 0.0) == 6


def test_a_preparation_that_fails_harms_nothing() -> None:
    with PreparedChild(partial(fail, SystemExit(3))) as child:
        assert child.answer(30, partial(len, "x" * 1_000_000), 0.0) == 1_000_000


@pytest.mark.parametrize(
    ("work", "reason"),
    [(misconfigured, "no such place"), (partial(fail, MemoryError("x")), "MemoryError: x")],
)
def test_an_error_of_the_child_is_a_reason(work: Callable[[], None], reason: str) -> None:
    with PreparedChild(nothing) as child, pytest.raises(Unplaced, match=reason):
        child.answer(30, work, 0.0)


def end_at_once(path: Path) -> None:
    write_process(path)
    os._exit(1)


@pytest.mark.parametrize("moment", ["before it is asked", "while it works"])
def test_a_child_that_is_killed_is_a_reason(moment: str, tmp_path: Path) -> None:
    path = tmp_path / "process"
    with PreparedChild(partial(end_at_once, path) if moment == "before it is asked" else nothing) as child:
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

    with PreparedChild(nothing) as child, monkeypatch.context() as patch:
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
    with PreparedChild(nothing) as child, pytest.raises(Unplaced, match="the next run uses what it finds"):
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
