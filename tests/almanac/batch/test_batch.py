"""Rows of a batch's file, and the folder that tasks of a job array read and write."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from almanac.batch import folder as folder_module
from almanac.batch.folder import BatchFolder
from almanac.batch.rows import Row, columns, read_rows
from almanac.commands.placing.map import command as map_command
from mapping.evaluation.report import PlacementReport, report_placement
from mapping.placement.case import PlacementCase
from mapping.placement.search.options import SearchOptions
from registry.errors import AlmanacError, InputError
from tests.support.search_problems import ring


def rows_of(tmp_path: Path, text: str) -> tuple[Row, ...]:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    return read_rows(str(path))


def test_a_row_is_the_request_of_these_options(tmp_path: Path) -> None:
    header = "profile,cluster,hosts,slots,objective,seconds,seed,seeds,strategy,pin,consecutive,"
    header += "background,routing\n"
    cells = '-wrf,c,"n[1-2,4]",2,hop-bytes,1.5,7,3,greedy random,0=n1 3=n4,,p1 p2/0.5,shortest-paths\n'
    (row,) = rows_of(tmp_path, header + cells)
    request = row.request(click.Context(map_command))
    assert (request.profile, request.cluster, request.hosts) == ("-wrf", "c", ("n1", "n2", "n4"))
    options = request.options
    assert (options.objective, options.seconds, options.steps) == ("hop-bytes", 1.5, None)
    assert (options.seed, options.seeds, options.strategies) == (7, 3, ("greedy", "random"))
    assert request.pins == {0: "n1", 3: "n4"}
    assert request.background == (("p1", None), ("p2", 0.5))
    assert (request.slots, request.costs.routing, options.consecutive) == (2, "shortest-paths", False)


def test_columns_are_all_options_of_map_that_name_a_placement() -> None:
    others = {"here", "fabric", "pareto", "layout", "export", "json", "scheduler"}
    of_map = {max(one.opts, key=len).lstrip("-") for one in map_command.params}
    assert set(columns()) == of_map - others


def test_rows_that_ask_for_the_same_have_the_same_id(tmp_path: Path) -> None:
    one, two, other = rows_of(tmp_path, "profile,job,seed\na,1,\na,1\na,1,0\n")
    again, _ = rows_of(tmp_path, "job,seed,profile\n1,,a\n2,,a\n")
    assert one.id == two.id == again.id != other.id
    assert [row.line for row in (one, two, other)] == [2, 3, 4]


def test_a_bad_value_names_its_line(tmp_path: Path) -> None:
    for cells, reason in (
        ("a,1,5,,maybe", "consecutive: write yes, or nothing"),
        ("a,1,5,9,", "give either --seconds or --steps"),
        ("a,1,zero,,", "'zero' is not a valid"),
    ):
        (row,) = rows_of(tmp_path, f"profile,job,seconds,steps,consecutive\n{cells}\n")
        with pytest.raises(InputError, match=reason) as error:
            row.request(click.Context(map_command))
        assert (error.value.path, error.value.line) == (str(tmp_path / "rows.csv"), 2)


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
