"""Placements written together: a dozen statements for all of them, where one alone takes as many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from registry.database.driver import Transaction
from registry.errors import UnknownName
from registry.fabrics.facts import device_keys
from registry.fabrics.observations import read_content
from registry.jobs.allocations import require_hosts, save_allocations
from registry.jobs.jobs import find_job, job_key
from registry.model import Fabric
from registry.records.placements.link_loads import pack_loads
from registry.records.placements.records import PRESENT, PlacementRecord
from registry.records.placements.saving import (
    LOADS,
    check_fits,
    host_slots,
    hottest_links,
    placement_id,
    properties_of,
)

_KNOWN = """
UNWIND $placements AS id
MATCH (p:Placement {id: id})
RETURN collect(p.id) AS ids
"""

_PRESENT = f"""
UNWIND $placements AS id
MATCH (p:Placement {{id: id}})
WHERE p.role <> '{PRESENT}'
SET p.role = '{PRESENT}'
"""

_PROFILES = """
UNWIND $profiles AS id
MATCH (f:Profile {id: id})
RETURN collect(f.id) AS ids, collect(f.ranks) AS ranks, collect(f.application) AS applications
"""

_JOBS = """
UNWIND $jobs AS id
MATCH (j:Job {id: id})
RETURN collect(j.id) AS ids
"""

_CREATE = """
UNWIND range(0, size($placement) - 1) AS i
MATCH (x:Content {id: $content[i]})
CREATE (p:Placement {id: $placement[i]})-[:IN]->(x)
SET p += $properties[i]
"""

_OF_PROFILE = """
UNWIND range(0, size($placement) - 1) AS i
MATCH (p:Placement {id: $placement[i]})
MATCH (f:Profile {id: $profile[i]})
CREATE (p)-[:OF]->(f)
"""

_OF_JOB = """
UNWIND range(0, size($placement) - 1) AS i
MATCH (p:Placement {id: $placement[i]})
MATCH (j:Job {id: $job[i]})
CREATE (j)-[:HAS_PLACEMENT]->(p)
"""

_ON_ALLOCATION = """
UNWIND range(0, size($placement) - 1) AS i
MATCH (p:Placement {id: $placement[i]})
MATCH (a:Allocation {id: $allocation[i]})
CREATE (p)-[:ON]->(a)
"""

_HAS_LOADS = """
UNWIND range(0, size($placement) - 1) AS i
MATCH (p:Placement {id: $placement[i]})
CREATE (p)-[:HAS_LOADS]->(:LinkLoads {id: $placement[i], blob: $blob[i]})
"""

_LOADS = """
UNWIND range(0, size($placement) - 1) AS i
MATCH (p:Placement {id: $placement[i]})
MATCH (d:Device {id: $device[i]})
CREATE (p)-[:LOADS {src_port: $src_port[i], dst: $dst[i], dst_port: $dst_port[i], bytes: $bytes[i],
                    seconds: $seconds[i]}]->(d)
"""

NODES_A_BATCH = 500
"""Placements sent with one statement: they carry blobs."""


def save_placements(
    transaction: Transaction, placed: Sequence[tuple[PlacementRecord, datetime]]
) -> tuple[str, ...]:
    """Save placements of clusters that are taken, each with the time that it is of; their ids, new or not.

    Raises
    ------
    UnknownName, InvalidPlacement
        As `Placements.save`; then none is saved.
    """
    fabrics = _fabrics(transaction, {record.content for record, _ in placed})
    applications = _check(transaction, [record for record, _ in placed], fabrics)
    ids = tuple(placement_id(record) for record, _ in placed)
    known = known_placements(transaction, ids)
    ran = {name for name, (record, _) in zip(ids, placed, strict=True) if record.role == PRESENT}
    if known & ran:  # one that was proposed is what runs by now
        transaction.run(_PRESENT, placements=sorted(known & ran))
    new = {name: one for name, one in zip(ids, placed, strict=True) if name not in known}
    nodes: dict[str, list[Any]] = {
        "placement": list(new),
        "content": [record.content for record, _ in new.values()],
        "properties": [
            properties_of(record, fabrics[record.content], at, applications.get(record.profile or ""))
            for record, at in new.values()
        ],
    }
    transaction.run_columns(_CREATE, nodes, batch=NODES_A_BATCH)
    records = {name: record for name, (record, _) in new.items()}
    _join(transaction, records, fabrics)
    _save_loads(transaction, records, fabrics)
    return ids


def save_placement(transaction: Transaction, record: PlacementRecord, at: datetime) -> tuple[str, bool]:
    """Save one placement on a cluster that is taken; its id and whether it is new."""
    known = known_placements(transaction, [placement_id(record)])
    (identity,) = save_placements(transaction, [(record, at)])
    return identity, identity not in known


def known_placements(transaction: Transaction, ids: Sequence[str]) -> set[str]:
    """Those of the ids that are there."""
    return set(transaction.run(_KNOWN, placements=sorted(set(ids)))[0]["ids"])


def _fabrics(transaction: Transaction, contents: set[str]) -> dict[str, Fabric]:
    fabrics = {}
    for content in sorted(contents):
        fabric = read_content(transaction, content)
        if fabric is None:
            raise UnknownName("snapshot", content)
        fabrics[content] = fabric
    return fabrics


def _check(
    transaction: Transaction, records: Sequence[PlacementRecord], fabrics: Mapping[str, Fabric]
) -> dict[str, str]:
    """Raise where a record does not fit; else the application of each profile by id."""
    wanted = sorted({record.profile for record in records if record.profile is not None})
    found = transaction.run(_PROFILES, profiles=wanted)[0]
    ranks = dict(zip(found["ids"], found["ranks"], strict=True))
    for record in records:
        if record.profile is not None and record.profile not in ranks:
            raise UnknownName("profile", record.profile)
        check_fits(record, fabrics[record.content], ranks.get(record.profile or ""))
    jobs = {job_key(record.cluster, record.job): record for record in records if record.job is not None}
    missing = sorted(jobs.keys() - set(transaction.run(_JOBS, jobs=sorted(jobs))[0]["ids"]))
    for key in missing[:1]:  # told with the closest names
        find_job(transaction, jobs[key].job or "", jobs[key].cluster)
    return dict(zip(found["ids"], found["applications"], strict=True))


def _join(
    transaction: Transaction, records: Mapping[str, PlacementRecord], fabrics: Mapping[str, Fabric]
) -> None:
    """Join each placement to its allocation, profile and job."""
    seats = {name: host_slots(record, fabrics[record.content]) for name, record in records.items()}
    for cluster in sorted({one.cluster for one in seats.values()}):
        mine = [one for one in seats.values() if one.cluster == cluster]
        require_hosts(transaction, cluster, {host for one in mine for host in one.hosts})
        save_allocations(transaction, cluster, mine)
    on = {"placement": list(seats), "allocation": [one.id for one in seats.values()]}
    transaction.run_columns(_ON_ALLOCATION, on)
    profiles = {name: one.profile for name, one in records.items() if one.profile is not None}
    transaction.run_columns(_OF_PROFILE, {"placement": list(profiles), "profile": list(profiles.values())})
    jobs = {name: job_key(one.cluster, one.job) for name, one in records.items() if one.job is not None}
    transaction.run_columns(_OF_JOB, {"placement": list(jobs), "job": list(jobs.values())})


def _save_loads(
    transaction: Transaction, records: Mapping[str, PlacementRecord], fabrics: Mapping[str, Fabric]
) -> None:
    keys = {content: device_keys(fabric) for content, fabric in fabrics.items()}
    blobs: dict[str, bytes] = {}
    columns: dict[str, list[Any]] = {"placement": [], **{name: [] for name in LOADS}}
    for name, record in records.items():
        if record.evaluation is None:
            continue
        loads = record.evaluation.link_bytes
        blobs[name] = pack_loads(loads)
        hottest = hottest_links(record.cluster, fabrics[record.content], keys[record.content], loads)
        columns["placement"] += [name] * len(hottest["device"])
        for column in LOADS:
            columns[column] += hottest[column]
    nodes: dict[str, list[Any]] = {"placement": list(blobs), "blob": list(blobs.values())}
    transaction.run_columns(_HAS_LOADS, nodes, batch=NODES_A_BATCH)
    transaction.run_columns(_LOADS, columns)
