"""Placements with what they cost and where they come from: append-only, found again by a short id.

The id is a hash of provenance and result: cluster, content, tables, profile, job, allocation, ranks,
strategy, parameters, seed, objective, routing and code version. Whoever finds the same placement the
same way again adds nothing; the seconds spent and the moment are no part of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

from registry import codec
from registry.allocations import HostSlots, require_hosts, save_allocations
from registry.database import Database, Transaction
from registry.errors import DatabaseError, InvalidPlacement, InvalidValue, UnknownName
from registry.jobs import find_job, job_key
from registry.model import Allocation, Bound, Evaluation, Fabric, Metrics, Placement
from registry.placement_records import PlacementRecord, StoredPlacement, StoredPlacementInfo
from registry.wiring.derived import device_id
from registry.wiring.facts import device_keys
from registry.wiring.observations import read_content, take_cluster

__all__ = [
    "PlacementRecord",
    "Placements",
    "StoredPlacement",
    "StoredPlacementInfo",
    "placement_id",
    "save_placement",
]

HOTTEST = 200
"""Loaded link directions that are kept as relationships; all of them are in the blob."""

METRICS = ("congestion_seconds", "network_congestion_seconds", "hop_bytes", "average_dilation")
BOUNDED = METRICS[:3]
"""Metrics for which lower bounds are certified."""

_EVALUATED = (*METRICS, "total_bytes", "max_dilation", "rails", "wall_seconds")
_EVALUATED_LATER = (
    *("mean_congestion_seconds", "total_dilation", "message_dilation", "mapping_coefficient"),
    *("distance", "counted", "background"),
)
"""Fields that placements saved by earlier versions lack."""
_BASELINES = ("in_order", "random")

_EXISTS = """
MATCH (p:Placement {id: $placement})
RETURN p.id AS id
"""

_CREATE = """
MATCH (x:Content {id: $content})
CREATE (p:Placement {id: $placement})-[:IN]->(x)
SET p += $properties
"""

_OF_PROFILE = """
MATCH (p:Placement {id: $placement})
MATCH (f:Profile {id: $profile})
CREATE (p)-[:OF]->(f)
"""

_OF_JOB = """
MATCH (p:Placement {id: $placement})
MATCH (j:Job {id: $job})
CREATE (j)-[:HAS_PLACEMENT]->(p)
"""

_ON_ALLOCATION = """
MATCH (p:Placement {id: $placement})
MATCH (a:Allocation {id: $allocation})
CREATE (p)-[:ON]->(a)
"""

_HAS_LOADS = """
MATCH (p:Placement {id: $placement})
CREATE (p)-[:HAS_LOADS]->(:LinkLoads {id: $placement, blob: $blob})
"""

_LOADS = """
UNWIND range(0, size($device) - 1) AS i
MATCH (p:Placement {id: $placement})
MATCH (d:Device {id: $device[i]})
CREATE (p)-[:LOADS {src_port: $src_port[i], dst: $dst[i], dst_port: $dst_port[i], bytes: $bytes[i],
                    seconds: $seconds[i]}]->(d)
"""

_PROFILE_RANKS = """
MATCH (f:Profile {id: $profile})
RETURN f.ranks AS ranks
"""

_FIND = """
MATCH (p:Placement)
WHERE p.id STARTS WITH $placement
RETURN collect(p.id) AS ids
"""

_IDS = """
MATCH (p:Placement)
RETURN collect(p.id) AS ids
"""

_READ = """
MATCH (p:Placement {id: $placement})-[:IN]->(x:Content)
OPTIONAL MATCH (p)-[:OF]->(f:Profile)
OPTIONAL MATCH (j:Job)-[:HAS_PLACEMENT]->(p)
OPTIONAL MATCH (p)-[:HAS_LOADS]->(l:LinkLoads)
RETURN p, x.id AS content, f.id AS profile, j.job AS job, l.blob AS loads
"""

_COLUMNS = ", ".join(
    f"p.{name} AS {name}"
    for name in (
        *("id", "recorded_at", "cluster", "strategy", "objective", "routing", "seed", "ranks"),
        *("seconds", "steps", "complete", "code_version", *METRICS),
        *(f"bound_{name}" for name in BOUNDED),
        *(f"{baseline}_{name}" for baseline in _BASELINES for name in METRICS),
    )
)

_HISTORY = f"""
MATCH (p:Placement)-[:IN]->(x:Content)
WHERE $cluster IS NULL OR p.cluster = $cluster
OPTIONAL MATCH (p)-[:OF]->(f:Profile)
OPTIONAL MATCH (j:Job)-[:HAS_PLACEMENT]->(p)
WITH p, x, f, j
WHERE ($application IS NULL OR f.application = $application) AND ($job IS NULL OR j.job = $job)
RETURN x.id AS snapshot, f.id AS profile_id, f.name AS profile, f.application AS application,
       j.job AS job, {_COLUMNS}
ORDER BY recorded_at DESC, id
"""


class Placements:
    """What the registry knows of placements."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, record: PlacementRecord) -> str:
        """Save a placement; its id. One that is there already adds nothing.

        Raises
        ------
        UnknownName
            No such content, profile or job.
        InvalidPlacement
            Ranks, vertices or link loads do not fit profile or fabric.
        """

        def work(transaction: Transaction) -> str:
            take_cluster(transaction, record.cluster)
            return save_placement(transaction, record, datetime.now(UTC))[0]

        return self._database.write(work)

    def read(self, placement: str) -> StoredPlacement:
        """A placement by its id or a unique beginning of it.

        Raises
        ------
        UnknownName
        """

        def work(transaction: Transaction) -> StoredPlacement:
            found = transaction.run(_READ, placement=placement)
            if not found:
                begun = transaction.run(_FIND, placement=placement)[0]["ids"] if placement else []
                if len(begun) != 1:
                    known = transaction.run(_IDS)[0]["ids"]
                    raise UnknownName("placement", placement, known)
                found = transaction.run(_READ, placement=begun[0])
            return stored_placement(found[0])

        return self._database.read(work)

    def history(
        self, cluster: str | None = None, application: str | None = None, job: str | None = None
    ) -> tuple[StoredPlacementInfo, ...]:
        """Placements that fit what is given, the newest first."""
        rows = self._database.read(
            lambda transaction: transaction.run(_HISTORY, cluster=cluster, application=application, job=job)
        )
        return tuple(_info(row) for row in rows)


def save_placement(transaction: Transaction, record: PlacementRecord, at: datetime) -> tuple[str, bool]:
    """Save a placement on a cluster that is taken; its id and whether it is new."""
    fabric = read_content(transaction, record.content)
    if fabric is None:
        raise UnknownName("snapshot", record.content)
    _check(transaction, record, fabric)
    identity = placement_id(record)
    if transaction.run(_EXISTS, placement=identity):
        return identity, False
    transaction.run(
        _CREATE,
        placement=identity,
        content=record.content,
        properties=_properties(record, fabric, at),
    )
    _join(transaction, identity, record, fabric)
    if record.evaluation is not None:
        _save_loads(transaction, identity, record, record.evaluation, fabric)
    return identity, True


def placement_id(record: PlacementRecord) -> str:
    """``p`` and 12 hexadecimal digits: a hash of provenance and result."""
    placement, evaluation = record.placement, record.evaluation
    provenance = {
        "cluster": record.cluster,
        "content": record.content,
        "tables": record.routing,
        "profile": record.profile,
        "job": record.job,
        "strategy": placement.strategy,
        "objective": placement.objective,
        "routing": _routing(record),
        "rails": "" if evaluation is None else evaluation.rails,
        "parameters": dict(placement.parameters),
        "seed": placement.seed,
        "code_version": record.code_version,
    }
    text = json.dumps(provenance, sort_keys=True)
    return "p" + codec.digest({"provenance": [text], **_vertices(placement)})[:12]


def _check(transaction: Transaction, record: PlacementRecord, fabric: Fabric) -> None:
    placement, evaluation = record.placement, record.evaluation
    if int(placement.allocation.hosts.max()) >= len(fabric):
        raise InvalidPlacement("the allocation names vertices that the snapshot does not have")
    if evaluation is not None and len(evaluation.link_bytes) != len(fabric.links):
        raise InvalidPlacement(
            f"{len(evaluation.link_bytes)} link loads for a snapshot of {len(fabric.links)} links"
        )
    if record.profile is not None:
        found = transaction.run(_PROFILE_RANKS, profile=record.profile)
        if not found:
            raise UnknownName("profile", record.profile)
        if found[0]["ranks"] != placement.ranks:
            raise InvalidPlacement(f"{placement.ranks} ranks are placed, the profile has {found[0]['ranks']}")
    if record.job is not None:
        find_job(transaction, record.job, record.cluster)


def _properties(record: PlacementRecord, fabric: Fabric, at: datetime) -> dict[str, Any]:
    placement, evaluation = record.placement, record.evaluation
    properties: dict[str, Any] = {
        "cluster": record.cluster,
        "recorded_at": at,
        "strategy": placement.strategy,
        "objective": placement.objective,
        "routing": _routing(record),
        "tables": record.routing,
        "parameters": json.dumps(dict(placement.parameters), sort_keys=True),
        "seed": placement.seed,
        "seconds": placement.seconds,
        "steps": placement.steps,
        "complete": placement.complete,
        "code_version": record.code_version,
        "ranks": placement.ranks,
        "host_of_rank": codec.pack(_vertices(placement)),
        "hosts": _hosts(fabric, placement.host_of_rank),
    }
    if evaluation is not None:
        properties |= {name: getattr(evaluation, name) for name in (*_EVALUATED, *_EVALUATED_LATER)}
        for name, bound in evaluation.bounds.items():
            properties |= {
                f"bound_{name}": bound.value,
                f"proof_{name}": bound.proof,
                f"argument_{name}": bound.name,
            }
    for baseline in _BASELINES:
        metrics = getattr(record, baseline)
        if metrics is not None:
            properties |= {f"{baseline}_{name}": value for name, value in asdict(metrics).items()}
    return {name: value for name, value in properties.items() if value is not None}


def _join(transaction: Transaction, identity: str, record: PlacementRecord, fabric: Fabric) -> None:
    allocation = record.placement.allocation
    hosts = HostSlots(
        cluster=record.cluster,
        hosts=tuple(_hosts(fabric, allocation.hosts)),
        slots=tuple(allocation.slots.tolist()),
    )
    require_hosts(transaction, record.cluster, hosts.hosts)
    save_allocations(transaction, record.cluster, [hosts])
    transaction.run(_ON_ALLOCATION, placement=identity, allocation=hosts.id)
    if record.profile is not None:
        transaction.run(_OF_PROFILE, placement=identity, profile=record.profile)
    if record.job is not None:
        transaction.run(_OF_JOB, placement=identity, job=job_key(record.cluster, record.job))


def _save_loads(
    transaction: Transaction,
    identity: str,
    record: PlacementRecord,
    evaluation: Evaluation,
    fabric: Fabric,
) -> None:
    links, loads = fabric.links, evaluation.link_bytes
    blob = codec.pack({"link_bytes": loads})
    transaction.run(_HAS_LOADS, placement=identity, blob=blob)
    seconds = loads / links.capacity
    hottest = np.argsort(-seconds, kind="stable")[:HOTTEST]
    hottest = hottest[loads[hottest] > 0]
    keys = device_keys(fabric)
    transaction.run_columns(
        _LOADS,
        {
            "device": [device_id(record.cluster, keys[v]) for v in links.source[hottest].tolist()],
            "src_port": links.source_port[hottest],
            "dst": _hosts(fabric, links.target[hottest]),
            "dst_port": links.target_port[hottest],
            "bytes": loads[hottest],
            "seconds": seconds[hottest],
        },
        placement=identity,
    )


def stored_placement(row: dict[str, Any]) -> StoredPlacement:
    """The placement of a row with `p`, `content`, `profile`, `job` and `loads`."""
    node: dict[str, Any] = row["p"]
    vertices = codec.unpack(node["host_of_rank"])
    try:
        placement = Placement(
            host_of_rank=vertices["host_of_rank"],
            allocation=Allocation(hosts=vertices["hosts"], slots=vertices["slots"]),
            strategy=node["strategy"],
            objective=node["objective"],
            routing=node["routing"],
            parameters=json.loads(node["parameters"]),
            seed=node.get("seed"),
            seconds=node["seconds"],
            steps=node["steps"],
            complete=node["complete"],
            core_of_rank=vertices.get("core_of_rank"),
            cpu_of_rank=vertices.get("cpu_of_rank"),
        )
        evaluation = None if row["loads"] is None else _evaluation(node, row["loads"])
    except (KeyError, InvalidValue) as error:
        raise DatabaseError(f"the stored placement {node['id']} is damaged: {error}") from error
    return StoredPlacement(
        id=node["id"],
        cluster=node["cluster"],
        content=row["content"],
        routing=node.get("tables"),
        profile=row["profile"],
        job=row["job"],
        placement=placement,
        evaluation=evaluation,
        in_order=_baseline(node, "in_order"),
        random=_baseline(node, "random"),
        code_version=node["code_version"],
        hosts=tuple(node["hosts"]),
        recorded_at=node["recorded_at"],
    )


def _evaluation(node: dict[str, Any], loads: bytes) -> Evaluation:
    bounds = {
        name: Bound(
            value=node[f"bound_{name}"],
            proof=node[f"proof_{name}"],
            name=node.get(f"argument_{name}", ""),
        )
        for name in BOUNDED
        if f"bound_{name}" in node
    }
    return Evaluation(
        **{name: node[name] for name in _EVALUATED},
        **{name: node[name] for name in _EVALUATED_LATER if name in node},
        routing=node["routing"],
        link_bytes=codec.unpack(loads)["link_bytes"],
        bounds=bounds,
        code_version=node["code_version"],
    )


def _info(row: dict[str, Any]) -> StoredPlacementInfo:
    bounds = {name: row.pop(f"bound_{name}") for name in BOUNDED}
    in_order, random = (_baseline(row, baseline) for baseline in _BASELINES)
    for baseline in _BASELINES:
        for name in METRICS:
            del row[f"{baseline}_{name}"]
    certified = {name: value for name, value in bounds.items() if value is not None}
    return StoredPlacementInfo(bounds=certified, in_order=in_order, random=random, **row)


def _baseline(row: Mapping[str, Any], baseline: str) -> Metrics | None:
    values: dict[str, Any] = {name: row.get(f"{baseline}_{name}") for name in METRICS}
    return None if None in values.values() else Metrics(**values)


def _vertices(placement: Placement) -> dict[str, codec.Column]:
    allocation = placement.allocation
    columns: dict[str, codec.Column] = {
        "host_of_rank": placement.host_of_rank,
        "hosts": allocation.hosts,
        "slots": allocation.slots,
    }
    if placement.core_of_rank is not None and placement.cpu_of_rank is not None:
        columns |= {"core_of_rank": placement.core_of_rank, "cpu_of_rank": placement.cpu_of_rank}
    return columns


def _routing(record: PlacementRecord) -> str:
    evaluation = record.evaluation
    return record.placement.routing if evaluation is None else evaluation.routing


def _hosts(fabric: Fabric, vertices: np.ndarray[Any, Any]) -> list[str]:
    return [fabric.names[v] for v in vertices.tolist()]
