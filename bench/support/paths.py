"""Folders of the repository that benchmarks read and write."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench" / "results"
DATA = ROOT / "tests" / "data"
