"""Reads for pages that show placements: each with its fabric and its profile; one statement.

`Placements.read`, `Fabrics.read_content` and `Profiles.read` return the same in several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from registry.database.driver import Database, Transaction
from registry.model.views import one_line
from registry.store.fabrics import Snapshot, stored_snapshot
from registry.store.placement_rows import PLACEMENT, StoredPlacement, stored_placement
from registry.store.profiles import StoredProfile, stored_profile
from registry.store.tables import unpack_tables

_OPEN = """
UNWIND $placements AS wanted
MATCH (p:Placement {id: wanted})-[:IN]->(x:Content)
OPTIONAL MATCH (o:Observation)-[:SAW]->(x)
WITH p, x, max(o.at) AS observed_at
OPTIONAL MATCH (p)-[:OF]->(f:Profile)
OPTIONAL MATCH (j:Job)-[:HAS_PLACEMENT]->(p)
OPTIONAL MATCH (p)-[:HAS_LOADS]->(l:LinkLoads)
WITH p, x, observed_at, f, j, l
OPTIONAL MATCH (r:Routing {id: p.tables})-[h:HAS_TABLE]->(t:ForwardingTable)
WITH p, x, observed_at, f, j, l, r, collect(h.guid) AS guids, collect(t.ports) AS ports
RETURN p, x.id AS content, x.blob AS blob, observed_at, f, f.id AS profile, j.job AS job,
       l.blob AS loads, r.lids AS lids, guids, ports
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenPlacement:
    """A placement with its fabric, including the forwarding tables of its evaluation, and its profile."""

    stored: StoredPlacement
    snapshot: Snapshot
    profile: StoredProfile | None

    __repr__ = one_line


def open_placement(database: Database, placement: str) -> OpenPlacement:
    """Return a placement by its id, with its fabric and profile; one statement."""
    return open_placements(database, [placement])[placement]


def open_placements(database: Database, placements: Sequence[str]) -> dict[str, OpenPlacement]:
    """Return placements by their ids, each with its fabric and profile; one statement."""
    ids = list(dict.fromkeys(placements))

    def work(transaction: Transaction) -> dict[str, OpenPlacement]:
        found = {opened.stored.id: opened for opened in map(_opened, transaction.run(_OPEN, placements=ids))}
        PLACEMENT.require_all(transaction, ids, found)
        return found

    return database.read(work)


def _opened(row: dict[str, Any]) -> OpenPlacement:
    """Return the placement, fabric and profile of a row of `_OPEN`."""
    stored = stored_placement(row)
    profile = row["f"]
    tables = None
    if row["lids"] is not None:
        tables = unpack_tables(row["lids"], [[guid] for guid in row["guids"]], row["ports"])
    at, routing = row["observed_at"], stored.routing
    return OpenPlacement(
        stored=stored,
        snapshot=stored_snapshot(
            stored.cluster, stored.content, row["blob"], at, routing=routing, tables=tables
        ),
        profile=None if profile is None else stored_profile(profile),
    )
