"""The verdict on what is stored after a fault."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bench.faults import trial
from bench.faults.commands import Case, Outcome
from bench.faults.stored import Stored, lines_of
from bench.faults.trial import Undisturbed, judge
from registry.database.backups.backup_file import Header, encode, writing

BEFORE, AFTER = Stored(Counter("a")), Stored(Counter("ab"))
CASE = Case("map", ("map", "cg"))
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
