"""The first minute on a machine: the record keeps the promise; times are those of the command."""

from __future__ import annotations

import json
from pathlib import Path

from bench.speed.first_minute import RECORD, seconds

FIRST, NEXT, DEMO = 30.0, 4.0, 60.0
"""Promised seconds: of the processor for both placements, on the clock for the demonstration."""


def test_the_recorded_first_minute_is_short() -> None:
    steps = json.loads(RECORD.read_text("utf-8"))["steps"]
    assert 0 < steps["map, next"]["processor_seconds"] < NEXT
    assert steps["map, next"]["processor_seconds"] < steps["map, first"]["processor_seconds"] < FIRST
    assert 0 < steps["demo"]["wall_seconds"] < DEMO


def test_the_time_of_a_command_is_counted(tmp_path: Path) -> None:
    found = seconds(tmp_path, "--help")
    assert 0 < found["processor_seconds"] < 60
    assert 0 < found["wall_seconds"] < 60
