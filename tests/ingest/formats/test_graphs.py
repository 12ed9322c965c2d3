"""Fabrics from files of graphs, from tables of links and from LibTopoMap's map file."""

from __future__ import annotations

import json
import re
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from ingest.formats.fabrics.graphs import GRAPHML, LINKS_CSV, NODE_LINK
from ingest.formats.fabrics.ibnetdiscover import IBNETDISCOVER
from ingest.formats.fabrics.legacy import LIBTOPOMAP
from ingest.options import Options
from ingest.parsed import Format
from registry.exports import catalog
from registry.interchange import to_networkx
from registry.model import HOST, Fabric
from registry.store.snapshots import canonical, content_hash
from tests.support.inputs import fabric_in, fabric_of, parse, read, refusal
from tests.support.small_fabrics import adapter_fabrics, plain_fabrics
from tests.support.sure import sure
from tests.support.switch_trees import rows_of

NODES = '"nodes": [{"id": "a"}, {"id": "b"}]'
NO_NODE = "0].target: is not the id of a node"
GRAPHML_HEAD = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
FORMATS = [pytest.param(one, id=one.name) for one in (GRAPHML, NODE_LINK)]


def written(graph: nx.Graph[Any], format: Format) -> str:
    """The graph as networkx itself writes it."""
    if format is GRAPHML:
        return "\n".join(nx.generate_graphml(graph))
    return json.dumps(nx.node_link_data(graph, edges="edges"))


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=40)
@given(fabric=adapter_fabrics() | plain_fabrics())
def test_an_exported_fabric_comes_back_whole(format: Format, fabric: Fabric) -> None:
    if not len(fabric.links):
        return
    text = catalog.write(format.name, fabric)
    assert format.recognise(text[:65536], "x")
    assert content_hash(fabric_in(parse(format, text))) == content_hash(canonical(fabric))


@pytest.mark.parametrize("format", FORMATS)
def test_an_exported_scan_of_a_real_fabric_comes_back_whole(format: Format) -> None:
    scan = fabric_in(parse(IBNETDISCOVER, read("public/ndr-dgx.ibnetdiscover")))
    parsed = parse(format, catalog.write(format.name, scan))
    assert content_hash(fabric_in(parsed)) == content_hash(canonical(scan))
    assert parsed.warnings == ()


@pytest.mark.parametrize("name", ["graphs/leaves.graphml", "graphs/leaves.json"])
def test_a_plain_graph_has_hosts_where_nodes_have_one_neighbour(name: str) -> None:
    parsed = parse(GRAPHML if name.endswith("ml") else NODE_LINK, read(name))
    fabric = fabric_in(parsed)
    assert [fabric.names[host] for host in fabric.hosts] == [f"node{k}" for k in range(1, 7)]
    assert fabric.forwards.tolist() == (fabric.kind == 1).tolist()
    assert fabric.cable_count == 6 + 4 * 2
    assert set(fabric.links.capacity[fabric.network_link].tolist()) == {5e10}
    assert parsed.warnings == (
        "the file does not separate hosts and switches: nodes with one neighbour are taken as hosts",
    )


@pytest.mark.parametrize("format", FORMATS)
def test_a_grid_is_a_direct_network_with_a_rate_that_is_assumed_or_given(format: Format) -> None:
    text = written(nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 3)), format)
    parsed = parse(format, text)
    fabric = fabric_in(parsed)
    assert fabric.names == tuple("012345678")
    assert (len(fabric.hosts), int(fabric.forwards.sum()), fabric.cable_count) == (9, 9, 12)
    assert set(fabric.links.capacity.tolist()) == {1.0}
    assert any("seconds are bytes" in warning for warning in parsed.warnings)
    assert sure(parsed.assumed).all()
    given_rate = fabric_in(parse(format, text, Options(rate=2.5e9)))
    assert set(given_rate.links.capacity.tolist()) == {2.5e9}


@pytest.mark.parametrize("format", FORMATS)
def test_an_edge_runs_both_ways_unless_the_graph_is_directed(format: Format) -> None:
    directed = nx.DiGraph(
        [("a", "b", {"capacity": 2.0}), ("b", "a", {"capacity": 3.0}), ("b", "c", {"capacity": 4.0})]
    )
    fabric = fabric_in(parse(format, written(directed, format)))
    found = rows_of(fabric.links, "source", "target", "capacity")
    assert sorted(found) == [(0, 1, 2.0), (1, 0, 3.0), (1, 2, 4.0)]


@pytest.mark.parametrize("format", FORMATS)
def test_parallel_edges_are_parallel_cables_and_kinds_are_those_of_the_file(format: Format) -> None:
    graph: nx.MultiGraph[str] = nx.MultiGraph()
    graph.add_node("s", kind="switch")
    graph.add_node("h", kind="host", slots=4, forwards=False)
    graph.add_edges_from(
        [("h", "s", {"capacity": 1.0, "src_port": 1}), ("h", "s", {"capacity": 1.0, "src_port": 2})]
    )
    fabric = fabric_in(parse(format, written(graph, format)))
    assert fabric.cable_count == 2
    assert fabric.slots.tolist() == [4, 0]
    assert fabric.forwards.tolist() == [False, True]


@pytest.mark.parametrize("format", FORMATS)
def test_loops_are_left_out_and_weights_are_not_capacities(format: Format) -> None:
    graph = nx.Graph([("a", "b", {"weight": 3.0}), ("b", "b", {"weight": 1.0}), ("b", "c", {"weight": 1.0})])
    parsed = parse(format, written(graph, format))
    assert fabric_in(parsed).cable_count == 2
    assert "1 edge leads from a node to itself: ignored" in parsed.warnings
    assert any("weights of edges are ignored" in warning for warning in parsed.warnings)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("graph", "reason"),
    [
        (nx.empty_graph(3), "no edges"),
        (nx.Graph([(0, 0)]), "no edges"),
        (nx.Graph([(0, 1, {"capacity": 0.0})]), "no fabric"),
        (nx.Graph([(0, 1, {"capacity": -1.0})]), "no fabric"),
        (nx.Graph([(0, 1, {"capacity": "fast"})]), "no fabric"),
        (nx.Graph([(0, 1, {"cables": 0})]), "no fabric"),
        (nx.DiGraph([(0, 1, {"bytes": 3})], type="profile"), "graph of a profile"),
        (nx.Graph([("a ", "b")]), "is not a valid name of a device"),
    ],
)
def test_graphs_that_are_no_fabric_are_refused(format: Format, graph: nx.Graph[Any], reason: str) -> None:
    assert reason in refusal(format, written(graph, format)).reason


BROKEN = {"coordinates": "[1", "kind": "router", "guid": "zz", "level": "x", "slots": -3, "forwards": "no"}


@pytest.mark.parametrize(("name", "value"), BROKEN.items())
def test_attributes_that_the_types_refuse_are_refused(name: str, value: object) -> None:
    graph: nx.Graph[Any] = to_networkx(fabric_in(parse(GRAPHML, read("graphs/leaves.graphml"))))
    broken = nx.node_link_data(graph, edges="links")
    broken["nodes"][0][name] = value
    reason = r"is not a list|is neither|is not a whole number|not a valid fabric"
    assert re.search(reason, refusal(NODE_LINK, json.dumps(broken)).reason)


@pytest.mark.parametrize(
    ("parser", "text", "reason"),
    [
        (GRAPHML, f"{GRAPHML_HEAD}<graph>", "truncated"),
        (GRAPHML, f"{GRAPHML_HEAD}</graphml>", "networkx cannot read the graph"),
        (GRAPHML, '<!DOCTYPE g [<!ENTITY a "b">]><graphml>&a;</graphml>', "entities"),
        (GRAPHML, "<graphml><graph/></graphml>", "no edges"),
        (NODE_LINK, f'{{{NODES}, "links": [{{"source": "a", "target": "c"}}]}}', NO_NODE),
        (NODE_LINK, f'{{{NODES}, "links": [{{"source": "a"}}]}}', NO_NODE),
        (NODE_LINK, f'{{{NODES}, "links": [3]}}', "is not an object"),
        (NODE_LINK, f'{{{NODES}, "links": 3}}', "is not a list"),
        (NODE_LINK, '{"nodes": [{"id": "a"}, {"id": "a"}], "links": []}', "the id is missing or repeated"),
        (NODE_LINK, '{"nodes": [{"name": "a"}], "links": []}', "the id is missing or repeated"),
        (NODE_LINK, f'{{{NODES}, "graph": 3, "links": []}}', "the attributes of the graph are not an object"),
        (NODE_LINK, f'{{{NODES}, "links": [', "truncated"),
    ],
)
def test_what_is_no_graphml_or_node_link_is_refused(parser: Format, text: str, reason: str) -> None:
    assert reason in refusal(parser, text).reason


def test_attributes_of_a_graph_may_be_pairs_as_they_once_were_and_ids_numbers() -> None:
    links = '"links": [{"source": "a", "target": "b", "capacity": 5}]'
    for attributes in ("[]", "[[]]", '[["name", "old"]]'):
        text = f'{{"graph": {attributes}, {NODES}, {links}}}'
        assert fabric_in(parse(NODE_LINK, text)).names == ("a", "b")
    fabric = fabric_in(parse(NODE_LINK, f"{{{NODES}, {links}}}".replace('"a"', "1").replace('"b"', "2")))
    assert fabric.names == ("1", "2")
    assert np.array_equal(fabric.links.capacity, [5.0, 5.0])


SHORT = "source,target,capacity\nn1,leaf1,12.5e9\nn2,leaf2,12.5e9\nleaf1,spine,50e9\nleaf2,spine,50e9\n"


def test_three_columns_are_a_fabric() -> None:
    assert LINKS_CSV.recognise(SHORT, "x")
    found = fabric_of(LINKS_CSV, SHORT)
    assert found.names == ("leaf1", "leaf2", "n1", "n2", "spine")
    assert [found.names[host] for host in found.hosts] == ["n1", "n2"]
    assert (found.cable_count, found.forwards.tolist()) == (4, [True, True, False, False, True])
    assert parse(LINKS_CSV, SHORT).warnings == (
        "the file lists each cable once: the other direction is added",
        "vertices without a kind are taken as hosts if they have one neighbour, else as switches",
    )


def test_a_ring_of_equals_is_a_direct_network_and_other_columns_are_ignored() -> None:
    found = fabric_of(LINKS_CSV, "source,target,capacity\na,b,1\nb,c,1\nc,a,1\n")
    assert bool((found.kind == HOST).all())
    assert bool(found.forwards.all())
    text = "source,target,capacity,colour\na,b,1,red\n"
    assert "the columns colour are ignored" in parse(LINKS_CSV, text).warnings
    loads = "source,source_guid,source_port,target,target_guid,target_port,bytes,capacity,seconds\n"
    assert not LINKS_CSV.recognise(loads, "x")


def test_ports_guids_kinds_and_slots_are_kept() -> None:
    text = (
        "# of a plan\n"
        "Target,Source,capacity,source_port,target_port,source_guid,target_guid,source_kind,source_slots,cables\n"
        "s,h,25e9,1,7,0x10,0xa0,host,64,1\n"
        "h,s,25e9,7,1,a0,10,switch,0,1\n"
        "s,i,50e9,1,8,0x11,0xa0,host,,2\n"
        "i,s,50e9,8,1,0xa0,0x11,switch,0,2\n"
    )
    found = fabric_of(LINKS_CSV, text)
    assert (found.slots.tolist(), found.guid.tolist()) == ([64, 1, 0], [0, 0, 0xA0])
    assert (found.adapters.guid.tolist(), found.adapters.host.tolist()) == ([0x10, 0x11], [0, 1])
    assert rows_of(found.links, "source_port", "source_adapter") == [(1, 0), (1, 1), (7, -1), (8, -1)]
    assert found.cable_count == 3


def test_without_capacities_the_callers_rate_is_taken() -> None:
    text = "source,target,cables\na,b,2\nb,c,1\n"
    read = parse(LINKS_CSV, text, Options(rate=5.0))
    assert set(fabric_in(read).links.capacity.tolist()) == {5.0}
    assert sure(read.assumed).all()
    assert any("--rate" in line for line in parse(LINKS_CSV, text).warnings)


COLUMNS = "the columns source and target are missing, or a column is repeated"
HEAD = "source,target,capacity,cables,source_port,source_guid,source_kind,source_slots,source_forwards\n"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("source,capacity,cables\n", 1, COLUMNS),
        ("source,target,target\n", 1, COLUMNS),
        (HEAD, None, "no links found"),
        (HEAD + "a,b,1\n", 2, "3 cells, but there are 9 columns"),
        (HEAD + "a,a,1,,,,,,\n", 2, "a link from a vertex to itself"),
        (HEAD + ",b,1,,,,,,\n", 2, "'' is not a valid name of a device"),
        *(
            (
                HEAD + f"a,b,{rate},,,,,,\n",
                2,
                f"capacity is not a number of bytes/s from 1e-06 to 1e+18: '{rate}'",
            )
            for rate in ("0", "nan", "1e999", "-1", "1e-320", "1e308")
        ),
        (HEAD + "a,b,1,999999999,,,,,\n", 2, "cables is above 65535: '999999999'"),
        (HEAD + "a,b,1,,65536,,,,\n", 2, "source_port is above 65535: '65536'"),
        (HEAD + "a,b,1,,,,host,999999999,\n", 2, "source_slots is above 65535: '999999999'"),
        (HEAD + "a,b,1,0,,,,,\n", 2, "a row of no cables"),
        (HEAD + "a,b,1,x,,,,,\n", 2, "cables is not a whole number: 'x'"),
        (HEAD + "a,b,1,,-1,,,,\n", 2, "source_port is not a whole number: '-1'"),
        (HEAD + "a,b,1,,,zz,,,\n", 2, "source_guid is not a GUID: 'zz'"),
        (HEAD + "a,b,1,,,,router,,\n", 2, "source_kind is neither host nor switch: 'router'"),
        (HEAD + "a,b,1,,,,,,maybe\n", 2, "source_forwards is neither 1 nor 0: 'maybe'"),
        (HEAD + "a,b,1,,,,host,1,\na,c,1,,,,switch,0,\n", 3, "'a' has another kind, slots or forwards"),
        (HEAD + "a,b,1,,,1,switch,,\na,c,1,,,2,switch,,\n", 3, "the switch 'a' has two GUIDs"),
        (HEAD + "a,b,1,,,1,host,,\nb,a,1,,,1,host,,\n", 3, "the adapter 0x0000000000000001 is in two hosts"),
        (HEAD + 'a,"b,1,,,,,,\n', 2, "invalid CSV: unexpected end of data"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, line: int | None, reason: str) -> None:
    error = refusal(LINKS_CSV, text)
    assert error.line == line
    assert error.reason.startswith(reason)


MAP = "num: 3\n1 blub\n0 bla\n2 blib\n1 2 0\n2 0 1\n0 1 2\n"
"""The example in the comment of the library's own parser: a triangle."""
STAR = "num: 4\n0 a\n1 b\n2 c\n3 sw\n0 3\n1 3\n2 3 3\n3 0 1 2 2\n"
WEIGHTED = read("formats/libtopomap_w.map")


def test_the_librarys_own_example() -> None:
    fabric = fabric_of(LIBTOPOMAP, MAP)
    assert fabric.names == ("bla", "blib", "blub")
    assert fabric.neighbour.tolist() == [1, 2, 0, 2, 0, 1]
    assert fabric.cable_count == 3


def test_a_map_of_a_real_fabric_agrees_with_its_scan() -> None:
    mapped = fabric_of(LIBTOPOMAP, read("formats/libtopomap.map"), Options(rate=25e9))
    scan = fabric_of(IBNETDISCOVER, read("infiniband/fattree2-64-ftree/ibnetdiscover.txt"))
    assert mapped.names == scan.names
    for column in ("kind", "forwards", "slots", "indptr", "neighbour", "capacity", "cables"):
        assert np.array_equal(getattr(mapped, column), getattr(scan, column)), column


def test_a_repeated_neighbour_is_a_parallel_cable_and_a_weight_multiplies_its_rate() -> None:
    fabric = fabric_of(LIBTOPOMAP, STAR)
    assert fabric.cable_count == 4
    assert fabric.cables.tolist() == fabric.capacity.tolist() == [1, 1, 2, 1, 1, 2]
    plain = fabric_of(LIBTOPOMAP, read("formats/libtopomap.map"))
    weighted = fabric_of(LIBTOPOMAP, WEIGHTED)
    assert set(plain.capacity.tolist()) == {1.0}
    assert set(weighted.capacity.tolist()) == {200.0}
    assert weighted.cable_count == plain.cable_count == 96
    assert set(fabric_of(LIBTOPOMAP, WEIGHTED, Options(rate=0.5)).capacity.tolist()) == {100.0}


def test_vertices_with_one_neighbour_are_hosts_and_those_of_a_direct_network_forward() -> None:
    fabric = fabric_of(LIBTOPOMAP, STAR)
    assert [fabric.names[host] for host in fabric.hosts] == ["a", "b", "c"]
    assert fabric.forwards.tolist() == [False, False, False, True]
    for text, hosts in ((MAP, 3), ("num: 2\n0 a\n1 b\n0 1\n1 0\n", 2)):
        direct = fabric_of(LIBTOPOMAP, text)
        assert (len(direct.hosts), bool(direct.forwards.all())) == (hosts, True)


def test_an_assumed_rate_has_a_warning() -> None:
    assert parse(LIBTOPOMAP, MAP).warnings == (
        "the map contains no rates: 1 byte/s per cable is assumed, so seconds are bytes",
    )
    assert parse(LIBTOPOMAP, MAP, Options(rate=1e9)).warnings == ()


@pytest.mark.parametrize(
    ("edges", "warning", "neighbours"),
    [
        ("0 1 2\n1 2\n2\n", "the map lists each edge once: the other direction is added", [1, 2, 0, 2, 0, 1]),
        ("0 1\n1 0 2\n2 0\n", "2 edges are listed in one direction only, and kept so", [1, 0, 2, 0]),
        ("0 0 1\n1 0\n2 0\n", "1 edge leads from a vertex to itself: ignored", None),
    ],
)
def test_odd_edges_are_mirrored_kept_or_left_out(
    edges: str, warning: str, neighbours: list[int] | None
) -> None:
    parsed = parse(LIBTOPOMAP, f"num: 3\n0 a\n1 b\n2 c\n{edges}", Options(rate=1.0))
    assert warning in parsed.warnings
    if neighbours is not None:
        assert (parsed.warnings, fabric_in(parsed).links.target.tolist()) == ((warning,), neighbours)


@pytest.mark.parametrize(
    "text", [MAP.replace("\n", "\r\n"), MAP + "\n\n", MAP.rstrip("\n"), MAP.replace(" ", "  ")]
)
def test_the_same_map_in_another_dress(text: str) -> None:
    fabric = fabric_of(LIBTOPOMAP, text)
    assert (fabric.names, fabric.cable_count) == (("bla", "blib", "blub"), 3)


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("num: 0\n", "with N vertices", 1),
        (MAP.replace("num: 3", "num: 4"), "need 9 lines, the file has 7", 7),
        (MAP.rsplit("\n", 2)[0], "need 7 lines, the file has 6", 6),
        (MAP.replace("1 blub", "7 blub"), "7 is not below 3 in '7", 2),
        (MAP.replace("1 blub", "0 blub"), "0 is repeated in '0", 3),
        (MAP.replace("blib", "bla"), "two vertices are named 'bla'", 4),
        (MAP.replace("1 blub", "1"), "expected 'vertex name'", 2),
        (MAP.replace("2 0 1", "2 0 3"), "neighbour 3 is no vertex", 6),
        (MAP.replace("2 0 1", "2 0 x"), "expected 'vertex", 6),
        (MAP.replace("2 0 1", "1 0 1"), "1 is repeated in '1 0 1'", 6),
        (MAP.replace("num: 3", "num: 3 w"), r"neighbour\(weight\) \.\.\.", 5),
        ("num: 2 w\n0 a\n1 b\n0 1(0)\n1 0(1)\n", "weight 0", 4),
        ("num: 2 w\n0 a\n1 b\n0 1 (2)\n1 0(1)\n", r"neighbour\(weight\) \.\.\.", 4),
        ("num: 2\n0 a\n1 b\n0\n1\n", "no edges", None),
        ("num: 2\n0 a\n1 b\n0 0\n1 1\n", "no edges", None),
    ],
)
def test_bad_maps_are_errors_with_their_line(text: str, reason: str, line: int | None) -> None:
    error = refusal(LIBTOPOMAP, text)
    assert re.search(reason, str(error))
    assert error.line == line
