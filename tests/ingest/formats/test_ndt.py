"""InfiniBand from tables of ports (ndt) and from OPA's report."""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime

import numpy as np
import pytest

from ingest.formats.fabrics.ibnetdiscover import IBNETDISCOVER
from ingest.formats.fabrics.ndt import NDT
from ingest.formats.fabrics.opareport import OPAREPORT
from ingest.options import Options
from registry.errors import InputError
from registry.model import IntendedWiring
from tests.support.inputs import WHEN, fabric_in, fabric_of, parse, read, refusal
from tests.support.sure import sure
from tests.support.switch_trees import rates

PLAN = read("formats/fabric.ndt").decode()


def plan_of(text: str, options: Options | None = None) -> IntendedWiring:
    return sure(parse(NDT, text, options, path="plan").intended)


def test_every_row_of_the_sample_is_a_cable() -> None:
    plan = plan_of(PLAN)
    rows = list(csv.reader(PLAN.splitlines()[1:]))
    columns = (plan.source, plan.source_port, plan.target, plan.target_port, plan.kind)
    assert [list(row) for row in zip(*columns, strict=True)] == rows
    assert (len(plan), plan.declared_at) == (96, WHEN)
    since = datetime(2025, 5, 5, tzinfo=UTC)
    assert plan_of(PLAN, Options(observed_at=since)).declared_at == since


@pytest.mark.parametrize(
    "text",
    [
        PLAN.replace("\n", "\r\n"),
        PLAN.replace("#Start", "Start"),
        PLAN.replace("#", "# ", 1),
        PLAN + "\n# the end\n",
        PLAN.replace(",Port 1,", ", Port 1 ,"),
        PLAN.replace("leaf08,Port 9", '"leaf08","Port 9"'),
    ],
)
def test_the_same_plan_in_another_dress(text: str) -> None:
    assert NDT.recognise(text, "x")
    assert plan_of(text) == plan_of(PLAN)


def test_columns_come_in_any_order_and_the_kind_may_be_missing() -> None:
    rows = [line.split(",") for line in PLAN.splitlines()]
    turned = "\n".join(",".join([row[3], row[0], row[1], row[2]]) for row in rows).replace("#", "")
    plan = plan_of(turned)
    assert plan.source == plan_of(PLAN).source
    assert set(plan.kind) == {""}


def test_a_cable_that_is_planned_from_both_ends_is_one() -> None:
    for row in ("spine01,Port 8,leaf08,Port 9,Data\n", "SPINE01,PORT 8,Leaf08,port 9,Data\n"):
        parsed = parse(NDT, PLAN + row)
        assert parsed.intended == plan_of(PLAN)
        assert parsed.warnings == ("1 cable is listed twice",)


SPREADSHEET = """\
,rack #,U height,#Fields:StartDevice,StartPort,StartDeviceLocation,EndDevice,EndPort,EndDeviceLocation,U height,LinkType,Speed,,Cable Length,,,,,
,Rack IB0 #1,U41,DSM07-0101-0806-01IB0,Port 21,F01C04-DR426,DSM07-0101-0806-01IB1,Blade 1_Port 1/1,F01C04-DR429,U25,Data,200000,200G HDR cable,10,,,,,Rack IB0 #1
,Rack IB0 #1,U41,DSM07-0101-0806-01IB0,Port 22,F01C04-DR426,DSM07-0101-0806-01IB1,Blade 2_Port 1/1,F01C04-DR429,U24,Data,200000,200G HDR cable,10,,IB1 Racks,,
,Rack IB0 #1,U39,DSM07-0101-0806-02IB0,Port 21,F01C04-DR426,DSM07-0101-0806-01IB1,Blade 1_Port 1/1,F01C04-DR429,U25,Data,200000,200G HDR cable,10
,,,,,,,,,
"""  # noqa: E501


def test_a_spreadsheet_with_other_columns_and_short_lines_is_read() -> None:
    assert NDT.recognise(SPREADSHEET, "x")
    plan = plan_of(SPREADSHEET)
    near = ("DSM07-0101-0806-01IB0",) * 2 + ("DSM07-0101-0806-02IB0",)
    far = ("Blade 1_Port 1/1", "Blade 2_Port 1/1", "Blade 1_Port 1/1")
    assert (plan.source, plan.target_port, plan.kind) == (near, far, ("Data",) * 3)
    assert plan.speed == (200e9 / 8,) * 3
    assert plan.conflicts == {("DSM07-0101-0806-01IB1", "Blade 1_Port 1/1"): (0, 2)}
    with pytest.raises(InputError, match="Blade 1_Port 1/1 has another cable in line 2"):
        plan_of(SPREADSHEET, Options(strict=True))


def test_a_plan_may_begin_with_comments_and_two_files_may_be_joined_by_cat() -> None:
    text = "#Version: 1.0\n\n" + PLAN
    assert NDT.recognise(text, "x")
    assert plan_of(text) == plan_of(PLAN)
    lines = PLAN.splitlines(keepends=True)
    swapped = "StartDevice,EndDevice,StartPort,EndPort\nleaf99,spine99,1,2\n"
    plan = plan_of("".join(lines[:40]) + swapped)
    ends = (plan.source[-1], plan.source_port[-1], plan.target[-1], plan.target_port[-1])
    assert (len(plan), ends) == (40, ("leaf99", "1", "spine99", "2"))


@pytest.mark.parametrize(
    ("text", "gigabits"),
    [("200000", 200), ("200", 200), ("200G", 200), ("100 Gb/s", 100), ("400GbE", 400), ("1.6T", 1600),
     ("56000", 56), ("200G HDR cable", 200), ("EDR", 100), ("4xHDR", 200), ("", 0), ("fast", 0)],
)  # fmt: skip
def test_speeds(text: str, gigabits: float) -> None:
    head, first = PLAN.splitlines()[:2]
    parsed = parse(NDT, f"{head},Speed\n{first},{text}\n", path="plan")
    assert sure(parsed.intended).speed[0] * 8e-9 == pytest.approx(gigabits, rel=1e-4)
    unread = ("1 speed is not understood: ignored, such as 'fast'",)
    assert parsed.warnings == (unread if text == "fast" else ())


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("leaf08,Port 2,", ",Port 2,", "a device or port is empty"),
        ("leaf08,Port 2,node0058", "leaf08,Port 2,", "a device or port is empty"),
        ("leaf08,Port 2,node0058,mlx5_0", "leaf08,Port 2,LEAF08,port 2", "back to its own port"),
    ],
)
def test_a_line_that_is_no_cable_costs_only_itself(old: str, new: str, reason: str) -> None:
    parsed = parse(NDT, PLAN.replace(old, new, 1), path="plan")
    (warning,) = parsed.warnings
    assert warning.startswith("1 line is no cable: skipped, the first is line 3: ")
    assert reason in warning
    assert sure(parsed.intended).source == (plan_of(PLAN).source[0], *plan_of(PLAN).source[2:])


def test_a_plan_of_nothing_or_without_a_device_in_any_line_is_an_error() -> None:
    head = PLAN.splitlines()[0]
    error = refusal(NDT, f"{head}\n,Port 1,spine01,Port 1,Data\n,Port 2,spine01,Port 2,Data\n")
    assert (error.line, "a device or port is empty" in error.reason) == (2, True)
    assert "no cables found" in refusal(NDT, f"{head}\n").reason


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("leaf08,Port 2,", "leaf08,Port 1,", "leaf08 Port 1 has another cable in line 2"),
        ("EndPort", "EndGate", "is missing"),
        ("LinkType", "EndPort", "a column is repeated"),
        ("leaf08,Port 2,", ",Port 2,", "a device or port is empty"),
        ("leaf08,Port 2,node0058,mlx5_0,Data", "leaf08,Port 2,node0058", "3: 3 cells, but there are 5"),
        ("leaf08,Port 9,spine01,Port 8", "leaf08,Port 9,leaf08,Port 9", "back to its own port"),
        ("leaf08,Port 2,", 'leaf08,"Port 2,', "invalid CSV"),
    ],
)
def test_what_cannot_be_is_shown(old: str, new: str, reason: str) -> None:
    assert old in PLAN
    error = refusal(NDT, PLAN.replace(old, new, 1), Options(strict=True), path="plan")
    assert reason in str(error)
    assert error.line is not None


REPORT = read("formats/opareport_topology.xml.gz").decode()


def test_the_sample_is_the_fat_tree_whose_scan_is_at_hand() -> None:
    fabric = fabric_of(OPAREPORT, REPORT)
    scan = fabric_of(IBNETDISCOVER, read("infiniband/fattree2-64-ftree/ibnetdiscover.txt"))
    assert fabric.names == scan.names
    for column in ("kind", "forwards", "slots", "indptr", "neighbour", "cables"):
        assert np.array_equal(getattr(fabric, column), getattr(scan, column)), column
    assert np.array_equal(fabric.guid[fabric.switches], scan.guid[scan.switches])
    assert set(fabric.links.capacity.tolist()) == {12.5e9}
    assert fabric.adapters.names[0] == "node0001 hfi1_0"
    assert fabric.adapters.guid.all()
    assert int(fabric.links.source_port.min()) >= 1
    assert (fabric.links.source_adapter >= 0).sum() == 64


def test_a_missing_or_unreadable_rate_is_assumed_with_a_warning() -> None:
    parsed = parse(OPAREPORT, REPORT.replace("<Rate>100g</Rate>", "<Rate>fast</Rate>"), Options(rate=5e9))
    assert rates(fabric_in(parsed)) == {5e9}
    assert parsed.warnings[0] == "96 links have an unreadable rate"
    missing = parse(OPAREPORT, REPORT.replace("<Rate>100g</Rate>", "", 1))
    assert (rates(fabric_in(missing)), sure(missing.assumed).sum()) == ({12.5e9}, 2)
    slow = fabric_of(OPAREPORT, REPORT.replace("<Rate>100g</Rate>", "<Rate>25g</Rate>", 1))
    assert rates(slow) == {3.125e9, 12.5e9}


def test_a_node_without_a_link_stays() -> None:
    text = re.sub(r"  <Link id=.*?</Link>\n", "", REPORT, count=1, flags=re.DOTALL)
    fabric = fabric_of(OPAREPORT, text.replace("<LinkCount>96", "<LinkCount>95"))
    assert (len(fabric.hosts), fabric.cable_count) == (64, 95)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("<LinkCount>96", "<LinkCount>97", "LinkCount is 97, but 96 are listed"),
        ("<ConnectedFICount>64", "<ConnectedFICount>65", "ConnectedFICount is 65, but 64"),
        ("<ConnectedSwitchCount>12", "<ConnectedSwitchCount>1", "ConnectedSwitchCount is 1, but 12"),
        ("<NodeType>SW</NodeType>", "<NodeType>XX</NodeType>", "neither FI nor SW"),
        (
            "<NodeGUID>0x0002c90000100800</",
            "<NodeGUID>1</",
            "NodeGUID is not a GUID, or NodeType neither FI nor SW",
        ),
        ("<NodeGUID>0x0002c90000100800</NodeGUID>", "", "<NodeGUID> is missing"),
        ("<NodeDesc>leaf08</NodeDesc>", "<NodeDesc>other</NodeDesc>", "elsewhere in the file"),
        ("<PortNum>1</PortNum>", "<PortNum>0</PortNum>", "PortNum is not a port number"),
        ("<PortNum>2</PortNum>", "<PortNum>1</PortNum>", "the port already has a link"),
        ("</Report>", "", "invalid or truncated XML"),
        ("<Report>", "<Other>", "invalid or truncated XML"),
        ("<Report>", '<!DOCTYPE r [<!ENTITY a "b">]><Report>', "document types and entities are not allowed"),
    ],
)
def test_a_wrong_report_is_refused(old: str, new: str, reason: str) -> None:
    assert old in REPORT
    assert reason in str(refusal(OPAREPORT, REPORT.replace(old, new, 1)))
