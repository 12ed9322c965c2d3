"""Fabric files that are damaged, and those of older tools."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.catalog import FORMATS
from ingest.formats.fabrics import bluegene_p as bluegene
from ingest.formats.fabrics import cray, myrinet_pm
from ingest.formats.fabrics.draft import grid_links
from ingest.options import Options
from ingest.pipeline import plan
from registry.errors import InputError
from registry.interchange import to_networkx
from registry.model import Fabric
from tests.support.inputs import fabric_in, file, parse, read, refusal


class Sample(NamedTuple):
    """A format and files that make one source."""

    format: str
    names: tuple[str, ...]


SAMPLES = (
    Sample("slurm-topology", ("formats/topology.conf",)),
    Sample("slurm-topology", ("formats/topology_block.conf",)),
    Sample("slurm-show-topology", ("slurm/scontrol_show_topology.txt",)),
    Sample("slurm-topology-yaml", ("formats/topology.yaml",)),
    Sample("topograph-labels", ("formats/k8s_nodes.json",)),
    Sample("topograph-model", ("formats/topograph_model.yaml",)),
    Sample("ibtopo", ("formats/llnl.topo",)),
    Sample("lldp", ("lldp/node1.json", "lldp/leaf1.json")),
    Sample("lldp", ("lldp/node1.json0", "lldp/leaf1.json0")),
    Sample("slingshot", ("formats/slingshot_fabric_template.json.gz",)),
    Sample("slingshot", ("formats/slingshot_stt_show_fabric.txt.gz",)),
    Sample("opareport", ("formats/opareport_topology.xml.gz",)),
    Sample("netloc", ("netloc/eth-nodes.ndat", "netloc/eth-phy-paths.ndat")),
    Sample("cray", ("formats/xtprocadmin.txt", "public/sample.xtdb2proc.gz")),
    Sample("bluegene-p", ("formats/bgp_coords.txt",)),
    Sample("myrinet-pm", ("formats/myrinet_pm.conf",)),
    Sample("graphml", ("graphs/leaves.graphml",)),
    Sample("node-link", ("graphs/leaves.json",)),
)
OPTIONS = Options()


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.format} {sample.names[0]}")
def test_line_ends_of_windows_and_a_byte_order_mark_change_nothing(sample: Sample) -> None:
    parser = FORMATS.find(sample.format).parser()
    contents = [read(name) for name in sample.names]
    plain = parser.parse([file(c, n) for c, n in zip(contents, sample.names, strict=True)], OPTIONS)
    turned = [b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n") for content in contents]
    again = parser.parse([file(c, n) for c, n in zip(turned, sample.names, strict=True)], OPTIONS)
    assert plain.fabric is not None
    assert again.fabric is not None
    assert again.fabric.names == plain.fabric.names
    assert again.fabric.links.capacity.tolist() == plain.fabric.links.capacity.tolist()
    assert again.warnings == plain.warnings


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.format} {sample.names[0]}")
def test_a_nul_byte_or_another_encoding_is_named_with_its_line(sample: Sample) -> None:
    parser = FORMATS.find(sample.format).parser()
    for wrong, reason in ((b"\0", "binary"), (b"\xff", "not UTF-8")):
        contents = [read(name) for name in sample.names]
        lines = contents[-1].split(b"\n")
        lines[len(lines) // 2] += wrong
        contents[-1] = b"\n".join(lines)
        with pytest.raises(InputError, match=reason) as caught:
            parser.parse([file(c, n) for c, n in zip(contents, sample.names, strict=True)], OPTIONS)
        assert caught.value.line == len(lines) // 2 + 1
        assert caught.value.path == sample.names[-1]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.format} {sample.names[0]}")
def test_every_direction_of_a_link_has_one_back_and_names_are_sorted(sample: Sample) -> None:
    parser = FORMATS.find(sample.format).parser()
    parsed = parser.parse([file(read(name), name) for name in sample.names], OPTIONS)
    fabric = parsed.fabric
    assert fabric is not None
    assert list(fabric.names) == sorted(fabric.names)
    links = fabric.links
    there = sorted(
        zip(links.source, links.target, links.source_port, links.target_port, links.capacity, strict=True)
    )
    back = sorted(
        zip(links.target, links.source, links.target_port, links.source_port, links.capacity, strict=True)
    )
    assert there == back
    assert parsed.assumed is None or parsed.assumed.shape == links.source.shape
    if parsed.assumed is not None:
        marked = set(zip(links.source[parsed.assumed], links.target[parsed.assumed], strict=True))
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
    doubled = sum(
        flag and size == 2 and math.prod(sizes) // 2 for flag, size in zip(wrap, sizes, strict=True)
    )
    assert len(links) == graph.number_of_edges() + doubled


def coordinates(sizes: tuple[int, int, int, int], flags: tuple[int, int, int, int]) -> str:
    names = "xyzt"
    head = " ".join(f"{name}Size={size}" for name, size in zip(names, sizes, strict=True))
    head += " " + " ".join(f"{name}Torus={flag}" for name, flag in zip(names, flags, strict=True))
    rows = itertools.product(*map(range, sizes))
    return f"# {head}\n" + "".join(f"{rank} {x} {y} {z} {t}\n" for rank, (x, y, z, t) in enumerate(rows))


def test_bluegene_wraps_the_axes_whose_torus_flag_is_set() -> None:
    parsed = parse(bluegene, read("formats/bgp_coords.txt"))
    fabric = fabric_in(parsed)
    assert len(fabric.hosts) == len(fabric) == 8 * 8 * 4
    assert fabric.cable_count == 3 * 256 - 64  # z does not wrap: 64 links fewer
    assert set(fabric.slots.tolist()) == {4}
    assert fabric.forwards.all()
    graph = simple(fabric)
    assert graph.has_edge("x0y0z0", "x7y0z0")
    assert graph.has_edge("x0y0z0", "x0y7z0")
    assert not graph.has_edge("x0y0z0", "x0y0z3")
    assert set(fabric.links.capacity.tolist()) == {425e6}
    assert fabric.coordinates is not None
    assert fabric.coordinates[fabric.names.index("x3y1z2")].tolist() == [3, 1, 2]


@settings(max_examples=40)
@given(
    st.tuples(*[st.integers(1, 4)] * 3, st.integers(1, 2)).filter(lambda sizes: math.prod(sizes[:3]) > 1),
    st.tuples(*[st.integers(0, 1)] * 4),
)
def test_distances_on_bluegene_are_those_of_its_axes(
    sizes: tuple[int, int, int, int], flags: tuple[int, int, int, int]
) -> None:
    graph = simple(fabric_in(parse(bluegene, coordinates(sizes, flags))))
    start = (0, 0, 0)
    for at in itertools.product(*map(range, sizes[:3])):
        apart = [
            min(step, size - step) if flag else step
            for step, size, flag in zip(at, sizes, flags, strict=False)
        ]
        ends = ("x{}y{}z{}".format(*one) for one in (start, at))
        assert nx.shortest_path_length(graph, *ends) == sum(apart)


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
    error = refusal(bluegene, changed)
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
    parsed = parse(cray, nodes(positions, each))
    fabric = fabric_in(parsed)
    torus = grid(sizes, [size > 2 for size in sizes])
    routers = simple(fabric).subgraph(fabric.names[v] for v in np.flatnonzero(fabric.forwards))
    assert nx.is_isomorphic(nx.Graph(routers), torus)
    assert len(fabric.hosts) == each * len(positions)
    assert bool(fabric.forwards[fabric.hosts].all()) == (each == 1)
    assert fabric.coordinates is not None
    assert any(f"a torus of {sizes[0]} x {sizes[1]} x {sizes[2]}" in warning for warning in parsed.warnings)


def test_positions_without_a_node_are_holes_and_are_counted() -> None:
    positions = [at for at in itertools.product(range(3), range(3), range(1)) if at != (1, 1, 0)]
    parsed = parse(cray, nodes(positions))
    assert fabric_in(parsed).cable_count == 18 - 4
    assert "1 position of the torus has no node: links there are ignored" in parsed.warnings


def test_four_nodes_at_a_position_are_a_dragonfly() -> None:
    parsed = parse(cray, read("public/sample.xtdb2proc.gz"))
    fabric = fabric_in(parsed)
    assert (len(fabric.hosts), len(fabric.switches)) == (499, 126)
    assert fabric.names[fabric.hosts[0]] == "nid02261"
    graph = simple(fabric)
    assert graph.has_edge("router-13-0-2", "router-13-0-15")  # one chassis
    assert graph.has_edge("router-13-0-2", "router-13-5-2")  # one slot of a group
    assert graph.has_edge("router-13-0-2", "router-14-0-2")  # one place of two groups
    assert not graph.has_edge("router-13-0-2", "router-13-1-3")
    assert any("taken as XC (Aries)" in warning for warning in parsed.warnings)
    assert nx.diameter(graph) <= 2 + 5


def test_names_come_from_xtprocadmin_by_node_number_also_in_one_folder(tmp_path: Path) -> None:
    table = read("formats/xtprocadmin.txt").decode()
    places = nodes([(x, y, 0) for x in range(2) for y in range(2)])  # nodes 0 to 3; the table has 1, 2, 4 ...
    parsed = cray.parse([file(table, "names"), file(places, "places")], Options())
    assert fabric_in(parsed).names == ("c0-0c0s0n1", "c0-0c0s0n2", "nid00000", "nid00003")
    assert "124 nodes have a name but no coordinates: ignored" in parsed.warnings
    with pytest.raises(InputError, match="ingest it together with the output of xtdb2proc"):
        parse(cray, table)
    (tmp_path / "a").write_bytes(read("formats/xtprocadmin.txt"))
    (tmp_path / "b").write_text(nodes([(0, 0, 0), (1, 0, 0)]))
    intake = plan([tmp_path], Options(cluster="c"))
    assert intake.fabric is not None
    assert intake.fabric.names == ("c0-0c0s0n1", "nid00000")


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
    ],
)
def test_a_wrong_line_of_cray_is_named(text: str, reason: str, line: int | None) -> None:
    error = refusal(cray, text)
    assert reason in error.reason
    assert error.line == line


def test_myrinet_has_hosts_on_ports_and_parallel_cables() -> None:
    parsed = parse(myrinet_pm, read("formats/myrinet_pm.conf"))
    fabric = fabric_in(parsed)
    assert (len(fabric.hosts), len(fabric.switches), fabric.cable_count) == (8, 2, 12)
    links = fabric.links
    at = [fabric.names.index(name) for name in ("switch0", "switch1")]
    between = (links.source == at[0]) & (links.target == at[1])
    ports = list(zip(links.source_port[between].tolist(), links.target_port[between].tolist(), strict=True))
    assert ports == [(4, 4), (5, 5), (6, 6), (7, 7)]
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
    error = refusal(myrinet_pm, text.replace(old, new, 1))
    assert re.search(reason, error.reason)
    assert error.line == line
