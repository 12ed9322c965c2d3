"""First topologies by name, the paper's measures, the condensed graph, and its cut to the limits (3.1)."""

from __future__ import annotations

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.reconfiguration.model.problem import Application, Machine
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper import repair_constraints as repair
from mapping.reconfiguration.paper import seed_topology as seeds
from mapping.reconfiguration.paper.repair_constraints import LoadedTopology, satisfy_max_degree
from mapping.reconfiguration.paper.seed_topology import chordal_ring, seed_topology, torus
from registry.errors import InvalidValue, UnknownName
from tests.support.reconfigure_problems import applications, graph_of, links_of, machine, machines, topologies


@pytest.mark.parametrize(
    ("chord", "width", "bound", "mean"),
    [(2, 6, 3, 2.4), (3, 8, 6, 2.133), (4, 8, 8, 2.0), (5, 8, 6, 2.133), (6, 10, 8, 1.933), (7, 8, 5, 2.267)],
)
def test_graphs_of_16_nodes_measure_as_published(chord: int, width: int, bound: int, mean: float) -> None:
    """C(16; 2 .. 7) in Ajwani et al. 2013, section 5: bisection widths by trying all, bounds, paths."""
    ks = np.arange(1, 16)  # a = min over k of 4 - 2 cos(2 pi k / n) - 2 cos(2 pi k q / n); bound: n a / 4
    eigenvalues = 4 - 2 * np.cos(2 * np.pi * ks / 16) - 2 * np.cos(2 * np.pi * ks * chord / 16)
    published = {chordal_ring(16, chord): (width, mean), torus(4, 4): (8, 2.133)}
    for topology, measures in published.items():
        assert (topology.links, set(topology.degree.tolist())) == (32, {4})
        graph = graph_of(topology)
        assert (bisection_width(graph), round(nx.average_shortest_path_length(graph), 3)) == measures
    laplacian = nx.laplacian_matrix(graph_of(chordal_ring(16, chord))).toarray().astype(float)
    assert np.linalg.eigvalsh(laplacian)[1] == pytest.approx(eigenvalues.min())
    assert math.ceil(16 * eigenvalues.min() / 4 - 1e-9) == bound


def bisection_width(graph: nx.Graph[int]) -> int:
    """Fewest links between two halves of the nodes, by trying all with the last node on the other side."""
    half = np.array(list(itertools.combinations(range(len(graph) - 1), len(graph) // 2)))
    inside = np.zeros((len(half), len(graph)), bool)
    np.put_along_axis(inside, half, True, axis=1)
    return int(sum(inside[:, one] != inside[:, other] for one, other in graph.edges).min())


def test_chords_of_several_lengths_are_added_to_the_ring() -> None:
    """C(8; 2, 4): two links of the ring, two chords of 2, and one of 4, half the ring, at each node."""
    found = chordal_ring(8, 2, 4)
    assert (found.links, set(found.degree.tolist())) == (8 + 8 + 4, {5})
    assert links_of(found) == links_of(chordal_ring(8, 2)) | links_of(chordal_ring(8, 4))
    with pytest.raises(InvalidValue, match="twice"):
        chordal_ring(8, 3, 3)
    with pytest.raises(InvalidValue, match="is 5"):
        chordal_ring(8, 2, 5)


def test_rings_of_chords_3_and_5_are_the_same_graph() -> None:
    """Nodes times 5 modulo 16: their rows in the paper's Table 3 differ by noise alone."""
    relabel_nodes = Topology.of(16, chordal_ring(16, 3).pairs * 5 % 16)
    assert links_of(relabel_nodes) == links_of(chordal_ring(16, 5))


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 9])
def test_rings_of_any_size_join_all_nodes(nodes: int) -> None:
    found = seeds.ring(nodes)
    assert found.connected()
    assert found.links == {1: 0, 2: 1}.get(nodes, nodes)


@pytest.mark.parametrize(
    ("rows", "columns", "links"), [(1, 1, 0), (1, 5, 5), (2, 2, 4), (2, 3, 9), (3, 3, 18), (4, 4, 32)]
)
def test_a_torus_has_the_links_of_networkx_grid(rows: int, columns: int, links: int) -> None:
    found = torus(rows, columns)
    assert found.links == links
    grid: nx.Graph[tuple[int, int]] = nx.Graph(nx.grid_2d_graph(rows, columns, periodic=True))
    grid.remove_edges_from(nx.selfloop_edges(grid))
    expected = {tuple(sorted((a * columns + b, c * columns + d))) for (a, b), (c, d) in grid.edges}
    assert links_of(found) == expected
    squares = [seeds.squarest(nodes) for nodes in (1, 7, 12, 16, 32)]
    assert squares == [(1, 1), (1, 7), (3, 4), (4, 4), (4, 8)]  # a ring for a prime number of nodes


def test_links_above_max_edges_are_removed_at_random() -> None:
    limits = machine(16, max_edges=22)
    found = [
        seeds.repair_topology(chordal_ring(16, 4), limits, np.random.default_rng(seed)) for seed in range(8)
    ]
    assert {topology.links for topology in found} == {22}
    assert all(links_of(topology) < links_of(chordal_ring(16, 4)) for topology in found)
    assert len({frozenset(links_of(topology)) for topology in found}) > 1


PAIR = Application.from_edges([0], [1], [1.0])


@pytest.mark.parametrize(
    ("name", "links"),
    [("torus", 32), ("ring", 16), ("chordal-ring-6", 32), ("chordal-ring-8", 24), ("chordal-ring-3-8", 32)],
)
def test_seeds_are_found_by_name(name: str, links: int) -> None:
    assert seed_topology(name, PAIR, machine(16), np.random.default_rng(0)).links == links


def test_seeds_that_there_are_not_or_that_do_not_fit_are_refused() -> None:
    generator = np.random.default_rng(0)
    unknown = ("toros", "chordal-ring", "chordal-ring-", "chordal-ring-x", "chordal-ring-3-", "")
    for name in (*unknown, "a-chordal-ring-3"):
        with pytest.raises(UnknownName, match="there is no seed topology"):
            seed_topology(name, PAIR, machine(16), generator)
    for chord in (1, 9, 999_999_999_999):
        with pytest.raises(InvalidValue, match=r"not within 2 \.\. 8 for 16 nodes"):
            seed_topology(f"chordal-ring-{chord}", PAIR, machine(16), generator)
    with pytest.raises(InvalidValue, match="has 9 nodes, the machine has 16"):
        seed_topology(torus(3, 3), PAIR, machine(16), generator)
    with pytest.raises(InvalidValue, match="0 x 3"):
        torus(0, 3)


SEEDS = st.integers(0, 3)


def grid(side: int) -> Application:
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(side, side))
    one, other = zip(*graph.edges, strict=True)
    return Application.from_edges(one, other, np.ones(len(one)))


def test_the_partition_is_balanced_cuts_little_and_follows_its_seed() -> None:
    mesh = grid(12)
    found = seeds.oblivious_partition(mesh, 4, np.random.default_rng(0))
    assert np.bincount(found, minlength=4).max() <= np.ceil(seeds.IMBALANCE * 36)
    cut = np.count_nonzero(found[mesh.source] != found[mesh.target])
    assert seeds.condensed_graph(mesh, found, 4).load.sum() == cut <= 2 * 24  # four squares cut 24 edges
    made = [seeds.oblivious_partition(mesh, 7, np.random.default_rng(seed)).tolist() for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]


def test_few_heavy_and_unconnected_vertices_are_balanced() -> None:
    generator = np.random.default_rng(0)
    line = Application.from_edges([0, 1], [1, 2], [1.0, 1.0])
    assert seeds.oblivious_partition(line, 5, generator).tolist() == [0, 1, 2]  # a node each
    assert seeds.oblivious_partition(line, 1, generator).tolist() == [0, 0, 0]
    mesh, weight = grid(12), np.ones(144)
    weight[[17, 90]] = 500.0, 60.0  # the first more than a share of all
    heavy = Application.from_edges(mesh.source, mesh.target, mesh.weight, vertex_weight=weight)
    found = seeds.oblivious_partition(heavy, 4, np.random.default_rng(0))
    assert np.bincount(found, minlength=4)[found[17]] == 1
    load = np.bincount(found, weights=weight, minlength=4)
    assert sorted(load)[-2] <= np.ceil(seeds.IMBALANCE * 202 / 3)
    star = Application.from_edges([0] * 5, range(1, 6), [0.0] * 5, vertex_weight=[5, 4, 3, 3, 2, 1])
    found = seeds.oblivious_partition(star, 2, np.random.default_rng(0))
    assert np.bincount(found, weights=star.vertex_weight).tolist() == [9.0, 9.0]
    idle = Application.from_edges([0, 1, 2], [1, 2, 3], [1.0] * 3, vertex_weight=[0.0] * 4)
    assert seeds.oblivious_partition(idle, 2, np.random.default_rng(0)).tolist() == [1, 1, 0, 0]


@given(applications(max_vertices=20), st.integers(1, 6), SEEDS)
def test_the_condensed_graph_has_edges_of_parts(application: Application, nodes: int, seed: int) -> None:
    part = np.random.default_rng(seed).integers(0, nodes, application.vertices).astype(np.int32)
    found = seeds.condensed_graph(application, part, nodes)
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


@given(applications(max_vertices=30, max_more=40), machines(max_nodes=6), SEEDS)
def test_the_initial_topology_keeps_the_limits(application: Application, limits: Machine, seed: int) -> None:
    case = "condensed", application, limits
    found, again = (seed_topology(*case, np.random.default_rng(seed)) for _ in "ab")
    found.require(limits)
    assert links_of(found) == links_of(again)


@given(topologies(max_nodes=9, connected=False), st.data())
def test_components_are_joined_by_as_few_links_as_can_be_and_the_whole_is_cut_to_the_limits(
    topology: Topology, data: st.DataObject
) -> None:
    joined = repair.connect(topology)
    assert joined.connected()
    assert links_of(topology) <= links_of(joined)
    assert joined.links - topology.links == nx.number_connected_components(graph_of(topology)) - 1
    limits, seed = data.draw(machines(min_nodes=topology.nodes, max_nodes=topology.nodes)), data.draw(SEEDS)
    found, again = (seeds.repair_topology(topology, limits, np.random.default_rng(seed)) for _ in range(2))
    found.require(limits)
    assert links_of(found) == links_of(again)


@given(topologies(min_nodes=3, max_nodes=9), st.data())
def test_any_graph_is_cut_to_the_limits_with_its_flows(topology: Topology, data: st.DataObject) -> None:
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
    repair.satisfy_max_edges(loaded, limits)
    loaded.topology.require(limits)
    load = np.zeros(loaded.topology.links)
    for one, (here, end) in enumerate(ends.tolist()):
        load[loaded.route(one)] += flow[one]
        for row in loaded.route(one).tolist():
            pair = loaded.topology.pairs[row].tolist()
            assert here in pair
            here = sum(pair) - here
        assert here == end
    assert loaded.load == pytest.approx(load)


def test_the_lightest_strongly_heavy_links_go_first() -> None:
    """Of a complete graph on four nodes two opposite links go where nodes have two ports."""
    complete = Topology.of(4, [*itertools.combinations(range(4), 2)])
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
