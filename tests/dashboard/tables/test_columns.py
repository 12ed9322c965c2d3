"""Columns: times in UTC, units, numbers with ranges."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd

from dashboard.tables.columns import folded, in_units, in_utc, numbers
from registry import units


def test_times_are_in_utc_and_may_be_missing() -> None:
    east = datetime(2026, 1, 1, 2, tzinfo=UTC).astimezone()
    column = in_utc([east, None])
    assert column[0] == pd.Timestamp("2026-01-01 02:00")
    assert pd.isna(column[1])


def test_columns_get_a_suitable_unit_in_their_title() -> None:
    scaled = in_units(
        pd.DataFrame({"time": [0.00123456, 0.0002], "job": ["1", "2"]}), {"time": units.SECONDS}
    )
    assert scaled["time (ms)"].tolist() == [1.23, 0.2]
    assert scaled["job"].tolist() == ["1", "2"]


def test_missing_numbers_become_nan_and_consecutive_ones_a_range() -> None:
    assert numbers([1, 2.5])[:2] == [1.0, 2.5]
    assert np.isnan(numbers([None])).all()
    assert folded([]) == ""
    assert folded([0, 1, 2, 5, 7, 8]) == "0-2, 5, 7-8"
