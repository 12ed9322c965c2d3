"""HyperX, Slim Fly, pods of accelerators and chordal rings: counts, distances and rules of their papers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, shortest_path

from ingest.generate.catalog import FABRICS, make
from ingest.generate.hyperx import hyperx
from ingest.generate.pods import GIGABIT, RailPods, rail_pods
from ingest.generate.slim_fly import field, prime_power, slim_fly, switch_graph
from ingest.generate.tori import chordal_ring, hypercube
from registry.errors import InvalidValue
from registry.model import Fabric, Floats, Longs


def distances(fabric: Fabric, among: Longs, *, within: Longs | None = None) -> Floats:
    """Links between the vertices `among`, on paths over the vertices `within` alone."""
    matrix = csr_array(
        (np.ones(len(fabric.neighbour)), fabric.neighbour, fabric.indptr), shape=(len(fabric),) * 2
    )
    if within is not None:
        matrix = matrix[within][:, within]
        among = np.searchsorted(within, among)
    return np.asarray(shortest_path(matrix, unweighted=True, indices=among))[:, among]


def mean_distance(found: Floats) -> float:
    return float(found.sum() / (len(found) * (len(found) - 1)))


def switch_distances(fabric: Fabric) -> Floats:
    return distances(fabric, fabric.switches, within=fabric.switches)


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.integers(1, 3),
    st.lists(st.integers(1, 3), min_size=3),
)
@settings(max_examples=40)
def test_a_hyperx_has_the_published_counts_and_distances(
    sides: list[int], hosts: int, widths: list[int]
) -> None:
    """Ahn et al. 2009, section 3."""
    bundle = widths[: len(sides)]
    fabric = hyperx(sides, hosts, widths=bundle)
    switches = math.prod(sides)
    assert (len(fabric.switches), len(fabric.hosts)) == (switches, switches * hosts)
    between = sum(switches * k * (s - 1) for s, k in zip(sides, bundle, strict=True)) // 2
    assert fabric.cable_count == switches * hosts + between
    found = switch_distances(fabric)
    assert found.max() == sum(side > 1 for side in sides)
    if switches > 1:
        mean = sum(1 - 1 / side for side in sides) * switches / (switches - 1)
        assert mean_distance(found) == pytest.approx(mean)


def test_a_hyperx_of_sides_2_is_a_hypercube_and_one_of_a_single_side_a_complete_graph() -> None:
    cube = nx.Graph(zip(*pairs(hyperx((2, 2, 2, 2), 1)), strict=True))
    assert nx.utils.graphs_equal(cube, nx.Graph(zip(*direct(hypercube(4)), strict=True)))
    line = nx.Graph(zip(*pairs(hyperx((7,), 1)), strict=True))
    assert nx.is_isomorphic(line, nx.complete_graph(7))


def test_capacities_and_widths_of_a_hyperx_follow_its_dimensions() -> None:
    fabric = hyperx((3, 2), 2, widths=(1, 4), capacity=(5.0, 7.0), host_capacity=2.0)
    rates = Counter(fabric.links.capacity.tolist())
    assert rates == {2.0: 2 * 12, 5.0: 2 * 2 * 3, 7.0: 2 * 3 * 4}


def pairs(fabric: Fabric) -> tuple[list[int], list[int]]:
    """Ends of links between switches, counted from the first switch."""
    rows = fabric.network_link
    first = int(fabric.switches[0])
    return (fabric.links.source[rows] - first).tolist(), (fabric.links.target[rows] - first).tolist()


def direct(fabric: Fabric) -> tuple[list[int], list[int]]:
    return fabric.links.source.tolist(), fabric.links.target.tolist()


@pytest.mark.parametrize("q", [2, 3, 4, 5, 7, 8, 9, 16, 25, 27])
def test_tables_of_a_finite_field_keep_its_laws(q: int) -> None:
    numbers = field(q)
    some = np.arange(q)
    for table in (numbers.add, numbers.multiply):
        assert np.array_equal(table, table.T)
        left = table[table[:, :, None], some]
        right = table[some[:, None, None], table[None, :, :]]
        assert np.array_equal(left, right)
    assert np.array_equal(numbers.add[0], some)
    assert np.array_equal(numbers.multiply[1], some)
    assert all(sorted(row) == list(range(q)) for row in numbers.add.tolist())
    assert all(sorted(row) == list(range(q)) for row in numbers.multiply[1:].tolist())
    spread = numbers.multiply[some[:, None, None], numbers.add[None, :, :]]
    products = numbers.multiply
    assert np.array_equal(spread, numbers.add[products[:, :, None], products[:, None, :]])


@pytest.mark.parametrize("q", [6, 12, 15, 100])
def test_there_is_no_field_of_a_number_that_is_no_prime_power(q: int) -> None:
    with pytest.raises(InvalidValue, match="no power of a prime"):
        prime_power(q)


@pytest.mark.parametrize(
    ("q", "delta"), [(3, -1), (4, 0), (5, 1), (7, -1), (8, 0), (9, 1), (11, -1), (13, 1)]
)
def test_a_slim_fly_has_the_published_degree_and_diameter_2(q: int, delta: int) -> None:
    """Besta and Hoefler 2014, II-B: 2 q^2 switches of degree (3 q - d) / 2, diameter 2."""
    graph: nx.Graph[int] = nx.Graph(switch_graph(q).tolist())
    degree, switches = (3 * q - delta) // 2, 2 * q * q
    assert len(graph) == switches
    assert {count for _, count in graph.degree} == {degree}
    assert graph.number_of_edges() == len(switch_graph(q)) == switches * degree // 2
    assert nx.diameter(graph) == 2
    mean = (degree + 2 * (switches - 1 - degree)) / (switches - 1)
    assert nx.average_shortest_path_length(graph) == pytest.approx(mean)


def test_the_slim_fly_of_5_is_the_graph_of_hoffman_and_singleton() -> None:
    assert nx.is_isomorphic(nx.Graph(switch_graph(5).tolist()), nx.hoffman_singleton_graph())


def test_a_slim_fly_balances_hosts_and_cables_by_default() -> None:
    """Besta and Hoefler 2014, II-B2: p = ceil(k' / 2); for q = 19: k' = 29, p = 15, 10,830 hosts."""
    fabric = slim_fly(19, capacities=(1.0, 2.0))
    assert (len(fabric.switches), len(fabric.hosts)) == (722, 10830)
    assert fabric.cable_count == 10830 + 722 * 29 // 2
    ends = np.isin(fabric.links.source, fabric.hosts) | np.isin(fabric.links.target, fabric.hosts)
    assert np.array_equal(fabric.links.capacity, np.where(ends, 1.0, 2.0))
    assert distances(fabric, fabric.hosts[[0, 1, 15, -1]]).max() <= 4
    assert len(slim_fly(4, 1).hosts) == 32


def test_accelerators_of_a_rail_pod_meet_on_nvlink_and_on_their_rail() -> None:
    """2 links within a domain and within a rail of a pod, 4 elsewhere."""
    pods, domains, gpus, rails = 2, 3, 8, 4
    fabric = rail_pods(RailPods(pods, domains, gpus, rails=rails, spines=5, cables=2))
    gpu = np.arange(pods * domains * gpus)
    domain, pod, rail = gpu // gpus, gpu // gpus // domains, gpu % gpus % rails
    near = (domain[:, None] == domain) | ((pod[:, None] == pod) & (rail[:, None] == rail))
    expected = np.where(near, 2, 4)
    np.fill_diagonal(expected, 0)
    assert np.array_equal(distances(fabric, fabric.hosts), expected)
    assert (len(fabric.hosts), len(fabric.switches)) == (48, 6 + 8 + 5)
    assert fabric.cable_count == 2 * 48 + pods * rails * 5 * 2
    assert bool((~fabric.forwards[fabric.hosts]).all())


def test_a_rail_pod_is_the_published_scalable_unit_by_default() -> None:
    """DGX SuperPOD: 32 servers of 8 accelerators and rails a unit; NVLink 4 has 450 GB/s each way."""
    fabric = rail_pods(RailPods())
    assert len(fabric.hosts) == 2 * 32 * 8
    leaves = [vertex for vertex in fabric.switches if fabric.names[vertex][:3] in ("p0r", "p1r")]
    assert len(leaves) == 16
    below = fabric.links.target[np.isin(fabric.links.source, leaves)]
    assert np.isin(below, fabric.hosts).sum() == 16 * 32
    assert sorted(set(fabric.links.capacity.tolist())) == [50e9, 450e9] == [400 * GIGABIT, 3600 * GIGABIT]


def test_rails_without_spines_are_joined_by_accelerators_that_relay() -> None:
    fabric = rail_pods(RailPods(1, 4, 2, spines=0, relays=True))
    found = distances(fabric, fabric.hosts)
    assert found.max() == 4
    with pytest.raises(InvalidValue, match=r"rail_pods\.spines"):
        rail_pods(RailPods(1, 4, 2, spines=0))


@given(st.integers(3, 30), st.sets(st.integers(2, 15), max_size=3))
def test_a_chordal_ring_is_the_circulant_graph(nodes: int, lengths: set[int]) -> None:
    chords = sorted(length for length in lengths if 2 * length <= nodes)
    fabric = chordal_ring(nodes, chords)
    graph = nx.Graph(zip(*direct(fabric), strict=True))
    assert nx.utils.graphs_equal(graph, nx.circulant_graph(nodes, [1, *chords]))
    assert fabric.cable_count == graph.number_of_edges()
    assert bool((fabric.cables == 1).all())


@pytest.mark.parametrize(
    ("chord", "mean"), [(2, 2.4), (3, 2.133), (4, 2.0), (5, 2.133), (6, 1.933), (7, 2.267)]
)
def test_distances_on_chordal_rings_are_those_of_the_paper(chord: int, mean: float) -> None:
    """Ajwani et al. 2013, Figure 10: mean shortest paths of C(16; 2) to C(16; 7)."""
    fabric = chordal_ring(16, chord)
    assert mean_distance(distances(fabric, fabric.hosts)) == pytest.approx(mean, abs=5e-4)
    assert fabric.cable_count == 32


def test_a_chord_has_the_capacity_that_is_given_for_it() -> None:
    fabric = chordal_ring(8, (2, 4), capacity=(1.0, 2.0, 3.0))
    assert Counter(fabric.links.capacity.tolist()) == {1.0: 16, 2.0: 16, 3.0: 8}


MADE: dict[str, dict[str, object]] = {
    "hyperx": {"sides": "3,4", "hosts": "2", "widths": "1,2"},
    "slim-fly": {"q": "4", "hosts": "1"},
    "rail-pods": {"pods": "2", "domains": "2", "gpus": "4", "rails": "2", "spines": "2"},
    "chordal-ring": {"nodes": "16", "chords": "4"},
}


@pytest.mark.parametrize("name", MADE)
def test_they_are_made_by_name_are_connected_and_the_same_twice(name: str) -> None:
    (generator,) = (one for one in FABRICS if one.name == name)
    one, other = make(generator, MADE[name]), make(generator, MADE[name])
    matrix = csr_array((np.ones(len(one.neighbour)), one.neighbour, one.indptr), shape=(len(one),) * 2)
    assert connected_components(matrix, directed=False)[0] == 1
    assert one.names == other.names
    for column in ("source", "target", "capacity"):
        assert np.array_equal(getattr(one.links, column), getattr(other.links, column))
    assert bool((one.slots[one.hosts] == 1).all())


WRONG: dict[str, list[Callable[[], object]]] = {
    "hyperx.sides": [lambda: hyperx((), 1), lambda: hyperx((0, 2), 1)],
    "hyperx.hosts": [lambda: hyperx((2, 2), 0)],
    "hyperx.widths": [lambda: hyperx((2, 2), 1, widths=(1,)), lambda: hyperx((2, 2), 1, widths=0)],
    "hyperx.capacity": [lambda: hyperx((2, 2), 1, capacity=(1.0,)), lambda: hyperx((2,), 1, capacity=-1.0)],
    "hyperx.host_capacity": [lambda: hyperx((2, 2), 1, host_capacity=float("inf"))],
    "hyperx.slots": [lambda: hyperx((2, 2), 1, slots=0)],
    "slim_fly.q": [lambda: slim_fly(6), lambda: slim_fly(2), lambda: slim_fly(15), lambda: slim_fly(257)],
    "slim_fly.hosts": [lambda: slim_fly(5, 0)],
    "slim_fly.capacities": [lambda: slim_fly(5, capacities=(1.0, 0.0))],
    "rail_pods.pods": [lambda: rail_pods(RailPods(0))],
    "rail_pods.domains": [lambda: rail_pods(RailPods(1, 0))],
    "rail_pods.gpus": [lambda: rail_pods(RailPods(1, 1, 0))],
    "rail_pods.rails": [lambda: RailPods(1, 1, 8, rails=3), lambda: RailPods(1, 1, 8, rails=16)],
    "rail_pods.spines": [lambda: RailPods(2, 1, 2, spines=0, relays=True), lambda: RailPods(spines=-1)],
    "rail_pods.cables": [lambda: rail_pods(RailPods(cables=0))],
    "rail_pods.capacities": [lambda: rail_pods(RailPods(capacities=(1.0, 1.0, float("nan"))))],
    "chordal_ring.nodes": [lambda: chordal_ring(2, ())],
    "chordal_ring.chords": [
        lambda: chordal_ring(9, 5), lambda: chordal_ring(9, 1), lambda: chordal_ring(9, (2, 2)),
    ],
    "chordal_ring.capacity": [lambda: chordal_ring(9, 2, capacity=(1.0, 1.0, 1.0))],
}  # fmt: skip


@pytest.mark.parametrize(("name", "call"), [(name, call) for name, calls in WRONG.items() for call in calls])
def test_a_parameter_out_of_range_is_named(name: str, call: Callable[[], object]) -> None:
    with pytest.raises(InvalidValue) as caught:
        call()
    assert caught.value.field == name
