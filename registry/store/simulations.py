"""Simulations of placements, each joined to its placement, its fabric and the messages that it replayed.

The id of a simulation is a hash of provenance and result: saving the same run again adds nothing. The seconds
that it took and the time of saving do not count.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from registry.database import codec
from registry.database.driver import Database, Transaction
from registry.database.stored_kinds import Join, NewRecord, RecordKind, Records
from registry.errors import InvalidValue, UnknownName, WrongRanks
from registry.model import Simulation
from registry.model.views import one_line
from registry.store.fabrics import Snapshot, stored_snapshot
from registry.store.observations import lock_cluster, read_content
from registry.store.profile_names import ranks_of_profiles

_PLACEMENT = """
MATCH (p:Placement {id: $placement})
RETURN p.cluster AS cluster, p.ranks AS ranks
"""

_TRACE = """
MATCH (t:Trace {id: $trace})
RETURN t.profile AS profile
"""

_NUMBERS = (
    *("mode", "routing", "seed", "complete", "completion_seconds", "delivered_bytes", "messages"),
    *("packet_hops", "mean_latency_seconds"),
)
"""Fields of a `Simulation` that are stored as properties; the others are arrays."""
_ARRAYS = (
    *("link_bytes", "link_busy_seconds", "delivered_at", "delivered", "latency_seconds"),
    "latency_over_time",
)
_PLAIN = ("id", "cluster", "recorded_at", "placement", "profile", "wall_seconds", "code_version")
"""Fields of a `StoredSimulation` that are properties of the same name, and always there."""
_PERCENTILES = {"median_latency_seconds": 50.0, "latency_99_seconds": 99.0, "max_latency_seconds": 100.0}
"""Percentiles of the latency that lists show."""

_IN = Join("IN", "Content")
_REPLAYS_PROFILE, _REPLAYS_TRACE = Join("REPLAYS", "Profile"), Join("REPLAYS", "Trace")
SIMULATION = RecordKind(
    name="simulation",
    label="Simulation",
    letter="s",
    owner=Join("OF", "Placement"),
    joins=(_IN, _REPLAYS_PROFILE, _REPLAYS_TRACE),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationRecord:
    """A simulation to be saved."""

    placement: str
    """Id of the stored placement."""
    content: str
    """Id of the snapshot on whose fabric it ran: the placement's own, or another one of its cluster."""
    tables: str | None = None
    """Id of the forwarding tables that were used."""
    profile: str
    """Id of the profile whose messages were sent."""
    trace: str | None = None
    """Id of the profile's trace that was replayed; None if the profile was sent in rounds."""
    simulation: Simulation
    parameters: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    """Parameters of the simulator and of the messages."""
    wall_seconds: float = 0.0
    """Time that the simulator took."""
    code_version: str = ""

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredSimulation(SimulationRecord):
    """A simulation as it was saved."""

    id: str
    cluster: str
    recorded_at: datetime
    """UTC."""

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationInfo:
    """A row of the list of simulations."""

    id: str
    recorded_at: datetime
    cluster: str
    snapshot: str
    """Id of the snapshot."""
    placement: str
    profile: str
    trace: str | None
    mode: str
    routing: str
    seed: int
    complete: bool
    completion_seconds: float
    delivered_bytes: float
    messages: int
    packet_hops: int
    mean_latency_seconds: float
    median_latency_seconds: float
    latency_99_seconds: float
    max_latency_seconds: float
    """Percentiles 50, 99 and 100 of the latency of messages."""
    parameters: Mapping[str, str | int | float | bool]
    wall_seconds: float
    code_version: str

    @property
    def throughput(self) -> float:
        """Delivered bytes per simulated second; 0 if the run took no time."""
        return self.delivered_bytes / self.completion_seconds if self.completion_seconds > 0.0 else 0.0


_LIST = SIMULATION.list_statement(SimulationInfo)
_LIST_OF_CLUSTER = SIMULATION.list_statement(SimulationInfo, "n.cluster = $cluster")
_LIST_OF_PLACEMENT = SIMULATION.list_statement(
    SimulationInfo, "$cluster IS NULL OR n.cluster = $cluster", path="-[:OF]->(:Placement {id: $placement})"
)


class Simulations(Records[StoredSimulation]):
    """Stored simulations."""

    kind = SIMULATION

    def save(self, record: SimulationRecord) -> str:
        """Save a simulation and return its id; one that is stored already adds nothing.

        Raises:
            UnknownName: No such placement, snapshot, profile or trace.
            InvalidPlacement: The placement has another number of ranks than the profile.
            InvalidValue: The links are not those of the snapshot, the trace belongs to another profile, or
                the snapshot to another cluster than the placement.
        """
        identity = simulation_id(record)

        def work(transaction: Transaction) -> None:
            cluster = _cluster(transaction, record.placement)
            lock_cluster(transaction, cluster)
            if SIMULATION.known(transaction, [identity]):
                return
            _check(transaction, record, cluster)
            replayed = {_REPLAYS_PROFILE: [record.profile]}
            if record.trace is not None:
                replayed = {_REPLAYS_TRACE: [record.trace]}
            properties = _properties(record, cluster, datetime.now(UTC))
            joined = {_IN: [record.content], **replayed}
            SIMULATION.create(transaction, [NewRecord(identity, properties, record.placement, joined)])

        self._database.write(work)
        return identity

    def list(
        self, cluster: str | None = None, *, placement: str | None = None, limit: int | None = None
    ) -> tuple[SimulationInfo, ...]:
        """Return the simulations that match, the newest first; one statement.

        Args:
            cluster, placement: Only simulations on this cluster, of the placement with this id.
            limit: At most so many.
        """
        if placement is not None:
            rows = self._rows(_LIST_OF_PLACEMENT, limit, placement=placement, cluster=cluster)
        elif cluster is not None:
            rows = self._rows(_LIST_OF_CLUSTER, limit, cluster=cluster)
        else:
            rows = self._rows(_LIST, limit)
        return tuple(SimulationInfo(parameters=json.loads(row.pop("parameters")), **row) for row in rows)

    def _stored(self, row: dict[str, Any]) -> StoredSimulation:
        return stored_simulation(row["node"])


def simulation_id(record: SimulationRecord) -> str:
    """Return the id of a simulation: ``s`` and 12 hexadecimal digits, a hash of provenance and result."""
    simulation = record.simulation
    provenance = {
        **{name: getattr(record, name) for name in ("placement", "content", "tables", "profile", "trace")},
        **{name: getattr(simulation, name) for name in _NUMBERS},
        "parameters": dict(record.parameters),
        "code_version": record.code_version,
    }
    return SIMULATION.identity(codec.columns_of(simulation, _ARRAYS), provenance)


def stored_simulation(node: Mapping[str, Any]) -> StoredSimulation:
    """Return the simulation of the properties of its node."""
    columns = codec.unpack(node["blob"])
    with SIMULATION.reading(node["id"]):
        simulation = Simulation(
            **{name: node[name] for name in _NUMBERS}, **{name: columns[name] for name in _ARRAYS}
        )
    return StoredSimulation(
        content=node["snapshot"],
        tables=node.get("tables"),
        trace=node.get("trace"),
        simulation=simulation,
        parameters=json.loads(node["parameters"]),
        **{name: node[name] for name in _PLAIN},
    )


def _cluster(transaction: Transaction, placement: str) -> str:
    found = transaction.run(_PLACEMENT, placement=placement)
    if not found:
        raise UnknownName("placement", placement)
    return str(found[0]["cluster"])


def _check(transaction: Transaction, record: SimulationRecord, cluster: str) -> None:
    """Raise if something that the record names is not stored or does not fit."""
    fabric = read_content(transaction, record.content)
    if fabric is None:
        raise UnknownName("snapshot", record.content)
    if not record.content.startswith(f"{cluster}/"):
        raise InvalidValue("SimulationRecord.content", f"{record.content} is no snapshot of {cluster}")
    links = len(record.simulation.link_bytes)
    if links != len(fabric.links):
        reason = f"{links} link loads for a snapshot of {len(fabric.links)} links"
        raise InvalidValue("Simulation.link_bytes", reason)
    profiles = ranks_of_profiles(transaction, [record.profile])
    if not profiles:
        raise UnknownName("profile", record.profile)
    ranks = transaction.run(_PLACEMENT, placement=record.placement)[0]["ranks"]
    if (needed := profiles[record.profile][0]) != ranks:
        raise WrongRanks(ranks, needed)
    if record.trace is not None:
        trace = transaction.run(_TRACE, trace=record.trace)
        if not trace:
            raise UnknownName("trace", record.trace)
        if trace[0]["profile"] != record.profile:
            raise InvalidValue("SimulationRecord.trace", f"{record.trace} is of another profile")


def _properties(record: SimulationRecord, cluster: str, time: datetime) -> dict[str, Any]:
    """Return the properties of the node, including the ids of the nodes that it is joined to."""
    simulation = record.simulation
    return {
        "cluster": cluster,
        "recorded_at": time,
        "snapshot": record.content,
        "tables": record.tables,
        "placement": record.placement,
        "profile": record.profile,
        "trace": record.trace,
        "parameters": json.dumps(dict(record.parameters), sort_keys=True),
        "wall_seconds": float(record.wall_seconds),
        "code_version": record.code_version,
        "blob": codec.pack(codec.columns_of(simulation, _ARRAYS)),
        **{name: getattr(simulation, name) for name in _NUMBERS},
        **{name: simulation.latency(percentile) for name, percentile in _PERCENTILES.items()},
    }


_OPEN = """
UNWIND $simulations AS wanted
MATCH (s:Simulation {id: wanted})-[:IN]->(x:Content)
OPTIONAL MATCH (o:Observation)-[:SAW]->(x)
WITH s, x, max(o.at) AS observed_at
RETURN s AS node, x.id AS content, x.blob AS blob, observed_at
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenSimulation:
    """A simulation with its fabric, without forwarding tables."""

    stored: StoredSimulation
    snapshot: Snapshot

    __repr__ = one_line


def open_simulations(database: Database, simulations: Sequence[str]) -> dict[str, OpenSimulation]:
    """Return simulations by their ids, each with its fabric; one statement."""
    ids = list(dict.fromkeys(simulations))

    def work(transaction: Transaction) -> dict[str, OpenSimulation]:
        snapshots: dict[str, Snapshot] = {}
        found = {}
        for row in transaction.run(_OPEN, simulations=ids):
            stored = stored_simulation(row["node"])
            content = stored.content
            if content not in snapshots:  # a fabric that several share is unpacked once
                snapshots[content] = stored_snapshot(stored.cluster, content, row["blob"], row["observed_at"])
            found[stored.id] = OpenSimulation(stored=stored, snapshot=snapshots[content])
        SIMULATION.require_all(transaction, ids, found)
        return found

    return database.read(work)
