"""Forwarding tables: one node per distinct table, shared by all routings that have it.

A `Routing` is the tables of all switches of a cluster at one time. Its id is a hash of the tables and of the
owners of LIDs, without the wiring. Unused LIDs at the end of a table are not stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from registry.database import codec
from registry.database.driver import Transaction
from registry.database.stored_kinds import OF_CLUSTER, NewRecord, RecordKind, known_ids
from registry.model import NO_ROUTE, ForwardingTables, format_guid

ROUTING = RecordKind(name="routing", label="Routing", owner=OF_CLUSTER)
TABLES_A_BATCH = 500
"""Tables in one statement, each of at most 64 thousand LIDs."""

_TABLE_IDS = """
MATCH (r:Routing {id: $routing})-[h:HAS_TABLE]->(t:ForwardingTable)
RETURN collect(h.guid) AS guids, collect(t.id) AS tables
"""

_ROUTING = """
MATCH (r:Routing {id: $routing})
RETURN r.lids AS lids
"""

_TABLES = """
MATCH (r:Routing {id: $routing})-[h:HAS_TABLE]->(t:ForwardingTable)
WITH t, collect(h.guid) AS guids
RETURN collect(guids) AS guids, collect(t.ports) AS ports
"""

_MERGE_TABLES = """
UNWIND range(0, size($id) - 1) AS i
MERGE (t:ForwardingTable {id: $id[i]})
ON CREATE SET t.ports = $ports[i]
"""

_JOIN_TABLES = """
UNWIND range(0, size($guid) - 1) AS i
MATCH (r:Routing {id: $routing})
MATCH (t:ForwardingTable {id: $table[i]})
CREATE (r)-[:HAS_TABLE {guid: $guid[i]}]->(t)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedRouting:
    """Forwarding tables as they are saved."""

    id: str
    guids: tuple[str, ...]
    tables: tuple[str, ...]
    """GUID of each switch and the id of its table."""
    lids: bytes
    """Blob of the LIDs' owners."""
    ports: dict[str, bytes]
    """Blob of each distinct table, by id."""


def pack_routing(cluster: str, tables: ForwardingTables) -> PackedRouting:
    """Return the tables with ids that depend only on their content."""
    ports: dict[str, bytes] = {}
    ids = []
    for row in tables.ports:
        used = np.flatnonzero(row != NO_ROUTE)
        columns = {"ports": row[: used[-1] + 1 if len(used) else 0]}
        ids.append(codec.digest(columns)[:32])
        if ids[-1] not in ports:
            ports[ids[-1]] = codec.pack(columns)
    owners = {"lid_guid": tables.lid_guid}
    everything = codec.digest({"switch_guid": tables.switch_guid, "tables": ids, **owners})
    return PackedRouting(
        id=f"{cluster}/{everything[:16]}",
        guids=tuple(format_guid(guid) for guid in tables.switch_guid.tolist()),
        tables=tuple(ids),
        lids=codec.pack(owners),
        ports=ports,
    )


def save_routing(transaction: Transaction, cluster: str, routing: PackedRouting) -> bool:
    """Save a routing of an existing cluster; return False if it is stored already."""
    if ROUTING.known(transaction, [routing.id]):
        return False
    missing = sorted(routing.ports.keys() - known_ids(transaction, "ForwardingTable", routing.ports))
    transaction.run_columns(
        _MERGE_TABLES,
        {"id": missing, "ports": [routing.ports[table] for table in missing]},
        batch=TABLES_A_BATCH,
    )
    properties = {"cluster": cluster, "lids": routing.lids, "switches": len(routing.guids)}
    ROUTING.create(transaction, [NewRecord(routing.id, properties, owner=cluster)])
    joined = {"guid": routing.guids, "table": routing.tables}
    transaction.run_columns(_JOIN_TABLES, joined, routing=routing.id)
    return True


def read_routing(transaction: Transaction, routing: str) -> ForwardingTables | None:
    """Return the tables of a routing, or None if there is no such routing."""
    found = transaction.run(_ROUTING, routing=routing)
    if not found:
        return None
    stored = transaction.run(_TABLES, routing=routing)[0]
    return unpack_tables(found[0]["lids"], stored["guids"], stored["ports"])


def unpack_tables(lids: bytes, guids: Sequence[Sequence[str]], ports: Sequence[bytes]) -> ForwardingTables:
    """Return the tables of stored blobs.

    Args:
        lids: Blob of the LIDs' owners.
        guids: Switches that share each table.
        ports: Blob of each table.
    """
    owners = codec.unpack(lids)["lid_guid"]
    switches = np.asarray([int(guid, 16) for sharing in guids for guid in sharing], np.uint64)
    rows = np.full((len(switches), len(owners)), NO_ROUTE, np.uint8)
    row = 0
    for sharing, blob in zip(guids, ports, strict=True):
        table = codec.unpack(blob)["ports"]
        rows[row : row + len(sharing), : len(table)] = table
        row += len(sharing)
    order = np.argsort(switches)
    return ForwardingTables(switch_guid=switches[order], ports=rows[order], lid_guid=owners)


def rerouted(transaction: Transaction, before: str, after: str) -> tuple[str, ...]:
    """Return the GUIDs of the switches whose table differs, or that only one of two routings has."""
    then, now = (_table_of_switch(transaction, routing) for routing in (before, after))
    return tuple(sorted(guid for guid in then.keys() | now.keys() if then.get(guid) != now.get(guid)))


def _table_of_switch(transaction: Transaction, routing: str) -> dict[str, str]:
    found = transaction.run(_TABLE_IDS, routing=routing)[0]
    return dict(zip(found["guids"], found["tables"], strict=True))
