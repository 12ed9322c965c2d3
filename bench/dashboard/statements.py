"""Record which Cypher statements a page of the dashboard runs, without a browser."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from registry.database.driver import Database, Transaction
from registry.registry import Registry

T = TypeVar("T")
SECONDS = 300.0
"""Longest that a page may take."""


class CountingDatabase:
    """A database that records the statements that it runs."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.statements: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Read as `Database.read` does, and record the statements."""
        return self._database.read(lambda transaction: work(self._counted(transaction)))

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Write as `Database.write` does, and record the statements."""
        return self._database.write(lambda transaction: work(self._counted(transaction)))

    def close(self) -> None:
        """Do nothing: the database belongs to the caller."""

    def _counted(self, transaction: Transaction) -> Transaction:
        outer = self

        class Counting:
            def run(self, statement: str, /, **parameters: object) -> list[dict[str, Any]]:
                outer.statements.append(statement)
                return transaction.run(statement, **parameters)

            def run_columns(self, statement: str, columns: Any, /, **parameters: Any) -> None:
                outer.statements.append(statement)
                transaction.run_columns(statement, columns, **parameters)

        return cast(Transaction, Counting())


def statements_of(database: Database, path: str, address: Mapping[str, str], viewers: int = 1) -> int:
    """Count the statements of a page that nothing has cached; see `ran`."""
    return len(ran(database, path, address, viewers))


def ran(database: Database, path: str, address: Mapping[str, str], viewers: int = 1) -> list[str]:
    """Return the statements of a page that nothing has cached, in order.

    Raises:
        RuntimeError: The page fails.
    """
    st.cache_resource.clear()
    counting = CountingDatabase(database)
    for _ in range(viewers):
        Session(counting, path, address).run()
    st.cache_resource.clear()
    return counting.statements


class Session:
    """A session of one viewer, who looks at one page; sessions share a database, as those of a server do."""

    def __init__(self, counting: CountingDatabase, path: str, address: Mapping[str, str]) -> None:
        self._counting = counting
        self._app = AppTest.from_function(_script, args=(self._connect,))
        self._app.query_params.update(address)
        self._app._page_hash = calc_hash(path)  # the public way is for pages that are files
        self._path = path

    def run(self) -> list[str]:
        """Draw the page, and return the statements that this took.

        Raises:
            RuntimeError: The page fails.
        """
        before = len(self._counting.statements)
        self._app.run(timeout=SECONDS)
        if self._app.exception:
            raise RuntimeError(f"the page {self._path!r} fails: {self._app.exception[0].message}")
        return self._counting.statements[before:]

    def _connect(self) -> Registry:
        return Registry(cast(Database, self._counting))


def _script(connect: object) -> None:
    from typing import Any, cast

    from dashboard.app import run

    run(cast(Any, connect))
