"""Sizes and times of speed benchmarks: records keep the promises, and all processor time is counted."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from bench.speed import commands, scale, several_machines
from bench.speed.scale import LINES, cube, equivalent, fat_tree, markdown, ohtma, panels
from bench.support.paths import RESULTS, ROOT
from tests.support.dask_cluster import DaskCluster


def test_records_keep_the_promises() -> None:
    """Seconds of the processor for placements, on the clock for all else; the goal of a launcher is 0.3 s."""
    steps = json.loads(commands.FIRST_MINUTE.read_text("utf-8"))["steps"]
    assert 0 < steps["map, next"]["processor_seconds"] < 4.0
    assert steps["map, next"]["processor_seconds"] < steps["map, first"]["processor_seconds"] < 30.0
    assert 0 < steps["demo"]["wall_seconds"] < 60.0
    steps = json.loads(commands.KNOWN_PLACEMENT.read_text("utf-8"))["steps"]
    assert 0 < steps["known placement"]["wall_seconds"] <= 0.4
    assert all(0 < ratio < 0.7 for ratio in steps["ratio of pairs"].values())
    record = json.loads(commands.INSTALL.read_text("utf-8"))
    assert 0 < record["sizes"]["base_disk_bytes"] <= 500e6
    assert record["sizes"]["dashboard_disk_bytes"] > record["sizes"]["base_disk_bytes"]
    for part in ("base", "dashboard"):
        assert 0 < max(record["steps"][part].values()) < 0.5


def test_the_time_of_a_command_is_counted(processes: None, tmp_path: Path) -> None:
    found = commands.seconds(tmp_path, "--help")
    assert all(0 < found[seconds] < 60 for seconds in ("wall_seconds", "processor_seconds"))


def test_a_run_is_timed_until_the_launcher_starts(processes: None, tmp_path: Path) -> None:
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed")
    own = ProcessPoolExecutor(1, get_context("spawn"))
    with commands.prepared(tmp_path) as environment, own:
        found = own.submit(commands.timed, str(tmp_path), environment, ROOT).result()
    assert all(0 < found[seconds] < 60 for seconds in ("wall_seconds", "processor_seconds"))


def test_the_median_and_the_least_are_kept() -> None:
    runs = [{"wall_seconds": value} for value in (3.0, 1.0, 2.0)]
    assert commands.summary(runs) == {"wall_seconds": 2.0, "least_wall_seconds": 1.0}


def test_space_is_counted_as_du_counts_it(tmp_path: Path) -> None:
    for name in ("lib/numpy/a.py", "lib/numpy/__pycache__/a.pyc", "lib/pip/b.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * 100_000)
    found = commands.disk_use(tmp_path)
    assert 200_000 <= found["disk_bytes"] < 300_000
    assert 100_000 <= found["bytecode_bytes"] < 150_000
    assert 100_000 <= found["empty_venv_bytes"] < 150_000


def test_a_run_on_a_cluster_has_the_fields_of_the_record(dask: DaskCluster, tmp_path: Path) -> None:
    output = tmp_path / "record.json"
    several_machines.main([dask.address, "--largest", "100", "--output", str(output)])
    found, kept = (json.loads(path.read_text()) for path in (output, RESULTS / "several_machines.json"))
    assert found.keys() == kept.keys()
    assert (found["workers"], [one["ranks"] for one in found["sizes"]]) == (3, [100])
    for one in found["sizes"]:
        assert one.keys() == kept["sizes"][0].keys()
        assert all(value > 0 for value in one.values())


@pytest.mark.parametrize("ranks", [64, 512, 4096])
def test_a_fat_tree_has_a_host_for_five_ranks_and_a_cube_has_its_ranks(ranks: int) -> None:
    assert ranks <= 5 * len(fat_tree(ranks).hosts) < 2 * ranks + 200
    profile = cube(ranks)
    assert profile.ranks == ranks
    assert np.bincount(profile.sender).max() == 6  # neighbours inside


def test_limits_are_of_measured_sizes_and_the_largest_fat_tree_has_a_host_for_five_ranks() -> None:
    assert len(fat_tree(100_000).hosts) == 20_000
    for name, line in LINES.items():
        assert set(line.limits) <= set(line.sizes), name
        assert list(line.sizes) == sorted(line.sizes), name


def test_points_become_a_table_and_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "PATIENCE", 0.0)  # one repetition
    found = {"OHTMA": ohtma(64), "equivalent distances": equivalent(16)}
    curves = {
        name: {"unit": "ranks", "points": {64: {**one, "peak_memory_gb": 0.2}}, "limits_seconds": {64: 0.5}}
        for name, one in found.items()
    }
    record = {"date": "d", "machine": {"processor": "p", "cores": 2}, "curves": curves}
    assert "| OHTMA | 64 ranks |" in markdown(record)
    seconds, memory = panels(curves)
    assert [curve.label for curve in seconds.curves] == list(found)
    assert memory.curves[0].y == (0.2,)
