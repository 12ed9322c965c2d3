"""Repair of what `registry.maintenance.verify` found.

A damaged snapshot is restored from the derived graph if that gives its id. Derived graphs are rebuilt. What
cannot be read any more is deleted with all that depends on it, and each of it is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from registry.database.driver import Database, Transaction
from registry.database.record_store import OF_CLUSTER, hashed_id, known_ids
from registry.errors import AlmanacError
from registry.fabrics import derived
from registry.fabrics.contents import content_hash, pack_fabric
from registry.fabrics.fabrics import rebuild_graph
from registry.fabrics.facts import fabric_of
from registry.fabrics.observations import OBSERVATION, lock_cluster
from registry.jobs.allocations import host_names
from registry.maintenance.dependents import Deleted
from registry.maintenance.integrity import FILE, GRAPH, ORPHAN, Finding
from registry.model import as_utc

_OBSERVERS = """
MATCH (:Content {id: $content})<-[:SAW]-(o:Observation)
RETURN collect(o.id) AS ids
"""

_OBSERVERS_OF_ROUTING = """
MATCH (:Routing {id: $routing})<-[:SAW]-(o:Observation)
OPTIONAL MATCH (o)-[:SAW]->(x:Content)
RETURN o.id AS id, o.cluster AS cluster, o.at AS at, x.id AS content
"""

_WITHOUT_ROUTING = """
MATCH (o:Observation {id: $id})-[s:SAW]->(:Routing {id: $routing})
SET o.id = $new
DELETE s
"""

_FORGET_FILES = """
MATCH (r:IngestRun)
WHERE r.key <> ''
SET r.key = ''
"""
"""Files that were ingested before can be ingested again, as what they gave may be deleted."""

_TIMES = """
MATCH (:Content {id: $content})<-[:SAW]-(o:Observation)
RETURN collect(o.at) AS times
"""

_SET_BLOB = """
MATCH (x:Content {id: $content})
SET x.blob = $blob
"""

_ROUTINGS = """
UNWIND $ids AS id
MATCH (:ForwardingTable {id: id})<-[:HAS_TABLE]-(r:Routing)
RETURN collect(DISTINCT r.id) AS ids
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """What `repair` did.

    Attributes
    ----------
    restored : tuple of str
        Ids of snapshots whose bytes were computed again from the derived graph.
    joined : tuple of str
        Ids of records that belong to their cluster again.
    rebuilt : tuple of str
        Clusters whose derived graph was rebuilt.
    deleted : mapping of str to tuple of str
        Ids of the deleted records by label, with all that depended on them.
    """

    restored: tuple[str, ...]
    joined: tuple[str, ...]
    rebuilt: tuple[str, ...]
    deleted: Mapping[str, tuple[str, ...]]


def repair(database: Database, findings: Sequence[Finding]) -> Repair:
    """Repair what was found, in one transaction."""
    damaged = [one for one in findings if not one.harmless and one.problem not in (GRAPH, FILE)]
    clusters = {one.cluster for one in findings if one.problem == GRAPH and one.cluster}

    def work(transaction: Transaction) -> Repair:
        named = sorted({one.cluster for one in damaged if one.cluster} | clusters)
        locked = [name for name in named if name in known_ids(transaction, "Cluster", named)]
        for cluster in locked:
            lock_cluster(transaction, cluster)
        restored = {one.id for one in damaged if one.label == "Content" and _restore(transaction, one)}
        joined = {one.id for one in damaged if one.id not in restored and _join(transaction, one, locked)}
        deleted = Deleted()
        for one in damaged:
            if one.id not in restored | joined:
                _delete(transaction, deleted, one)
        touched = clusters | {one.cluster for one in damaged if one.label in ("Content", "Observation")}
        rebuilt = [name for name in locked if name in touched]
        for cluster in rebuilt:
            rebuild_graph(transaction, cluster)
        if deleted.nodes:
            transaction.run(_FORGET_FILES)
        return Repair(
            restored=tuple(sorted(restored)),
            joined=tuple(sorted(joined)),
            rebuilt=tuple(rebuilt),
            deleted={label: tuple(sorted(ids)) for label, ids in sorted(deleted.nodes.items())},
        )

    return database.write(work)


def _restore(transaction: Transaction, finding: Finding) -> bool:
    """Compute a snapshot from the derived graph at each time it was seen; return True if one has its id."""
    cluster = finding.cluster or ""
    if finding.problem == ORPHAN:
        return False
    hosts = host_names(transaction, cluster)
    for at in transaction.run(_TIMES, content=finding.id)[0]["times"]:
        try:
            fabric = fabric_of(*derived.read(transaction, cluster, hosts, at))
        except (AlmanacError, ValueError, KeyError, TypeError):  # the graph is damaged too
            continue
        if f"{cluster}/{content_hash(fabric)}" == finding.id:
            transaction.run(_SET_BLOB, content=finding.id, blob=pack_fabric(fabric))
            return True
    return False


def _join(transaction: Transaction, finding: Finding, clusters: Sequence[str]) -> bool:
    """Join an orphan to the cluster that it names again; return False if that is not what it lacks."""
    if finding.problem != ORPHAN or f"{finding.label}-OF->Cluster" not in finding.reason:
        return False
    if finding.cluster not in clusters:
        return False
    statement = (
        f"MATCH (n:{finding.label} {{id: $id}})\nMATCH (c:{OF_CLUSTER.label} {{id: $cluster}})\n"
        f"CREATE (n)-[:{OF_CLUSTER.type}]->(c)\n"
    )
    transaction.run(statement, id=finding.id, cluster=finding.cluster)
    return True


def _delete(transaction: Transaction, deleted: Deleted, finding: Finding) -> None:
    """Delete a record, and the observations of which it was the only content."""
    label, ids = finding.label, [finding.id]
    if label == "ForwardingTable" and finding.problem != ORPHAN:
        ids = transaction.run(_ROUTINGS, ids=ids)[0]["ids"]
        label = "Routing"
    if label == "Content":
        seen = transaction.run(_OBSERVERS, content=finding.id)[0]["ids"]
        deleted.delete(transaction, "Observation", seen)
    if label == "Routing":
        for routing in ids:
            _forget_routing(transaction, deleted, routing)
    deleted.delete(transaction, label, ids)


def _forget_routing(transaction: Transaction, deleted: Deleted, routing: str) -> None:
    """Separate forwarding tables from the observations that saw them; those of nothing else are deleted."""
    for row in transaction.run(_OBSERVERS_OF_ROUTING, routing=routing):
        new = hashed_id(row["cluster"], as_utc(row["at"]).isoformat(), row["content"] or "", "")
        if row["content"] is None or OBSERVATION.known(transaction, [new]):
            deleted.delete(transaction, "Observation", [row["id"]])
        else:
            transaction.run(_WITHOUT_ROUTING, id=row["id"], routing=routing, new=new)
