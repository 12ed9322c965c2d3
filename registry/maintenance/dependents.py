"""Which stored data depend on which, and their deletion.

With data, all is deleted that depends on them, and what they shared with other data if nothing else refers to
it any more. The tables of this module say which labels those are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from registry.database.driver import BATCH, Transaction
from registry.database.record_store import delete_statement

NAMES = {
    "Advice": "advice",
    "Allocation": "allocations",
    "Application": "applications",
    "Cluster": "clusters",
    "Content": "snapshots",
    "CounterRollup": "summaries of counters",
    "CounterSweep": "counter sweeps",
    "Device": "devices",
    "DeviceState": "states of devices",
    "Drawing": "drawings",
    "ForwardingTable": "forwarding tables",
    "HostLayout": "host layouts",
    "IngestRun": "ingest runs",
    "IntendedWiring": "intended wirings",
    "Job": "jobs",
    "LinkLoads": "link loads",
    "MeasuredRun": "measured runs",
    "Observation": "observations",
    "Placement": "placements",
    "Profile": "profiles",
    "Rank": "ranks of profiles",
    "Reconfiguration": "circuit plans",
    "Routing": "routings",
    "Simulation": "simulations",
    "Trace": "traces",
}
"""Names of labels in messages."""


class Dependency(NamedTuple):
    """A label whose nodes cannot exist without a node of another label.

    Attributes
    ----------
    label, dependent : str
        The label, and the one that depends on it.
    path : str
        Path from a node of the label to its dependent; empty if the dependent names it as its ``tables``.
    """

    label: str
    dependent: str
    path: str

    @property
    def statement(self) -> str:
        """Statement for the dependents of ``$ids``."""
        if not self.path:
            return f"MATCH (d:{self.dependent})\nWHERE d.tables IN $ids\nRETURN collect(d.id) AS ids\n"
        return (
            f"UNWIND $ids AS id\nMATCH (n:{self.label} {{id: id}}){self.path}(d:{self.dependent})\n"
            "RETURN collect(DISTINCT d.id) AS ids\n"
        )


class Shared(NamedTuple):
    """A label whose nodes exist as long as nodes of another label refer to them."""

    label: str
    type: str
    shared: str

    @property
    def statement(self) -> str:
        """Statement for what ``$ids`` refer to."""
        return (
            f"UNWIND $ids AS id\nMATCH (n:{self.label} {{id: id}})-[:{self.type}]->(s:{self.shared})\n"
            "RETURN collect(DISTINCT s.id) AS ids\n"
        )


DEPENDENCIES = (
    Dependency("Profile", "Rank", "-[:HAS_RANK]->"),
    Dependency("Profile", "Trace", "<-[:OF]-"),
    Dependency("Profile", "Placement", "<-[:OF]-"),
    Dependency("Profile", "Simulation", "<-[:REPLAYS]-"),
    Dependency("Profile", "Reconfiguration", "<-[:FOR]-"),
    Dependency("Job", "Placement", "-[:HAS_PLACEMENT]->"),
    Dependency("Job", "Reconfiguration", "<-[:FOR]-"),
    Dependency("Job", "Advice", "-[:HAS_ADVICE]->"),
    Dependency("Content", "Drawing", "<-[:OF]-"),
    Dependency("Content", "Placement", "<-[:IN]-"),
    Dependency("Content", "Simulation", "<-[:IN]-"),
    Dependency("Routing", "Placement", ""),
    Dependency("Routing", "Simulation", ""),
    Dependency("Trace", "Simulation", "<-[:REPLAYS]-"),
    Dependency("Placement", "Simulation", "<-[:OF]-"),
    Dependency("Placement", "Advice", "<-[:OF]-"),
    Dependency("Placement", "Advice", "<-[:PROPOSES]-"),
    Dependency("Placement", "LinkLoads", "-[:HAS_LOADS]->"),
    Dependency("Profile", "MeasuredRun", "<-[:RAN]-"),
    Dependency("Placement", "MeasuredRun", "<-[:USED]-"),
)
"""All dependencies, in an order in which one pass finds the dependents of dependents too."""

RESULTS = ("Trace", "Placement", "Simulation", "Reconfiguration", "MeasuredRun")
"""Dependents that a user saved; the others are parts of what they depend on, or computed from it."""

SHARED = (
    Shared("Observation", "SAW", "Content"),
    Shared("Observation", "SAW", "Routing"),
    Shared("Routing", "HAS_TABLE", "ForwardingTable"),
    Shared("Job", "RAN_ON", "Allocation"),
    Shared("Placement", "ON", "Allocation"),
    Shared("Profile", "OF", "Application"),
)

_UNSET_PLAN = """
MATCH (c:Cluster)
WHERE c.optical_plan IN $ids
SET c.optical_plan = ''
"""

Nodes = dict[str, set[str]]
"""Ids of nodes by label."""


class Deleted:
    """Nodes that a transaction deletes.

    Attributes
    ----------
    nodes : dict of str to set of str
        Ids of all deleted nodes by label.
    results : dict of str to set of str
        Those of `RESULTS` that were deleted because of a dependency.
    """

    def __init__(self) -> None:
        self.nodes: Nodes = {}
        self.results: Nodes = {}

    def delete(self, transaction: Transaction, label: str, ids: Collection[str]) -> None:
        """Delete nodes of a label, all that depends on them, and what nothing refers to any more."""
        doomed: Nodes = {label: set(ids)}
        for one in DEPENDENCIES:
            _add(doomed, one.dependent, _ids(transaction, one.statement, doomed.get(one.label, ())))
        shared: Nodes = {}
        for use in SHARED:
            _add(shared, use.shared, _ids(transaction, use.statement, doomed.get(use.label, ())))
        for name, gone in doomed.items():
            for batch in batches(gone):
                transaction.run(delete_statement(name), ids=batch)
            _add(self.nodes, name, gone)
            if name in RESULTS and name != label:
                _add(self.results, name, gone)
        if "Reconfiguration" in doomed:
            transaction.run(_UNSET_PLAN, ids=sorted(doomed["Reconfiguration"]))
        for name, candidates in shared.items():
            if unused := _ids(transaction, unused_statement(name), candidates):
                self.delete(transaction, name, unused)


def unused_statement(label: str) -> str:
    """Return the statement for those of ``$ids`` of a shared label that nothing refers to."""
    uses = " AND ".join(f"NOT (s)<-[:{one.type}]-(:{one.label})" for one in SHARED if one.shared == label)
    return f"UNWIND $ids AS id\nMATCH (s:{label} {{id: id}})\nWHERE {uses}\nRETURN collect(s.id) AS ids\n"


def named(nodes: Mapping[str, Collection[str]]) -> dict[str, int]:
    """Return the number of nodes by the name of their label."""
    return {NAMES[label]: len(nodes[label]) for label in sorted(nodes, key=NAMES.__getitem__)}


def count_texts(counts: Mapping[str, int]) -> list[str]:
    """Return numbers by name as texts: ``placements: 3``."""
    return [f"{name}: {count:,}" for name, count in counts.items()]


def _ids(transaction: Transaction, statement: str, ids: Collection[str]) -> set[str]:
    """Return the ids that a statement finds for some ids, batch by batch."""
    return {found for batch in batches(ids) for found in transaction.run(statement, ids=batch)[0]["ids"]}


def batches(ids: Collection[str], size: int = BATCH) -> list[list[str]]:
    """Return ids in lists of at most `size` (default: what one statement can take), in order."""
    every = sorted(ids)
    return [every[start : start + size] for start in range(0, len(every), size)]


def _add(nodes: Nodes, label: str, ids: Collection[str]) -> None:
    if ids:
        nodes.setdefault(label, set()).update(ids)
