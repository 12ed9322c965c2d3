"""Labels, relationships and indexes of the graph, as data.

Every label has a unique ``id``: a composed string, such as cluster and device GUID.
"""

from __future__ import annotations

from typing import NamedTuple


class Index(NamedTuple):
    """An index on properties of a label, and what uses it."""

    name: str
    label: str
    properties: tuple[str, ...]
    serves: str


class Relationship(NamedTuple):
    """A relationship type between two labels."""

    source: str
    type: str
    target: str


LABELS: tuple[str, ...] = (
    "Cluster",
    "Observation",
    "Content",
    "Routing",
    "ForwardingTable",
    "Device",
    "DeviceState",
    "Application",
    "Profile",
    "Rank",
    "Job",
    "Allocation",
    "Placement",
    "LinkLoads",
    "IngestRun",
    "CounterSweep",
    "CounterRollup",
    "IntendedWiring",
    "HostLayout",
    "Advice",
    "Drawing",
    "Trace",
    "Simulation",
    "Reconfiguration",
    "MeasuredRun",
)
"""Every label except ``Schema``; each has a unique ``id``, by which its nodes are found."""

RELATIONSHIPS: tuple[Relationship, ...] = tuple(
    Relationship(*parts)
    for parts in (
        ("Observation", "SAW", "Content"),
        ("Observation", "SAW", "Routing"),
        ("Content", "OF", "Cluster"),
        ("Routing", "OF", "Cluster"),
        ("Routing", "HAS_TABLE", "ForwardingTable"),
        ("Device", "HAS_STATE", "DeviceState"),
        ("Device", "LINK", "Device"),
        ("Profile", "OF", "Application"),
        ("Profile", "HAS_RANK", "Rank"),
        ("Rank", "SENDS", "Rank"),
        ("Job", "RAN_ON", "Allocation"),
        ("Allocation", "ON", "Device"),
        ("Job", "RAN", "Profile"),
        ("Job", "HAS_PLACEMENT", "Placement"),
        ("Placement", "OF", "Profile"),
        ("Placement", "IN", "Content"),
        ("Placement", "ON", "Allocation"),
        ("Placement", "HAS_LOADS", "LinkLoads"),
        ("Placement", "LOADS", "Device"),
        ("IngestRun", "RECORDED", "Observation"),
        ("IngestRun", "RECORDED", "Profile"),
        ("IngestRun", "RECORDED", "Placement"),
        ("IngestRun", "RECORDED", "CounterSweep"),
        ("IngestRun", "RECORDED", "IntendedWiring"),
        ("CounterSweep", "OF", "Cluster"),
        ("CounterRollup", "OF", "Cluster"),
        ("IntendedWiring", "OF", "Cluster"),
        ("HostLayout", "OF", "Cluster"),
        ("Job", "HAS_ADVICE", "Advice"),
        ("Advice", "OF", "Placement"),
        ("Advice", "PROPOSES", "Placement"),
        ("Drawing", "OF", "Content"),
        ("IngestRun", "RECORDED", "Trace"),
        ("Trace", "OF", "Profile"),
        ("Simulation", "OF", "Placement"),
        ("Simulation", "IN", "Content"),
        ("Simulation", "REPLAYS", "Profile"),
        ("Simulation", "REPLAYS", "Trace"),
        ("Reconfiguration", "OF", "Cluster"),
        ("Reconfiguration", "FOR", "Profile"),
        ("Reconfiguration", "FOR", "Job"),
        ("MeasuredRun", "OF", "Cluster"),
        ("MeasuredRun", "USED", "Placement"),
        ("MeasuredRun", "RAN", "Profile"),
    )
)
"""Every relationship type with the labels that it connects: what a dump contains."""

INDEXES: tuple[Index, ...] = (
    Index("device_cluster", "Device", ("cluster",), "the derived graph of a cluster"),
    Index(
        "observation_cluster",
        "Observation",
        ("cluster",),
        "the last observation at or before a time",
    ),
    Index("job_cluster", "Job", ("cluster",), "jobs of a cluster"),
    Index("job_number", "Job", ("job",), "a job by the scheduler's id, whatever the cluster"),
    Index("sweep_cluster", "CounterSweep", ("cluster",), "last sweep of counters at or before a time"),
    Index("rollup_cluster", "CounterRollup", ("cluster",), "counters of a time whose sweeps were rolled up"),
    Index("intended_cluster", "IntendedWiring", ("cluster",), "the plan that is valid at a time"),
    Index("layout_cluster", "HostLayout", ("cluster",), "layouts of all hosts at a time"),
    Index("run_cluster", "IngestRun", ("cluster",), "last and old runs of a cluster"),
    Index("run_key", "IngestRun", ("key",), "the last run with the same input"),
    Index("placement_cluster", "Placement", ("cluster",), "history and series of a cluster"),
    Index("placement_recorded", "Placement", ("recorded_at",), "the newest placements, those since a time"),
    Index("job_started", "Job", ("cluster", "started_at"), "jobs of a cluster that run at a time"),
    Index("simulation_cluster", "Simulation", ("cluster",), "simulations on a cluster"),
    Index("reconfiguration_cluster", "Reconfiguration", ("cluster",), "circuit plans of a cluster"),
    Index("reconfiguration_recorded", "Reconfiguration", ("recorded_at",), "the newest circuit plans"),
    Index("measured_cluster", "MeasuredRun", ("cluster",), "measured runs on a cluster"),
)


def constraint_statement(label: str) -> str:
    """Return the statement that makes ``id`` unique for a label."""
    return f"CREATE CONSTRAINT {label.lower()}_id IF NOT EXISTS FOR (n:{label}) REQUIRE n.id IS UNIQUE"


def index_statement(index: Index) -> str:
    """Return the statement that creates an index."""
    properties = ", ".join(f"n.{name}" for name in index.properties)
    return f"CREATE INDEX {index.name} IF NOT EXISTS FOR (n:{index.label}) ON ({properties})"
