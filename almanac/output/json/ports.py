"""JSON of ports: errors, utilisation and jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from almanac.output.json.running_jobs import heading_to_json
from almanac.output.printing import attributes, finite

if TYPE_CHECKING:
    from mapping.service.live import Live
    from mapping.traffic.port_table import ErrorGrowth, PortTable, PortUse

SHARES = (
    *("sent_share", "received_share", "estimated_sent_share", "estimated_received_share"),
    *("estimated_sent_seconds", "estimated_received_seconds"),
)
"""Attributes of a port that are null if unknown."""


def ports_to_json(live: Live, table: PortTable, top: int) -> dict[str, Any]:
    """Return the document of ``almanac ports``, with at most `top` ports."""
    errors, rates = table.errors, table.rates
    return {
        **heading_to_json(live),
        "errors_since": None if errors is None else errors.grown.start,
        "errors_until": None if errors is None else errors.grown.end,
        "use_since": None if rates is None else rates.start,
        "use_until": None if rates is None else rates.end,
        "counted": 0 if errors is None else len(errors.grown),
        "with_errors": 0 if errors is None else int((errors.amount > 0).any(axis=1).sum()),
        "over_limit": 0 if errors is None else int(errors.over.any(axis=1).sum()),
        "ports": [_port(port) for port in table.top(top)],
    }


def _port(port: PortUse) -> dict[str, Any]:
    return {
        "link": port.name,
        "to": port.to or None,
        **attributes(port, "device", "port"),
        "errors": {error.counter: _error(error) for error in port.errors},
        **{name: finite(getattr(port, name)) for name in SHARES},
        **attributes(port, "at_least"),
        "job_ids": list(port.jobs),
    }


def _error(error: ErrorGrowth) -> dict[str, Any]:
    names = ("growth", "per_hour", "at_least", "saturated")
    return {**attributes(error, *names), "error_limit": finite(error.limit)}
