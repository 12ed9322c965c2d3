"""Labels, relationships and indexes of the graph, as data.

Every label has a unique ``id``: a composed string, such as cluster and device GUID.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An index on properties of a label.

    Attributes
    ----------
    name, label : str
    properties : tuple of str
    serves : str
        Statements that use it.
    """

    name: str
    label: str
    properties: tuple[str, ...]
    serves: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Relationship:
    """A relationship type between two labels."""

    type: str
    source: str
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
)
"""Every label except ``Schema``; each has a unique ``id``, by which its nodes are found."""

RELATIONSHIPS: tuple[Relationship, ...] = tuple(
    Relationship(type=kind, source=source, target=target)
    for source, kind, target in (
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
    )
)
"""Every relationship type with the labels that it connects: what a dump contains."""

INDEXES: tuple[Index, ...] = (
    Index(
        name="device_cluster",
        label="Device",
        properties=("cluster",),
        serves="the derived graph of a cluster: as of a time, changes, rebuild",
    ),
    Index(
        name="observation_cluster",
        label="Observation",
        properties=("cluster",),
        serves="last observation of a cluster at or before a time",
    ),
    Index(
        name="job_cluster",
        label="Job",
        properties=("cluster",),
        serves="jobs of a cluster",
    ),
    Index(
        name="job_number",
        label="Job",
        properties=("job",),
        serves="a job by the scheduler's id, whatever the cluster",
    ),
    Index(
        name="sweep_cluster",
        label="CounterSweep",
        properties=("cluster",),
        serves="last sweep of counters at or before a time",
    ),
    Index(
        name="rollup_cluster",
        label="CounterRollup",
        properties=("cluster",),
        serves="counters of a time whose sweeps were rolled up",
    ),
    Index(
        name="intended_cluster",
        label="IntendedWiring",
        properties=("cluster",),
        serves="the plan that holds as of a time",
    ),
    Index(
        name="layout_cluster",
        label="HostLayout",
        properties=("cluster",),
        serves="layouts of all hosts as of a time",
    ),
    Index(
        name="run_cluster",
        label="IngestRun",
        properties=("cluster",),
        serves="runs of a cluster: the last ones, those old enough to be forgotten",
    ),
    Index(
        name="run_key",
        label="IngestRun",
        properties=("key",),
        serves="whether the very same was read before",
    ),
    Index(
        name="placement_cluster",
        label="Placement",
        properties=("cluster",),
        serves="history and series of a cluster",
    ),
    Index(
        name="placement_recorded",
        label="Placement",
        properties=("recorded_at",),
        serves="the newest placements, those since a time",
    ),
    Index(
        name="job_started",
        label="Job",
        properties=("cluster", "started_at"),
        serves="jobs of a cluster that run at a time",
    ),
    Index(
        name="simulation_cluster",
        label="Simulation",
        properties=("cluster",),
        serves="simulated runs on a cluster",
    ),
    Index(
        name="reconfiguration_cluster",
        label="Reconfiguration",
        properties=("cluster",),
        serves="configurations proposed for the optical switch of a cluster",
    ),
    Index(
        name="reconfiguration_recorded",
        label="Reconfiguration",
        properties=("recorded_at",),
        serves="the newest proposed configurations",
    ),
)


def constraint_statement(label: str) -> str:
    """Return the statement that makes ``id`` unique for a label."""
    return f"CREATE CONSTRAINT {label.lower()}_id IF NOT EXISTS FOR (n:{label}) REQUIRE n.id IS UNIQUE"


def index_statement(index: Index) -> str:
    """Return the statement that creates an index."""
    properties = ", ".join(f"n.{name}" for name in index.properties)
    return f"CREATE INDEX {index.name} IF NOT EXISTS FOR (n:{index.label}) ON ({properties})"
