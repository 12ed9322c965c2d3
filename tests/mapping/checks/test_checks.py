"""The catalog of checks: each by small fabrics, and walks along tables against slow ones and ibdmchk."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from mapping.checks.checks import CHECKS, check, switch_channels, waiting_graph, worst
from mapping.checks.finding import DEFAULT_LIMITS, WORDS, ErrorLimits, Finding, Severity, Subject, port_errors
from mapping.routing.forwarding_tables import bound_tables
from registry.catalog import Entry
from registry.errors import InvalidValue, UnknownName
from registry.model import NO_ROUTE, CounterDeltas, CounterSweep, Fabric, IntendedWiring, deltas
from registry.model.counters import ERRORS
from registry.model.job import Interruption, Losses, Vanished
from registry.model.links import ACTIVE, DOWN, TRAINING
from tests.support import checked_fabrics
from tests.support.checked_fabrics import all_walks, fabric_of_cables, findings_of, tables_of, with_ports
from tests.support.fat_tree import ADAPTER_GUID, LEAF_GUID, SPINE_GUID, at, fat_tree
from tests.support.ibnetdiscover_scans import fabric_of, raw
from tests.support.infiniband_data import SCANS, infiniband
from tests.support.launchers import require


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


def uplinks_found(*uplinks: int) -> list[Finding]:
    """What is reported of leaf switches if they have so many uplinks."""
    leaves, spines = [f"leaf{i}" for i in range(len(uplinks))], ["spine0", "spine1"]
    cables = [(leaf, spine) for leaf, n in zip(leaves, uplinks, strict=True) for spine in spines[:n]]
    hosts = [f"n{i}" for i in range(len(uplinks))]
    cables += list(zip(hosts, leaves, strict=True))
    fabric = fabric_of_cables(hosts + leaves + spines, cables, {*leaves, *spines})
    return findings_of(fabric, "uplinks")


def test_a_leaf_with_fewer_uplinks_than_three_in_four_others_is_named() -> None:
    assert uplinks_found(2, 2, 2, 1, 1) == []
    (few,) = uplinks_found(2, 2, 2, 1)
    assert (few.check, few.subject) == ("uplinks", "leaf3")
    assert "1 cables to other switches, 3 of 4 leaf switches have 2" in few.text


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
    assert (len(found), len(texts)) == (19, 16)
    assert all(text.endswith("runs at 1 GB/s, both ends support 50 GB/s") for text in texts)
    notes = " ".join(one.text for one in found if one.severity is Severity.NOTE)
    assert "- cpu# run at 12.5 GB/s, both ends support 25 GB/s: is it set so?" in notes
    assert "1 of 16 run at 1.705 GB/s, 1 at 4 GB/s, usual is 6.818 GB/s (14 cables)" in notes


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


@pytest.mark.parametrize("kind", ["cables leaf - n#", "hosts' cables"])
def test_a_kind_of_two_speeds_is_one_note_with_the_numbers(kind: str) -> None:
    # the second names are each of a kind of its own
    hosts = [f"n{n}" if "#" in kind else "abcdefgh"[n // 8] + "ijklmnop"[n % 8] for n in range(64)]
    links = (fabric := fabric_of_cables([*hosts, "leaf"], [(host, "leaf") for host in hosts], {"leaf"})).links
    for slow, rest in ((16, "usual is 25 GB/s (48 cables)"), (32, "32 at 25 GB/s"), (40, "24 at 25 GB/s")):
        capacity = np.where(np.minimum(links.source, links.target) < slow, 12.5e9, 25e9)
        (found,) = findings_of(replace(fabric, links=replace(links, capacity=capacity)), "slow-links")
        assert (found.severity, found.count) == (Severity.NOTE, slow)
        assert found.text == f"{kind}: {slow} of 64 run at 12.5 GB/s, {rest}"


def test_cables_of_hosts_that_all_run_at_half_of_what_both_ends_support_are_one_note() -> None:
    links = (fabric := infiniband("fattree2-64-traffic")).links
    rows = zip(links.target.tolist(), links.target_port.tolist(), links.source_adapter.tolist(), strict=True)
    ports = [(fabric.names[leaf], port, ACTIVE, 2 * links.capacity[0]) for leaf, port, at in rows if at >= 0]
    (found,) = findings_of(with_ports(*ports), "slow-links")
    assert (found.severity, found.count, found.text[:30]) == (
        Severity.NOTE,
        64,
        "64 of 64 hosts' cables run at ",
    )


Counted = dict[tuple[int, int], dict[str, int]]


def sweep(minutes: float, counted: Counted, full: frozenset[str] = frozenset()) -> CounterSweep:
    ports = {
        (guid, 0, port): {name: (value, name in full) for name, value in counters.items()}
        for (guid, port), counters in counted.items()
    }
    return CounterSweep.of(at(minutes), ports)


def test_a_limit_holds_for_the_period_and_in_proportion_for_longer() -> None:
    ports = {(LEAF_GUID, 1): {"rcv_errors": 0}}
    limits = ErrorLimits(period=timedelta(hours=1))
    for minutes, limit in ((5, 10), (60, 10), (150, 25)):
        errors = port_errors(fat_tree(), deltas(sweep(0, ports), sweep(minutes, ports)), limits)
        assert errors.limit.tolist() == [[limit]]


def test_symbol_errors_are_harmless_up_to_the_bit_error_rate_of_the_link() -> None:
    # port 1 of a leaf: 50 GB/s, in ten minutes 2.4e14 bits, at 1e-12 240 errors; port 77 has no link
    zero = {"symbol_errors": 0}
    for count, harmless in ((240, True), (241, False)):
        grown = deltas(
            sweep(0, {(LEAF_GUID, 1): zero, (LEAF_GUID, 77): zero}),
            sweep(10, {(LEAF_GUID, 1): {"symbol_errors": count}, (LEAF_GUID, 77): {"symbol_errors": count}}),
        )
        errors = port_errors(fat_tree(), grown, ErrorLimits())
        assert errors.over.tolist() == [[True], [True]]
        assert errors.harmless.tolist() == [[harmless], [False]]
    stricter = port_errors(fat_tree(), grown, ErrorLimits(bit_error_rate=0.0))
    assert not stricter.harmless.any()


def test_ports_are_found_in_the_fabric_and_others_keep_their_guid() -> None:
    counted: Counted = {(guid, 1): {"link_downed": 1} for guid in (ADAPTER_GUID, LEAF_GUID, 0xDD)}
    fabric = fat_tree()
    errors = port_errors(fabric, deltas(sweep(0, counted), sweep(1, counted)), ErrorLimits())
    assert errors.device == ("0x00000000000000dd", "node00", "leaf0")
    links = fabric.links
    assert errors.link[0] == -1
    rows = errors.link[1:]
    assert [fabric.names[vertex] for vertex in links.source[rows]] == ["node00", "leaf0"]
    assert links.source_port[rows].tolist() == [1, 1]


def test_the_worst_port_is_furthest_above_its_limit() -> None:
    before: Counted = {(LEAF_GUID, port): {"rcv_errors": 0, "vl15_dropped": 0} for port in (1, 2, 3)}
    after = {
        (LEAF_GUID, 1): {"rcv_errors": 20, "vl15_dropped": 0},
        (LEAF_GUID, 2): {"rcv_errors": 0, "vl15_dropped": 150},
        (LEAF_GUID, 3): {"rcv_errors": 5, "vl15_dropped": 50},
    }
    errors = port_errors(fat_tree(), deltas(sweep(0, before), sweep(1, after)), ErrorLimits())
    assert errors.excess.tolist() == [2.0, 1.5, 0.5]
    none = ErrorLimits(errors={"rcv_errors": 0, "vl15_dropped": float("inf")})
    errors = port_errors(fat_tree(), deltas(sweep(0, before), sweep(1, after)), none)
    assert errors.over.any(axis=1).tolist() == [True, False, True]
    assert (errors.excess > 1).tolist() == [True, False, True]


def test_unknown_growth_is_not_beyond_a_limit() -> None:
    grown = deltas(
        sweep(0, {(LEAF_GUID, 1): {"rcv_errors": 5}, (LEAF_GUID, 2): {"xmit_discards": 0}}),
        sweep(1, {(LEAF_GUID, 1): {"rcv_errors": 6}, (LEAF_GUID, 2): {"rcv_errors": 9000}}),
    )
    errors = port_errors(fat_tree(), grown, ErrorLimits())
    assert not errors.over.any()
    assert errors.amount.tolist() == [[1], [0]]


def test_every_error_counter_has_words_and_limits_only_known_counters() -> None:
    assert set(WORDS) == set(ERRORS)
    assert set(DEFAULT_LIMITS) == set(ERRORS) - {"qp1_dropped"}  # not in ibqueryerrors' file
    with pytest.raises(UnknownName, match="symbol_errors"):
        ErrorLimits(errors={"symbol_error": 1})
    for wrong in ({"errors": {"rcv_errors": -1.0}}, {"bit_error_rate": 1.0}, {"period": timedelta(0)}):
        with pytest.raises(InvalidValue):
            ErrorLimits(**wrong)


def errors(before: Counted, after: Counted, full: frozenset[str] = frozenset()) -> list[Finding]:
    grown = deltas(sweep(0, before), sweep(10, after, full))
    return list(check(Subject(fabric=fat_tree(), counters=grown), ["link-errors"]))


def test_errors_that_grow_between_two_sweeps_are_a_warning() -> None:
    (one,) = errors(
        {(LEAF_GUID, 1): {"symbol_errors": 4711, "rcv_errors": 0}, (LEAF_GUID, 2): {"symbol_errors": 99_999}},
        {
            (LEAF_GUID, 1): {"symbol_errors": 94_711, "rcv_errors": 11},
            (LEAF_GUID, 2): {"symbol_errors": 99_999},
        },
    )
    assert (str(one.severity), one.subject, one.count) == ("warning", "leaf0:1", 90_011)
    assert one.text == (
        "leaf0:1 (cable to node00:1): 90,000 symbol errors (limit 10), 11 receive errors (limit 10)"
        " since 2026-01-01 00:00:00 UTC"
    )


def test_few_symbol_errors_and_relay_errors_are_a_note_and_fewer_are_none() -> None:
    none = {"symbol_errors": 0, "rcv_switch_relay_errors": 0}
    before: Counted = {(LEAF_GUID, port): none for port in (1, 2, 3)}
    after = {
        (LEAF_GUID, 1): {"symbol_errors": 10, "rcv_switch_relay_errors": 100},
        (LEAF_GUID, 2): {"symbol_errors": 11, "rcv_switch_relay_errors": 0},
        (LEAF_GUID, 3): {"symbol_errors": 0, "rcv_switch_relay_errors": 1000},
    }
    notes = errors(before, after)
    assert [(str(one.severity), one.subject) for one in notes] == [("note", "leaf0:2"), ("note", "leaf0:3")]


def test_a_reset_counter_is_at_least_its_value() -> None:
    (one,) = errors({(LEAF_GUID, 77): {"rcv_errors": 60_000}}, {(LEAF_GUID, 77): {"rcv_errors": 500}})
    assert one.text.startswith("leaf0:77: at least 500 receive errors (limit 10) since")


def test_full_counters_are_a_note_for_all_their_ports() -> None:
    ports: Counted = {(LEAF_GUID, port): {"symbol_errors": 65_535, "xmit_bytes": 9} for port in range(1, 7)}
    (one,) = errors(ports, ports, frozenset({"symbol_errors", "xmit_bytes"}))
    assert (str(one.severity), one.count) == ("note", 6)
    assert one.text == (
        "leaf0:1, leaf0:2, leaf0:3, leaf0:4 and 2 more: "
        "the counter of symbol errors is full and counts no more: reset it"
    )


def test_link_downs_are_left_to_the_other_check_and_no_counters_are_no_finding() -> None:
    assert errors({(LEAF_GUID, 1): {"link_downed": 2}}, {(LEAF_GUID, 1): {"link_downed": 200}}) == []
    assert not check(Subject(fabric=fat_tree()), ["link-errors"])
    assert errors({(LEAF_GUID, 1): {"xmit_bytes": 2}}, {(LEAF_GUID, 1): {"xmit_bytes": 200}}) == []


def downs(grew: dict[tuple[int, int], int]) -> CounterDeltas:
    before: Counted = {port: {"link_downed": 2} for port in grew}
    after: Counted = {port: {"link_downed": 2 + count} for port, count in grew.items()}
    return deltas(sweep(0, before), sweep(10, after))


def found(counters: CounterDeltas | None, *interruptions: Interruption) -> list[Finding]:
    losses = Losses(cluster="toy", observation="o", interruptions=interruptions)
    subject = Subject(fabric=fat_tree(), counters=counters, losses=losses)
    return list(check(subject, ["flapping-links"]))


def gone(times: int, *ends: str | int) -> Interruption:
    names = ("source", "source_port", "target", "target_port")
    return Interruption(times=times, **dict(zip(names, ends, strict=True)))  # type: ignore[arg-type]


def test_both_ports_count_a_cable_that_went_down_and_it_is_one_finding() -> None:
    (one,) = found(downs({(LEAF_GUID, 1): 10, (ADAPTER_GUID, 1): 9}))
    assert (str(one.severity), one.count) == ("warning", 10)
    assert one.text == (
        "cable leaf0:1 - node00:1 went down 10 times by its counters since 2026-01-01 00:00:00 UTC"
    )


def test_the_two_downs_of_a_restart_are_no_finding() -> None:
    assert found(downs({(LEAF_GUID, 1): 2})) == []
    assert [one.count for one in found(downs({(LEAF_GUID, 1): 3}))] == [3]


def test_scans_and_counters_of_one_cable_are_one_finding_and_the_worst_is_first() -> None:
    lost = gone(4, "spine1", 2, "leaf1", 4), gone(2, "spine0", 2, "leaf1", 3)
    one, other = found(downs({(LEAF_GUID + 1, 4): 3, (SPINE_GUID, 1): 7}), *lost)
    assert (one.subject, one.count) == ("leaf0:3 - spine0:1", 7)
    assert other.subject == "leaf1:4 - spine1:2"
    assert other.text.endswith(
        "went down 3 times by its counters since 2026-01-01 00:00:00 UTC, 4 times in the scans"
    )


def test_a_port_without_a_cable_now_is_named_alone() -> None:
    (one,) = found(downs({(LEAF_GUID, 77): 5}))
    assert one.text.startswith("cable leaf0:77 went down 5 times")
    (scans,) = found(None, gone(3, "leaf0", -1, "gone", -1))
    assert scans.text == "cable gone - leaf0 went down 3 times in the scans"


SPINE = Vanished(kind="switch", devices=("spine9",), cables=2, since=at(10))
HOST = Vanished(kind="host", devices=("node99",), cables=1, since=at(10))
CABLE = Vanished(kind="cable", devices=("leaf0", "spine0"), ports=(3, 1), cables=1, since=at(20))


def vanished_of(*vanished: Vanished, plan: IntendedWiring | None = None) -> list[Finding]:
    losses = Losses(cluster="toy", observation="toy-1", vanished=vanished)
    return list(check(Subject(fabric=fat_tree(), losses=losses, plan=plan), ["vanished"]))


def test_switches_are_errors_and_hosts_and_cables_warnings() -> None:
    since = "since the scan of 2026-01-01 00:10:00 UTC"
    bundle = replace(CABLE, ports=(-1, -1), cables=3)
    assert [(str(one.severity), one.heading, one.subject, one.text, one.count) for one in vanished_of(
        HOST, SPINE, CABLE, bundle
    )] == [
        ("error", "vanished: switch", "spine9", f"switch spine9 is missing with 2 cables {since}", 1),
        ("warning", "vanished: host", "node99", f"host node99 is missing with 1 cable {since}", 1),
        ("warning", "vanished: cable", "leaf0:3 - spine0:1",
         "cable leaf0:3 - spine0:1 is missing since the scan of 2026-01-01 00:20:00 UTC", 1),
        ("warning", "vanished: cable", "leaf0 - spine0",
         "3 cables leaf0 - spine0 are missing since the scan of 2026-01-01 00:20:00 UTC", 3),
    ]  # fmt: skip
    assert vanished_of() == []


def test_the_intended_wiring_retires_what_it_lacks_and_reports_cables_itself() -> None:
    plan = IntendedWiring(
        source=("leaf0", "leaf0"),
        source_port=("3", "1"),
        target=("spine9", "node99"),
        target_port=("1", "1"),
        kind=("Data", "Data"),
    )
    assert [one.subject for one in vanished_of(HOST, SPINE, CABLE, plan=plan)] == ["spine9"]


def test_a_scan_that_lost_more_than_half_is_suspected_first_with_the_command_to_undo_it() -> None:
    gone = [replace(HOST, devices=(f"node{number}",)) for number in range(100, 109)]
    assert vanished_of(*gone[:8])[0].group == "host"  # 8 devices are left
    first, *others = vanished_of(*gone)
    assert (str(first.severity), first.group, first.subject, len(others)) == ("error", "scan", "toy", 9)
    assert first.text == (
        "only 8 of 17 hosts and switches are left: is this scan a part, or another machine's? Then delete "
        "it: almanac observation delete toy-1; else accept it: almanac cluster accept toy"
    )


WALKED = ("fattree2-64-traffic", "irregular-16sw-updown", "torus-4x4x4-dor")
ENDS = {"no entry": "unrouted", "without a cable": "not cabled", "loop through": "loops"}
ENDS["another device"] = "wrong"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["fattree2-64-traffic", "irregular-16sw-updown", "irregular-16sw-lmc1"])
def test_walks_that_do_not_arrive_are_counted_as_a_slow_walk_counts_them(name: str, seed: int) -> None:
    fabric = checked_fabrics.broken(name, seed)
    expected = Counter(end for end, _ in all_walks(fabric))
    del expected["delivered"]
    counted: Counter[str] = Counter()
    for finding in findings_of(fabric, "reachability"):
        (end,) = {end for words, end in ENDS.items() if words in finding.text}
        counted[end] += finding.count
        assert finding.severity is Severity.ERROR
    assert counted == expected


def test_a_finding_of_a_loop_names_one_of_its_switches_and_a_path_into_it() -> None:
    fabric = infiniband("fattree2-64-traffic")
    tables, bound = tables_of(fabric), bound_tables(fabric)
    leaf, spine = (
        int(np.flatnonzero(tables.switch_guid == fabric.guid[v])[0])
        for v in fabric.vertices(["leaf01", "spine01"], kind="switch")
    )
    onward = np.where(bound.port_link >= 0, bound.link_switch[bound.port_link], -1)
    ports, lid = np.array(tables.ports), int(np.flatnonzero(bound.lid_port >= 0)[0])
    for switch, other in ((leaf, spine), (spine, leaf)):
        (ports[switch, lid],) = np.flatnonzero(onward[switch] == other)
    (finding,) = findings_of(replace(fabric, tables=replace(tables, ports=ports)), "reachability")
    assert "packets loop through leaf01" in finding.text or "packets loop through spine01" in finding.text
    assert f"to LID {lid} of" in finding.text


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("missing", [0, 3])
def test_ibdmchk_finds_the_pairs_without_a_way(missing: int, tmp_path: Path) -> None:
    """Routes of some leaf switches to one host are taken away: as many pairs a leaf as it has hosts."""
    require("ibdmchk")
    fabric = infiniband("fattree2-64-traffic")
    tables, bound = tables_of(fabric), bound_tables(fabric)
    ports = np.array(tables.ports)
    lid = int(np.flatnonzero(bound.lid_port >= 0)[0])
    to_host = (bound.port_link >= 0) & (bound.link_port[bound.port_link] >= 0)
    leaves = np.flatnonzero(to_host.any(axis=1)).tolist()
    others = [s for s in leaves if bound.link_port[bound.port_link[s, ports[s, lid]]] < 0]
    ports[others[:missing], lid] = NO_ROUTE
    cut = replace(fabric, tables=replace(tables, ports=ports))
    output = checked_fabrics.ibdmchk(cut, tmp_path)
    match = re.search(r"-E- Found (\d+) missing paths", output)
    lost = int(match[1]) if match else 0
    hanging = to_host[others].sum(axis=1).tolist()
    assert lost == sum(hanging[:missing])
    assert sum(finding.count for finding in findings_of(cut, "reachability")) == missing


@pytest.mark.parametrize("name", WALKED)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_waits_are_those_of_all_walks(name: str, seed: int | None) -> None:
    fabric = infiniband(name) if seed is None else checked_fabrics.broken(name, seed)
    bound = bound_tables(fabric)
    channels = switch_channels(fabric, bound)
    graph = waiting_graph(bound, channels)
    expected: nx.DiGraph[int] = nx.DiGraph()
    for _, links in all_walks(fabric):
        between = [link for link in links if bound.link_switch[link] >= 0]
        expected.add_edges_from(pairwise(between))
    holds, wanted = (channels[ends].tolist() for ends in graph.nonzero())
    got = set(zip(holds, wanted, strict=True))
    # a walk that goes astray comes back to where it was: its last wait may be seen once more
    assert got >= set(expected.edges)
    if seed is None:
        assert got == set(expected.edges)
        knots = sorted(len(knot) for knot in nx.strongly_connected_components(expected) if len(knot) > 1)
        assert sorted(finding.count for finding in findings_of(fabric, "credit-loops")) == knots


@pytest.mark.parametrize("name", SCANS)
def test_tables_of_a_subnet_manager_deliver_everything_and_a_reported_cycle_is_a_cycle(name: str) -> None:
    assert not findings_of(infiniband(name), "reachability")
    for finding in findings_of(infiniband(name), "credit-loops"):
        cables = finding.text.split(": ", 1)[1].split("; ")
        ends = [re.fullmatch(r"(\S+):\d+ - (\S+):\d+", cable) for cable in cables]
        switches = [(end[1], end[2]) for end in ends if end]
        assert len(switches) == len(cables)
        for (_, arrives), (leaves, _) in zip(switches, [*switches[1:], switches[0]], strict=True):
            assert arrives == leaves


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("name", WALKED)
def test_ibdmchk_finds_credit_loops_where_we_do(name: str, tmp_path: Path) -> None:
    require("ibdmchk")
    fabric = infiniband(name)
    output = checked_fabrics.ibdmchk(fabric, tmp_path)
    hosts = len(fabric.hosts)
    assert f"Scanned:{hosts * (hosts - 1)} CA to CA paths" in output
    found = bool(findings_of(fabric, "credit-loops"))
    assert ("Found credit loop" in output, "no credit loops found" in output) == (found, not found)
