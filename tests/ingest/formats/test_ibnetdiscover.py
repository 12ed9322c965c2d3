"""ibnetdiscover: real scans counted against their raw text, every known dress, names of hosts, and errors."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime

import numpy as np
import pytest

from ingest.formats.fabrics.infiniband import Device, Port, build_fabric
from ingest.options import Options
from ingest.writers import director_tree, ibnetdiscover_text
from registry.errors import InputError
from registry.model import HOST, SWITCH, Fabric
from tests.support.ibnetdiscover_scans import TREE, fabric_of, raw, read, same, scan_text, swap
from tests.support.inputs import DATA, fabric_in
from tests.support.sure import sure
from tests.support.switch_trees import rows_of

PATTERNS = ("infiniband/*/ibnetdiscover.txt*", "infiniband/*/before.*", "public/*.topo", "public/ndr-dgx.*")
SCANS = sorted(path.relative_to(DATA).as_posix() for pattern in PATTERNS for path in DATA.glob(pattern))
FDR = 14.0625 * 64 / 66
GIGABITS = {"SDR": 2, "DDR": 4, "QDR": 8, "FDR10": 10, "FDR": FDR, "EDR": 25, "HDR": 50, "NDR": 100}
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
    node = r'^Ca\s.*"H-([0-9a-f]+)".*"Mellanox Technologies Aggregation Node"'
    aggregation = set(re.findall(node, text, re.M))
    cables = [end for end in naive_cables(text) if not aggregation & set(end[:2]) and end[0] != end[1]]
    assert len(fabric.switches) == len(re.findall(r"^Switch\s", text, re.M))
    assert len(fabric.adapters) == len(re.findall(r"^Ca\s", text, re.M)) - len(aggregation)
    assert fabric.cable_count == len(cables) / 2
    assert len(fabric.links) == len(cables)
    if name != "public/1.topo":  # which prints two cables with a different rate at each end
        assert fabric.links.capacity.sum() == pytest.approx(sum(rate for *_, rate in cables), rel=1e-12)
    between = Counter((own, peer) for own, peer, _ in cables)
    guids = {f"{int(guid):016x}": vertex for vertex, guid in enumerate(fabric.guid) if guid}
    adapters = zip(fabric.adapters.guid, fabric.adapters.host, strict=True)
    guids |= {f"{int(guid):016x}": int(host) for guid, host in adapters}
    wanted: Counter[tuple[int, int]] = Counter()
    for (own, peer), count in between.items():
        wanted[guids[own], guids[peer]] += count
    assert Counter(rows_of(fabric.links, "source", "target")) == wanted
    keeps_the_promises_of_its_type(fabric)


def keeps_the_promises_of_its_type(fabric: Fabric) -> None:
    links, own = fabric.links, fabric.links.source_adapter
    assert list(fabric.names) == sorted(fabric.names)
    assert (fabric.forwards == (fabric.kind == SWITCH)).all()
    assert (fabric.slots == (fabric.kind == HOST)).all()
    assert ((own >= 0) == (fabric.kind[links.source] == HOST)).all()
    assert (fabric.adapters.host[own[own >= 0]] == links.source[own >= 0]).all()
    there, back = ("source", "source_port"), ("target", "target_port")
    assert Counter(rows_of(links, *there, *back, "capacity")) == Counter(
        rows_of(links, *back, *there, "capacity")
    )


HOSTS = {
    "infiniband/fattree2-64-ftree/ibnetdiscover.txt": 64, "infiniband/torus-4x4x4-dor/ibnetdiscover.txt": 128,
    "infiniband/fattree2-648-ftree/ibnetdiscover.txt.gz": 648,
    "infiniband/mixed-speeds-oversubscribed/ibnetdiscover.txt": 137,
    "public/1.topo": 4, "public/2.topo": 2, "public/3.topo": 5, "public/4.topo": 1,
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTS)
def test_hosts_of_real_scans(name: str) -> None:
    assert len(fabric_of(raw(name)).hosts) == HOSTS[name]


def test_ndr_fabric_has_109_hosts_with_rails_on_four_leaves() -> None:
    fabric = fabric_of(raw("public/ndr-dgx.ibnetdiscover"))
    leaves = {fabric.names[host]: fabric.indptr[host + 1] - fabric.indptr[host] for host in fabric.hosts}
    assert sum(count == 4 for count in leaves.values()) == 109
    assert [leaves[name] for name in leaves if name.startswith("guid-0x")] == [1] * 72
    assert fabric.observed_at == datetime(2025, 8, 6, 16, 11, 23, tzinfo=UTC)


def test_adapters_of_a_host_are_its_rails() -> None:
    fabric = fabric_of(raw("public/3.topo"))
    (host,) = fabric.vertices(["r-ufm101"])
    rails = np.flatnonzero(fabric.adapters.host == host)
    assert [fabric.adapters.names[rail] for rail in rails] == ["r-ufm101 HCA-1", "r-ufm101 HCA-2"]
    ports = np.flatnonzero(np.isin(fabric.adapters.port_adapter, rails))
    assert fabric.adapters.port_lid[ports].tolist() == [27, 30]
    assert [hex(guid) for guid in fabric.adapters.port_guid[ports]] == ["0x2c9030004e939", "0x2c9030006ba5b"]


def test_cables_to_itself_and_different_rates_at_the_ends_are_counted_and_the_lower_is_taken() -> None:
    warnings = read(raw("public/3.topo")).warnings
    assert any(warning.startswith("3 cables lead from a device back") for warning in warnings)
    parsed = read(raw("public/1.topo"))
    assert any(warning.startswith("2 cables have different rates") for warning in parsed.warnings)
    assert sorted(fabric_in(parsed).links.capacity.tolist()) == [0.25e9] * 4 + [1e9] * 10


def test_lmc_is_read_and_ports_may_lack_a_lid() -> None:
    assert fabric_of(raw("public/1.topo")).adapters.port_lmc.tolist() == [1] * 5
    assert set(fabric_of(TREE.replace("lmc 0 ", "lmc 7 ")).adapters.port_lmc.tolist()) == {7}
    for lid in ("0", "65535"):
        fabric = fabric_of(swap(TREE, r"# lid \d+ lmc 0", f"# lid {lid} lmc 0"))
        assert fabric.adapters.port_lid.tolist() == [0] * 6


def test_generated_fabric_comes_back_as_it_was_made() -> None:
    devices = director_tree(edges=4, hosts_per_edge=3, directors=2, line_chips=3, spine_chips=2, speed="NDR")
    made = fabric_in(build_fabric(devices, path="", default_rate=1.0))
    back = fabric_of(ibnetdiscover_text(devices, speed="NDR"))
    assert same(back, made)
    for column in ("guid", "system_guid", "host", "port_adapter", "port_number", "port_lmc"):
        assert np.array_equal(getattr(back.adapters, column), getattr(made.adapters, column))
    assert np.array_equal(back.guid, made.guid)
    assert np.array_equal(back.lid, made.lid)


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
    "hops": swap(
        TREE, "^# Initiated", "# Reported max hops discovered: 3\n# Total MADs used: 99\n# Initiated"
    ),
}


@pytest.mark.parametrize("dress", DRESSES)
def test_the_same_scan_in_another_dress_is_the_same_fabric(dress: str) -> None:
    assert same(fabric_of(DRESSES[dress]), fabric_of(TREE))


def test_what_surrounds_a_scan_is_counted() -> None:
    parsed = read("=~= PuTTY log =~=\n# ibnetdiscover\n" + TREE + "[root@ufm ~]# exit\n")
    assert parsed.warnings == ("1 line before the scan was skipped", "1 line after the scan was skipped")


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
    assert parsed.warnings == ()
    assert same(fabric_in(parsed), fabric_of(TREE))


def test_old_scans_without_port_guids_and_rates_take_the_default_and_say_so() -> None:
    text = swap(swap(TREE, r"\([0-9a-f]+\)", ""), r" 4xHDR$", "")
    parsed = read(text)
    assert set(fabric_in(parsed).links.capacity.tolist()) == {1e9}
    assert parsed.warnings == ("14 cables have no width and speed: 1e+09 bytes/s are assumed",)
    assert fabric_in(parsed).adapters.port_guid.tolist() == [0] * 6
    assert set(fabric_of(text, Options(rate=5e9)).links.capacity.tolist()) == {5e9}


@pytest.mark.parametrize("printed", ["4x???", "?????", "??HDR"])
def test_speeds_that_the_tool_does_not_know_are_unknown_rates(printed: str) -> None:
    assert set(fabric_of(TREE.replace("4xHDR", printed), Options(rate=7.0)).links.capacity.tolist()) == {7.0}
    one_end = swap(TREE, r'^(\[\d+\]\t"H-.*) 4xHDR$', r"\1")
    assert set(fabric_of(one_end).links.capacity.tolist()) == {25e9}


def of_models(models: list[int], rates: list[float]) -> dict[str, float]:
    """Possible rates of the ends that are noted: a switch of the first model, adapters of the others."""
    cables = [Port(number=n, peer=n, peer_port=1, rate=rate) for n, rate in enumerate(rates, 1)]
    own = dict(enumerate(cables, 1))
    devices = [Device(kind="S", guid=1000, description="leaf", model=models[0], ports=own)]
    for n, (rate, model) in enumerate(zip(rates, models[1:], strict=True), 1):
        ports = {1: Port(number=1, peer=1000, peer_port=n, rate=rate)}
        devices.append(Device(kind="H", guid=n, description=f"h{n}", model=model, ports=ports))
    fabric = fabric_in(build_fabric(devices, path="scan", default_rate=1.0))
    found = zip(fabric.ports.vertex, fabric.ports.number, fabric.ports.could_be, strict=True)
    return {f"{fabric.names[vertex]}:{number}": float(rate) for vertex, number, rate in found}


def test_cables_below_what_both_models_are_sold_with_could_be_of_the_older_ones_generation() -> None:
    ndr, hdr, edr, quantum2 = 0x1021, 0x101B, 0x1017, 0xD2F2
    models = [quantum2, ndr, ndr, hdr, edr, edr, 0x7777, 0]
    rates = [1e9, 12.5e9, 1e9, 12.5e9, 1e9, 1e9, 1e9]  # SDR, or HDR100 and EDR, which are products
    rate = {speed: GIGABITS[speed] * 4e9 / 8 for speed in ("NDR", "HDR", "EDR")}
    expected = {"leaf:1": rate["NDR"], "h1:1": rate["NDR"], "leaf:3": rate["HDR"], "h3:1": rate["HDR"]}
    expected |= {"leaf:5": rate["EDR"], "h5:1": rate["EDR"]}
    assert of_models(models, rates) == pytest.approx(expected)


def test_a_cable_far_below_nearly_all_of_the_same_two_models_is_noted() -> None:
    unknown, other = 0x7777, 0x8888
    assert of_models([unknown] + [other] * 10, [2e9] * 9 + [1e9]) == {"leaf:10": 2e9, "h10:1": 2e9}
    assert of_models([unknown] + [other] * 10, [2e9] * 9 + [1.1e9]) == {}
    assert of_models([unknown] + [other] * 9, [2e9] * 8 + [1e9]) == {}
    assert of_models([unknown] + [0] * 10, [2e9] * 9 + [1e9]) == {}


def test_cables_of_two_models_that_nearly_all_run_below_both_could_be_faster() -> None:
    quantum, ndr, hdr = 0xD2F0, 0x1021, GIGABITS["HDR"] * 4e9 / 8
    assert of_models([quantum] + [ndr] * 10, [12.5e9] * 9 + [hdr]) == pytest.approx(
        {end: hdr for n in range(1, 10) for end in (f"leaf:{n}", f"h{n}:1")}
    )
    assert of_models([quantum] + [ndr] * 8, [12.5e9] * 4 + [hdr] * 4) == {}
    assert of_models([quantum] + [ndr] * 2, [12.5e9] * 2) == {}


def test_a_vendor_has_its_own_models() -> None:
    slow = scan_text(("leaf", 1, "a mlx5_0", 1), ("leaf", 2, "b mlx5_0", 1), rate="4xSDR")
    for vendor, noted in (("0x2c9", 4), ("0x1175", 0)):
        text = swap(slow, r"switchguid=", f"vendid={vendor}\ndevid=0xd2f2\nswitchguid=")
        text = swap(text, r"caguid=", f"vendid={vendor}\ndevid=0x1021\ncaguid=")
        assert len(fabric_of(text).ports) == noted


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


# which machine an adapter belongs to, what its host is called, and what is no host


def described(*descriptions: str, system: str | None = None) -> Fabric:
    """The small tree with the descriptions of its first adapters replaced, in both places."""
    text = TREE
    for number, description in enumerate(descriptions, start=1):
        text = text.replace(f'"node{number:04d} mlx5_0"', f'"{description}"')
    return fabric_of(swap(text, r"^sysimgguid=0x2c90000f0.*$", f"sysimgguid={system}") if system else text)


def hosts(fabric: Fabric) -> set[str]:
    return {fabric.names[host] for host in fabric.hosts}


@pytest.mark.parametrize(
    "description",
    [
        "MT4129 ConnectX7   Mellanox Technologies", "MT23108 InfiniHost Mellanox Technologies",
        "Mellanox Technologies", "", "localhost HCA-1", "localhost mlx5_0", "localhost.localdomain HCA-1",
        "HCA-1", "mlx5_0",
    ],
)  # fmt: skip
def test_adapters_without_a_machines_name_are_named_by_system_image_guid(description: str) -> None:
    apart = hosts(described(description, description))
    assert {"guid-0x0002c90000f00100", "guid-0x0002c90000f00200", "node0003"} <= apart
    together = hosts(described(description, description, system="0xabcdef00"))
    assert "guid-0x00000000abcdef00" in together
    assert len(together) == 5


def test_nameless_adapters_join_the_named_ones_of_the_same_machine_if_it_is_known() -> None:
    same = ("big HCA-1", "localhost HCA-2", "big HCA-3", "big", "big x", "big y")
    assert hosts(described(*same, system="0xa1")) == {"big"}
    text = swap(TREE, r"^sysimgguid=.*\n", "")
    for name in ("node0001", "node0002"):
        text = text.replace(f'"{name} mlx5_0"', '"localhost HCA-1"')
    assert {"guid-0x0002c90000f00100", "guid-0x0002c90000f00200"} <= hosts(fabric_of(text))
    fabric = described("node HCA-1", "node HCA-2", "node HCA-3")
    (host,) = fabric.vertices(["node"])
    assert (fabric.adapters.host == host).sum() == 3
    assert fabric.slots[host] == 1


def test_switches_of_one_name_or_a_hosts_or_none_are_distinguished_by_guid() -> None:
    fabric = fabric_of(TREE.replace("leaf02", "leaf01"))
    leaves = [name for name in fabric.names if name.startswith("leaf")]
    assert leaves == ["leaf01 [0x0002c90000100300]", "leaf01 [0x0002c90000100400]"]
    fabric = fabric_of(TREE.replace("leaf01", "node0001"))
    assert "node0001" in hosts(fabric)
    assert "node0001 [0x0002c90000100300]" in fabric.names
    assert "guid-0x0002c90000100300" in fabric_of(TREE.replace('"leaf01"', '""')).names
    text = TREE.replace("leaf02", "leaf01").replace("spine01", "leaf01 [0x0002c90000100300]")
    with pytest.raises(InputError, match="another device already has the name"):
        read(text)


@pytest.mark.parametrize("name", ['say "hi" # lid 3', "# 1xSDR", 'a" lid 9 4xEDR "b', "<b>&amp;[red]"])
def test_descriptions_may_hold_anything(name: str) -> None:
    assert name in fabric_of(TREE.replace("leaf01", name)).names


def test_aggregation_nodes_are_no_hosts_and_their_links_are_dropped() -> None:
    fabric = described("Mellanox Technologies Aggregation Node")
    assert (len(fabric.hosts), len(fabric.adapters), fabric.cable_count) == (5, 5, 13)


def test_a_router_is_neither_a_host_nor_does_it_forward() -> None:
    text = TREE.replace('Ca\t1 "H-0002c90000f00100"', 'Rt\t1 "R-0002c90000f00100"')
    text = text.replace('"H-0002c90000f00100"', '"R-0002c90000f00100"')
    parsed = read(text.replace("caguid=0x2c90000f00100", "rtguid=0x2c90000f00100"))
    fabric = fabric_in(parsed)
    (router,) = fabric.vertices(["node0001 mlx5_0"], kind="router")
    assert (fabric.kind[router], fabric.forwards[router], fabric.slots[router]) == (SWITCH, False, 0)
    assert fabric.cable_count == 14
    assert parsed.warnings == ("1 router is stored as a switch that does not forward",)


# what a damaged, cut-off or contradictory scan gets


def fails(text: str, reason: str) -> InputError:
    with pytest.raises(InputError, match=reason) as caught:
        read(text)
    assert caught.value.path == "scan"
    return caught.value


def test_a_scan_that_found_only_itself_or_aggregation_nodes_alone_says_so() -> None:
    fails(raw("public/ndr-dgx-only-local.ibnetdiscover"), "found only its own machine")
    record = TREE.split("\n\n")[-1].replace('"node0006 mlx5_0"', '"Mellanox Technologies Aggregation Node"')
    fails(record.replace('"S-0002c90000100400"[3]', '"H-0002c90000f00600"[1]'), "found only its own machine")


def test_a_scan_cut_at_any_byte_before_the_last_rate_is_an_error() -> None:
    only_told_elsewhere = re.compile(r'"leaf02" ?(lid \d+ ?)?(4xHDR)?$')  # the peer's LID, the rate
    accepted = []
    for cut in range(1, len(TREE)):
        try:
            read(TREE[:cut])
        except InputError:
            continue
        accepted.append(cut)
    assert all(cut > len(TREE) - 30 and only_told_elsewhere.search(TREE[:cut]) for cut in accepted)
    assert accepted


def test_faulty_lines_are_shown() -> None:
    cut, count = TREE[: TREE.rindex("lmc 0")], len(TREE.splitlines())
    assert fails(cut, "truncated").line == len(cut.splitlines())
    twice = TREE.replace('[4]\t"S-0002c90000100100"[1]', '[4]\t"S-0002c90000100100"[2]', 1)
    error = fails(twice, "elsewhere")
    assert error.line is not None
    assert "S-0002c9" in sure(error.text)
    error = fails(TREE + "\nvendid" + TREE.split("\nvendid")[-1], "the device is already in line")
    assert sure(error.line) > count
    assert fails(TREE + TREE.splitlines()[-1] + "\n", "the port is already in line").line == count + 1
    text = TREE.replace("devid=0xd2f0", "what is this\ndevid=0xd2f0", 1)
    error = fails(text, "not a line of ibnetdiscover")
    line = text[: text.index("what is this")].count("\n") + 1
    assert (error.line, error.text) == (line, "what is this")
    headless = swap(TREE, r'^Ca\t1 "H-0002c90000f00100".*\n', "")
    fails(headless, "a port without the Switch, Ca or Rt line of its device")
    for rate in ("3xHDR", "4xABC", "16xNDR", "0xSDR"):
        assert fails(TREE.replace("4xHDR", rate, 1), "not a width and speed of InfiniBand").line == 11


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("lid 5 lmc", "lid 70000 lmc", "LID 70000 is out of range"),
        ("caguid=0x2c90000f00100", "caguid=0x2c90000f00101", "contradict"),
        ('Ca\t1 "H-0002c90000f00100"', 'Ca\t1 "S-0002c90000f00100"', "contradict"),
        ("[1](2c90000f00101)", "[255](2c90000f00101)", "out of range"),
        ("[1](2c90000f00101)", "[0](2c90000f00101)", "out of range"),
        ("lmc 0 ", "lmc 8 ", "out of range"),
    ],
)
def test_values_that_cannot_be_are_errors(old: str, new: str, reason: str) -> None:
    assert old in TREE
    fails(TREE.replace(old, new), reason)


def test_an_overlong_line_and_output_of_diff_are_errors() -> None:
    fails(TREE.replace("leaf01", "x" * 5000), "longer than 4096")
    fails(raw("infiniband/fattree2-64-broken-link/ibnetdiscover.diff"), "--diff")


@pytest.mark.parametrize(
    "time", ["Xxx Aug 99 06:33:24 2025", "Fri Foo  8 06:33:24 2025", "Fri Aug  8 26:33:24 2025", "?"]
)
def test_a_time_that_is_none_is_left_to_the_file(time: str) -> None:
    assert fabric_of(swap(TREE, r"generated on .*", f"generated on {time}")).observed_at is None
