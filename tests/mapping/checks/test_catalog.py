"""The catalog of checks, and its small checks: cables, speeds, ports that are down, and shared identities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mapping.checks.catalog import CHECKS, check, worst
from mapping.checks.finding import Severity, Subject
from registry.catalog import Entry
from registry.errors import UnknownName
from registry.model import Fabric
from registry.model.links import ACTIVE, DOWN, TRAINING
from tests.support.checked_fabrics import fabric_of_cables, findings_of, with_ports
from tests.support.ibnetdiscover_scans import fabric_of, raw
from tests.support.infiniband_data import infiniband


def test_a_fabric_without_tables_or_adapters_can_be_checked_but_not_by_an_unknown_check() -> None:
    subject = Subject(fabric=fabric_of_cables(["a", "b"], [("a", "b")], set()))
    assert check(subject) == ()
    assert worst(check(subject)) is None
    with pytest.raises(UnknownName, match="credit-loops"):
        check(subject, ["credit-loop"])


def test_every_check_has_its_own_function_and_findings_have_its_name() -> None:
    assert len({one.load() for one in CHECKS}) == len(CHECKS)
    cables = [("n1", "s1"), ("n1", "s2"), ("n2", "s1"), ("n2", "s2"), ("n3", "s1")]
    fabric = fabric_of_cables(["n1", "n2", "n3", "s1", "s2"], cables, {"s1", "s2"})
    assert [finding.check for finding in check(Subject(fabric=fabric))] == ["rails"]


def test_severities_have_names() -> None:
    assert [str(severity) for severity in Severity] == ["note", "warning", "error"]
    assert Severity.of("warning") is Severity.WARNING


def failing(subject: Subject) -> None:
    raise KeyError("rack")


def test_a_plug_in_that_fails_is_a_finding_and_the_other_checks_run(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = Entry(name="odd", target=f"{__name__}:failing", about="", package="odds 1.0")
    monkeypatch.setitem(CHECKS._own, "odd", entry)
    subject = Subject(fabric=fabric_of_cables(["a", "s"], [("a", "s")], {"s"}))
    others = [one for one in check(subject) if one.check != "odd"]
    (found,) = check(subject, ["odd"])
    assert (found.severity, found.subject) == (Severity.WARNING, "odd")
    assert found.text == "the check odd of odds 1.0 failed: KeyError: 'rack'"
    monkeypatch.delitem(CHECKS._own, "odd")
    assert list(check(subject)) == others
    monkeypatch.setitem(CHECKS._own, "odd", replace(entry, package=""))
    with pytest.raises(KeyError):
        check(subject)


def test_a_host_with_fewer_rails_than_its_kind_is_named() -> None:
    findings = findings_of(infiniband("ndr-dgx-minhop"), "rails")
    (finding,) = findings
    assert (finding.check, finding.count) == ("rails", 10)
    assert "3 cables up" in finding.text
    assert finding.text.endswith("72 adapters without a name may be theirs")
    assert finding.subject in finding.text


def test_two_hosts_have_no_usual_number_of_rails_and_three_have() -> None:
    for hosts, count in ((2, 0), (3, 1)):
        names = [f"n{number}" for number in range(hosts)]
        cables = [(name, leaf) for name in names for leaf in ("leaf0", "leaf1")][:-1]
        fabric = fabric_of_cables([*names, "leaf0", "leaf1"], cables, {"leaf0", "leaf1"})
        assert len(findings_of(fabric, "rails")) == count


def uplinks_found(*uplinks: int) -> list[str]:
    """The leaf switches that are reported if they have so many uplinks."""
    leaves, spines = [f"leaf{i}" for i in range(len(uplinks))], ["spine0", "spine1"]
    cables = [(leaf, spine) for leaf, n in zip(leaves, uplinks, strict=True) for spine in spines[:n]]
    hosts = [f"n{i}" for i in range(len(uplinks))]
    cables += list(zip(hosts, leaves, strict=True))
    fabric = fabric_of_cables(hosts + leaves + spines, cables, {*leaves, *spines})
    return [finding.subject for finding in findings_of(fabric, "uplinks")]


def test_three_in_four_leaves_with_as_many_uplinks_make_it_usual() -> None:
    assert uplinks_found(2, 2, 2, 1) == ["leaf3"]
    assert uplinks_found(2, 2, 2, 1, 1) == []


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
    hosts = ["n0", "n1", "n2", "n3"]
    findings = check(Subject(fabric=fabric_of_cables([*hosts, "s"], [(n, "s") for n in hosts[:3]], {"s"})))
    assert [(f.severity, f.subject) for f in findings] == [(Severity.ERROR, "n3")]
    assert worst(findings) is Severity.ERROR


def test_ports_that_are_down_are_reported_by_device_and_state() -> None:
    fabric = with_ports(("leaf01", 30, DOWN, 0.0), ("leaf01", 31, DOWN, 0.0), ("leaf02", 30, TRAINING, 0.0))
    findings = check(Subject(fabric=fabric), ["down-ports"])
    assert [(f.severity, f.subject, f.count) for f in findings] == [
        (Severity.WARNING, "leaf02", 1),
        (Severity.NOTE, "leaf01", 2),
    ]
    assert findings[1].text == "leaf01 ports 30, 31: down"


def test_names_guids_and_lids_of_two_devices_are_found() -> None:
    (finding,) = findings_of(infiniband("mixed-speeds-oversubscribed"), "identities")
    assert finding.subject == "Quantum Mellanox Technologies"
    fabric = infiniband("fattree2-64-traffic")
    adapters = fabric.adapters
    guid, lid = np.array(adapters.guid), np.array(adapters.port_lid)
    guid[1], lid[5] = guid[0], lid[4]
    twice = replace(fabric, adapters=replace(adapters, guid=guid, port_lid=lid))
    findings = findings_of(twice, "identities")
    assert [finding.severity for finding in findings] == [Severity.ERROR] * 2
    assert findings[0].text.startswith("node GUID 0x")
    assert findings[1].subject == f"LID {int(lid[4])}"


def first_cable(fabric: Fabric) -> tuple[int, int]:
    """Rows of both directions of the cable between the first leaf and the first spine."""
    leaf, spine = fabric.vertices(["leaf01", "spine01"], kind="switch").tolist()
    source, target = fabric.links.source, fabric.links.target
    (up,) = np.flatnonzero((source == leaf) & (target == spine)).tolist()
    (down,) = np.flatnonzero((source == spine) & (target == leaf)).tolist()
    return up, down


def test_a_cable_that_could_be_faster_is_reported_once_for_both_of_its_ends() -> None:
    fabric = infiniband("fattree2-64-traffic")
    row, _ = first_cable(fabric)
    rate, near, far = (
        column[row].item()
        for column in (fabric.links.capacity, fabric.links.source_port, fabric.links.target_port)
    )
    faster = with_ports(("leaf01", near, ACTIVE, 2 * rate), ("spine01", far, ACTIVE, 2 * rate))
    (finding,) = findings_of(faster, "slow-links")
    assert finding.severity is Severity.WARNING
    assert finding.subject == f"leaf01:{near} - spine01:{far}"
    assert not findings_of(with_ports(("leaf01", near, ACTIVE, rate)), "slow-links")


def test_adapters_far_below_their_model_are_found_in_real_scans() -> None:
    found = findings_of(infiniband("mixed-speeds-oversubscribed"), "slow-links")
    texts = [one.text for one in found if "gpu" in one.subject]
    assert (len(found), len(texts)) == (17, 16)
    assert all(text.endswith("runs at 1 GB/s, both ends support 50 GB/s") for text in texts)


def test_a_fabric_whose_cables_are_nearly_all_slow_has_one_finding() -> None:
    (finding,) = findings_of(fabric_of(raw("infiniband/ndr-dgx-minhop/ibnetdiscover.txt")), "slow-links")
    assert (finding.severity, finding.count) == (Severity.WARNING, 1074)
    assert finding.text.startswith(
        "1,074 of 1,074 cables run at 1 GB/s, both ends support 50 GB/s: is the tool"
    )
    (finding,) = findings_of(infiniband("torus-4x4x4-dor"), "slow-links")
    assert (finding.severity, finding.count) == (Severity.NOTE, 320)
    assert finding.text.endswith("is it set so?")


def test_adapters_without_a_name_are_counted_apart() -> None:
    fabric = infiniband("ndr-dgx-minhop")
    assert fabric.size == "121 hosts, 72 adapters without a name, 40 switches, 1074 cables"
    (finding,) = findings_of(fabric, "identities")
    assert (finding.severity, finding.count, finding.group) == (Severity.NOTE, 72, "unnamed")
    assert not len(infiniband("fattree2-64-traffic").unnamed)


def test_a_cable_slower_than_nearly_all_others_is_a_note_and_at_half_their_speed_a_warning() -> None:
    fabric = infiniband("fattree2-64-traffic")
    assert not findings_of(fabric, "slow-links")
    for factor, severity in ((0.75, Severity.NOTE), (0.5, Severity.WARNING)):
        capacity = np.array(fabric.links.capacity)
        capacity[[*first_cable(fabric)]] *= factor
        slower = replace(fabric, links=replace(fabric.links, capacity=capacity))
        (finding,) = findings_of(slower, "slow-links")
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
