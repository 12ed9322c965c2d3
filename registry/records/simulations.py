"""Simulated runs in the graph: append-only, each joined to its placement, its fabric and what it replayed.

The id of one is a hash of provenance and result. Whoever simulates the same again adds nothing; the seconds
spent and the moment are no part of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from registry.database import codec
from registry.database.driver import Database, Transaction
from registry.database.record_store import ById, find_by_prefix, limited_rows
from registry.errors import DatabaseError, InvalidPlacement, InvalidValue, UnknownName
from registry.fabrics.observations import lock_cluster, read_content
from registry.model import Simulation

_KNOWN = """
MATCH (s:Simulation {id: $simulation})
RETURN s.id AS id
"""

_PLACEMENT = """
MATCH (p:Placement {id: $placement})
RETURN p.cluster AS cluster, p.ranks AS ranks
"""

_PROFILE = """
MATCH (f:Profile {id: $profile})
RETURN f.ranks AS ranks
"""

_TRACE = """
MATCH (t:Trace {id: $trace})
RETURN t.profile AS profile
"""

_CREATE = """
MATCH (p:Placement {id: $placement})
CREATE (s:Simulation {id: $simulation})-[:OF]->(p)
SET s += $properties
"""

_IN_CONTENT = """
MATCH (s:Simulation {id: $simulation})
MATCH (x:Content {id: $content})
CREATE (s)-[:IN]->(x)
"""

_REPLAYS_PROFILE = """
MATCH (s:Simulation {id: $simulation})
MATCH (f:Profile {id: $profile})
CREATE (s)-[:REPLAYS]->(f)
"""

_REPLAYS_TRACE = """
MATCH (s:Simulation {id: $simulation})
MATCH (t:Trace {id: $trace})
CREATE (s)-[:REPLAYS]->(t)
"""

_READ = """
MATCH (s:Simulation {id: $simulation})
RETURN s AS node
"""

BY_ID = ById("simulation", "Simulation", _READ)

_NUMBERS = (
    *("mode", "routing", "seed", "complete", "completion_seconds", "delivered_bytes", "messages"),
    *("packet_hops", "mean_latency_seconds"),
)
"""Fields of a `Simulation` that are properties; the others are arrays."""
_ARRAYS = (
    *("link_bytes", "link_busy_seconds", "delivered_at", "delivered", "latency_seconds"),
    "latency_over_time",
)
_PERCENTILES = {"median_latency_seconds": 50.0, "latency_99_seconds": 99.0, "max_latency_seconds": 100.0}
"""Told in lists."""
_INFO = (
    *("id", "recorded_at", "cluster", "snapshot", "placement", "profile", "trace", *_NUMBERS),
    *(*_PERCENTILES, "parameters", "wall_seconds", "code_version"),
)
_TOLD = f"""
RETURN {", ".join(f"s.{name} AS {name}" for name in _INFO)}
ORDER BY recorded_at DESC, id
"""

_LIST = f"""
MATCH (s:Simulation)
{_TOLD}
"""

_LIST_OF_CLUSTER = f"""
MATCH (s:Simulation)
WHERE s.cluster = $cluster
{_TOLD}
"""

_LIST_OF_PLACEMENT = f"""
MATCH (s:Simulation)-[:OF]->(p:Placement {{id: $placement}})
WHERE $cluster IS NULL OR s.cluster = $cluster
{_TOLD}
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationRecord:
    """A simulated run to be saved.

    Attributes
    ----------
    placement : str
        Id of the saved placement.
    content : str
        Id of the snapshot on whose fabric it was simulated, as `Fabrics.read` gives it: the placement's own,
        or another one of its cluster.
    tables : str or None
        Id of the forwarding tables that were used.
    profile : str
        Id of the profile whose messages were sent.
    trace : str or None
        Id of the profile's trace that was replayed; None where the profile was turned into rounds.
    simulation : Simulation
    parameters : mapping of str to str, int, float or bool
        Of the simulator, and how messages were made.
    wall_seconds : float
        Spent on it.
    code_version : str
    """

    placement: str
    content: str
    tables: str | None = None
    profile: str
    trace: str | None = None
    simulation: Simulation
    parameters: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    wall_seconds: float = 0.0
    code_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredSimulation(SimulationRecord):
    """A simulated run as it was saved.

    Attributes
    ----------
    id, cluster : str
    recorded_at : datetime
        UTC.
    """

    id: str
    cluster: str
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationInfo:
    """A row of the history of simulated runs.

    Attributes
    ----------
    snapshot : str
        Id of the content.
    median_latency_seconds, latency_99_seconds, max_latency_seconds : float
        Percentiles 50, 99 and 100 of the latency of messages.
    """

    id: str
    recorded_at: datetime
    cluster: str
    snapshot: str
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
    parameters: Mapping[str, str | int | float | bool]
    wall_seconds: float
    code_version: str

    @property
    def throughput(self) -> float:
        """Delivered bytes a simulated second; 0 where the run took no time."""
        return self.delivered_bytes / self.completion_seconds if self.completion_seconds > 0.0 else 0.0


class Simulations:
    """What the registry knows of simulated runs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, record: SimulationRecord) -> str:
        """Save a simulated run; its id. One that is there already adds nothing.

        Raises
        ------
        UnknownName
            No such placement, snapshot, profile or trace.
        InvalidPlacement
            The placement has another number of ranks than the profile.
        InvalidValue
            The links are not those of the snapshot, the trace is of another profile, or the snapshot of
            another cluster than the placement.
        """
        identity = simulation_id(record)

        def work(transaction: Transaction) -> None:
            cluster = _cluster(transaction, record.placement)
            lock_cluster(transaction, cluster)
            if transaction.run(_KNOWN, simulation=identity):
                return
            _check(transaction, record, cluster)
            _create(transaction, identity, record, cluster, datetime.now(UTC))

        self._database.write(work)
        return identity

    def read(self, simulation: str) -> StoredSimulation:
        """A simulated run by its id or a unique beginning of it.

        Raises
        ------
        UnknownName
            With the closest ids.
        """

        def work(transaction: Transaction) -> StoredSimulation:
            return stored_simulation(find_by_prefix(transaction, BY_ID, simulation)["node"])

        return self._database.read(work)

    def list(
        self, cluster: str | None = None, *, placement: str | None = None, limit: int | None = None
    ) -> tuple[SimulationInfo, ...]:
        """Simulated runs that fit what is given, the newest first; one statement.

        Parameters
        ----------
        placement : str, optional
            Id of a placement.
        limit : int, optional
            So many at most.
        """

        def work(transaction: Transaction) -> list[dict[str, Any]]:
            if placement is not None:
                asked = {"placement": placement, "cluster": cluster}
                return limited_rows(transaction, _LIST_OF_PLACEMENT, limit, **asked)
            if cluster is not None:
                return limited_rows(transaction, _LIST_OF_CLUSTER, limit, cluster=cluster)
            return limited_rows(transaction, _LIST, limit)

        rows = self._database.read(work)
        return tuple(SimulationInfo(parameters=json.loads(row.pop("parameters")), **row) for row in rows)


def simulation_id(record: SimulationRecord) -> str:
    """``s`` and 12 hexadecimal digits: a hash of provenance and result."""
    simulation = record.simulation
    provenance = {
        **{name: getattr(record, name) for name in ("placement", "content", "tables", "profile", "trace")},
        **{name: getattr(simulation, name) for name in _NUMBERS},
        "parameters": dict(record.parameters),
        "code_version": record.code_version,
    }
    text = json.dumps(provenance, sort_keys=True)
    return "s" + codec.digest({"provenance": [text], **_columns(simulation)})[:12]


def _cluster(transaction: Transaction, placement: str) -> str:
    found = transaction.run(_PLACEMENT, placement=placement)
    if not found:
        raise UnknownName("placement", placement)
    return str(found[0]["cluster"])


def _check(transaction: Transaction, record: SimulationRecord, cluster: str) -> None:
    """Raise where what the record names is not there, or does not fit."""
    fabric = read_content(transaction, record.content)
    if fabric is None:
        raise UnknownName("snapshot", record.content)
    if not record.content.startswith(f"{cluster}/"):
        raise InvalidValue("SimulationRecord.content", f"{record.content} is no snapshot of {cluster}")
    links = len(record.simulation.link_bytes)
    if links != len(fabric.links):
        reason = f"{links} link loads for a snapshot of {len(fabric.links)} links"
        raise InvalidValue("Simulation.link_bytes", reason)
    profile = transaction.run(_PROFILE, profile=record.profile)
    if not profile:
        raise UnknownName("profile", record.profile)
    ranks = transaction.run(_PLACEMENT, placement=record.placement)[0]["ranks"]
    if profile[0]["ranks"] != ranks:
        raise InvalidPlacement(f"{ranks} ranks are placed, the profile has {profile[0]['ranks']}")
    if record.trace is not None:
        trace = transaction.run(_TRACE, trace=record.trace)
        if not trace:
            raise UnknownName("trace", record.trace)
        if trace[0]["profile"] != record.profile:
            raise InvalidValue("SimulationRecord.trace", f"{record.trace} is of another profile")


def _create(
    transaction: Transaction, identity: str, record: SimulationRecord, cluster: str, at: datetime
) -> None:
    properties = _properties(record, cluster, at)
    transaction.run(_CREATE, placement=record.placement, simulation=identity, properties=properties)
    transaction.run(_IN_CONTENT, simulation=identity, content=record.content)
    if record.trace is None:
        transaction.run(_REPLAYS_PROFILE, simulation=identity, profile=record.profile)
    else:
        transaction.run(_REPLAYS_TRACE, simulation=identity, trace=record.trace)


def _properties(record: SimulationRecord, cluster: str, at: datetime) -> dict[str, Any]:
    """Properties of the node; what its relationships tell stands here too."""
    simulation = record.simulation
    properties: dict[str, Any] = {
        "cluster": cluster,
        "recorded_at": at,
        "snapshot": record.content,
        "tables": record.tables,
        "placement": record.placement,
        "profile": record.profile,
        "trace": record.trace,
        "parameters": json.dumps(dict(record.parameters), sort_keys=True),
        "wall_seconds": float(record.wall_seconds),
        "code_version": record.code_version,
        "blob": codec.pack(_columns(simulation)),
        **{name: getattr(simulation, name) for name in _NUMBERS},
        **{name: simulation.latency(percentile) for name, percentile in _PERCENTILES.items()},
    }
    return {name: value for name, value in properties.items() if value is not None}


def _columns(simulation: Simulation) -> dict[str, codec.Column]:
    return {name: getattr(simulation, name) for name in _ARRAYS}


def stored_simulation(node: Mapping[str, Any]) -> StoredSimulation:
    """A run from the properties of its node.

    Raises
    ------
    DatabaseError
        What is stored is damaged.
    """
    columns = codec.unpack(node["blob"])
    try:
        simulation = Simulation(
            **{name: node[name] for name in _NUMBERS}, **{name: columns[name] for name in _ARRAYS}
        )
    except (KeyError, InvalidValue) as error:
        raise DatabaseError(f"the stored simulation {node['id']} is damaged: {error}") from error
    return StoredSimulation(
        id=node["id"],
        cluster=node["cluster"],
        recorded_at=node["recorded_at"],
        placement=node["placement"],
        content=node["snapshot"],
        tables=node.get("tables"),
        profile=node["profile"],
        trace=node.get("trace"),
        simulation=simulation,
        parameters=json.loads(node["parameters"]),
        wall_seconds=node["wall_seconds"],
        code_version=node["code_version"],
    )
