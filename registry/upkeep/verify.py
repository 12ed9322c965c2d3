"""Compare what is stored with its ids, and the derived graph with the observations.

Nothing is changed; `registry.upkeep.verify` repairs what is found.

Check of stored records, one after the other: can they be read, does their content give their ids?

The records are those of a database or of a backup. What an id is a hash of is said where the id is made.

Repair of what `registry.upkeep.verify` found.

A damaged snapshot is restored from the derived graph if that gives its id. Derived graphs are rebuilt. What
cannot be read any more is deleted with all that depends on it, and each of it is reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from registry.database import codec
from registry.database.driver import Database, Transaction
from registry.database.embedded_files import present_damage
from registry.database.schema import LABELS
from registry.database.stored_kinds import OF_CLUSTER, hashed_id, known_ids
from registry.errors import (
    AlmanacError,
    DatabaseError,
    DatabaseUnavailable,
    InputError,
    RegistryBusy,
    SchemaVersionError,
)
from registry.model import as_utc
from registry.model.fabric import port_name
from registry.progress import Progress, silent
from registry.store import derived
from registry.store.allocations import HostSlots, host_names
from registry.store.circuit_plans import circuit_plan_id, stored_circuit_plan
from registry.store.counters import sweep_id, unpack_rollup, unpack_sweep
from registry.store.derived import LinkFact, fabric_of
from registry.store.fabrics import derived_graph, rebuild_graph
from registry.store.measured_runs import measured_run_id, stored_measured_run
from registry.store.observations import OBSERVATION, lock_cluster
from registry.store.placement_rows import unpack_loads
from registry.store.placements import stored_placement_id
from registry.store.profiles import profile_id, stored_profile, stored_trace, trace_id
from registry.store.simulations import simulation_id, stored_simulation
from registry.store.snapshots import content_hash, pack_fabric, unpack_fabric
from registry.store.timeline import Interval
from registry.upkeep.backup import (
    JOINS,
    Watch,
    all_nodes,
    known_counts,
    lost_records,
    read_one_state,
    read_section,
)
from registry.upkeep.clusters import KEEP_ID
from registry.upkeep.deletion import NAMES, Deleted

UNREADABLE, WRONG_ID, ORPHAN, GRAPH, FILE = "unreadable", "wrong-id", "orphan", "graph", "file"
"""Problems: bytes that cannot be read, content that gives another id, a record without what it belongs to, a
derived graph that the observations do not give, a file of the embedded server that was damaged."""
FILES = "files of the database"
"""What a finding is of if its problem is `FILE`."""

Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem of stored data."""

    problem: str
    """`UNREADABLE`, `WRONG_ID`, `ORPHAN`, `GRAPH` or `FILE`."""
    label: str
    id: str
    """Label and id of the record; for the derived graph ``Cluster`` and its name; for a file `FILES` and its
    name."""
    cluster: str | None
    """Cluster of the record."""
    reason: str
    """What was found."""
    harmless: bool = False
    """True if the record can be read, and its id may differ for a good reason: the cluster got another name,
    or an early version made ids otherwise."""

    @property
    def kind(self) -> str:
        """Name of the label in messages."""
        return {GRAPH: "derived graph", FILE: FILES}.get(self.problem) or NAMES[self.label]


def _blob_digest(node: Node) -> str:
    return codec.digest(codec.unpack(node["blob"]))


def _at(node: Node) -> str:
    return as_utc(node["at"]).isoformat()


IDS: Mapping[str, Callable[[Node], str]] = {
    "Content": lambda node: f"{node['cluster']}/{content_hash(unpack_fabric(node['blob']))}",
    "ForwardingTable": lambda node: codec.digest(codec.unpack(node["ports"]))[:32],
    "Profile": lambda node: profile_id(stored_profile(dict(node)).profile),
    "Trace": lambda node: trace_id(node["profile"], stored_trace(node).trace),
    "CounterSweep": lambda node: sweep_id(node["cluster"], unpack_sweep(node["blob"], node["at"])),
    "IntendedWiring": lambda node: hashed_id(node["cluster"], _at(node), _blob_digest(node)),
    "HostLayout": lambda node: hashed_id(node["cluster"], node["host"], _at(node), _blob_digest(node)),
    "Allocation": lambda node: (
        HostSlots(cluster=node["cluster"], hosts=tuple(node["hosts"]), slots=tuple(node["slots"])).id
    ),
    "Placement": stored_placement_id,
    "Simulation": lambda node: simulation_id(stored_simulation(node)),
    "Reconfiguration": lambda node: circuit_plan_id(stored_circuit_plan(node)),
    "MeasuredRun": lambda node: measured_run_id(stored_measured_run(node)),
}
"""Id that the content of a node gives, by label."""

READS: Mapping[str, Callable[[Node], object]] = {
    "CounterRollup": lambda node: unpack_rollup(dict(node)),
    "LinkLoads": lambda node: unpack_loads(node["blob"]),
    "Drawing": lambda node: codec.unpack(node["blob"]),
}
"""Reading of records whose id is not made from their content, by label."""

BELONGS = (
    *(
        ("Content", ("Content-OF->Cluster",)),
        ("Content", ("Observation-SAW->Content",)),
        ("Routing", ("Routing-OF->Cluster",)),
        ("Routing", ("Observation-SAW->Routing",)),
        ("Observation", ("Observation-SAW->Content", "Observation-SAW->Routing")),
        ("ForwardingTable", ("Routing-HAS_TABLE->ForwardingTable",)),
        ("DeviceState", ("Device-HAS_STATE->DeviceState",)),
        ("Profile", ("Profile-OF->Application",)),
        ("Rank", ("Profile-HAS_RANK->Rank",)),
        ("Trace", ("Trace-OF->Profile",)),
        ("Placement", ("Placement-IN->Content",)),
        ("LinkLoads", ("Placement-HAS_LOADS->LinkLoads",)),
        ("Simulation", ("Simulation-OF->Placement",)),
        ("Drawing", ("Drawing-OF->Content",)),
        ("Advice", ("Job-HAS_ADVICE->Advice",)),
    ),
    *(
        (label, (f"{label}-OF->Cluster",))
        for label in ("CounterSweep", "CounterRollup", "IntendedWiring", "HostLayout", "MeasuredRun")
    ),
)
"""Labels, and relationships of which each of their nodes has at least one."""


class RecordCheck:
    """Check of all records of a database or a backup, in the order of their sections.

    Attributes:
        checked: Number of records whose content was read, by label.
    """

    def __init__(self) -> None:
        self.checked: Counter[str] = Counter()
        self.findings: list[Finding] = []
        self._clusters: dict[str, dict[str, str | None]] = {label: {} for label, _ in BELONGS}
        self._joined: dict[tuple[str, str], set[str]] = {}
        self._observed_at: dict[str, str] = {}
        self._saw: dict[str, dict[str, str]] = {"Content": {}, "Routing": {}}
        self._lids: dict[str, bytes] = {}
        self._tables: dict[str, list[tuple[str, str]]] = {}

    def add(self, section: str, value: Any) -> None:
        """Check one record: the properties of a node, or ends and properties of a relationship."""
        join = JOINS.get(section)
        if join is None:
            self._add_node(section, value)
            return
        source, target, properties = value
        for label, end in ((join.source, source), (join.target, target)):
            if label in self._clusters:
                self._joined.setdefault((label, section), set()).add(end)
        if join.type == "SAW":
            self._saw[join.target][source] = target
        elif join.type == "HAS_TABLE":
            self._tables.setdefault(source, []).append((str(properties["guid"]), target))

    def finish(self) -> list[Finding]:
        """Return all findings, after the last record."""
        for identity, cluster in self._clusters["Observation"].items():
            content, routing = (self._saw[label].get(identity, "") for label in ("Content", "Routing"))
            whole = hashed_id(cluster or "", self._observed_at[identity], content, routing)
            if (content or routing) and whole != identity:
                self._wrong_id("Observation", identity, cluster, whole)
        for identity, lids in self._lids.items():
            node = {"id": identity, "cluster": self._clusters["Routing"][identity], "lids": lids}
            self._check("Routing", node, self._routing_id)
        for label, sections in BELONGS:
            joined = set().union(*(self._joined.get((label, section), set()) for section in sections))
            for identity in sorted(self._clusters[label].keys() - joined):
                reason = f"it has no relationship {' or '.join(sections)}"
                self._report(ORPHAN, label, identity, self._clusters[label][identity], reason)
        return self.findings

    def _add_node(self, label: str, node: Node) -> None:
        identity = str(node["id"])
        if label in self._clusters:
            self._clusters[label][identity] = node.get("cluster")
        if label == "Observation":
            self._observed_at[identity] = _at(node)
        elif label == "Routing":
            self._lids[identity] = node["lids"]
        if label in IDS:
            self._check(label, node, IDS[label])
        elif label in READS:
            self._check(label, node, lambda found: (READS[label](found), found["id"])[1])

    def _check(self, label: str, node: Node, id_of: Callable[[Node], str]) -> None:
        """Check that a node can be read, and that its content gives its id."""
        self.checked[label] += 1
        try:
            whole = id_of(node)
        except (AlmanacError, KeyError, TypeError, ValueError) as error:
            reason = error.reason if isinstance(error, AlmanacError) else f"{type(error).__name__}: {error}"
            self._report(UNREADABLE, label, str(node["id"]), node.get("cluster"), reason)
            return
        if whole != node["id"]:
            self._wrong_id(label, str(node["id"]), node.get("cluster"), whole)

    def _routing_id(self, node: Node) -> str:
        """Return the id of a routing that its tables and the owners of LIDs give."""
        tables = sorted((int(guid, 16), table) for guid, table in self._tables.get(node["id"], []))
        whole = codec.digest(
            {
                "switch_guid": np.asarray([guid for guid, _ in tables], np.uint64),
                "tables": [table for _, table in tables],
                **codec.unpack(node["lids"]),
            }
        )
        return f"{node['cluster']}/{whole[:16]}"

    def _wrong_id(self, label: str, identity: str, cluster: str | None, whole: str) -> None:
        self._report(WRONG_ID, label, identity, cluster, f"its content gives the id {whole}")

    def _report(self, problem: str, label: str, identity: str, cluster: str | None, reason: str) -> None:
        harmless = problem == WRONG_ID and label in KEEP_ID
        found = Finding(
            problem=problem, label=label, id=identity, cluster=cluster, reason=reason, harmless=harmless
        )
        self.findings.append(found)


EXAMPLES = 3
"""Differences of a derived graph that a finding names."""

_OBSERVED = """
MATCH (o:Observation)-[:SAW]->(:Content)
RETURN collect(DISTINCT o.cluster) AS names
"""

_DEVICES = """
MATCH (d:Device)
WHERE d.cluster = $cluster
RETURN collect([d.key, d.name, d.kind]) AS devices
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """Result of `verify`."""

    checked: Mapping[str, int]
    """Number of records whose content was compared, by label."""
    findings: tuple[Finding, ...]

    @property
    def damaged(self) -> bool:
        """True if anything was found that is not harmless."""
        return any(not finding.harmless for finding in self.findings)

    @property
    def has_damaged_files(self) -> bool:
        """True if files of the embedded server are damaged, which only a backup repairs."""
        return any(finding.problem == FILE for finding in self.findings)


NO_DAMAGE = (DatabaseUnavailable, RegistryBusy, SchemaVersionError)
"""Errors of the database that are no sign of damage."""


def verify(database: Database, progress: Progress = silent) -> Verification:
    """Check all that is stored, as it is at one moment.

    Raises:
        SchemaVersionError
        DatabaseError: The registry was written to in every attempt.
    """
    files = () if database.folder is None else file_findings(database.folder)
    try:
        found = _read(database, progress)
    except DatabaseError as error:
        if database.folder is None or isinstance(error, NO_DAMAGE):
            raise
        reason = f"the records cannot be read: {error.reason}"
        found = Verification(checked={}, findings=(_file_finding("", reason),))
    return Verification(checked=found.checked, findings=(*files, *found.findings))


def count_records(database: Database) -> tuple[int, list[str]]:
    """Return how many records are counted, and what of them cannot be read, in sentences.

    Raises:
        DatabaseUnavailable, RegistryBusy, SchemaVersionError
    """
    try:
        counts, lost = read_one_state(
            database, lambda _: (counts := known_counts(database), lost_records(database, counts))
        )
    except NO_DAMAGE:
        raise
    except DatabaseError as error:
        return 0, [error.reason]
    return sum(counts.values()), lost


def file_findings(home: Path) -> tuple[Finding, ...]:
    """Return what is damaged of the files of the embedded server of a data folder."""
    return tuple(_file_finding(*text.split(" ", 1)) for text in present_damage(home))


def _file_finding(name: str, reason: str) -> Finding:
    return Finding(problem=FILE, label=FILES, id=name, cluster=None, reason=reason)


def _read(database: Database, progress: Progress) -> Verification:
    """Read all records; see `verify`."""

    def work(watch: Watch) -> Verification:
        check = RecordCheck()
        counts = known_counts(database)
        done, total = 0, sum(counts.values())
        for section in counts:
            for value in read_section(database, section):
                check.add(section, value)
                watch.keep()
                done += 1
                if done % 1000 == 0:
                    progress("reading the registry", done, total)
        findings = check.finish()
        if done != total or all_nodes(database) < sum(counts[label] for label in LABELS):
            reason = f"{total:,} records are counted and {done:,} can be read"
            findings.append(_file_finding("", reason))
        findings += (_file_finding("", reason) for reason in lost_records(database, counts))
        clusters = database.read(lambda transaction: transaction.run(_OBSERVED))[0]["names"]
        for number, cluster in enumerate(sorted(clusters)):
            progress("comparing derived graphs", number, len(clusters))
            findings += database.read(partial(_graph_findings, cluster=cluster))
            watch.keep()
        progress("comparing derived graphs", len(clusters), len(clusters))
        return Verification(checked=Counter(check.checked), findings=tuple(findings))

    return read_one_state(database, work)


def require_intact(records: Iterable[tuple[str, int, int, Any]], path: str) -> None:
    """Raise if a record of a backup does not match its id.

    Raises:
        InputError
    """
    check, lines = RecordCheck(), {}
    for section, number, _, value in records:
        check.add(section, value)
        if isinstance(value, dict):
            lines[section, value.get("id")] = number
    damaged = [finding for finding in check.finish() if not finding.harmless]
    if damaged:
        first = damaged[0]
        more = f" and {len(damaged) - 1} more records" if len(damaged) > 1 else ""
        reason = (
            f"the registry was damaged when it was saved: {first.kind} {first.id}{more}: {first.reason}; "
            "--accept-damaged restores it nevertheless, almanac db verify --repair then repairs it"
        )
        raise InputError(reason, path=path, line=lines.get((first.label, first.id)))


def _graph_findings(transaction: Transaction, cluster: str) -> list[Finding]:
    """Compare the derived graph of a cluster with the one that its observations give."""
    try:
        graph = derived_graph(transaction, cluster)
    except AlmanacError as error:  # the snapshot itself is a finding
        reason = f"it cannot be compared, as a snapshot cannot be read: {error.reason}"
        return [Finding(problem=GRAPH, label="Cluster", id=cluster, cluster=cluster, reason=reason)]
    stored = derived.stored_graph(transaction, cluster)
    latest: dict[str, tuple[datetime, str, str]] = {}
    for state, spans in graph.states.items():
        last = (max(span.end for span in spans), state.name, state.kind)
        latest[state.key] = max(latest.get(state.key, last), last)
    named = {(key, name, kind) for key, (_, name, kind) in latest.items()}
    found = {tuple(row) for row in transaction.run(_DEVICES, cluster=cluster)[0]["devices"]}
    names = {key: name for key, name, _ in named}
    texts = [
        *_differences("links", graph.links, stored.links, names),
        *_differences("states of devices", graph.states, stored.states, names),
        *_listed("devices that are missing or have another name", [name for _, name, _ in named - found]),
        *_listed("devices that no observation gives", [name for _, name, _ in found - named]),
    ]
    return [
        Finding(problem=GRAPH, label="Cluster", id=cluster, cluster=cluster, reason=text) for text in texts
    ]


def _differences(
    what: str,
    graph: Mapping[Any, list[Interval]],
    stored: Mapping[Any, list[Interval]],
    names: Mapping[str, str],
) -> list[str]:
    """Return a line about missing intervals, and one about those that no observation gives."""

    def texts(some: Iterable[tuple[Any, Interval]]) -> list[str]:
        return [f"{_name(fact, names)} since {span.start.isoformat()}" for fact, span in some]

    given, held = (
        Counter((fact, span) for fact, spans in one.items() for span in spans) for one in (graph, stored)
    )
    return [
        *_listed(f"{what} that are missing or have another time", texts((given - held).elements())),
        *_listed(f"{what} that no observation gives", texts((held - given).elements())),
    ]


def _name(fact: Any, names: Mapping[str, str]) -> str:
    """Return a link or a device in words."""
    if not isinstance(fact, LinkFact):
        return str(fact.name)
    source, target = (names.get(key, key) for key in (fact.source, fact.target))
    return f"{port_name(source, fact.src_port)} to {target}"


def _listed(what: str, texts: Sequence[str]) -> list[str]:
    """Return a line with the number of things and the first of them, or nothing."""
    more = f" and {len(texts) - EXAMPLES:,} more" if len(texts) > EXAMPLES else ""
    return [f"{len(texts):,} {what}: {'; '.join(sorted(texts)[:EXAMPLES])}{more}"] if texts else []


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
    """What `repair` did."""

    restored: tuple[str, ...]
    """Ids of snapshots whose bytes were computed again from the derived graph."""
    joined: tuple[str, ...]
    """Ids of records that belong to their cluster again."""
    rebuilt: tuple[str, ...]
    """Clusters whose derived graph was rebuilt."""
    deleted: Mapping[str, tuple[str, ...]]
    """Ids of the deleted records by label, with all that depended on them."""


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
