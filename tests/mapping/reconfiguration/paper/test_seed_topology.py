"""Measures of topologies, against the 2013 paper's values, networkx and brute force; seeds by name."""

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
from mapping.reconfiguration.paper.seed_topology import (
    chordal_ring,
    repair_topology,
    ring,
    seed_topology,
    squarest,
    torus,
)
from registry.errors import InvalidValue, UnknownName
from tests.support.reconfigure_problems import graph_of, links_of, machine, machines, topologies
from tests.support.topology_measures import (
    EXACT,
    algebraic_connectivity,
    bisection,
    bisection_bound,
    bisection_width,
    distances,
    mean_shortest_path,
)

CHORDS = (2, 3, 4, 5, 6, 7)
WIDTHS = (6, 8, 8, 8, 10, 8)
"""Of C(16; 2 .. 7): Ajwani et al. 2013, section 5, by exhaustive search; bounds and mean paths likewise."""
BOUNDS = (3, 6, 8, 6, 8, 5)
MEAN_PATHS = (2.4, 2.133, 2.0, 2.133, 1.933, 2.267)


@pytest.mark.parametrize(
    ("chord", "width", "bound", "mean"), list(zip(CHORDS, WIDTHS, BOUNDS, MEAN_PATHS, strict=True))
)
def test_chordal_rings_of_16_nodes_measure_as_published(
    chord: int, width: int, bound: int, mean: float
) -> None:
    found = chordal_ring(16, chord)
    assert (found.links, set(found.degree.tolist())) == (32, {4})
    assert bisection_width(found) == width
    assert bisection_bound(found) == bound
    assert round(mean_shortest_path(found), 3) == mean
    ks = np.arange(1, 16)  # section 5: a = min over k of 4 - 2 cos(2 pi k / n) - 2 cos(2 pi k q / n)
    eigenvalues = 4 - 2 * np.cos(2 * np.pi * ks / 16) - 2 * np.cos(2 * np.pi * ks * chord / 16)
    assert algebraic_connectivity(found) == pytest.approx(eigenvalues.min())


def test_chords_of_several_lengths_are_added_to_the_ring() -> None:
    """C(8; 2, 4): two links of the ring, two chords of 2, and one of 4, half the ring, at each node."""
    found = chordal_ring(8, 2, 4)
    assert (found.links, set(found.degree.tolist())) == (8 + 8 + 4, {5})
    assert links_of(found) == links_of(chordal_ring(8, 2)) | links_of(chordal_ring(8, 4))
    with pytest.raises(InvalidValue, match="twice"):
        chordal_ring(8, 3, 3)
    with pytest.raises(InvalidValue, match="is 5"):
        chordal_ring(8, 2, 5)


def test_the_torus_of_16_nodes_measures_as_published() -> None:
    found = torus(4, 4)
    assert (found.links, set(found.degree.tolist())) == (32, {4})
    assert bisection_width(found) == 8
    assert round(mean_shortest_path(found), 3) == 2.133


def test_rings_of_chords_3_and_5_are_the_same_graph() -> None:
    """Nodes times 5 modulo 16: their rows in the paper's Table 3 differ by noise alone."""
    relabel_nodes = Topology.of(16, chordal_ring(16, 3).pairs * 5 % 16)
    assert links_of(relabel_nodes) == links_of(chordal_ring(16, 5))


@given(topologies(max_nodes=7, connected=False))
def test_the_width_is_that_of_the_best_of_all_halves(topology: Topology) -> None:
    graph, half = graph_of(topology), topology.nodes // 2
    cuts = [nx.cut_size(graph, part) for part in itertools.combinations(range(topology.nodes), half)]
    assert bisection_width(topology) == min(cuts)
    assert bisection_bound(topology) <= bisection_width(topology)
    assert bisection(topology) == (min(cuts), True)


@given(topologies(max_nodes=9))
def test_distances_are_those_of_networkx(topology: Topology) -> None:
    expected = dict(nx.all_pairs_shortest_path_length(graph_of(topology)))
    found = distances(topology)
    for one, lengths in expected.items():
        assert found[one].tolist() == [lengths[other] for other in range(topology.nodes)]
    if topology.nodes > 1:
        mean = nx.average_shortest_path_length(graph_of(topology))
        assert mean_shortest_path(topology) == pytest.approx(mean)


def test_what_links_do_not_join_is_infinitely_far_and_not_held_together() -> None:
    apart = Topology.of(4, [(0, 1), (2, 3)])
    assert mean_shortest_path(apart) == math.inf
    assert algebraic_connectivity(apart) == 0.0
    assert bisection_bound(apart) == bisection_width(apart) == 0


def test_beyond_20_nodes_the_width_is_bounded() -> None:
    large = chordal_ring(EXACT + 4, 5)
    found = bisection(large)
    assert found == (bisection_bound(large), False)
    assert found.width > 0
    with pytest.raises(InvalidValue, match="is 24, all halves are tried up to 20"):
        bisection_width(large)


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 9])
def test_rings_of_any_size_join_all_nodes(nodes: int) -> None:
    found = ring(nodes)
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


def test_the_squarest_torus_is_a_ring_for_a_prime_number_of_nodes() -> None:
    assert [squarest(nodes) for nodes in (1, 7, 12, 16, 32)] == [(1, 1), (1, 7), (3, 4), (4, 4), (4, 8)]


@given(topologies(max_nodes=9, connected=False), st.data())
def test_a_given_topology_is_cut_to_the_limits_and_stays_or_becomes_connected(
    topology: Topology, data: st.DataObject
) -> None:
    limits = data.draw(machines(min_nodes=topology.nodes, max_nodes=topology.nodes))
    seed = data.draw(st.integers(0, 3))
    found = repair_topology(topology, limits, np.random.default_rng(seed))
    found.require(limits)
    again = repair_topology(topology, limits, np.random.default_rng(seed))
    assert links_of(found) == links_of(again)


def test_links_above_max_edges_are_removed_at_random() -> None:
    limits = machine(16, max_edges=22)
    found = [repair_topology(chordal_ring(16, 4), limits, np.random.default_rng(seed)) for seed in range(8)]
    assert {topology.links for topology in found} == {22}
    assert all(links_of(topology) < links_of(chordal_ring(16, 4)) for topology in found)
    assert len({frozenset(links_of(topology)) for topology in found}) > 1


def pair() -> Application:
    return Application.from_edges([0], [1], [1.0])


@pytest.mark.parametrize(
    ("name", "links"),
    [("torus", 32), ("ring", 16), ("chordal-ring-6", 32), ("chordal-ring-8", 24), ("chordal-ring-3-8", 32)],
)
def test_seeds_are_found_by_name(name: str, links: int) -> None:
    found = seed_topology(name, pair(), machine(16), np.random.default_rng(0))
    assert found.links == links


@pytest.mark.parametrize(
    "name",
    ["toros", "chordal-ring", "chordal-ring-", "chordal-ring-x", "chordal-ring-3-", "a-chordal-ring-3", ""],
)
def test_an_unknown_seed_topology_is_refused(name: str) -> None:
    with pytest.raises(UnknownName, match="there is no seed topology"):
        seed_topology(name, pair(), machine(16), np.random.default_rng(0))


def test_seeds_that_do_not_fit_are_refused() -> None:
    generator = np.random.default_rng(0)
    for chord in (1, 9, 999_999_999_999):
        with pytest.raises(InvalidValue, match=r"not within 2 \.\. 8 for 16 nodes"):
            seed_topology(f"chordal-ring-{chord}", pair(), machine(16), generator)
    with pytest.raises(InvalidValue, match="has 9 nodes, the machine has 16"):
        seed_topology(torus(3, 3), pair(), machine(16), generator)
    with pytest.raises(InvalidValue, match="0 x 3"):
        torus(0, 3)


def test_the_condensed_graph_is_the_default_of_a_machine() -> None:
    limits = Machine(nodes=2, max_degree=1, max_edges=1, compute_speed=1.0, link_speed=1.0)
    found = seed_topology("condensed", pair(), limits, np.random.default_rng(0))
    assert links_of(found) == {(0, 1)}
