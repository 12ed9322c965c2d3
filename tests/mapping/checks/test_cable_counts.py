"""Devices with fewer cables than similar ones."""

from __future__ import annotations

from mapping.checks.catalog import check, worst
from mapping.checks.finding import Severity, Subject
from tests.support.checked_fabrics import fabric_of_cables, findings_of
from tests.support.infiniband_data import infiniband


def test_a_host_with_fewer_rails_than_its_kind_is_named() -> None:
    findings = findings_of(infiniband("ndr-dgx-minhop"), "rails")
    (finding,) = findings
    assert (finding.check, finding.count) == ("rails", 10)
    assert "3 cables up" in finding.text
    assert finding.subject in finding.text


def test_a_leaf_with_fewer_uplinks_than_the_others_is_named() -> None:
    leaves, spines = [f"leaf{i}" for i in range(5)], ["spine0", "spine1"]
    hosts = [f"n{i}" for i in range(5)]
    cables = [(leaf, spine) for leaf in leaves for spine in spines if (leaf, spine) != ("leaf3", "spine1")]
    cables += list(zip(hosts, leaves, strict=True))
    fabric = fabric_of_cables(hosts + leaves + spines, cables, {*leaves, *spines})
    (finding,) = findings_of(fabric, "uplinks")
    assert (finding.check, finding.subject) == ("uplinks", "leaf3")
    assert "1 cables to other switches, 4 of 5 leaf switches have 2" in finding.text


def test_a_host_without_a_cable_is_an_error() -> None:
    names = [f"n{i}" for i in range(4)]
    fabric = fabric_of_cables([*names, "s"], [(name, "s") for name in names[:3]], {"s"})
    findings = check(Subject(fabric=fabric))
    assert [(f.severity, f.subject) for f in findings] == [(Severity.ERROR, "n3")]
    assert worst(findings) is Severity.ERROR
