"""Ports whose errors grow beyond their limits, and full counters."""

from __future__ import annotations

from mapping.checks.catalog import check
from mapping.checks.finding import Finding, Subject
from registry.model import deltas
from tests.mapping.checks.test_error_limits import Counted, sweep
from tests.support.fat_tree import LEAF_GUID, fat_tree


def found(before: Counted, after: Counted, full: frozenset[str] = frozenset()) -> list[Finding]:
    grown = deltas(sweep(0, before), sweep(10, after, full))
    return list(check(Subject(fabric=fat_tree(), counters=grown), ["link-errors"]))


def test_errors_that_grow_between_two_sweeps_are_a_warning() -> None:
    (one,) = found(
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
    notes = found(before, after)
    assert [(str(one.severity), one.subject) for one in notes] == [
        ("note", "leaf0:2"),
        ("note", "leaf0:3"),
    ]


def test_a_reset_counter_is_at_least_its_value() -> None:
    (one,) = found({(LEAF_GUID, 77): {"rcv_errors": 60_000}}, {(LEAF_GUID, 77): {"rcv_errors": 500}})
    assert one.text.startswith("leaf0:77: at least 500 receive errors (limit 10) since")


def test_full_counters_are_a_note_for_all_their_ports() -> None:
    ports: Counted = {(LEAF_GUID, port): {"symbol_errors": 65_535, "xmit_bytes": 9} for port in range(1, 7)}
    (one,) = found(ports, ports, frozenset({"symbol_errors", "xmit_bytes"}))
    assert (str(one.severity), one.count) == ("note", 6)
    assert one.text == (
        "leaf0:1, leaf0:2, leaf0:3, leaf0:4 and 2 more: "
        "the counter of symbol errors is full and counts no more: reset it"
    )


def test_link_downs_are_left_to_the_other_check_and_no_counters_are_no_finding() -> None:
    assert found({(LEAF_GUID, 1): {"link_downed": 2}}, {(LEAF_GUID, 1): {"link_downed": 200}}) == []
    assert not check(Subject(fabric=fat_tree()), ["link-errors"])
    assert found({(LEAF_GUID, 1): {"xmit_bytes": 2}}, {(LEAF_GUID, 1): {"xmit_bytes": 200}}) == []
