"""Limits of error counters, and checks of counters: errors, full counters, cables that went down."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mapping.checks.catalog import check
from mapping.checks.error_limits import DEFAULT_LIMITS, WORDS, ErrorLimits, port_errors
from mapping.checks.finding import Finding, Subject
from registry.errors import InvalidValue, UnknownName
from registry.model import CounterDeltas, CounterSweep, deltas
from registry.model.counters import ERRORS
from registry.model.interruption import Interruption, Losses
from tests.support.fat_tree import ADAPTER_GUID, LEAF_GUID, SPINE_GUID, at, fat_tree

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
