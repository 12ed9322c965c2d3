"""Topologies: measures against networkx, changes of links, and what is refused."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mapping.reconfiguration.model.topology import Topology
from registry.errors import InvalidValue
from tests.support.reconfigure_problems import graph_of, links_of, machine, topologies


@given(topologies(connected=False))
def test_degrees_components_and_neighbours_are_those_of_networkx(topology: Topology) -> None:
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
    less = topology.changed([row])
    assert links_of(less) == links_of(topology) - {ends}
    assert links_of(less.changed(added=[ends[::-1]])) == links_of(topology)
    assert links_of(less.changed(range(less.links), [ends])) == {ends}
    assert links_of(topology.changed(added=[ends])) == links_of(topology)
    label = topology.components([row])
    assert (label == label[0]).all() == nx.is_connected(graph_of(less))


@pytest.mark.parametrize(("crossed", "ends"), [(False, ((0, 2), (1, 3))), (True, ((0, 3), (1, 2)))])
def test_a_swap_exchanges_ends_of_two_links(crossed: bool, ends: object) -> None:
    """Figure 2: links {0, 1} and {2, 3}."""
    assert Topology.of(4, [(0, 1), (2, 3)]).swap_ends(0, 1, crossed) == ends


def test_links_that_cannot_be_are_refused() -> None:
    line = Topology.of(3, [(2, 1), (0, 1), (1, 0)])
    assert links_of(line) == {(0, 1), (1, 2)}
    with pytest.raises(InvalidValue, match="connects node 2 with itself"):
        line.changed(added=[(2, 2)])
    with pytest.raises(InvalidValue, match=r"is 3 at 2, not within 0 \.\. 2"):
        line.changed(added=[(0, 3)])
    with pytest.raises(InvalidValue, match="nodes: is 0"):
        Topology(nodes=0, source=np.zeros(0, np.int32), target=np.zeros(0, np.int32))


def test_a_topology_beyond_a_machine_is_named() -> None:
    star = Topology.of(4, [(0, 1), (0, 2), (0, 3)])
    star.require(machine(4, max_degree=3))
    with pytest.raises(InvalidValue, match="node 0 has 3 links, max_degree is 2"):
        star.require(machine(4, max_degree=2))
    with pytest.raises(InvalidValue, match="has 4 links, max_edges is 3"):
        star.changed(added=[(1, 2)]).require(machine(4, max_edges=3))
    with pytest.raises(InvalidValue, match="nodes: is 4, the machine has 5"):
        star.require(machine(5))
    with pytest.raises(InvalidValue, match="no path of links connects node 3 and node 0"):
        star.changed([2]).require(machine(4))


@given(topologies(min_nodes=2, max_nodes=5))
def test_arrays_are_read_only(topology: Topology) -> None:
    assume(topology.links)
    with pytest.raises(ValueError, match="read-only"):
        topology.source[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        topology.neighbours.node[0] = 0
