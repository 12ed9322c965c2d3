"""Ports without a working link."""

from __future__ import annotations

from mapping.checks.catalog import check
from mapping.checks.finding import Severity, Subject
from registry.model.links import DOWN, TRAINING
from tests.support.checked_fabrics import with_ports


def test_ports_that_are_down_are_reported_by_device_and_state() -> None:
    fabric = with_ports(("leaf01", 30, DOWN, 0.0), ("leaf01", 31, DOWN, 0.0), ("leaf02", 30, TRAINING, 0.0))
    findings = check(Subject(fabric=fabric), ["down-ports"])
    assert [(f.severity, f.subject, f.count) for f in findings] == [
        (Severity.WARNING, "leaf02", 1),
        (Severity.NOTE, "leaf01", 2),
    ]
    assert findings[1].text == "leaf01 ports 30, 31: down"
