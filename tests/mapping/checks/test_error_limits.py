"""Limits of error counters: what they allow in which time, and which growth is harmless."""

from __future__ import annotations

from datetime import timedelta

import pytest

from mapping.checks.error_limits import DEFAULT_LIMITS, WORDS, ErrorLimits, port_errors
from registry.errors import InvalidValue, UnknownName
from registry.model import CounterSweep, deltas
from registry.model.counters import ERRORS
from tests.support.fat_tree import ADAPTER_GUID, LEAF_GUID, at, fat_tree

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
    ends = [
        (fabric.names[links.source[row]], int(links.source_port[row])) for row in errors.link[1:].tolist()
    ]
    assert ends == [("node00", 1), ("leaf0", 1)]


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
