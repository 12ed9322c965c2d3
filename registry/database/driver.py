"""Bolt connection to a Neo4j or ArcadeDB server, in the only module that imports the driver.

The driver is imported when it is first used: that takes longer than importing the rest of the registry.

Work is a function of a `Transaction` and may be called several times: after a conflict the transaction is
rolled back and repeated, so work must affect nothing but the database.

The address of a server: a Bolt URI without credentials, which would be printed and logged with it.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar
from urllib.parse import urlsplit

from registry.database.embedded_files import REMEDY, ServerFiles, damage_text
from registry.database.read_only import writing_word
from registry.database.values import incoming, outgoing
from registry.errors import DatabaseError, DatabaseUnavailable, InconsistentGraph, WriteRefused, WritersPaused
from registry.installation import no_space

if TYPE_CHECKING:
    import neo4j
    import numpy as np
    from neo4j.exceptions import DriverError, Neo4jError


SCHEMES = frozenset({"bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc"})
ELSEWHERE = (
    "it holds a user or a password, which others could read: give them as ALMANAC_DB_USER and "
    "ALMANAC_DB_PASSWORD, or db_user and db_password_file"
)
MORE = (
    "only ?policy=NAME may follow the host and the port: a user and a password, which others could read "
    "here, are given as ALMANAC_DB_USER and ALMANAC_DB_PASSWORD, or db_user and db_password_file"
)
_AFTER = re.compile(r"(?s)(?!\?policy=[\w.-]*$)([?#;&]).*")


def credentials(uri: str) -> str:
    """Return the fault of an address that holds what may be a user or a password; empty if it does not."""
    if "@" in uri:
        return ELSEWHERE
    return MORE if _AFTER.search(uri) else ""


def fault(uri: str) -> str:
    """Return why an address cannot be used; empty if it can."""
    if found := credentials(uri):
        return found
    try:
        parts = urlsplit(uri)
        if parts.scheme in SCHEMES and parts.hostname and (parts.port is None or parts.port):
            return ""
    except ValueError:  # a port that is none, half an address of IPv6
        pass
    return "this is not a Bolt address"


def shown(uri: str) -> str:
    """Return an address for messages: what may be a user or a password is masked."""
    return _AFTER.sub(r"\1***", re.sub(r"(?s)^((?:[A-Za-z][A-Za-z0-9+.-]*:)?/*).*@", r"\1***@", uri))


T = TypeVar("T")

BATCH = 10_000
"""Rows that one statement of `Transaction.run_columns` writes."""
CONNECT_SECONDS = 10.0
RESTART_SECONDS = 60.0
"""How long a transaction that had to pause waits for a server that is started again after the pause."""
CONFLICT_SECONDS = 300.0
"""How long a transaction with conflicts is repeated; longer than the longest ingest."""
RACE_ATTEMPTS = 5
"""Attempts of a transaction that lost a race to create a node; the next attempt finds the node."""
TORN_ATTEMPTS = 12
"""Attempts of a transaction that read data before and after the commit of another one; about 10 s in all."""

# Without a handler the log of the driver would be printed by the last resort of `logging`.
logging.getLogger("neo4j").addHandler(logging.NullHandler())


class Transaction:
    """Operations inside a transaction."""

    def __init__(self, transaction: neo4j.Transaction) -> None:
        self._transaction = transaction

    def run(self, statement: str, /, **parameters: object) -> list[dict[str, Any]]:
        """Run one statement; return the rows as dictionaries by column."""
        result = self._transaction.run(statement, outgoing(parameters))
        keys = result.keys()
        return [dict(zip(keys, map(incoming, record.values()), strict=True)) for record in result]

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

        Args:
            statement: Begins with ``UNWIND range(0, size($first) - 1) AS i``, with one of the columns as
                ``first``, and uses ``$column[i]``. Lists of rows or of maps were measured to be no faster.
            columns: All of the same length; nothing is written if that is 0.
            **parameters: Parameters that are the same for each batch.
        """
        sizes = {name: len(column) for name, column in columns.items()}
        if len(set(sizes.values())) != 1:
            raise ValueError(f"columns must be there and of one length: {sizes}")
        total = next(iter(sizes.values()))
        for start in range(0, total, batch):
            piece = {name: column[start : start + batch] for name, column in columns.items()}
            self._transaction.run(statement, outgoing({**piece, **parameters})).consume()
            self._report(min(batch, total - start))

    def _report(self, rows: int) -> None:
        """Report that `run_columns` has written rows; a subclass may."""


class Database:
    """Connection to a graph database, with managed transactions.

    If no server answers, its methods raise `DatabaseUnavailable`; if it rejects a statement, `DatabaseError`.

    Attributes:
        kind: ``neo4j`` or ``arcadedb``.
        version: Name and version of the server.
    """

    def __init__(
        self,
        driver: neo4j.Driver,
        uri: str,
        name: str | None,
        wait_seconds: float = 0.0,
        folder: Path | None = None,
    ) -> None:
        self.uri = uri
        self.folder = folder
        self.wait_seconds = wait_seconds
        self._driver = driver
        self._name = name
        self.version = driver.get_server_info().agent
        self.kind = "arcadedb" if "arcadedb" in self.version.lower() else "neo4j"

    @classmethod
    def connect(
        cls,
        uri: str,
        *,
        user: str | None = None,
        password: str | None = None,
        name: str | None = None,
        wait_seconds: float = 0.0,
        folder: Path | None = None,
    ) -> Self:
        """Connect, and check address, password and database name with a query.

        Args:
            uri: ``bolt://host:port`` or ``neo4j://host:port``, with ``+s`` for TLS.
            user, password: Omitted for a server without authentication.
            name: Database on the server (default: the user's home database).
            wait_seconds: How long a transaction is repeated if the server stops answering after this call, as
                in a restart.
            folder: Data folder of a server on this machine; errors say if its file system is full, or if it
                ended as it had too little memory.
        """
        wrong = fault(uri)
        if wrong:
            raise DatabaseUnavailable(shown(uri), wrong, "give an address such as bolt://localhost:7687")
        import_driver()
        import neo4j
        from neo4j.exceptions import DriverError, Neo4jError

        auth = None if user is None and password is None else (user or "neo4j", password or "")
        driver = None
        try:
            driver = neo4j.GraphDatabase.driver(
                uri,
                auth=auth,
                connection_timeout=CONNECT_SECONDS,
                connection_acquisition_timeout=CONNECT_SECONDS * 2,
                # Hints on missing labels mean nothing for a registry that may be empty.
                notifications_min_severity="OFF",
                warn_notification_severity="OFF",
            )
            database = cls(driver, uri, name, wait_seconds, folder)
            with driver.session(database=name) as session:
                session.run("RETURN 1").consume()
        except (Neo4jError, DriverError, OSError, ValueError) as error:
            if driver is not None:
                driver.close()
            raise _unavailable(uri, name, error) from error
        return database

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a read transaction and return its result."""
        return self._managed("READ", work)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a write transaction, committed as a whole or not at all; return its result."""
        return self._managed("WRITE", work)

    def query(self, statement: str, /, **parameters: object) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Return columns and rows of a user's own statement, which may only read.

        ArcadeDB allows writes in read transactions, so the statement is checked first (for both servers) and
        the transaction is always rolled back. ArcadeDB returns no column names if there are no rows.

        Raises:
            WriteRefused
        """
        from neo4j.exceptions import DriverError, Neo4jError

        word = writing_word(statement)
        if word is not None:
            raise WriteRefused(word, statement)
        try:
            with self._transaction("READ") as transaction:
                result = transaction.run(statement, outgoing(parameters))
                columns = tuple(result.keys())
                rows = [tuple(map(incoming, record.values())) for record in result]
                transaction.rollback()
        except (Neo4jError, DriverError) as error:
            self._fail(error, statement)
        return columns, rows

    def close(self) -> None:
        """Close all connections."""
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _managed(self, access: str, work: Callable[[Transaction], T]) -> T:
        """Run `work` in a transaction, again after conflicts, and after a restart of the server."""
        from neo4j.exceptions import DriverError, Neo4jError

        deadline = time.monotonic() + CONFLICT_SECONDS
        back_by, wait_seconds = 0.0, self.wait_seconds
        pause = 0.02
        races = torn = 0
        while True:
            try:
                return self._once(access, work)
            except WritersPaused:  # as long as a backup renews its pause
                deadline = time.monotonic() + CONFLICT_SECONDS
                wait_seconds = max(wait_seconds, RESTART_SECONDS)
            except InconsistentGraph:
                torn += 1
                if torn >= TORN_ATTEMPTS:
                    raise
            except (Neo4jError, DriverError) as error:
                lost, gone, away = _is_lost_race(error), _is_torn(error), _is_away(error)
                races, torn = races + lost, torn + gone
                back_by = back_by or (time.monotonic() + wait_seconds if away else 0.0)
                again = (lost and races < RACE_ATTEMPTS) or (gone and torn < TORN_ATTEMPTS) or away
                limit = back_by if away else deadline
                if not (again or _is_conflict(error)) or time.monotonic() + pause > limit:
                    self._fail(error)
            # Jitter keeps two writers from repeated conflicts; it does not affect results.
            time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311
            pause = min(pause * 2, 2.0)

    def _once(self, access: str, work: Callable[[Transaction], T]) -> T:
        with self._transaction(access) as transaction:
            result = work(Transaction(transaction))
            transaction.commit()
        return result

    @contextmanager
    def _transaction(self, access: str) -> Iterator[neo4j.Transaction]:
        """Open a transaction that is rolled back unless it is committed; an interrupt closes its connection.

        After an interrupt within an answer the driver would wait for ever. It drops a connection if it thinks
        that its task was cancelled, and the server rolls back.
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
        full = (no_space(self.folder) or ServerFiles(self.folder).out_of_memory()) if self.folder else ""
        if full:
            raise DatabaseError(full, text=statement) from error
        from neo4j.exceptions import AuthError

        if _is_unanswered(error) or isinstance(error, AuthError):
            raise _unavailable(self.uri, self._name, error) from error
        damaged = damage_text(self.folder)
        if self.folder is not None and not damaged and _is_torn(error):
            damaged = f"if it comes again, files are damaged: {REMEDY}"
        reason = f"the database refused: {_one_line(error)}{damaged and f'; {damaged}'}"
        raise DatabaseError(reason, text=statement) from error


class _Interrupted(asyncio.CancelledError):
    """Form in which an interrupt passes through the driver."""

    def __init__(self, interrupt: KeyboardInterrupt) -> None:
        self.interrupt = interrupt
        super().__init__()


def _is_unanswered(error: Neo4jError | DriverError) -> bool:
    from neo4j.exceptions import ServiceUnavailable, SessionExpired

    return isinstance(error, ServiceUnavailable | SessionExpired)


def _is_conflict(error: Neo4jError | DriverError) -> bool:
    """Return True for a conflict with another transaction; not if the server is gone or out of memory."""
    code = getattr(error, "code", None) or ""
    return error.is_retryable() and not _is_unanswered(error) and "OutOfMemory" not in code


def _is_away(error: Neo4jError | DriverError) -> bool:
    """Return True if the server does not answer; not if it may have committed before its answer was lost."""
    from neo4j.exceptions import AuthError, IncompleteCommit

    if isinstance(error, AuthError):  # ArcadeDB while it stops: it no longer knows who opened the connection
        return "no longer valid" in str(error)
    return _is_unanswered(error) and not isinstance(error, IncompleteCommit)


def _is_torn(error: Neo4jError | DriverError) -> bool:
    """Return True if a record that was found no longer exists.

    ArcadeDB locks nothing before the commit: another writer may commit between two reads of a transaction, or
    between finding a record and reading it.
    """
    return getattr(error, "code", None) == "Neo.ClientError.Statement.EntityNotFound"


def _is_lost_race(error: Neo4jError | DriverError) -> bool:
    """Return True if two transactions may have created the same thing at the same time.

    ArcadeDB lets two MERGEs of one id collide, Neo4j two ``CREATE INDEX ... IF NOT EXISTS``.
    """
    from neo4j.exceptions import ConstraintError

    code = getattr(error, "code", None) or ""
    return isinstance(error, ConstraintError) or (
        code.startswith("Neo.ClientError.Schema.") and code.endswith("AlreadyExists")
    )


def import_driver() -> None:
    """Import the driver without numpy, pandas and pyarrow, unless it or they are imported already.

    It imports them if they are installed, to take their objects as parameters. That takes longer than all
    else that a short command does, and parameters are plain values here (`outgoing`). If a later driver
    has no such module, it imports them again.
    """
    if "neo4j" not in sys.modules and "pandas" not in sys.modules:
        optional: Any = ModuleType("neo4j._optional_deps")
        optional.np = sys.modules.get("numpy")
        optional.pd = optional.pa = optional.pa_compute = None
        sys.modules[optional.__name__] = optional
    import neo4j  # noqa: F401


def _unavailable(uri: str, name: str | None, error: Exception) -> DatabaseUnavailable:
    """Return the error for a server that does not answer, with what to do."""
    from neo4j.exceptions import AuthError

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
    """Return the message of the operating system if there is one, else that of the driver."""
    deepest: BaseException | None = error
    while deepest is not None:
        if isinstance(deepest, OSError) and deepest.strerror:
            return deepest.strerror
        deepest = deepest.__cause__
    return _one_line(error)
