"""JSON of deleted and moved data, of observations and ingest runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from almanac.output.printing import attributes

if TYPE_CHECKING:
    from registry.store.fabrics import ObservationInfo
    from registry.store.ingest_runs import RunInfo
    from registry.upkeep.clusters import Move
    from registry.upkeep.deletion import Deletion
    from registry.upkeep.retention import Pruned
    from registry.upkeep.verify import Repair, Verification


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
