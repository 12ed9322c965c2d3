"""Deletion, renaming and merging of whole clusters, each in one transaction.

The ids of most data begin with the name of their cluster and are changed with it. Placements, simulations,
circuit plans and measured runs keep theirs, which users know: afterwards such an id is no longer the hash of
its content.

Deletion of a whole cluster: at once, or in steps if it is large.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from registry.database.driver import Database, Transaction
from registry.database.schema import RELATIONSHIPS
from registry.database.stored_kinds import delete_ids, hashed_id, known_ids
from registry.errors import ChangeRefused, UnknownName
from registry.model.intake import check_cluster_name
from registry.progress import Progress, silent
from registry.store import derived
from registry.store.allocations import host_names, join_new_hosts
from registry.store.derived import device_keys
from registry.store.fabrics import rebuild_graph
from registry.store.jobs import differs, jobs_by_key
from registry.store.observations import lock_cluster, read_content
from registry.store.timeline import FOREVER, content_as_of
from registry.upkeep.deletion import NAMES, Deletion, Nodes, batches, carry_out, forget_files, named

OWNED = (
    *("IngestRun", "Advice", "Drawing", "Simulation", "Reconfiguration", "MeasuredRun", "Placement"),
    *("CounterSweep", "CounterRollup", "IntendedWiring", "HostLayout", "Observation"),
    *("Job", "Allocation", "Content", "Routing", "Device"),
)
"""Labels with the property ``cluster``, each after those that refer to it."""

KEEP_ID = ("IngestRun", "Simulation", "Reconfiguration", "MeasuredRun", "Placement")
"""Labels whose ids do not begin with the name of the cluster."""

_REFERENCES = {
    "IngestRun": ("snapshot", "routing"),
    "Simulation": ("snapshot", "tables"),
    "Placement": ("snapshot", "tables", "allocation"),
}
"""Properties that are ids of other data of the cluster."""

_CHANGING = ("optical_at", "optical_plan")
"""Properties in which the descriptions of one optical switch may differ."""

OWNED_IDS = "MATCH (n:{label})\nWHERE n.cluster = $cluster\nRETURN collect(n.id) AS ids\n"
"""Statement for the ids of all nodes of one of these labels."""

PARTS = {
    "LinkLoads": (
        "MATCH (p:Placement)-[:HAS_LOADS]->(l:LinkLoads)\nWHERE p.cluster = $cluster\n"
        "RETURN collect(l.id) AS ids\n"
    ),
    "DeviceState": (
        "MATCH (d:Device)-[:HAS_STATE]->(s:DeviceState)\nWHERE d.cluster = $cluster\n"
        "RETURN collect(s.id) AS ids\n"
    ),
    "ForwardingTable": (
        "MATCH (n:Routing)-[:HAS_TABLE]->(t:ForwardingTable)\nWHERE n.cluster = $cluster\n"
        "WITH DISTINCT t\nMATCH (o:Routing)-[:HAS_TABLE]->(t)\n"
        "WITH t, sum(CASE WHEN o.cluster = $cluster THEN 0 ELSE 1 END) AS others\nWHERE others = 0\n"
        "RETURN collect(t.id) AS ids\n"
    ),
}
"""Statements for data of a cluster that do not name it."""

_NAMES = """
MATCH (c:Cluster)
RETURN collect(c.id) AS names
"""

_CLUSTER = """
MATCH (c:Cluster {id: $cluster})
RETURN c AS node
"""

_SET_CLUSTER = """
MATCH (c:Cluster {id: $cluster})
SET c += $properties
"""

_OBSERVATIONS = """
MATCH (o:Observation)
WHERE o.cluster = $cluster
OPTIONAL MATCH (o)-[:SAW]->(x:Content)
OPTIONAL MATCH (o)-[:SAW]->(r:Routing)
RETURN o.id AS id, o.at AS at, x.id AS content, r.id AS routing
"""

_ROLLUPS = """
UNWIND $ids AS id
MATCH (r:CounterRollup {id: id})
RETURN r.id AS id, [toString(r.start), toString(r.until), r.pieces, r.ports] AS fields
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What a rename or a merge moved."""

    moved: Mapping[str, int]
    """Number of things that now belong to the target, by kind."""
    known: Mapping[str, int]
    """Number of things that the target had already."""
    conflicts: tuple[str, ...] = ()
    """Differences between the clusters; the target's data count."""


def rename_cluster(database: Database, source: str, target: str, *, dry_run: bool = False) -> Move:
    """Rename a cluster; the old name is free afterwards.

    Raises:
        UnknownName
        InvalidValue: No cluster can have the new name.
        ChangeRefused: There is a cluster of the new name.
    """

    def work(transaction: Transaction) -> Move:
        check_cluster_name(target, "Cluster.name")
        if known_ids(transaction, "Cluster", [target]):
            remedy = "give another name, or merge the two: almanac cluster merge"
            raise ChangeRefused(f"{source} cannot be called {target}", ["this cluster exists"], remedy)
        _lock(transaction, source)
        moved = {"DeviceState": _renamed_states(transaction, source, target)}
        return _move(transaction, source, target, moved, ())

    return carry_out(database, work, dry_run)


def merge_clusters(
    database: Database, source: str, target: str, *, force: bool = False, dry_run: bool = False
) -> Move:
    """Move all data of a cluster to another one, which is the same machine under another name.

    Args:
        force: Merge in spite of conflicts: the data of the target count.

    Raises:
        UnknownName
        ChangeRefused: They are different machines, or both have a job of the same id, counters of the same
            hour or an optical switch, and these differ.
    """

    def work(transaction: Transaction) -> Move:
        if source == target:
            raise ChangeRefused(
                f"{source} cannot be merged", ["both names are the same"], "name two clusters"
            )
        for cluster in sorted((source, target)):
            _lock(transaction, cluster)
        conflicts = _conflicts(transaction, source, target)
        if conflicts and not (force or dry_run):
            remedy = f"--force merges them nevertheless and keeps the data of {target}"
            raise ChangeRefused(f"{source} and {target} differ", _first(conflicts), remedy)
        derived.drop(transaction, source)
        _keep_cluster_properties(transaction, source, target)
        result = _move(transaction, source, target, {}, conflicts)
        rebuild_graph(transaction, target)
        join_new_hosts(transaction, target, host_names(transaction, target))
        return result

    return carry_out(database, work, dry_run)


def _move(
    transaction: Transaction, source: str, target: str, moved: dict[str, int], conflicts: Sequence[str]
) -> Move:
    """Give all data of a cluster to another; data with the id of the target's are the same, and deleted."""
    known: dict[str, int] = {}
    for label in OWNED:
        ids = transaction.run(OWNED_IDS.format(label=label), cluster=source)[0]["ids"]
        new = _new_ids(transaction, label, ids, source, target)
        same = known_ids(transaction, label, [new[one] for one in ids if new[one] != one])
        both = {one: new[one] for one in ids if new[one] in same}
        _replace(transaction, label, both)
        stay = {one: new[one] for one in ids if one not in both}
        _rename(transaction, label, stay, source, target)
        moved |= {label: len(stay)} if stay else {}
        known |= {label: len(both)} if both else {}
    if known_ids(transaction, "Cluster", [target]):
        _replace(transaction, "Cluster", {source: target})
    else:
        _rename(transaction, "Cluster", {source: target}, source, target)
    forget_files(transaction, target)
    return Move(moved=_named(moved), known=_named(known), conflicts=tuple(conflicts))


def _new_ids(
    transaction: Transaction, label: str, ids: Sequence[str], source: str, target: str
) -> dict[str, str]:
    """Return the new id of each node: that of the same data, had they been saved under the new name."""
    if label in KEEP_ID:
        return {one: one for one in ids}
    if label != "Observation":
        return {one: _moved(one, source, target) for one in ids}
    return {
        row["id"]: hashed_id(
            target,
            row["at"].isoformat(),
            _moved(row["content"], source, target),
            _moved(row["routing"], source, target),
        )
        for row in transaction.run(_OBSERVATIONS, cluster=source)
    }


def _moved(identity: str | None, source: str, target: str) -> str:
    """Return an id that begins with a cluster's name with the new name; empty if there is none."""
    return "" if identity is None else target + identity[len(source) :]


def _rename(transaction: Transaction, label: str, ids: Mapping[str, str], source: str, target: str) -> None:
    """Give nodes their new ids and the name of their new cluster."""
    references = "".join(
        f", n.{name} = CASE WHEN n.{name} STARTS WITH $begin THEN $target + substring(n.{name}, $size) "
        f"ELSE n.{name} END"
        for name in _REFERENCES.get(label, ())
    )
    owner = "" if label in ("Cluster", "DeviceState") else ", n.cluster = $target"
    statement = (
        f"UNWIND range(0, size($id) - 1) AS i\nMATCH (n:{label} {{id: $id[i]}})\n"
        f"SET n.id = $new[i]{owner}{references}\n"
    )
    columns = {"id": list(ids), "new": list(ids.values())}
    transaction.run_columns(statement, columns, target=target, begin=f"{source}/", size=len(source))


def _replace(transaction: Transaction, label: str, ids: Mapping[str, str]) -> None:
    """Delete nodes in favour of others of their label, which get their relationships."""
    columns = {"id": list(ids), "new": list(ids.values())}
    for one in RELATIONSHIPS if ids else ():
        if one.target == label and one.type != "LINK":
            transaction.run_columns(_redirect_statement(label, f"<-[r:{one.type}]-", one.source), columns)
        if one.source == label == "Job" and one.type != "RAN_ON":
            transaction.run_columns(_redirect_statement(label, f"-[r:{one.type}]->", one.target), columns)
    for batch in batches(ids):
        delete_ids(transaction, label, batch)


def _redirect_statement(label: str, path: str, other: str) -> str:
    """Return the statement that gives relationships of ``$id`` to ``$new`` too."""
    return (
        f"UNWIND range(0, size($id) - 1) AS i\nMATCH (n:{label} {{id: $id[i]}}){path}(o:{other})\n"
        f"MATCH (m:{label} {{id: $new[i]}})\nCREATE (m){path.replace('[r:', '[s:')}(o)\n"
        "SET s = properties(r)\n"
    )


def _renamed_states(transaction: Transaction, source: str, target: str) -> int:
    """Give the states of the devices of a cluster their new ids."""
    ids = transaction.run(PARTS["DeviceState"], cluster=source)[0]["ids"]
    new = {one: _moved(one, source, target) for one in ids}
    _rename(transaction, "DeviceState", new, source, target)
    return len(ids)


def _conflicts(transaction: Transaction, source: str, target: str) -> list[str]:
    """Return the differences between data that can only be stored once."""
    found = []
    one, other = (_devices(transaction, name) for name in (source, target))
    if one and other and 2 * len(one & other) < max(len(one), len(other)):
        found.append(f"only {len(one & other)} of {max(len(one), len(other))} devices are in both fabrics")
    ids = transaction.run(OWNED_IDS.format(label="Job"), cluster=source)[0]["ids"]
    new = {_moved(key, source, target): key for key in ids}
    for batch in batches(known_ids(transaction, "Job", new)):
        theirs = jobs_by_key(transaction, [new[key] for key in batch])
        mine = jobs_by_key(transaction, batch)
        found += [f"job {mine[key].job.id}" for key in batch if differs(mine[key], theirs[new[key]])]
    ids = transaction.run(OWNED_IDS.format(label="CounterRollup"), cluster=source)[0]["ids"]
    new = {_moved(key, source, target): key for key in ids}
    both = known_ids(transaction, "CounterRollup", new)
    rows = transaction.run(_ROLLUPS, ids=[*both, *(new[key] for key in both)]) if both else []
    fields = {row["id"]: row["fields"] for row in rows}
    found += [f"counters of {key}" for key in sorted(both) if fields[key] != fields[new[key]]]
    switches = [
        {name: value for name, value in _switch(transaction, cluster).items() if name not in _CHANGING}
        for cluster in (source, target)
    ]
    if all(switches) and switches[0] != switches[1]:
        found.append("optical switch")
    return found


def _devices(transaction: Transaction, cluster: str) -> set[str]:
    """Return the keys of the devices of the last fabric of a cluster."""
    last = content_as_of(transaction, cluster, FOREVER)
    fabric = None if last is None else read_content(transaction, last[1])
    return set() if fabric is None else set(device_keys(fabric))


def _switch(transaction: Transaction, cluster: str) -> dict[str, Any]:
    """Return the properties of a cluster that describe its optical switch."""
    node = transaction.run(_CLUSTER, cluster=cluster)[0]["node"]
    return {name: value for name, value in node.items() if name.startswith("optical_")}


def _keep_cluster_properties(transaction: Transaction, source: str, target: str) -> None:
    """Give the target the optical switch of the source if it has none, and numbers after those of both."""
    seq = max(transaction.run(_CLUSTER, cluster=name)[0]["node"]["seq"] for name in (source, target))
    switch = _switch(transaction, target) or _switch(transaction, source)
    transaction.run(_SET_CLUSTER, cluster=target, properties={**switch, "seq": seq})


def _lock(transaction: Transaction, cluster: str) -> None:
    """Lock a cluster, which must exist."""
    if not known_ids(transaction, "Cluster", [cluster]):
        raise unknown_cluster(transaction, cluster)
    lock_cluster(transaction, cluster)


def unknown_cluster(transaction: Transaction, cluster: str) -> UnknownName:
    """Return the error for a cluster that does not exist, with the names of those that do."""
    return UnknownName("cluster", cluster, transaction.run(_NAMES)[0]["names"])


def _named(counts: Mapping[str, int]) -> dict[str, int]:
    return {NAMES[label]: counts[label] for label in sorted(counts, key=NAMES.__getitem__)}


def _first(conflicts: Sequence[str], shown: int = 10) -> list[str]:
    more = len(conflicts) - shown
    return [*conflicts[:shown], *([f"and {more:,} more"] if more > 0 else [])]


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

    Raises:
        UnknownName: No such cluster, nor ingest runs of that name.
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
