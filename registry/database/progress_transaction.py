"""A transaction that tells how far it is, for statements over very many rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from registry.database.driver import BATCH, Transaction
from registry.progress import Progress


class ProgressTransaction:
    """Does what another transaction does, and tells how many rows it has written.

    Parameters
    ----------
    transaction : Transaction
    progress : Progress
        Called with the rows written so far; how many there will be is not known.
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
        """Tell that this was all."""
        self._progress(self._phase, self._rows, self._rows)
