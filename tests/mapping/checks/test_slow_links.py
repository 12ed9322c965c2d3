"""Cables slower than their ends allow, or than similar cables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mapping.checks.finding import Severity
from registry.model.links import ACTIVE
from tests.support.checked_fabrics import fabric_of_cables, findings_of, with_ports
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
    assert finding.subject == f"leaf01:{ports[0]} - spine01:{ports[1]}"
    assert not findings_of(with_ports(("leaf01", ports[0], ACTIVE, rate)), "slow-links")


def test_a_cable_slower_than_nearly_all_others_is_a_note_and_at_half_their_speed_a_warning() -> None:
    fabric = infiniband("fattree2-64-traffic")
    links = fabric.links
    leaf, spine = fabric.vertices(["leaf01", "spine01"], kind="switch").tolist()
    capacity = np.array(links.capacity)
    both = ((links.source == leaf) & (links.target == spine)) | (
        (links.source == spine) & (links.target == leaf)
    )
    assert not findings_of(fabric, "slow-links")
    for factor, severity in ((0.75, Severity.NOTE), (0.5 / 0.75, Severity.WARNING)):
        capacity[both] *= factor
        (finding,) = findings_of(replace(fabric, links=replace(links, capacity=capacity)), "slow-links")
        assert finding.severity is severity
        assert "31 of 32 cables leaf# - spine# run at" in finding.text


def test_a_slow_cable_among_others_of_its_kind_is_found_in_a_fabric_of_two_speeds() -> None:
    # half of the hosts are storage with half of the speed: only by kind is one of the others slow
    hosts = [f"node{number}" for number in range(12)] + [f"store{number}" for number in range(12)]
    fabric = fabric_of_cables([*hosts, "leaf"], [(host, "leaf") for host in hosts], {"leaf"})
    stored = np.asarray([name.startswith("store") for name in fabric.names])
    links, slow = fabric.links, fabric.names.index("node3")
    capacity = np.where(stored[links.source] | stored[links.target], 0.5, 1.0)
    assert not findings_of(replace(fabric, links=replace(links, capacity=capacity)), "slow-links")
    capacity[(links.source == slow) | (links.target == slow)] = 0.25
    (finding,) = findings_of(replace(fabric, links=replace(links, capacity=capacity)), "slow-links")
    assert (finding.severity, finding.subject) == (Severity.WARNING, "node3 - leaf")
    assert "11 of 12 cables leaf - node#" in finding.text
