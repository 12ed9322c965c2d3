"""Views for other libraries: what goes to networkx comes back, plain graphs, and py2neo."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from ingest.generate.direct import torus
from registry.database.embedded_server import ServerAddress
from registry.errors import InvalidValue, MissingExtra
from registry.exports.graphs import write_graphml
from registry.installation import install_command
from registry.interchange import fabric_tables, from_networkx, history_table, py2neo_graph, to_networkx
from registry.model import Allocation, Fabric, Metrics, Placement, Profile
from registry.model.intake import Intake
from registry.registry import Registry
from registry.store.placement_rows import PlacementRecord
from registry.store.snapshots import canonical, content_hash
from tests.support.fat_tree import at, fat_tree
from tests.support.full_cluster import same
from tests.support.small_fabrics import adapter_fabrics, plain_fabrics, profiles


@given(fabric=adapter_fabrics() | plain_fabrics())
def test_a_fabric_goes_to_networkx_and_back(fabric: Fabric) -> None:
    assert content_hash(fabric_from(to_networkx(fabric))) == content_hash(canonical(fabric))


def test_the_graphml_of_a_fabric_is_read_with_networkx_alone() -> None:
    fabric = torus((2, 3))
    found = fabric_from(nx.parse_graphml(write_graphml(fabric)))
    assert content_hash(found) == content_hash(canonical(fabric))


@given(profile=profiles())
def test_a_profile_goes_to_networkx_and_back(profile: Profile) -> None:
    given_ = replace(profile, name="a", application="b", source="c", missing_ranks=(0,))
    found = profile_from(to_networkx(given_))
    assert same(replace(found, self_bytes=given_.self_bytes), given_)


def test_stored_objects_become_graphs_and_pictures(registry: Registry) -> None:
    pair = Profile.from_edges([0], [1], [8.0], name="pair")
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree(), profiles=(pair,)))
    snapshot = registry.fabrics.read("toy")
    assert to_networkx(snapshot).number_of_nodes() == 8
    assert to_networkx(registry.profiles.read("pair")).number_of_edges() == 1
    assert "<title>leaf0</title>" in snapshot._repr_svg_()
    with pytest.raises(InvalidValue, match="thing: must be a Fabric, not a list"):
        to_networkx([])  # type: ignore[arg-type]


def test_parallel_cables_are_edges_of_their_own() -> None:
    graph = to_networkx(fat_tree(cables=3))
    assert isinstance(graph, nx.MultiDiGraph)
    assert graph.number_of_edges("leaf0", "spine1") == 3
    ports = {data["src_port"] for data in graph.get_edge_data("leaf0", "spine1").values()}
    assert ports == {6, 7, 8}
    assert graph.nodes["node00"]["kind"] == "host"
    assert graph.nodes["leaf0"]["forwards"]


def fabric_from(graph: nx.Graph[Any], **given: Any) -> Fabric:
    fabric = from_networkx(graph, **given)
    assert isinstance(fabric, Fabric)
    return fabric


def profile_from(graph: nx.Graph[Any], **given: Any) -> Profile:
    profile = from_networkx(graph, **given)
    assert isinstance(profile, Profile)
    return profile


def test_vertices_of_a_plain_graph_host_and_forward_unless_it_says_otherwise() -> None:
    grid: nx.Graph[tuple[int, int]] = nx.Graph()
    grid.add_edges_from(nx.grid_2d_graph(2, 2).edges, capacity=5.0)
    fabric = fabric_from(grid)
    assert fabric.names == tuple(map(str, grid.nodes)) == ("(0, 0)", "(1, 0)", "(0, 1)", "(1, 1)")
    assert fabric.forwards.all()
    assert (fabric.slots.tolist(), fabric.cable_count) == ([1, 1, 1, 1], 4)
    assert set(fabric.capacity.tolist()) == {5.0}
    star: nx.DiGraph[str] = nx.DiGraph()
    star.add_node("s", slots=0)
    star.add_node("t", kind="switch")
    star.add_node("h", slots=3, forwards=False)
    star.add_edge("h", "s", capacity=1)
    fabric = fabric_from(star)
    assert (fabric.names, fabric.slots.tolist()) == (("s", "t", "h"), [0, 0, 3])
    assert (fabric.kind.tolist(), fabric.forwards.tolist()) == ([1, 1, 0], [True, True, False])
    asked: nx.Graph[str] = nx.Graph()
    asked.add_node("s", slots=0)
    asked.add_node("b", forwards=True)
    asked.add_edges_from([("a", "s"), ("b", "s")], capacity=1.0)
    fabric = fabric_from(asked)  # hosts of a graph with a switch forward only on request
    forwards = dict(zip(fabric.names, fabric.forwards.tolist(), strict=True))
    assert forwards == {"s": True, "b": True, "a": False}
    pair: nx.DiGraph[int] = nx.DiGraph()
    pair.add_edge(1, 0, bytes=5)
    profile = profile_from(pair)
    assert (profile.ranks, profile.sender.tolist(), profile.messages.tolist()) == (2, [1], [0])


def test_nodes_with_the_same_text_are_not_merged() -> None:
    graph = graph_of((1, "2", {"capacity": 1.0}), ("1", 3, {"capacity": 1.0}))
    with pytest.raises(InvalidValue, match="the nodes 1 and '1' need different names"):
        from_networkx(graph)
    halves = graph_of((0, 1, {"capacity": 1.0, "cables": 1.5}))
    with pytest.raises(InvalidValue, match="cables: must be a whole number"):
        from_networkx(halves)


def graph_of(*edges: tuple[object, object, dict[str, object]], kind: str | None = None) -> nx.DiGraph[object]:
    graph: nx.DiGraph[object] = nx.DiGraph()
    graph.add_edges_from(edges)
    if kind is not None:
        graph.graph["type"] = kind
    return graph


@pytest.mark.parametrize(
    "graph",
    [
        *(graph_of(), graph_of((0, 1, {})), graph_of((0, 1, {"capacity": 1.0}), (1, 2, {"bytes": 1.0}))),
        *(graph_of((0, 1, {"capacity": -1.0})), graph_of((0, 1, {"capacity": "fast"}))),
        *(graph_of((0, 0, {"capacity": 1.0})), graph_of((0, "0", {"capacity": 1.0}))),
        *(graph_of((0, 2, {"bytes": 1.0})), graph_of((0, 1, {"bytes": float("nan")}))),
        graph_of((0, 1, {"bytes": 1.0}), kind="fabric"),
    ],
)
def test_what_is_neither_fabric_nor_profile_is_refused(graph: nx.DiGraph[object]) -> None:
    with pytest.raises(InvalidValue):
        from_networkx(graph)


def test_tables_of_fabrics_and_profiles_have_names() -> None:
    axes = np.arange(16, dtype=np.int32).reshape(8, 2)
    torus = replace(fat_tree(), level=np.arange(8, dtype=np.int32), coordinates=axes)
    tables = fabric_tables(torus)
    assert tables["vertices"].set_index("name").loc["leaf0", "guid"] == "0x0000000000b00000"
    assert list(tables["vertices"].columns[-3:]) == ["level", "coordinate_0", "coordinate_1"]
    row = tables["links"].query("source == 'node00'").iloc[0]
    assert (row["target"], row["source_guid"], row["target_guid"]) == ("leaf0", "0x0000000000a00000", "")
    assert (row["capacity"], row["cables"]) == (50e9, 1)
    assert tables["adapters"]["host"].tolist() == ["node00", "node01", "node02", "node03"]
    table = Profile.from_edges([1, 0], [0, 1], [3.0, 4.0], messages=[1, 2]).to_pandas()
    columns = {"source": [0, 1], "target": [1, 0], "bytes": [4.0, 3.0], "messages": [2, 1]}
    assert table.to_dict("list") == columns


def test_a_table_of_the_history_has_a_row_a_placement(registry: Registry) -> None:
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree()))
    snapshot = registry.fabrics.read("toy")
    allocation = Allocation.of(snapshot.fabric, ["node00", "node01"])
    seconds = {"congestion_seconds": 1.0, "network_congestion_seconds": 0.5}
    baseline = Metrics(**seconds, hop_bytes=3.0, average_dilation=2.0)
    placement = Placement(host_of_rank=allocation.hosts, allocation=allocation, strategy="random", seed=1)
    record = PlacementRecord(cluster="toy", content=snapshot.id, placement=placement, random=baseline)
    registry.placements.save(record)
    table = history_table(registry.placements.history())
    assert table.loc[0, "random_hop_bytes"] == 3.0
    assert table.loc[0, "strategy"] == "random"
    assert len(history_table([])) == 0


def test_py2neo_reads_the_same_database(processes: None, registry: Registry, server: ServerAddress) -> None:
    registry.save(Intake(cluster="toy", observed_at=at(0), fabric=fat_tree()))
    graph = py2neo_graph(server.uri, user=server.user, password=server.password, name=server.name)
    statement = "MATCH (d:Device {cluster: $cluster, kind: 'host'}) RETURN d.name AS name ORDER BY name"
    names = [row["name"] for row in graph.run(statement, cluster="toy").data()]
    links = graph.evaluate("MATCH (:Device {kind: 'host'})-[l:LINK]->(:Device) RETURN count(l)")
    graph.service.connector.close()
    assert names == ["node00", "node01", "node02", "node03"]
    assert links == 4


@pytest.mark.parametrize(
    ("library", "call"),
    [
        ("py2neo", lambda: py2neo_graph("bolt://localhost")),
        ("pandas", lambda: fabric_tables(fat_tree())),
        ("pandas", lambda: Profile.from_edges([0], [1], [8.0]).to_pandas()),
        ("pandas", lambda: history_table([])),
    ],
)
def test_without_a_library_an_error_has_the_command_for_it(library: str, call: Any, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra) as missing:
        call()
    assert (missing.value.package, missing.value.command) == (library, install_command(library))


def weighted_path(*nodes: object) -> nx.Graph[Any]:
    graph: nx.Graph[Any] = nx.Graph()
    for weight, pair in enumerate(pairwise(nodes), start=4):
        graph.add_edge(*pair, weight=float(weight))
    return graph


def test_edges_without_a_capacity_get_the_given_one_or_that_of_an_attribute() -> None:
    graph = weighted_path("a", "b", "c")
    graph.edges["a", "b"]["capacity"] = 9.0
    assert fabric_from(graph, capacity=2.0).links.capacity.tolist() == [9.0, 9.0, 2.0, 2.0]
    assert fabric_from(graph, capacity="weight").links.capacity.tolist() == [4.0, 4.0, 5.0, 5.0]
    assert "capacity" not in graph.edges["b", "c"]  # the graph is not changed


def test_edges_without_bytes_get_the_given_ones_or_those_of_an_attribute() -> None:
    graph = weighted_path(0, 1, 2)
    assert profile_from(graph, weight=8.0).bytes.tolist() == [8.0] * 4
    assert profile_from(graph, weight="weight").bytes.tolist() == [4.0, 4.0, 5.0, 5.0]


@pytest.mark.parametrize(
    ("nodes", "said"), [((3, 1, 2), "1 .. 3"), (("x", "a", "b"), "'x' .. 'b'"), ((0, 1, 3), "0 .. 3")]
)
def test_nodes_that_are_no_ranks_are_numbered_with_a_warning(nodes: tuple[object, ...], said: str) -> None:
    with pytest.warns(UserWarning, match=re.escape(f"the ranks 0 .. 2 are the nodes {said}, in this order")):
        profile = profile_from(weighted_path(*nodes), weight="weight")
    neighbours = [profile.partner[profile.sender == rank].tolist() for rank in range(3)]
    assert neighbours == ([[1, 2], [0], [0]] if nodes[0] == 3 else [[1], [0, 2], [1]])


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(InvalidValue, match="weight: not with capacity"):
        from_networkx(weighted_path(0, 1), weight=1.0, capacity=1.0)
    with pytest.raises(InvalidValue, match="the edge from 0 to 1 has no attribute 'bandwidth'"):
        from_networkx(weighted_path(0, 1), capacity="bandwidth")
    with pytest.raises(InvalidValue, match="give capacity= or weight="):
        from_networkx(weighted_path(0, 1))
