"""Proposed configurations in the graph: append-only, each joined to cluster, profiles and jobs.

The id of one is a hash of provenance and result. Whoever finds the same again adds nothing; the seconds spent
and the moment are no part of it. That a switch was set so is told by the time at which it was.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from registry.database import codec
from registry.database.driver import Database, Transaction
from registry.database.record_store import ById, find_by_prefix, limited_rows
from registry.errors import DatabaseError, InvalidValue, UnknownName
from registry.fabrics.observations import lock_cluster
from registry.jobs.jobs import job_key
from registry.model import as_utc
from registry.model.circuit_plan import CircuitPlan, CircuitRoutes
from registry.records.circuit_plan_records import (
    CircuitPlanInfo,
    CircuitPlanRecord,
    StoredCircuitPlan,
)
from registry.records.optical_switches import applied, known_cluster

_EVER = datetime(1970, 1, 1, tzinfo=UTC)
"""Before anything was saved."""

_KNOWN = """
MATCH (r:Reconfiguration {id: $reconfiguration})
RETURN r.id AS id
"""

_PROFILES = """
UNWIND $ids AS id
MATCH (p:Profile {id: id})
RETURN p.id AS id, p.ranks AS ranks
"""

_JOBS = """
UNWIND $ids AS id
MATCH (j:Job {id: id})
RETURN collect(j.id) AS ids
"""

_CREATE = """
CREATE (r:Reconfiguration {id: $reconfiguration})
SET r += $properties
"""

_OF_CLUSTER = """
MATCH (r:Reconfiguration {id: $reconfiguration})
MATCH (c:Cluster {id: $cluster})
CREATE (r)-[:OF]->(c)
"""

_FOR_PROFILE = """
UNWIND range(0, size($profile) - 1) AS i
MATCH (r:Reconfiguration {id: $reconfiguration})
MATCH (p:Profile {id: $profile[i]})
CREATE (r)-[:FOR]->(p)
"""

_FOR_JOB = """
UNWIND range(0, size($job) - 1) AS i
MATCH (r:Reconfiguration {id: $reconfiguration})
MATCH (j:Job {id: $job[i]})
CREATE (r)-[:FOR]->(j)
"""

_APPLIED = """
MATCH (r:Reconfiguration {id: $reconfiguration})
SET r.applied_at = $at
"""

_READ = """
MATCH (r:Reconfiguration {id: $configuration})
RETURN r AS node
"""

_BY_ID = ById("configuration", "Reconfiguration", _READ)

_ARRAYS = (
    *("node_of_vertex", "source", "target", "link_load", "present_source", "present_target"),
    *("number", "trail_throughput"),
)
_NUMBERS = (
    *("compute_speed", "link_speed", "throughput", "compute_throughput", "communication_throughput"),
    *("present_throughput", "upper_bound", "reconfiguration_seconds", "gain", "break_even_seconds"),
)
"""Fields of a `CircuitPlan`, in the blob; as properties only where they are finite."""
_ROUTES = ("one", "other", "bytes", "first", "circuit")
"""Fields of its `CircuitRoutes`, in the blob with a prefix; not there in plans that were saved before."""
_PLAIN = ("nodes", "max_degree", "max_edges", "bound", "complete", "seed", "method")
_INFO = (
    *("id", "recorded_at", "applied_at", "cluster", "profiles", "jobs", "nodes", "max_degree", "max_edges"),
    *("circuits", "removed", "inserted", "throughput", "present_throughput", "upper_bound", "bound", "gain"),
    *("reconfiguration_seconds", "break_even_seconds", "method", "seed", "complete", "parameters"),
    *("wall_seconds", "code_version"),
)
_NAMED = f"""
OPTIONAL MATCH (r)-[:FOR]->(p:Profile)
WITH r, collect(p.name) AS names, collect(p.application) AS applications
RETURN {", ".join(f"r.{name} AS {name}" for name in _INFO)}, names, applications
ORDER BY recorded_at DESC, id
"""

_LIST = f"""
MATCH (r:Reconfiguration)
WHERE r.recorded_at > $since
{_NAMED}
"""

_LIST_OF_CLUSTER = f"""
MATCH (r:Reconfiguration)
WHERE r.cluster = $cluster AND r.recorded_at > $since
{_NAMED}
"""


class CircuitPlans:
    """What the registry knows of proposed configurations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, record: CircuitPlanRecord) -> str:
        """Save a proposed configuration; its id. One that is there already adds nothing.

        Raises
        ------
        UnknownName
            No such cluster, profile or job.
        InvalidValue
            A profile has another number of ranks.
        """
        identity = circuit_plan_id(record)

        def work(transaction: Transaction) -> None:
            if record.cluster is not None:
                known_cluster(transaction, record.cluster)
                lock_cluster(transaction, record.cluster)
            if transaction.run(_KNOWN, reconfiguration=identity):
                return
            _check(transaction, record)
            _create(transaction, identity, record, datetime.now(UTC))

        self._database.write(work)
        return identity

    def read(self, reconfiguration: str) -> StoredCircuitPlan:
        """A proposed configuration by its id or a unique beginning of it.

        Raises
        ------
        UnknownName
            With the closest ids.
        """

        def work(transaction: Transaction) -> StoredCircuitPlan:
            return _stored(find_by_prefix(transaction, _BY_ID, reconfiguration)["node"])

        return self._database.read(work)

    def list(
        self, cluster: str | None = None, *, since: datetime | None = None, limit: int | None = None
    ) -> tuple[CircuitPlanInfo, ...]:
        """Proposed configurations of a cluster or all of them, the newest first; one statement.

        Parameters
        ----------
        since : datetime, optional
            Saved after that.
        limit : int, optional
            So many at most.
        """
        after = _EVER if since is None else as_utc(since)

        def work(transaction: Transaction) -> list[dict[str, Any]]:
            if cluster is not None:
                return limited_rows(transaction, _LIST_OF_CLUSTER, limit, cluster=cluster, since=after)
            return limited_rows(transaction, _LIST, limit, since=after)

        return tuple(_info(row) for row in self._database.read(work))

    def apply(self, reconfiguration: str) -> StoredCircuitPlan:
        """Remember that the cluster's switch is set now as was proposed: these are its circuits from now on.

        Parameters
        ----------
        reconfiguration : str
            Id, or a unique beginning of it.

        Raises
        ------
        UnknownName
            No such configuration; the cluster has no optical switch.
        InvalidValue
            It is for no cluster's switch, or the switch has other hosts or limits by now.
        """

        def work(transaction: Transaction) -> StoredCircuitPlan:
            found = _stored(find_by_prefix(transaction, _BY_ID, reconfiguration)["node"])
            if found.cluster is None:
                raise InvalidValue("reconfiguration", f"{found.id} is for no cluster's switch")
            at = datetime.now(UTC)
            lock_cluster(transaction, found.cluster)
            applied(transaction, found, at)
            transaction.run(_APPLIED, reconfiguration=found.id, at=at)
            return _stored(transaction.run(_READ, configuration=found.id)[0]["node"])

        return self._database.write(work)


def circuit_plan_id(record: CircuitPlanRecord) -> str:
    """``r`` and 12 hexadecimal digits: a hash of provenance and result."""
    plan = record.plan
    provenance = {
        **{name: getattr(record, name) for name in ("cluster", "hosts", "profiles", "jobs", "code_version")},
        **{name: getattr(plan, name) for name in _PLAIN},
        "parameters": dict(record.parameters),
    }
    text = json.dumps(provenance, sort_keys=True)
    return "r" + codec.digest({"provenance": [text], **_columns(record)})[:12]


def _check(transaction: Transaction, record: CircuitPlanRecord) -> None:
    """Raise where what the record names is not there, or does not fit."""
    found = transaction.run(_PROFILES, ids=sorted(set(record.profiles)))
    ranks = {row["id"]: row["ranks"] for row in found}
    for profile, count in zip(record.profiles, record.ranks, strict=True):
        if profile not in ranks:
            raise UnknownName("profile", profile)
        if ranks[profile] != count:
            reason = f"profile {profile} has {ranks[profile]} ranks, not {count}"
            raise InvalidValue("CircuitPlanRecord.ranks", reason)
    keys = {job_key(record.cluster or "", job): job for job in record.jobs}
    known = transaction.run(_JOBS, ids=sorted(keys))[0]["ids"] if keys else []
    if missing := sorted(keys.keys() - set(known)):
        raise UnknownName("job", keys[missing[0]])


def _create(transaction: Transaction, identity: str, record: CircuitPlanRecord, at: datetime) -> None:
    transaction.run(_CREATE, reconfiguration=identity, properties=_properties(record, at))
    if record.cluster is not None:
        transaction.run(_OF_CLUSTER, reconfiguration=identity, cluster=record.cluster)
    profiles = list(dict.fromkeys(record.profiles))
    transaction.run_columns(_FOR_PROFILE, {"profile": profiles}, reconfiguration=identity)
    jobs = [job_key(record.cluster or "", job) for job in dict.fromkeys(record.jobs)]
    transaction.run_columns(_FOR_JOB, {"job": jobs}, reconfiguration=identity)


def _properties(record: CircuitPlanRecord, at: datetime) -> dict[str, Any]:
    """Properties of the node; what its relationships tell stands here too."""
    plan = record.plan
    known = len(plan.present_source) > 0
    properties: dict[str, Any] = {
        "cluster": record.cluster,
        "recorded_at": at,
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
        **{name: _finite(getattr(plan, name)) for name in _NUMBERS},
    }
    return {name: value for name, value in properties.items() if value is not None}


def _columns(record: CircuitPlanRecord) -> dict[str, codec.Column]:
    plan = record.plan
    return {
        **{name: getattr(plan, name) for name in _ARRAYS},
        "numbers": np.array([getattr(plan, name) for name in _NUMBERS], np.float64),
        "bottleneck": plan.bottleneck,
        "hosts": record.hosts,
        "ranks": np.array(record.ranks, np.int64),
        **_route_columns(plan.routes),
    }


def _route_columns(routes: CircuitRoutes | None) -> dict[str, codec.Column]:
    if routes is None:
        return {}
    of_nodes = np.array([routes.of_nodes])
    return {"route_of_nodes": of_nodes, **{f"route_{name}": getattr(routes, name) for name in _ROUTES}}


def _routes(columns: Mapping[str, Any]) -> CircuitRoutes | None:
    if "route_of_nodes" not in columns:
        return None
    of_nodes = bool(columns["route_of_nodes"][0])
    return CircuitRoutes(of_nodes=of_nodes, **{name: columns[f"route_{name}"] for name in _ROUTES})


def _stored(node: Mapping[str, Any]) -> StoredCircuitPlan:
    columns = codec.unpack(node["blob"])
    try:
        numbers = dict(zip(_NUMBERS, columns["numbers"].tolist(), strict=True))
        plan = CircuitPlan(
            **{name: node[name] for name in _PLAIN},
            **numbers,
            **{name: columns[name] for name in _ARRAYS},
            bottleneck=columns["bottleneck"],
            routes=_routes(columns),
        )
        return StoredCircuitPlan(
            id=node["id"],
            recorded_at=node["recorded_at"],
            applied_at=node.get("applied_at"),
            cluster=node.get("cluster"),
            hosts=columns["hosts"],
            profiles=tuple(node["profiles"]),
            ranks=tuple(columns["ranks"].tolist()),
            jobs=tuple(node["jobs"]),
            plan=plan,
            parameters=json.loads(node["parameters"]),
            wall_seconds=node["wall_seconds"],
            code_version=node["code_version"],
        )
    except (KeyError, ValueError) as error:
        raise DatabaseError(f"the stored configuration {node['id']} is damaged: {error}") from error


def _info(row: dict[str, Any]) -> CircuitPlanInfo:
    names, applications = (tuple(sorted(set(row.pop(name)))) for name in ("names", "applications"))
    lists: dict[str, Any] = {name: tuple(row.pop(name)) for name in ("profiles", "jobs")}
    parameters = json.loads(row.pop("parameters"))
    return CircuitPlanInfo(
        profile_names=names, applications=applications, parameters=parameters, **lists, **row
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
