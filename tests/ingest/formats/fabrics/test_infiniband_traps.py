"""What is odd about the output of InfiniBand tools, one by one, and what is refused."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import numpy as np
import pytest

from ingest import catalog
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.rates import LANE_BYTES, printed_rate
from registry.errors import InputError
from registry.model import Fabric
from registry.model.links import PORT_STATES
from tests.support.ibnetdiscover_scans import fabric_of, raw, same, swap
from tests.support.inputs import parse

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


def parsed(format: str, text: str, options: Options | None = None) -> Parsed:
    return parse(catalog.FORMATS.find(format).parser(), text, options)


def scanned(format: str, text: str) -> Fabric:
    fabric = parsed(format, text).fabric
    assert fabric is not None
    return fabric


def refused(format: str, text: str, reason: str) -> InputError:
    with pytest.raises(InputError, match=reason) as caught:
        parsed(format, text)
    assert caught.value.path == "input"
    return caught.value


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


def test_a_router_forwards_nothing() -> None:
    text = re.sub(r"CA(\s+76\s+1 0x0002c90000f04001)", r"RT\1", PORTS)
    fabric = scanned("ibnetdiscover-ports", text)
    assert len(fabric.hosts) == 63
    assert (~fabric.forwards).sum() == 64
    assert len(fabric.switches) == 13


@pytest.mark.parametrize("by", ["2x HDR", "4x ???", "?? HDR"])
def test_widths_and_speeds_of_the_ports_report(by: str) -> None:
    found = parsed("ibnetdiscover-ports", PORTS.replace("4x HDR", by))
    assert found.fabric is not None
    assert found.assumed is not None
    rate = LANE_BYTES["HDR"] * (2 if by == "2x HDR" else 4)
    assert set(found.fabric.links.capacity.tolist()) == {rate}
    assert found.assumed.all() == ("?" in by)


@pytest.mark.parametrize(
    ("pattern", "by", "reason"),
    [
        (r"^CA    76 .*\n", "", "the other end is not in the file"),
        (r"^CA    76  1", "CA    76  0", "out of range"),
        (r"^CA    76  1", "CA 99999  1", "LID 99999"),
        (r"^CA    75 .*$", "what is this", "not a line of ibnetdiscover -p"),
        (r"^(CA    75 .*)$", "\\1\n\\1", "is already in line 2"),
        (r"SW     9  8 (0x\S+ \( 'node0064)", "SW     9  7 \\1", "leads elsewhere"),
        (r"^SW     9 12", "SW    19 12", "contradicts this description of the device"),
    ],
)  # fmt: skip
def test_reports_of_ports_that_contradict_themselves(pattern: str, by: str, reason: str) -> None:
    refused("ibnetdiscover-ports", swap(PORTS, pattern, by), reason)


# ibnetdiscover -l


def test_a_guid_twice_in_a_list_is_refused() -> None:
    first = LIST.splitlines()[0]
    error = refused("ibnetdiscover-list", f"{LIST}{first}\n", "the device is already in line 1")
    assert error.line == len(LIST.splitlines()) + 1


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


def test_a_report_of_adapters_alone_is_no_network() -> None:
    refused(
        "iblinkinfo",
        BLOCKS.split("Switch:")[0],
        "the device at the other end is not in the file: it is truncated, or lists only adapters",
    )


def test_a_report_of_down_ports_alone_is_for_beside_another_source() -> None:
    down = "".join(
        line for line in BLOCKS.splitlines(keepends=True) if "Down/" in line or line.startswith("Switch")
    )
    found = parsed("iblinkinfo", down)
    assert "-d prints none" in found.incomplete
    assert found.fabric is not None
    assert len(found.fabric.ports.down) == 64


def test_more_settings_and_numbers_of_connectors_are_read_over() -> None:
    more = BLOCKS.replace("LinkUp)==>", "LinkUp) (HOQ:18 VL_Stall:7)==>").replace("[  ] ==", "[12] ==")
    assert same(scanned("iblinkinfo", more), SCAN)


@pytest.mark.parametrize(
    ("printed", "speed"),
    [("10.0 Gbps (FDR10)", "FDR10"), ("5.0 Gbps", "DDR"), ("106.25 Gbps", "NDR"), ("undefined (99)", "")],
)
def test_speeds_by_the_lane(printed: str, speed: str) -> None:
    found = parsed("iblinkinfo", LINES.replace("53.125 Gbps", printed))
    assert found.fabric is not None
    rate = 4 * LANE_BYTES[speed or "HDR"]
    assert set(found.fabric.links.capacity.tolist()) == {rate}
    assert [warning.split(" have")[0] for warning in found.warnings] == ([] if speed else ["96 cables"])


def test_states_of_ports() -> None:
    text = BLOCKS.replace("Down/ Polling", "Down/Disabled", 1).replace(
        "Down/ Polling", "Down/PortConfigurationTraining", 1
    )
    text = text.replace("Active/  LinkUp", "  Init/  LinkUp", 1).replace(
        '[  ] "" ( )', '"Port not available"', 1
    )
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


def test_blocks_without_lids_ask_for_lines_which_need_none() -> None:
    without = re.sub(r" +\d+( +\d+\[  \])", r"  0\1", BLOCKS)
    refused(
        "iblinkinfo", without, "the LID does not identify the other end: use iblinkinfo -l or ibnetdiscover"
    )
    lines = re.sub(r" +\d+( +\d+\[  \])", r"  0\1", LINES)
    fabric = scanned("iblinkinfo", lines)
    assert fabric.cable_count == 96
    assert not fabric.lid.any()


def test_two_devices_of_one_lid_are_distinguished_by_name() -> None:
    text = re.sub(r"( )75( +\d+\[  \])", r"\g<1>76\2", BLOCKS)
    assert scanned("iblinkinfo", text).cable_count == 96
    refused(
        "iblinkinfo",
        text.replace("node0063", "node0064"),
        "the LID does not identify the other end: use iblinkinfo -l or ibnetdiscover",
    )


@pytest.mark.parametrize(
    ("pattern", "by", "reason"),
    [
        (r"^CA: node0064.*\n", "", "a port without the CA, Switch or Router line"),
        (r"^(CA: node0063.*\n.*\n)", "\\1\\1", "already"),
        (r"^(.*  76    )1\[", "\\g<1>0[", "out of range"),
        (r"^(      0x0002c90000f04001 .*)Active/", "\\1Active", "not a line of iblinkinfo"),
        (r"^( +9 +)2\[", "\\g<1>1[", "already"),
        (r"^( +)9( +2\[)", "\\g<1>8\\2", "two LIDs"),
    ],
)
def test_reports_that_contradict_themselves(pattern: str, by: str, reason: str) -> None:
    refused("iblinkinfo", swap(BLOCKS, pattern, by), reason)


# opensm-subnet.lst


def test_numbers_of_the_subnet_manager_are_hexadecimal() -> None:
    fabric = scanned("opensm-subnet", SUBNET)
    assert int(fabric.links.source_port.max()) == 12  # PN:0C
    assert int(fabric.adapters.port_lid.max()) == 76  # LID:004C


def test_names_may_hold_braces() -> None:
    name = "{leaf} LID:0001 PN:01 } { 01"
    assert name in scanned("opensm-subnet", SUBNET.replace("{leaf01}", f"{{{name}}}")).names


def test_links_that_are_not_active_are_kept_with_their_state() -> None:
    text = SUBNET.replace("LOG=ACT", "LOG=INI", 1)
    fabric = scanned("opensm-subnet", text)
    assert fabric.cable_count == 96
    assert state_of(fabric, "leaf01", 1) == ("initialize", 0.0)


def test_speeds_that_opensm_does_not_know_are_assumed() -> None:
    found = parsed("opensm-subnet", SUBNET.replace("SPD=50", "SPD=??"), Options(rate=7.0))
    assert found.fabric is not None
    assert set(found.fabric.links.capacity.tolist()) == {7.0}
    assert found.warnings == ("96 cables have no width and speed: 7 bytes/s are assumed",)


@pytest.mark.parametrize(
    ("pattern", "by", "reason"),
    [
        (r"LOG=ACT", "LOG=FOO", "unknown state"),
        (r"NodeGUID:0002c90000100100", "NodeGUID:0000000000000000", "without a GUID"),
        (r"\A(.*)\{leaf01\}", "\\1{other}", "contradicts this description of the device"),
        (r"\A.*\n", "", "leads elsewhere|is not in the file"),
        (r"PN:01 \} PHY", "PN:FF } PHY", "out of range"),
    ],
)
def test_pictures_that_contradict_themselves(pattern: str, by: str, reason: str) -> None:
    refused("opensm-subnet", swap(SUBNET, pattern, by), reason)


# ibdiagnet2.db_csv

HEADER = (
    "NodeGuid,PortGuid,PortNum,LID,LinkWidthActv,LinkWidthSup,LinkSpeedActv,LMC,"
    "PortPhyState,PortState,LinkSpeedSup"
)


def database(*, changes: dict[tuple[str, int], str] | None = None) -> str:
    """Two hosts on a switch, at 4xNDR of which 4xNDR is supported (3841 as in a public sample)."""
    nodes = [
        '"host1 mlx5_0",1,1,0x11,0xa1,0xb1',
        '"host2 mlx5_0",1,1,0x12,0xa2,0xb2',
        '"switch, ""one""",65,2,0x13,0xa3,0xa3',
    ]
    rows = {
        ("0xa1", 1): "0xb1,1,7,2,19,2048,1,5,4,3841",
        ("0xa2", 1): "0xb2,1,9,2,19,2048,0,5,4,3841",
        ("0xa3", 0): "0xa3,0,3,0,0,0,0,0,4,0",
        ("0xa3", 1): "0xa3,1,0,2,19,2048,0,5,4,3841",
        ("0xa3", 2): "0xa3,2,0,2,19,2048,0,5,4,3841",
        ("0xa3", 3): "0xa3,3,0,2,19,1,0,2,1,3841",
    } | (changes or {})
    lines = [
        "# Running timestamp   : 2022-08-25 17:45:38 UTC +0000",
        "START_INDEX_TABLE",
        "a,b",
        "END_INDEX_TABLE",
    ]
    lines += [
        "START_NODES",
        "NodeDesc,NumPorts,NodeType,SystemImageGUID,NodeGUID,PortGUID",
        *nodes,
        "END_NODES",
    ]
    lines += ["", "START_PORTS", HEADER, *(f"{guid},{row}" for (guid, _), row in rows.items()), "END_PORTS"]
    lines += ["START_LINKS", "NodeGuid1,PortNum1,NodeGuid2,PortNum2"]
    lines += ["0xa3,1,0xa1,1", "0xa2,1,0xa3,2", "0xa3,2,0xa2,1", "END_LINKS"]
    return "\n".join(lines) + "\n"


def test_a_database_with_ports_is_complete() -> None:
    fabric = scanned("ibdiagnet-db", database())
    assert fabric.names == ("host1", "host2", 'switch, "one"')
    assert set(fabric.links.capacity.tolist()) == {50e9}
    assert fabric.cable_count == 2
    assert fabric.lid.tolist() == [0, 0, 3]
    adapters = fabric.adapters
    assert adapters.guid.tolist() == [0xA1, 0xA2]
    assert adapters.system_guid.tolist() == [0x11, 0x12]
    assert adapters.port_guid.tolist() == [0xB1, 0xB2]
    assert adapters.port_lid.tolist() == [7, 9]
    assert adapters.port_lmc.tolist() == [1, 0]
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


def test_columns_are_found_by_name_in_any_order() -> None:
    text = DATABASE.replace("NodeGuid1,PortNum1,NodeGuid2,PortNum2", "nodeguid1, PORTNUM1,NodeGUID2,PortNum2")
    assert same(scanned("ibdiagnet-db", text), scanned("ibdiagnet-db", DATABASE))


def test_a_database_without_links_is_for_beside_another_source() -> None:
    found = parsed("ibdiagnet-db", DATABASE.split("START_LINKS")[0])
    assert "no section LINKS" in found.incomplete
    assert found.fabric is not None
    assert len(found.fabric) == 76


@pytest.mark.parametrize(
    ("pattern", "by", "reason"),
    [
        ("^END_LINKS$", "", "within section LINKS"),
        ("^END_LINKS$", "END_NODES", "within section LINKS"),
        ("^START_NODES$", "", "END_NODES within section none"),
        (",NodeType,", ",NodeKind,", "no column nodetype"),
        (r'^"leaf07",16,2,', '"leaf07",16,7,', "unknown type of node: 7"),
        (r'^"leaf07",16,2,', '"leaf07",2,', "12 cells, but section NODES has 13"),
        (r'^"leaf07",.*\n', "", "a link of a device that is missing in section NODES"),
        (r"^0x0002c90000100800,1,", "0x0002c90000100800,x,", "portnum1 is not a number"),
        (r"^0x0002c90000100800,1,", "0x0002c90000100800,2,", "already|leads elsewhere"),
        (r"^0x0002c90000100800,1,", "0x1ffffffffffffffff,1,", "out of range"),
        (r"^0x0002c90000100800,1,", "0x0002c90000100800,\r1,", "invalid CSV"),
    ],
)
def test_databases_that_contradict_themselves(pattern: str, by: str, reason: str) -> None:
    refused("ibdiagnet-db", swap(DATABASE, pattern, by), reason)


def test_a_section_that_does_not_end_is_cut_off() -> None:
    refused("ibdiagnet-db", DATABASE.split("0x0002c90000100800,2,")[0], "section LINKS does not end")


# ibdiagnet2.net_dump


def test_guids_of_neighbours_without_leading_zeros() -> None:
    assert same(scanned("ibdiagnet-net", NET.replace(": 0x0002c9", ": 0x2c9")), scanned("ibdiagnet-net", NET))


def test_labels_of_ports_may_be_anything() -> None:
    text = swap(NET, r"^   1/(\d+) ", r"   sw1p\1s2 ")
    assert same(scanned("ibdiagnet-net", text), scanned("ibdiagnet-net", NET))


def test_comments_at_the_head_have_the_time() -> None:
    head = "# This file was made\n# Running timestamp : 2022-08-25 17:45:38 UTC +0000\n\n"
    found = parsed("ibdiagnet-net", head + NET)
    assert found.fabric is not None
    assert found.fabric.observed_at == datetime(2022, 8, 25, 17, 45, 38, tzinfo=UTC)
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
    assert len(fabric.switches) == 4
    assert len(fabric.hosts) == 1
    assert fabric.cable_count == 4
    assert set(fabric.links.capacity.tolist()) == {100e9}


def test_disabled_ports_and_links_that_come_up() -> None:
    text = NET.replace("DOWN : POLLING ", "DOWN : DISABLED", 1).replace(": ACT ", ": INI ", 1)
    fabric = scanned("ibdiagnet-net", text)
    assert state_of(fabric, "leaf08", 13) == ("disabled", 0.0)
    assert state_of(fabric, "leaf08", 1) == ("initialize", 0.0)


@pytest.mark.parametrize(
    ("pattern", "by", "reason"),
    [
        (r'\A"leaf08".*\n', "", "a port without the line of its switch"),
        (r'^"leaf07", Mellanox, 0x0002c90000100700', '"leaf07", Mellanox, 0x0002c90000100800', "already"),
        (r"LID 9$", "LID 99999", "LID 99999"),
        (r"\A((?:.*\n){2}.*): 0x0002c90000f03900 :", "\\1: nothing :", "is unreadable"),
        (
            r'\A((?:.*\n){2}.*)"node0057 mlx5_0"',
            '\\1"node00',
            "the row is incomplete: the file seems truncated",
        ),
        (r"\A((?:.*\n){2}.*): 4x ", "\\1 4x ", "not a line of ibdiagnet2.net_dump"),
    ],
)
def test_dumps_that_contradict_themselves(pattern: str, by: str, reason: str) -> None:
    refused("ibdiagnet-net", swap(NET, pattern, by), reason)


# UFM


def link(**changes: object) -> str:
    item = {
        "source_guid": "0x0002c90000100800",
        "source_port": "17",
        "destination_guid": "0002c90000f03900",
        "destination_port": 1,
        "source_port_dname": "L12/U1/17",
        "destination_port_dname": "HCA-1/1",
        "width": "2x",
        "source_port_node_description": "core1:L12/U1/17",
        "destination_port_node_description": "node0057 mlx5_0",
    }
    return json.dumps([item | changes])


def test_chips_of_directors_are_switches_and_widths_count() -> None:
    found = parsed("ufm-links", link())
    assert found.fabric is not None
    assert found.fabric.names == ("core1:L12/U1", "node0057")
    assert found.fabric.links.capacity.tolist() == [12.5e9, 12.5e9]
    assert found.assumed is not None
    assert found.assumed.all()
    assert parsed("ufm-links", link(), Options(rate=8.0)).fabric.links.capacity.tolist() == [4.0, 4.0]  # type: ignore[union-attr]


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


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("ibnetdiscover-ports", PORTS),
        ("iblinkinfo", LINES),
        ("opensm-subnet", SUBNET),
        ("ibdiagnet-net", NET),
        ("ibdiagnet-db", DATABASE),
    ],
)
def test_a_line_without_an_end_is_refused(format: str, text: str) -> None:
    refused(format, text + "x" * 100_000 + "\n", "longer than")


def test_comments_between_the_rows_are_read_over() -> None:
    text = NET.replace('"leaf07", Mellanox', '# a comment\n"leaf07", Mellanox')
    assert same(scanned("ibdiagnet-net", text), scanned("ibdiagnet-net", NET))


def test_the_tools_own_diagnostics_are_counted() -> None:
    found = parsed("iblinkinfo", f"ibwarn: [4711] mad_rpc: timeout\n{LINES}")
    assert found.warnings == ("1 line is the tool's own diagnostics: parts of the fabric may be missing",)


@pytest.mark.parametrize(
    ("lanes", "speed", "rate"),
    [
        ("4x", "HDR", 25e9),
        ("2X", "50", 12.5e9),
        ("4X", "FDR10", 5e9),
        ("3x", "HDR", None),
        ("??", "HDR", None),
    ],
)
def test_rates_as_tools_print_them(lanes: str, speed: str, rate: float | None) -> None:
    assert printed_rate(lanes, speed) == rate


def test_a_speed_that_nobody_knows_has_no_rate() -> None:
    assert printed_rate("4x", "???") is None
