"""What is odd about the output of InfiniBand tools and of UFM, one by one, and what is refused.

One InfiniBand fabric as every tool prints it: the same one, also mixed with standard error (2>&1).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from ingest import catalog
from ingest.formats import routes
from ingest.formats.counters import IBQUERYERRORS, PERFQUERY
from ingest.formats.fabrics.iblinkinfo import IBLINKINFO
from ingest.formats.fabrics.ibnetdiscover import IBNETDISCOVER
from ingest.formats.fabrics.infiniband import LANE_BYTES, printed_rate
from ingest.options import Options
from ingest.parsed import Format, Parsed
from ingest.reading.source import DIAGNOSED, DIAGNOSTIC
from registry.errors import InputError
from registry.model import Fabric
from registry.model.links import PORT_STATES
from tests.support.described_adapters import owners, scan
from tests.support.ibnetdiscover_scans import fabric_of, raw, same, swap
from tests.support.inputs import DATA, fabric_in, file, parse, read, refusal
from tests.support.sure import sure
from tests.support.switch_trees import cables_of

FOLDER = "infiniband/fattree2-64-ftree"
PORTS = raw(f"{FOLDER}/ibnetdiscover-p.txt")
BLOCKS = raw(f"{FOLDER}/iblinkinfo.txt")
LINES = raw(f"{FOLDER}/iblinkinfo-l.txt")
SUBNET = raw(f"{FOLDER}/opensm-subnet.lst")
LIST = raw(f"{FOLDER}/ibnetdiscover-l.txt")
DATABASE = raw("formats/ibdiagnet2.db_csv")
NET = raw("formats/ibdiagnet2.net_dump")
LINKS = raw("formats/ufm_links.json")
SCAN = fabric_of(raw(f"{FOLDER}/ibnetdiscover.txt"))
TEXTS = {"ibnetdiscover-ports": PORTS, "iblinkinfo": BLOCKS, "opensm-subnet": SUBNET}
TEXTS |= {"ibdiagnet-db": DATABASE, "ibdiagnet-net": NET}


def parsed(format: str, text: str, options: Options | None = None) -> Parsed:
    return parse(catalog.FORMATS.find(format), text, options)


def scanned(format: str, text: str) -> Fabric:
    return fabric_in(parsed(format, text))


def refused(format: str, text: str, reason: str) -> InputError:
    error = refusal(catalog.FORMATS.find(format), text)
    assert re.search(reason, str(error))
    return error


def state_of(fabric: Fabric, name: str, number: int) -> tuple[str, float]:
    """State and possible rate of a listed port."""
    ports, vertex = fabric.ports, fabric.names.index(name)
    (row,) = np.flatnonzero((ports.vertex == vertex) & (ports.number == number)).tolist()
    return PORT_STATES[ports.state[row]], float(ports.could_be[row])


# ibnetdiscover -p


def test_ports_next_to_each_other_are_one_adapter_and_others_are_not() -> None:
    text = PORTS.replace("0x0002c90000f03f01", "0x0002c90000f04002").replace("node0063", "node0064")
    text = re.sub(r"(75\s+)1(\s+0x0002c90000f04002)", r"\g<1>2\2", text)
    one = scanned("ibnetdiscover-ports", text)
    (host,) = one.vertices(["node0064"])
    assert (one.adapters.host == host).sum() == 1
    assert (one.adapters.port_adapter == np.flatnonzero(one.adapters.host == host)[0]).sum() == 2
    apart = scanned("ibnetdiscover-ports", text.replace("f04002", "f14002"))
    assert (apart.adapters.host == apart.vertices(["node0064"])[0]).sum() == 2


def test_routers_forward_nothing_and_a_guid_twice_in_a_list_is_refused() -> None:
    text = re.sub(r"CA(\s+76\s+1 0x0002c90000f04001)", r"RT\1", PORTS)
    fabric = scanned("ibnetdiscover-ports", text)
    assert len(fabric.hosts) == 63
    assert (~fabric.forwards).sum() == 64
    assert len(fabric.switches) == 13
    first = LIST.splitlines()[0]
    error = refused("ibnetdiscover-list", f"{LIST}{first}\n", "the device is already in line 1")
    assert error.line == len(LIST.splitlines()) + 1


@pytest.mark.parametrize("by", ["2x HDR", "4x ???", "?? HDR"])
def test_widths_and_speeds_of_the_ports_report(by: str) -> None:
    found = parsed("ibnetdiscover-ports", PORTS.replace("4x HDR", by))
    rate = LANE_BYTES["HDR"] * (2 if by == "2x HDR" else 4)
    assert set(fabric_in(found).links.capacity.tolist()) == {rate}
    assert sure(found.assumed).all() == ("?" in by)


@pytest.mark.parametrize(
    ("format", "pattern", "by", "reason"),
    [
        ("ibnetdiscover-ports", r"^CA    76 .*\n", "", "the other end is not in the file"),
        ("ibnetdiscover-ports", r"^CA    76  1", "CA    76  0", "out of range"),
        ("ibnetdiscover-ports", r"^CA    76  1", "CA 99999  1", "LID 99999"),
        ("ibnetdiscover-ports", r"^CA    75 .*$", "what is this", "not a line of ibnetdiscover -p"),
        ("ibnetdiscover-ports", r"^(CA    75 .*)$", "\\1\n\\1", "is already in line 2"),
        ("ibnetdiscover-ports", r"SW     9  8 (0x\S+ \( 'node0064)", "SW     9  7 \\1", "leads elsewhere"),
        ("ibnetdiscover-ports", r"^SW     9 12", "SW    19 12", "contradicts this description"),
        ("iblinkinfo", r"^CA: node0064.*\n", "", "a port without the CA, Switch or Router line"),
        ("iblinkinfo", r"^(CA: node0063.*\n.*\n)", "\\1\\1", "already"),
        ("iblinkinfo", r"^(.*  76    )1\[", "\\g<1>0[", "out of range"),
        ("iblinkinfo", r"^(      0x0002c90000f04001 .*)Active/", "\\1Active", "not a line of iblinkinfo"),
        ("iblinkinfo", r"^( +9 +)2\[", "\\g<1>1[", "already"),
        ("iblinkinfo", r"^( +)9( +2\[)", "\\g<1>8\\2", "two LIDs"),
        ("opensm-subnet", r"LOG=ACT", "LOG=FOO", "unknown state"),
        ("opensm-subnet", r"NodeGUID:0002c90000100100", "NodeGUID:0000000000000000", "without a GUID"),
        ("opensm-subnet", r"\A(.*)\{leaf01\}", "\\1{other}", "contradicts this description"),
        ("opensm-subnet", r"\A.*\n", "", "leads elsewhere|is not in the file"),
        ("opensm-subnet", r"PN:01 \} PHY", "PN:FF } PHY", "out of range"),
        ("ibdiagnet-db", "^END_LINKS$", "", "within section LINKS"),
        ("ibdiagnet-db", "^END_LINKS$", "END_NODES", "within section LINKS"),
        ("ibdiagnet-db", "^START_NODES$", "", "END_NODES within section none"),
        ("ibdiagnet-db", ",NodeType,", ",NodeKind,", "no column nodetype"),
        ("ibdiagnet-db", r'^"leaf07",16,2,', '"leaf07",16,7,', "unknown type of node: 7"),
        ("ibdiagnet-db", r'^"leaf07",16,2,', '"leaf07",2,', "12 cells, but section NODES has 13"),
        ("ibdiagnet-db", r'^"leaf07",.*\n', "", "a link of a device that is missing in section NODES"),
        ("ibdiagnet-db", r"^0x0002c90000100800,1,", "0x0002c90000100800,x,", "portnum1 is not a number"),
        ("ibdiagnet-db", r"^0x0002c90000100800,1,", "0x0002c90000100800,2,", "already|leads elsewhere"),
        ("ibdiagnet-db", r"^0x0002c90000100800,1,", "0x1ffffffffffffffff,1,", "out of range"),
        ("ibdiagnet-db", r"^0x0002c90000100800,1,", "0x0002c90000100800,\r1,", "invalid CSV"),
        ("ibdiagnet-net", r'\A"leaf08".*\n', "", "a port without the line of its switch"),
        ("ibdiagnet-net", r'^("leaf07", Mellanox, 0x0002c90000100)700', "\\g<1>800", "already"),
        ("ibdiagnet-net", r"LID 9$", "LID 99999", "LID 99999"),
        ("ibdiagnet-net", r"\A((?:.*\n){2}.*): 0x0002c90000f03900 :", "\\1: nothing :", "is unreadable"),
        ("ibdiagnet-net", r'\A((?:.*\n){2}.*)"node0057 mlx5_0"', '\\1"node00', "the row is incomplete"),
        ("ibdiagnet-net", r"\A((?:.*\n){2}.*): 4x ", "\\1 4x ", "not a line of ibdiagnet2.net_dump"),
    ],
)
def test_files_that_contradict_themselves(format: str, pattern: str, by: str, reason: str) -> None:
    refused(format, swap(TEXTS[format], pattern, by), reason)


# iblinkinfo


def switches_only(text: str) -> str:
    if text.startswith("0x"):
        return re.sub(r"^0x0002c90000f0.*\n", "", text, flags=re.M)
    return re.sub(r"^CA: .*\n(?: .*\n)+", "", text, flags=re.M)


@pytest.mark.parametrize("text", [BLOCKS, LINES], ids=["blocks", "lines"])
def test_reports_of_switches_alone_know_adapters_by_the_ports_they_hang_on(text: str) -> None:
    fabric = scanned("iblinkinfo", switches_only(text))
    assert fabric.names == SCAN.names
    assert fabric.cable_count == SCAN.cable_count
    assert np.array_equal(fabric.adapters.port_lid, SCAN.adapters.port_lid)
    assert fabric.adapters.port_guid.any() == (text is LINES)


@pytest.mark.parametrize("text", [BLOCKS, LINES], ids=["blocks", "lines"])
def test_a_report_of_switches_that_lacks_one_is_cut_off(text: str) -> None:
    cut = switches_only(text)
    if text is LINES:
        cut = re.sub(r"^0x0002c9000013e900.*\n", "", cut, flags=re.M)
    else:
        cut = re.sub(r"^Switch: 0x0002c9000013e900.*\n(?: .*\n)+", "", cut, flags=re.M)
    refused("iblinkinfo", cut, "the other end is not in the file")


def test_reports_of_adapters_or_of_down_ports_alone_are_no_network() -> None:
    reason = "the device at the other end is not in the file: it is truncated, or lists only adapters"
    refused("iblinkinfo", BLOCKS.split("Switch:")[0], reason)
    lines = BLOCKS.splitlines(keepends=True)
    down = "".join(line for line in lines if "Down/" in line or line.startswith("Switch"))
    found = parsed("iblinkinfo", down)
    assert "-d prints none" in found.incomplete
    assert len(fabric_in(found).ports.down) == 64


def test_more_settings_and_diagnostics_of_iblinkinfo_are_read_over() -> None:
    more = BLOCKS.replace("LinkUp)==>", "LinkUp) (HOQ:18 VL_Stall:7)==>").replace("[  ] ==", "[12] ==")
    assert same(scanned("iblinkinfo", more), SCAN)
    found = parsed("iblinkinfo", f"ibwarn: [4711] mad_rpc: timeout\n{LINES}")
    assert found.warnings == ("1 line is the tool's own diagnostics: parts of the fabric may be missing",)


@pytest.mark.parametrize(
    ("printed", "speed"),
    [("10.0 Gbps (FDR10)", "FDR10"), ("5.0 Gbps", "DDR"), ("106.25 Gbps", "NDR"), ("undefined (99)", "")],
)
def test_speeds_by_the_lane(printed: str, speed: str) -> None:
    found = parsed("iblinkinfo", LINES.replace("53.125 Gbps", printed))
    assert set(fabric_in(found).links.capacity.tolist()) == {4 * LANE_BYTES[speed or "HDR"]}
    assert [warning.split(" have")[0] for warning in found.warnings] == ([] if speed else ["96 cables"])


def test_states_of_ports() -> None:
    text = BLOCKS
    for old, new in (
        ("Down/ Polling", "Down/Disabled"),
        ("Down/ Polling", "Down/PortConfigurationTraining"),
        ("Active/  LinkUp", "  Init/  LinkUp"),
        ('[  ] "" ( )', '"Port not available"'),
    ):
        text = text.replace(old, new, 1)
    fabric = scanned("iblinkinfo", text)
    assert state_of(fabric, "node0064", 1)[0] == "initialize"
    assert sorted(PORT_STATES[state] for state in fabric.ports.state[fabric.ports.down]) == (
        ["disabled"] + ["down"] * 62 + ["training"]
    )


def test_what_a_link_could_be_is_of_both_width_and_speed() -> None:
    fabric = scanned("iblinkinfo", BLOCKS.replace("(Could be 12X )", "( Could be 106.25 Gbps)", 1))
    assert state_of(fabric, "node0064", 1) == ("active", printed_rate("4x", "NDR"))
    assert state_of(fabric, "node0063", 1) == ("active", printed_rate("12x", "HDR"))
    plain = scanned("iblinkinfo", BLOCKS.replace("(Could be 12X )", "( )"))
    assert len(plain.ports) == len(plain.ports.down) == 64


NO_LID = "the LID does not identify the other end: use iblinkinfo -l or ibnetdiscover"


def test_blocks_whose_lids_identify_no_device_are_refused_unless_names_do() -> None:
    refused("iblinkinfo", re.sub(r" +\d+( +\d+\[  \])", r"  0\1", BLOCKS), NO_LID)
    fabric = scanned("iblinkinfo", re.sub(r" +\d+( +\d+\[  \])", r"  0\1", LINES))
    assert fabric.cable_count == 96
    assert not fabric.lid.any()
    text = re.sub(r"( )75( +\d+\[  \])", r"\g<1>76\2", BLOCKS)
    assert scanned("iblinkinfo", text).cable_count == 96
    refused("iblinkinfo", text.replace("node0063", "node0064"), NO_LID)


# opensm-subnet.lst


def test_numbers_of_the_subnet_manager_are_hexadecimal_and_names_may_hold_braces() -> None:
    fabric = scanned("opensm-subnet", SUBNET)
    assert int(fabric.links.source_port.max()) == 12  # PN:0C
    assert int(fabric.adapters.port_lid.max()) == 76  # LID:004C
    name = "{leaf} LID:0001 PN:01 } { 01"
    assert name in scanned("opensm-subnet", SUBNET.replace("{leaf01}", f"{{{name}}}")).names


def test_links_that_are_not_active_are_kept_and_unknown_speeds_are_assumed() -> None:
    fabric = scanned("opensm-subnet", SUBNET.replace("LOG=ACT", "LOG=INI", 1))
    assert fabric.cable_count == 96
    assert state_of(fabric, "leaf01", 1) == ("initialize", 0.0)
    found = parsed("opensm-subnet", SUBNET.replace("SPD=50", "SPD=??"), Options(rate=7.0))
    assert set(fabric_in(found).links.capacity.tolist()) == {7.0}
    assert found.warnings == ("96 cables have no width and speed: 7 bytes/s are assumed",)


# ibdiagnet2.db_csv


def database(*, changes: dict[tuple[str, int], str] | None = None) -> str:
    """Two hosts on a switch, at 4xNDR of which 4xNDR is supported (3841 as in a public sample)."""
    rows = {
        ("0xa1", 1): "0xb1,1,7,2,19,2048,1,5,4,3841",
        ("0xa2", 1): "0xb2,1,9,2,19,2048,0,5,4,3841",
        ("0xa3", 0): "0xa3,0,3,0,0,0,0,0,4,0",
        ("0xa3", 1): "0xa3,1,0,2,19,2048,0,5,4,3841",
        ("0xa3", 2): "0xa3,2,0,2,19,2048,0,5,4,3841",
        ("0xa3", 3): "0xa3,3,0,2,19,1,0,2,1,3841",
    } | (changes or {})
    ports = "\n".join(f"{guid},{row}" for (guid, _), row in rows.items())
    return f"""# Running timestamp   : 2022-08-25 17:45:38 UTC +0000
START_INDEX_TABLE
a,b
END_INDEX_TABLE
START_NODES
NodeDesc,NumPorts,NodeType,SystemImageGUID,NodeGUID,PortGUID
"host1 mlx5_0",1,1,0x11,0xa1,0xb1
"host2 mlx5_0",1,1,0x12,0xa2,0xb2
"switch, ""one\"\"",65,2,0x13,0xa3,0xa3
END_NODES

START_PORTS
NodeGuid,PortGuid,PortNum,LID,LinkWidthActv,LinkWidthSup,LinkSpeedActv,LMC,PortPhyState,PortState,LinkSpeedSup
{ports}
END_PORTS
START_LINKS
NodeGuid1,PortNum1,NodeGuid2,PortNum2
0xa3,1,0xa1,1
0xa2,1,0xa3,2
0xa3,2,0xa2,1
END_LINKS
"""


def test_a_database_with_ports_is_complete() -> None:
    fabric = scanned("ibdiagnet-db", database())
    assert fabric.names == ("host1", "host2", 'switch, "one"')
    assert set(fabric.links.capacity.tolist()) == {50e9}
    assert fabric.cable_count == 2
    assert fabric.lid.tolist() == [0, 0, 3]
    columns = {"guid": [0xA1, 0xA2], "system_guid": [0x11, 0x12], "port_guid": [0xB1, 0xB2]}
    columns |= {"port_lid": [7, 9], "port_lmc": [1, 0]}
    assert {name: getattr(fabric.adapters, name).tolist() for name in columns} == columns
    assert len(fabric.ports) == 1
    assert state_of(fabric, 'switch, "one"', 3) == ("down", 0.0)
    assert fabric.observed_at == datetime(2022, 8, 25, 17, 45, 38, tzinfo=UTC)


def test_a_link_of_a_database_below_what_both_ends_support() -> None:
    slow = {("0xa1", 1): "0xb1,1,7,2,19,1024,1,5,4,3841", ("0xa3", 1): "0xa3,1,0,2,19,1024,0,5,4,1793"}
    fabric = scanned("ibdiagnet-db", database(changes=slow))
    assert state_of(fabric, 'switch, "one"', 3) == ("down", 0.0)
    assert len(fabric.ports) == 1  # the switch's end supports no more than HDR
    slow["0xa3", 1] = "0xa3,1,0,2,19,1024,0,5,4,3841"
    fabric = scanned("ibdiagnet-db", database(changes=slow))
    assert state_of(fabric, "host1", 1) == state_of(fabric, 'switch, "one"', 1) == ("active", 50e9)
    assert sorted(set(fabric.links.capacity.tolist())) == [25e9, 50e9]


@pytest.mark.parametrize(("physical", "state"), [("3", "disabled"), ("4", "training"), ("2", "down")])
def test_states_of_ports_of_a_database(physical: str, state: str) -> None:
    changes = {("0xa3", 3): f"0xa3,3,0,2,19,1,0,{physical},1,3841"}
    assert state_of(scanned("ibdiagnet-db", database(changes=changes)), 'switch, "one"', 3)[0] == state


def test_columns_are_found_by_name_and_a_database_without_links_is_incomplete() -> None:
    text = DATABASE.replace("NodeGuid1,PortNum1,NodeGuid2,PortNum2", "nodeguid1, PORTNUM1,NodeGUID2,PortNum2")
    assert same(scanned("ibdiagnet-db", text), scanned("ibdiagnet-db", DATABASE))
    found = parsed("ibdiagnet-db", DATABASE.split("START_LINKS")[0])
    assert "no section LINKS" in found.incomplete
    assert len(fabric_in(found)) == 76
    refused("ibdiagnet-db", DATABASE.split("0x0002c90000100800,2,")[0], "section LINKS does not end")


# ibdiagnet2.net_dump


def test_guids_without_zeros_labels_and_comments_change_nothing_but_the_time_at_the_head() -> None:
    labels = swap(NET, r"^   1/(\d+) ", r"   sw1p\1s2 ")
    comment = NET.replace('"leaf07", Mellanox', '# a comment\n"leaf07", Mellanox')
    for text in (NET.replace(": 0x0002c9", ": 0x2c9"), labels, comment):
        assert same(scanned("ibdiagnet-net", text), scanned("ibdiagnet-net", NET))
    head = "# This file was made\n# Running timestamp : 2022-08-25 17:45:38 UTC +0000\n\n"
    found = parsed("ibdiagnet-net", head + NET)
    assert fabric_in(found).observed_at == datetime(2022, 8, 25, 17, 45, 38, tzinfo=UTC)
    assert found.warnings == ()


def test_the_chips_of_a_box_are_planes_and_stay_switches_of_their_own() -> None:
    row = '  {n}/1 : 1 : ACT : LINK UP : 5 : 4x : 200 : FEC : NO-RTR : 0xc1 : {n} : 9 : "gpu1 mlx5_0"\n'
    text = "".join(
        f'"MF0;sw1:Q3400/U{n}", Mellanox, 0xa{n}, LID {n}\n'
        "  # : IB# : Sta : PhysSta : MTU : LWA : LSA : FEC mode : Retran : Neighbor Guid : N# : NLID"
        " : Neighbor Description\n" + row.format(n=n)
        for n in range(1, 5)
    )
    fabric = scanned("ibdiagnet-net", text)
    assert (len(fabric.switches), len(fabric.hosts), fabric.cable_count) == (4, 1, 4)
    assert set(fabric.links.capacity.tolist()) == {100e9}


def test_disabled_ports_and_links_that_come_up() -> None:
    text = NET.replace("DOWN : POLLING ", "DOWN : DISABLED", 1).replace(": ACT ", ": INI ", 1)
    fabric = scanned("ibdiagnet-net", text)
    assert state_of(fabric, "leaf08", 13) == ("disabled", 0.0)
    assert state_of(fabric, "leaf08", 1) == ("initialize", 0.0)


# UFM


def link(**changes: object) -> str:
    item = {
        "source_guid": "0x0002c90000100800", "source_port": "17", "destination_guid": "0002c90000f03900",
        "destination_port": 1, "source_port_dname": "L12/U1/17", "destination_port_dname": "HCA-1/1",
        "width": "2x", "source_port_node_description": "core1:L12/U1/17",
        "destination_port_node_description": "node0057 mlx5_0",
    }  # fmt: skip
    return json.dumps([item | changes])


def test_chips_of_directors_are_switches_and_widths_count() -> None:
    found = parsed("ufm-links", link())
    assert fabric_in(found).names == ("core1:L12/U1", "node0057")
    assert fabric_in(found).links.capacity.tolist() == [12.5e9, 12.5e9]
    assert sure(found.assumed).all()
    given = parsed("ufm-links", link(), Options(rate=8.0))
    assert fabric_in(given).links.capacity.tolist() == [4.0, 4.0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"source_guid": 1}', "is not a list"),
        ("[1]", "is not an object"),
        (link(source_guid=None), "source_guid"),
        (link(source_guid="xyz"), "_port is invalid"),
        (link(destination_port="HCA-1"), "_port is invalid"),
        (link(destination_port=True), "destination_port"),
        (link(source_port="0"), "out of range"),
        (link(source_guid="0"), "without a GUID"),
        (LINKS.replace('"2",\n  "destination_guid"', '"1",\n  "destination_guid"', 1), "already|elsewhere"),
        ("[" * 5000, "nested deeper"),
    ],
)
def test_links_that_are_none(text: str, reason: str) -> None:
    refused("ufm-links", text, reason)


# what all share


@pytest.mark.parametrize("format", TEXTS)
def test_a_line_without_an_end_is_refused(format: str) -> None:
    refused(format, TEXTS[format] + "x" * 100_000 + "\n", "longer than")


LABELLED = json.loads(read("formats/ufm_links_labels.json"))
FIELDS = ("source_port_node_description", "destination_port_node_description")


def of_links(links: Any) -> Fabric:
    return scanned("ufm-links", json.dumps(links))


@pytest.mark.parametrize(
    ("name", "switches"), [("labels", ["ndr1", "ndr2", "ndrspine"]), ("cables", ["leaf1", "leaf2", "spine1"])]
)
def test_links_with_labels_or_with_cable_info_first_are_recognised_and_read(
    name: str, switches: list[str]
) -> None:
    content = raw(f"formats/ufm_links_{name}.json")
    wrapped = f'{{"total": 10, "links": {content}}}'
    for text in (content, wrapped):
        assert catalog.recognise(file(text).as_group()).name == "ufm-links"
    found = scanned("ufm-links", content)
    assert cables_of(scanned("ufm-links", wrapped)) == cables_of(found)
    assert [found.names[switch] for switch in found.switches] == switches
    assert (len(found.hosts), len(cables_of(found))) == (6, 10)
    assert {(switches[0], 3, "u4", 1), (switches[1], 32, switches[2], 4)} <= set(cables_of(found))


def test_switches_may_be_described_without_the_label() -> None:
    links = [link | {key: link[key].split(":")[0] for key in FIELDS} for link in LABELLED]
    assert cables_of(of_links(links)) == cables_of(of_links(LABELLED))


def test_without_descriptions_labels_tell_switches_from_hosts() -> None:
    bare = [{key: value for key, value in link.items() if key not in FIELDS} for link in LABELLED]
    found = of_links(bare)
    assert (len(found.switches), len(found.hosts), len(cables_of(found))) == (3, 6, 10)
    assert all(name.startswith("guid-") for name in found.names)
    half = [bare[0], *LABELLED[1:]]  # described in another link
    assert cables_of(of_links(half)) == cables_of(of_links([LABELLED[0] | {FIELDS[1]: ""}, *LABELLED[1:]]))
    assert "ndr1" in of_links(half).names


def test_the_width_of_older_versions_is_read_and_a_device_of_unknown_kind_refused() -> None:
    assert of_links([LABELLED[0] | {"width": "IB_2x"}]).links.capacity.tolist() == [12.5e9] * 2
    bare = {key: value for key, value in LABELLED[0].items() if key not in FIELDS}
    reason = "neither source_port_node_description nor source_port_dname"
    refused("ufm-links", json.dumps([bare | {"source_port_dname": "?"}]), reason)
    refused("ufm-links", json.dumps({"links": [bare | {"source_guid": "?"}]}), r"links\[0\]: source_guid")


def test_two_machines_of_one_name_that_were_never_seen_are_two_hosts() -> None:
    found = owners(scan("a mlx5_0", "a mlx5_1", "a mlx5_0", "a mlx5_1"))
    assert found == {k: f"a [0x000000000000000{own}]" for k, own in ((1, 1), (2, 1), (3, 3), (4, 3))}
    one_card = scan("a mlx5_0", "a mlx5_0", systems={1: 7, 2: 7})
    assert owners(one_card) == {1: "a", 2: "a"}
    cut_off = "a" * 55 + " mlx5_bo"
    assert len(set(owners(scan(cut_off, cut_off)).values())) == 1


FABRICS = {
    "fattree2-64-ftree": (64, 12, 96), "mixed-speeds-oversubscribed": (137, 12, 194),
    "irregular-16sw-updown": (64, 16, 95), "torus-4x4x4-dor": (128, 64, 320),
}  # fmt: skip
"""Hosts, switches and cables, counted in the simulator's own input (.net files) of each."""
SOURCES = {
    "ibnetdiscover-p.txt": "ibnetdiscover-ports", "iblinkinfo.txt": "iblinkinfo",
    "iblinkinfo-l.txt": "iblinkinfo", "iblinkinfo-l.txt.gz": "iblinkinfo",
    "opensm-subnet.lst": "opensm-subnet", "opensm-subnet.lst.gz": "opensm-subnet",
}  # fmt: skip
CASES = [
    (folder, name) for folder in FABRICS for name in SOURCES if (DATA / "infiniband" / folder / name).exists()
]
DIAGNOSTICS = {
    "formats/ibdiagnet2.db_csv": "ibdiagnet-db",
    "formats/ibdiagnet2.net_dump": "ibdiagnet-net",
    "formats/ufm_links.json": "ufm-links",
}
ALL = [(f"infiniband/{folder}/{name}", SOURCES[name]) for folder, name in CASES] + list(DIAGNOSTICS.items())


def read_sample(name: str, format: str, options: Options | None = None) -> Parsed:
    return parse(catalog.FORMATS.find(format), read(name), options, path=name)


def printed(folder: str, name: str) -> Fabric:
    return fabric_in(read_sample(f"infiniband/{folder}/{name}", SOURCES[name]))


def test_every_tool_is_here_for_a_fabric_with_all_of_them() -> None:
    tools = Counter(folder for folder, _ in CASES)
    assert (tools["mixed-speeds-oversubscribed"], set(tools)) == (4, set(FABRICS))


@pytest.mark.parametrize(("folder", "name"), CASES)
def test_the_fabric_is_that_of_ibnetdiscover_but_for_guids_that_the_tool_does_not_print(
    folder: str, name: str
) -> None:
    scan, fabric = fabric_of(raw(f"infiniband/{folder}/ibnetdiscover.txt")), printed(folder, name)
    assert same(fabric, scan)
    assert all(np.array_equal(getattr(fabric, one), getattr(scan, one)) for one in ("guid", "lid", "kind"))
    assert fabric.adapters.names == scan.adapters.names
    assert (len(fabric.hosts), len(fabric.switches), fabric.cable_count) == FABRICS[folder]
    for column in ("guid", "system_guid"):
        known = getattr(scan.adapters, column) * np.uint64("subnet" in name)
        assert np.array_equal(getattr(fabric.adapters, column), known)


@pytest.mark.parametrize(("name", "format"), ALL)
def test_a_whole_file_has_no_warnings_except_for_missing_speeds(name: str, format: str) -> None:
    found = read_sample(name, format)
    assumed = sure(found.assumed)
    assert assumed.all() == assumed.any() == bool(found.warnings)
    said = [warning.split(":")[0] for warning in found.warnings]
    assert said == (["96 cables have no width and speed"] if assumed.any() else [])
    assert not found.incomplete


@pytest.mark.parametrize("name", ["iblinkinfo.txt", "iblinkinfo-l.txt", "ibnetdiscover-p.txt"])
@pytest.mark.parametrize("folder", ["fattree2-64-ftree", "mixed-speeds-oversubscribed"])
def test_ports_without_a_link_are_those_of_the_raw_text(folder: str, name: str) -> None:
    text, fabric = raw(f"infiniband/{folder}/{name}"), printed(folder, name)
    ports = fabric.ports
    if name == "ibnetdiscover-p.txt":
        wanted = Counter(re.findall(r"^SW +(\d+) +(\d+) 0x\S+ 4x SDR +'", text, re.M))
    else:
        wanted = Counter(re.findall(r" (\d+) +(\d+)\[  \] ==\( +Down/ Polling\)", text))
    assert len(wanted) == {"fattree2-64-ftree": 64, "mixed-speeds-oversubscribed": 269}[folder]
    found = Counter(
        (str(fabric.lid[ports.vertex[row]]), str(ports.number[row])) for row in ports.down.tolist()
    )
    assert found == wanted
    assert {PORT_STATES[state] for state in ports.state[ports.down]} == {"down"}


def test_what_both_ends_could_do_is_kept_of_every_port_that_says_so() -> None:
    name = "mixed-speeds-oversubscribed"
    fabric = printed(name, "iblinkinfo-l.txt")
    lines = raw(f"infiniband/{name}/iblinkinfo-l.txt").splitlines()
    text = "\n".join(line for line in lines if "Aggregation Node" not in line)
    wanted: Counter[float] = Counter()
    for speed, wider, faster in re.findall(
        r"X +([\d.]+) Gbps.*Could be (\d+)X (?:Could be ([\d.]+) )?", text
    ):
        # data bytes/s of a lane: HDR 50 Gbit/s, QDR 8 Gbit/s
        wanted[int(wider) * {"53.125": 50e9 / 8, "10.0": 1e9}[faster or speed]] += 1
    listed = fabric.ports.could_be[fabric.ports.could_be > 0]
    assert Counter(listed.round().tolist()) == Counter({round(rate): n for rate, n in wanted.items()})
    assert sum(wanted.values()) == 388


@pytest.mark.parametrize(("name", "format"), DIAGNOSTICS.items())
def test_ibdiagnet_and_ufm_have_the_cables_of_ibnetdiscover(name: str, format: str) -> None:
    scan = fabric_of(raw("infiniband/fattree2-64-ftree/ibnetdiscover.txt"))
    fabric = fabric_in(read_sample(name, format))
    assert fabric.names == scan.names
    assert np.array_equal(fabric.guid, scan.guid)
    for column in ("source", "target", "source_port", "target_port", "source_adapter", "target_adapter"):
        assert np.array_equal(getattr(fabric.links, column), getattr(scan.links, column))
    assert np.array_equal(fabric.links.capacity, scan.links.capacity)  # 4xHDR, printed or the default
    if format == "ibdiagnet-net":
        assert np.array_equal(fabric.lid, scan.lid)
        assert np.array_equal(fabric.adapters.port_lid, scan.adapters.port_lid)
        assert len(fabric.ports.down) == raw(name).count(": DOWN :")


def test_lists_of_nodes_name_all_devices_and_no_links() -> None:
    scan = fabric_of(raw("infiniband/fattree2-64-ftree/ibnetdiscover.txt"))
    for name, kinds in (("ibnetdiscover-l.txt", "HS"), ("ibhosts.txt", "H"), ("ibswitches.txt", "S")):
        found = read_sample(f"infiniband/fattree2-64-ftree/{name}", "ibnetdiscover-list")
        fabric = fabric_in(found)
        assert "ingest it together with a source of the cables" in found.incomplete
        sizes = len(fabric.links), len(fabric.hosts), len(fabric.switches)
        assert sizes == (0, 64 * ("H" in kinds), 12 * ("S" in kinds))
        assert set(fabric.names) <= set(scan.names)
        if name == "ibswitches.txt":
            assert np.array_equal(fabric.lid, scan.lid[scan.switches])


@pytest.mark.parametrize(("name", "format"), ALL)
def test_line_ends_of_other_systems_and_a_prompt_change_nothing(name: str, format: str) -> None:
    content, parser = raw(name), catalog.FORMATS.find(format)
    plain = fabric_in(read_sample(name, format))
    assert same(fabric_in(parse(parser, content.replace("\n", "\r\n"))), plain)
    if format not in ("ufm-links", "ibdiagnet-db"):
        found = parse(parser, f"Last login: Fri Nov 20\n{content}\n[root@head ~]$ ")
        assert same(fabric_in(found), plain)
        skipped = ("1 line before the scan was skipped", "1 line after the scan was skipped")
        assert found.warnings[:2] == skipped


@pytest.mark.parametrize(("name", "format"), ALL)
def test_files_cut_off_anywhere_are_refused_or_whole(name: str, format: str) -> None:
    content = read(name)
    parser, whole = catalog.FORMATS.find(format), fabric_in(read_sample(name, format))
    refused = 0
    for part in range(1, 40):
        try:
            found = parse(parser, content[: len(content) * part // 40])
        except InputError:
            refused += 1
            continue
        cables = fabric_in(found).cable_count
        assert found.incomplete or cables == whole.cable_count  # a database without LINKS is none alone
    assert refused >= 36


NOISE = [
    "ibwarn: [1203] mad_rpc_rmpp: _do_madrpc failed; dport (Lid 11)",
    "src/query_smp.c:199; umad (DR path slid 0; dlid 0; 0,1 Attr 0x15) bad status 110; Connection timed out",
    "/usr/sbin/ibqueryerrors: iberror: failed: Failed to open CA",
]
MIXED = read("counters/ibqueryerrors-stderr.txt").decode()


def test_the_lines_of_standard_error_are_recognised() -> None:
    others = ('Errors for "ibwarn"', "Segmentation fault", "# x")
    assert [line for line in (*NOISE, *others) if DIAGNOSTIC.fullmatch(line)] == NOISE


def test_a_sweep_mixed_with_standard_error_is_recognised_and_read() -> None:
    assert catalog.recognise(file(MIXED).as_group()).name == "ibqueryerrors"
    parsed = parse(IBQUERYERRORS, MIXED)
    assert f"4 lines are {DIAGNOSED}" in parsed.warnings
    (sweep,) = parsed.counters
    ports = list(zip(sweep.guid.tolist(), sweep.port.tolist(), strict=True))
    assert ports == [(0xC42A103007998A0, 1), (0xC42A10300DCF8E2, 2)]
    assert sweep.column("xmit_bytes").tolist() == [12798802 * 4, 1758872 * 4]
    heading = 'Errors for 0xc42a10300dcf8e2 "leaf-a"\n'
    moved = heading + NOISE[0] + "\n" + MIXED.partition(heading)[2]
    assert catalog.recognise(file(moved).as_group()).name == "ibqueryerrors"


@pytest.mark.parametrize(
    ("parser", "sample"),
    [
        (PERFQUERY, "counters/sweep1-perfquery-1.txt"),
        (routes.DUMP_FTS, "infiniband/fattree2-64-lmc1/dump_fts.txt.gz"),
        (IBNETDISCOVER, "counters/ibnetdiscover.txt"),
        (IBLINKINFO, "infiniband/torus-4x4x4-dor/iblinkinfo-l.txt.gz"),
    ],
    ids=["perfquery", "dump_fts", "ibnetdiscover", "iblinkinfo"],
)
def test_other_outputs_mixed_with_standard_error_are_read(parser: Format, sample: str) -> None:
    text = read(sample).decode()
    lines = text.split("\n")
    for index in range(len(lines) - 2, -1, -37):
        lines[index:index] = [NOISE[index % 3]]
    added = len(lines) - text.count("\n") - 1
    plain, mixed = parse(parser, text), parse(parser, "\n".join(lines))
    assert f"{added} lines are {DIAGNOSED}" in mixed.warnings
    for one, other in zip(plain.counters, mixed.counters, strict=True):
        assert np.array_equal(one.guid, other.guid)
        assert np.array_equal(one.port, other.port)
    if plain.fabric is not None and mixed.fabric is not None:
        assert plain.fabric.names == mixed.fabric.names
        assert len(plain.fabric.links.source) == len(mixed.fabric.links.source)
    if plain.tables is not None and mixed.tables is not None:
        assert np.array_equal(plain.tables.ports, mixed.tables.ports)


def test_a_wrong_line_behind_a_diagnostic_has_its_own_number() -> None:
    lines = read("infiniband/fattree2-64-lmc1/dump_fts.txt.gz").decode().split("\n")
    lines[5:5] = NOISE
    lines[9] = lines[9].replace("0x", "0y")
    assert refusal(routes.DUMP_FTS, "\n".join(lines)).line == 10
