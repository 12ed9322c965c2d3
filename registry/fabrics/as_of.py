"""What of a cluster was observed last at or before a time: the ids of snapshot and forwarding tables.

No arrays are read, and numpy is not imported: `almanac run` asks this before each job.
"""

from __future__ import annotations

from datetime import datetime

from registry import units
from registry.database.driver import Transaction
from registry.errors import UnknownName
from registry.fabrics.timeline import FOREVER

_CONTENT_AS_OF = """
MATCH (o:Observation)-[:SAW]->(x:Content)
WHERE o.cluster = $cluster AND o.at <= $at
WITH o, x ORDER BY o.at DESC, o.seq DESC LIMIT 1
RETURN o.at AS at, x.id AS content
"""

_ROUTING_AS_OF = """
MATCH (o:Observation)-[:SAW]->(r:Routing)
WHERE o.cluster = $cluster AND o.at <= $at
WITH o, r ORDER BY o.at DESC, o.seq DESC LIMIT 1
RETURN r.id AS routing
"""

_FIRST = """
MATCH (o:Observation)-[:SAW]->(:Content)
WHERE o.cluster = $cluster
RETURN min(o.at) AS at
"""

_CLUSTER_NAMES = """
MATCH (c:Cluster)
RETURN collect(c.id) AS names
"""

_OBSERVED = """
MATCH (o:Observation)-[:SAW]->(:Content)
RETURN collect(DISTINCT o.cluster) AS names
"""


def content_as_of(transaction: Transaction, cluster: str, at: datetime) -> tuple[datetime, str] | None:
    """Return time and snapshot id of the last observation of a fabric at or before a time, or None."""
    found = transaction.run(_CONTENT_AS_OF, cluster=cluster, at=at)
    return (found[0]["at"], found[0]["content"]) if found else None


def routing_as_of(transaction: Transaction, cluster: str, at: datetime) -> str | None:
    """Return the id of the last forwarding tables at or before a time, or None."""
    found = transaction.run(_ROUTING_AS_OF, cluster=cluster, at=at)
    return found[0]["routing"] if found else None


def observed_clusters(transaction: Transaction) -> list[str]:
    """Return the names of all clusters with a fabric."""
    names: list[str] = transaction.run(_OBSERVED)[0]["names"]
    return sorted(names)


def require_cluster(transaction: Transaction, cluster: str) -> None:
    """Raise `UnknownName`, with the known names, if there is no such cluster."""
    known = transaction.run(_CLUSTER_NAMES)[0]["names"]
    if cluster not in known:
        raise UnknownName("cluster", cluster, known)


def no_fabric(transaction: Transaction, cluster: str, at: datetime) -> UnknownName:
    """Return the error for a cluster without a fabric at or before a time."""
    # a writer creates the node of the cluster by locking it, before it finds it empty
    names = [name for name in transaction.run(_CLUSTER_NAMES)[0]["names"] if name != cluster]
    if content_as_of(transaction, cluster, FOREVER) is None:
        return UnknownName("cluster", cluster, names, remedy="ingest a scan of its fabric first")
    first = units.moment_text(transaction.run(_FIRST, cluster=cluster)[0]["at"])
    reason = f"cluster {cluster} was not observed at or before {units.moment_text(at)}"
    return UnknownName("fabric", cluster, reason=f"{reason}; its first scan is of {first}")
