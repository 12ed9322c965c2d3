"""JSON of ports: errors, utilisation and jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from almanac.output.json.running_jobs import heading_to_json
from almanac.output.printing import attributes, finite

if TYPE_CHECKING:
    from mapping.questions.live import Live
    from mapping.traffic.ports import ErrorGrowth, PortTable, PortUse

SHARES = (
    *("sent_share", "received_share", "estimated_sent_share", "estimated_received_share"),
    *("estimated_sent_seconds", "estimated_received_seconds", "sent_bytes", "received_bytes"),
)
"""Attributes of a port that are null if unknown."""


def ports_to_json(live: Live, table: PortTable, top: int) -> dict[str, Any]:
    """Return the document of ``almanac ports``, with at most `top` ports."""
    errors, rates = table.errors, table.rates
    total = table.is_since_reset
    return {
        **heading_to_json(live),
        "errors_since": None if errors is None or total else errors.grown.start,
        "errors_until": None if errors is None else errors.grown.end,
        "use_since": None if rates is None else rates.start,
        "use_until": None if rates is None else rates.end,
        "since_reset": total,
        "counted": 0 if errors is None else len(errors.grown),
        "with_errors": 0 if errors is None else int((errors.amount > 0).any(axis=1).sum()),
        "over_limit": 0 if errors is None or total else int(errors.over.any(axis=1).sum()),
        "ports": [_port(port, total=total) for port in table.top(top)],
    }


def _port(port: PortUse, *, total: bool) -> dict[str, Any]:
    return {
        "link": port.name,
        "to": port.to or None,
        **attributes(port, "device", "port"),
        "errors": {error.counter: _error(error, total=total) for error in port.errors},
        **{name: finite(getattr(port, name)) for name in SHARES},
        **attributes(port, "at_least"),
        "job_ids": list(port.jobs),
    }


def _error(error: ErrorGrowth, *, total: bool) -> dict[str, Any]:
    rate, limit = (None, None) if total else (error.per_hour, finite(error.limit))
    fields = attributes(error, "growth", "at_least", "saturated")
    return {**fields, "per_hour": rate, "error_limit": limit}
