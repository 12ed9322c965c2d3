"""Ports without a working link, if the source lists them; most sources list only ports that are up."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mapping.checks.finding import Finding, Severity, Subject, some
from registry.model.links import ARMED, DISABLED, DOWN, INITIALIZE, PORT_STATES, TRAINING

_SEVERITY = {
    DOWN: Severity.NOTE,
    DISABLED: Severity.NOTE,
    TRAINING: Severity.WARNING,
    INITIALIZE: Severity.WARNING,
    ARMED: Severity.WARNING,
}
"""Severity by port state. An empty port is down, which is no fault; one that tries to come up has a
partner."""


def find(subject: Subject) -> Iterator[Finding]:
    """Return one finding per device and state."""
    fabric = subject.fabric
    ports = fabric.ports
    for state, severity in _SEVERITY.items():
        rows = np.flatnonzero(ports.state == state)
        for vertex in np.unique(ports.vertex[rows]).tolist():
            numbers = [str(number) for number in ports.number[rows[ports.vertex[rows] == vertex]].tolist()]
            name, plural = fabric.names[vertex], "" if len(numbers) == 1 else "s"
            text = f"{name} port{plural} {some(numbers, 12)}: {PORT_STATES[state]}"
            yield Finding(severity, name, text, len(numbers))
