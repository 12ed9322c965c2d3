"""Lists that may be cut: so many rows at most, by the database."""

from __future__ import annotations

from typing import Any

from registry.database.driver import Transaction


def some_rows(
    transaction: Transaction, statement: str, limit: int | None, **parameters: object
) -> list[dict[str, Any]]:
    """The first rows of a statement, all of them where no limit is given.

    No limit is large enough to mean none on both servers.

    Parameters
    ----------
    statement : str
        Ends with its ``ORDER BY``.
    """
    if limit is None:
        return transaction.run(statement, **parameters)
    return transaction.run(f"{statement}LIMIT $limit", limit=limit, **parameters)
