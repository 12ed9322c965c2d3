"""Forwarding tables in the graph: one node a distinct table, shared by all routings that have it.

A `Routing` is what all switches of a cluster forwarded at one time. Its id is a hash of the tables
and of who owns which LID, apart from the wiring. Unused LIDs at a table's end are not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from registry import codec
from registry.database import Transaction
from registry.model import NO_ROUTE, ForwardingTables, format_guid

TABLES_A_BATCH = 500
"""Tables sent with one statement: 64 thousand LIDs each at most."""

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

_KNOWN_TABLES = """
UNWIND $tables AS id
MATCH (t:ForwardingTable {id: id})
RETURN collect(t.id) AS tables
"""

_MERGE_TABLES = """
UNWIND range(0, size($id) - 1) AS i
MERGE (t:ForwardingTable {id: $id[i]})
ON CREATE SET t.ports = $ports[i]
"""

_CREATE_ROUTING = """
MATCH (c:Cluster {id: $cluster})
CREATE (r:Routing {id: $routing, cluster: $cluster, lids: $lids, switches: $switches})-[:OF]->(c)
"""

_JOIN_TABLES = """
UNWIND range(0, size($guid) - 1) AS i
MATCH (r:Routing {id: $routing})
MATCH (t:ForwardingTable {id: $table[i]})
CREATE (r)-[:HAS_TABLE {guid: $guid[i]}]->(t)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedRouting:
    """Forwarding tables made ready to be saved.

    Attributes
    ----------
    id : str
    guids, tables : tuple of str
        Each switch's GUID and the id of its table.
    lids : bytes
        Blob of the LIDs' owners.
    ports : dict of str to bytes
        Blob of each distinct table, by id.
    """

    id: str
    guids: tuple[str, ...]
    tables: tuple[str, ...]
    lids: bytes
    ports: dict[str, bytes]


def pack_routing(cluster: str, tables: ForwardingTables) -> PackedRouting:
    """The tables with their ids: a pure function of their content."""
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
    """Save a routing of a cluster that exists; False where it is there already."""
    if transaction.run(_ROUTING, routing=routing.id):
        return False
    known = set(transaction.run(_KNOWN_TABLES, tables=sorted(routing.ports))[0]["tables"])
    missing = [table for table in sorted(routing.ports) if table not in known]
    transaction.run_columns(
        _MERGE_TABLES,
        {"id": missing, "ports": [routing.ports[table] for table in missing]},
        batch=TABLES_A_BATCH,
    )
    transaction.run(
        _CREATE_ROUTING,
        cluster=cluster,
        routing=routing.id,
        lids=routing.lids,
        switches=len(routing.guids),
    )
    joined = {"guid": routing.guids, "table": routing.tables}
    transaction.run_columns(_JOIN_TABLES, joined, routing=routing.id)
    return True


def read_routing(transaction: Transaction, routing: str) -> ForwardingTables | None:
    """The tables of a routing; None where there is none of that id."""
    found = transaction.run(_ROUTING, routing=routing)
    if not found:
        return None
    owners = codec.unpack(found[0]["lids"])["lid_guid"]
    stored = transaction.run(_TABLES, routing=routing)[0]
    guids = [int(guid, 16) for shared in stored["guids"] for guid in shared]
    rows = np.full((len(guids), len(owners)), NO_ROUTE, np.uint8)
    _fill(rows, stored["guids"], stored["ports"])
    order = np.argsort(np.asarray(guids, np.uint64))
    return ForwardingTables(
        switch_guid=np.asarray(guids, np.uint64)[order], ports=rows[order], lid_guid=owners
    )


def rerouted(transaction: Transaction, before: str, after: str) -> tuple[str, ...]:
    """GUIDs of the switches whose table differs between two routings, or that only one has."""
    then, now = (_table_of_switch(transaction, routing) for routing in (before, after))
    return tuple(sorted(guid for guid in then.keys() | now.keys() if then.get(guid) != now.get(guid)))


def _fill(
    rows: np.ndarray[tuple[int, int], np.dtype[np.uint8]],
    guids: Sequence[Sequence[str]],
    blobs: Sequence[bytes],
) -> None:
    row = 0
    for sharing, blob in zip(guids, blobs, strict=True):
        ports = codec.unpack(blob)["ports"]
        rows[row : row + len(sharing), : len(ports)] = ports
        row += len(sharing)


def _table_of_switch(transaction: Transaction, routing: str) -> dict[str, str]:
    found = transaction.run(_TABLE_IDS, routing=routing)[0]
    return dict(zip(found["guids"], found["tables"], strict=True))
