"""Fabric files that are damaged, those of Slingshot, and those of older tools."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.catalog import FORMATS
from ingest.formats.fabrics.draft import grid_links
from ingest.formats.fabrics.legacy import BLUEGENE_P, MYRINET_PM
from ingest.formats.fabrics.slingshot import CRAY, SLINGSHOT
from ingest.options import Options
from ingest.parsed import Parsed
from ingest.pipeline import plan
from registry.errors import InputError
from registry.interchange import to_networkx
from registry.model import NO_PORT, Fabric
from tests.support.inputs import fabric_in, file, parse, read, refusal
from tests.support.sure import sure
from tests.support.switch_trees import cables_of, rows_of

SAMPLES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("slurm-topology", ("formats/topology.conf",)), ("slurm-topology", ("formats/topology_block.conf",)),
    ("slurm-show-topology", ("slurm/scontrol_show_topology.txt",)),
    ("slurm-topology-yaml", ("formats/topology.yaml",)), ("topograph-labels", ("formats/k8s_nodes.json",)),
    ("topograph-model", ("formats/topograph_model.yaml",)), ("ibtopo", ("formats/llnl.topo",)),
    ("lldp", ("lldp/node1.json", "lldp/leaf1.json")), ("lldp", ("lldp/node1.json0", "lldp/leaf1.json0")),
    ("slingshot", ("formats/slingshot_fabric_template.json.gz",)),
    ("slingshot", ("formats/slingshot_stt_show_fabric.txt.gz",)),
    ("opareport", ("formats/opareport_topology.xml.gz",)),
    ("netloc", ("netloc/eth-nodes.ndat", "netloc/eth-phy-paths.ndat")),
    ("cray", ("formats/xtprocadmin.txt", "public/sample.xtdb2proc.gz")),
    ("bluegene-p", ("formats/bgp_coords.txt",)), ("myrinet-pm", ("formats/myrinet_pm.conf",)),
    ("graphml", ("graphs/leaves.graphml",)), ("node-link", ("graphs/leaves.json",)),
)  # fmt: skip
each_sample = pytest.mark.parametrize(
    ("format", "names"), SAMPLES, ids=[f"{format} {names[0]}" for format, names in SAMPLES]
)


def parse_sample(format: str, names: Sequence[str], change: Callable[[bytes], bytes] = bytes) -> Parsed:
    """Read the files of a sample, each after a change."""
    return FORMATS.find(format).parse([file(change(read(name)), name) for name in names], Options())


@each_sample
def test_line_ends_of_windows_and_a_byte_order_mark_change_nothing(format: str, names: Sequence[str]) -> None:
    plain = parse_sample(format, names)
    again = parse_sample(format, names, lambda content: b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n"))
    one, other = fabric_in(plain), fabric_in(again)
    assert (other.names, again.warnings) == (one.names, plain.warnings)
    assert other.links.capacity.tolist() == one.links.capacity.tolist()


@each_sample
def test_a_nul_byte_or_another_encoding_is_named_with_its_line(format: str, names: Sequence[str]) -> None:
    for wrong, reason in ((b"\0", "binary"), (b"\xff", "not UTF-8")):
        contents = [read(name) for name in names]
        lines = contents[-1].split(b"\n")
        lines[len(lines) // 2] += wrong
        contents[-1] = b"\n".join(lines)
        files = [file(content, name) for content, name in zip(contents, names, strict=True)]
        with pytest.raises(InputError, match=reason) as caught:
            FORMATS.find(format).parse(files, Options())
        assert (caught.value.line, caught.value.path) == (len(lines) // 2 + 1, names[-1])


@each_sample
def test_every_direction_of_a_link_has_one_back_and_names_are_sorted(
    format: str, names: Sequence[str]
) -> None:
    parsed = parse_sample(format, names)
    fabric = fabric_in(parsed)
    assert list(fabric.names) == sorted(fabric.names)
    ends = ("source", "target", "source_port", "target_port", "capacity")
    there, back = (rows_of(fabric.links, *order) for order in (ends, [ends[at] for at in (1, 0, 3, 2, 4)]))
    assert sorted(there) == sorted(back)
    if parsed.assumed is not None:
        assert parsed.assumed.shape == fabric.links.source.shape
        marked = {row[:2] for row, is_assumed in zip(there, parsed.assumed, strict=True) if is_assumed}
        assert {(target, source) for source, target in marked} == marked


SIZE_LINE = "# xSize=2 ySize=2 zSize=2 tSize=1 xTorus=1 yTorus=1 zTorus=1"
SIZES = st.lists(st.integers(1, 4), min_size=3, max_size=3)


def simple(fabric: Fabric) -> nx.Graph[Any]:
    graph: nx.Graph[Any] = nx.Graph(to_networkx(fabric).to_undirected())
    return graph


def grid(sizes: list[int], periodic: list[bool]) -> nx.Graph[Any]:
    """networkx's own; it takes the axes in reverse."""
    graph: nx.Graph[Any] = nx.grid_graph(sizes[::-1], periodic=tuple(periodic[::-1]))  # type: ignore[call-overload]
    return graph


@given(SIZES, st.lists(st.booleans(), min_size=3, max_size=3))
def test_links_of_a_grid_are_those_of_networkx(sizes: list[int], wrap: list[bool]) -> None:
    positions = list(itertools.product(*map(range, sizes)))
    # networkx joins the ends of rings of more than two positions; two make a second link here.
    periodic = [flag and size > 2 for flag, size in zip(wrap, sizes, strict=True)]
    graph = grid(sizes, periodic)
    links = list(grid_links(positions, sizes, wrap))
    assert {frozenset((a, b)) for a, b in links} == {frozenset(edge) for edge in graph.edges()}
    doubled = sum(flag and size == 2 for flag, size in zip(wrap, sizes, strict=True))
    assert len(links) == graph.number_of_edges() + doubled * (math.prod(sizes) // 2)


def coordinates(sizes: tuple[int, int, int, int], flags: tuple[int, int, int, int]) -> str:
    names = "xyzt"
    head = " ".join(f"{name}Size={size}" for name, size in zip(names, sizes, strict=True))
    head += " " + " ".join(f"{name}Torus={flag}" for name, flag in zip(names, flags, strict=True))
    rows = itertools.product(*map(range, sizes))
    return f"# {head}\n" + "".join(f"{rank} {x} {y} {z} {t}\n" for rank, (x, y, z, t) in enumerate(rows))


def test_bluegene_wraps_the_axes_whose_torus_flag_is_set() -> None:
    parsed = parse(BLUEGENE_P, read("formats/bgp_coords.txt"))
    fabric = fabric_in(parsed)
    assert len(fabric.hosts) == len(fabric) == 8 * 8 * 4
    assert fabric.cable_count == 3 * 256 - 64  # z does not wrap: 64 links fewer
    assert set(fabric.slots.tolist()) == {4}
    assert fabric.forwards.all()
    joined = [simple(fabric).has_edge("x0y0z0", end) for end in ("x7y0z0", "x0y7z0", "x0y0z3")]
    assert joined == [True, True, False]
    assert set(fabric.links.capacity.tolist()) == {425e6}
    assert sure(fabric.coordinates)[fabric.names.index("x3y1z2")].tolist() == [3, 1, 2]


@settings(max_examples=40)
@given(
    st.tuples(*[st.integers(1, 4)] * 3, st.integers(1, 2)).filter(lambda sizes: math.prod(sizes[:3]) > 1),
    st.tuples(*[st.integers(0, 1)] * 4),
)
def test_distances_on_bluegene_are_those_of_its_axes(
    sizes: tuple[int, int, int, int], flags: tuple[int, int, int, int]
) -> None:
    graph = simple(fabric_in(parse(BLUEGENE_P, coordinates(sizes, flags))))
    start = (0, 0, 0)
    for at in itertools.product(*map(range, sizes[:3])):
        axes = zip(at, sizes, flags, strict=False)
        apart = sum(min(step, size - step) if flag else step for step, size, flag in axes)
        assert nx.shortest_path_length(graph, *("x{}y{}z{}".format(*one) for one in (start, at))) == apart


@pytest.mark.parametrize(
    ("old", "new", "reason", "line"),
    [
        ("\n5 ", "\n4 ", "is repeated", 7),
        ("\n5 1 ", "\n5 9 ", "a coordinate is not below its size", 7),
        ("\n5 1 0 1", "\n5 1 0 0", "is repeated", 7),
        ("\n7 1 1 1 0\n", "\n", "outside|missing", None),
        ("\n5 1", "\n5 x", "expected 'rank x y z t' after the sizes and torus flags", 7),
        ("xSize=2", "xSize=0", "size is not from 1", 1),
        ("# xSize", "# Size", "expected 'rank x y z t' after the sizes and torus flags", 2),
        ("\n0 0", f"\n{SIZE_LINE}\n0 0", "sizes and torus flags are repeated", 2),
    ],
)
def test_wrong_coordinates_are_named(old: str, new: str, reason: str, line: int | None) -> None:
    text = coordinates((2, 2, 2, 1), (1, 1, 1, 0))
    changed = text.replace(old, new, 1)
    assert changed != text
    if reason == "outside|missing":
        changed += "9 1 1 1 0\n"
    error = refusal(BLUEGENE_P, changed)
    assert re.search(reason, error.reason)
    assert error.line == line


def nodes(positions: list[tuple[int, int, int]], a_position: int = 1) -> str:
    rows = [
        f"cpu={cpu},slot=0,x_coord={x},y_coord={y},z_coord={z},processor_status='up',"
        f"processor_type='compute',processor_id={at * a_position + cpu}"
        for at, (x, y, z) in enumerate(positions)
        for cpu in range(a_position)
    ]
    return "# table\n" + "\n".join(rows) + "\n"


@settings(max_examples=40)
@given(SIZES.filter(lambda sizes: math.prod(sizes) > 1), st.integers(1, 2), st.integers(0, 3))
def test_one_or_two_nodes_at_a_position_make_a_torus(sizes: list[int], each: int, first: int) -> None:
    positions = [(x + first, y, z) for x, y, z in itertools.product(*map(range, sizes))]
    parsed = parse(CRAY, nodes(positions, each))
    fabric = fabric_in(parsed)
    torus = grid(sizes, [size > 2 for size in sizes])
    routers = simple(fabric).subgraph(fabric.names[v] for v in np.flatnonzero(fabric.forwards))
    assert nx.is_isomorphic(nx.Graph(routers), torus)
    assert len(fabric.hosts) == each * len(positions)
    assert bool(fabric.forwards[fabric.hosts].all()) == (each == 1)
    assert sure(fabric.coordinates).shape[1] == 3
    assert any(f"a torus of {sizes[0]} x {sizes[1]} x {sizes[2]}" in warning for warning in parsed.warnings)


def test_positions_without_a_node_are_holes_and_are_counted() -> None:
    positions = [at for at in itertools.product(range(3), range(3), range(1)) if at != (1, 1, 0)]
    parsed = parse(CRAY, nodes(positions))
    assert fabric_in(parsed).cable_count == 18 - 4
    assert "1 position of the torus has no node: links there are ignored" in parsed.warnings


def test_four_nodes_at_a_position_are_a_dragonfly() -> None:
    parsed = parse(CRAY, read("public/sample.xtdb2proc.gz"))
    fabric = fabric_in(parsed)
    assert (len(fabric.hosts), len(fabric.switches)) == (499, 126)
    assert fabric.names[fabric.hosts[0]] == "nid02261"
    graph = simple(fabric)
    near = ("13-0-15", "13-5-2", "14-0-2")  # in one chassis, one slot of a group, one place of two groups
    assert all(graph.has_edge("router-13-0-2", f"router-{other}") for other in near)
    assert not graph.has_edge("router-13-0-2", "router-13-1-3")
    assert any("taken as XC (Aries)" in warning for warning in parsed.warnings)
    assert nx.diameter(graph) <= 2 + 5


def test_names_come_from_xtprocadmin_by_node_number_also_in_one_folder(tmp_path: Path) -> None:
    table = read("formats/xtprocadmin.txt").decode()
    places = nodes([(x, y, 0) for x in range(2) for y in range(2)])  # nodes 0 to 3; the table has 1, 2, 4 ...
    parsed = CRAY.parse([file(table, "names"), file(places, "places")], Options())
    assert fabric_in(parsed).names == ("c0-0c0s0n1", "c0-0c0s0n2", "nid00000", "nid00003")
    assert "124 nodes have a name but no coordinates: ignored" in parsed.warnings
    with pytest.raises(InputError, match="ingest it together with the output of xtdb2proc"):
        parse(CRAY, table)
    (tmp_path / "a").write_bytes(read("formats/xtprocadmin.txt"))
    (tmp_path / "b").write_text(nodes([(0, 0, 0), (1, 0, 0)]))
    assert sure(plan([tmp_path], Options(cluster="c")).fabric).names == ("c0-0c0s0n1", "nid00000")


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        (nodes([(0, 0, 0)]) * 2, "is already in line 2", 4),
        (nodes([(0, 0, 0), (0, 0, 1)]).replace("x_coord=0,", "", 1), "x_coord is missing", 2),
        (nodes([(0, 0, 0), (0, 0, 1)]).replace("z_coord=1", "z_coord=-1"), "z_coord is missing or no", 3),
        (nodes([(0, 0, 0), (5000, 0, 1)]), "a coordinate is above", 3),
        (nodes([(0, 0, 0), (0, 0, 1)])[:-40], "truncated", 3),
        (nodes([(0, 0, 0)]), "no cable", None),
        (" NID (HEX) NODENAME TYPE STATUS MODE\n 1 0x2 c0-0c0s0n1 service up\n", "differ", 2),
        (" NID (HEX) NODENAME TYPE STATUS MODE\n" + " 1 0x1 c0-0c0s0n1 service up\n" * 2, "is repeated", 3),
        (
            " NID (HEX) NODENAME TYPE STATUS MODE\n 1 0x1 c0-0c0s0n1 a up\n 2 0x2 c0-0c0s0n1 a up\n",
            "is repeated",
            3,
        ),
    ],
)
def test_a_wrong_line_of_cray_is_named(text: str, reason: str, line: int | None) -> None:
    error = refusal(CRAY, text)
    assert reason in error.reason
    assert error.line == line


def test_myrinet_has_hosts_on_ports_and_parallel_cables() -> None:
    parsed = parse(MYRINET_PM, read("formats/myrinet_pm.conf"))
    fabric = fabric_in(parsed)
    assert (len(fabric.hosts), len(fabric.switches), fabric.cable_count) == (8, 2, 12)
    between = [cable for cable in cables_of(fabric) if cable[::2] == ("switch0", "switch1")]
    assert [cable[1::2] for cable in between] == [(4, 4), (5, 5), (6, 6), (7, 7)]
    assert parsed.warnings[0] == "2 search lines are ignored"


@pytest.mark.parametrize(
    ("old", "new", "reason", "line"),
    [
        ("\t0.1\n", "\t0.0\n", r"0\.0 already has a cable in line 2", 3),
        ("switch\t0.5\t1.5", "switch\t0.5\t1.4", r"1\.4 already has a cable in line 11", 12),
        ("1\tcomp1", "0\tcomp1", "is repeated", 3),
        ("1\tcomp1", "1\tcomp0", "is repeated", 3),
        ("7\tcomp7", "8\tcomp7", "host numbers are missing", None),
        ("switch\t0.5", "cable\t0.5", "expected a host, a cable of a switch or a search line", 12),
        ("comp1.example.org", "switch1", "is the name of a host and of a switch", 6),
    ],
)
def test_a_wrong_line_of_myrinet_is_named(old: str, new: str, reason: str, line: int | None) -> None:
    text = read("formats/myrinet_pm.conf").decode()
    assert old in text
    error = refusal(MYRINET_PM, text.replace(old, new, 1))
    assert re.search(reason, error.reason)
    assert error.line == line


TEMPLATE = read("formats/slingshot_fabric_template.json.gz").decode()
TABLE = read("formats/slingshot_stt_show_fabric.txt.gz").decode()
HEAD, *ROWS = TABLE.splitlines()
NO_JACK = "xname is not a port, or dst is not a jack"


def parsed(*contents: str, options: Options | None = None) -> Parsed:
    return SLINGSHOT.parse([file(text, f"f{at}") for at, text in enumerate(contents)], options or Options())


def between_switches(fabric: Fabric) -> list[tuple[str, str]]:
    ends = (fabric.links.source[fabric.network_link], fabric.links.target[fabric.network_link])
    return sorted((fabric.names[a], fabric.names[b]) for a, b in zip(*ends, strict=True))


def test_the_template_is_a_dragonfly_of_nine_groups_with_a_host_on_each_edge_port() -> None:
    result = parsed(TEMPLATE)
    fabric = fabric_in(result)
    assert (len(fabric.switches), len(fabric.hosts), fabric.cable_count) == (36, 72, 90 + 72)
    graph = simple(fabric)
    switches = graph.subgraph(fabric.names[switch] for switch in fabric.switches)
    groups = nx.quotient_graph(switches, lambda a, b: a.split("c")[0] == b.split("c")[0])
    assert groups.number_of_nodes() == 9
    assert groups.number_of_edges() == 9 * 8 // 2  # each two groups are joined
    for group in groups:
        assert switches.subgraph(group).number_of_edges() == 4 * 3 // 2  # all to all within
    assert set(fabric.links.capacity.tolist()) == {25e9}
    assert "72 edge ports are taken as hosts because the template contains no nodes" in result.warnings
    hosts = [host for host in fabric.names if "j100" in host]
    assert all(list(graph[host]) == [host.split("j")[0]] for host in hosts)


def test_ports_are_numbered_as_on_the_chip_and_the_table_has_the_links_with_their_speeds() -> None:
    for text, first in ((TEMPLATE, 1), (TEMPLATE.replace('"x1000c0r1a0l1"', '"none"'), NO_PORT)):
        fabric = fabric_in(parsed(text))
        ports = fabric.links.source_port[fabric.links.source == fabric.names.index("x1000c0r1")]
        assert sorted(ports.tolist()) == [first, 2, 3, 4, 5, 6, 7]
    table, template = parsed(TABLE), parsed(TEMPLATE)
    assert between_switches(fabric_in(table)) == between_switches(fabric_in(template))
    assert "the table contains no hosts: ingest it together with the template" in table.warnings
    assert not sure(table.assumed).any()


def test_the_table_adds_rates_the_lower_of_two_ends_and_links_that_are_down() -> None:
    rows = [ROWS[0].replace("True", "False"), *(row.replace("BS_200G", "BS_100G") for row in ROWS[1:])]
    result = parsed(TEMPLATE, "\n".join([HEAD, *rows]))
    fabric = fabric_in(result)
    assert fabric.cable_count == 90 + 72 - 1
    assert set(fabric.links.capacity[fabric.network_link].tolist()) == {12.5e9}
    assert "1 link is not up and ignored" in result.warnings
    assert ROWS[0].split(" | ")[1] == "fabric"
    fabric = fabric_in(parsed("\n".join([HEAD, ROWS[0].replace("BS_200G", "BS_100G"), *ROWS[1:]])))
    assert sorted(fabric.links.capacity.tolist())[:3] == [12.5e9, 12.5e9, 25e9]


def test_links_that_only_one_file_knows_are_left_out_and_counted() -> None:
    content: dict[str, Any] = json.loads(TEMPLATE)
    gone = content["links"].pop(0)
    result = parsed(json.dumps(content), TABLE)
    assert fabric_in(result).cable_count == 89 + 72
    assert "2 ports of the table have no such link in the template" in result.warnings
    ends = {gone["conn_a"], gone["conn_b"]}
    rows = [row for row in ROWS if row.split(" | ")[0].strip("| ") not in ends]
    result = parsed("\n".join([HEAD, *rows]), TEMPLATE)
    assert fabric_in(result).cable_count == 89 + 72
    assert "1 link of the template is not in the table and ignored" in result.warnings


def test_links_that_lead_elsewhere_are_left_out_and_two_files_of_a_kind_refused() -> None:
    content: dict[str, Any] = json.loads(TEMPLATE)
    a, b = content["links"][0], content["links"][1]
    a["conn_b"], b["conn_b"] = b["conn_b"], a["conn_b"]
    result = parsed(json.dumps(content), TABLE)
    assert "2 links lead elsewhere in the table: ignored" in result.warnings
    for text in (TEMPLATE, TABLE):
        with pytest.raises(InputError, match="a second file of its kind") as caught:
            parsed(text, text)
        assert caught.value.path == "f1"


def test_several_cables_between_two_jacks_are_joined_in_the_order_of_their_ports() -> None:
    text = "| xname | type | dst | port_num | status | speed |\n"
    for at, (r, p) in enumerate(itertools.product((1, 2), (0, 1))):
        text += f"| x0c0r{r}j1p{p} | fabric | x0c0r{3 - r}j1 | {at} | True | BS_200G |\n"
    fabric = fabric_in(parsed(text))
    assert sorted(rows_of(fabric.links, "source_port", "target_port")) == [(0, 2), (1, 3), (2, 0), (3, 1)]


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("\n".join([HEAD, *ROWS[1:]]), "do not lead back", None),
        ("\n".join([HEAD, *ROWS, ROWS[0]]), "the port is repeated", 182),
        ("\n".join([HEAD, ROWS[0][:40]]), "columns: the file seems truncated", 2),
        ("\n".join([HEAD, ROWS[0].replace("fabric", "edge", 1)]), "another type than fabric", 2),
        ("\n".join([HEAD, ROWS[0].replace("| 3 |", "| x |")]), "port_num", 2),
        ("\n".join([HEAD, ROWS[0].replace("x1008c1r7j101p0", "eth0")]), NO_JACK, 2),
        ("| xname | dst |\n| a | b |\n", "columns", 1),
        (HEAD, "no rows", None),
    ],
)
def test_a_wrong_table_is_refused(text: str, reason: str, line: int | None) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        parsed(text)
    assert line is None or caught.value.line == line


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"id": "x1000c0r3"', '"id": "x1000c0r1"', "or is repeated"),
        ('"id": "x1000c0r1",', '"id": "switch",', "is not the xname of a switch, or is repeated"),
        ('"x1000c0r1j100p1"', '"x1000c0r1j100p0"', "or is repeated"),
        ('"conn_port": "x1000c0r1j100p0"', '"conn_port": "x1000c0r2j100p0"', "is not a port of x1000c0r1"),
        ('"conn_a": "x1008c1r7j101p0"', '"conn_a": "x1j0p0"', "no switch has"),
        ('"conn_a": "x1008c1r7j101p0"', '"conn_a": "x1008c1r7j101p1"', "two links"),
        ('"conn_a"', '"end_a"', "is not text"),
        ('"switches": [', '"switches": 3, "x": [', "is not a list"),
    ],
)
def test_a_wrong_template_is_refused(old: str, new: str, reason: str) -> None:
    assert old in TEMPLATE
    with pytest.raises(InputError, match=reason):
        parsed(TEMPLATE.replace(old, new, 1))
