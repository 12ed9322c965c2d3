"""Finding what has an id by the id or by a unique beginning of it."""

from __future__ import annotations

from collections.abc import Collection, Container
from typing import Any, NamedTuple

from registry.database.driver import Transaction
from registry.errors import UnknownName


class ById(NamedTuple):
    """Statements about one kind of node.

    Attributes
    ----------
    kind : str
    label : str
    read : str
        A row for the node of the id ``$KIND``.
    """

    kind: str
    label: str
    read: str

    @property
    def begun(self) -> str:
        """The statement for ``ids``: those that begin with ``$beginning``."""
        return f"MATCH (n:{self.label})\nWHERE n.id STARTS WITH $beginning\nRETURN collect(n.id) AS ids\n"

    @property
    def ids(self) -> str:
        """The statement for ``ids``: all."""
        return f"MATCH (n:{self.label})\nRETURN collect(n.id) AS ids\n"


def require_all(transaction: Transaction, asked: ById, ids: Collection[str], found: Container[str]) -> None:
    """Raise `UnknownName`, with the closest ids, for the first id that was not found."""
    for one in ids:
        if one not in found:
            raise _unknown(transaction, asked, one)


def find_by_prefix(transaction: Transaction, asked: ById, text: str) -> dict[str, Any]:
    """The row of what has this id, or the only one that begins so.

    Raises
    ------
    UnknownName
        With the closest ids.
    """
    found = transaction.run(asked.read, **{asked.kind: text})
    if not found:
        begun = transaction.run(asked.begun, beginning=text)[0]["ids"] if text else []
        if len(begun) != 1:
            raise _unknown(transaction, asked, text)
        found = transaction.run(asked.read, **{asked.kind: begun[0]})
    return found[0]


def _unknown(transaction: Transaction, asked: ById, text: str) -> UnknownName:
    return UnknownName(asked.kind, text, transaction.run(asked.ids)[0]["ids"])


def limited_rows(
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
