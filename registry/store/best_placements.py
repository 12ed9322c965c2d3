"""The best stored placement of a profile on the hosts of a job.

No arrays are read, and numpy is not imported: `almanac run` asks this before each job.
"""

from __future__ import annotations

from collections.abc import Sequence

from registry.database.driver import Database
from registry.store.allocations import HostSlots

_BEST = """
MATCH (:Allocation {id: $allocation})<-[:ON]-(p:Placement)
WHERE p.profile = $profile AND p.snapshot = $content AND coalesce(p.tables, '') = $tables
      AND NOT coalesce(p.rank_order, '') IN $without
      AND (coalesce(p.parameters, '') CONTAINS '"consecutive"') = $consecutive
WITH p ORDER BY p.congestion_seconds, p.id LIMIT 1
RETURN p.id AS id
"""


def best_placement(
    database: Database,
    content: str,
    tables: str | None,
    profile: str,
    allocation: HostSlots,
    without: Sequence[str] = (),
    *,
    consecutive: bool = False,
) -> str | None:
    """Return the id of the placement with the least congestion, or None if there is none.

    Args:
        content, tables: Ids of the fabric and of its forwarding tables, if any.
        profile: Id of the profile.
        allocation: The same hosts and slots in the same order.
        without: Hashes of orders of ranks that do not count.
        consecutive: True for placements that were searched with consecutive ranks on each host, False for
            others.
    """
    parameters = {
        "content": content,
        "tables": tables or "",
        "profile": profile,
        "allocation": allocation.id,
        "without": list(without),
        "consecutive": consecutive,
    }
    found = database.read(lambda transaction: transaction.run(_BEST, **parameters))
    return str(found[0]["id"]) if found else None
