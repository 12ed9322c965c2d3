"""Fabrics of clusters: at any time, with their changes, and subgraphs of allocations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from registry.database.driver import Transaction
from registry.database.stored_kinds import Store
from registry.errors import InconsistentGraph, UnknownName
from registry.model import Fabric, ForwardingTables, Time, as_utc
from registry.model.job import Losses, Vanished
from registry.model.views import Drawn, one_line
from registry.store import derived
from registry.store.changes import Changes, compare, read_losses
from registry.store.derived import fabric_of
from registry.store.observations import lock_cluster, read_content
from registry.store.snapshots import unpack_fabric
from registry.store.tables import read_routing, rerouted
from registry.store.timeline import FOREVER, content_as_of, no_fabric, routing_as_of, time_or_latest

_CLUSTERS = """
MATCH (o:Observation)-[:SAW]->(x:Content)
WITH o, x ORDER BY o.at, o.seq
WITH o.cluster AS cluster, count(DISTINCT x) AS contents,
     min(o.at) AS first_observed_at, max(o.at) AS last_observed_at, collect(x) AS seen
WITH cluster, contents, first_observed_at, last_observed_at, seen[size(seen) - 1] AS x
OPTIONAL MATCH (every:Observation)
WHERE every.cluster = cluster
WITH cluster, count(every) AS observations, contents, first_observed_at, last_observed_at, x
OPTIONAL MATCH (c:Cluster {id: cluster})
RETURN cluster, x.id AS snapshot, first_observed_at, last_observed_at, observations, contents,
       x.hosts - coalesce(x.unnamed, 0) AS hosts, coalesce(x.unnamed, 0) AS unnamed,
       x.switches AS switches, x.adapters AS adapters, x.cables AS cables, c.seq AS version
ORDER BY cluster
"""

_CONTENT_AS_OF = """
MATCH (o:Observation)-[:SAW]->(x:Content)
WHERE o.cluster = $cluster AND o.at <= $at
WITH o, x ORDER BY o.at DESC, o.seq DESC LIMIT 1
RETURN o.at AS at, x.id AS content, x.blob AS blob
"""

_LARGEST = """
MATCH (:Cluster {id: $cluster})<-[:OF]-(x:Content)
WITH x ORDER BY x.hosts + x.switches DESC, x.id LIMIT 1
MATCH (o:Observation)-[:SAW]->(x)
RETURN x.id AS content, x.blob AS blob, max(o.at) AS at
"""

_CONTENT = """
MATCH (x:Content {id: $content})<-[:SAW]-(o:Observation)
WITH x, max(o.at) AS at
RETURN x.cluster AS cluster, x.blob AS blob, at
"""

_CONTENT_IDS = """
MATCH (x:Content)
RETURN collect(x.id) AS ids
"""

_OBSERVATIONS = """
MATCH (o:Observation)-[:SAW]->(x)
WHERE o.cluster = $cluster
WITH o, x, x.hosts - coalesce(x.unnamed, 0) AS named
WITH o, collect([labels(x)[0], x.id, named, x.unnamed, x.switches, x.cables]) AS saw
RETURN o.id AS id, o.at AS at, o.seq AS seq, o.source AS source, o.digest AS digest, saw
ORDER BY at, seq
"""

_CONTENTS_IN_TIME = """
MATCH (o:Observation)-[:SAW]->(x:Content)
WHERE o.cluster = $cluster
RETURN o.at AS at, x.id AS content
ORDER BY at, o.seq
"""

_LAST_OBSERVED = """
MATCH (o:Observation)
WHERE o.cluster = $cluster AND o.at <= $at
RETURN max(o.at) AS at
"""

_ACCEPT = """
MATCH (c:Cluster {id: $cluster})
SET c.accepted_at = $at
RETURN c.id AS id
"""

_WRITTEN = """
MATCH (c:Cluster {id: $cluster})
RETURN c.seq AS seq
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterInfo:
    """A cluster and its latest snapshot."""

    name: str
    snapshot: str
    """Id of the latest snapshot."""
    first_observed_at: datetime
    last_observed_at: datetime
    """Times of the first and the last observation of a fabric, UTC."""
    observations: int
    contents: int
    """Number of observations, also of forwarding tables alone, and of different snapshots."""
    hosts: int
    switches: int
    adapters: int
    cables: int
    """Counts of the latest snapshot; hosts are those with a name."""
    unnamed: int = 0
    """Number of its adapters without a machine's name, each of which is a host of the fabric."""
    version: int = 0
    """Number that changes whenever data of the cluster are saved."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot(Drawn):
    """A fabric at one time; notebooks show it as a picture."""

    cluster: str
    id: str
    """Id of the snapshot; equal for equal wiring."""
    observed_at: datetime
    """Time of the observation, UTC."""
    routing: str | None
    """Id of the latest forwarding tables at that time."""
    fabric: Fabric
    """Fabric with sorted names, and with the tables if there are any."""

    __repr__ = one_line


def stored_snapshot(
    cluster: str,
    content: str,
    blob: bytes,
    observed_at: datetime,
    *,
    routing: str | None = None,
    tables: ForwardingTables | None = None,
) -> Snapshot:
    """Return the fabric of a stored snapshot, with the id of forwarding tables and the tables themselves."""
    fabric = unpack_fabric(blob, tables=tables, observed_at=observed_at)
    return Snapshot(cluster=cluster, id=content, observed_at=observed_at, routing=routing, fabric=fabric)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservationInfo:
    """One observation: its time, snapshot, forwarding tables and source."""

    id: str
    at: datetime
    seq: int
    snapshot: str | None
    routing: str | None
    source: str
    digest: str
    """SHA-256 of the files' bytes."""
    hosts: int | None = None
    unnamed: int | None = None
    switches: int | None = None
    cables: int | None = None
    """Counts of the snapshot as in `ClusterInfo`; None of forwarding tables alone."""


class Fabrics(Store):
    """Stored fabrics.

    A cluster or snapshot that is not stored, a time before the first fabric of a cluster, and a host that did
    not exist at a time raise `UnknownName`, with the closest names.
    """

    def clusters(self) -> tuple[ClusterInfo, ...]:
        """Return all clusters with a fabric, by name."""
        return tuple(ClusterInfo(name=row.pop("cluster"), **row) for row in self._rows(_CLUSTERS))

    def read(self, cluster: str, at: Time | None = None, *, tables: bool = True) -> Snapshot:
        """Return the fabric at a time: that of the last observation at or before it.

        Args:
            at: Default: the latest observation.
            tables: False to leave out the forwarding tables.
        """
        moment = time_or_latest(at)
        return self._database.read(lambda transaction: _read(transaction, cluster, moment, tables=tables))

    def largest(self, cluster: str) -> Snapshot | None:
        """Return the fabric with most devices of all times, without tables; None if there is none."""
        rows = self._rows(_LARGEST, cluster=cluster)
        return stored_snapshot(cluster, rows[0]["content"], rows[0]["blob"], rows[0]["at"]) if rows else None

    def read_content(self, content: str, routing: str | None = None) -> Snapshot:
        """Return the fabric of a snapshot by its id, or a unique beginning of it after the cluster's name.

        Args:
            routing: Id of forwarding tables to attach (default: none).
        """
        return self._database.read(lambda transaction: _read_content(transaction, content, routing))

    def observations(self, cluster: str) -> tuple[ObservationInfo, ...]:
        """Return all observations of a cluster by time, those of the same time by arrival."""

        def work(transaction: Transaction) -> tuple[ObservationInfo, ...]:
            rows = transaction.run(_OBSERVATIONS, cluster=cluster)
            if not rows:
                raise no_fabric(transaction, cluster, FOREVER)
            return tuple(_observation_info(row) for row in rows)

        return self._database.read(work)

    def changes(self, cluster: str, start: Time, end: Time | None = None) -> Changes:
        """Return the differences between the fabric at `start` and at `end` (default: the latest)."""

        def work(transaction: Transaction) -> Changes:
            before = _read(transaction, cluster, as_utc(start), tables=False)
            after = _read(transaction, cluster, time_or_latest(end), tables=False)
            guids: tuple[str, ...] = ()
            if before.routing and after.routing and before.routing != after.routing:
                guids = rerouted(transaction, before.routing, after.routing)
            found = compare(before.fabric, after.fabric)
            return replace(
                found,
                start=_last_observed(transaction, cluster, as_utc(start)),
                end=_last_observed(transaction, cluster, time_or_latest(end)),
                start_snapshot=before.id,
                end_snapshot=after.id,
                switches_rerouted=guids,
            )

        return self._database.read(work)

    def losses(self, snapshot: Snapshot, start: Time, end: Time | None = None) -> Losses:
        """Return what earlier scans showed and a snapshot, the latest until `end`, has no longer.

        Args:
            start: Beginning of the period of `Losses.interruptions`; what vanished counts from the last
                `accept`.
        """
        until = FOREVER - timedelta(microseconds=1) if end is None else as_utc(end)
        place = (snapshot.cluster, snapshot.fabric, as_utc(start), until)
        return self._database.read(lambda transaction: read_losses(transaction, *place))

    def accept(self, cluster: str, at: Time | None = None) -> tuple[Vanished, ...]:
        """Take the fabric at a time (default: the latest) as it should be; return what is no more missed."""

        def work(transaction: Transaction) -> tuple[Vanished, ...]:
            lock_cluster(transaction, cluster)
            found = _read(transaction, cluster, time_or_latest(at), tables=False)
            moment = found.observed_at
            losses = read_losses(transaction, cluster, found.fabric, moment, moment)
            transaction.run(_ACCEPT, cluster=cluster, at=moment)
            return losses.vanished

        return self._database.write(work)

    def before_last_change(self, cluster: str, end: Time | None = None) -> datetime:
        """Return the time of the last observation before the last change until `end`.

        That is a change of the wiring; if there is none, of the forwarding tables. Without any, return the
        first observation's time. Tables without a fabric belong to the fabric that was observed before them.

        Raises:
            UnknownName
        """
        observations = self.observations(cluster)
        until = [one for one in observations if one.at <= time_or_latest(end)]
        for name in ("snapshot", "routing"):
            known = [(one.at, value) for one in until if (value := getattr(one, name)) is not None]
            change = next((at for at, value in reversed(known) if value != known[-1][1]), None)
            if change is not None:
                following = next(at for at, value in known if at > change)
                return max(one.at for one in until if one.at < following)
        return (until or list(observations))[0].at

    def subgraph(self, cluster: str, hosts: Iterable[str], at: Time | None = None) -> Fabric:
        """Return some hosts and all forwarding devices at a time, from the derived graph."""
        names = tuple(hosts)
        moment = time_or_latest(at)

        def work(transaction: Transaction) -> Fabric:
            written = transaction.run(_WRITTEN, cluster=cluster)
            devices, links = derived.read(transaction, cluster, names, moment)
            missing = set(names) - {fact.name for fact in devices if fact.kind == "host"}
            if missing:
                whole = _read(transaction, cluster, moment, tables=False).fabric
                known = {whole.names[v] for v in whole.hosts}
                if absent := missing - known:
                    raise UnknownName("host", min(absent), sorted(known))
            if missing or transaction.run(_WRITTEN, cluster=cluster) != written:
                raise InconsistentGraph(f"the graph of {cluster!r} was written to while it was read")
            return fabric_of(devices, links)

        return self._database.read(work)

    def rebuild(self, cluster: str) -> None:
        """Rebuild the derived graph of a cluster from its observations."""

        def work(transaction: Transaction) -> None:
            if content_as_of(transaction, cluster, FOREVER) is None:
                raise no_fabric(transaction, cluster, FOREVER)
            lock_cluster(transaction, cluster)
            rebuild_graph(transaction, cluster)

        self._database.write(work)


def rebuild_graph(transaction: Transaction, cluster: str) -> None:
    """Rebuild the derived graph of a locked cluster from its observations."""
    derived.rebuild(transaction, cluster, *_snapshots_in_time(transaction, cluster))


def derived_graph(transaction: Transaction, cluster: str) -> derived.Graph:
    """Return the derived graph of a cluster as its observations give it."""
    return derived.derive(*_snapshots_in_time(transaction, cluster))


def _snapshots_in_time(
    transaction: Transaction, cluster: str
) -> tuple[list[tuple[datetime, str]], Callable[[str], Fabric]]:
    """Return time and snapshot id of each observation, and a function that reads a snapshot."""

    @lru_cache(maxsize=2)
    def fabric_of(content: str) -> Fabric:
        fabric = read_content(transaction, content)
        if fabric is None:
            raise UnknownName("snapshot", content)
        return fabric

    rows = transaction.run(_CONTENTS_IN_TIME, cluster=cluster)
    return [(row["at"], row["content"]) for row in rows], fabric_of


def _read(transaction: Transaction, cluster: str, at: datetime, *, tables: bool = True) -> Snapshot:
    """Return the fabric of a cluster at a time; without the forwarding tables if `tables` is False."""
    found = transaction.run(_CONTENT_AS_OF, cluster=cluster, at=at)
    if not found:
        raise no_fabric(transaction, cluster, at)
    routing = routing_as_of(transaction, cluster, at)
    forwarding = read_routing(transaction, routing) if routing and tables else None
    row = found[0]
    return stored_snapshot(
        cluster, row["content"], row["blob"], row["at"], routing=routing, tables=forwarding
    )


def _last_observed(transaction: Transaction, cluster: str, at: datetime) -> datetime:
    """Return the time of the last observation, of a fabric or of tables, at or before a time."""
    found: datetime = transaction.run(_LAST_OBSERVED, cluster=cluster, at=at)[0]["at"]
    return found


def _read_content(transaction: Transaction, content: str, routing: str | None) -> Snapshot:
    """Return the fabric of a snapshot; see `Fabrics.read_content`."""
    found = transaction.run(_CONTENT, content=content)
    if not found:
        known = transaction.run(_CONTENT_IDS)[0]["ids"]
        matching = [
            name for name in known if name.startswith(content) or name.split("/")[-1].startswith(content)
        ]
        if not content or len(matching) != 1:
            raise UnknownName("snapshot", content, known)
        return _read_content(transaction, matching[0], routing)
    tables = None if routing is None else read_routing(transaction, routing)
    if routing is not None and tables is None:
        raise UnknownName("routing", routing)
    row = found[0]
    return stored_snapshot(row["cluster"], content, row["blob"], row["at"], routing=routing, tables=tables)


def _observation_info(row: dict[str, Any]) -> ObservationInfo:
    saw = {label: (id, counts) for label, id, *counts in row.pop("saw")}
    snapshot, counts = saw.get("Content", (None, (None,) * 4))
    hosts, unnamed, switches, cables = counts
    return ObservationInfo(
        snapshot=snapshot,
        routing=saw.get("Routing", (None, ()))[0],
        hosts=hosts,
        unnamed=unnamed,
        switches=switches,
        cables=cables,
        **row,
    )
