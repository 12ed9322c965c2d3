"""Texts about the spool and the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from registry.errors import shorten

if TYPE_CHECKING:
    from almanac.service.spool import Applied

MAX_REASON = 300
"""Most characters of an error or warning in a line; ``almanac spool list --json`` has all of it."""


def applied_text(applied: Applied) -> str:
    """Return one line on what became of an entry of the spool."""
    if applied.report is None:
        state = "waits" if applied.waits else "is rejected"
        return f"{applied.name} {state}: {shorten(str(applied.error), MAX_REASON)}"
    files = ", ".join(applied.report.intake.files)
    count = len(applied.report.warnings)
    warnings = f"; {count} warnings: {shorten(applied.report.warnings[0], MAX_REASON)}" if count else ""
    return f"{applied.name} applied: {files}{warnings}"
