"""Which jobs are one user's."""

from __future__ import annotations

from registry.database.driver import Database

_JOBS_OF = """
MATCH (j:Job)
WHERE j.user = $user
RETURN collect(j.id) AS ids
"""


def jobs_of(database: Database, user: str) -> frozenset[str]:
    """Ids (cluster and scheduler's id) of the jobs of a user: one statement."""
    rows = database.read(lambda transaction: transaction.run(_JOBS_OF, user=user))
    return frozenset(rows[0]["ids"])
