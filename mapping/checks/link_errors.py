"""Ports whose error counters grow beyond their limits, and counters that are full."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mapping.checks.error_limits import WORDS, PortErrors
from mapping.checks.finding import Finding, Severity, Subject, some
from registry.model import Fabric
from registry.model.fabric import end_name, port_name
from registry.units import moment_text

ELSEWHERE = ("link_downed",)
"""Counters that another check reports."""


def find(subject: Subject) -> Iterator[Finding]:
    """Return a finding per port with too many errors, the worst first, then one per counter that is full."""
    errors = subject.port_errors
    if errors is None or not errors.names:
        return
    reported = errors.over & [name not in ELSEWHERE for name in errors.names]
    for row in np.argsort(-errors.excess, kind="stable").tolist():
        columns = np.flatnonzero(reported[row]).tolist()
        if columns:
            harmless = bool(errors.harmless[row, columns].all())
            port = _port_text(errors, row)
            yield Finding(
                Severity.NOTE if harmless else Severity.WARNING,
                port,
                f"{_place(subject.fabric, errors, row)}: {_counts(errors, row, columns)}",
                int(errors.amount[row, columns].sum()),
            )
    for column, name in enumerate(errors.names):
        full = [_port_text(errors, row) for row in np.flatnonzero(errors.saturated[:, column]).tolist()]
        if full:
            text = f"{some(full)}: the counter of {WORDS[name]} is full and counts no more: reset it"
            yield Finding(Severity.NOTE, full[0], text, len(full))


def _port_text(errors: PortErrors, row: int) -> str:
    return port_name(errors.device[row], int(errors.grown.port[row]))


def _place(fabric: Fabric, errors: PortErrors, row: int) -> str:
    """Return a port and where its cable leads."""
    link, port = int(errors.link[row]), _port_text(errors, row)
    if link < 0:
        return port
    return f"{port} (cable to {end_name(fabric, link, 'target')})"


def _counts(errors: PortErrors, row: int, columns: list[int]) -> str:
    """Return the growth of counters of a port, with the limits and the time since when they grew."""
    counts = []
    for column in columns:
        least = "at least " if errors.at_least[row, column] else ""
        count, limit = int(errors.amount[row, column]), float(errors.limit[row, column])
        counts.append(f"{least}{count:,} {WORDS[errors.names[column]]} (limit {limit:,.0f})")
    return f"{', '.join(counts)} since {moment_text(errors.grown.start)}"
