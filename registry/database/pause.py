"""Pause of all writers for a moment: without one, a backup of a busy registry would never see one state.

A pause is a time on the node of the schema. Writers read it after they have locked their cluster or
application, roll back and try again until it is over. A pause ends by itself if it is not renewed, so that a
backup that was killed stops nobody. Only the server's clock counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from registry.database.driver import Database, Transaction
from registry.database.schema import SCHEMA_ID, half_restored
from registry.errors import WritersPaused

PAUSE_SECONDS = 60.0
"""A pause that is not renewed ends after this time."""

_SET = """
MATCH (s:Schema {id: $id})
SET s.paused_until = timestamp() + $milliseconds
"""

_END = """
MATCH (s:Schema {id: $id})
REMOVE s.paused_until
"""

_LOCK_CLUSTERS, _LOCK_APPLICATIONS = (
    f"""
MATCH (n:{label})
SET n.taken = true
"""
    for label in ("Cluster", "Application")
)
"""Waits for writers that hold a lock (Neo4j), or makes them fail and try again (ArcadeDB)."""

_STATE = """
MATCH (s:Schema {id: $id})
RETURN s.loading AS loading, s.paused_until > timestamp() AS paused
"""


class Pause:
    """A pause of all writers, to be renewed as long as it is needed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._renewed = 0.0
        self._forgotten = False

    def renew(self) -> None:
        """Renew the pause if a third of it is over."""
        if time.monotonic() - self._renewed > PAUSE_SECONDS / 3:
            milliseconds = int(PAUSE_SECONDS * 1000)
            self._database.write(
                lambda transaction: transaction.run(_SET, id=SCHEMA_ID, milliseconds=milliseconds)
            )
            self._renewed = time.monotonic()

    def forget(self) -> None:
        """Leave the pause to end by itself, as its database is about to be replaced."""
        self._forgotten = True

    def end(self) -> None:
        """End the pause, unless it is forgotten."""
        if not self._forgotten:
            self._database.write(lambda transaction: transaction.run(_END, id=SCHEMA_ID))


@contextmanager
def writers_paused(database: Database) -> Iterator[Pause]:
    """Pause all writers during the block, after those that are at work have finished."""
    pause = Pause(database)
    pause.renew()
    try:
        for statement in (_LOCK_CLUSTERS, _LOCK_APPLICATIONS):
            database.write(partial(_run, statement=statement))
        yield pause
    finally:
        pause.end()


def _run(transaction: Transaction, statement: str) -> None:
    transaction.run(statement)


def require_writable(transaction: Transaction) -> None:
    """Raise if writers are paused, or a restore is at work or was interrupted; call it after locking.

    Raises
    ------
    WritersPaused
        The transaction is tried again until the pause is over.
    DatabaseError
        A restore is at work or was interrupted.
    """
    for row in transaction.run(_STATE, id=SCHEMA_ID):
        if row["loading"]:
            raise half_restored()
        if row["paused"]:
            raise WritersPaused("a backup is being written: writers wait until it is done")
