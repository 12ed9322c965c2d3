"""Omni-Path: the XML report of a topology."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ingest.formats.fabrics import ibnetdiscover, opareport
from ingest.options import Options
from tests.support.inputs import fabric_of, parse, read, refusal

REPORT = read("formats/opareport_topology.xml.gz").decode()


def test_the_sample_is_the_fat_tree_whose_scan_is_at_hand() -> None:
    fabric = fabric_of(opareport, REPORT)
    scan = fabric_of(ibnetdiscover, read("infiniband/fattree2-64-ftree/ibnetdiscover.txt"))
    assert fabric.names == scan.names
    for column in ("kind", "forwards", "slots", "indptr", "neighbour", "cables"):
        assert np.array_equal(getattr(fabric, column), getattr(scan, column)), column
    assert np.array_equal(fabric.guid[fabric.switches], scan.guid[scan.switches])
    assert set(fabric.links.capacity.tolist()) == {12.5e9}
    assert fabric.adapters.names[0] == "node0001 hfi1_0"
    assert fabric.adapters.guid.all()
    links = fabric.links
    assert int(links.source_port.min()) >= 1
    assert (links.source_adapter >= 0).sum() == 64


def test_a_missing_or_unreadable_rate_is_assumed_with_a_warning() -> None:
    parsed = parse(opareport, REPORT.replace("<Rate>100g</Rate>", "<Rate>fast</Rate>"), Options(rate=5e9))
    assert parsed.fabric is not None
    assert set(parsed.fabric.links.capacity.tolist()) == {5e9}
    assert parsed.warnings[0] == "96 links have an unreadable rate"
    missing = parse(opareport, REPORT.replace("<Rate>100g</Rate>", "", 1))
    assert missing.fabric is not None
    assert set(missing.fabric.links.capacity.tolist()) == {12.5e9}
    assert missing.assumed is not None
    assert missing.assumed.sum() == 2
    slow = fabric_of(opareport, REPORT.replace("<Rate>100g</Rate>", "<Rate>25g</Rate>", 1))
    assert sorted(set(slow.links.capacity.tolist())) == [3.125e9, 12.5e9]


def test_a_node_without_a_link_stays() -> None:
    link = re.search(r"  <Link id=.*?</Link>\n", REPORT, re.DOTALL)
    assert link is not None
    fabric = fabric_of(opareport, REPORT.replace(link[0], "").replace("<LinkCount>96", "<LinkCount>95"))
    assert len(fabric.hosts) == 64
    assert fabric.cable_count == 95


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("<LinkCount>96", "<LinkCount>97", "LinkCount is 97, but 96 are listed"),
        ("<ConnectedFICount>64", "<ConnectedFICount>65", "ConnectedFICount is 65, but 64"),
        ("<ConnectedSwitchCount>12", "<ConnectedSwitchCount>1", "ConnectedSwitchCount is 1, but 12"),
        ("<NodeType>SW</NodeType>", "<NodeType>XX</NodeType>", "neither FI nor SW"),
        (
            "<NodeGUID>0x0002c90000100800</NodeGUID>",
            "<NodeGUID>1</NodeGUID>",
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
    assert reason in str(refusal(opareport, REPORT.replace(old, new, 1)))
