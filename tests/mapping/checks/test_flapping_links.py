"""Cables that went down repeatedly, by their counters or in the scans."""

from __future__ import annotations

from mapping.checks.catalog import check
from mapping.checks.finding import Finding, Subject
from registry.model import CounterDeltas, deltas
from registry.model.interruption import Interruption
from tests.mapping.checks.test_error_limits import Counted, sweep
from tests.support.fat_tree import ADAPTER_GUID, LEAF_GUID, SPINE_GUID, fat_tree


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
