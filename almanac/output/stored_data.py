"""JSON of stored data: ingest reports, clusters, problems, layouts, generated data, profiles, jobs.

JSON of deleted and moved data, of observations and ingest runs.

JSON of ``almanac selfcheck``.

JSON of the spool of waiting ingests and of the service's health.

Text about deleted and moved data.

Texts about the spool and the service.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from almanac.output.printing import attributes, finite, whole

if TYPE_CHECKING:
    from ingest.generate.catalog import Generator
    from ingest.pipeline import Report
    from mapping.checks.finding import Finding
    from mapping.selfcheck.oracles import Comparison
    from registry.store.changes import Changes
    from registry.store.fabrics import ClusterInfo, ObservationInfo, Snapshot
    from registry.store.ingest_runs import RunInfo
    from registry.store.jobs import StoredJob
    from registry.store.layouts import StoredLayout
    from registry.store.profiles import ProfileInfo, StoredProfile
    from registry.upkeep.clusters import Move
    from registry.upkeep.deletion import Deletion
    from registry.upkeep.retention import Pruned
    from registry.upkeep.verify import Repair, Verification


def ingest_report_to_json(report: Report, dry_run: bool) -> dict[str, Any]:
    """Return the document of ``almanac ingest``."""
    intake, receipt = report.intake, report.receipt
    fabric = intake.fabric
    fields: dict[str, Any] = {
        "dry_run": dry_run,
        "cluster": intake.cluster,
        "observed_at": intake.observed_at,
        "files": list(intake.files),
        "host_count": None if fabric is None else len(fabric.hosts) - len(fabric.unnamed),
        "unnamed_adapter_count": None if fabric is None else len(fabric.unnamed),
        "switch_count": None if fabric is None else len(fabric.switches),
        "cable_count": None if fabric is None else fabric.cable_count,
        "table_count": None if intake.tables is None else len(intake.tables.switch_guid),
        "profiles": [profile.name for profile in intake.profiles],
        "trace_count": sum(trace is not None for trace in intake.traces),
        "job_count": len(intake.jobs),
        "placement_ids": [],
        "counters": [{"at": sweep.at, "ports": len(sweep)} for sweep in intake.counters],
        "intended": None if intake.intended is None else len(intake.intended),
        "warnings": list(report.warnings),
        "same_as": None if report.same_as is None else report.same_as.at,
        "compared_at": None if report.compared is None else report.compared.time,
        "disagreements": [] if report.compared is None else list(report.compared.disagreements),
    }
    if receipt is not None:
        fields |= {
            "snapshot": receipt.snapshot,
            "new_snapshot": receipt.new_content,
            "new_observation": receipt.new_observation,
            "routing_id": receipt.routing,
            "new_routing": receipt.new_routing,
            "profile_ids": list(receipt.ids("profiles")),
            "new_profiles": receipt.new("profiles"),
            "new_traces": receipt.new("traces"),
            "new_jobs": receipt.new("jobs"),
            "unknown_hosts": list(receipt.unknown_hosts),
            "unknown_devices": list(receipt.unknown_devices),
            "placement_ids": list(receipt.ids("placements")),
            "new_counters": receipt.new("counters"),
            "new_intended": receipt.new("intended") > 0,
            "links_opened": receipt.links_opened,
            "links_closed": receipt.links_closed,
            "wall_seconds": receipt.seconds,
        }
    return fields


def generated_to_json(made: Any, generator: Generator) -> dict[str, Any]:
    """Return the first keys of ``almanac generate``: what was generated.

    Args:
        made (Fabric, Profile or float64[ranks]): Result of the generator.
    """
    fields: dict[str, Any] = {"generator": generator.name, "kind": generator.kind}
    if generator.kind == "profile":
        return (
            fields
            | {"profile": made.name}
            | attributes(made, "ranks", "pairs")
            | {"bytes": float(made.bytes.sum())}
        )
    if generator.kind == "weights":
        return fields | {"ranks": len(made), "sum": float(made.sum()), "heaviest": float(made.max())}
    return fields | {
        "host_count": len(made.hosts),
        "switch_count": len(made.switches),
        "cable_count": made.cable_count,
    }


def cluster_to_json(info: ClusterInfo) -> dict[str, Any]:
    """Return a row of ``almanac cluster list``."""
    return {
        "cluster": info.name,
        "observations": info.observations,
        "snapshots": info.contents,
        "observed_at": info.last_observed_at,
    }


def snapshot_to_json(cluster: str, snapshot: Snapshot, routing: str, why: str) -> dict[str, Any]:
    """Return the document of ``almanac cluster show``.

    Args:
        routing, why: Routing that commands use for this fabric by default, and the reason.
    """
    fabric = snapshot.fabric
    return {
        "cluster": cluster,
        "host_count": len(fabric.hosts) - len(fabric.unnamed),
        "unnamed_adapter_count": len(fabric.unnamed),
        "adapter_count": len(fabric.adapters),
        "switch_count": len(fabric.switches),
        "cable_count": fabric.cable_count,
        "capacity": float(fabric.links.capacity.sum()),
        "snapshot": snapshot.id,
        "observed_at": snapshot.observed_at,
        "routing_id": snapshot.routing,
        "default_routing": routing,
        "default_routing_because": why,
    }


def changes_to_json(cluster: str, changes: Changes) -> dict[str, Any]:
    """Return the document of ``almanac cluster changes``."""
    fields = {"cluster": cluster, **dataclasses.asdict(changes)}
    for key in ("cables_appeared", "cables_vanished"):
        fields[key] = [_cable(cable) for cable in fields[key]]
    fields["capacity_changed"] = [
        {side: _cable(cable) for side, cable in change.items()} for change in fields["capacity_changed"]
    ]
    return fields


def _cable(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a cable with its ends as objects, as links have them in other documents."""
    ends = {
        end: {"name": fields[end], "guid": fields[f"{end}_guid"], "port": fields[f"{end}_port"]}
        for end in ("source", "target")
    }
    return {**ends, "cable_count": fields["cables"], **{k: fields[k] for k in ("capacity", "capacity_back")}}


def findings_to_json(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Return the problems that ``almanac cluster check`` found."""
    names = ("check", "group", "subject", "count", "text")
    return [{"severity": str(finding.severity), **attributes(finding, *names)} for finding in findings]


def host_layout_to_json(stored: StoredLayout) -> dict[str, Any]:
    """Return a row of ``almanac cluster layouts``."""
    import numpy as np

    from registry.model import format_guid

    layout = stored.layout
    domains = len(layout.domain_node)
    return {
        "host": stored.host,
        "since": stored.at,
        "cores": len(layout.core_domain),
        "cores_per_domain": np.bincount(layout.core_domain, minlength=domains).tolist(),
        "adapters": [
            {
                "name": name,
                "guid": format_guid(int(guid)) or None,
                "fabric": bool(fabric),
                "domains": np.flatnonzero(near).tolist(),
            }
            for name, guid, fabric, near in zip(
                layout.nic_name, layout.nic_guid, layout.nic_fabric, layout.nic_near, strict=True
            )
        ],
        "name": layout.name,
        "origin": layout.source,
    }


def profile_info_to_json(info: ProfileInfo) -> dict[str, Any]:
    """Return a row of ``almanac profile list``."""
    names = ("application", "ranks", "pairs", "bytes", "recorded_at")
    return {"profile": info.name, "profile_id": info.id, **attributes(info, *names)}


def profile_to_json(stored: StoredProfile, traces: Sequence[str]) -> dict[str, Any]:
    """Return the document of ``almanac profile show``.

    Args:
        traces: Ids of the profile's traces.
    """
    content = stored.profile
    return {
        "profile": content.name,
        "profile_id": stored.id,
        "application": content.application,
        "origin": content.source,
        "recorded_at": stored.recorded_at,
        **attributes(content, "ranks", "pairs"),
        "bytes": whole(float(content.bytes.sum())),
        "messages": int(content.messages.sum()),
        "missing_ranks": list(content.missing_ranks),
        "self_edges": content.self_edges,
        "self_bytes": whole(content.self_bytes),
        "traces": list(traces),
    }


def job_to_json(stored: StoredJob) -> dict[str, Any]:
    """Return the document of ``almanac job show``, also a row of ``almanac job list``."""
    job = stored.job
    return {
        "job": job.id,
        "cluster": stored.cluster,
        **attributes(job, "name", "user", "account", "partition", "state"),
        **attributes(job, "submitted_at", "started_at", "ended_at"),
        "ranks": job.ranks or None,
        "hosts": list(job.hosts),
        "slots": list(job.slots),
        "distribution": job.distribution,
        "profile": stored.profile_name or None,
        "profile_id": stored.profile,
        "iteration_seconds": stored.iteration_seconds,
        "iteration_from": stored.iteration_from or None,
        "origin": job.source,
    }


def deletion_to_json(deletion: Deletion, dry_run: bool) -> dict[str, Any]:
    """Return the document of the commands that delete."""
    return {
        "dry_run": dry_run,
        "deleted": dict(deletion.counts),
        "dependents": {kind: list(ids) for kind, ids in deletion.dependents.items()},
        "jobs_without_profile": list(deletion.jobs),
    }


def move_to_json(move: Move, dry_run: bool) -> dict[str, Any]:
    """Return the document of ``almanac cluster rename`` and ``merge``."""
    return {
        "dry_run": dry_run,
        "moved": dict(move.moved),
        "already_there": dict(move.known),
        "conflicts": list(move.conflicts),
    }


def pruned_to_json(pruned: Pruned, rules: Mapping[str, str], dry_run: bool) -> dict[str, Any]:
    """Return the document of ``almanac db prune``."""
    rows = [{"cluster": cluster or None, **counts} for cluster, counts in pruned.deleted.items()]
    kinds = ("observations", "counters", "placements", "runs")
    deleted = [{"cluster": row["cluster"], **{kind: row.get(kind, 0) for kind in kinds}} for row in rows]
    return {"dry_run": dry_run, "rules": dict(rules), "deleted": deleted, "skipped": pruned.skipped}


def verification_to_json(first: Verification, last: Verification, repair: Repair | None) -> dict[str, Any]:
    """Return the document of ``almanac db verify``."""
    findings = [
        {"problem": one.problem, "of": one.kind}
        | attributes(one, "id", "cluster", "reason", "harmless")
        | {"left": one in last.findings}
        for one in first.findings
    ]
    from registry.upkeep.deletion import NAMES

    deleted = {} if repair is None else {NAMES[label]: list(ids) for label, ids in repair.deleted.items()}
    return {
        "checked": {NAMES[label]: count for label, count in sorted(first.checked.items())},
        "findings": findings,
        "restored": [] if repair is None else list(repair.restored),
        "joined": [] if repair is None else list(repair.joined),
        "rebuilt": [] if repair is None else list(repair.rebuilt),
        "deleted": deleted,
    }


def observation_to_json(cluster: str, info: ObservationInfo, files: Sequence[str]) -> dict[str, Any]:
    """Return a row of ``almanac observation list``, with the paths of the files that were read."""
    fields = {"observation": info.id, "cluster": cluster, "observed_at": info.at}
    fields |= {"host_count": info.hosts, "unnamed_adapter_count": info.unnamed}
    fields |= {"switch_count": info.switches, "cable_count": info.cables}
    fields |= {"snapshot": info.snapshot, "routing_id": info.routing, "origin": info.source}
    return fields | {"files": files}


def run_to_json(info: RunInfo) -> dict[str, Any]:
    """Return a row of ``almanac ingest-run list``."""
    fields = {"run": info.id, "cluster": info.cluster or None, "started_at": info.at}
    fields["observed_at"] = info.observed_at
    fields |= attributes(info, "outcome", "formats", "files") | {
        "wall_seconds": info.seconds,
        "warnings": info.warnings,
    }
    return fields | {"error": info.error or None}


def self_check_to_json(name: str, about: str, one: Comparison) -> dict[str, Any]:
    """Return a row of the document of ``almanac selfcheck``."""
    return {
        "check": name,
        "about": about,
        "agrees": one.agrees,
        "compared": one.compared,
        "unit": one.unit,
        "skipped": one.skipped,
        "largest_relative_difference": finite(one.largest_difference),
        "differences": one.differences,
    }


def queued_to_json(name: str) -> dict[str, Any]:
    """Return the document of ``almanac ingest --spool`` if the files wait for the database."""
    return {"queued": name}


def deletion_lines(deletion: Deletion) -> Iterator[str]:
    """Yield lines about what is deleted: numbers by kind, and each thing that depended on it."""
    yield _counts(deletion.counts) or "nothing"
    for kind, ids in deletion.dependents.items():
        yield from (f"depends on it: {kind.removesuffix('s')} {identity}" for identity in ids)
    yield from (f"loses its profile: job {identity}" for identity in deletion.jobs)


def move_lines(move: Move) -> Iterator[str]:
    """Yield lines about what is renamed or merged."""
    yield _counts(move.moved) or "nothing"
    if move.known:
        yield f"already there: {_counts(move.known)}"
    yield from (f"conflict: {text}" for text in move.conflicts)


def pruned_lines(pruned: Pruned) -> Iterator[str]:
    """Yield a line about each cluster of which something is deleted."""
    for cluster, counts in pruned.deleted.items():
        yield f"{cluster or 'no cluster'}: {_counts(counts)}"
    if not pruned.deleted:
        yield "nothing to delete"
    if pruned.skipped:
        yield f"kept until the next time, as new results use them: {pruned.skipped:,}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items())


def repair_lines(repair: Repair) -> Iterator[str]:
    """Yield lines about what was repaired, and every record that was deleted."""
    from registry.upkeep.deletion import NAMES

    yield from (f"restored from the derived graph: snapshot {identity}" for identity in repair.restored)
    yield from (f"joined to its cluster again: {identity}" for identity in repair.joined)
    yield from (f"rebuilt: derived graph of {cluster}" for cluster in repair.rebuilt)
    for label, ids in repair.deleted.items():
        yield from (f"deleted: {NAMES[label]}: {identity}" for identity in ids)
    if repair.deleted:
        yield "deleted data can be ingested again from their files, or are in an earlier backup"


MAX_REASON = 300
"""Most characters of an error or warning in a line; ``almanac spool list --json`` has all of it."""
