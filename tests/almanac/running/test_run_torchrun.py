"""`almanac run` before a launcher of torchrun: what is compared, and what a dry run says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from almanac.job_environment import JobEnvironment
from almanac.running import run as running
from almanac.running.call import Unplaced, parse_call
from almanac.running.guarded import PreparedChild
from almanac.running.launchers import LAUNCHERS
from almanac.running.order import Order, Wanted
from almanac.running.run import Run, prepare_run
from tests.almanac.conftest import Almanac

SLURM = next(one for one in LAUNCHERS if one.name == "Slurm")
JOB = JobEnvironment(hosts=("a", "b"), slots=(1, 1), ranks=2, source="SLURM_JOB_NODELIST")
TORCHRUN = ["--nnodes", "2", "--nproc-per-node", "4"]
WORDS = ["srun", "--ntasks-per-node=1", "torchrun", *TORCHRUN, "train.py", "--epochs", "3"]
NO_PROFILE = "no profile of train.py with 8 ranks is stored"


class Answered:
    """A child that answers at once with an order."""

    def __init__(self, order: Order) -> None:
        self.order = order

    def answer(self, *_: object) -> Order:
        return self.order


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Run]:
    def read(words: Sequence[str]) -> Any:
        return SLURM, parse_call(words, SLURM.values), JOB

    def prepare(words: Sequence[str] = WORDS, hosts: tuple[str, ...] = (), **wanted: Any) -> Run:
        text = "".join(f"{host}\n" for host in hosts)
        order = Order(
            ranks=8,
            hosts=hosts,
            text=text,
            placement="p1" if hosts else "",
            reasons=(NO_PROFILE,),
            profile="m1",
        )
        child: Any = Answered(order)
        settings: Any = SimpleNamespace(home=tmp_path)
        return prepare_run(child, settings, Wanted(**wanted), 1.0, words)

    monkeypatch.setattr(running, "read_command", read)
    return prepare


def test_placed_and_in_order_runs_are_of_one_program_whatever_the_master_is(
    prepared: Callable[..., Run],
) -> None:
    straight, crossed, same = prepared(), prepared(hosts=("b", "a")), prepared(hosts=("a", "b"))
    assert crossed.words != straight.words
    assert (crossed.placed, straight.placed) == (True, False)
    programs = {one.described["program"] for one in (straight, crossed, same)}
    assert len(programs) == 1
    other = prepared([*WORDS[:-1], "4"])
    assert other.described["program"] not in programs


@pytest.mark.parametrize("words", [WORDS, ["srun", "-n", "2", "./program"]])
def test_a_dry_run_says_why_nothing_is_placed(
    offline: Almanac, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    found = Run(words=tuple(words), reasons=("8 ranks on 2 hosts, from SLURM_JOB_NODELIST", NO_PROFILE))
    monkeypatch.setattr(PreparedChild, "__enter__", lambda self: self)
    monkeypatch.setattr(PreparedChild, "__exit__", lambda self, *_: None)
    monkeypatch.setattr(PreparedChild, "__init__", lambda self, *_: None)
    monkeypatch.setattr(running, "prepare_run", lambda *_, **__: found)
    outcome = offline("run", "--dry-run", "--", *words)
    assert outcome.out.split() == words
    assert outcome.err == f"not placed: 8 ranks on 2 hosts, from SLURM_JOB_NODELIST; {NO_PROFILE}\n"
    placed = Run(words=tuple(words), reasons=found.reasons, placed=True)
    monkeypatch.setattr(running, "prepare_run", lambda *_, **__: placed)
    assert not offline("run", "--dry-run", "--", *words).err


def test_a_command_that_cannot_be_placed_says_so_once(
    offline: Almanac, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> Run:
        raise Unplaced("torchrun runs on one host")

    monkeypatch.setattr(PreparedChild, "__enter__", lambda self: self)
    monkeypatch.setattr(PreparedChild, "__exit__", lambda self, *_: None)
    monkeypatch.setattr(PreparedChild, "__init__", lambda self, *_: None)
    monkeypatch.setattr(running, "prepare_run", refuse)
    monkeypatch.setattr(running, "unplaced_run", lambda words: Run(words=tuple(words)))
    assert offline("run", "--dry-run", "--", *WORDS).err == "not placed: torchrun runs on one host\n"
