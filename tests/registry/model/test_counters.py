"""Counter sweeps and what lies between two: resets, saturation, clocks, and the rates of links."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.errors import InvalidValue, UnknownName
from registry.model import COUNTERS, NOT_COUNTED, CounterSweep, deltas, growth, link_rates, total
from registry.model.counter_deltas import BY_RECEIVER, BY_SENDER, UNKNOWN, have_last_values
from registry.model.counters import ERRORS, TRAFFIC
from tests.support.fat_tree import ADAPTER_GUID, LEAF_GUID, SPINE_GUID, at, fat_tree

Shown = dict[tuple[int, int, int], dict[str, tuple[int, bool]]]


def sweep(minute: float, shown: dict[tuple[int, int], dict[str, int]], full: str = "") -> CounterSweep:
    """Counters of ports by (GUID, port); the one named `full` is saturated."""
    ports: Shown = {
        (guid, 0, port): {name: (value, name == full) for name, value in counters.items()}
        for (guid, port), counters in shown.items()
    }
    return CounterSweep.of(at(minute), ports)


def grown(before: CounterSweep, after: CounterSweep) -> dict[tuple[int, int, str], tuple[int, bool]]:
    """Growth and whether it is a lower bound, where it is known."""
    found = deltas(before, after)
    return {
        (int(found.guid[row]), int(found.port[row]), name): (
            int(found.amount[row, column]),
            bool(found.at_least[row, column]),
        )
        for row in range(len(found))
        for column, name in enumerate(found.names)
        if found.amount[row, column] != NOT_COUNTED
    }


def test_counters_grow_by_their_difference() -> None:
    before = sweep(0, {(1, 1): {"xmit_bytes": 100, "symbol_errors": 1}, (2, 1): {"xmit_bytes": 5}})
    after = sweep(1, {(1, 1): {"xmit_bytes": 160, "symbol_errors": 1}, (3, 1): {"xmit_bytes": 9}})
    assert grown(before, after) == {(1, 1, "xmit_bytes"): (60, False), (1, 1, "symbol_errors"): (0, False)}
    assert deltas(before, after).peak.tolist() == [[1.0, 0.0]]
    assert deltas(before, after).seconds == 60
    with pytest.raises(InvalidValue, match=r"CounterDeltas\.end.*after the start"):
        deltas(after, after)
    with pytest.raises(InvalidValue, match=r"CounterDeltas\.end"):
        replace(deltas(before, after), end=at(0))


def test_a_reset_or_a_full_counter_leaves_a_lower_bound() -> None:
    # what `perfquery -R` did to port 10 of leaf01 in the sample: all but one counter went to zero
    before = sweep(0, {(1, 1): {"xmit_bytes": 100, "rcv_packets": 50, "symbol_errors": 3}})
    after = sweep(1, {(1, 1): {"xmit_bytes": 70, "rcv_packets": 60, "symbol_errors": 4}})
    assert grown(before, after) == {
        (1, 1, "xmit_bytes"): (70, True),
        (1, 1, "rcv_packets"): (10, True),
        (1, 1, "symbol_errors"): (1, False),
    }
    before = sweep(0, {(1, 1): {"xmit_bytes": 100, "xmit_wait": 7}})
    after = sweep(1, {(1, 1): {"xmit_bytes": 900, "xmit_wait": 9}}, "xmit_bytes")
    assert grown(before, after) == {(1, 1, "xmit_bytes"): (800, True), (1, 1, "xmit_wait"): (2, False)}
    still = sweep(2, {(1, 1): {"xmit_bytes": 900, "xmit_wait": 9}}, "xmit_bytes")
    assert grown(after, still)[1, 1, "xmit_bytes"] == (0, True)
    whole = [sweep(k, {(1, 1): {"rcv_errors": 9}}, full) for k, full in enumerate(("", "rcv_errors", ""))]
    assert total(tuple(growth(whole[:2]))).saturated.tolist() == [[True]]
    assert total(tuple(growth(whole))).saturated.tolist() == [[False]]  # known at the end only
    unknown = sweep(2, {(1, 1): {"xmit_wait": 1}, (2, 1): {"rcv_errors": 1}})
    later = sweep(3, {(1, 1): {"xmit_wait": 2}, (2, 1): {"rcv_errors": 2}})
    assert total(tuple(growth([*whole[:2], unknown, later]))).saturated[0].any()


def ports(*values: int) -> dict[tuple[int, int], dict[str, int]]:
    return {(guid + 1, 1): {"xmit_bytes": value} for guid, value in enumerate(values)}


AFTER_100_200_300 = {
    "all a little less": (90, 180, 300),
    "one more": (90, 201, 290),
    "reset": (10, 20, 30),
    "idle": (100, 200, 300),
    "one port reset": (100, 200, 290),
    "all reset to half": (50, 100, 150),
    "one of two ports": (90, 200),
}


@pytest.mark.parametrize("name", AFTER_100_200_300)
def test_sweeps_in_the_wrong_order_have_no_amounts(name: str) -> None:
    found = deltas(sweep(0, ports(100, 200, 300)), sweep(1, ports(*AFTER_100_200_300[name])))
    backwards = name == "all a little less"
    assert (found.backwards, bool((found.amount == NOT_COUNTED).all())) == (backwards, backwards)


NAMED = st.sampled_from(["xmit_bytes", "rcv_packets", "xmit_wait", "link_downed"])
PORTS = st.tuples(st.integers(1, 3), st.integers(1, 2))
SWEEPS = st.dictionaries(PORTS, st.dictionaries(NAMED, st.integers(0, 40)), min_size=1)


@given(SWEEPS, SWEEPS)
def test_deltas_agree_with_a_port_by_port_reading(one: Any, other: Any) -> None:
    before, after = sweep(0, one), sweep(1, other)
    found = deltas(before, after)
    if found.backwards:
        return
    expected = {}
    for port in one.keys() & other.keys():
        both = one[port].keys() & other[port].keys()
        for name in both:
            was, now = one[port][name], other[port][name]
            kind = [other_name for other_name in both if (other_name in TRAFFIC) == (name in TRAFFIC)]
            reset = any(other[port][n] < one[port][n] for n in kind)
            expected[(*port, name)] = (now if now < was else now - was, reset)
    assert grown(before, after) == expected


@given(st.lists(SWEEPS, min_size=3, max_size=3))
def test_a_total_is_the_sum_of_its_parts(three: list[Any]) -> None:
    sweeps = [sweep(minute, shown) for minute, shown in enumerate(three)]
    parts = [deltas(sweeps[0], sweeps[1]), deltas(sweeps[1], sweeps[2])]
    whole = total(parts)
    assert (whole.start, whole.end, whole.pieces) == (at(0), at(2), 2)
    cells: dict[tuple[int, int, str], list[tuple[int, bool]]] = {}
    for before, after in pairwise(sweeps):
        for key, cell in grown(before, after).items():
            cells.setdefault(key, []).append(cell)
    for row in range(len(whole)):
        for column, name in enumerate(whole.names):
            shown = cells.get((int(whole.guid[row]), int(whole.port[row]), name), [])
            expected = sum(amount for amount, _ in shown) if shown else NOT_COUNTED
            assert whole.amount[row, column] == expected
            assert whole.at_least[row, column] == any(least for _, least in shown)
            assert whole.covered[row, column] == 60 * len(shown)


def test_each_counter_is_counted_from_where_it_was_read_last() -> None:
    port = (1, 1)
    sweeps = [
        sweep(0, {port: {"xmit_bytes": 100}}),
        sweep(1, {port: {"symbol_errors": 3}}),
        sweep(2, {port: {"xmit_bytes": 160}}),
        sweep(3, {port: {"symbol_errors": 5}, (2, 1): {"xmit_bytes": 7}}),
        sweep(5, {port: {"xmit_bytes": 400}, (2, 1): {"xmit_bytes": 10}}),
    ]
    whole = total(list(growth(sweeps)))
    assert whole.names == ("xmit_bytes", "symbol_errors")
    assert whole.amount.tolist() == [[300, 2], [3, NOT_COUNTED]]
    assert whole.covered.tolist() == [[300, 120], [120, 0]]
    assert whole.peak.tolist() == [[240 / 180, 2 / 120], [3 / 120, 0]]
    late = total(list(growth(sweeps, after=at(2))))
    assert late.amount.tolist() == [[240, 2], [3, NOT_COUNTED]]


def test_a_sweep_in_the_wrong_place_does_not_disturb_what_comes_next() -> None:
    sweeps = [sweep(0, ports(100, 200)), sweep(1, ports(90, 180)), sweep(2, ports(160, 230))]
    parts = list(growth(sweeps))
    assert [part.backwards for part in parts] == [True, False]
    assert total(parts).amount.tolist() == [[60], [30]]
    assert total(parts).covered.tolist() == [[120], [120]]


def test_two_sweeps_that_complete_each_other_become_one() -> None:
    traffic = sweep(0, {(1, 1): {"xmit_bytes": 1}, (1, 2): {"xmit_bytes": 2}})
    errors = sweep(1, {(1, 2): {"symbol_errors": 3}})
    both = traffic.joined(errors)
    assert both is not None
    assert (both.at, both.names) == (at(1), ("xmit_bytes", "symbol_errors"))
    assert both.values.tolist() == [[1, NOT_COUNTED], [2, 3]]
    assert traffic.joined(sweep(1, {(1, 2): {"xmit_bytes": 2}})) is None


def test_a_device_that_is_named_by_its_lid_gets_its_guid_from_the_fabric() -> None:
    fabric = fat_tree()
    shown: Shown = {(0, 1, 3): {"xmit_bytes": (1, False)}, (0, 5, 1): {"xmit_bytes": (2, False)}}
    named = CounterSweep.of(at(0), shown).with_guids(fabric)
    found = dict(zip(named.guid.tolist(), named.port.tolist(), strict=True))
    assert found == {SPINE_GUID: 3, ADAPTER_GUID: 1}
    strange = {(0, 99, port): {"xmit_bytes": (port, False)} for port in (1, 2)}
    more = CounterSweep.of(at(0), {**shown, **strange, (0xBAD, 0, 1): {"xmit_bytes": (9, False)}})
    assert more.unknown_devices(fabric) == ("LID 99", "GUID 0x0000000000000bad")
    assert more.devices == ("LID 1", "LID 5", "LID 99", "GUID 0x0000000000000bad")
    expected = sorted([(SPINE_GUID, 1), (ADAPTER_GUID, 2), (0xBAD, 9)])
    assert more.with_guids(fabric).column("xmit_bytes").tolist() == [value for _, value in expected]
    with pytest.raises(InvalidValue, match="twice"):
        CounterSweep.of(at(0), {**shown, (SPINE_GUID, 0, 3): {"xmit_bytes": (1, False)}}).with_guids(fabric)


def test_rates_are_those_of_the_senders_else_of_the_receivers() -> None:
    fabric = fat_tree()
    leaf, host = (LEAF_GUID, 1), (ADAPTER_GUID, 1)
    before = sweep(0, {leaf: {"xmit_bytes": 0, "rcv_bytes": 0, "xmit_wait": 0, "pfc_rcv_pauses": 0}})
    after = sweep(1, {leaf: {"xmit_bytes": 6000, "rcv_bytes": 600, "xmit_wait": 120, "pfc_rcv_pauses": 60}})
    rates = link_rates(fabric, deltas(before, after))
    both = zip(fabric.links.source, fabric.links.target, strict=True)
    ends = [(fabric.names[a], fabric.names[b]) for a, b in both]
    down, up = ends.index(("leaf0", "node00")), ends.index(("node00", "leaf0"))
    assert (rates.bytes_per_second[down], rates.by[down]) == (100.0, BY_SENDER)
    assert (rates.bytes_per_second[up], rates.by[up]) == (10.0, BY_RECEIVER)
    assert rates.share[down] == 100.0 / fabric.links.capacity[down]
    assert (rates.wait_ticks_per_second[down], rates.pauses_per_second[down]) == (2.0, 1.0)
    assert np.isnan(rates.wait_ticks_per_second[up])
    others = np.delete(np.arange(len(ends)), [down, up])
    assert np.isnan(rates.bytes_per_second[others]).all()
    assert (rates.by[others] == UNKNOWN).all()
    assert not rates.at_least.any()
    some = sweep(1, {leaf: {"rcv_bytes": 600}, host: {"xmit_bytes": 660}})
    none = sweep(0, {leaf: {"rcv_bytes": 0}, host: {"xmit_bytes": 0}})
    assert link_rates(fabric, deltas(none, some)).bytes_per_second[up] == 11.0
    before, after = sweep(0, {leaf: {"xmit_bytes": 900}}), sweep(1, {leaf: {"xmit_bytes": 60}})
    reset = link_rates(fabric, deltas(before, after))
    assert reset.bytes_per_second[reset.at_least].tolist() == [1.0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        *(({"at": at(0).replace(tzinfo=None)}, "time zone"), ({"values": [[-2]]}, "negative")),
        *(({"values": [[1, 2]]}, "shape"), ({"names": ("bogus",)}, "must be counters")),
        *(({"port": [256]}, "outside"), ({"lid": [7]}, "GUID or by its LID")),
        ({"guid": [0]}, "GUID or by its LID"),
    ],
)
def test_a_sweep_that_cannot_be_is_refused(change: dict[str, Any], reason: str) -> None:
    good: dict[str, Any] = {"at": at(0), "guid": [1], "port": [1], "names": ("xmit_bytes",), "values": [[5]]}
    assert len(CounterSweep(**good)) == 1
    with pytest.raises(InvalidValue, match=reason):
        CounterSweep(**(good | change))


def test_counters_are_read_only_and_unknown_ones_named() -> None:
    one = sweep(0, ports(1))
    assert not one.values.flags.writeable
    assert one.column("xmit_wait").tolist() == [NOT_COUNTED]
    with pytest.raises(UnknownName, match="xmit_wait"):
        one.column("xmit_wiat")
    assert len(set(COUNTERS)) == len(COUNTERS)
    assert set(ERRORS).isdisjoint(TRAFFIC)


def errors_of(minute: float, shown: dict[tuple[int, int], dict[str, int]]) -> CounterSweep:
    return replace(sweep(minute, shown), errors_only=True)


def test_errors_that_a_list_has_for_the_first_time_grew_from_zero_since_the_list_before() -> None:
    lists = [
        errors_of(0, {(1, 1): {"symbol_errors": 7}}),
        sweep(3, {(2, 2): {"xmit_bytes": 9}}),
        errors_of(5, {(1, 1): {"symbol_errors": 9, "link_downed": 3}, (2, 2): {"rcv_errors": 40}}),
        errors_of(10, {}),
        errors_of(15, {(1, 1): {"symbol_errors": 10}, (3, 1): {"rcv_errors": 1, "xmit_wait": 99}}),
    ]
    whole = total(tuple(growth(lists)))
    assert (whole.start, whole.end) == (at(0), at(15))
    amounts = {
        (int(whole.guid[row]), name): (int(amount), float(whole.covered[row, column]))
        for row in range(len(whole))
        for column, (name, amount) in enumerate(zip(whole.names, whole.amount[row].tolist(), strict=True))
        if amount != NOT_COUNTED
    }
    assert amounts == {
        (1, "symbol_errors"): (3, 900.0),
        (1, "link_downed"): (3, 300.0),
        (2, "rcv_errors"): (40, 300.0),
        (3, "rcv_errors"): (1, 300.0),  # since the list without errors; waiting is no error
    }


def test_sums_of_many_parts_are_those_of_all_at_once_and_those_of_no_errors_nothing() -> None:
    (none,) = growth([errors_of(0, {}), errors_of(5, {})])
    assert (len(none), none.start, none.end) == (0, at(0), at(5))
    assert len(total([none, none])) == 0
    assert list(growth([sweep(0, {}), errors_of(5, {(1, 1): {"rcv_errors": 5}})])) == []
    sweeps = [sweep(minute, {(1, 1): {"rcv_errors": minute**2, "xmit_bytes": 5}}) for minute in range(40)]
    whole = total(growth(sweeps))
    assert (whole.pieces, whole.column("rcv_errors").tolist()) == (39, [39**2])
    assert whole.covered.tolist() == [[39 * 60.0, 39 * 60.0]]


@given(st.lists(st.tuples(SWEEPS, st.booleans()), max_size=5))
def test_a_sweep_has_last_values_if_no_later_one_has_all_its_counters(shown: Any) -> None:
    sweeps = [replace(sweep(minute, one), errors_only=listed) for minute, (one, listed) in enumerate(shown)]
    lists = [number for number, (_, listed) in enumerate(shown) if listed]
    expected = []
    for number, (one, _) in enumerate(shown):
        later: set[tuple[Any, str]] = set()
        for other, _ in shown[number + 1 :]:
            later |= {(port, name) for port, counters in other.items() for name in counters}
        here = {(port, name) for port, counters in one.items() for name in counters}
        expected.append(bool(here - later) or number == max(lists, default=-1))
    assert have_last_values(sweeps) == expected
