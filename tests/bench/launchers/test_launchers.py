"""Real launchers start each rank on the host of the requested order; the record is of the same cases."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from bench.launchers.__main__ import RECORD, counted, tried
from bench.launchers.cases import KINDS, MOST, NAMES, Case
from bench.launchers.pretended import LAUNCHERS
from bench.launchers.trial import Trial, printed
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
