"""Plans as sites write them against scans with directors: what is reported, and what is not."""

from __future__ import annotations

import pytest

from mapping.checks.catalog import check
from mapping.checks.finding import Finding, Subject
from mapping.checks.wiring.differences import compare
from registry.model import Fabric
from tests.mapping.checks.test_wiring import TEXT, TREE, plan_of
from tests.support.ibnetdiscover_scans import scanned

LEAF, BOARD, OTHER = "MF0;sat-20ib0:MQM8700/U1", "MF0;sat-ib1:MCS8500/L16/U2", "MF0;sat-ib1:MCS8500/L17/U2"
SPINE = "MF0;sat-ib1:MCS8500/S01/U1"
NAMELESS = "MT4123 ConnectX6   Mellanox Technologies"
SITE = (
    (LEAF, 1, "SAT37 ibp11s0f0", 1),
    (LEAF, 2, "SAT37 ibp203s0f0", 1),
    (LEAF, 21, BOARD, 20),
    (LEAF, 22, OTHER, 20),
    (BOARD, 30, SPINE, 1),
    (OTHER, 30, SPINE, 2),
)
TWO_NODES = ((LEAF, 5, "node03.one.org mlx5_0", 1), (LEAF, 6, "node03.two.org mlx5_0", 1))
HEAD = "#StartDevice,StartPort,EndDevice,EndPort,LinkType"
PLAN = (
    "SAT37,SAT37 ibp11s0f0,SAT-20IB0,Port 1, Data",
    "SAT37,SAT37 ibp203s0f0,SAT-20IB0,Port 2, Data",
    "SAT-20IB0,Port 21,SAT-IB1,Blade 16_Port 2/20,Data",
    "SAT-20IB0,Port 22,SAT-IB1,Blade 17_Port 2/20,Data",
)
CONFLICT = "SAT37,SAT37 ibp75s0f0,SAT-20IB0,Port 2,Data"


def findings(fabric: Fabric, *lines: str, head: str = HEAD) -> list[Finding]:
    return list(check(Subject(fabric=fabric, plan=plan_of("\n".join([head, *lines]))), ["wiring"]))


def test_a_site_with_a_director_is_as_planned_also_if_a_cable_is_listed_from_both_ends() -> None:
    assert findings(scanned(*SITE), *PLAN) == []
    both = "SAT-IB1,Blade 16_Port 2/20,SAT-20IB0,Port 21,Data"
    assert findings(scanned(*SITE), *PLAN, both) == []


RAILS = "SAT37 ibp11s0f0:1 - sat-20ib0:{}, SAT37 ibp203s0f0:1 - sat-20ib0:{}"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            (PLAN[0], PLAN[1].replace("ibp203s0f0", "ibp203s0f1"), *PLAN[2:]),
            "1 wrong port, warning: in the wrong port: "
            "SAT37 ibp203s0f0:1 - sat-20ib0:2 instead of SAT37 ibp203s0f1 - sat-20ib0:2",
        ),
        (
            (PLAN[0].replace("Port 1,", "Port 2,"), PLAN[1].replace("Port 2,", "Port 1,"), *PLAN[2:]),
            f"2 wrong port, warning: swapped: {RAILS.format(1, 2)} instead of {RAILS.format(2, 1)}",
        ),
        (
            (*PLAN[:3], PLAN[3].replace("Blade 17", "Blade 18")),
            "1 wrong port, warning: in the wrong port: "
            "sat-20ib0:22 - sat-ib1 L17/U2:20 instead of sat-20ib0:22 - sat-ib1 L18/U2:20",
        ),
        (
            PLAN[2:],  # of the switches only: the host's two cables are left
            "2 plan, note: 2 cables lead from planned devices to devices that the intended wiring does not "
            f"mention: {RAILS.format(1, 2)}",
        ),
        (
            (*PLAN, *(f"SAT99,SAT99 ibp1{k}s0f0,SAT-20IB0,Port {30 + k},Data" for k in range(4))),
            "4 missing, warning: SAT99 is not in the fabric: 4 planned cables missing: SAT99 ibp10s0f0 - "
            "sat-20ib0:30, SAT99 ibp11s0f0 - sat-20ib0:31, SAT99 ibp12s0f0 - sat-20ib0:32 and 1 more",
        ),
        (
            (*PLAN, "SAT37,ibp12s0f0,SAT-20IB0,Port 30,Data"),
            "1 missing, warning: the planned cable SAT37 ibp12s0f0 - sat-20ib0:30 is missing",
        ),
        (
            tuple(line.replace("SAT", "DSM") for line in PLAN),
            "3 plan, error: the fabric has 0 of the 3 devices of the intended wiring (it lacks DSM-20IB0, "
            "DSM-IB1, DSM37, for example): is this the plan of another cluster, or is most of it off?",
        ),
        (
            (*PLAN, "node03,mlx5_0,SAT-20IB0,Port 7,Data"),
            "2 plan, warning: the planned name node03 fits several devices: node03.one.org, node03.two.org; "
            "not compared",
        ),
        (
            (*PLAN, CONFLICT),
            "1 plan, warning: 1 port has several cables in the intended wiring, for example SAT-20IB0 Port 2 "
            "(2 cables)",
        ),
        (
            (*PLAN, "SAT37,eth0,mgmt1,Port 3,Ethernet", "SAT38,eth0,mgmt1,Port 4,Ethernet"),
            "2 plan, note: 2 planned cables are not of kind Data and not compared",
        ),
        (
            (PLAN[0].replace("Port 1,", "abra,"), PLAN[1].replace("SAT37 ibp203s0f0", "cadabra"), *PLAN[2:]),
            "2 plan, note: 2 planned ports are not understood, any port of the device is accepted: "
            "SAT-20IB0 abra, SAT37 cadabra",
        ),
    ],
    ids=[
        *("wrong adapter", "crossed rails", "another board", "not mentioned", "device off", "missing"),
        *("another cluster", "ambiguous name", "two cables in a port", "other kind", "unknown port"),
    ],
)
def test_what_differs_from_the_plan_is_one_finding(lines: tuple[str, ...], expected: str) -> None:
    (finding,) = findings(scanned(*SITE, *(TWO_NODES if "node03" in expected else ())), *lines)
    assert f"{finding.count} {finding.group}, {finding.severity}: {finding.text}" == expected
    assert finding.check == "wiring"
    assert finding.subject == "SAT99" or "SAT99" not in expected


def test_a_port_with_two_planned_cables_is_a_conflict_not_a_missing_cable() -> None:
    pulled = findings(scanned(SITE[0], *SITE[2:]), *PLAN, CONFLICT)
    assert [one.group for one in pulled] == ["missing", "missing", "plan"]


def test_a_port_that_another_device_took() -> None:
    """As at a real site: the cable is in the next port, a server that is not planned in its own."""
    fabric = scanned(*SITE[:1], (LEAF, 3, "SAT37 ibp203s0f0", 1), (LEAF, 2, "ufm01 HCA-1", 1), *SITE[2:])
    moved, unexpected = findings(fabric, *PLAN)
    assert (moved.group, unexpected.group) == ("wrong port", "unexpected")
    assert moved.text == (
        "in the wrong port: SAT37 ibp203s0f0:1 - sat-20ib0:3 instead of SAT37 ibp203s0f0:1 - sat-20ib0:2"
    )
    assert unexpected.text == "the cable sat-20ib0:2 - ufm01 HCA-1:1 is not planned"


def test_devices_that_the_plan_does_not_mention_are_one_note() -> None:
    more = [(LEAF, 5 + k, f"new{k:02d} mlx5_0", 1) for k in range(10)]
    elsewhere = ("leaf99", 1, "far01 mlx5_0", 1)
    (finding,) = findings(scanned(*SITE, *more, elsewhere, ("leaf99", 2, LEAF, 30)), *PLAN)
    assert (finding.group, str(finding.severity), finding.count) == ("plan", "note", 11)
    assert finding.text.startswith("11 cables lead from planned devices to devices that the intended wiring")
    assert finding.text.endswith(" and 8 more")


def test_an_adapter_without_a_hosts_name_is_at_the_planned_port() -> None:
    nameless = scanned((LEAF, 1, NAMELESS, 1), *SITE[1:])
    (finding,) = findings(nameless, *PLAN)
    assert (finding.group, str(finding.severity), finding.count) == ("plan", "note", 1)
    assert "only the port is compared" in finding.text
    found = compare(plan_of("\n".join([HEAD, *PLAN])), nameless)
    assert (found.matching, found.missing) == (4, ())
    spare = scanned(*SITE, (LEAF, 9, NAMELESS, 1))
    assert [one.group for one in findings(spare, *PLAN)] == ["plan"]
    instead = scanned((LEAF, 3, "SAT37 ibp11s0f0", 1), (LEAF, 1, NAMELESS, 1), *SITE[1:])
    assert [one.group for one in findings(instead, *PLAN)] == ["wrong port", "unexpected"]


def test_speeds_are_compared_if_the_plan_has_them() -> None:
    head = HEAD + ",Speed"
    for planned, rate, wrong in (
        ("200000", "4xHDR", 0),
        ("200000", "2xHDR", 4),
        ("100G", "4xHDR", 4),
        ("56000", "4xFDR", 0),
        ("40000", "4xQDR", 0),
        ("40000", "4xDDR", 4),
        ("", "1xSDR", 0),
    ):
        fabric = scanned(*SITE, rate=rate)
        found = findings(fabric, *(f"{line},{planned}" for line in PLAN), head=head)
        assert [one.group for one in found] == ["wrong speed"] * wrong, (planned, rate)
    (first, *_) = findings(scanned(*SITE, rate="2xHDR"), *(f"{line},200G" for line in PLAN), head=head)
    expected = "the cable SAT37 ibp11s0f0:1 - sat-20ib0:1 runs at 12.5 GB/s, 25 GB/s is planned"
    assert first.text == expected


def test_half_of_the_names_is_enough_for_a_comparison() -> None:
    lines = TEXT.splitlines()[1:5]  # leaf08 and four hosts
    three = [lines[0], *(line.replace("node", "knot") for line in lines[1:3])]  # 2 of 4 are in the fabric
    assert not compare(plan_of("\n".join([HEAD, *three])), TREE).foreign
    four = [lines[0], *(line.replace("node", "knot") for line in lines[1:4])]  # 2 of 5
    assert compare(plan_of("\n".join([HEAD, *four])), TREE).foreign


def test_many_exchanged_cables_are_one_short_finding() -> None:
    lines = TEXT.splitlines()[1:]
    targets = [",".join(line.split(",")[2:]) for line in lines]
    rows = [",".join(line.split(",")[:2]) for line in lines]
    turned = "\n".join(f"{row},{targets[(k + 1) % len(rows)]}" for k, row in enumerate(rows))
    found = compare(plan_of(f"{HEAD}\n{turned}"), TREE)
    assert (found.matching, found.missing, found.unexpected) == (0, (), ())
    assert sum(len(mix.found) for mix in (*found.swapped, *found.moved)) == 96
    (first, *_) = found.swapped
    assert len(first.found) > 4
    assert str(first).count(" more") == 2
