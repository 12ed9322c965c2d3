"""Number and size of what is stored, by cluster, and free space of the embedded server's disk.

The server adds up lengths; no bytes are sent.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from types import MappingProxyType

from registry.database.driver import Database
from registry.database.local.files import ServerFiles
from registry.disk_space import bytes_of

_STATEMENTS = MappingProxyType(
    {
        "snapshots": """
MATCH (x:Content)
RETURN x.cluster AS cluster, count(x) AS count, sum(size(x.blob)) AS bytes
""",
        "forwarding tables": """
MATCH (r:Routing)-[:HAS_TABLE]->(t:ForwardingTable)
WITH DISTINCT r.cluster AS cluster, t
RETURN cluster, count(t) AS count, sum(size(t.ports)) AS bytes
""",
        "counter sweeps": """
MATCH (s:CounterSweep)
RETURN s.cluster AS cluster, count(s) AS count, sum(size(s.blob)) AS bytes
""",
        "summaries of counters": """
MATCH (r:CounterRollup)
RETURN r.cluster AS cluster, count(r) AS count, sum(size(r.blob)) AS bytes
""",
        "placements": """
MATCH (p:Placement)
OPTIONAL MATCH (p)-[:HAS_LOADS]->(l:LinkLoads)
RETURN p.cluster AS cluster, count(p) AS count,
       sum(size(p.host_of_rank) + CASE WHEN l IS NULL THEN 0 ELSE size(l.blob) END) AS bytes
""",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSize:
    """Number of records of one kind of a cluster, and the sum of their arrays as stored, in bytes."""

    cluster: str
    kind: str
    count: int
    bytes: int


def stored_sizes(database: Database) -> tuple[StoredSize, ...]:
    """Return the sizes of all clusters, by cluster and kind; one statement per kind."""
    sizes = []
    for kind, statement in _STATEMENTS.items():
        _, rows = database.query(statement)
        sizes += [StoredSize(cluster=row[0], kind=kind, count=row[1], bytes=row[2]) for row in rows]
    return tuple(sorted(sizes, key=lambda one: (one.cluster, one.kind)))


def free_bytes(database: Database) -> int | None:
    """Return the free space of the disk of the embedded server, or None for any other server."""
    return None if database.folder is None else shutil.disk_usage(database.folder).free


def file_bytes(database: Database) -> int | None:
    """Return the size of the embedded server's files, or None for any other server."""
    return None if database.folder is None else bytes_of([ServerFiles(database.folder).data])
