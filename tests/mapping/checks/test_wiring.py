"""Planned against observed wiring: every change of cables is found; plans as sites write them; and names."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.formats.fabrics.ndt import NDT
from ingest.options import Options
from mapping.checks.checks import check
from mapping.checks.finding import Finding, Subject
from mapping.checks.wiring import Wire, compare, find
from mapping.checks.wiring_names import End, FabricNames
from registry.model import NO_PORT, Fabric, IntendedWiring, Links
from tests.support.ibnetdiscover_scans import scanned
from tests.support.infiniband_data import infiniband
from tests.support.inputs import file, read
from tests.support.sure import sure

TREE = infiniband("fattree2-64-traffic")
TEXT = read("formats/fabric.ndt").decode()


def plan_of(text: str) -> IntendedWiring:
    return sure(NDT.parse([file(text)], Options()).intended)


PLAN = plan_of(TEXT)


def rewired(cables: list[tuple[int, int]], fabric: Fabric = TREE) -> Fabric:
    """The fabric with only these cables, each given as the rows of its two directions."""
    rows = np.asarray([row for cable in cables for row in cable], np.int64)
    return replace(fabric, links=fabric.links.take(rows), tables=None)


def pairs(fabric: Fabric) -> list[tuple[int, int]]:
    links = fabric.links
    starts = zip(links.source.tolist(), links.source_port.tolist(), strict=True)
    row = {end: k for k, end in enumerate(starts)}
    ends = zip(links.target.tolist(), links.target_port.tolist(), strict=True)
    return [(k, row[end]) for k, end in enumerate(ends) if k < row[end]]


def turned(fabric: Fabric, first: tuple[int, int], second: tuple[int, int]) -> Fabric:
    links, columns = fabric.links, {}
    for end, rows in zip(("target", "source"), zip(first, second, strict=True), strict=True):
        for name in (end, f"{end}_port", f"{end}_adapter"):
            columns[name] = getattr(links, name).copy()
            columns[name][[*rows]] = columns[name][[*reversed(rows)]]
    return replace(fabric, links=Links(capacity=links.capacity, cables=links.cables, **columns), tables=None)


CABLES = pairs(TREE)


def test_the_sample_plan_is_the_wiring_of_the_fabric_that_it_was_made_for() -> None:
    assert len(CABLES) == TREE.cable_count == 96
    found = compare(PLAN, TREE)
    assert (found.matching, found.empty, found.unknown_devices) == (96, True, ())
    assert list(find(Subject(fabric=TREE, plan=PLAN))) == []


@settings(max_examples=40)
@given(st.sets(st.integers(0, 95), min_size=1, max_size=6))
def test_pulled_cables_are_missing(pulled: set[int]) -> None:
    found = compare(PLAN, rewired([cable for k, cable in enumerate(CABLES) if k not in pulled]))
    assert (len(found.missing), found.matching) == (len(pulled), 96 - len(pulled))
    assert [len(found.unexpected), len(found.swapped), len(found.moved)] == [0, 0, 0]


@settings(max_examples=40)
@given(st.sets(st.integers(1, 96), min_size=1, max_size=6))
def test_cables_that_no_line_plans_are_unexpected_between_planned_devices(forgotten: set[int]) -> None:
    lines = TEXT.splitlines()
    rows = [line.split(",") for k, line in enumerate(lines) if k and k not in forgotten]
    mentioned = {row[0] for row in rows} | {row[2] for row in rows}
    known = [{lines[k].split(",")[0], lines[k].split(",")[2]} <= mentioned for k in forgotten]
    found = compare(plan_of("\n".join(line for k, line in enumerate(lines) if k not in forgotten)), TREE)
    assert (len(found.unexpected), len(found.outside)) == (sum(known), len(known) - sum(known))
    assert found.matching == 96 - len(forgotten)
    assert [len(found.missing), len(found.swapped), len(found.moved)] == [0, 0, 0]


@settings(max_examples=40)
@given(st.integers(0, 95), st.integers(0, 95))
def test_two_cables_with_their_ends_exchanged_are_swapped(one: int, other: int) -> None:
    rows = [CABLES[one][0], CABLES[other][0]]
    near, far = TREE.links.source[rows].tolist(), TREE.links.target[rows].tolist()
    if one == other or far[0] == near[1] or far[1] == near[0]:
        return
    found = compare(PLAN, turned(TREE, CABLES[one], CABLES[other]))
    (mix,) = found.swapped
    assert (len(mix.planned), len(mix.found), found.matching) == (2, 2, 94)
    assert {end for wire in mix.planned for end in wire} == {end for wire in mix.found for end in wire}
    assert [len(found.missing), len(found.unexpected), len(found.moved)] == [0, 0, 0]


def test_a_cable_in_a_free_port_was_moved() -> None:
    plan = plan_of(TEXT.replace("leaf08,Port 9,spine01,Port 8", "leaf08,Port 9,spine01,Port 15"))
    found = compare(plan, TREE)
    (mix,) = found.moved
    assert str(mix.found[0]) == "leaf08:9 - spine01:8"
    assert str(mix.planned[0]) == "leaf08:9 - spine01:15"
    assert (found.matching, found.missing, found.unexpected, found.swapped) == (95, (), (), ())


def test_devices_that_the_fabric_does_not_have_are_named() -> None:
    found = compare(plan_of(TEXT.replace("node0057", "node9957")), TREE)
    assert found.unknown_devices == ("node9957",)
    (mix,) = found.moved
    assert mix.planned == (Wire(End("leaf08", "", 1), End("node9957", "mlx5_0", NO_PORT)),)
    assert [str(wire) for wire in mix.found] == ["leaf08:1 - node0057 mlx5_0:1"]


@pytest.mark.parametrize("label", ["Blade 3_Port 2/20", "slot 1 port 1", "ibp12s0"])
def test_a_port_that_is_not_understood_is_any_port_of_that_device(label: str) -> None:
    assert compare(plan_of(TEXT.replace("mlx5_0", label)), TREE).empty
    one, other = f"node0057,{label}", f"node0058,{label}"
    wrong = TEXT.replace("node0057,mlx5_0", other, 1).replace("node0058,mlx5_0", one, 1)
    assert not compare(plan_of(wrong), TREE).empty


def test_a_scan_without_ports_is_compared_by_how_many_cables_join_two_devices() -> None:
    links = TREE.links
    portless = Links.of(links.source, links.target, links.capacity, cables=links.cables)
    plain = replace(TREE, tables=None, links=portless)
    assert (plain.links.source_port == NO_PORT).all()
    assert compare(PLAN, plain).empty
    other = TEXT.replace("leaf08,Port 9,spine01", "leaf08,Port 9,spine02")
    other = other.replace("leaf08,Port 10,spine02,Port 8", "leaf08,Port 10,spine02,Port 9")
    found = compare(plan_of(other), plain)
    assert (len(found.missing), len(found.unexpected), found.matching) == (1, 1, 95)


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
ROWS = (
    "SAT37,SAT37 ibp11s0f0,SAT-20IB0,Port 1, Data",
    "SAT37,SAT37 ibp203s0f0,SAT-20IB0,Port 2, Data",
    "SAT-20IB0,Port 21,SAT-IB1,Blade 16_Port 2/20,Data",
    "SAT-20IB0,Port 22,SAT-IB1,Blade 17_Port 2/20,Data",
)
CONFLICT = "SAT37,SAT37 ibp75s0f0,SAT-20IB0,Port 2,Data"


def findings(fabric: Fabric, *lines: str, head: str = HEAD) -> list[Finding]:
    return list(check(Subject(fabric=fabric, plan=plan_of("\n".join([head, *lines]))), ["wiring"]))


def test_a_site_with_a_director_is_as_planned_also_if_a_cable_is_listed_from_both_ends() -> None:
    assert findings(scanned(*SITE), *ROWS) == []
    both = "SAT-IB1,Blade 16_Port 2/20,SAT-20IB0,Port 21,Data"
    assert findings(scanned(*SITE), *ROWS, both) == []


RAILS = "SAT37 ibp11s0f0:1 - sat-20ib0:{}, SAT37 ibp203s0f0:1 - sat-20ib0:{}"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            (ROWS[0], ROWS[1].replace("ibp203s0f0", "ibp203s0f1"), *ROWS[2:]),
            "1 wrong port, warning: in the wrong port: "
            "SAT37 ibp203s0f0:1 - sat-20ib0:2 instead of SAT37 ibp203s0f1 - sat-20ib0:2",
        ),
        (
            (ROWS[0].replace("Port 1,", "Port 2,"), ROWS[1].replace("Port 2,", "Port 1,"), *ROWS[2:]),
            f"2 wrong port, warning: swapped: {RAILS.format(1, 2)} instead of {RAILS.format(2, 1)}",
        ),
        (
            (*ROWS[:3], ROWS[3].replace("Blade 17", "Blade 18")),
            "1 wrong port, warning: in the wrong port: "
            "sat-20ib0:22 - sat-ib1 L17/U2:20 instead of sat-20ib0:22 - sat-ib1 L18/U2:20",
        ),
        (
            ROWS[2:],  # of the switches only: the host's two cables are left
            "2 plan, note: 2 cables lead from planned devices to devices that the intended wiring does not "
            f"mention: {RAILS.format(1, 2)}",
        ),
        (
            (*ROWS, *(f"SAT99,SAT99 ibp1{k}s0f0,SAT-20IB0,Port {30 + k},Data" for k in range(4))),
            "4 missing, warning: SAT99 is not in the fabric: 4 planned cables missing: SAT99 ibp10s0f0 - "
            "sat-20ib0:30, SAT99 ibp11s0f0 - sat-20ib0:31, SAT99 ibp12s0f0 - sat-20ib0:32 and 1 more",
        ),
        (
            (*ROWS, "SAT37,ibp12s0f0,SAT-20IB0,Port 30,Data"),
            "1 missing, warning: the planned cable SAT37 ibp12s0f0 - sat-20ib0:30 is missing",
        ),
        (
            tuple(line.replace("SAT", "DSM") for line in ROWS),
            "3 plan, error: the fabric has 0 of the 3 devices of the intended wiring (it lacks DSM-20IB0, "
            "DSM-IB1, DSM37, for example): is this the plan of another cluster, or is most of it off?",
        ),
        (
            (*ROWS, "node03,mlx5_0,SAT-20IB0,Port 7,Data"),
            "2 plan, warning: the planned name node03 fits several devices: node03.one.org, node03.two.org; "
            "not compared",
        ),
        (
            (*ROWS, CONFLICT),
            "1 plan, warning: 1 port has several cables in the intended wiring, for example SAT-20IB0 Port 2 "
            "(2 cables)",
        ),
        (
            (*ROWS, "SAT37,eth0,mgmt1,Port 3,Ethernet", "SAT38,eth0,mgmt1,Port 4,Ethernet"),
            "2 plan, note: 2 planned cables are not of kind Data and not compared",
        ),
        (
            (ROWS[0].replace("Port 1,", "abra,"), ROWS[1].replace("SAT37 ibp203s0f0", "cadabra"), *ROWS[2:]),
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
    pulled = findings(scanned(SITE[0], *SITE[2:]), *ROWS, CONFLICT)
    assert [one.group for one in pulled] == ["missing", "missing", "plan"]


def test_a_port_that_another_device_took() -> None:
    """As at a real site: the cable is in the next port, a server that is not planned in its own."""
    fabric = scanned(*SITE[:1], (LEAF, 3, "SAT37 ibp203s0f0", 1), (LEAF, 2, "ufm01 HCA-1", 1), *SITE[2:])
    moved, unexpected = findings(fabric, *ROWS)
    groups = [(one.check, one.group, str(one.severity)) for one in (moved, unexpected)]
    assert groups == [("wiring", "wrong port", "warning"), ("wiring", "unexpected", "note")]
    assert moved.text == (
        "in the wrong port: SAT37 ibp203s0f0:1 - sat-20ib0:3 instead of SAT37 ibp203s0f0:1 - sat-20ib0:2"
    )
    assert unexpected.text == "the cable sat-20ib0:2 - ufm01 HCA-1:1 is not planned"


def test_devices_that_the_plan_does_not_mention_are_one_note() -> None:
    more = [(LEAF, 5 + k, f"new{k:02d} mlx5_0", 1) for k in range(10)]
    elsewhere = ("leaf99", 1, "far01 mlx5_0", 1)
    (finding,) = findings(scanned(*SITE, *more, elsewhere, ("leaf99", 2, LEAF, 30)), *ROWS)
    assert (finding.group, str(finding.severity), finding.count) == ("plan", "note", 11)
    assert finding.text.startswith("11 cables lead from planned devices to devices that the intended wiring")
    assert finding.text.endswith(" and 8 more")


def test_an_adapter_without_a_hosts_name_is_at_the_planned_port() -> None:
    nameless = scanned((LEAF, 1, NAMELESS, 1), *SITE[1:])
    (finding,) = findings(nameless, *ROWS)
    assert (finding.group, str(finding.severity), finding.count) == ("plan", "note", 1)
    assert "only the port is compared" in finding.text
    found = compare(plan_of("\n".join([HEAD, *ROWS])), nameless)
    assert (found.matching, found.missing) == (4, ())
    spare = scanned(*SITE, (LEAF, 9, NAMELESS, 1))
    assert [one.group for one in findings(spare, *ROWS)] == ["plan"]
    instead = scanned((LEAF, 3, "SAT37 ibp11s0f0", 1), (LEAF, 1, NAMELESS, 1), *SITE[1:])
    assert [one.group for one in findings(instead, *ROWS)] == ["wrong port", "unexpected"]


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
        found = findings(fabric, *(f"{line},{planned}" for line in ROWS), head=head)
        assert [one.group for one in found] == ["wrong speed"] * wrong, (planned, rate)
    (first, *_) = findings(scanned(*SITE, rate="2xHDR"), *(f"{line},200G" for line in ROWS), head=head)
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


DIRECTOR = "MF0;sat-ib1-A:MCS8500"
SWITCH = "MF0;sat-20ib0:MQM8700/U1"
NAMES = FabricNames(
    scanned(
        *((SWITCH, 1, "SAT37 ibp11s0f0", 1), (SWITCH, 2, "SAT37 ibp203s0f0", 1)),
        *((SWITCH, 3, "node01 mlx5_0", 1), (SWITCH, 4, "node01 mlx5_1", 1)),
        (SWITCH, 5, "node02.one.org mlx5_0", 1),
        *((SWITCH, 6, "node03.one.org mlx5_0", 1), (SWITCH, 7, "node03.two.org mlx5_0", 1)),
        *((SWITCH, 8, "node04 HCA-1", 1), (SWITCH, 9, "node04 HCA-1", 2)),
        *((SWITCH, 21, f"{DIRECTOR}/L16/U2", 20), (SWITCH, 22, f"{DIRECTOR}/L01/U1", 20)),
        (f"{DIRECTOR}/L16/U2", 30, f"{DIRECTOR}/S05/U1", 1),
        *((SWITCH, 23, "leaf-ib0", 1), (SWITCH, 24, "leaf_IB7", 1)),
    )
)


def devices_of(name: str, label: str = "") -> list[str]:
    return [NAMES.devices[one].name for one in NAMES.find(name, label).devices]


@pytest.mark.parametrize(
    ("device", "names"),
    [
        ("sat-20ib0", (SWITCH, "sat-20ib0", "SAT-20IB0", "mf0;Sat-20ib0:MQM9700/U1", "SAT_20ib0 ")),
        ("sat-ib1-A", ("SAT-IB1-A", f"{DIRECTOR}/L16/U2")),
        ("SAT37", ("sat37", "SAT37 ibp11s0f0")),
        ("node01", ("NODE01", "node01-ib0", "node01_mlx5_1")),
        ("node01", ("node01.cluster.example.org", "node01-hca2.cluster.example.org")),
        ("node02.one.org", ("node02",)),
        ("leaf_IB7", ("leaf-IB7",)),
    ],
)
def test_spellings_of_one_device(device: str, names: tuple[str, ...]) -> None:
    for name in names:
        assert devices_of(name) == [device], name


def test_a_name_may_end_with_the_label_of_its_port_and_is_ambiguous_if_it_fits_two_devices() -> None:
    assert devices_of("node01 IB Port 1", "IB Port 1") == ["node01"]
    assert devices_of("node01 IB Port 1", "IB Port 2") == []
    assert devices_of("node03") == ["node03.one.org", "node03.two.org"]
    assert devices_of("node03.one.org") == ["node03.one.org"]
    assert devices_of("leaf") == ["leaf-ib0", "leaf_IB7"]


def test_other_devices_do_not_fit() -> None:
    """Above all: another domain, or a rail that the fabric lacks, is no spelling of what it has."""
    for name in ("node1", "node011", "node02.two.org", "leaf-ib1", "sat", "node01-a", ""):
        assert devices_of(name) == [], name


@pytest.mark.parametrize(
    ("name", "labels", "part", "port"),
    [
        ("SAT-20IB0", "Port 21|21|P21|IB1/21", "", 21), ("SAT-20IB0", "1/5/2|Blade 1_Port 1/5", "", NO_PORT),
        ("SAT-IB1-A", "Blade 16_Port 2/20|L16/U2/P20", "L16/U2", 20),
        ("SAT-IB1-A", "Blade 1_Port 1/7", "L01/U1", 7), ("SAT-IB1-A", "Blade 20_Port 2/3", "L20/U2", 3),
        ("SAT-IB1-A", "Port 20", "", NO_PORT), (f"{DIRECTOR}/L16/U2", "Port 20", "L16/U2", 20),
        ("sat37", "SAT37 ibp11s0f0", "ibp11s0f0", 1), ("sat37", "IBP203S0F0", "ibp203s0f0", 1),
        ("sat37", "ibp203s0f1", "ibp203s0f1", NO_PORT), ("sat37", "mlx5_0|Port 1", "", NO_PORT),
        ("node01", "mlx5_1|MLX5-1|HCA-2|HCA-2 Port 1|2/1|ib1", "mlx5_1", 1),
        ("node01", "mlx5_1/2|mlx5_1:2", "mlx5_1", 2), ("node01", "ib4|slot 3", "", NO_PORT),
        ("node01", "mlx5_4", "mlx5_4", NO_PORT), ("node01-ib1", "Port 1", "mlx5_1", 1),
        ("node02", "Port 1|port 1", "mlx5_0", 1), ("node04", "HCA-1", "HCA-1", NO_PORT),
        ("node04", "HCA-1/2", "HCA-1", 2), ("node9", "mlx5_0", "mlx5_0", NO_PORT),
    ],
)  # fmt: skip
def test_labels_of_ports(name: str, labels: str, part: str, port: int) -> None:
    for label in labels.split("|"):
        match = NAMES.find(name, label)
        device = devices_of(name, label)[0] if match.devices else name
        assert NAMES.planned_end(match, name, label) == End(device, part, port), label
