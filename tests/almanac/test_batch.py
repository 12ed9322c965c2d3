"""Many placements of one file: rows, folder of a job array; here, on a Dask cluster, with a real Slurm."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import click
import pytest

from almanac import batch as folder_module
from almanac.batch import BatchFolder, Row, columns, main, read_rows
from almanac.commands.map import command as map_command
from mapping.cost.report import PlacementReport, report_placement
from mapping.placement.case import PlacementCase
from mapping.placement.search import SearchOptions
from registry.errors import AlmanacError, InputError
from tests.almanac.conftest import Almanac
from tests.support.dask_cluster import DaskCluster
from tests.support.launchers import Slurm
from tests.support.paths import ROOT
from tests.support.search_problems import ring


def rows_of(tmp_path: Path, text: str) -> tuple[Row, ...]:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    return read_rows(str(path))


def test_a_row_is_the_request_of_the_options_of_map(tmp_path: Path) -> None:
    header = "profile,cluster,hosts,slots,objective,seconds,seed,seeds,strategy,pin,consecutive,"
    header += "background,routing\n"
    cells = '-wrf,c,"n[1-2,4]",2,hop-bytes,1.5,7,3,greedy random,0=n1 3=n4,,p1 p2/0.5,shortest-paths\n'
    (row,) = rows_of(tmp_path, header + cells)
    request = row.request(click.Context(map_command))
    assert (request.profile, request.cluster, request.hosts) == ("-wrf", "c", ("n1", "n2", "n4"))
    options = request.options
    assert (options.objective, options.seconds, options.steps) == ("hop-bytes", 1.5, None)
    assert (options.seed, options.seeds, options.strategies) == (7, 3, ("greedy", "random"))
    assert (request.pins, request.background) == ({0: "n1", 3: "n4"}, (("p1", None), ("p2", 0.5)))
    assert (request.slots, request.costs.routing, options.consecutive) == (2, "shortest-paths", False)
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
    assert (folder.document("r3"), list(folder.outcomes())) == ({"placement": "p1"}, [])


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


HEADER = "profile,cluster,hosts,slots,steps,seed,strategy\n"
HOSTS = "node[0001-0008]"
ROWS = HEADER + (
    f'cg,ft,"node[0001-0004,0033-0036]",2,300,0,\n# a comment\ncg,ft,{HOSTS},2,300,1,\n\n'
    f"cg,ft,{HOSTS},2,300,,greedy in-order\n"
)
MAP = ("map", "cg", "--cluster", "ft", "--hosts", HOSTS, "--slots", 2, "--steps", 300)


def write(tmp_path: Path, text: str = ROWS) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    return path


def content(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the placements without their times; ids are digests of content without times."""
    return [
        {name: value for name, value in one.items() if name != "wall_seconds"} for one in found["placements"]
    ]


def test_each_row_is_what_map_finds_and_rows_that_are_done_are_skipped(
    loaded: Almanac, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path)
    found = loaded.json("batch", path)
    assert (found["failed"], found["waiting"]) == ([], 0)
    first, second, third = found["placements"]
    assert [one["line"] for one in (first, second, third)] == [2, 4, 6]
    again = loaded.json(*MAP, "--seed", 1)
    assert second["placement"] == again["placement"]
    assert third["strategy"] in {"greedy", "in-order"}
    assert (first["host_count"], second["seed"]) == (8, 1)
    for file in (tmp_path / "rows.csv.results").glob("*.json"):
        assert set(json.loads(file.read_text())) == set(again)
    path.write_text(f"{ROWS}cg,ft,{HOSTS},2,300,1,\n")  # a repeated row
    searched = MagicMock()
    monkeypatch.setattr("mapping.questions.place.placement_case", searched)
    loaded.ok("batch", path)
    searched.assert_not_called()
    assert second["placement"] in loaded("batch", path, "--json").out


def test_a_bad_row_is_reported_with_its_line_and_costs_no_other(loaded: Almanac, tmp_path: Path) -> None:
    bad = (
        "cg,ft,node9999,2,300,,\n"
        f"cg,ft,{HOSTS},x,300,,\n"
        f"cg,,{HOSTS},2,300,,\n"
        "cg,ft,node0001,2,300,,\n"
        ",ft,node0001,2,300,,\n"
    )
    path = write(tmp_path, ROWS + bad)
    call = loaded("batch", path)
    assert call.code == 5
    assert f"{path}:7: there is no host 'node9999'" in call.err
    assert re.search(rf"{path}:8: .*'x' is not a valid integer", call.err)
    assert f"{path}:9: --hosts needs --cluster" in call.err
    assert f"{path}:10: 16 ranks do not fit on 2 slots" in call.err
    assert f"{path}:11: Missing argument 'PROFILE'" in call.err
    assert "placements" in call.out
    path.write_text(HEADER + "cg,ft,node0001,2,300,,\n")
    loaded.refused("batch", path, code=1)


def test_what_cannot_be_run_is_an_error(offline: Almanac, tmp_path: Path) -> None:
    for text, message in (
        ("", "is empty: the first line names columns"),
        ("profile,job,secs\n", "there is no column 'secs'; closest: seconds"),
        ("profile,fabric\n", "there is no column 'fabric'"),
        ("profile,profile\n", "a column is repeated"),
        ("profile,job\na,b,c\n", ":2: has 3 cells for 2 columns"),
    ):
        assert message in offline.refused("batch", write(tmp_path, text))
    folder = tmp_path / "results"
    folder.mkdir()
    folder.chmod(0o777)
    refused = offline.refused("batch", write(tmp_path), "--results", folder)
    assert "others may write to it" in refused
    twice = offline.refused("batch", write(tmp_path), "--slurm", "--scheduler", "tcp://x:1", code=2)
    assert "give only one of --slurm, --collect and --scheduler" in twice


def test_a_dask_cluster_finds_the_same(loaded: Almanac, tmp_path: Path, dask: DaskCluster) -> None:
    path = write(tmp_path, f"{ROWS}cg,ft,node0001,2,300,,\n")
    here = loaded("batch", path, "--json")
    there = loaded("batch", path, "--results", tmp_path / "other", "--scheduler", dask.address, "--json")
    assert (here.code, there.code) == (5, 5)
    assert content(here.json) == content(there.json)
    (failed,) = there.json["failed"]
    assert "16 ranks do not fit on 2 slots" in failed["reason"]


def test_a_job_array_finds_the_same_without_a_database(loaded: Almanac, tmp_path: Path, site: Slurm) -> None:
    path, folder = write(tmp_path), tmp_path / "rows.csv.results"
    prepared = loaded.ok("batch", path, "--slurm", "--json")
    assert prepared.json == {"placements": [], "failed": [], "waiting": 3}
    assert f"sbatch {folder}/job.sh" in prepared.err
    waiting = loaded("batch", path, "--collect", "--json")
    assert (waiting.code, waiting.json["waiting"]) == (1, 3)
    nowhere = {"ALMANAC_DB": "bolt://127.0.0.1:1", "PYTHONPATH": str(ROOT)}
    submit = ["sbatch", "--wait", str(folder / "job.sh")]
    environment = {**os.environ, **site.environment, **nowhere}
    done = subprocess.run(submit, env=environment, capture_output=True, text=True, timeout=200)
    logs = "\n".join(log.read_text() for log in folder.glob("slurm-*.log"))
    assert done.returncode == 0, done.stderr + logs
    collected = loaded.json("batch", path, "--collect")
    here = loaded.json("batch", path, "--results", tmp_path / "other")
    assert content(collected) == content(here)
    assert not list(folder.glob("*.outcome"))
    assert not list(folder.glob("*.case"))
    stored = collected["placements"][0]["placement"]
    assert len(loaded("export", stored, "slurm-hostfile").out.splitlines()) == 16


def test_what_tasks_leave_is_collected_and_errors_are_tried_again(loaded: Almanac, tmp_path: Path) -> None:
    path = write(tmp_path, f"{HEADER}cg,ft,{HOSTS},2,300,,nonsense\ncg,ft,{HOSTS},2,300,1,\n")
    folder = tmp_path / "rows.csv.results"
    loaded.ok("batch", path, "--slurm")
    (rows,) = folder.glob("*.rows")
    for task in ("0", "1"):
        main([str(rows), task, "2"])
    outcomes = [pickle.loads(outcome.read_bytes()) for outcome in folder.glob("*.outcome")]
    assert sum("nonsense" in str(outcome) for outcome in outcomes) == 1
    call = loaded("batch", path, "--collect", "--json")
    assert call.code == 5
    (failed,) = call.json["failed"]
    assert (failed["line"], "there is no strategy 'nonsense'" in failed["reason"]) == (2, True)
    assert f"{path}:2: there is no strategy 'nonsense'" in call.err
    (found,) = call.json["placements"]
    assert (found["line"], found["placement"]) == (3, loaded.json(*MAP, "--seed", 1)["placement"])
    assert not list(folder.glob("*.outcome"))
