"""Plans as sites write them against scans with directors: what is reported, and what is not."""

from __future__ import annotations

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
HEAD = "#StartDevice,StartPort,EndDevice,EndPort,LinkType"
PLAN = (
    "SAT37,SAT37 ibp11s0f0,SAT-20IB0,Port 1, Data",
    "SAT37,SAT37 ibp203s0f0,SAT-20IB0,Port 2, Data",
    "SAT-20IB0,Port 21,SAT-IB1,Blade 16_Port 2/20,Data",
    "SAT-20IB0,Port 22,SAT-IB1,Blade 17_Port 2/20,Data",
)


def findings(fabric: Fabric, *lines: str, head: str = HEAD) -> list[Finding]:
    return list(check(Subject(fabric=fabric, plan=plan_of("\n".join([head, *lines]))), ["wiring"]))


def test_a_site_with_a_director_is_as_planned() -> None:
    assert findings(scanned(*SITE), *PLAN) == []
    both = "SAT-IB1,Blade 16_Port 2/20,SAT-20IB0,Port 21,Data"
    assert findings(scanned(*SITE), *PLAN, both) == []


def test_a_cable_in_the_wrong_adapter_of_the_right_host() -> None:
    wrong = PLAN[1].replace("ibp203s0f0", "ibp203s0f1")
    (finding,) = findings(scanned(*SITE), PLAN[0], wrong, *PLAN[2:])
    assert (finding.group, str(finding.severity), finding.check) == ("wrong port", "warning", "wiring")
    expected = "in the wrong port: SAT37 ibp203s0f0:1 - sat-20ib0:2 instead of "
    assert finding.text == expected + "SAT37 ibp203s0f1 - sat-20ib0:2"


def test_crossed_rails_are_swapped() -> None:
    crossed = [PLAN[0].replace("Port 1,", "Port 2,"), PLAN[1].replace("Port 2,", "Port 1,"), *PLAN[2:]]
    (finding,) = findings(scanned(*SITE), *crossed)
    assert (finding.group, finding.count) == ("wrong port", 2)
    assert finding.text.startswith("swapped: ")


def test_a_cable_in_another_board_of_the_director() -> None:
    wrong = PLAN[3].replace("Blade 17", "Blade 18")
    (finding,) = findings(scanned(*SITE), *PLAN[:3], wrong)
    assert finding.text == (
        "in the wrong port: sat-20ib0:22 - sat-ib1 L17/U2:20 instead of sat-20ib0:22 - sat-ib1 L18/U2:20"
    )


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
    assert findings(scanned(*SITE), *PLAN[2:])[0].count == 2  # a plan of the switches only: the host's two


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


def test_a_device_that_is_off_is_one_finding_with_all_its_cables() -> None:
    lines = [f"SAT99,SAT99 ibp1{k}s0f0,SAT-20IB0,Port {30 + k},Data" for k in range(4)]
    (finding,) = findings(scanned(*SITE), *PLAN, *lines)
    assert (finding.group, finding.subject, finding.count) == ("missing", "SAT99", 4)
    assert finding.text.startswith("SAT99 is not in the fabric: 4 planned cables missing: SAT99 ibp10s0f0 - ")
    (single,) = findings(scanned(*SITE), *PLAN, "SAT37,ibp12s0f0,SAT-20IB0,Port 30,Data")
    assert single.text == "the planned cable SAT37 ibp12s0f0 - sat-20ib0:30 is missing"


def test_a_plan_of_another_cluster_is_one_sentence() -> None:
    other = [line.replace("SAT", "DSM") for line in PLAN]
    (finding,) = findings(scanned(*SITE), *other)
    assert (finding.group, str(finding.severity)) == ("plan", "error")
    assert finding.text == (
        "the fabric has 0 of the 3 devices of the intended wiring (it lacks DSM-20IB0, DSM-IB1, DSM37, "
        "for example): is this the plan of another cluster, or is most of it off?"
    )
    assert (
        str(findings(scanned(*SITE), *PLAN, other[0].replace("DSM-20IB0", "SAT-20IB0"))[0].severity)
        == "warning"
    )


def test_half_of_the_names_is_enough_for_a_comparison() -> None:
    lines = TEXT.splitlines()[1:5]  # leaf08 and four hosts
    three = [lines[0], *(line.replace("node", "knot") for line in lines[1:3])]  # 2 of 4 are in the fabric
    assert not compare(plan_of("\n".join([HEAD, *three])), TREE).foreign
    four = [lines[0], *(line.replace("node", "knot") for line in lines[1:4])]  # 2 of 5
    assert compare(plan_of("\n".join([HEAD, *four])), TREE).foreign


def test_ambiguous_names_are_named_and_their_cables_left_out() -> None:
    fabric = scanned(*SITE, (LEAF, 5, "node03.one.org mlx5_0", 1), (LEAF, 6, "node03.two.org mlx5_0", 1))
    (finding,) = findings(fabric, *PLAN, "node03,mlx5_0,SAT-20IB0,Port 7,Data")
    assert (finding.group, str(finding.severity), finding.count) == ("plan", "warning", 2)
    assert finding.text == (
        "the planned name node03 fits several devices: node03.one.org, node03.two.org; not compared"
    )


def test_a_port_with_two_planned_cables_is_a_conflict_not_a_missing_cable() -> None:
    wrong = "SAT37,SAT37 ibp75s0f0,SAT-20IB0,Port 2,Data"
    (finding,) = findings(scanned(*SITE), *PLAN, wrong)
    assert finding.text == (
        "1 port has several cables in the intended wiring, for example SAT-20IB0 Port 2 (2 cables)"
    )
    assert (finding.group, str(finding.severity)) == ("plan", "warning")
    pulled = findings(scanned(SITE[0], *SITE[2:]), *PLAN, wrong)
    assert [one.group for one in pulled] == ["missing", "missing", "plan"]


def test_cables_that_carry_no_data_are_counted() -> None:
    lines = ["SAT37,eth0,mgmt1,Port 3,Ethernet", "SAT38,eth0,mgmt1,Port 4,Ethernet"]
    (finding,) = findings(scanned(*SITE), *PLAN, *lines)
    assert finding.text == "2 planned cables are not of kind Data and not compared"


def test_ports_that_are_not_understood_are_noted() -> None:
    lines = [PLAN[0].replace("Port 1,", "abra,"), PLAN[1].replace("SAT37 ibp203s0f0", "cadabra"), *PLAN[2:]]
    (finding,) = findings(scanned(*SITE), *lines)
    assert (finding.group, str(finding.severity), finding.count) == ("plan", "note", 2)
    assert finding.text == (
        "2 planned ports are not understood, any port of the device is accepted: "
        "SAT-20IB0 abra, SAT37 cadabra"
    )


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
