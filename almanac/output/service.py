"""Texts about the spool and the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from almanac.service.spool import Applied


def applied_text(applied: Applied) -> str:
    """Return one line on what became of an entry of the spool."""
    if applied.report is None:
        return f"{applied.name} {'waits' if applied.waits else 'is rejected'}: {applied.error}"
    files = ", ".join(applied.report.intake.files)
    count = len(applied.report.warnings)
    warnings = f"; {count} warnings: {applied.report.warnings[0]}" if count else ""
    return f"{applied.name} applied: {files}{warnings}"
