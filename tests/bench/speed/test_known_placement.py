"""The time until a launcher starts: the record is near the goal, and all processor time is counted."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from bench.speed.known_placement import RECORD, prepared, summary, timed
from bench.support.paths import ROOT

NEAR = 0.4
"""Seconds; the goal is 0.3."""


def test_the_recorded_start_is_soon() -> None:
    found = json.loads(RECORD.read_text("utf-8"))["steps"]
    assert 0 < found["known placement"]["wall_seconds"] <= NEAR
    assert all(0 < ratio < 0.7 for ratio in found["ratio of pairs"].values())


def test_a_run_is_timed_until_the_launcher_starts(tmp_path: Path) -> None:
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed")
    with prepared(tmp_path) as environment, ProcessPoolExecutor(1, get_context("spawn")) as own:
        found = own.submit(timed, str(tmp_path), environment, ROOT).result()
    assert 0 < found["wall_seconds"] < 60
    assert 0 < found["processor_seconds"] < 60


def test_the_median_and_the_least_are_kept() -> None:
    runs = [{"wall_seconds": value} for value in (3.0, 1.0, 2.0)]
    assert summary(runs) == {"wall_seconds": 2.0, "least_wall_seconds": 1.0}
