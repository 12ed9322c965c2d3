"""Placements with their cost and provenance: saved once, found by a short id, listed as rows or as columns.

The id of a placement is a hash of provenance and result: cluster, snapshot, tables, profile, job, allocation,
ranks, strategy, parameters, seed, objective, routing, load of other jobs and code version. Saving the same
placement again adds nothing. The seconds that the search took and the time of saving do not count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from registry.database import codec
from registry.database.driver import Database, Transaction
from registry.database.stored_kinds import NODES_PER_BATCH, NewRecord, Records, known_ids
from registry.errors import InvalidPlacement, InvalidValue, UnknownName, WrongRanks
from registry.model import Fabric, Floats, Placement, Time, as_utc
from registry.model.placement import PlacementSeries
from registry.model.views import one_line
from registry.store.allocations import HostSlots, require_hosts, save_allocations
from registry.store.derived import device_id, device_keys
from registry.store.fabrics import Snapshot, stored_snapshot
from registry.store.jobs import find_job, job_key
from registry.store.observations import lock_cluster, read_content
from registry.store.placement_rows import (
    BASELINES,
    BEGINNING,
    EVALUATED,
    EVALUATED_LATER,
    INFO,
    OF_JOB,
    OF_PROFILE,
    ON_ALLOCATION,
    PLACEMENT,
    PRESENT,
    READ_SERIES,
    READ_SERIES_OF_CLUSTER,
    ROLES,
    SEARCHED,
    PlacementRecord,
    StoredPlacement,
    StoredPlacementInfo,
    pack_loads,
    placement_info,
    placement_of,
    placement_series,
    profile_names,
    stored_placement,
)
from registry.store.profile_names import ranks_of_profiles
from registry.store.profiles import StoredProfile, stored_profile
from registry.store.tables import unpack_tables
from registry.store.timeline import FOREVER

_OPEN = """
UNWIND $placements AS wanted
MATCH (p:Placement {id: wanted})-[:IN]->(x:Content)
OPTIONAL MATCH (o:Observation)-[:SAW]->(x)
WITH p, x, max(o.at) AS observed_at
OPTIONAL MATCH (p)-[:OF]->(f:Profile)
OPTIONAL MATCH (j:Job)-[:HAS_PLACEMENT]->(p)
OPTIONAL MATCH (p)-[:HAS_LOADS]->(l:LinkLoads)
WITH p, x, observed_at, f, j, l
OPTIONAL MATCH (r:Routing {id: p.tables})-[h:HAS_TABLE]->(t:ForwardingTable)
WITH p, x, observed_at, f, j, l, r, collect(h.guid) AS guids, collect(t.ports) AS ports
RETURN p, x.id AS content, x.blob AS blob, observed_at, f, f.id AS profile, j.job AS job,
       l.blob AS loads, r.lids AS lids, guids, ports
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenPlacement:
    """A placement with its fabric, including the forwarding tables of its evaluation, and its profile."""

    stored: StoredPlacement
    snapshot: Snapshot
    profile: StoredProfile | None

    __repr__ = one_line


def open_placement(database: Database, placement: str) -> OpenPlacement:
    """Return a placement by its id, with its fabric and profile; one statement."""
    return open_placements(database, [placement])[placement]


def open_placements(database: Database, placements: Sequence[str]) -> dict[str, OpenPlacement]:
    """Return placements by their ids, each with its fabric and profile; one statement."""
    ids = list(dict.fromkeys(placements))

    def work(transaction: Transaction) -> dict[str, OpenPlacement]:
        found = {opened.stored.id: opened for opened in map(_opened, transaction.run(_OPEN, placements=ids))}
        PLACEMENT.require_all(transaction, ids, found)
        return found

    return database.read(work)


def _opened(row: dict[str, Any]) -> OpenPlacement:
    """Return the placement, fabric and profile of a row of `_OPEN`."""
    stored = stored_placement(row)
    profile = row["f"]
    tables = None
    if row["lids"] is not None:
        tables = unpack_tables(row["lids"], [[guid] for guid in row["guids"]], row["ports"])
    at, routing = row["observed_at"], stored.routing
    return OpenPlacement(
        stored=stored,
        snapshot=stored_snapshot(
            stored.cluster, stored.content, row["blob"], at, routing=routing, tables=tables
        ),
        profile=None if profile is None else stored_profile(profile),
    )


_PRESENT = f"""
UNWIND $placements AS id
MATCH (p:Placement {{id: id}})
WHERE p.role <> '{PRESENT}'
SET p.role = '{PRESENT}'
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

HOTTEST = 200
"""Most loaded link directions that are stored as relationships; all of them are in the blob."""
LOADS = ("device", "src_port", "dst", "dst_port", "bytes", "seconds")
"""Columns of `_hottest_links`."""


def save_placements(
    transaction: Transaction, placed: Sequence[tuple[PlacementRecord, datetime]]
) -> tuple[str, ...]:
    """Save placements on locked clusters, each with its time; return their ids.

    All of them take about a dozen statements, as many as one alone.
    """
    fabrics = _fabrics(transaction, {record.content for record, _ in placed})
    applications = _check(transaction, [record for record, _ in placed], fabrics)
    ids = tuple(placement_id(record) for record, _ in placed)
    known = PLACEMENT.known(transaction, ids)
    present = {name for name, (record, _) in zip(ids, placed, strict=True) if record.role == PRESENT}
    if known & present:  # a job now runs with a placement that was proposed
        transaction.run(_PRESENT, placements=sorted(known & present))
    new = {name: one for name, one in zip(ids, placed, strict=True) if name not in known}
    slots = {name: host_slots(record, fabrics[record.content]) for name, (record, _) in new.items()}
    _save_allocations(transaction, list(slots.values()))
    PLACEMENT.create(
        transaction,
        [
            NewRecord(
                name,
                _properties(record, fabrics[record.content], time, applications.get(record.profile or "")),
                owner=record.content,
                joined={
                    ON_ALLOCATION: [slots[name].id],
                    OF_PROFILE: [] if record.profile is None else [record.profile],
                    OF_JOB: [] if record.job is None else [job_key(record.cluster, record.job)],
                },
            )
            for name, (record, time) in new.items()
        ],
    )
    _save_loads(transaction, {name: record for name, (record, _) in new.items()}, fabrics)
    return ids


def save_placement(transaction: Transaction, record: PlacementRecord, time: datetime) -> tuple[str, bool]:
    """Save one placement on a locked cluster; return its id and True if it is new."""
    known = PLACEMENT.known(transaction, [placement_id(record)])
    (identity,) = save_placements(transaction, [(record, time)])
    return identity, identity not in known


def placement_id(record: PlacementRecord) -> str:
    """Return the id of a placement: ``p`` and 12 hexadecimal digits, a hash of provenance and result."""
    evaluation = record.evaluation
    rails, background = ("", "") if evaluation is None else (evaluation.rails, evaluation.background)
    return _identity(record, rails, background)


def stored_placement_id(node: Mapping[str, Any]) -> str:
    """Return the id that the properties of a placement's node give."""
    with PLACEMENT.reading(node["id"]):
        record = PlacementRecord(
            cluster=node["cluster"],
            content=node.get("snapshot", ""),
            routing=node.get("tables"),
            profile=node.get("profile"),
            job=node.get("job"),
            placement=placement_of(node, codec.unpack(node["host_of_rank"])),
            code_version=node["code_version"],
        )
        return _identity(record, node.get("rails", ""), node.get("background", ""))


def _identity(record: PlacementRecord, rails: str, background: str) -> str:
    """Return the id of a placement with the rails and the background of its evaluation."""
    placement = record.placement
    provenance = {
        "cluster": record.cluster,
        "content": record.content,
        "tables": record.routing,
        "profile": record.profile,
        "job": record.job,
        "strategy": placement.strategy,
        "objective": placement.objective,
        "routing": _routing(record),
        "rails": rails,
        "parameters": dict(placement.parameters),
        "seed": placement.seed,
        "code_version": record.code_version,
    }
    if background:  # otherwise ids stay those of earlier versions
        provenance["background"] = background
    return PLACEMENT.identity(_vertices(placement), provenance)


def _check_fits(record: PlacementRecord, fabric: Fabric, ranks: int | None) -> None:
    """Raise if a placement does not fit its fabric or its profile of so many ranks."""
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
        raise WrongRanks(placement.ranks, ranks)


def _properties(
    record: PlacementRecord, fabric: Fabric, time: datetime, application: str | None
) -> dict[str, Any]:
    """Return the properties of a placement's node.

    They include what the relationships lead to: a history need not follow 20,000 of them.
    """
    placement = record.placement
    hosts = _hosts(fabric, placement.host_of_rank)
    properties: dict[str, Any] = {
        "cluster": record.cluster,
        "recorded_at": time,
        "role": record.role,
        "snapshot": record.content,
        "profile": record.profile,
        "application": application,
        "job": record.job,
        "allocation": host_slots(record, fabric).id,
        **{name: getattr(placement, name) for name in SEARCHED},
        "routing": _routing(record),
        "tables": record.routing,
        "parameters": json.dumps(dict(placement.parameters), sort_keys=True),
        "seed": placement.seed,
        "code_version": record.code_version,
        "ranks": placement.ranks,
        "host_of_rank": codec.pack(_vertices(placement)),
        "hosts": hosts,
        "rank_order": rank_order(hosts),
    }
    return properties | _evaluated(record)


def rank_order(hosts: Sequence[str]) -> str:
    """Return a hash of the hosts of all ranks: equal for equal orders."""
    return hashlib.sha256("\n".join(hosts).encode()).hexdigest()[:16]


def host_slots(record: PlacementRecord, fabric: Fabric) -> HostSlots:
    """Return the allocation of a placement by host names."""
    allocation = record.placement.allocation
    return HostSlots(
        cluster=record.cluster,
        hosts=tuple(_hosts(fabric, allocation.hosts)),
        slots=tuple(allocation.slots.tolist()),
    )


def _hottest_links(
    cluster: str, fabric: Fabric, keys: Sequence[str], link_bytes: Floats
) -> dict[str, list[Any]]:
    """Return the columns `LOADS` of the links that take longest; keys are `device_keys` of the fabric."""
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


def _evaluated(record: PlacementRecord) -> dict[str, Any]:
    """Return the metrics, bounds and baselines of a record as properties."""
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


def _fabrics(transaction: Transaction, contents: set[str]) -> dict[str, Fabric]:
    """Return the fabric of each snapshot."""
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
    """Raise if a record does not fit; return the application of each profile by id."""
    wanted = {record.profile for record in records if record.profile is not None}
    profiles = ranks_of_profiles(transaction, wanted)
    for record in records:
        if record.profile is not None and record.profile not in profiles:
            raise UnknownName("profile", record.profile)
        ranks = profiles[record.profile][0] if record.profile is not None else None
        _check_fits(record, fabrics[record.content], ranks)
    jobs = {job_key(record.cluster, record.job): record for record in records if record.job is not None}
    missing = sorted(jobs.keys() - known_ids(transaction, "Job", jobs))
    for key in missing[:1]:  # raises with the closest names
        find_job(transaction, jobs[key].job or "", jobs[key].cluster)
    return {profile: application for profile, (_, application) in profiles.items()}


def _save_allocations(transaction: Transaction, wanted: Sequence[HostSlots]) -> None:
    """Save the allocations of placements, cluster by cluster."""
    for cluster in sorted({one.cluster for one in wanted}):
        mine = [one for one in wanted if one.cluster == cluster]
        require_hosts(transaction, cluster, {host for one in mine for host in one.hosts})
        save_allocations(transaction, cluster, mine)


def _save_loads(
    transaction: Transaction, records: Mapping[str, PlacementRecord], fabrics: Mapping[str, Fabric]
) -> None:
    """Save the loads of all links as blobs, and the most loaded links as relationships."""
    keys = {content: device_keys(fabric) for content, fabric in fabrics.items()}
    blobs: dict[str, bytes] = {}
    columns: dict[str, list[Any]] = {"placement": [], **{name: [] for name in LOADS}}
    for name, record in records.items():
        if record.evaluation is None:
            continue
        loads = record.evaluation.link_bytes
        blobs[name] = pack_loads(loads)
        hottest = _hottest_links(record.cluster, fabrics[record.content], keys[record.content], loads)
        columns["placement"] += [name] * len(hottest["device"])
        for column in LOADS:
            columns[column] += hottest[column]
    nodes: dict[str, list[Any]] = {"placement": list(blobs), "blob": list(blobs.values())}
    transaction.run_columns(_HAS_LOADS, nodes, batch=NODES_PER_BATCH)
    transaction.run_columns(_LOADS, columns)


_COUNT = """
MATCH (p:Placement)
RETURN count(p) AS placements
"""

_FILTER = """
($cluster IS NULL OR p.cluster = $cluster) AND ($application IS NULL OR p.application = $application)
AND (p.recorded_at < $before OR (p.recorded_at = $before AND p.id > $after_id))
"""

_RETURN = f"""
WITH collect({INFO}) AS placements
{profile_names("placements")}
RETURN placements, profile_ids, profile_names
"""
_ORDER = "WITH p ORDER BY p.recorded_at DESC, p.id"

_HISTORY = f"""
MATCH (p:Placement)
WHERE p.recorded_at <= $before AND {_FILTER}
{_ORDER}
{_RETURN}
"""

_HISTORY_OF_CLUSTER = f"""
MATCH (p:Placement)
WHERE p.cluster = $cluster AND {_FILTER}
{_ORDER}
{_RETURN}
"""

_HISTORY_OF_JOB = f"""
MATCH (j:Job)-[:HAS_PLACEMENT]->(p:Placement)
WHERE j.job = $job AND {_FILTER}
{_ORDER}
{_RETURN}
"""

_PAGE, _PAGE_OF_CLUSTER, _PAGE_OF_JOB = (
    statement.replace(_ORDER, f"{_ORDER} LIMIT $limit")
    for statement in (_HISTORY, _HISTORY_OF_CLUSTER, _HISTORY_OF_JOB)
)
"""The same statements with a limit: no number means "no limit" on both servers."""


class Placements(Records[StoredPlacement]):
    """Stored placements."""

    kind = PLACEMENT

    def save(self, record: PlacementRecord) -> str:
        """Save a placement and return its id; one that is stored already adds nothing.

        Raises:
            UnknownName: No such snapshot, profile or job.
            InvalidPlacement: Ranks, vertices or link loads do not fit the profile or the fabric.
        """
        return self.save_many([record])[0]

    def save_many(
        self, records: Sequence[PlacementRecord], times: Sequence[datetime] | None = None
    ) -> tuple[str, ...]:
        """Save all placements or none; return the id of each.

        Args:
            times: Time at which each was recorded (default: now).
        """

        def work(transaction: Transaction) -> tuple[str, ...]:
            for cluster in sorted({record.cluster for record in records}):
                lock_cluster(transaction, cluster)
            recorded = [datetime.now(UTC)] * len(records) if times is None else map(as_utc, times)
            return save_placements(transaction, list(zip(records, recorded, strict=True)))

        return self._database.write(work) if records else ()

    def count(self) -> int:
        """Return the number of stored placements."""
        return int(self._rows(_COUNT)[0]["placements"])

    def history(
        self,
        cluster: str | None = None,
        application: str | None = None,
        job: str | None = None,
        *,
        limit: int | None = None,
        before: StoredPlacementInfo | None = None,
    ) -> tuple[StoredPlacementInfo, ...]:
        """Return the placements that match, the newest first; one statement.

        Args:
            cluster, application, job: Only placements on this cluster, of this application, of this job.
            limit: At most so many.
            before: Only placements after this row: the last one of the previous page.
        """
        parameters: dict[str, Any] = {
            "cluster": cluster,
            "application": application,
            "before": FOREVER if before is None else as_utc(before.recorded_at),
            "after_id": "" if before is None else before.id,
        }
        whole, page = _HISTORY, _PAGE
        if job is not None:
            whole, page = _HISTORY_OF_JOB, _PAGE_OF_JOB
            parameters["job"] = job
        elif cluster is not None:
            whole, page = _HISTORY_OF_CLUSTER, _PAGE_OF_CLUSTER
        if limit is not None:
            whole, parameters["limit"] = page, limit
        (row,) = self._database.read(lambda transaction: transaction.run(whole, **parameters))
        names = dict(zip(row["profile_ids"], row["profile_names"], strict=True))
        return tuple(placement_info(values, names) for values in row["placements"])

    def series(
        self, cluster: str | None = None, application: str | None = None, since: Time | None = None
    ) -> PlacementSeries:
        """Return the placements that match as columns, the oldest first; one statement.

        Args:
            since: Only placements recorded at this time or later.
        """
        earliest = BEGINNING if since is None else as_utc(since)
        parameters: dict[str, Any] = {"application": application, "since": earliest}
        if cluster is None:
            (row,) = self._rows(READ_SERIES, **parameters)
        else:
            (row,) = self._rows(READ_SERIES_OF_CLUSTER, cluster=cluster, **parameters)
        return placement_series(row)

    def _stored(self, row: dict[str, Any]) -> StoredPlacement:
        return stored_placement(row)
