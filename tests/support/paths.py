"""Folders of the repository that tests read."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
DATA = TESTS / "data"


def written(folder: Path, name: str, text: str) -> Path:
    """Write a file; return its path."""
    path = folder / name
    path.write_text(text, "utf-8")
    return path
