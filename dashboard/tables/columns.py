"""Columns of tables: times, numbers, units, and lists of numbers as text. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import pandas as pd

from registry import units


def in_utc(times: Iterable[datetime | None]) -> pd.Series:
    """Return times as a column in UTC, to the second; the title of the column must name the zone."""
    plain = [
        None if time is None else time.astimezone(UTC).replace(tzinfo=None, microsecond=0) for time in times
    ]
    return pd.Series(plain, dtype="datetime64[s]")


def numbers(values: Iterable[float | None]) -> list[float]:
    """Return values as floats, NaN instead of None."""
    return [math.nan if value is None else float(value) for value in values]


def in_units(table: pd.DataFrame, columns: Mapping[str, str]) -> pd.DataFrame:
    """Return the table with some columns in a suitable unit, three figures; the unit is added to the titles.

    Parameters
    ----------
    columns : mapping of str to str
        Base unit of each column, such as `registry.units.SECONDS`.
    """
    scaled = table.copy()
    for name, base in columns.items():
        unit = units.unit_for(table[name].dropna().tolist(), base)
        scaled[name] = [float(f"{value / unit.size:.3g}") for value in table[name]]
        scaled = scaled.rename(columns={name: f"{name} ({unit.name})"})
    return scaled


def folded(numbers: Sequence[int]) -> str:
    """Return ascending numbers as text with ranges: ``0-3, 7``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
