"""Helpers for statements over very many rows: progress reports, and columns of times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from registry.database.driver import BATCH, Transaction
from registry.model import as_utc
from registry.progress import Progress

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ProgressTransaction:
    """Wrapper of a transaction that reports the number of rows written.

    Parameters
    ----------
    transaction : Transaction
    progress : Progress
        Called with the number of rows written so far; the total is unknown.
    phase : str
    """

    def __init__(self, transaction: Transaction, progress: Progress, phase: str) -> None:
        self._transaction = transaction
        self._progress = progress
        self._phase = phase
        self._rows = 0
        progress(phase, 0)

    def run(self, statement: str, /, **parameters: object) -> list[dict[str, Any]]:
        """See `Transaction.run`."""
        return self._transaction.run(statement, **parameters)

    def run_columns(
        self,
        statement: str,
        columns: Mapping[str, Sequence[Any] | np.ndarray[Any, Any]],
        /,
        *,
        batch: int = BATCH,
        **parameters: object,
    ) -> None:
        """See `Transaction.run_columns`."""
        for start in range(0, max(map(len, columns.values())), batch):
            piece = {name: column[start : start + batch] for name, column in columns.items()}
            self._transaction.run_columns(statement, piece, batch=batch, **parameters)
            self._rows += max(map(len, piece.values()))
            self._progress(self._phase, self._rows)

    def finish(self) -> None:
        """Report that all rows are written."""
        self._progress(self._phase, self._rows, self._rows)


def instants(name: str, values: Sequence[datetime | None]) -> dict[str, list[int | None]]:
    """Return the columns for `Transaction.run_columns` from which `instant` makes times, to the microsecond.

    Use it for many times: the driver takes about 40 microseconds to send one, a hundred times as long as a
    number.

    Parameters
    ----------
    name : str
        Name of the column for `instant`.
    values : sequence of datetime or None
    """
    since = [None if value is None else as_utc(value) - _EPOCH for value in values]
    return {
        f"{name}_s": [None if one is None else one.days * 86400 + one.seconds for one in since],
        f"{name}_ns": [None if one is None else one.microseconds * 1000 for one in since],
    }


def instant(name: str) -> str:
    """Return the expression for the time in row ``i`` of the columns that `instants` made; it may be null."""
    second, rest = f"${name}_s[i]", f"${name}_ns[i]"
    time = f"datetime({{epochSeconds: {second}, nanosecond: {rest}}})"
    return f"CASE WHEN {second} IS NULL THEN null ELSE {time} END"
