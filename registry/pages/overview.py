"""Reads for the overview page: all clusters; of one its earlier fabric, intended wiring and counters.

One statement returns what `Fabrics.clusters`, `Runs.sources`, `Fabrics.read`, `Intended.read` and `Counters`
return in several.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from registry.database.driver import Database, Transaction
from registry.errors import UnknownName
from registry.model import as_utc
from registry.model.views import one_line
from registry.store.counters import MAX_SWEEPS, Sweeps, last_sweeps, last_two_sweeps
from registry.store.fabrics import ClusterInfo, Snapshot, stored_snapshot
from registry.store.ingest_runs import SourceState, source_states
from registry.store.intended import StoredWiring, stored_wiring

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
