"""JSON of the spool of waiting ingests and of the service's health."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from almanac.service.spool import Applied, Spool, SpooledInfo
    from almanac.service.task_states import TaskState


def queued_to_json(name: str) -> dict[str, Any]:
    """Return the document of ``almanac ingest --spool`` if the files wait for the database."""
    return {"queued": name}


def spooled_to_json(info: SpooledInfo) -> dict[str, Any]:
    """Return a row of ``almanac spool list``."""
    entry = info.entry
    return {
        "entry": info.name,
        "queued_at": info.queued_at,
        "rejected": info.rejected,
        "reason": info.reason or None,
        "cluster": None if entry is None else entry.options.cluster,
        "files": [] if entry is None else list(entry.given),
        "bytes": info.bytes,
    }


def applied_to_json(applied: Sequence[Applied]) -> list[dict[str, Any]]:
    """Return the document of ``almanac spool apply``."""
    return [
        {
            "entry": one.name,
            "outcome": "applied" if one.report is not None else "waits" if one.waits else "rejected",
            "files": [] if one.report is None else list(one.report.intake.files),
            "error": None if one.error is None else str(one.error),
        }
        for one in applied
    ]


def health_to_json(away: str | None, states: Mapping[str, TaskState], spool: Spool) -> dict[str, Any]:
    """Return the document of ``/healthz``.

    Parameters
    ----------
    away : str or None
        Why the database cannot be used; None if it can.
    """
    now, waiting = datetime.now(UTC), spool.waiting()
    return {
        "status": "ok" if away is None else "database away",
        "spool": {
            "waiting": len(waiting),
            "rejected": len(spool.rejected()),
            "oldest_age_seconds": now.timestamp() - int(waiting[0].name) / 1e9 if waiting else None,
        },
        "tasks": [
            {
                "task": name,
                "started_at": state.started_at,
                "succeeded_at": state.succeeded_at,
                "age_seconds": None
                if state.succeeded_at is None
                else (now - state.succeeded_at).total_seconds(),
                "failed_at": state.failed_at,
                "failing": state.error != "",
            }
            for name, state in states.items()
        ],
    }
