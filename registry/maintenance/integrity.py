"""Check of stored records, one after the other: can they be read, does their content give their ids?

The records are those of a database or of a backup. What an id is a hash of is said where the id is made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from registry.counters.sweeps import sweep_id, unpack_rollup, unpack_sweep
from registry.database import codec
from registry.database.backups.sections import JOINS
from registry.database.record_store import hashed_id
from registry.errors import AlmanacError
from registry.fabrics.contents import content_hash, unpack_fabric
from registry.jobs.allocations import HostSlots
from registry.maintenance.clusters import KEEP_ID
from registry.maintenance.dependents import NAMES
from registry.model import as_utc
from registry.profiles import profile_id, stored_profile
from registry.records.circuit_plans import circuit_plan_id, stored_circuit_plan
from registry.records.measured_runs import measured_run_id, stored_measured_run
from registry.records.placements.rows import unpack_loads
from registry.records.placements.saving import stored_placement_id
from registry.records.simulations import simulation_id, stored_simulation
from registry.records.traces import stored_trace, trace_id

UNREADABLE, WRONG_ID, ORPHAN, GRAPH, FILE = "unreadable", "wrong-id", "orphan", "graph", "file"
"""Problems: bytes that cannot be read, content that gives another id, a record without what it belongs to, a
derived graph that the observations do not give, a file of the embedded server that was damaged."""
FILES = "files of the database"
"""What a finding is of if its problem is `FILE`."""

Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem of stored data.

    Attributes
    ----------
    problem : str
        `UNREADABLE`, `WRONG_ID`, `ORPHAN`, `GRAPH` or `FILE`.
    label, id : str
        Label and id of the record; for the derived graph ``Cluster`` and its name; for a file `FILES` and its
        name.
    cluster : str or None
        Cluster of the record.
    reason : str
        What was found.
    harmless : bool
        True if the record can be read, and its id may differ for a good reason: the cluster got another name,
        or an early version made ids otherwise.
    """

    problem: str
    label: str
    id: str
    cluster: str | None
    reason: str
    harmless: bool = False

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

    Attributes
    ----------
    checked : Counter of str
        Number of records whose content was read, by label.
    findings : list of Finding
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
