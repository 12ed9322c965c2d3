"""Cables slower than their ends allow, or than similar cables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mapping.checks.finding import Severity
from registry.model.links import ACTIVE
from tests.support.checked_fabrics import findings_of, with_ports
from tests.support.infiniband_data import infiniband


def test_a_cable_that_could_be_faster_is_reported_once_for_both_of_its_ends() -> None:
    fabric = infiniband("fattree2-64-traffic")
    links = fabric.links
    leaf, spine = fabric.vertices(["leaf01", "spine01"], kind="switch").tolist()
    (row,) = np.flatnonzero((links.source == leaf) & (links.target == spine)).tolist()
    rate, ports = float(links.capacity[row]), (int(links.source_port[row]), int(links.target_port[row]))
    faster = with_ports(("leaf01", ports[0], ACTIVE, 2 * rate), ("spine01", ports[1], ACTIVE, 2 * rate))
    (finding,) = findings_of(faster, "slow-links")
    assert finding.severity is Severity.WARNING
    assert finding.subject == f"leaf01 port {ports[0]} - spine01 port {ports[1]}"
    assert not findings_of(with_ports(("leaf01", ports[0], ACTIVE, rate)), "slow-links")


def test_a_cable_slower_than_nearly_all_others_is_a_note() -> None:
    fabric = infiniband("fattree2-64-traffic")
    links = fabric.links
    leaf, spine = fabric.vertices(["leaf01", "spine01"], kind="switch").tolist()
    capacity = np.array(links.capacity)
    both = ((links.source == leaf) & (links.target == spine)) | (
        (links.source == spine) & (links.target == leaf)
    )
    assert not findings_of(fabric, "slow-links")
    capacity[both] /= 2
    (finding,) = findings_of(replace(fabric, links=replace(links, capacity=capacity)), "slow-links")
    assert finding.severity is Severity.NOTE
    assert "31 of 32 cables between switches" in finding.text
