"""All clusters, and of one of them its states in time and its last counters: one statement, for a page.

`Fabrics.clusters`, `registry.fabrics.between.timeline` and `registry.counters.measured` give it piece by
piece.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from registry.counters.measured import PIECES, Sweeps, sweeps_of
from registry.database.driver import Database, Transaction
from registry.errors import UnknownName
from registry.fabrics.between import Timeline, states_of
from registry.fabrics.fabrics import ClusterInfo
from registry.fabrics.timeline import FOREVER
from registry.model import as_utc
from registry.overview.clusters import clusters_of

_SEEN = """
OPTIONAL MATCH (o:Observation)-[:SAW]->(x:Content)
WITH o, x
ORDER BY o.at, o.seq
WITH o.cluster AS name, count(o) AS seen, count(DISTINCT x) AS contents,
     min(o.at) AS first, max(o.at) AS last, collect(x) AS states
WITH name, seen, contents, first, last, states[size(states) - 1] AS x
OPTIONAL MATCH (c:Cluster {id: name})
WITH *
ORDER BY name
WITH collect(name) AS names, collect(x.id) AS snapshots, collect(first) AS firsts, collect(last) AS lasts,
     collect([seen, contents, x.hosts, x.switches, x.adapters, x.cables, c.seq]) AS counts
WITH *, coalesce($cluster, head(names)) AS chosen
OPTIONAL MATCH (t:Observation)-[:SAW]->(y)
WHERE t.cluster = chosen
WITH names, snapshots, firsts, lasts, counts, chosen, t, collect(y.id) AS saw, collect(labels(y)[0]) AS kind
ORDER BY t.at, t.seq
WITH names, snapshots, firsts, lasts, counts, chosen,
     collect(t.at) AS at, collect(saw) AS ids, collect(kind) AS kinds
OPTIONAL MATCH (s:CounterSweep)
WHERE s.cluster = chosen AND s.at <= $until AND s.traffic
WITH *
ORDER BY s.at DESC, s.seq DESC LIMIT $pieces
RETURN names, snapshots, firsts, lasts, counts, chosen, at, ids, kinds,
       collect(s.at) AS sweep_times, collect(s.blob) AS sweep_blobs
"""
_NEVER = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seen:
    """What was seen of all clusters, and more of one of them.

    Attributes
    ----------
    clusters : dict of str to ClusterInfo
        By name.
    timeline : Timeline or None
        Of the one that the rest is about; None where there is none at all.
    sweeps : Sweeps
        Its last sweeps of counters until the time that was asked for.
    """

    clusters: dict[str, ClusterInfo]
    timeline: Timeline | None
    sweeps: Sweeps


def seen(
    database: Database, cluster: str | None, at: datetime | None = None, *, counters: bool = False
) -> Seen:
    """All clusters, and one of them in time: one statement.

    Parameters
    ----------
    cluster : str or None
        None: the first by name.
    at : datetime, optional
        Counters until then; until now, unless told.
    counters : bool
        Whether counters are wanted.

    Raises
    ------
    UnknownName
        There are clusters, but none of that name.
    """
    until = _NEVER if not counters else FOREVER if at is None else as_utc(at)

    def work(transaction: Transaction) -> dict[str, Any]:
        return transaction.run(_SEEN, cluster=cluster, until=until, pieces=PIECES)[0]

    row = database.read(work)
    clusters = clusters_of(row)
    if not clusters:
        return Seen(clusters={}, timeline=None, sweeps=())
    name = row["chosen"]
    if name not in clusters:
        raise UnknownName("cluster", name, clusters)
    line = Timeline(cluster=name, states=states_of(row), last_at=clusters[name].last_observed_at)
    return Seen(clusters=clusters, timeline=line, sweeps=sweeps_of(row["sweep_times"], row["sweep_blobs"]))
