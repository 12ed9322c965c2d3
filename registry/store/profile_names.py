"""Names, ids, applications and numbers of ranks of stored profiles, without what they send.

No arrays are read, and numpy is not imported: `almanac run` asks this before each job.
"""

from __future__ import annotations

from collections.abc import Iterable

from registry.database.driver import Transaction
from registry.errors import UnknownName

_FIND = """
MATCH (p:Profile)
WHERE $name IN p.names OR p.id STARTS WITH $name
RETURN p.id AS id, p.names AS names, p.named_at AS named_at
"""

_RANKS = """
UNWIND $ids AS id
MATCH (p:Profile {id: id})
RETURN p.id AS id, p.ranks AS ranks, p.application AS application
"""

_KNOWN_NAMES = """
MATCH (p:Profile)
RETURN collect(p.names) AS names
"""

_NEWEST = """
MATCH (p:Profile)
WHERE p.application = $application AND p.ranks = $ranks
RETURN p.id AS id ORDER BY p.recorded_at DESC, p.id LIMIT 1
"""


def find_profile(transaction: Transaction, name: str) -> str:
    """Return the id of the profile with this name or id; see `Profiles.read`."""
    rows = transaction.run(_FIND, name=name) if name else []
    named = [
        (time, row["id"])
        for row in rows
        for given, time in zip(row["names"], row["named_at"], strict=True)
        if given == name
    ]
    if named:
        return str(max(named)[1])
    if len(rows) == 1:
        return str(rows[0]["id"])
    if any(row["id"] == name for row in rows):
        return name
    known = {given for names in transaction.run(_KNOWN_NAMES)[0]["names"] for given in names}
    is_file = "/" in name or "." in name
    remedy = "to store a file, run almanac ingest FILE" if is_file or not known else ""
    raise UnknownName("profile", name, sorted(known), remedy=remedy)


def ranks_of_profiles(transaction: Transaction, ids: Iterable[str]) -> dict[str, tuple[int, str]]:
    """Return ranks and application of each of the profiles that is stored, by id."""
    rows = transaction.run(_RANKS, ids=sorted(set(ids)))
    return {row["id"]: (row["ranks"], row["application"]) for row in rows}


def newest_profile(transaction: Transaction, application: str, ranks: int) -> str | None:
    """Return the id of the newest profile of an application with so many ranks, or None."""
    found = transaction.run(_NEWEST, application=application, ranks=ranks)
    return str(found[0]["id"]) if found else None
