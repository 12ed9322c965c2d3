"""JSON of stored data: ingest reports, clusters, problems, layouts, generated data, profiles, jobs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from almanac.output.printing import attributes, whole

if TYPE_CHECKING:
    from ingest.generate.catalog import Generator
    from ingest.pipeline import Report
    from mapping.checks.finding import Finding
    from registry.store.changes import Changes
    from registry.store.fabrics import ClusterInfo, Snapshot
    from registry.store.jobs import StoredJob
    from registry.store.layouts import StoredLayout
    from registry.store.profiles import ProfileInfo, StoredProfile


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

    Parameters
    ----------
    made : Fabric, Profile or float64[ranks]
        Result of the generator.
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

    Parameters
    ----------
    routing, why : str
        Routing that commands use for this fabric by default, and the reason.
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

    Parameters
    ----------
    traces : sequence of str
        Ids of the profile's traces.
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
