"""What is written of a placement: its id, its node's properties, and which links it loads most.

The id is a hash of provenance and result: cluster, content, tables, profile, job, allocation, ranks,
strategy, parameters, seed, objective, routing, other jobs' load and code version. Whoever finds the same
placement the same way again adds nothing; the seconds spent and the moment are no part of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import numpy as np

from registry.database import codec
from registry.errors import InvalidPlacement, InvalidValue
from registry.fabrics.derived import device_id
from registry.jobs.allocations import HostSlots
from registry.model import Fabric, Floats, Placement
from registry.records.placements.records import ROLES, PlacementRecord
from registry.records.placements.rows import BASELINES, EVALUATED, EVALUATED_LATER

HOTTEST = 200
"""Loaded link directions that are kept as relationships; all of them are in the blob."""
LOADS = ("device", "src_port", "dst", "dst_port", "bytes", "seconds")
"""Columns of `hottest_links`."""


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
    if evaluation is not None and evaluation.background:  # else the ids are those of before it counted
        provenance["background"] = evaluation.background
    text = json.dumps(provenance, sort_keys=True)
    return "p" + codec.digest({"provenance": [text], **_vertices(placement)})[:12]


def check_fits(record: PlacementRecord, fabric: Fabric, ranks: int | None) -> None:
    """Raise where a placement does not fit the fabric that it is on, or its profile.

    Parameters
    ----------
    ranks : int or None
        Of the profile; None where there is none.

    Raises
    ------
    InvalidPlacement, InvalidValue
    """
    placement, evaluation = record.placement, record.evaluation
    if record.role not in ROLES:
        raise InvalidValue("PlacementRecord.role", f"must be one of {', '.join(ROLES)}")
    if int(placement.allocation.hosts.max()) >= len(fabric):
        raise InvalidPlacement("the allocation names vertices that the snapshot does not have")
    if evaluation is not None and len(evaluation.link_bytes) != len(fabric.links):
        raise InvalidPlacement(
            f"{len(evaluation.link_bytes)} link loads for a snapshot of {len(fabric.links)} links"
        )
    if ranks is not None and ranks != placement.ranks:
        raise InvalidPlacement(f"{placement.ranks} ranks are placed, the profile has {ranks}")


def properties_of(
    record: PlacementRecord, fabric: Fabric, at: datetime, application: str | None = None
) -> dict[str, Any]:
    """Properties of a placement's node.

    What its relationships tell stands here too: 20,000 of them are not followed for a history.

    Parameters
    ----------
    at : datetime
        When it is recorded.
    application : str, optional
        Of the profile.
    """
    placement = record.placement
    hosts = _hosts(fabric, placement.host_of_rank)
    properties: dict[str, Any] = {
        "cluster": record.cluster,
        "recorded_at": at,
        "role": record.role,
        "snapshot": record.content,
        "profile": record.profile,
        "application": application,
        "job": record.job,
        "allocation": host_slots(record, fabric).id,
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
        "hosts": hosts,
        "rank_order": hashlib.sha256("\n".join(hosts).encode()).hexdigest()[:16],
    }
    properties |= _judged(record)
    return {name: value for name, value in properties.items() if value is not None}


def host_slots(record: PlacementRecord, fabric: Fabric) -> HostSlots:
    """The allocation of a placement, by names."""
    allocation = record.placement.allocation
    return HostSlots(
        cluster=record.cluster,
        hosts=tuple(_hosts(fabric, allocation.hosts)),
        slots=tuple(allocation.slots.tolist()),
    )


def hottest_links(
    cluster: str, fabric: Fabric, keys: Sequence[str], link_bytes: Floats
) -> dict[str, list[Any]]:
    """Of the links that take longest: the device at the sending end, and properties of LOADS.

    Parameters
    ----------
    keys : sequence of str
        Of `device_keys` of the fabric.
    link_bytes : float64[m]
    """
    links = fabric.links
    loaded = np.flatnonzero(link_bytes)
    seconds = link_bytes[loaded] / links.capacity[loaded]
    order = np.argsort(-seconds, kind="stable")[:HOTTEST]
    hottest = loaded[order]
    return {
        "device": [device_id(cluster, keys[v]) for v in links.source[hottest].tolist()],
        "src_port": links.source_port[hottest].tolist(),
        "dst": _hosts(fabric, links.target[hottest]),
        "dst_port": links.target_port[hottest].tolist(),
        "bytes": link_bytes[hottest].tolist(),
        "seconds": seconds[order].tolist(),
    }


def _judged(record: PlacementRecord) -> dict[str, Any]:
    """Metrics, bounds and baselines."""
    properties: dict[str, Any] = {}
    if record.evaluation is not None:
        properties |= {name: getattr(record.evaluation, name) for name in (*EVALUATED, *EVALUATED_LATER)}
        for name, bound in record.evaluation.bounds.items():
            properties |= {
                f"bound_{name}": bound.value,
                f"proof_{name}": bound.proof,
                f"argument_{name}": bound.name,
            }
    for baseline in BASELINES:
        metrics = getattr(record, baseline)
        if metrics is not None:
            properties |= {f"{baseline}_{name}": value for name, value in asdict(metrics).items()}
    return properties


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
