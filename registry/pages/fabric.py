"""Reads for the fabric page: all clusters, and the timeline and latest counters of one; one statement."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from registry.database.driver import Database, Transaction
from registry.errors import UnknownName
from registry.model.views import one_line
from registry.pages.changes import Timeline, states_of
from registry.pages.overview import clusters_of
from registry.store.counters import MAX_SWEEPS, Sweeps, last_sweeps, last_two_sweeps
from registry.store.fabrics import ClusterInfo
from registry.store.timeline import time_or_latest

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
