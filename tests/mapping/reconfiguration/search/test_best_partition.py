"""Where our own search begins anew: nodes exchanged by the mapping engine, topologies of the partition."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapping.distances.cost_model import CostModel
from mapping.evaluation.metrics import evaluate as judged
from mapping.placement.search.placing import place
from mapping.reconfiguration.model.problem import Application, Machine
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper import partition
from mapping.reconfiguration.paper.partition import LOADING
from mapping.reconfiguration.paper.seed_topology import condensed_topology, ring, torus
from mapping.reconfiguration.search import best_partition
from mapping.reconfiguration.search.best_partition import (
    exchange_nodes,
    gather,
    load_search_kernels,
    network,
    shake,
    traffic,
)
from mapping.reconfiguration.search.local_search import TrialOptions, search_from_seeds
from registry.model import Allocation, Ints, Placement
from tests.support.reconfigure_problems import applications, links_of, machines, topologies


def worst(application: Application, topology: Topology, node: Ints) -> float:
    """Worst load of a link where all shortest paths share, by the engine's own evaluation."""
    fabric = network(topology)
    hosts = np.arange(topology.nodes, dtype=np.int32)
    placement = Placement(
        host_of_rank=hosts,
        allocation=Allocation(hosts=hosts, slots=np.ones(topology.nodes, np.int32)),
        strategy="given",
    )
    flows = traffic(application, node, topology.nodes)
    return judged(fabric, flows, placement, costs=CostModel(routing="shortest-paths")).congestion_seconds


def test_neighbours_on_a_ring_are_found_again() -> None:
    """Eight nodes that talk in a circle, mixed up on a ring."""
    mixed = np.array([0, 5, 2, 7, 4, 1, 6, 3], np.int32)
    vertex = np.arange(8)
    circle = Application.from_edges(vertex, (vertex + 1) % 8, np.ones(8))
    assert worst(circle, ring(8), mixed) > 0.5
    found = exchange_nodes(circle, ring(8), mixed)
    assert sorted(found.tolist()) == list(range(8))
    assert worst(circle, ring(8), found) == 0.5  # half of a flow each way


def test_it_is_the_best_of_all_orders_on_a_small_topology() -> None:
    rows = np.random.default_rng(3).integers(0, 5, (2, 12))
    application = Application.from_edges(rows[0], rows[1], np.arange(1.0, 13.0), vertices=5, connected=False)
    topology = Topology.of(5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 2)])
    orders = itertools.permutations(range(5))
    best = min(worst(application, topology, np.array(order, np.int32)) for order in orders)
    found = exchange_nodes(application, topology, np.arange(5, dtype=np.int32))
    assert worst(application, topology, found) == pytest.approx(best)


@given(applications(min_vertices=3), topologies(min_nodes=2, max_nodes=7), st.data())
@settings(max_examples=25)
def test_what_is_on_a_node_stays_together_and_congestion_does_not_grow(
    application: Application, topology: Topology, data: st.DataObject
) -> None:
    ends = st.integers(0, topology.nodes - 1)
    size = application.vertices
    node = np.array(data.draw(st.lists(ends, min_size=size, max_size=size)), np.int32)
    found = exchange_nodes(application, topology, node, steps=200, seed=1)
    pairs = set(zip(node.tolist(), found.tolist(), strict=True))
    assert len(pairs) == len({one for one, _ in pairs}) == len({other for _, other in pairs})
    assert worst(application, topology, found) <= worst(application, topology, node) * (1 + 1e-6)
    assert found.tobytes() == exchange_nodes(application, topology, node, steps=200, seed=1).tobytes()


def test_where_nothing_flows_nothing_moves() -> None:
    still = Application.from_edges([0, 1], [1, 2], [0.0, 0.0])
    node = np.array([0, 2, 1], np.int32)
    assert exchange_nodes(still, ring(4), node) is node
    together = Application.from_edges([0, 1], [1, 2], [1.0, 1.0])
    assert exchange_nodes(together, ring(4), np.zeros(3, np.int32)).tolist() == [0, 0, 0]


def test_an_interrupt_of_the_engine_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine keeps the best so far and returns: the search that called it must end too."""

    def interrupt(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        raise KeyboardInterrupt

    def interrupted(*given: Any, **options: Any) -> Placement:
        return place(*given, **options, progress=interrupt)

    monkeypatch.setattr(best_partition, "place", interrupted)
    path = Application.from_edges([0, 1, 2], [1, 2, 3], [1.0, 1.0, 1.0])
    with pytest.raises(KeyboardInterrupt):
        exchange_nodes(path, ring(4), np.array([0, 2, 1, 3], np.int32))


@given(applications(), machines(min_nodes=2), st.data())
@settings(max_examples=40)
def test_a_topology_of_a_partition_is_within_the_limits(
    application: Application, limits: Machine, data: st.DataObject
) -> None:
    ends = st.integers(0, limits.nodes - 1)
    size = application.vertices
    node = np.array(data.draw(st.lists(ends, min_size=size, max_size=size)), np.int32)
    condensed_topology(application, limits, node).require(limits)


def test_a_partition_that_fits_the_switch_keeps_all_its_links() -> None:
    application = Application.from_edges([0, 1, 2, 3], [1, 2, 3, 0], [1.0] * 4)
    limits = Machine(nodes=4, max_degree=2, max_edges=4, compute_speed=1.0, link_speed=1.0)
    found = condensed_topology(application, limits, np.array([2, 0, 3, 1], np.int32))
    assert links_of(found) == {(0, 2), (0, 3), (1, 3), (1, 2)}


def test_links_of_one_topology_that_another_has_not() -> None:
    line = Topology.of(4, [(0, 1), (1, 2), (2, 3)])
    assert ring(4).beyond(line) == ((0, 3),)
    assert line.beyond(ring(4)) == ()
    assert torus(1, 4).beyond(ring(4)) == ()


def test_loading_kernels_is_reported_once() -> None:
    phases: list[str] = []

    def report(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        phases.append(phase)

    partition._load_kernels.cache_clear()
    best_partition._load_engine.cache_clear()
    load_search_kernels(report)
    load_search_kernels(report)
    assert phases == [LOADING, LOADING]


@given(topologies(min_nodes=1, max_nodes=7), st.integers(1, 9), st.integers(0, 5))
@settings(max_examples=40)
def test_gathered_vertices_are_together_and_shaken_ones_next_door(
    topology: Topology, vertices: int, seed: int
) -> None:
    node = np.arange(vertices, dtype=np.int32) % topology.nodes
    together = gather(topology, node, np.random.default_rng(seed))
    assert (together == together[0]).all()
    assert topology.degree[together[0]] == topology.degree.max()
    moved = shake(topology, node, np.random.default_rng(seed))
    for before, after in zip(node.tolist(), moved.tolist(), strict=True):
        assert before == after or topology.link_between(before, after) >= 0


def test_of_many_vertices_a_few_hundred_are_shaken() -> None:
    for vertices, low, high in ((1_000, 150, 250), (20_000, 300, 500)):
        node = np.zeros(vertices, np.int32)
        moved = shake(ring(8), node, np.random.default_rng(0))
        assert low < np.count_nonzero(moved != node) < high


def test_where_links_are_slow_vertices_come_together() -> None:
    """Two cliques of four that exchange little: a node for each is best, and METIS makes four parts."""
    pairs = [(a + side, b + side) for side in (0, 4) for a, b in itertools.combinations(range(4), 2)]
    one, other = zip(*pairs, (3, 4), strict=True)
    application = Application.from_edges(one, other, [9.0] * len(pairs) + [1.0])
    limits = Machine(nodes=4, max_degree=2, max_edges=4, compute_speed=8.0, link_speed=2.0)
    found = search_from_seeds(application, limits, TrialOptions(trials=20))
    assert found.throughput == 2.0
    assert np.bincount(found.solution.node_of_vertex, minlength=4).max() == 4
