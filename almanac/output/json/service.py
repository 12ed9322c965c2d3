"""JSON of the spool of waiting ingests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from almanac.service.spool import Applied, SpooledInfo


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
