"""One Bolt connection to either server, Neo4j or ArcadeDB: the only module that knows the driver.

Work is a function of a `Transaction` and may be called more than once: a transaction that met a
conflict is rolled back and done again, so work must have no effect but on the database. Times go in
and come out as aware `datetime` in UTC (ArcadeDB keeps no zone), bytes as `bytes`; numpy arrays and
scalars are taken as lists and numbers.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, NoReturn, Protocol, Self, TypeVar
from urllib.parse import urlsplit

import neo4j
import numpy as np
from neo4j.exceptions import (
    AuthError,
    ConstraintError,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
)
from neo4j.graph import Node, Path, Relationship
from neo4j.time import Date, DateTime

from registry.database.read_only import writing_word
from registry.errors import DatabaseError, DatabaseUnavailable, InconsistentGraph, WriteRefused
from registry.model import as_utc

T = TypeVar("T")

SCHEMES = frozenset({"bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc"})
BATCH = 10_000
"""Rows that one statement of `Transaction.run_columns` writes."""
CONNECT_SECONDS = 10.0
CONFLICT_SECONDS = 300.0
"""How long a transaction that meets conflicts is tried again; longer than the longest ingest."""
RACE_ATTEMPTS = 5
"""Tries of what may have lost a race to create: the loser finds it there when it tries again."""
TORN_ATTEMPTS = 12
"""Tries of what read one state from before and one from after another's commit; about 10 s in all."""

_PLAIN = frozenset({type(None), bool, int, float, str, bytes})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Without a handler of its own the driver's log would reach the terminal through logging's last resort.
logging.getLogger("neo4j").addHandler(logging.NullHandler())


class Transaction(Protocol):
    """What work can do inside a transaction."""

    def run(self, statement: str, /, **parameters: object) -> list[dict[str, Any]]:
        """Run one statement; rows as dicts by column."""

    def run_columns(
        self,
        statement: str,
        columns: Mapping[str, Sequence[Any] | np.ndarray[Any, Any]],
        /,
        *,
        batch: int = BATCH,
        **parameters: object,
    ) -> None:
        """Run one statement over parallel columns, `batch` rows at a time.

        Parameters
        ----------
        statement : str
            Begins with ``UNWIND range(0, size($first) - 1) AS i``, where ``first`` is one of the
            columns, and uses ``$column[i]``. Lists of rows or of maps were measured to be no faster.
        columns : mapping of str to sequence
            All of one length; none is written where that is 0.
        **parameters
            The same for each batch.
        """


class Database:
    """A graph database: connect, then read and write in managed transactions.

    Attributes
    ----------
    uri : str
    kind : str
        ``neo4j`` or ``arcadedb``.
    version : str
        What the server calls itself.
    """

    def __init__(self, driver: neo4j.Driver, uri: str, name: str | None) -> None:
        self.uri = uri
        self._driver = driver
        self._name = name
        self.version = driver.get_server_info().agent
        self.kind = "arcadedb" if "arcadedb" in self.version.lower() else "neo4j"

    @classmethod
    def connect(
        cls, uri: str, *, user: str | None = None, password: str | None = None, name: str | None = None
    ) -> Self:
        """Connect and verify with a query that address, password and database name are good.

        Parameters
        ----------
        uri : str
            ``bolt://host:port`` or ``neo4j://host:port``, with ``+s`` for TLS.
        user, password : str, optional
            Neither for a server without authentication.
        name : str, optional
            Database on the server; the user's home database by default.

        Raises
        ------
        DatabaseUnavailable
        """
        if urlsplit(uri).scheme not in SCHEMES:
            raise DatabaseUnavailable(
                uri, "that is no Bolt address", "give one such as bolt://localhost:7687"
            )
        auth = None if user is None and password is None else (user or "neo4j", password or "")
        driver = None
        try:
            driver = neo4j.GraphDatabase.driver(
                uri,
                auth=auth,
                connection_timeout=CONNECT_SECONDS,
                connection_acquisition_timeout=CONNECT_SECONDS * 2,
                # Hints on absent labels and the like say nothing in a registry that may be empty.
                notifications_min_severity="OFF",
                warn_notification_severity="OFF",
            )
            database = cls(driver, uri, name)
            with driver.session(database=name) as session:
                session.run("RETURN 1").consume()
        except (Neo4jError, DriverError, OSError, ValueError) as error:
            if driver is not None:
                driver.close()
            raise _unavailable(uri, name, error) from error
        return database

    def read(self, work: Callable[[Transaction], T]) -> T:
        """What `work` returns of a read transaction.

        Raises
        ------
        DatabaseUnavailable
        DatabaseError
        """
        return self._managed(neo4j.READ_ACCESS, work)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """What `work` returns of a write transaction: all of it is kept or nothing.

        Raises
        ------
        DatabaseUnavailable
        DatabaseError
        """
        return self._managed(neo4j.WRITE_ACCESS, work)

    def query(self, statement: str, /, **parameters: object) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Columns and rows of a user's own statement, which may only read.

        ArcadeDB lets a read transaction write, so the statement is looked through first, on both
        servers alike, and the transaction is rolled back whatever it did. ArcadeDB names no columns
        where there are no rows.

        Raises
        ------
        WriteRefused
        DatabaseUnavailable
        DatabaseError
            The server does not understand the statement.
        """
        word = writing_word(statement)
        if word is not None:
            raise WriteRefused(word, statement)
        try:
            with self._transaction(neo4j.READ_ACCESS) as transaction:
                result = transaction.run(statement, _outgoing(parameters))
                columns = tuple(result.keys())
                rows = [tuple(map(_incoming, record.values())) for record in result]
                transaction.rollback()
        except (Neo4jError, DriverError) as error:
            self._fail(error, statement)
        return columns, rows

    def close(self) -> None:
        """Close all connections."""
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _managed(self, access: str, work: Callable[[Transaction], T]) -> T:
        deadline = time.monotonic() + CONFLICT_SECONDS
        pause = 0.02
        races = torn = 0
        while True:
            try:
                return self._once(access, work)
            except InconsistentGraph:
                torn += 1
                if torn >= TORN_ATTEMPTS:
                    raise
            except (Neo4jError, DriverError) as error:
                lost, gone = _is_lost_race(error), _is_torn(error)
                races, torn = races + lost, torn + gone
                again = (lost and races < RACE_ATTEMPTS) or (gone and torn < TORN_ATTEMPTS)
                if not (again or _is_conflict(error)) or time.monotonic() + pause > deadline:
                    self._fail(error)
            # Jitter keeps two writers from meeting again and again; it decides no result.
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311
            pause = min(pause * 2, 2.0)

    def _once(self, access: str, work: Callable[[Transaction], T]) -> T:
        with self._transaction(access) as transaction:
            result = work(_BoltTransaction(transaction))
            transaction.commit()
        return result

    @contextmanager
    def _transaction(self, access: str) -> Iterator[neo4j.Transaction]:
        """A transaction that is rolled back unless it is committed; an interrupt cuts its connection.

        An answer of which a part was read cannot be gone on with: the driver would wait for ever.
        It drops a connection of which it thinks that its task was cancelled, and the server rolls back.
        """
        try:
            with self._driver.session(database=self._name, default_access_mode=access) as session:
                transaction = None
                try:
                    transaction = session.begin_transaction()
                    yield transaction
                except KeyboardInterrupt as interrupt:
                    raise _Interrupted(interrupt) from interrupt
                except BaseException:
                    if transaction is not None:
                        transaction.close()
                    raise
                transaction.close()
        except _Interrupted as cut:
            raise cut.interrupt from None

    def _fail(self, error: Neo4jError | DriverError, statement: str | None = None) -> NoReturn:
        if isinstance(error, (ServiceUnavailable, SessionExpired, AuthError)):
            raise _unavailable(self.uri, self._name, error) from error
        raise DatabaseError(f"the database refused: {_one_line(error)}", text=statement) from error


class _Interrupted(asyncio.CancelledError):
    """What an interrupt goes through the driver as."""

    def __init__(self, interrupt: KeyboardInterrupt) -> None:
        self.interrupt = interrupt
        super().__init__()


def instants(name: str, values: Sequence[datetime | None]) -> dict[str, list[int | None]]:
    """Columns for `Transaction.run_columns` of which `instant` makes times again, to the microsecond.

    For many times: the driver takes some forty microseconds to send one, a hundred times a number.

    Parameters
    ----------
    name : str
        Name of the column that `instant` is given.
    values : sequence of datetime or None
    """
    since = [None if value is None else as_utc(value) - _EPOCH for value in values]
    return {
        f"{name}_s": [None if one is None else one.days * 86400 + one.seconds for one in since],
        f"{name}_ns": [None if one is None else one.microseconds * 1000 for one in since],
    }


def instant(name: str) -> str:
    """The expression for the time in row ``i`` of the columns that `instants` made of `name`; may be null."""
    second, rest = f"${name}_s[i]", f"${name}_ns[i]"
    time = f"datetime({{epochSeconds: {second}, nanosecond: {rest}}})"
    return f"CASE WHEN {second} IS NULL THEN null ELSE {time} END"


class _BoltTransaction:
    def __init__(self, transaction: neo4j.Transaction) -> None:
        self._transaction = transaction

    def run(self, statement: str, /, **parameters: object) -> list[dict[str, Any]]:
        result = self._transaction.run(statement, _outgoing(parameters))
        keys = result.keys()
        return [dict(zip(keys, map(_incoming, record.values()), strict=True)) for record in result]

    def run_columns(
        self,
        statement: str,
        columns: Mapping[str, Sequence[Any] | np.ndarray[Any, Any]],
        /,
        *,
        batch: int = BATCH,
        **parameters: object,
    ) -> None:
        sizes = {name: len(column) for name, column in columns.items()}
        if len(set(sizes.values())) != 1:
            raise ValueError(f"columns must be there and of one length: {sizes}")
        for start in range(0, next(iter(sizes.values())), batch):
            piece = {name: column[start : start + batch] for name, column in columns.items()}
            self._transaction.run(statement, _outgoing({**piece, **parameters})).consume()


def _outgoing(value: Any) -> Any:
    """The value as the driver takes it, times in UTC: ArcadeDB drops the zone."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, datetime):
        return as_utc(value)
    if isinstance(value, Mapping):
        return {key: _outgoing(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return value if _PLAIN.issuperset(map(type, value)) else [_outgoing(item) for item in value]
    return value


def _incoming(value: Any) -> Any:
    """The value as the rest of the program takes it; graph elements become dicts of properties."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, list):
        return value if _PLAIN.issuperset(map(type, value)) else [_incoming(item) for item in value]
    if isinstance(value, DateTime):
        return as_utc(value.to_native())
    if isinstance(value, Date):
        return value.to_native()
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, dict | Node | Relationship):
        return {key: _incoming(item) for key, item in value.items()}
    if isinstance(value, Path):
        return [_incoming(step) for step in (*value.nodes, *value.relationships)]
    return value


def _is_conflict(error: Neo4jError | DriverError) -> bool:
    """Whether another transaction was in the way; a server that is gone or too small is not waited for."""
    code = getattr(error, "code", None) or ""
    gone = isinstance(error, (ServiceUnavailable, SessionExpired))
    return error.is_retryable() and not gone and "OutOfMemory" not in code


def _is_torn(error: Neo4jError | DriverError) -> bool:
    """Whether something that was found is not there any more.

    ArcadeDB takes no lock before it commits, so another writer's commit may come between two reads of one
    transaction, or between finding a record and reading it.
    """
    return getattr(error, "code", None) == "Neo.ClientError.Statement.EntityNotFound"


def _is_lost_race(error: Neo4jError | DriverError) -> bool:
    """Whether this may be the loser of two that create the same thing for the first time.

    ArcadeDB lets two MERGEs of one id collide, Neo4j two ``CREATE INDEX ... IF NOT EXISTS``.
    """
    code = getattr(error, "code", None) or ""
    return isinstance(error, ConstraintError) or (
        code.startswith("Neo.ClientError.Schema.") and code.endswith("AlreadyExists")
    )


def _unavailable(uri: str, name: str | None, error: Exception) -> DatabaseUnavailable:
    code = getattr(error, "code", None) or ""
    if isinstance(error, AuthError):
        return DatabaseUnavailable(
            uri, "the user or the password is refused", "check both in the database setting"
        )
    if code == "Neo.ClientError.Database.DatabaseNotFound":
        return DatabaseUnavailable(
            uri, f"the server has no database {name!r}", "check its name in the database setting"
        )
    return DatabaseUnavailable(
        uri, _cause(error), "check the address and that the server is started (almanac doctor)"
    )


def _one_line(error: BaseException) -> str:
    message = getattr(error, "message", None) or str(error) or type(error).__name__
    return " ".join(str(message).split())


def _cause(error: BaseException) -> str:
    """What the operating system said where it was the one to refuse, else what the driver says."""
    deepest: BaseException | None = error
    while deepest is not None:
        if isinstance(deepest, OSError) and deepest.strerror:
            return deepest.strerror
        deepest = deepest.__cause__
    return _one_line(error)
