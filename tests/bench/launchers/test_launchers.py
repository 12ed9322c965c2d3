"""Real launchers start each rank on the host of the requested order; the record is of the same cases."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bench.launchers.__main__ import RECORD, counted, tried
from bench.launchers.cases import KINDS, MOST, NAMES, Case
from bench.launchers.pretended import LAUNCHERS, Job, Pretended, Started
from bench.launchers.trial import Trial, printed, try_case
from tests.support.launchers import require

FIRST = 5
"""Cases that are tried here: one, two and four slots per host, uneven ones, and steps."""


@pytest.mark.parametrize("name", list(LAUNCHERS))
def test_each_rank_runs_on_the_requested_host(name: str) -> None:
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


def pretended(text: str, code: int = 0) -> tuple[Pretended, Job, Path]:
    """A launcher that prints a text, and what holds its jobs."""
    path = Path(tempfile.mkdtemp()) / "mpirun"
    path.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo "mpirun (Open MPI) 4.1.4" && exit\n{text}\nexit {code}\n'
    )
    path.chmod(0o755)

    @contextmanager
    def job(case: Case) -> Iterator[Started]:
        named = ",".join(f"{host}:{count}" for host, count in zip(case.hosts, case.slots, strict=True))
        yield Started(words=(str(path), "--host", named, "-n", str(case.ranks)), environment={})

    return replace(LAUNCHERS["Open MPI 4"], needs=(str(path),)), job, path.parent


@pytest.mark.parametrize(
    ("text", "code", "equal"),
    [
        ("n=0; while read host; do echo almanac-rank $n 8 $host; n=$((n + 1)); done <$2", 0, True),
        ("n=0; sort $2 | while read host; do echo almanac-rank $n 8 $host; n=$((n + 1)); done", 0, False),
        ("while read host; do echo almanac-rank 0 1 $host; done <$2", 0, False),
        ("n=0; while read host; do echo almanac-rank $n 8 $host; n=$((n + 1)); done <$2", 3, False),
    ],
    ids=["obeys", "sorts", "each for itself", "fails"],
)
def test_only_the_requested_order_counts(text: str, code: int, equal: bool) -> None:
    launcher, job, folder = pretended(text, code)
    try:
        case = Case.draw(0, 0)
        trial = try_case(case, launcher, job, Path("/program"), folder)
    finally:
        shutil.rmtree(folder)
    assert trial.equal is equal
    assert sorted(trial.requested) == list(NAMES)
    assert counted([(case, trial)])["equal"] == equal


def test_a_rank_that_is_missing_or_ran_twice_is_not_equal() -> None:
    assert printed("almanac-rank 1 2 b\n", 2) == ("?", "b")
    assert printed("almanac-rank 0 1 a\nalmanac-rank 0 1 b\n", 1) == ("a and b",)
    assert printed("almanac-rank 1 2 b\n[1] almanac-rank 0 2 a\n", 2) == ("a", "b")
    assert not Trial().equal


def test_the_record_has_all_launchers_and_further_versions_of_slurm() -> None:
    record = json.loads(RECORD.read_text())
    assert set(record) == {*LAUNCHERS, "Slurm 24.11", "Slurm 26.05"}
    for one in record.values():
        assert one["cases"] == 100
        assert (one["equal"] == 100) == (not one["failed"])
