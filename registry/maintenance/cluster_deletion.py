"""Deletion of a whole cluster: at once, or in steps if it is large."""

from __future__ import annotations

from functools import partial

from registry.database.driver import Database, Transaction
from registry.database.record_store import delete_ids, known_ids
from registry.fabrics.observations import lock_cluster
from registry.maintenance.clusters import OWNED, OWNED_IDS, PARTS, unknown_cluster
from registry.maintenance.deletion import Deletion
from registry.maintenance.dependents import Nodes, batches, named
from registry.progress import Progress, silent

_BEFORE = {"Placement": "LinkLoads", "Routing": "ForwardingTable", "Device": "DeviceState"}
_IN_STEPS = tuple(one for label in OWNED for one in (_BEFORE.get(label), label) if one)
"""All labels of a cluster's data, parts before what they are parts of: they are found through it."""

AT_ONCE, STEP = 1000, 100
"""Most nodes of a cluster that one transaction deletes, and nodes in each of several."""


def delete_cluster(
    database: Database, cluster: str, *, dry_run: bool = False, progress: Progress = silent
) -> Deletion:
    """Delete a cluster with all its data and its ingest runs; profiles belong to no cluster and stay.

    A cluster of more than `AT_ONCE` nodes is deleted in small transactions, as servers hold them in memory.
    After an interruption a part of it is left, which the next call deletes.

    Raises
    ------
    UnknownName
        No such cluster, nor ingest runs of that name.
    """

    def find(transaction: Transaction) -> Nodes:
        return _all_of(transaction, cluster, bool(known_ids(transaction, "Cluster", [cluster])))

    def delete_rest(transaction: Transaction) -> Nodes:
        if known_ids(transaction, "Cluster", [cluster]):
            lock_cluster(transaction, cluster)
        found = find(transaction)
        for label, ids in found.items():
            for batch in batches(ids):
                delete_ids(transaction, label, batch)
        return found

    found = database.read(find)
    if not dry_run:
        if "Cluster" in found and sum(map(len, found.values())) > AT_ONCE:
            _delete_in_steps(database, found, progress)
        for label, ids in database.write(delete_rest).items():  # also what was saved meanwhile
            found.setdefault(label, set()).update(ids)
    return Deletion(counts=named(found), dependents={})


def _delete_in_steps(database: Database, found: Nodes, progress: Progress) -> None:
    """Delete all nodes of a cluster but itself, in an order in which those that are left can be found."""
    total, done = sum(map(len, found.values())), 0
    for label in _IN_STEPS:
        for ids in batches(found.get(label, ()), STEP):
            database.write(partial(delete_ids, label=label, ids=ids))
            done += len(ids)
            progress("deleting the cluster", done, total)


def _all_of(transaction: Transaction, cluster: str, exists: bool) -> Nodes:
    """Return all nodes of a locked cluster, or the runs of a name that is none.

    What another writer is about to save for a cluster that does not exist yet is not looked at.
    """
    labels = OWNED if exists else ("IngestRun",)
    statements = {label: OWNED_IDS.format(label=label) for label in labels} | (PARTS if exists else {})
    rows = {label: transaction.run(text, cluster=cluster)[0] for label, text in statements.items()}
    found = {label: set(row["ids"]) for label, row in rows.items() if row["ids"]}
    if exists:
        found["Cluster"] = {cluster}
    if not found:
        raise unknown_cluster(transaction, cluster)
    return found
