"""Circuit plans, each joined to its cluster, profiles and jobs.

The id of a plan is a hash of provenance and result: saving the same plan again adds nothing. The seconds that
the search took and the time of saving do not count. When the switch was set to a plan is its `applied_at`.

Optical switches of clusters: their hosts, limits and present circuits.

A cluster has at most one switch, stored as properties of the cluster.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from registry.database import codec
from registry.database.driver import Transaction
from registry.database.stored_kinds import OF_CLUSTER, Join, NewRecord, RecordKind, Records, Store, known_ids
from registry.errors import InvalidValue, UnknownName
from registry.model import Time, as_utc
from registry.model.circuit_plan import CircuitPlan, CircuitRoutes, Circuits
from registry.model.views import first_repeat, one_line
from registry.store.jobs import job_key
from registry.store.observations import lock_cluster
from registry.store.profile_names import ranks_of_profiles
from registry.store.timeline import require_cluster

SET_UP = "almanac cluster optical CLUSTER --max-degree N --max-edges N --link-speed BYTES/S"
"""Command that describes a switch to the registry."""

_READ = """
MATCH (c:Cluster {id: $cluster})
RETURN c AS node
"""

_LIST_SWITCHES = """
MATCH (c:Cluster)
WHERE c.optical_max_degree IS NOT NULL
RETURN c AS node, c.id AS id
ORDER BY id
"""

_WRITE = """
MATCH (c:Cluster {id: $cluster})
SET c += $properties
"""
_SWITCH_FIELDS = ("max_degree", "max_edges", "link_speed", "compute_seconds", "plan", "at")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpticalSwitch:
    """An optical switch that connects hosts of a cluster by circuits."""

    cluster: str
    hosts: tuple[str, ...]
    """Host of each node; circuits refer to nodes by number."""
    max_degree: int
    max_edges: int
    """Most circuits at a host, and in all; enough to connect all hosts."""
    link_speed: float
    """Bytes/s of a circuit, both directions together; finite, above 0."""
    compute_seconds: float = 0.0
    """Time that each rank computes while it sends its profile once, the ranks of a host one after the other;
    0: computation is ignored."""
    circuits: Circuits = ()
    """Present circuits: the two nodes of each, the lower first, ascending; empty if unknown."""
    plan: str = ""
    """Id of the circuit plan that the switch is set to; empty if none or unknown."""
    at: datetime | None = None
    """Time of this description, UTC."""

    def __post_init__(self) -> None:
        nodes = len(self.hosts)
        if nodes < 2:
            raise InvalidValue("OpticalSwitch.hosts", f"are {nodes}, a switch connects at least 2")
        if twice := first_repeat(self.hosts):
            raise InvalidValue("OpticalSwitch.hosts", f"{twice!r} is named twice")
        least = {"max_degree": min(nodes - 1, 2), "max_edges": nodes - 1}
        for name, low in least.items():
            if getattr(self, name) < low:
                reason = f"is {getattr(self, name)}, must be at least {low} to connect {nodes} hosts"
                raise InvalidValue(f"OpticalSwitch.{name}", reason)
        if not 0.0 < self.link_speed < math.inf:
            reason = f"is {self.link_speed}, must be finite and above zero"
            raise InvalidValue("OpticalSwitch.link_speed", reason)
        if not 0.0 <= self.compute_seconds < math.inf:
            reason = f"is {self.compute_seconds}, must be finite and not negative"
            raise InvalidValue("OpticalSwitch.compute_seconds", reason)
        self._check_circuits()

    def _check_circuits(self) -> None:
        """Raise if a circuit is invalid, or if they exceed a limit of the switch."""
        given, ends = list(self.circuits), [0] * len(self.hosts)
        if given != sorted(set(given)) or any(not 0 <= a < b < len(self.hosts) for a, b in given):
            reason = f"must be pairs a < b of 0 .. {len(self.hosts) - 1}, ascending, each once"
            raise InvalidValue("OpticalSwitch.circuits", reason)
        if len(given) > self.max_edges:
            raise InvalidValue("OpticalSwitch.circuits", f"are {len(given)}, max_edges is {self.max_edges}")
        for pair in given:
            for node in pair:
                ends[node] += 1
        most = max(ends)
        if most > self.max_degree:
            reason = f"{self.hosts[ends.index(most)]!r} has {most}, max_degree is {self.max_degree}"
            raise InvalidValue("OpticalSwitch.circuits", reason)


class OpticalSwitches(Store):
    """Stored optical switches: at most one per cluster."""

    def read(self, cluster: str) -> OpticalSwitch:
        """Return the switch of a cluster.

        Raises:
            UnknownName: No such cluster, or it has no optical switch.
        """
        return self._database.read(lambda transaction: read_switch(transaction, cluster))

    def list(self) -> tuple[OpticalSwitch, ...]:
        """Return all switches by cluster; one statement."""
        return tuple(_switch(row["node"]) for row in self._rows(_LIST_SWITCHES))

    def save(self, switch: OpticalSwitch) -> OpticalSwitch:
        """Save the description of a switch in place of the earlier one; return it as stored."""

        def work(transaction: Transaction) -> OpticalSwitch:
            require_cluster(transaction, switch.cluster)
            lock_cluster(transaction, switch.cluster)
            write_switch(transaction, switch, datetime.now(UTC))
            return read_switch(transaction, switch.cluster)

        return self._database.write(work)


def read_switch(transaction: Transaction, cluster: str) -> OpticalSwitch:
    """Return the switch of a cluster; see `OpticalSwitches.read`."""
    found = transaction.run(_READ, cluster=cluster)
    if not found:
        require_cluster(transaction, cluster)
    node = found[0]["node"]
    if node.get("optical_max_degree") is None:
        raise UnknownName("optical switch of cluster", cluster, remedy=f"describe it with {SET_UP}")
    return _switch(node)


def _switch(node: Mapping[str, Any]) -> OpticalSwitch:
    return OpticalSwitch(
        cluster=node["id"],
        hosts=tuple(node["optical_hosts"]),
        circuits=tuple(zip(node["optical_source"], node["optical_target"], strict=True)),
        **{name: node[f"optical_{name}"] for name in _SWITCH_FIELDS},
    )


def write_switch(transaction: Transaction, switch: OpticalSwitch, time: datetime) -> None:
    """Save the description of the switch of a locked cluster."""
    fields = {
        **{name: getattr(switch, name) for name in _SWITCH_FIELDS},
        "link_speed": float(switch.link_speed),
        "compute_seconds": float(switch.compute_seconds),
        "at": time,
        "hosts": list(switch.hosts),
        "source": [one for one, _ in switch.circuits],
        "target": [other for _, other in switch.circuits],
    }
    properties = {f"optical_{name}": value for name, value in fields.items()}
    transaction.run(_WRITE, cluster=switch.cluster, properties=properties)


_EVER = datetime(1970, 1, 1, tzinfo=UTC)
"""A time before anything was saved."""

_APPLIED = """
MATCH (n:Reconfiguration {id: $id})
SET n.applied_at = $time
RETURN n AS node
"""

_ARRAYS = (
    *("node_of_vertex", "source", "target", "link_load", "present_source", "present_target"),
    *("number", "trail_throughput"),
)
_NUMBERS = (
    *("compute_speed", "link_speed", "throughput", "compute_throughput", "communication_throughput"),
    *("present_throughput", "upper_bound", "reconfiguration_seconds", "gain", "break_even_seconds"),
)
"""Fields of a `CircuitPlan` that are stored in the blob; finite ones also as properties."""
_ROUTES = ("one", "other", "bytes", "first", "circuit")
"""Fields of `CircuitRoutes`, stored in the blob with a prefix; plans of earlier versions have none."""
_PLAIN = ("nodes", "max_degree", "max_edges", "bound", "complete", "seed", "method")

_FOR_PROFILE, _FOR_JOB = Join("FOR", "Profile"), Join("FOR", "Job")
CIRCUIT_PLAN = RecordKind(
    name="circuit plan",
    label="Reconfiguration",
    letter="r",
    joins=(OF_CLUSTER, _FOR_PROFILE, _FOR_JOB),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CircuitPlanRecord:
    """A circuit plan to be saved."""

    cluster: str | None = None
    """Cluster whose optical switch it is for."""
    hosts: tuple[str, ...] = ()
    """Host of each node of the switch, in their order; empty if nodes are only numbered."""
    profiles: tuple[str, ...]
    """Ids of the profiles that it was made for; with jobs, one profile per job."""
    ranks: tuple[int, ...]
    """Ranks of each profile: ``plan.node_of_vertex`` holds them one profile after the other."""
    jobs: tuple[str, ...] = ()
    """Scheduler's ids of the running jobs, one per profile; their ranks are not moved."""
    plan: CircuitPlan
    parameters: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    """Parameters of the search."""
    wall_seconds: float = 0.0
    """Time that the search took."""
    code_version: str = ""

    __repr__ = one_line

    def __post_init__(self) -> None:
        if not self.profiles:
            raise InvalidValue("CircuitPlanRecord.profiles", "needs at least one profile")
        if len(self.ranks) != len(self.profiles) or sum(self.ranks) != len(self.plan.node_of_vertex):
            reason = (
                f"are {sum(self.ranks)} of {len(self.ranks)} profiles, not {len(self.plan.node_of_vertex)}"
            )
            raise InvalidValue("CircuitPlanRecord.ranks", f"{reason} of {len(self.profiles)}")
        if self.hosts and len(self.hosts) != self.plan.nodes:
            raise InvalidValue("CircuitPlanRecord.hosts", f"needs {self.plan.nodes} entries")
        if self.jobs and len(self.jobs) != len(self.profiles):
            raise InvalidValue("CircuitPlanRecord.jobs", f"needs {len(self.profiles)} entries")
        if self.jobs and self.cluster is None:
            raise InvalidValue("CircuitPlanRecord.cluster", "jobs run on a cluster")

    def node_name(self, node: int) -> str:
        """Return the host of a node, or the number of the node if hosts are not known."""
        return self.hosts[node] if self.hosts else str(node)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoredCircuitPlan(CircuitPlanRecord):
    """A circuit plan as it was saved."""

    id: str
    recorded_at: datetime
    """UTC."""
    applied_at: datetime | None = None
    """Time when the switch was last set to this plan, UTC."""

    __repr__ = one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitPlanInfo:
    """A row of the list of circuit plans.

    Attributes:
        gain, break_even_seconds: None if unknown; `break_even_seconds` also if nothing is gained.
    """

    id: str
    recorded_at: datetime
    applied_at: datetime | None
    cluster: str | None
    profiles: tuple[str, ...]
    profile_names: tuple[str, ...]
    applications: tuple[str, ...]
    """Latest names and applications of the profiles; each once, ascending."""
    jobs: tuple[str, ...]
    nodes: int
    max_degree: int
    max_edges: int
    circuits: int
    removed: int | None
    inserted: int | None
    """Number of circuits in all, to remove and to insert; the last two are None if the present circuits are
    unknown."""
    throughput: float | None
    present_throughput: float | None
    upper_bound: float | None
    """Applications per second; None if unlimited or unknown."""
    bound: str
    gain: float | None
    reconfiguration_seconds: float | None
    break_even_seconds: float | None
    method: str
    seed: int
    complete: bool
    parameters: Mapping[str, str | int | float | bool]
    wall_seconds: float
    code_version: str


_NAMES = ("profile_names", "applications")
_LIST, _LIST_OF_CLUSTER = (
    CIRCUIT_PLAN.list_statement(
        CircuitPlanInfo,
        where,
        then="""OPTIONAL MATCH (n)-[:FOR]->(p:Profile)
WITH n, collect(p.name) AS profile_names, collect(p.application) AS applications
""",
        computed=_NAMES,
    )
    for where in ("n.recorded_at > $since", "n.cluster = $cluster AND n.recorded_at > $since")
)


class CircuitPlans(Records[StoredCircuitPlan]):
    """Stored circuit plans."""

    kind = CIRCUIT_PLAN

    def save(self, record: CircuitPlanRecord) -> str:
        """Save a circuit plan and return its id; one that is stored already adds nothing.

        Raises:
            UnknownName: No such cluster, profile or job.
            InvalidValue: A profile has another number of ranks.
        """
        identity = circuit_plan_id(record)

        def work(transaction: Transaction) -> None:
            if record.cluster is not None:
                require_cluster(transaction, record.cluster)
                lock_cluster(transaction, record.cluster)
            if CIRCUIT_PLAN.known(transaction, [identity]):
                return
            _check(transaction, record)
            joined = {
                OF_CLUSTER: [record.cluster] if record.cluster is not None else [],
                _FOR_PROFILE: list(dict.fromkeys(record.profiles)),
                _FOR_JOB: [job_key(record.cluster or "", job) for job in dict.fromkeys(record.jobs)],
            }
            properties = _properties(record, datetime.now(UTC))
            CIRCUIT_PLAN.create(transaction, [NewRecord(identity, properties, joined=joined)])

        self._database.write(work)
        return identity

    def list(
        self, cluster: str | None = None, *, since: Time | None = None, limit: int | None = None
    ) -> tuple[CircuitPlanInfo, ...]:
        """Return the circuit plans of a cluster or of all clusters, the newest first; one statement.

        Args:
            since: Only plans saved after this time.
            limit: At most so many.
        """
        after = _EVER if since is None else as_utc(since)
        if cluster is not None:
            rows = self._rows(_LIST_OF_CLUSTER, limit, cluster=cluster, since=after)
        else:
            rows = self._rows(_LIST, limit, since=after)
        return tuple(map(_info, rows))

    def apply(self, prefix: str) -> StoredCircuitPlan:
        """Record that the optical switch of the plan's cluster is now set to the plan.

        Args:
            prefix: Id of the plan, or a unique beginning of it.

        Raises:
            UnknownName: No such plan; the cluster has no optical switch.
            InvalidValue: The plan is for no cluster, or the switch now has other hosts or limits.
        """

        def work(transaction: Transaction) -> StoredCircuitPlan:
            found = self._stored(CIRCUIT_PLAN.find(transaction, prefix))
            if found.cluster is None:
                raise InvalidValue("circuit plan", f"{found.id} is for no cluster's switch")
            time = datetime.now(UTC)
            lock_cluster(transaction, found.cluster)
            switch = read_switch(transaction, found.cluster)
            if switch.hosts != found.hosts:
                raise InvalidValue("circuit plan", f"{found.id} is for other hosts than the switch has now")
            changed = replace(switch, circuits=found.plan.circuits, plan=found.id)
            write_switch(transaction, changed, time)
            return self._stored(transaction.run(_APPLIED, id=found.id, time=time)[0])

        return self._database.write(work)

    def _stored(self, row: dict[str, Any]) -> StoredCircuitPlan:
        return stored_circuit_plan(row["node"])


def stored_circuit_plan(node: Mapping[str, Any]) -> StoredCircuitPlan:
    """Return the circuit plan of the properties of its node."""
    columns = codec.unpack(node["blob"])
    with CIRCUIT_PLAN.reading(node["id"]):
        plan = CircuitPlan(
            **{name: node[name] for name in _PLAIN},
            **dict(zip(_NUMBERS, columns["numbers"].tolist(), strict=True)),
            **{name: columns[name] for name in _ARRAYS},
            bottleneck=columns["bottleneck"],
            routes=_routes(columns),
        )
        return StoredCircuitPlan(
            **{name: node[name] for name in ("id", "recorded_at", "wall_seconds", "code_version")},
            applied_at=node.get("applied_at"),
            cluster=node.get("cluster"),
            hosts=columns["hosts"],
            profiles=tuple(node["profiles"]),
            ranks=tuple(columns["ranks"].tolist()),
            jobs=tuple(node["jobs"]),
            plan=plan,
            parameters=json.loads(node["parameters"]),
        )


def circuit_plan_id(record: CircuitPlanRecord) -> str:
    """Return the id of a circuit plan: ``r`` and 12 hexadecimal digits, a hash of provenance and result."""
    provenance = {
        **{name: getattr(record, name) for name in ("cluster", "hosts", "profiles", "jobs", "code_version")},
        **{name: getattr(record.plan, name) for name in _PLAIN},
        "parameters": dict(record.parameters),
    }
    return CIRCUIT_PLAN.identity(_columns(record), provenance)


def _check(transaction: Transaction, record: CircuitPlanRecord) -> None:
    """Raise if something that the record names is not stored or does not fit."""
    ranks = {name: count for name, (count, _) in ranks_of_profiles(transaction, record.profiles).items()}
    for profile, count in zip(record.profiles, record.ranks, strict=True):
        if profile not in ranks:
            raise UnknownName("profile", profile)
        if ranks[profile] != count:
            reason = f"profile {profile} has {ranks[profile]} ranks, not {count}"
            raise InvalidValue("CircuitPlanRecord.ranks", reason)
    keys = {job_key(record.cluster or "", job): job for job in record.jobs}
    if missing := sorted(keys.keys() - known_ids(transaction, "Job", keys)):
        raise UnknownName("job", keys[missing[0]])


def _properties(record: CircuitPlanRecord, time: datetime) -> dict[str, Any]:
    """Return the properties of the node, including the ids of the nodes that it is joined to."""
    plan = record.plan
    known = len(plan.present_source) > 0
    return {
        "cluster": record.cluster,
        "recorded_at": time,
        "profiles": list(record.profiles),
        "jobs": list(record.jobs),
        "circuits": len(plan.source),
        "removed": len(plan.removed) if known else None,
        "inserted": len(plan.inserted) if known else None,
        "parameters": json.dumps(dict(record.parameters), sort_keys=True),
        "wall_seconds": float(record.wall_seconds),
        "code_version": record.code_version,
        "blob": codec.pack(_columns(record)),
        **{name: getattr(plan, name) for name in _PLAIN},
        **{name: getattr(plan, name) for name in _NUMBERS if math.isfinite(getattr(plan, name))},
    }


def _columns(record: CircuitPlanRecord) -> dict[str, codec.Column]:
    """Return the arrays of the blob."""
    plan = record.plan
    columns: dict[str, codec.Column] = {
        **{name: getattr(plan, name) for name in _ARRAYS},
        "numbers": np.array([getattr(plan, name) for name in _NUMBERS], np.float64),
        "bottleneck": plan.bottleneck,
        "hosts": record.hosts,
        "ranks": np.array(record.ranks, np.int64),
    }
    if plan.routes is not None:
        columns["route_of_nodes"] = np.array([plan.routes.of_nodes])
        columns |= {f"route_{name}": getattr(plan.routes, name) for name in _ROUTES}
    return columns


def _routes(columns: Mapping[str, Any]) -> CircuitRoutes | None:
    if "route_of_nodes" not in columns:
        return None
    of_nodes = bool(columns["route_of_nodes"][0])
    return CircuitRoutes(of_nodes=of_nodes, **{name: columns[f"route_{name}"] for name in _ROUTES})


def _info(row: dict[str, Any]) -> CircuitPlanInfo:
    lists: dict[str, Any] = {name: tuple(sorted(set(row.pop(name)))) for name in _NAMES}
    lists |= {name: tuple(row.pop(name)) for name in ("profiles", "jobs")}
    return CircuitPlanInfo(parameters=json.loads(row.pop("parameters")), **lists, **row)
