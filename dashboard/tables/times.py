"""Times in tables: in UTC, which the column's title says, so without a zone."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import pandas as pd


def in_utc(moments: Iterable[datetime | None]) -> pd.Series:
    """Times to the second for a column of a table; empty where there is none."""
    plain = [None if at is None else at.astimezone(UTC).replace(tzinfo=None, microsecond=0) for at in moments]
    return pd.Series(plain, dtype="datetime64[s]")
