"""Placements with all that they are about, and a fabric as of a time: one statement each, for pages.

`Placements.read`, `Fabrics.read_content` and `Profiles.read` give the same piece by piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from registry.database import Database, Transaction
from registry.errors import UnknownName
from registry.machines.fabrics import Snapshot
from registry.model import Fabric, as_utc
from registry.placements.records import StoredPlacement
from registry.placements.rows import stored_placement
from registry.profiles import StoredProfile, stored_profile
from registry.wiring.contents import unpack_fabric
from registry.wiring.observations import no_fabric
from registry.wiring.routings import unpack_tables

_OPEN = """
MATCH (p:Placement {id: $placement})-[:IN]->(x:Content)
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

_OPEN_MANY = "UNWIND $placements AS placement" + _OPEN.replace("$placement", "placement")

_IDS = """
MATCH (p:Placement)
RETURN collect(p.id) AS ids
"""

_AS_OF = """
MATCH (o:Observation)-[:SAW]->(x:Content)
WHERE o.cluster = $cluster AND o.at <= $at
WITH o, x ORDER BY o.at DESC, o.seq DESC LIMIT 1
RETURN o.at AS at, x.id AS content, x.blob AS blob
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenPlacement:
    """A placement, the fabric that it is on (with the tables that it was judged by), and its profile."""

    stored: StoredPlacement
    snapshot: Snapshot
    profile: StoredProfile | None


def open_placement(database: Database, placement: str) -> OpenPlacement:
    """A placement by its id, with all that it is about.

    Raises
    ------
    UnknownName
        With the closest ids.
    """

    def work(transaction: Transaction) -> OpenPlacement:
        found = transaction.run(_OPEN, placement=placement)
        if not found:
            raise UnknownName("placement", placement, transaction.run(_IDS)[0]["ids"])
        return _opened(found, [placement])[0]

    return database.read(work)


def open_placements(database: Database, placements: Sequence[str]) -> tuple[OpenPlacement, ...]:
    """Some placements by their ids, with all that they are about; fabrics and profiles of two are shared.

    Raises
    ------
    UnknownName
        With the closest ids.
    """

    def work(transaction: Transaction) -> tuple[OpenPlacement, ...]:
        found = transaction.run(_OPEN_MANY, placements=list(dict.fromkeys(placements)))
        if missing := set(placements) - {row["p"]["id"] for row in found}:
            raise UnknownName("placement", min(missing), transaction.run(_IDS)[0]["ids"])
        return _opened(found, placements)

    return database.read(work) if placements else ()


def snapshot_as_of(database: Database, cluster: str, at: datetime) -> Snapshot:
    """The wiring of a cluster as of a time, without forwarding tables.

    Raises
    ------
    UnknownName
        No such cluster, or nothing was seen of it until then.
    """
    moment = as_utc(at)

    def work(transaction: Transaction) -> Snapshot:
        found = transaction.run(_AS_OF, cluster=cluster, at=moment)
        if not found:
            raise no_fabric(transaction, cluster, moment)
        return Snapshot(
            cluster=cluster,
            id=found[0]["content"],
            observed_at=found[0]["at"],
            routing=None,
            fabric=unpack_fabric(found[0]["blob"], observed_at=found[0]["at"]),
        )

    return database.read(work)


def _opened(rows: Sequence[dict[str, Any]], placements: Sequence[str]) -> tuple[OpenPlacement, ...]:
    by_id = {row["p"]["id"]: row for row in rows}
    fabrics: dict[tuple[str, str | None], Fabric] = {}
    profiles: dict[str, StoredProfile] = {}
    opened = []
    for row in map(by_id.__getitem__, placements):
        stored = stored_placement(row)
        wiring = stored.content, stored.routing
        if wiring not in fabrics:
            fabrics[wiring] = _fabric(row)
        snapshot = Snapshot(
            cluster=stored.cluster,
            id=stored.content,
            observed_at=row["observed_at"],
            routing=stored.routing,
            fabric=fabrics[wiring],
        )
        if row["f"] is not None and row["profile"] not in profiles:
            profiles[row["profile"]] = stored_profile(row["profile"], row["f"]["name"], row["f"])
        profile = profiles.get(row["profile"])
        opened.append(OpenPlacement(stored=stored, snapshot=snapshot, profile=profile))
    return tuple(opened)


def _fabric(row: dict[str, Any]) -> Fabric:
    tables = None
    if row["lids"] is not None:
        tables = unpack_tables(row["lids"], [[guid] for guid in row["guids"]], row["ports"])
    return unpack_fabric(row["blob"], tables=tables, observed_at=row["observed_at"])
