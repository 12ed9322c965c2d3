"""GraphML and node-link JSON: fabrics that were exported come back whole, and plain graphs are read."""

from __future__ import annotations

import json
import re
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from ingest.catalog import FORMATS as FILE_FORMATS
from ingest.catalog import Parser
from ingest.formats.fabrics import ibnetdiscover
from ingest.formats.fabrics.graphs import GRAPHML, NODE_LINK
from ingest.options import Options
from registry.exports import catalog
from registry.fabrics.contents import canonical, content_hash
from registry.interchange import to_networkx
from registry.model import Fabric
from tests.support.inputs import fabric_in, parse, read, refusal
from tests.support.small_fabrics import adapter_fabrics, plain_fabrics

NODES = '"nodes": [{"id": "a"}, {"id": "b"}]'
FORMATS = ("graphml", "node-link")


def written(graph: nx.Graph[Any], format: str) -> str:
    """The graph as networkx itself writes it."""
    if format == "graphml":
        return "\n".join(nx.generate_graphml(graph))
    return json.dumps(nx.node_link_data(graph, edges="edges"))


def parser(format: str) -> Parser:
    return FILE_FORMATS.find(format).parser()


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=40)
@given(fabric=adapter_fabrics() | plain_fabrics())
def test_an_exported_fabric_comes_back_whole(format: str, fabric: Fabric) -> None:
    if not len(fabric.links):
        return
    text = catalog.write(format, fabric)
    assert parser(format).recognise(text[:65536], "x")
    assert content_hash(fabric_in(parse(parser(format), text))) == content_hash(canonical(fabric))


@pytest.mark.parametrize("format", FORMATS)
def test_an_exported_scan_of_a_real_fabric_comes_back_whole(format: str) -> None:
    scan = fabric_in(parse(ibnetdiscover, read("public/ndr-dgx.ibnetdiscover")))
    parsed = parse(parser(format), catalog.write(format, scan))
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
def test_a_grid_is_a_direct_network_with_a_rate_that_is_assumed_or_given(format: str) -> None:
    text = written(nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 3)), format)
    parsed = parse(parser(format), text)
    fabric = fabric_in(parsed)
    assert fabric.names == tuple("012345678")
    assert len(fabric.hosts) == 9
    assert fabric.forwards.all()
    assert fabric.cable_count == 12
    assert set(fabric.links.capacity.tolist()) == {1.0}
    assert any("seconds are bytes" in warning for warning in parsed.warnings)
    assert parsed.assumed is not None
    assert parsed.assumed.all()
    given_rate = fabric_in(parse(parser(format), text, Options(rate=2.5e9)))
    assert set(given_rate.links.capacity.tolist()) == {2.5e9}


@pytest.mark.parametrize("format", FORMATS)
def test_an_edge_runs_both_ways_unless_the_graph_is_directed(format: str) -> None:
    directed = nx.DiGraph(
        [("a", "b", {"capacity": 2.0}), ("b", "a", {"capacity": 3.0}), ("b", "c", {"capacity": 4.0})]
    )
    fabric = fabric_in(parse(parser(format), written(directed, format)))
    links = fabric.links
    found = set(zip(links.source.tolist(), links.target.tolist(), links.capacity.tolist(), strict=True))
    assert found == {(0, 1, 2.0), (1, 0, 3.0), (1, 2, 4.0)}


@pytest.mark.parametrize("format", FORMATS)
def test_parallel_edges_are_parallel_cables_and_kinds_are_those_of_the_file(format: str) -> None:
    graph: nx.MultiGraph[str] = nx.MultiGraph()
    graph.add_node("s", kind="switch")
    graph.add_node("h", kind="host", slots=4, forwards=False)
    graph.add_edges_from(
        [("h", "s", {"capacity": 1.0, "src_port": 1}), ("h", "s", {"capacity": 1.0, "src_port": 2})]
    )
    fabric = fabric_in(parse(parser(format), written(graph, format)))
    assert fabric.cable_count == 2
    assert fabric.slots.tolist() == [4, 0]
    assert fabric.forwards.tolist() == [False, True]


@pytest.mark.parametrize("format", FORMATS)
def test_loops_are_left_out_and_weights_are_not_capacities(format: str) -> None:
    graph = nx.Graph([("a", "b", {"weight": 3.0}), ("b", "b", {"weight": 1.0}), ("b", "c", {"weight": 1.0})])
    parsed = parse(parser(format), written(graph, format))
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
def test_graphs_that_are_no_fabric_are_refused(format: str, graph: nx.Graph[Any], reason: str) -> None:
    assert reason in refusal(parser(format), written(graph, format)).reason


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("coordinates", "[1"),
        ("kind", "router"),
        ("guid", "zz"),
        ("level", "x"),
        ("slots", -3),
        ("forwards", "no"),
    ],
)
def test_attributes_that_the_types_refuse_are_refused(name: str, value: object) -> None:
    graph: nx.Graph[Any] = to_networkx(fabric_in(parse(GRAPHML, read("graphs/leaves.graphml"))))
    broken = nx.node_link_data(graph, edges="links")
    broken["nodes"][0][name] = value
    reason = r"is not a list|is neither|is not a whole number|not a valid fabric"
    assert re.search(reason, refusal(NODE_LINK, json.dumps(broken)).reason)


@pytest.mark.parametrize(
    ("parser", "text", "reason"),
    [
        (GRAPHML, '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph>', "truncated"),
        (
            GRAPHML,
            '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"></graphml>',
            "networkx cannot read the graph",
        ),
        (GRAPHML, '<!DOCTYPE g [<!ENTITY a "b">]><graphml>&a;</graphml>', "entities"),
        (GRAPHML, "<graphml><graph/></graphml>", "no edges"),
        (
            NODE_LINK,
            f'{{{NODES}, "links": [{{"source": "a", "target": "c"}}]}}',
            "0].target: is not the id of a node",
        ),
        (NODE_LINK, f'{{{NODES}, "links": [{{"source": "a"}}]}}', "is not the id of a node"),
        (NODE_LINK, f'{{{NODES}, "links": [3]}}', "is not an object"),
        (NODE_LINK, f'{{{NODES}, "links": 3}}', "is not a list"),
        (NODE_LINK, '{"nodes": [{"id": "a"}, {"id": "a"}], "links": []}', "the id is missing or repeated"),
        (NODE_LINK, '{"nodes": [{"name": "a"}], "links": []}', "the id is missing or repeated"),
        (NODE_LINK, f'{{{NODES}, "graph": 3, "links": []}}', "the attributes of the graph are not an object"),
        (NODE_LINK, f'{{{NODES}, "links": [', "truncated"),
    ],
)
def test_what_is_no_graphml_or_node_link_is_refused(parser: Parser, text: str, reason: str) -> None:
    assert reason in refusal(parser, text).reason


def test_attributes_of_a_graph_may_be_pairs_as_they_once_were_and_ids_numbers() -> None:
    links = '"links": [{"source": "a", "target": "b", "capacity": 5}]'
    for attributes in ("[]", "[[]]", '[["name", "old"]]'):
        text = f'{{"graph": {attributes}, {NODES}, {links}}}'
        assert fabric_in(parse(NODE_LINK, text)).names == ("a", "b")
    fabric = fabric_in(parse(NODE_LINK, f"{{{NODES}, {links}}}".replace('"a"', "1").replace('"b"', "2")))
    assert fabric.names == ("1", "2")
    assert np.array_equal(fabric.links.capacity, [5.0, 5.0])
