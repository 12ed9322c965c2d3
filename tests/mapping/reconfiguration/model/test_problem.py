"""Applications, machines and topologies for reconfiguration: what they are made of, and what they refuse."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mapping.reconfiguration.model.problem import Application, Machine
from mapping.reconfiguration.model.topology import Topology
from registry.errors import InvalidValue
from registry.model import Profile
from tests.support.reconfigure_problems import applications, graph_of, links_of, machine, topologies

NAN = float("nan")


def test_both_directions_and_repeats_of_an_edge_are_summed_and_loops_left_out() -> None:
    found = Application.from_edges([0, 1, 1, 2, 2], [1, 0, 0, 2, 1], [1.0, 2.0, 4.0, 99.0, 8.0])
    assert found.source.tolist() == [0, 1]
    assert found.target.tolist() == [1, 2]
    assert found.weight.tolist() == [7.0, 8.0]
    assert found.vertex_weight.tolist() == [1.0, 1.0, 1.0]


def test_the_application_of_a_profile_has_a_vertex_a_rank_and_the_bytes_of_both_directions() -> None:
    profile = Profile.from_edges([0, 1, 2], [1, 0, 0], [3.0, 4.0, 5.0])
    found = Application.of_profile(profile, [2.0, 0.0, 1.0])
    assert (found.source.tolist(), found.target.tolist()) == ([0, 0], [1, 2])
    assert found.weight.tolist() == [7.0, 5.0]
    assert found.vertex_weight.tolist() == [2.0, 0.0, 1.0]


def test_a_disconnected_application_is_refused_naming_a_vertex_unless_that_is_asked_for() -> None:
    with pytest.raises(InvalidValue, match="vertex 2 and vertex 0: the application has 2"):
        Application.from_edges([0, 2], [1, 3], [1.0, 1.0])
    found = Application.from_edges([0, 2], [1, 3], [1.0, 1.0], connected=False)
    assert (found.vertices, found.edges) == (4, 2)
    idle = Profile.from_edges([0], [1], [1.0], ranks=3)
    with pytest.raises(InvalidValue, match="vertex 2 and vertex 0"):
        Application.of_profile(idle)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vertex_weight": []}, "at least one vertex"),
        ({"vertex_weight": [1.0, -2.0, 1.0]}, "vertex_weight: is -2.0 at 1"),
        ({"vertex_weight": [1.0, 1.0, NAN]}, "vertex_weight: is nan at 2"),
        ({"weight": [1.0, float("inf")]}, r"Application.weight: is inf at 1"),
        ({"weight": [1.0]}, "has 1 entries, not 2"),
        ({"source": [0, 2], "target": [1, 2]}, "row 1 connects 2 and 2"),
        ({"source": [0, 2], "target": [1, 1]}, "row 1 connects 2 and 1"),
        ({"target": [1, 3]}, "row 1 connects 1 and 3"),
        ({"source": [0, 0], "target": [2, 1]}, "row 1, 0 and 1, repeats or goes back"),
        ({"source": [0, 0], "target": [1, 1]}, "row 1, 0 and 1, repeats or goes back"),
    ],
)
def test_rows_and_weights_that_cannot_be_are_named(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "vertex_weight": [1.0, 1.0, 1.0],
        "source": [0, 1],
        "target": [1, 2],
        "weight": [1.0, 2.0],
    }
    Application(**good)
    with pytest.raises(InvalidValue, match=message):
        Application(**good | change)


@pytest.mark.parametrize(
    ("edges", "more", "message"),
    [
        (([0, 1], [1, 2], [1.0, NAN]), {}, "weight: is nan at 1"),
        (([0, 1], [1, 2], [1.0]), {}, "weight: has 1 entries, not 2"),
        (([0, 1], [1], [1.0, 1.0]), {}, "differ in length: 2 and 1"),
        (([0, -1], [1, 2], [1.0, 1.0]), {}, "source: is -1 in row 1, not within 0 .. 2"),
        (([0, 1], [1, 5], [1.0, 1.0]), {"vertices": 3}, "target: is 5 in row 1, not within 0 .. 2"),
        (([0, 1], [1, 2], [1.0, 1.0]), {"vertices": 4, "vertex_weight": [1.0]}, "has 1 entries, not 4"),
        (([0.5], [1], [1.0]), {}, "whole numbers"),
    ],
)
def test_edges_that_cannot_be_are_named(edges: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Application.from_edges(*edges, **more)


@given(applications())
def test_incidence_lists_each_edge_at_both_ends_in_order(application: Application) -> None:
    indptr, other, row = application.incidence
    for vertex in range(application.vertices):
        rows = row[indptr[vertex] : indptr[vertex + 1]].tolist()
        ends = zip(application.source.tolist(), application.target.tolist(), strict=True)
        assert rows == [at for at, pair in enumerate(ends) if vertex in pair]
        for at, end in zip(rows, other[indptr[vertex] : indptr[vertex + 1]].tolist(), strict=True):
            assert {vertex, end} == {int(application.source[at]), int(application.target[at])}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": 0}, "nodes: is 0, must be at least 1"),
        ({"nodes": 999_999_999, "max_edges": 1 << 40}, "nodes: is 999999999, must be at most 16384"),
        ({"nodes": 2.5}, "nodes: is 2.5, must be a whole number"),
        ({"max_degree": 1}, "max_degree: is 1, must be at least 2: fewer links do not connect 6 nodes"),
        ({"max_edges": 4}, "max_edges: is 4, must be at least 5"),
        ({"compute_speed": 0.0}, "compute_speed: is 0.0, must be finite and above zero"),
        ({"compute_speed": NAN}, "compute_speed: is nan"),
        ({"link_speed": -1.0}, "link_speed: is -1.0"),
        ({"link_speed": float("inf")}, "link_speed: is inf"),
    ],
)
def test_a_machine_refuses_what_cannot_join_its_nodes_or_work(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "nodes": 6,
        "max_degree": 2,
        "max_edges": 5,
        "compute_speed": 1.0,
        "link_speed": 1.0,
    }
    Machine(**good)
    with pytest.raises(InvalidValue, match=message):
        Machine(**good | change)


def test_two_nodes_need_one_port_and_one_node_none() -> None:
    machine(2, max_degree=1, max_edges=1)
    machine(1, max_degree=0, max_edges=0)


@given(topologies(connected=False))
def test_a_topology_tells_what_networkx_tells(topology: Topology) -> None:
    graph = graph_of(topology)
    assert topology.degree.tolist() == [degree for _, degree in graph.degree]
    assert topology.connected() == nx.is_connected(graph)
    parts = {frozenset(np.flatnonzero(topology.components() == k).tolist()) for k in topology.components()}
    assert parts == {frozenset(part) for part in nx.connected_components(graph)}
    indptr, node, link = topology.neighbours
    for one in range(topology.nodes):
        around = node[indptr[one] : indptr[one + 1]].tolist()
        assert sorted(around) == sorted(graph.neighbors(one))
        for other, row in zip(around, link[indptr[one] : indptr[one + 1]].tolist(), strict=True):
            assert topology.link_between(one, other) == topology.link_between(other, one) == row
    for one in range(topology.nodes):
        for other in range(topology.nodes):
            assert (topology.link_between(one, other) >= 0) == graph.has_edge(one, other)
    every = np.argwhere(np.ones((topology.nodes, topology.nodes), bool))
    alone = [topology.link_between(one, other) for one, other in every.tolist()]
    assert topology.rows_between(every).tolist() == alone


@given(topologies(min_nodes=2), st.data())
def test_links_go_and_come(topology: Topology, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, topology.links - 1))
    ends = tuple(topology.pairs[row].tolist())
    less = topology.without([row])
    assert links_of(less) == links_of(topology) - {ends}
    assert links_of(less.with_link(*ends[::-1])) == links_of(topology)
    label = topology.components([row])
    assert (label == label[0]).all() == nx.is_connected(graph_of(less))


@given(topologies(min_nodes=4, max_nodes=9), st.booleans(), st.data())
def test_a_swap_keeps_every_degree(topology: Topology, crossed: bool, data: st.DataObject) -> None:
    rows = st.integers(0, topology.links - 1)
    one, other = data.draw(rows), data.draw(rows)
    (u, v), (x, z) = topology.pairs[[one, other]].tolist()
    made = {tuple(sorted(pair)) for pair in (((u, z), (v, x)) if crossed else ((u, x), (v, z)))}
    allowed = len({u, v, x, z}) == 4 and not made & links_of(topology)
    if not allowed:
        with pytest.raises(InvalidValue, match=r"share a node|connected already"):
            topology.swapped(one, other, crossed)
        return
    swapped = topology.swapped(one, other, crossed)
    assert swapped.degree.tolist() == topology.degree.tolist()
    assert links_of(swapped) == links_of(topology) - {(u, v), (x, z)} | made


def test_links_that_cannot_be_are_refused() -> None:
    line = Topology.of(3, [(2, 1), (0, 1), (1, 0)])
    assert links_of(line) == {(0, 1), (1, 2)}
    with pytest.raises(InvalidValue, match="nodes 1 and 0 are connected already"):
        line.with_link(1, 0)
    with pytest.raises(InvalidValue, match="connects node 2 with itself"):
        line.with_link(2, 2)
    with pytest.raises(InvalidValue, match=r"is 3 in row 2, not within 0 \.\. 2"):
        line.with_link(0, 3)
    with pytest.raises(InvalidValue, match="nodes: is 0"):
        Topology(nodes=0, source=np.zeros(0, np.int32), target=np.zeros(0, np.int32))


def test_a_topology_beyond_a_machine_is_named() -> None:
    star = Topology.of(4, [(0, 1), (0, 2), (0, 3)])
    star.require(machine(4, max_degree=3))
    with pytest.raises(InvalidValue, match="node 0 has 3 links, max_degree is 2"):
        star.require(machine(4, max_degree=2))
    with pytest.raises(InvalidValue, match="has 4 links, max_edges is 3"):
        star.with_link(1, 2).require(machine(4, max_edges=3))
    with pytest.raises(InvalidValue, match="nodes: is 4, the machine has 5"):
        star.require(machine(5))
    with pytest.raises(InvalidValue, match="no path of links connects node 3 and node 0"):
        star.without([2]).require(machine(4))


@given(topologies(min_nodes=2, max_nodes=5))
def test_arrays_are_read_only(topology: Topology) -> None:
    assume(topology.links)
    with pytest.raises(ValueError, match="read-only"):
        topology.source[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        topology.neighbours.node[0] = 0
