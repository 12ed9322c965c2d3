"""The folder of a batch: what tasks of a job array read and write there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from almanac.batch import folder as folder_module
from almanac.batch.folder import BatchFolder
from mapping.evaluation.report import PlacementReport, report_placement
from mapping.placement.case import PlacementCase
from mapping.placement.search.options import SearchOptions
from registry.errors import AlmanacError, InputError
from tests.support.search_problems import ring


def case_of(ranks: int, steps: int = 50) -> PlacementCase:
    fabric, profile, allocation = ring(6, ranks)
    options = SearchOptions(steps=steps, workers=1, strategies=["random"], seed=ranks)
    return PlacementCase(
        fabric=fabric, profile=profile, allocation=allocation, options=options, snapshot="c/1"
    )


def test_fewer_tasks_than_rows_run_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "MOST_TASKS", 2)
    folder = BatchFolder.open(tmp_path / "results")
    cases = {f"r{ranks}": case_of(ranks) for ranks in (3, 4, 5)}
    script = folder.prepare(cases).read_text()
    assert len(list(folder.path.glob("*.fabric"))) == 1  # the rows share it
    assert "#SBATCH --array=0-1\n" in script
    found = re.search(r'almanac\.batch (\S+) "\$SLURM_ARRAY_TASK_ID" 2$', script, re.M)
    assert found is not None
    rows = Path(found[1])
    assert rows.parent == folder.path
    folder.run(rows.name, 1, 2)
    assert [row for row, _ in folder.outcomes()] == ["r4"]
    folder.run(rows.name, 0, 2)
    outcomes = dict(folder.outcomes())
    assert set(outcomes) == set(cases)
    for row, case in cases.items():
        outcome = outcomes[row]
        assert isinstance(outcome, PlacementReport)
        here = report_placement(case)
        assert outcome.placement.host_of_rank.tobytes() == here.placement.host_of_rank.tobytes()
        assert outcome.case.snapshot == case.snapshot
        assert outcome.fabric.names == case.fabric.names


def test_rows_with_a_result_are_not_run_again(tmp_path: Path) -> None:
    folder = BatchFolder.open(tmp_path / "results")
    folder.prepare({"r3": case_of(3)})
    (rows,) = folder.path.glob("*.rows")
    folder.finish("r3", {"placement": "p1"})
    folder.run(rows.name, 0, 1)  # its case is gone
    assert folder.document("r3") == {"placement": "p1"}
    assert list(folder.outcomes()) == []


def test_an_error_is_the_outcome_of_its_row_alone(tmp_path: Path) -> None:
    folder = BatchFolder.open(tmp_path / "results")
    folder.prepare({"r7": case_of(7), "r3": case_of(3)})
    (rows,) = folder.path.glob("*.rows")
    folder.run(rows.name, 0, 1)
    outcomes = dict(folder.outcomes())
    assert isinstance(outcomes["r7"], AlmanacError)
    assert "7 ranks do not fit on 6 slots" in outcomes["r7"].reason
    assert isinstance(outcomes["r3"], PlacementReport)


def test_a_folder_is_the_users_alone(tmp_path: Path) -> None:
    folder = BatchFolder.open(tmp_path / "results")
    assert folder.path.stat().st_mode & 0o777 == 0o700
    folder.path.chmod(0o770)
    with pytest.raises(InputError, match="chmod 700"):
        BatchFolder.open(folder.path)
