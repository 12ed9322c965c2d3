"""Clusters now and over time, each read in one statement: overview, states, differences, events of a device.

Return what `Fabrics.clusters`, `observations`, `changes` and `read`, `Runs.sources`, `Intended.read` and
`Counters` return in several.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

from registry.database.driver import Database, Transaction
from registry.errors import UnknownName
from registry.model import Fabric, as_utc
from registry.model.views import one_line
from registry.store.changes import Changes, compare
from registry.store.counters import MAX_SWEEPS, Sweeps, last_sweeps, last_two_sweeps
from registry.store.derived import device_id, device_keys
from registry.store.fabrics import ClusterInfo, Snapshot, stored_snapshot
from registry.store.ingest_runs import SourceState, source_states
from registry.store.intended import StoredWiring, stored_wiring
from registry.store.timeline import FOREVER, time_or_latest

_OVERVIEW = f"""
OPTIONAL MATCH (r:IngestRun)
UNWIND coalesce(r.formats, ['']) AS format
WITH r, format ORDER BY r.at DESC
WITH r.cluster AS name, format, r.outcome AS outcome, max(r.at) AS at, head(collect(r.error)) AS error,
     max(coalesce(r.observed_at, r.at)) AS observed
WITH collect(name) AS run_clusters, collect(CASE WHEN name IS NULL THEN null ELSE format END) AS run_formats,
     collect(outcome) AS run_outcomes, collect(at) AS run_times, collect(error) AS run_errors,
     collect(observed) AS run_observed
OPTIONAL MATCH (o:Observation)-[:SAW]->(x:Content)
WITH *
ORDER BY o.at, o.seq
WITH run_clusters, run_formats, run_outcomes, run_times, run_errors, run_observed,
     o.cluster AS name, count(DISTINCT x) AS contents, min(o.at) AS first,
     max(o.at) AS last, collect(x) AS states
WITH run_clusters, run_formats, run_outcomes, run_times, run_errors, run_observed,
     name, contents, first, last, states[size(states) - 1] AS x
OPTIONAL MATCH (every:Observation)
WHERE every.cluster = name
WITH run_clusters, run_formats, run_outcomes, run_times, run_errors, run_observed,
     name, count(every) AS seen, contents, first, last, x
OPTIONAL MATCH (c:Cluster {{id: name}})
WITH *
ORDER BY name
WITH run_clusters, run_formats, run_outcomes, run_times, run_errors, run_observed, collect(name) AS names,
     collect(x.id) AS snapshots, collect(first) AS firsts, collect(last) AS lasts,
     collect([seen, contents, x.hosts - coalesce(x.unnamed, 0), coalesce(x.unnamed, 0),
              x.switches, x.adapters, x.cables, c.seq]) AS counts
WITH *, coalesce($cluster, head(names)) AS chosen
OPTIONAL MATCH (o:Observation)-[:SAW]->(x:Content)
WHERE o.cluster = chosen AND o.at <= $before
WITH *
ORDER BY o.at DESC, o.seq DESC LIMIT 1
OPTIONAL MATCH (p:Observation)-[:SAW]->(q:Routing)
WHERE p.cluster = chosen AND p.at <= $before
WITH *
ORDER BY p.at DESC, p.seq DESC LIMIT 1
OPTIONAL MATCH (w:IntendedWiring)
WHERE w.cluster = chosen
WITH *
ORDER BY w.at DESC, w.seq DESC LIMIT 1
{last_sweeps("chosen")}
WITH run_clusters, run_formats, run_outcomes, run_times, run_errors, run_observed,
     names, snapshots, firsts, lasts, counts, chosen, o, x, q, w,
     collect(sweep_time) AS sweep_times, collect(s.blob) AS sweep_blobs
RETURN run_clusters, run_formats, run_outcomes, run_times, run_errors, run_observed,
       names, snapshots, firsts, lasts, counts, chosen, sweep_times, sweep_blobs,
       o.at AS at_before, x.id AS content_before, x.blob AS blob_before, q.id AS routing_before,
       w.id AS plan, w.at AS planned_at, w.origin AS origin, w.blob AS plan_blob
"""
_COUNTS = ("observations", "contents", "hosts", "unnamed", "switches", "adapters", "cables", "version")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClusterOverview:
    """State of all clusters, and details of one of them."""

    clusters: dict[str, ClusterInfo]
    """Clusters by name."""
    sources: tuple[SourceState, ...]
    """Latest run of each source, by cluster and format."""
    cluster: str | None
    """Name of the chosen cluster; None if there are no clusters."""
    before: Snapshot | None
    """Its fabric at the earlier time, with the id of the forwarding tables but without the tables; None if no
    fabric had been ingested by then."""
    plan: StoredWiring | None
    """Its intended wiring."""
    sweeps: Sweeps
    """Its latest sweeps of counters."""

    __repr__ = one_line


def read_overview(database: Database, cluster: str | None, before: datetime) -> ClusterOverview:
    """Return the state of all clusters, and details of one; one statement.

    Args:
        cluster: Chosen cluster; None: the first by name.
        before: Earlier time with which the chosen cluster is compared.
    """

    def work(transaction: Transaction) -> ClusterOverview:
        row = transaction.run(_OVERVIEW, cluster=cluster, before=as_utc(before), pieces=MAX_SWEEPS)[0]
        clusters = clusters_of(row)
        if clusters and row["chosen"] not in clusters:
            raise UnknownName("cluster", row["chosen"], clusters)
        return ClusterOverview(
            clusters=clusters,
            sources=_sources(row),
            cluster=row["chosen"] if clusters else None,
            before=_before(row),
            plan=_plan(row),
            sweeps=last_two_sweeps(row["sweep_times"], row["sweep_blobs"]),
        )

    return database.read(work)


def clusters_of(row: dict[str, Any]) -> dict[str, ClusterInfo]:
    """Return the clusters by name, from the columns of `_OVERVIEW` or of the fabric page."""
    columns = (row[name] for name in ("names", "snapshots", "firsts", "lasts", "counts"))
    return {
        name: ClusterInfo(
            name=name,
            snapshot=snapshot,
            first_observed_at=first,
            last_observed_at=last,
            **dict(zip(_COUNTS, counts, strict=True)),
        )
        for name, snapshot, first, last, counts in zip(*columns, strict=False)
    }


def _sources(row: dict[str, Any]) -> tuple[SourceState, ...]:
    columns = (
        row[f"run_{name}"] for name in ("clusters", "formats", "outcomes", "times", "errors", "observed")
    )
    names = ("cluster", "format", "outcome", "at", "error", "observed_at")
    rows = (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))
    return source_states(rows, row["names"])


def _before(row: dict[str, Any]) -> Snapshot | None:
    if row["content_before"] is None:
        return None
    blob, at, routing = row["blob_before"], row["at_before"], row["routing_before"]
    return stored_snapshot(row["chosen"], row["content_before"], blob, at, routing=routing)


def _plan(row: dict[str, Any]) -> StoredWiring | None:
    if row["plan"] is None:
        return None
    plan = {"id": row["plan"], "at": row["planned_at"], "origin": row["origin"], "blob": row["plan_blob"]}
    return stored_wiring(plan)


_STATES = """
UNWIND $contents AS id
MATCH (x:Content {id: id})
WITH collect(x.id) AS ids, collect(x.blob) AS blobs
OPTIONAL MATCH (:Routing {id: $before})-[h:HAS_TABLE]->(t:ForwardingTable)
WITH ids, blobs, collect(h.guid) AS guids_before, collect(t.id) AS tables_before
OPTIONAL MATCH (:Routing {id: $after})-[h:HAS_TABLE]->(t:ForwardingTable)
RETURN ids, blobs, guids_before, tables_before, collect(h.guid) AS guids_after, collect(t.id) AS tables_after
"""


class State(NamedTuple):
    """Wiring and forwarding tables of a cluster from one time until the next state."""

    at: datetime
    """Time of the first observation of this state, UTC."""
    content: str
    """Id of the snapshot."""
    routing: str | None
    """Id of the latest forwarding tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """States of a cluster by time, each different from the one before."""

    cluster: str
    states: tuple[State, ...]
    """At least one."""
    last_at: datetime
    """Time of the latest observation, UTC."""

    def as_of(self, at: datetime) -> State | None:
        """Return the state at a time, or None before the first."""
        found = bisect_right(self.states, as_utc(at), key=lambda state: state.at)
        return self.states[found - 1] if found else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SnapshotDiff:
    """Two states of a cluster, without forwarding tables, and their differences."""

    before: Snapshot
    after: Snapshot
    changes: Changes

    __repr__ = one_line


def read_snapshot_diff(database: Database, cluster: str, before: State, after: State) -> SnapshotDiff:
    """Return two states and their differences; one statement."""

    def work(transaction: Transaction) -> SnapshotDiff:
        wanted = sorted({before.content, after.content})
        row = transaction.run(
            _STATES, contents=wanted, before=before.routing or "", after=after.routing or ""
        )[0]
        blobs = dict(zip(row["ids"], row["blobs"], strict=True))
        for content in wanted:
            if content not in blobs:
                raise UnknownName("snapshot", content, blobs)
        first, second = (
            stored_snapshot(cluster, state.content, blobs[state.content], state.at, routing=state.routing)
            for state in (before, after)
        )
        changes = replace(
            compare(first.fabric, second.fabric),
            start=before.at,
            end=after.at,
            start_snapshot=before.content,
            end_snapshot=after.content,
            switches_rerouted=_rerouted_switches(row) if before.routing and after.routing else (),
        )
        return SnapshotDiff(before=first, after=second, changes=changes)

    return database.read(work)


def states_of(row: dict[str, Any]) -> tuple[State, ...]:
    """Return the states by time, from the columns ``at``, ``ids`` and ``kinds`` of the observations."""
    content: str | None = None
    routing: str | None = None
    states: list[State] = []
    # ArcadeDB does not guarantee the order of collected values
    order = sorted(range(len(row["at"])), key=row["at"].__getitem__)
    for at, ids, kinds in ((row["at"][k], row["ids"][k], row["kinds"][k]) for k in order):
        saw = dict(zip(kinds, ids, strict=True))
        content, routing = saw.get("Content", content), saw.get("Routing", routing)
        if content is None:
            continue
        state = State(at, content, routing)
        if states and states[-1].at == at:
            states[-1] = state
        elif not states or states[-1][1:] != state[1:]:
            states.append(state)
    return tuple(_without_repeats(states))


def _without_repeats(states: Sequence[State]) -> list[State]:
    """Return the states without those equal to the one before: two observations may have the same time."""
    result: list[State] = []
    for state in states:
        if not result or result[-1][1:] != state[1:]:
            result.append(state)
    return result


def _rerouted_switches(row: dict[str, Any]) -> tuple[str, ...]:
    old = dict(zip(row["guids_before"], row["tables_before"], strict=True))
    new = dict(zip(row["guids_after"], row["tables_after"], strict=True))
    return tuple(sorted(guid for guid in old.keys() | new.keys() if old.get(guid) != new.get(guid)))


APPEARED, REMOVED, CHANGED_SPEED, RENAMED = "added", "removed", "changed speed", "renamed"
"""Kinds of events."""

_DEVICE = """
MATCH (d:Device {id: $device})
OPTIONAL MATCH (d)-[:HAS_STATE]->(s:DeviceState)
WITH d, collect(s.valid_from) AS state_starts, collect(s.name) AS state_names
OPTIONAL MATCH (d)-[l:LINK]->(b:Device)
RETURN state_starts, state_names, collect(l.valid_from) AS starts, collect(l.valid_to) AS ends,
       collect([l.src_port, l.src_guid, l.dst_port, l.dst_guid, l.twin]) AS ports,
       collect(b.name) AS peers
"""


class DeviceEvent(NamedTuple):
    """A change of a device."""

    at: datetime
    """Time of the first observation after it, UTC."""
    kind: str
    """`APPEARED`, `REMOVED` or `CHANGED_SPEED` of a cable, or `RENAMED`."""
    port: int
    """Port of the device; negative if unknown, or if the device got another name."""
    peer: str
    """Present name of the device at the other end; the new name if the device got another one."""
    peer_port: int
    """Port there; negative if unknown."""


class DeviceHistory(NamedTuple):
    """Time of the first observation of a device, None if there is none; its changes, newest first."""

    first_at: datetime | None
    events: tuple[DeviceEvent, ...]


def read_device_history(database: Database, cluster: str, fabric: Fabric, vertex: int) -> DeviceHistory:
    """Return when the cables and the name of a device changed; one statement.

    Args:
        fabric: A fabric of the cluster.
        vertex: Host or switch in it.
    """
    identity = device_id(cluster, device_keys(fabric)[vertex])
    rows = database.read(lambda transaction: transaction.run(_DEVICE, device=identity))
    if not rows or not rows[0]["state_starts"]:
        return DeviceHistory(None, ())
    row = rows[0]
    names = sorted(zip(row["state_starts"], row["state_names"], strict=True))
    first = names[0][0]
    renamed = [
        DeviceEvent(at, RENAMED, -1, name, -1)
        for (_, before), (at, name) in pairwise(names)
        if before != name
    ]
    events = [*renamed, *_cable_events(row, first)]
    return DeviceHistory(first, tuple(sorted(events, key=_newest_first)))


def _cable_events(row: dict[str, Any], first: datetime) -> list[DeviceEvent]:
    """Return the events of the cables; those that the first observation saw were not added."""
    came: defaultdict[tuple[Any, ...], set[datetime]] = defaultdict(set)
    went: defaultdict[tuple[Any, ...], set[datetime]] = defaultdict(set)
    columns = (row[name] for name in ("starts", "ends", "ports", "peers"))
    for start, end, ports, peer in zip(*columns, strict=True):
        came[*ports, peer].add(start)
        went[*ports, peer].add(end)
    events = []
    for cable, starts in came.items():
        port, _, peer_port, _, _, peer = cable
        ends = went[cable] - {FOREVER}
        for at in sorted(starts | ends):
            if at in starts and at in ends:
                kind = CHANGED_SPEED
            elif at in ends:
                kind = REMOVED
            elif at > first:
                kind = APPEARED
            else:
                continue
            events.append(DeviceEvent(at, kind, int(port), peer, int(peer_port)))
    return events


def _newest_first(event: DeviceEvent) -> tuple[float, str, int, str]:
    return -event.at.timestamp(), event.kind, event.port, event.peer


_HISTORY = f"""
OPTIONAL MATCH (o:Observation)-[:SAW]->(x:Content)
WITH o, x
ORDER BY o.at, o.seq
WITH o.cluster AS name, count(DISTINCT x) AS contents,
     min(o.at) AS first, max(o.at) AS last, collect(x) AS states
WITH name, contents, first, last, states[size(states) - 1] AS x
OPTIONAL MATCH (every:Observation)
WHERE every.cluster = name
WITH name, count(every) AS seen, contents, first, last, x
OPTIONAL MATCH (c:Cluster {{id: name}})
WITH *
ORDER BY name
WITH collect(name) AS names, collect(x.id) AS snapshots, collect(first) AS firsts, collect(last) AS lasts,
     collect([seen, contents, x.hosts - coalesce(x.unnamed, 0), coalesce(x.unnamed, 0),
              x.switches, x.adapters, x.cables, c.seq]) AS counts
WITH *, coalesce($cluster, head(names)) AS chosen
OPTIONAL MATCH (t:Observation)-[:SAW]->(y)
WHERE t.cluster = chosen
WITH names, snapshots, firsts, lasts, counts, chosen, t, collect(y.id) AS saw, collect(labels(y)[0]) AS kind
ORDER BY t.at, t.seq
WITH names, snapshots, firsts, lasts, counts, chosen,
     collect(t.at) AS at, collect(saw) AS ids, collect(kind) AS kinds
{last_sweeps("chosen", "{at} <= $until")}
RETURN names, snapshots, firsts, lasts, counts, chosen, at, ids, kinds,
       collect(sweep_time) AS sweep_times, collect(s.blob) AS sweep_blobs
"""
_NEVER = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FabricHistory:
    """All clusters, with the timeline and counters of one of them."""

    clusters: dict[str, ClusterInfo]
    """Clusters by name."""
    timeline: Timeline | None
    """Timeline of the chosen cluster; None if there are no clusters."""
    sweeps: Sweeps
    """Its latest sweeps of counters at or before the requested time."""

    __repr__ = one_line


def read_fabric_history(
    database: Database, cluster: str | None, at: datetime | None = None, *, counters: bool = False
) -> FabricHistory:
    """Return all clusters, with the timeline and counters of one; one statement.

    Args:
        cluster: Chosen cluster; None: the first by name.
        at: Read counters at or before this time (default: the latest).
        counters: If True, read counters.
    """
    until = _NEVER if not counters else time_or_latest(at)

    def work(transaction: Transaction) -> dict[str, Any]:
        return transaction.run(_HISTORY, cluster=cluster, until=until, pieces=MAX_SWEEPS)[0]

    row = database.read(work)
    clusters = clusters_of(row)
    if not clusters:
        return FabricHistory(clusters={}, timeline=None, sweeps=())
    name = row["chosen"]
    if name not in clusters:
        raise UnknownName("cluster", name, clusters)
    line = Timeline(cluster=name, states=states_of(row), last_at=clusters[name].last_observed_at)
    return FabricHistory(
        clusters=clusters, timeline=line, sweeps=last_two_sweeps(row["sweep_times"], row["sweep_blobs"])
    )
