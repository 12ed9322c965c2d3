"""Read the paper's printed values: its tables in ``tables.toml``, sentences in ``values.toml``."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from bench.support.figures import Said, said

TABLES, VALUES = (Path(__file__).with_name(name) for name in ("tables.toml", "values.toml"))


@cache
def _tables() -> dict[str, list[dict[str, Any]]]:
    return tomllib.loads(TABLES.read_text())


def table(number: int) -> list[dict[str, Any]]:
    """Return the rows of Table 1, 2 or 3, with the column names of ``tables.toml``."""
    return _tables()[f"table-{number}"]


def claims() -> dict[str, Said]:
    """Return the paper's sentences by key."""
    return said(VALUES)
