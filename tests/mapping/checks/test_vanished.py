"""What earlier scans showed: its severity, its words, intended wiring, and scans of a part."""

from __future__ import annotations

from dataclasses import replace

from mapping.checks.catalog import check
from mapping.checks.finding import Finding, Subject
from registry.model import IntendedWiring
from registry.model.interruption import Losses, Vanished
from tests.support.fat_tree import at, fat_tree

SPINE = Vanished(kind="switch", devices=("spine9",), cables=2, since=at(10))
HOST = Vanished(kind="host", devices=("node99",), cables=1, since=at(10))
CABLE = Vanished(kind="cable", devices=("leaf0", "spine0"), ports=(3, 1), cables=1, since=at(20))


def found(*vanished: Vanished, plan: IntendedWiring | None = None) -> list[Finding]:
    losses = Losses(cluster="toy", observation="toy-1", vanished=vanished)
    return list(check(Subject(fabric=fat_tree(), losses=losses, plan=plan), ["vanished"]))


def test_switches_are_errors_and_hosts_and_cables_warnings() -> None:
    since = "since the scan of 2026-01-01 00:10:00 UTC"
    bundle = replace(CABLE, ports=(-1, -1), cables=3)
    assert [(str(one.severity), one.heading, one.subject, one.text, one.count) for one in found(
        HOST, SPINE, CABLE, bundle
    )] == [
        ("error", "vanished: switch", "spine9", f"switch spine9 is missing with 2 cables {since}", 1),
        ("warning", "vanished: host", "node99", f"host node99 is missing with 1 cable {since}", 1),
        ("warning", "vanished: cable", "leaf0:3 - spine0:1",
         "cable leaf0:3 - spine0:1 is missing since the scan of 2026-01-01 00:20:00 UTC", 1),
        ("warning", "vanished: cable", "leaf0 - spine0",
         "3 cables leaf0 - spine0 are missing since the scan of 2026-01-01 00:20:00 UTC", 3),
    ]  # fmt: skip
    assert found() == []


def test_the_intended_wiring_retires_what_it_lacks_and_reports_cables_itself() -> None:
    plan = IntendedWiring(
        source=("leaf0", "leaf0"),
        source_port=("3", "1"),
        target=("spine9", "node99"),
        target_port=("1", "1"),
        kind=("Data", "Data"),
    )
    assert [one.subject for one in found(HOST, SPINE, CABLE, plan=plan)] == ["spine9"]


def test_a_scan_that_lost_more_than_half_is_suspected_first_with_the_command_to_undo_it() -> None:
    gone = [replace(HOST, devices=(f"node{number}",)) for number in range(100, 109)]
    assert found(*gone[:8])[0].group == "host"  # 8 devices are left
    first, *others = found(*gone)
    assert (str(first.severity), first.group, first.subject, len(others)) == ("error", "scan", "toy", 9)
    assert first.text == (
        "only 8 of 17 hosts and switches are left: is this scan a part, or another machine's? Then delete "
        "it: almanac observation delete toy-1; else accept it: almanac cluster accept toy"
    )
