"""Trials of real launchers, and the verdict on what is stored after a fault."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from bench.faults import trial
from bench.faults.commands import Case as Command
from bench.faults.commands import Outcome
from bench.faults.trial import Stored, Undisturbed, judge, lines_of
from bench.launchers.__main__ import RECORD, counted, tried
from bench.launchers.cases import KINDS, MOST, NAMES, Case
from bench.launchers.pretended import LAUNCHERS
from bench.launchers.trial import Trial, printed
from registry.upkeep.backup import Header, encode, writing
from tests.support.launchers import require

FIRST = 5
"""Cases that are tried here: one, two and four slots per host, uneven ones, and steps."""


@pytest.mark.parametrize("name", list(LAUNCHERS))
def test_each_rank_runs_on_the_requested_host(processes: None, name: str) -> None:
    pretended = LAUNCHERS[name]
    if name == "Intel MPI" and shutil.which(pretended.needs[0]) is None:
        pytest.skip("Intel MPI is not installed; I_MPI_ROOT names its folder")
    require(*pretended.needs, pretended.compiler)
    found = counted(list(tried(pretended, range(FIRST), seed=1)))
    assert (found["equal"], found["failed"]) == (FIRST, [])


def test_the_first_cases_have_all_kinds_of_slots_and_steps() -> None:
    assert {each for each, _ in KINDS[:FIRST]} == {0, 1, 2, 4}
    for number, (each, is_step) in enumerate(KINDS):
        case = Case.draw(number, 7)
        assert case == Case.draw(number, 7) != Case.draw(number, 8)
        assert sorted(case.hosts) == list(NAMES)
        assert set(case.slots) == {each} if each else len(set(case.slots)) > 1
        assert max(case.slots) <= MOST
        assert (case.part < len(NAMES)) == is_step
        assert case.part <= case.ranks <= sum(case.slots[: case.part])


@pytest.mark.parametrize(
    ("text", "equal"),
    [
        ("almanac-rank 0 2 b\n[1] almanac-rank 1 2 a\n", True),
        ("almanac-rank 0 2 a\nalmanac-rank 1 2 b\n", False),  # in another order
        ("almanac-rank 0 1 b\nalmanac-rank 0 1 a\n", False),  # each for itself
        ("almanac-rank 1 2 a\n", False),
    ],
)
def test_only_the_requested_order_counts(text: str, equal: bool) -> None:
    case, trial = Case.draw(0, 0), Trial(requested=("b", "a"), printed=printed(text, 2))
    assert trial.equal is equal
    assert not replace(trial, error="ended with 3").equal
    assert not Trial().equal
    found = counted([(case, trial)])
    assert (found["equal"], len(found["failed"])) == (equal, not equal)


def test_a_rank_that_is_missing_or_ran_twice_is_named() -> None:
    assert printed("almanac-rank 1 2 b\n", 2) == ("?", "b")
    assert printed("almanac-rank 0 1 a\nalmanac-rank 0 1 b\n", 1) == ("a and b",)
    assert printed("almanac-rank 0 1 a\n", 2) == ("a of 1", "?")


def test_the_record_has_all_launchers_and_further_versions_of_slurm() -> None:
    record = json.loads(RECORD.read_text())
    assert set(record) == {*LAUNCHERS, "Slurm 24.11", "Slurm 26.05"}
    for one in record.values():
        assert one["cases"] == 100
        assert (one["equal"] == 100) == (not one["failed"])


BEFORE, AFTER = Stored(Counter("a")), Stored(Counter("ab"))
CASE = Command("map", ("map", "cg"))
KILLED = Outcome(-9, "", 1.0)


def faults(monkeypatch: pytest.MonkeyPatch, outcome: Outcome, states: list[Stored], codes: list[int]) -> str:
    """Return the verdict if these states are found, and verify and the repetition exit with these codes."""
    found, exits = iter(states), iter(codes)
    monkeypatch.setattr(trial, "stored", lambda *_: next(found))
    monkeypatch.setattr(trial, "run", lambda *_: Outcome(next(exits), "", 1.0))
    plain = Undisturbed(BEFORE, AFTER, 1.0)
    return "; ".join(judge(CASE, plain, outcome, {}, Path(), Path()).faults)


def test_a_command_that_is_done_or_undone_has_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    for left in (BEFORE, AFTER):
        assert faults(monkeypatch, KILLED, [left, AFTER], [0, 0]) == ""


def test_what_is_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    half = Stored(Counter("b"))
    crashed = Outcome(1, "Traceback (most recent call last):", 1.0)
    assert faults(monkeypatch, KILLED, [half, AFTER], [0, 0]) == "half stored"
    assert faults(monkeypatch, crashed, [BEFORE, AFTER], [0, 0]) == "traceback"
    assert faults(monkeypatch, Outcome(0, "", 1.0), [BEFORE, AFTER], [0, 0]) == "lost, with exit code 0"
    assert faults(monkeypatch, KILLED, [BEFORE, AFTER], [4, 0]).startswith("db verify")
    assert faults(monkeypatch, KILLED, [BEFORE, AFTER], [0, 1]).startswith("repeated: exit code 1")
    assert faults(monkeypatch, KILLED, [BEFORE, BEFORE], [0, 0]) == "repeated: something else is stored"


def test_stored_data_are_compared_without_times_of_writing_and_without_the_log(tmp_path: Path) -> None:
    def lines(seconds: float, runs: int, bytes: int = 5) -> Counter[str]:
        path = tmp_path / "backup"
        counts = {"Placement": 1, "IngestRun": runs, "IngestRun-RECORDED->Placement": runs}
        with writing(path, Header(schema=1, counts=counts)) as sink:
            sink.section("Placement")
            sink.record(encode({"id": "p", "hop_bytes": bytes, "wall_seconds": seconds}))
            sink.section("IngestRun")
            for number in range(runs):
                sink.record(encode({"id": str(number)}))
            sink.section("IngestRun-RECORDED->Placement")
            for number in range(runs):
                sink.record(encode([str(number), "p", {}]))
        return lines_of(path)

    assert lines(1.0, 1) == lines(2.0, 2)
    assert sum(lines(1.0, 1).values()) == 1
    assert lines(1.0, 1) != lines(1.0, 1, bytes=6)
