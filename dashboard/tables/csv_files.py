"""Tables as CSV files that can be downloaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

STARTS = ("=", "+", "-", "@", "\t", "\r")
"""First characters by which spreadsheets take a text for a formula."""


def csv_text(table: pd.DataFrame, bases: Mapping[str, str] | None = None) -> str:
    """A table as CSV; a text that a spreadsheet would take for a formula gets an apostrophe before it.

    Names of jobs and users come from files: they are shown, never computed.

    Parameters
    ----------
    bases : mapping of str to str, optional
        Base unit of some columns, of `registry.units`: the file names it behind theirs.
    """
    safe = table.rename(columns={name: f"{name} ({base})" for name, base in (bases or {}).items()})
    for name in safe.columns:
        if not pd.api.types.is_numeric_dtype(safe[name]):
            safe[name] = pd.Series([_harmless(value) for value in safe[name]], index=safe.index)
    return safe.to_csv(index=False, lineterminator="\n", date_format="%Y-%m-%dT%H:%M:%SZ")


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(STARTS) else value
