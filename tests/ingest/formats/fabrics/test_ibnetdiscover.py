"""ibnetdiscover: real scans counted against their raw text, and the same scan in every known dress."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime

import numpy as np
import pytest

from ingest.formats.fabrics.infiniband import build_fabric
from ingest.options import Options
from ingest.writers.infiniband import director_tree, ibnetdiscover_text
from registry.model import HOST, SWITCH
from tests.support.ibnetdiscover_scans import TREE, fabric_of, raw, read, same, swap
from tests.support.inputs import DATA

PATTERNS = ("infiniband/*/ibnetdiscover.txt*", "infiniband/*/before.*", "public/*.topo", "public/ndr-dgx.*")
SCANS = sorted(path.relative_to(DATA).as_posix() for pattern in PATTERNS for path in DATA.glob(pattern))
GIGABITS = {
    "SDR": 2,
    "DDR": 4,
    "QDR": 8,
    "FDR10": 10,
    "FDR": 14.0625 * 64 / 66,
    "EDR": 25,
    "HDR": 50,
    "NDR": 100,
}
"""Data rate of a lane, in Gbit/s: stated here once more, apart from the code."""


def naive_cables(text: str) -> list[tuple[str, str, float]]:
    """(own GUID, peer GUID, bytes/s) of every printed port, by a line-by-line look that shares no code."""
    own, found = "", []
    for line in text.splitlines():
        head = re.match(r'(?:Switch|Ca)\s.*?"[SH]-([0-9a-f]+)"', line)
        own = head[1] if head else own
        port = re.match(r'\[\d+\].*?"[SH]-([0-9a-f]+)".*\s(\d+)x([A-Z]+\d*)\s*$', line)
        if port:
            found.append((own, port[1], int(port[2]) * GIGABITS[port[3]] * 1e9 / 8))
    return found


@pytest.mark.parametrize("name", SCANS)
def test_counts_and_capacities_agree_with_the_raw_text(name: str) -> None:
    text = raw(name)
    fabric = fabric_of(text)
    aggregation = set(
        re.findall(r'^Ca\s.*"H-([0-9a-f]+)".*"Mellanox Technologies Aggregation Node"', text, re.M)
    )
    cables = [end for end in naive_cables(text) if not aggregation & set(end[:2]) and end[0] != end[1]]
    assert len(fabric.switches) == len(re.findall(r"^Switch\s", text, re.M))
    assert len(fabric.adapters) == len(re.findall(r"^Ca\s", text, re.M)) - len(aggregation)
    assert fabric.cable_count == len(cables) / 2
    assert len(fabric.links) == len(cables)
    if name != "public/1.topo":  # which prints two cables with a different rate at each end
        assert fabric.links.capacity.sum() == pytest.approx(sum(rate for *_, rate in cables), rel=1e-12)
    between = Counter((own, peer) for own, peer, _ in cables)
    guids = {f"{int(guid):016x}": vertex for vertex, guid in enumerate(fabric.guid) if guid}
    guids |= {
        f"{int(guid):016x}": int(host)
        for guid, host in zip(fabric.adapters.guid, fabric.adapters.host, strict=True)
    }
    wanted: Counter[tuple[int, int]] = Counter()
    for (own, peer), count in between.items():
        wanted[guids[own], guids[peer]] += count
    assert Counter(zip(fabric.links.source.tolist(), fabric.links.target.tolist(), strict=True)) == wanted


@pytest.mark.parametrize("name", SCANS)
def test_every_fabric_keeps_the_promises_of_its_type(name: str) -> None:
    fabric = fabric_of(raw(name))
    links = fabric.links
    assert list(fabric.names) == sorted(fabric.names)
    assert (fabric.forwards == (fabric.kind == SWITCH)).all()
    assert (fabric.slots == (fabric.kind == HOST)).all()
    assert ((links.source_adapter >= 0) == (fabric.kind[links.source] == HOST)).all()
    assert (
        fabric.adapters.host[links.source_adapter[links.source_adapter >= 0]]
        == links.source[links.source_adapter >= 0]
    ).all()
    forward = Counter(
        zip(links.source, links.source_port, links.target, links.target_port, links.capacity, strict=True)
    )
    backward = Counter(
        zip(links.target, links.target_port, links.source, links.source_port, links.capacity, strict=True)
    )
    assert forward == backward


@pytest.mark.parametrize(
    ("name", "hosts", "switches"),
    [
        ("infiniband/fattree2-64-ftree/ibnetdiscover.txt", 64, 12),
        ("infiniband/fattree2-648-ftree/ibnetdiscover.txt.gz", 648, 54),
        ("infiniband/torus-4x4x4-dor/ibnetdiscover.txt", 128, 64),
        ("infiniband/mixed-speeds-oversubscribed/ibnetdiscover.txt", 137, 12),
        ("public/1.topo", 4, 2),
        ("public/2.topo", 2, 1),
        ("public/3.topo", 5, 2),
        ("public/4.topo", 1, 1),
    ],
)
def test_hosts_of_real_scans(name: str, hosts: int, switches: int) -> None:
    fabric = fabric_of(raw(name))
    assert (len(fabric.hosts), len(fabric.switches)) == (hosts, switches)


def test_ndr_fabric_has_109_hosts_with_rails_on_four_leaves() -> None:
    fabric = fabric_of(raw("public/ndr-dgx.ibnetdiscover"))
    leaves = {fabric.names[host]: fabric.indptr[host + 1] - fabric.indptr[host] for host in fabric.hosts}
    assert sum(count == 4 for count in leaves.values()) == 109
    nameless = [name for name in leaves if name.startswith("guid-0x")]
    assert len(nameless) == 72
    assert all(leaves[name] == 1 for name in nameless)
    assert fabric.observed_at == datetime(2025, 8, 6, 16, 11, 23, tzinfo=UTC)


def test_adapters_of_a_host_are_its_rails() -> None:
    fabric = fabric_of(raw("public/3.topo"))
    (host,) = fabric.vertices(["r-ufm101"])
    rails = np.flatnonzero(fabric.adapters.host == host)
    assert [fabric.adapters.names[rail] for rail in rails] == ["r-ufm101 HCA-1", "r-ufm101 HCA-2"]
    ports = np.flatnonzero(np.isin(fabric.adapters.port_adapter, rails))
    assert fabric.adapters.port_lid[ports].tolist() == [27, 30]
    assert [hex(guid) for guid in fabric.adapters.port_guid[ports]] == ["0x2c9030004e939", "0x2c9030006ba5b"]


def test_cables_from_a_switch_to_itself_are_left_out_and_counted() -> None:
    parsed = read(raw("public/3.topo"))
    assert any(warning.startswith("3 cables lead from a device back") for warning in parsed.warnings)


def test_different_rates_at_the_ends_of_a_cable_are_counted_and_the_lower_is_taken() -> None:
    parsed = read(raw("public/1.topo"))
    assert parsed.fabric is not None
    assert any(warning.startswith("2 cables have different rates") for warning in parsed.warnings)
    assert sorted(parsed.fabric.links.capacity.tolist()) == [0.25e9] * 4 + [1e9] * 10


def test_lmc_is_read() -> None:
    assert fabric_of(raw("public/1.topo")).adapters.port_lmc.tolist() == [1] * 5
    assert set(fabric_of(TREE.replace("lmc 0 ", "lmc 7 ")).adapters.port_lmc.tolist()) == {7}


def test_generated_fabric_comes_back_as_it_was_made() -> None:
    devices = director_tree(edges=4, hosts_per_edge=3, directors=2, line_chips=3, spine_chips=2, speed="NDR")
    made = build_fabric(devices, path="", default_rate=1.0).fabric
    assert made is not None
    back = fabric_of(ibnetdiscover_text(devices, speed="NDR"))
    assert back.names == made.names
    for column in (
        "source",
        "target",
        "capacity",
        "source_port",
        "target_port",
        "source_adapter",
        "target_adapter",
    ):
        assert np.array_equal(getattr(back.links, column), getattr(made.links, column))
    for column in (
        "guid",
        "system_guid",
        "host",
        "port_adapter",
        "port_number",
        "port_guid",
        "port_lid",
        "port_lmc",
    ):
        assert np.array_equal(getattr(back.adapters, column), getattr(made.adapters, column))
    assert np.array_equal(back.guid, made.guid)
    assert np.array_equal(back.lid, made.lid)


def test_parallel_cables_are_counted() -> None:
    fabric = fabric_of(TREE)
    leaf, spine = fabric.vertices(["leaf01", "spine01"])
    arc = fabric.indptr[leaf] + fabric.neighbour[
        fabric.indptr[leaf] : fabric.indptr[leaf + 1]
    ].tolist().index(spine)
    assert fabric.cables[arc] == 2
    assert fabric.capacity[arc] == 2 * 25e9


TIMEOUT = "src/query_smp.c:195; umad (DR path slid 0; dlid 0; 0,1 Attr 0x11:0) bad status 110"
DRESSES = {
    "tabs to blanks": TREE.replace("\t", " "),
    "tabs lost": TREE.replace("\t", ""),
    "tabs expanded": TREE.replace("\t", "        "),
    "carriage returns": TREE.replace("\n", "\r\n"),
    "byte order mark": "\ufeff" + TREE,
    "no last line end": TREE.rstrip("\n"),
    "blank lines at the end": TREE + "\n\n \n",
    "terminal": f"=~=~= PuTTY log 2025.08.06 =~=~=\n[root@ufm ~]# ibnetdiscover\n{TREE}[root@ufm ~]# exit\n",
    "0x identifiers": swap(TREE, r'"([SH])-([0-9a-f]{16})"', r'"\1-0x\2"'),
    "0x port GUIDs": swap(TREE, r"\(([0-9a-f]+)\)", r"(0x\1)"),
    "padded port GUIDs": swap(TREE, r"\(([0-9a-f]+)\)", lambda match: f"({match[1].upper():>016})"),
    "full output": swap(TREE, r"4xHDR$", "4xHDR s=4 w=2 v=4"),
    "external ports": swap(TREE, r"^\[(\d+)\]", r"[\1][ext 1\1]"),
    "no blank lines": TREE.replace("\n\n", "\n").replace("HDR\nvendid", "HDR\n \nvendid"),
    "diagnostics": TREE.replace("\n\n", f"\n{TIMEOUT}\n\n"),
    "hops": TREE.replace(
        "# Initiated", "# Reported max hops discovered: 3\n# Total MADs used: 99\n# Initiated"
    ),
}


@pytest.mark.parametrize("dress", DRESSES)
def test_the_same_scan_in_another_dress_is_the_same_fabric(dress: str) -> None:
    assert same(fabric_of(DRESSES[dress]), fabric_of(TREE))


def test_what_surrounds_a_scan_is_counted() -> None:
    parsed = read("=~= PuTTY log =~=\n# ibnetdiscover\n" + TREE + "[root@ufm ~]# exit\n")
    assert parsed.warnings == (
        "1 line before the scan was skipped",
        "1 line after the scan was skipped",
    )


def test_grouped_output_prints_chassis_switches_twice() -> None:
    head, *records = TREE.split("\n\nvendid")
    switches = [f"\n\nvendid{record}" for record in records if "switchguid" in record]
    adapters = [f"\n\nvendid{record}" for record in records if "caguid" in record]
    marked = [re.sub(r"(sysimgguid=\S+)", r"\1\t\t# Chassis 1", record) for record in switches]
    marked = [re.sub(r"(switchguid=\S+)", r"\1\t# Mellanox Spine 1 Chip 1", record) for record in marked]
    chassis = "\n\nChassis 1 (guid 0x2c90000100100)\n\n# Spine Nodes"
    text = head + chassis + "".join(marked) + "\n# Chassis Switches" + "".join(marked) + "\n# Chassis CAs"
    text += "\n\nNon-Chassis Nodes\n" + "".join(adapters)
    parsed = read(text)
    assert parsed.fabric is not None
    assert parsed.warnings == ()
    assert same(parsed.fabric, fabric_of(TREE))


def test_old_scans_without_port_guids_and_rates_take_the_default_and_say_so() -> None:
    text = swap(swap(TREE, r"\([0-9a-f]+\)", ""), r" 4xHDR$", "")
    parsed = read(text)
    assert parsed.fabric is not None
    assert set(parsed.fabric.links.capacity.tolist()) == {1e9}
    assert parsed.warnings == ("14 cables have no width and speed: 1e+09 bytes/s are assumed",)
    assert parsed.fabric.adapters.port_guid.tolist() == [0] * 6
    assert set(fabric_of(text, Options(rate=5e9)).links.capacity.tolist()) == {5e9}


@pytest.mark.parametrize("printed", ["4x???", "?????", "??HDR"])
def test_speeds_that_the_tool_does_not_know_are_unknown_rates(printed: str) -> None:
    assert set(fabric_of(TREE.replace("4xHDR", printed), Options(rate=7.0)).links.capacity.tolist()) == {7.0}


def test_a_rate_that_only_one_end_prints_holds_for_both() -> None:
    text = swap(TREE, r'^(\[\d+\]\t"H-.*) 4xHDR$', r"\1")
    assert set(fabric_of(text).links.capacity.tolist()) == {25e9}


@pytest.mark.parametrize(("width", "lanes"), [("1x", 1), ("2x", 2), ("4x", 4), ("8x", 8), ("12x", 12)])
@pytest.mark.parametrize("speed", GIGABITS)
def test_every_width_and_speed(width: str, lanes: int, speed: str) -> None:
    fabric = fabric_of(TREE.replace("4xHDR", width + speed))
    assert fabric.links.capacity[0] == pytest.approx(lanes * GIGABITS[speed] * 1e9 / 8, rel=1e-14)


@pytest.mark.parametrize("lid", ["0", "65535"])
def test_ports_without_a_lid(lid: str) -> None:
    fabric = fabric_of(swap(TREE, r"# lid \d+ lmc 0", f"# lid {lid} lmc 0"))
    assert fabric.adapters.port_lid.tolist() == [0] * 6


def test_hosts_back_to_back_need_no_switch() -> None:
    guids = ("a088c20300ab0000", "a088c20300bb0000")
    records = [
        f'\nsysimgguid=0x{own}\ncaguid=0x{own}\nCa\t1 "H-{own}"\t\t# "node{at} mlx5_0"\n'
        f'[1]({own}) \t"H-{peer}"[1] ({peer}) \t\t# lid {at + 1} lmc 0 "node{1 - at} mlx5_0" lid 9 4xEDR\n'
        for at, (own, peer) in enumerate((guids, guids[::-1]))
    ]
    fabric = fabric_of("".join(records))
    assert (fabric.names, fabric.cable_count, len(fabric.switches)) == (("node0", "node1"), 1, 0)
    assert fabric.observed_at is None
