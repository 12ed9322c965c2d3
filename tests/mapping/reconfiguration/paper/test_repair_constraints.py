"""The initial topology: partition, condensed graph, and its cut to max-degree and max-edges (section 3.1)."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.reconfiguration.model.problem import Application, Machine
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper.repair_constraints import (
    LoadedTopology,
    connect,
    satisfy_max_degree,
    satisfy_max_edges,
)
from mapping.reconfiguration.paper.seed_topology import (
    IMBALANCE,
    condensed_graph,
    oblivious_partition,
    seed_topology,
)
from registry.model import Floats
from tests.support.reconfigure_problems import applications, graph_of, links_of, machine, machines, topologies


def grid(side: int) -> Application:
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side))
    one, other = zip(*graph.edges, strict=True)
    return Application.from_edges(one, other, np.ones(len(one)))


def loads_of(loaded: LoadedTopology, flow: list[float]) -> Floats:
    """Loads of links, from the routes."""
    load = np.zeros(loaded.topology.links)
    for one, size in enumerate(flow):
        load[loaded.route(one)] += size
    return load


def test_the_partition_is_balanced_and_cuts_little() -> None:
    found = oblivious_partition(grid(12), 4, np.random.default_rng(0))
    assert np.bincount(found, minlength=4).max() <= np.ceil(IMBALANCE * 36)
    mesh = grid(12)
    cut = np.count_nonzero(found[mesh.source] != found[mesh.target])
    assert condensed_graph(mesh, found, 4).load.sum() == cut <= 2 * 24  # four squares cut 24 edges


def test_the_partition_follows_its_seed() -> None:
    made = [oblivious_partition(grid(12), 7, np.random.default_rng(seed)).tolist() for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]


def test_no_more_vertices_than_nodes_have_a_node_each() -> None:
    line = Application.from_edges([0, 1], [1, 2], [1.0, 1.0])
    assert oblivious_partition(line, 5, np.random.default_rng(0)).tolist() == [0, 1, 2]
    assert oblivious_partition(line, 1, np.random.default_rng(0)).tolist() == [0, 0, 0]


def test_a_vertex_as_heavy_as_a_share_of_the_load_has_a_subdomain_for_itself() -> None:
    weight = np.ones(144)
    weight[[17, 90]] = 500.0, 60.0
    mesh = grid(12)
    heavy = Application.from_edges(mesh.source, mesh.target, mesh.weight, vertex_weight=weight)
    found = oblivious_partition(heavy, 4, np.random.default_rng(0))
    assert np.bincount(found, minlength=4)[found[17]] == 1
    load = np.bincount(found, weights=weight, minlength=4)
    assert sorted(load)[-2] <= np.ceil(IMBALANCE * 202 / 3)


def test_edges_without_weight_leave_balance_alone_to_be_sought() -> None:
    weight = [5.0, 4.0, 3.0, 3.0, 2.0, 1.0]
    star = Application.from_edges([0] * 5, range(1, 6), [0.0] * 5, vertex_weight=weight)
    found = oblivious_partition(star, 2, np.random.default_rng(0))
    assert np.bincount(found, weights=star.vertex_weight).tolist() == [9.0, 9.0]


@given(applications(max_vertices=20), st.integers(1, 6), st.integers(0, 3))
def test_the_condensed_graph_has_the_edges_between_parts_and_joins_all_nodes(
    application: Application, nodes: int, seed: int
) -> None:
    part = np.random.default_rng(seed).integers(0, nodes, application.vertices).astype(np.int32)
    found = condensed_graph(application, part, nodes)
    weight: dict[tuple[int, int], float] = {}
    for one, other, size in zip(application.source, application.target, application.weight, strict=True):
        low, high = sorted((int(part[one]), int(part[other])))
        if low != high:
            weight[low, high] = weight.get((low, high), 0.0) + float(size)
    assert found.topology.connected()
    assert weight.keys() <= links_of(found.topology)
    for (one, other), size in zip(found.topology.pairs.tolist(), found.load.tolist(), strict=True):
        assert size == pytest.approx(weight.get((one, other), 0.0))
    apart = nx.empty_graph(nodes)
    apart.add_edges_from(weight)
    assert found.topology.links == len(weight) + nx.number_connected_components(apart) - 1


@given(topologies(max_nodes=9, connected=False))
def test_components_are_joined_by_as_few_links_as_can_be(topology: Topology) -> None:
    found = connect(topology)
    assert found.connected()
    assert links_of(topology) <= links_of(found)
    assert found.links - topology.links == nx.number_connected_components(graph_of(topology)) - 1


@given(topologies(min_nodes=3, max_nodes=9), st.data())
def test_any_connected_graph_is_cut_to_the_limits_with_its_flows_on_routes(
    topology: Topology, data: st.DataObject
) -> None:
    limits = data.draw(machines(min_nodes=topology.nodes, max_nodes=topology.nodes))
    rows = data.draw(st.lists(st.integers(0, topology.links - 1), max_size=12))
    flow = data.draw(st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=len(rows), max_size=len(rows)))
    ends = topology.pairs[rows].reshape(-1, 2)
    ends = ends[:, ::-1] if data.draw(st.booleans()) else ends
    loaded = LoadedTopology(topology, ends, flow)
    satisfy_max_degree(loaded, limits)
    assert loaded.topology.degree.max() <= limits.max_degree
    assert loaded.topology.connected()
    assert loaded.topology.links <= topology.links
    satisfy_max_edges(loaded, limits)
    loaded.topology.require(limits)
    assert loaded.load == pytest.approx(loads_of(loaded, flow))
    for one, (start, end) in enumerate(ends.tolist()):
        here = start
        for row in loaded.route(one).tolist():
            pair = loaded.topology.pairs[row].tolist()
            assert here in pair
            here = sum(pair) - here
        assert here == end


def test_the_lightest_strongly_heavy_links_go_first() -> None:
    """Of a complete graph on four nodes two opposite links go where nodes have two ports."""
    complete = Topology.of(4, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])
    flow = [5.0, 1.0, 5.0, 5.0, 1.5, 5.0]
    loaded = LoadedTopology(complete, complete.pairs, flow)
    satisfy_max_degree(loaded, machine(4, max_degree=2))
    assert links_of(loaded.topology) == {(0, 1), (0, 3), (1, 2), (2, 3)}
    assert loaded.load.sum() == 20.0 + 2 * 2.5  # each of the two takes two links now


def test_a_star_becomes_a_tree_of_its_ports() -> None:
    """All links are bridges and one side has no link: that node goes between the ends of a light link."""
    star = Topology.of(6, [(0, other) for other in range(1, 6)])
    loaded = LoadedTopology(star, star.pairs, [1.0, 2.0, 3.0, 4.0, 5.0])
    satisfy_max_degree(loaded, machine(6, max_degree=2))
    loaded.topology.require(machine(6, max_degree=2))
    assert loaded.topology.links == 5


def test_the_edge_swap_of_figure_2_joins_two_parts() -> None:
    """Four bridges from a node of three ports to triangles: one goes, and two links exchange ends."""
    triangles = [[(a, a + 1), (a, a + 2), (a + 1, a + 2), (0, a)] for a in (1, 4, 7, 10)]
    topology = Topology.of(13, [link for links in triangles for link in links])
    loaded = LoadedTopology(topology, (), ())
    satisfy_max_degree(loaded, machine(13, max_degree=3))
    assert loaded.topology.connected()
    assert links_of(topology) - links_of(loaded.topology) == {(0, 4), (1, 2)}
    assert links_of(loaded.topology) - links_of(topology) == {(2, 4)}
    assert sorted(loaded.topology.degree.tolist()) == [2] * 9 + [3] * 4


@given(applications(max_vertices=30, max_more=40), machines(max_nodes=6), st.integers(0, 2))
def test_the_initial_topology_is_within_the_limits_and_follows_its_seed(
    application: Application, limits: Machine, seed: int
) -> None:
    found, again = (
        seed_topology("condensed", application, limits, np.random.default_rng(seed)) for _ in range(2)
    )
    found.require(limits)
    assert links_of(found) == links_of(again)
