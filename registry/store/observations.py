"""Observations of clusters: the primary data, from which everything else is derived.

An observation refers to a snapshot (the wiring), a routing (the forwarding tables), or both. Observations are
ordered by time, those of the same time by arrival. The same wiring at another time adds only an observation;
the same observation again adds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from registry.database.driver import Database, Transaction
from registry.database.schema import require_writable
from registry.database.stored_kinds import OF_CLUSTER, Join, NewRecord, RecordKind, hashed_id
from registry.errors import InconsistentGraph, PoorerSource
from registry.model import Adapters, Bools, Fabric, as_utc, format_guid
from registry.model.views import one_line
from registry.store import derived
from registry.store.known_names import doubtful, host_of_guid, is_real, keep_names
from registry.store.snapshots import canonical, content_hash, pack_fabric, unpack_fabric
from registry.store.tables import PackedRouting, pack_routing, save_routing
from registry.store.timeline import FOREVER, content_as_of, no_fabric

if TYPE_CHECKING:
    from registry.model.intake import Intake

_LOCK_CLUSTER = """
MERGE (c:Cluster {id: $cluster})
ON CREATE SET c.seq = timestamp()
SET c.taken = true
WITH c
SET c.seq = coalesce(c.seq, 0) + 1
RETURN c.seq AS seq
"""

_CONTENT = """
MATCH (x:Content {id: $content})
RETURN x.blob AS blob
"""

_COUNT_UNNAMED = """
MATCH (x:Content {id: $content})
WHERE x.unnamed IS NULL
SET x.unnamed = $unnamed
"""

_NEXT_CONTENT = """
MATCH (o:Observation)-[:SAW]->(:Content)
WHERE o.cluster = $cluster AND o.at > $at
RETURN min(o.at) AS at
"""

_NAMES_OF_GUIDS = """
MATCH (d:Device)-[:HAS_STATE]->(s:DeviceState)
WHERE d.cluster = $cluster AND d.kind = 'host' AND s.valid_from <= $at
UNWIND s.adapter_guids + s.port_guids AS guid
WITH s, guid
WHERE guid IN $guids
RETURN guid AS guid, s.name AS name, s.valid_from AS valid_from
"""

_SAW_CONTENT, _SAW_ROUTING = Join("SAW", "Content"), Join("SAW", "Routing")
OBSERVATION = RecordKind(name="observation", label="Observation", joins=(_SAW_CONTENT, _SAW_ROUTING))
CONTENT = RecordKind(name="snapshot", label="Content", owner=OF_CLUSTER)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ObservationDraft:
    """Observation to be saved, with its ids; made before the transaction."""

    id: str
    """Id of the observation."""
    cluster: str
    at: datetime
    fabric: Fabric | None
    """Canonical fabric."""
    content: str | None
    routing: PackedRouting | None
    source: str
    digest: str

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationResult:
    """Changes made by saving an observation; `content` is the id of the snapshot at its time."""

    observation: str
    content: str
    new_content: bool = False
    new_observation: bool = False
    new_routing: bool = False
    links_opened: int = 0
    links_closed: int = 0


def draft_observation(intake: Intake) -> ObservationDraft | None:
    """Return the observation of an intake, or None if it has neither fabric nor tables."""
    cluster, at = intake.cluster, intake.observed_at
    if cluster is None or at is None or (intake.fabric is None and intake.tables is None):
        return None
    fabric = None if intake.fabric is None else canonical(intake.fabric)
    content = None if fabric is None else f"{cluster}/{content_hash(fabric)}"
    routing = None if intake.tables is None else pack_routing(cluster, intake.tables)
    parts = (as_utc(at).isoformat(), content or "", "" if routing is None else routing.id)
    return ObservationDraft(
        id=hashed_id(cluster, *parts),
        cluster=cluster,
        at=as_utc(at),
        fabric=fabric,
        content=content,
        routing=routing,
        source=intake.source,
        digest=intake.digest,
    )


def lock_cluster(transaction: Transaction, cluster: str) -> int:
    """Lock a cluster until the transaction ends, so that writers run one at a time.

    Returns:
        Number of this write among all writes of the cluster; never that of an earlier cluster of this name.

    Raises:
        InconsistentGraph: Another writer deleted the cluster meanwhile; the transaction is to be tried again.
    """
    found = transaction.run(_LOCK_CLUSTER, cluster=cluster)
    if not found or found[0]["seq"] is None:
        raise InconsistentGraph(f"cluster {cluster!r} was deleted while it was locked")
    require_writable(transaction)
    return int(found[0]["seq"])


def save_observation(transaction: Transaction, draft: ObservationDraft, seq: int) -> ObservationResult:
    """Save an observation of a locked cluster and update the derived graph.

    Raises:
        UnknownName: Tables without a fabric, of a cluster without an earlier fabric.
        PoorerSource: A fabric without ports after one with ports.
    """
    before = content_as_of(transaction, draft.cluster, draft.at)
    if before is not None and draft.fabric is not None and not _has_ports(draft.fabric):
        last = read_content(transaction, before[1])
        if last is not None and _has_ports(last):
            raise PoorerSource(draft.cluster, draft.source)
    content = draft.content or (None if before is None else before[1])
    if content is None:
        raise no_fabric(transaction, draft.cluster, draft.at)
    if OBSERVATION.known(transaction, [draft.id]):
        return ObservationResult(observation=draft.id, content=content)
    new_content = _save_content(transaction, draft)
    new_routing = draft.routing is not None and save_routing(transaction, draft.cluster, draft.routing)
    _create_observation(transaction, draft, seq)
    opened, closed = _derive(transaction, draft, None if before is None else before[1])
    return ObservationResult(
        observation=draft.id,
        content=content,
        new_content=new_content,
        new_observation=True,
        new_routing=new_routing,
        links_opened=opened,
        links_closed=closed,
    )


def _has_ports(fabric: Fabric) -> bool:
    return bool((fabric.links.source_port >= 0).any())


def read_content(transaction: Transaction, content: str) -> Fabric | None:
    """Return the canonical fabric of a snapshot, or None if there is no such snapshot."""
    found = transaction.run(_CONTENT, content=content)
    return unpack_fabric(found[0]["blob"]) if found else None


def fabric_valid_at(transaction: Transaction, cluster: str, time: datetime) -> tuple[str, Fabric]:
    """Return the snapshot id and the fabric valid at a time; before the first observation, the last fabric.

    Raises:
        UnknownName: The cluster has no fabric.
    """
    found = content_as_of(transaction, cluster, time) or content_as_of(transaction, cluster, FOREVER)
    fabric = None if found is None else read_content(transaction, found[1])
    if found is None or fabric is None:
        raise no_fabric(transaction, cluster, FOREVER)
    return found[1], fabric


def _save_content(transaction: Transaction, draft: ObservationDraft) -> bool:
    """Save the snapshot of an observation; return False if it has none or it is stored already."""
    fabric, content = draft.fabric, draft.content
    if fabric is None or content is None:
        return False
    unnamed = len(fabric.unnamed)
    if CONTENT.known(transaction, [content]):
        transaction.run(_COUNT_UNNAMED, content=content, unnamed=unnamed)  # it may be of an earlier version
        return False
    properties = {
        "cluster": draft.cluster,
        "blob": pack_fabric(fabric),
        "hosts": len(fabric.hosts),
        "unnamed": unnamed,
        "switches": len(fabric.switches),
        "adapters": len(fabric.adapters),
        "cables": fabric.cable_count,
        "links": len(fabric.links),
    }
    CONTENT.create(transaction, [NewRecord(content, properties, owner=draft.cluster)])
    return True


def _create_observation(transaction: Transaction, draft: ObservationDraft, seq: int) -> None:
    """Create the node of an observation and its relationships to snapshot and routing."""
    properties = {name: getattr(draft, name) for name in ("cluster", "at", "source", "digest")}
    joined = {
        _SAW_CONTENT: [draft.content] if draft.content is not None else [],
        _SAW_ROUTING: [draft.routing.id] if draft.routing is not None else [],
    }
    OBSERVATION.create(transaction, [NewRecord(draft.id, properties | {"seq": seq}, joined=joined)])


def _derive(transaction: Transaction, draft: ObservationDraft, before: str | None) -> tuple[int, int]:
    if draft.fabric is None or draft.content == before:
        return 0, 0
    until = transaction.run(_NEXT_CONTENT, cluster=draft.cluster, at=draft.at)[0]["at"]
    old = None if before is None else read_content(transaction, before)
    return derived.apply(transaction, draft.cluster, old, draft.fabric, draft.at, until or FOREVER)


def restore_identities(database: Database, intake: Intake) -> Intake:
    """Return the intake with GUIDs and names restored from observations at or before its time, and warnings.

    Some tools print the GUIDs of ports but not of adapters. If an earlier observation of the cluster has an
    adapter with the same port, it is the same adapter; otherwise a scan by another tool would look as if all
    cables of hosts had been replaced. Only what cannot change is restored: GUIDs, the LIDs of a port with the
    same first LID, and the names of hosts as `registry.store.known_names` says.
    """
    cluster, at, fabric = intake.cluster, intake.observed_at, intake.fabric
    if cluster is None or at is None or fabric is None:
        return intake
    uncertain = doubtful(fabric)
    if not (_without_guid(fabric.adapters) | uncertain).any():
        return intake
    known = database.read(lambda transaction: _last(transaction, cluster, at))
    if known is None:
        return intake
    names = host_of_guid(known)
    missing = [guid for guid in _guids(fabric.adapters, uncertain) if not is_real(names.get(guid, ""))]
    if missing:
        names |= database.read(lambda transaction: _earlier_names(transaction, cluster, at, missing))
    fabric, warnings = keep_names(fabric, names)
    fabric = restore_known_guids(fabric, known)
    return replace(intake, fabric=fabric, warnings=(*intake.warnings, *warnings))


def restore_known_guids(fabric: Fabric, known: Fabric) -> Fabric:
    """Return the fabric with names of `known`, and with its GUIDs for adapters that have the same ports.

    Args:
        fabric: New fabric; adapters with a GUID are not changed.
        known: Earlier fabric.
    """
    fabric, _ = keep_names(fabric, host_of_guid(known))
    now, before = fabric.adapters, known.adapters
    port_of = {guid: p for p, guid in enumerate(before.port_guid.tolist()) if guid}
    missing = _without_guid(now)
    guid, system, lmc = now.guid.copy(), now.system_guid.copy(), now.port_lmc.copy()
    for port, port_guid in enumerate(now.port_guid.tolist()):
        adapter = int(now.port_adapter[port])
        was = port_of.get(port_guid)
        if was is None or not missing[adapter]:
            continue
        owner = int(before.port_adapter[was])
        guid[adapter] = before.guid[owner]
        system[adapter] = system[adapter] or before.system_guid[owner]
        if now.port_lid[port] == before.port_lid[was]:
            lmc[port] = lmc[port] or before.port_lmc[was]
    return replace(fabric, adapters=replace(now, guid=guid, system_guid=system, port_lmc=lmc))


def _without_guid(adapters: Adapters) -> Bools:
    """Return the adapters without a GUID as bool[a]."""
    return np.asarray(adapters.guid == 0)


def _guids(adapters: Adapters, chosen: Bools) -> list[int]:
    """Return the GUIDs of some adapters and of their ports."""
    found = [*adapters.guid[chosen].tolist(), *adapters.port_guid[chosen[adapters.port_adapter]].tolist()]
    return [guid for guid in found if guid]


def _earlier_names(
    transaction: Transaction, cluster: str, at: datetime, guids: Sequence[int]
) -> dict[int, str]:
    """Return the last name that a host had itself for each of these GUIDs, if there was one before a time."""
    texts = [format_guid(guid) for guid in guids]
    rows = transaction.run(_NAMES_OF_GUIDS, cluster=cluster, at=at, guids=texts)
    rows = sorted((row for row in rows if is_real(row["name"])), key=lambda row: row["valid_from"])
    return {int(row["guid"], 16): row["name"] for row in rows}


def _last(transaction: Transaction, cluster: str, at: datetime) -> Fabric | None:
    found = content_as_of(transaction, cluster, at)
    return None if found is None else read_content(transaction, found[1])
