"""Many placements of one file: here, on a real Dask cluster, and with a real Slurm."""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from tests.almanac.conftest import Almanac
from tests.support.dask_cluster import DaskCluster
from tests.support.launchers import require, slurm
from tests.support.paths import ROOT

HEADER = "profile,cluster,hosts,slots,steps,seed,strategy\n"
ROWS = HEADER + (
    'cg,ft,"node[0001-0004,0033-0036]",2,3000,0,\n'
    "# a comment\n"
    "cg,ft,node[0001-0008],2,3000,1,\n"
    "\n"
    "cg,ft,node[0001-0008],2,3000,,greedy in-order\n"
)


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
    loaded: Almanac,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = write(tmp_path)
    call = loaded("batch", path, "--json")
    assert call.code == 0, call.err
    assert (call.json["failed"], call.json["waiting"]) == ([], 0)
    first, second, third = call.json["placements"]
    assert [one["line"] for one in (first, second, third)] == [2, 4, 6]
    words = ("map", "cg", "--cluster", "ft", "--hosts", "node[0001-0008]", "--slots", 2)
    again = loaded(*words, "--steps", 3000, "--seed", 1, "--json").json
    assert second["placement"] == again["placement"]
    assert third["strategy"] in {"greedy", "in-order"}
    assert (first["host_count"], second["seed"]) == (8, 1)
    path.write_text(f"{ROWS}cg,ft,node[0001-0008],2,3000,1,\n")  # a repeated row
    searched = MagicMock()
    monkeypatch.setattr("mapping.service.placing.placement_case", searched)
    repeated = loaded("batch", path)
    assert repeated.code == 0
    assert "3000" not in repeated.err
    searched.assert_not_called()
    assert second["placement"] in loaded("batch", path, "--json").out


def test_a_bad_row_is_reported_with_its_line_and_costs_no_other(
    loaded: Almanac,
    tmp_path: Path,
) -> None:
    bad = ROWS + (
        "cg,ft,node9999,2,3000,,\n"
        "cg,ft,node[0001-0008],x,3000,,\n"
        "cg,,node[0001-0008],2,3000,,\n"
        "cg,ft,node0001,2,3000,,\n"
        ",ft,node0001,2,3000,,\n"
    )
    path = write(tmp_path, bad)
    call = loaded("batch", path)
    assert call.code == 5
    assert f"{path}:7: there is no host 'node9999'" in call.err
    assert re.search(rf"{path}:8: .*'x' is not a valid integer", call.err)
    assert f"{path}:9: --hosts needs --cluster" in call.err
    assert f"{path}:10: 16 ranks do not fit on 2 slots" in call.err
    assert f"{path}:11: Missing argument 'PROFILE'" in call.err
    assert "placements" in call.out
    path.write_text(HEADER + "cg,ft,node0001,2,3000,,\n")
    assert loaded("batch", path).code == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty: the first line names columns"),
        ("profile,job,secs\n", "there is no column 'secs'; closest: seconds"),
        ("profile,fabric\n", "there is no column 'fabric'"),
        ("profile,profile\n", "a column is repeated"),
        ("profile,job\na,b,c\n", ":2: has 3 cells for 2 columns"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error(
    offline: Almanac, tmp_path: Path, text: str, message: str
) -> None:
    call = offline("batch", write(tmp_path, text))
    assert call.code == 1
    assert message in call.err


def test_a_folder_that_others_may_write_is_refused(offline: Almanac, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    folder.chmod(0o777)
    call = offline("batch", write(tmp_path), "--results", folder)
    assert call.code == 1
    assert "others may write to it" in call.err


def test_a_dask_cluster_finds_the_same(loaded: Almanac, tmp_path: Path, dask: DaskCluster) -> None:
    path = write(tmp_path, f"{ROWS}cg,ft,node0001,2,3000,,\n")
    here = loaded("batch", path, "--json")
    there = loaded("batch", path, "--results", tmp_path / "other", "--scheduler", dask.address, "--json")
    assert (here.code, there.code) == (5, 5)
    assert content(here.json) == content(there.json)
    (failed,) = there.json["failed"]
    assert "16 ranks do not fit on 2 slots" in failed["reason"]


def test_a_job_array_of_slurm_finds_the_same_without_a_database(
    loaded: Almanac,
    tmp_path: Path,
) -> None:
    require("slurmctld", "slurmd", "sbatch", "squeue")
    path, folder = write(tmp_path), tmp_path / "rows.csv.results"
    prepared = loaded("batch", path, "--slurm", "--json")
    assert prepared.code == 0, prepared.err
    assert prepared.json == {"placements": [], "failed": [], "waiting": 3}
    assert f"sbatch {folder}/job.sh" in prepared.err
    waiting = loaded("batch", path, "--collect", "--json")
    assert (waiting.code, waiting.json["waiting"]) == (1, 3)
    site = tmp_path / "slurm"
    site.mkdir()
    nowhere = {"ALMANAC_DB": "bolt://127.0.0.1:1", "PYTHONPATH": str(ROOT)}
    with slurm(site, "n[1-2]", ("n1", "n2"), 2) as scheduler:
        environment = {**os.environ, **scheduler.environment, **nowhere}
        submit = ["sbatch", "--wait", str(folder / "job.sh")]
        done = subprocess.run(submit, env=environment, capture_output=True, text=True, timeout=200)
        logs = "\n".join(log.read_text() for log in folder.glob("slurm-*.log"))
        assert done.returncode == 0, done.stderr + logs
    collected = loaded("batch", path, "--collect", "--json")
    assert collected.code == 0, collected.err
    here = loaded("batch", path, "--results", tmp_path / "other", "--json")
    assert content(collected.json) == content(here.json)
    assert not list(folder.glob("*.outcome"))
    assert not list(folder.glob("*.case"))
    stored = collected.json["placements"][0]["placement"]
    assert len(loaded("export", stored, "slurm-hostfile").out.splitlines()) == 16


def test_an_error_of_a_task_is_collected_and_tried_again(
    loaded: Almanac,
    tmp_path: Path,
) -> None:
    path = write(tmp_path, f"{HEADER}cg,ft,node[0001-0008],2,3000,,nonsense\n")
    folder = tmp_path / "rows.csv.results"
    assert loaded("batch", path, "--slurm").code == 0
    (rows,) = folder.glob("*.rows")
    from almanac.batch.__main__ import main

    main([str(rows), "0", "1"])
    (outcome,) = folder.glob("*.outcome")
    assert "nonsense" in str(pickle.loads(outcome.read_bytes()))
    call = loaded("batch", path, "--collect")
    assert call.code == 1
    assert f"{path}:2: there is no strategy 'nonsense'" in call.err
    assert not list(folder.glob("*.outcome"))


def test_a_document_of_a_row_is_that_of_map(loaded: Almanac, tmp_path: Path) -> None:
    path = write(tmp_path, HEADER + "cg,ft,node[0001-0008],2,1000,,\n")
    assert loaded("batch", path).code == 0
    (file,) = (tmp_path / "rows.csv.results").glob("*.json")
    words = ("map", "cg", "--cluster", "ft", "--hosts", "node[0001-0008]", "--slots", 2, "--steps", 1000)
    assert set(json.loads(file.read_text())) == set(loaded(*words, "--json").json)


def test_where_rows_run_is_one_choice(offline: Almanac, tmp_path: Path) -> None:
    call = offline("batch", write(tmp_path), "--slurm", "--scheduler", "tcp://x:1")
    assert call.code == 2
    assert "give only one of --slurm, --collect and --scheduler" in call.err
