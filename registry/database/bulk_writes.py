"""Statements over very many rows: progress reports, and columns of times."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from registry.database.driver import Transaction
from registry.model import as_utc
from registry.progress import Progress

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ProgressTransaction(Transaction):
    """A transaction that reports the number of rows written.

    Args:
        progress: Called with the number of rows written so far; the total is unknown.
    """

    def __init__(self, transaction: Transaction, progress: Progress, phase: str) -> None:
        super().__init__(transaction._transaction)
        self._progress = progress
        self._phase = phase
        self._rows = 0
        progress(phase, 0)

    def _report(self, rows: int) -> None:
        self._rows += rows
        self._progress(self._phase, self._rows)

    def finish(self) -> None:
        """Report that all rows are written."""
        self._progress(self._phase, self._rows, self._rows)


def instants(name: str, values: Sequence[datetime | None]) -> dict[str, list[int | None]]:
    """Return the columns for `Transaction.run_columns` from which `instant` makes times, to the microsecond.

    Use it for many times: the driver takes about 40 microseconds to send one, a hundred times as long as a
    number.

    Args:
        name: Name of the column for `instant`.
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
