"""Ports whose errors grow beyond their limits, full counters, and cables that went down repeatedly."""

from __future__ import annotations

from mapping.checks.catalog import check
from mapping.checks.finding import Finding, Subject
from registry.model import CounterDeltas, deltas
from registry.model.interruption import Interruption
from tests.mapping.checks.test_error_limits import Counted, sweep
from tests.support.fat_tree import ADAPTER_GUID, LEAF_GUID, SPINE_GUID, fat_tree


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
    before: Counted = {
        (LEAF_GUID, port): {"symbol_errors": 0, "rcv_switch_relay_errors": 0} for port in (1, 2, 3)
    }
    after = {
        (LEAF_GUID, 1): {"symbol_errors": 10, "rcv_switch_relay_errors": 100},
        (LEAF_GUID, 2): {"symbol_errors": 11, "rcv_switch_relay_errors": 0},
        (LEAF_GUID, 3): {"symbol_errors": 0, "rcv_switch_relay_errors": 1000},
    }
    notes = errors(before, after)
    assert [(str(one.severity), one.subject) for one in notes] == [
        ("note", "leaf0:2"),
        ("note", "leaf0:3"),
    ]


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
    subject = Subject(fabric=fat_tree(), counters=counters, interruptions=interruptions)
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
