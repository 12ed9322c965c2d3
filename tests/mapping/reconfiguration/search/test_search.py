"""Our own search: changes of links, nodes exchanged by the mapping engine, topologies of the partition."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapping.distances.cost_model import CostModel
from mapping.evaluation.metrics import evaluate as judged
from mapping.placement.search.placing import place
from mapping.reconfiguration.bounds import throughput_bound
from mapping.reconfiguration.model.problem import Application, Machine
from mapping.reconfiguration.model.solution import SearchResult, Solution
from mapping.reconfiguration.model.topology import LinkChange, Topology
from mapping.reconfiguration.paper import partition
from mapping.reconfiguration.paper.loop import LoopOptions, co_optimise
from mapping.reconfiguration.paper.partition import LOADING
from mapping.reconfiguration.paper.seed_topology import condensed_topology, repair_topology, ring, torus
from mapping.reconfiguration.search import best_partition, local_search
from mapping.reconfiguration.search.best_partition import exchange_nodes, route_partition
from mapping.reconfiguration.search.edge_exchange import choose_ends, exchange_edges
from mapping.reconfiguration.search.local_search import TrialOptions, improve, search_from_seeds
from registry.errors import InvalidValue
from registry.model import Allocation, Ints, Placement
from tests.support import reconfigure_problems
from tests.support.reconfigure_problems import HEAVY, applications, links_of, machine, topologies
from tests.support.search_problems import InterruptAt
from tests.support.small_fabrics import given_placement


@given(applications(), reconfigure_problems.machines(), st.integers(0, 3))
@settings(max_examples=40)
def test_improving_keeps_limits_and_never_loses(application: Application, limits: Machine, seed: int) -> None:
    start = co_optimise(application, limits, LoopOptions(seed_topology="ring", patience=1))
    found = improve(application, limits, start, TrialOptions(trials=130, seed=seed))
    reconfigure_problems.check_search(application, limits, found)
    assert found.complete
    assert found.throughput >= start.throughput
    assert found.throughput <= throughput_bound(application, limits).throughput * (1 + 1e-9)
    assert found.trail[: len(start.trail)] == start.trail
    assert reconfigure_problems.same_search(
        found, improve(application, limits, start, TrialOptions(trials=130, seed=seed))
    )


def test_the_best_of_several_seeds_is_at_least_as_good_as_each() -> None:
    rows = np.random.default_rng(0).integers(0, 40, (2, 80))
    tree = np.arange(1, 40)
    application = Application.from_edges(np.r_[rows[0], tree], np.r_[rows[1], tree // 2], np.ones(119))
    limits = machine(8, max_degree=3, link_speed=0.5)
    seeds = ("condensed", "ring")
    found = search_from_seeds(application, limits, TrialOptions(trials=50), seed_topologies=seeds)
    reconfigure_problems.check_search(application, limits, found)
    for name in seeds:
        alone = co_optimise(application, limits, LoopOptions(seed_topology=name, expansion="highest"))
        assert found.throughput >= alone.throughput
    with pytest.raises(InvalidValue, match="seed_topologies: are none"):
        search_from_seeds(application, limits, seed_topologies=())


def test_free_ports_are_used() -> None:
    """Four vertices that all talk, on a path: three links become six."""
    complete = reconfigure_problems.every_pair(4)
    limits = machine(4, max_degree=3, max_edges=6)
    path = Topology.of(4, [(0, 1), (1, 2), (2, 3)])
    start = co_optimise(complete, limits, LoopOptions(seed_topology=path, patience=0))
    found = improve(complete, limits, start, TrialOptions(trials=200))
    assert (found.throughput, found.topology.links) == (1.0, 6)


def test_an_interrupt_keeps_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    complete, limits = reconfigure_problems.every_pair(6), machine(6, max_degree=4)
    start = co_optimise(complete, limits, LoopOptions(seed_topology="ring", patience=0))

    def interrupt(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    improve(complete, limits, start, TrialOptions(trials=1))  # loads kernels, which is reported too
    found = improve(complete, limits, start, progress=interrupt)
    assert not found.complete
    assert found.throughput > start.throughput
    reconfigure_problems.check_search(complete, limits, found)
    monkeypatch.setattr(best_partition, "coarsen", interrupt)  # before our own search has begun
    found = improve(complete, limits, start)
    assert not found.complete
    assert reconfigure_problems.same_search(replace(found, complete=True), start)


def test_an_interrupt_of_another_seed_keeps_what_the_first_one_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    complete, limits = reconfigure_problems.every_pair(6), machine(6, max_degree=4)

    def interrupted(*given: Any, **options: Any) -> SearchResult:
        if given[2].seed_topology == "torus":
            raise KeyboardInterrupt
        return co_optimise(*given, **options)

    monkeypatch.setattr(local_search, "co_optimise", interrupted)
    found = search_from_seeds(complete, limits, seed_topologies=("ring", "torus"))
    assert not found.complete
    first = co_optimise(complete, limits, LoopOptions(seed_topology="ring", expansion="highest"))
    assert found.trail == first.trail
    with pytest.raises(KeyboardInterrupt):
        search_from_seeds(complete, limits, seed_topologies=("torus", "ring"))


def test_no_time_and_no_trials_change_nothing() -> None:
    pair = Application.from_edges([0], [1], [1.0])
    start = co_optimise(pair, machine(4))
    for none in (TrialOptions(seconds=0.0), TrialOptions(trials=0)):
        assert reconfigure_problems.same_search(improve(pair, machine(4), start, none), start)
    wrong: list[dict[str, Any]] = [{"trials": -1}, {"seed": -2}, {"seconds": math.nan}, {"seconds": -1.0}]
    for one in wrong:
        with pytest.raises(InvalidValue, match="{}: is {}".format(*next(iter(one.items())))):
            TrialOptions(**one)


def routed(application: Application, topology: Topology, limits: Machine) -> Solution:
    return route_partition(application, topology, limits, np.arange(application.vertices) % limits.nodes)


def test_free_ports_take_a_direct_link() -> None:
    limits = machine(6, max_degree=3, max_edges=7)
    (change, *_) = changes_of(limits)
    assert (change.removed, change.inserted) == ((), ((0, 3),))
    assert links_of(change.topology) == links_of(ring(6)) | {(0, 3)}


def changes_of(limits: Machine) -> list[LinkChange]:
    solution = routed(HEAVY, ring(6), limits)
    found = [exchange_edges(ring(6), solution, limits, (0, 3), np.random.default_rng(k)) for k in range(20)]
    return [change for change in found if change is not None]


def test_without_a_free_link_one_that_disconnects_nothing_makes_room() -> None:
    changes = changes_of(machine(6, max_degree=3, max_edges=6))
    assert changes
    for change in changes:
        assert len(change.removed) == len(change.inserted) == 1
        assert (0, 3) in links_of(change.topology)


def test_full_nodes_lose_a_link_each_and_their_free_neighbours_are_linked() -> None:
    made = {change.inserted for change in changes_of(machine(6, max_degree=2, max_edges=6))}
    assert made
    assert made <= {((0, 3), (1, 4)), ((0, 3), (2, 5)), ((0, 3), (1, 2)), ((0, 3), (4, 5))}


def test_the_ends_of_a_flow_over_the_most_loaded_link_are_chosen() -> None:
    limits = machine(6, max_degree=3, max_edges=7)
    solution = routed(HEAVY, ring(6), limits)
    flows = HEAVY.source, HEAVY.target
    drawn = {choose_ends(ring(6), solution, flows, np.random.default_rng(k)) for k in range(40)}
    assert drawn == {None, (0, 3)}  # None is a swap, one time in three


@given(applications(min_vertices=2), reconfigure_problems.machines(min_nodes=2), st.integers(0, 9))
def test_every_change_is_what_it_reports(application: Application, limits: Machine, seed: int) -> None:
    generator = np.random.default_rng(seed)
    topology = repair_topology(ring(limits.nodes), limits, generator)
    solution = routed(application, topology, limits)
    node = solution.node_of_vertex
    ends = choose_ends(topology, solution, (node[application.source], node[application.target]), generator)
    change = exchange_edges(topology, solution, limits, ends, generator)
    if change is None:
        return
    change.topology.require(limits)
    inserted = {(min(pair), max(pair)) for pair in change.inserted}
    assert links_of(change.topology) == links_of(topology) - set(change.removed) | inserted


def worst(application: Application, topology: Topology, node: Ints) -> float:
    """Worst load of a link where all shortest paths share, by the engine's own evaluation."""
    hosts = np.arange(topology.nodes, dtype=np.int32)
    allocation = Allocation(hosts=hosts, slots=np.ones(topology.nodes, np.int32))
    placement = given_placement(allocation, hosts)
    flows, costs = (
        best_partition.traffic(application, node, topology.nodes),
        CostModel(routing="shortest-paths"),
    )
    return judged(best_partition.network(topology), flows, placement, costs=costs).congestion_seconds


def test_neighbours_on_a_ring_are_found_again_and_where_nothing_flows_nothing_moves() -> None:
    """Eight nodes that talk in a circle, mixed up on a ring."""
    mixed = np.array([0, 5, 2, 7, 4, 1, 6, 3], np.int32)
    vertex = np.arange(8)
    circle = Application.from_edges(vertex, (vertex + 1) % 8, np.ones(8))
    assert worst(circle, ring(8), mixed) > 0.5
    found = exchange_nodes(circle, ring(8), mixed)
    assert sorted(found.tolist()) == list(range(8))
    assert worst(circle, ring(8), found) == 0.5  # half of a flow each way
    still = Application.from_edges(vertex, (vertex + 1) % 8, np.zeros(8))
    assert exchange_nodes(still, ring(8), mixed) is mixed
    assert exchange_nodes(circle, ring(8), np.zeros(8, np.int32)).tolist() == [0] * 8


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
    node = reconfigure_problems.on_any(data, application, topology.nodes)
    found = exchange_nodes(application, topology, node, steps=200, seed=1)
    pairs = set(zip(node.tolist(), found.tolist(), strict=True))
    assert len(pairs) == len({one for one, _ in pairs}) == len({other for _, other in pairs})
    assert worst(application, topology, found) <= worst(application, topology, node) * (1 + 1e-6)
    assert found.tobytes() == exchange_nodes(application, topology, node, steps=200, seed=1).tobytes()


def test_an_interrupt_of_the_engine_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine keeps the best so far and returns: the search that called it must end too."""

    def interrupted(*given: Any, **options: Any) -> Placement:
        return place(*given, **options, progress=InterruptAt(1))

    monkeypatch.setattr(best_partition, "place", interrupted)
    path = Application.from_edges([0, 1, 2], [1, 2, 3], [1.0, 1.0, 1.0])
    with pytest.raises(KeyboardInterrupt):
        exchange_nodes(path, ring(4), np.array([0, 2, 1, 3], np.int32))


@given(applications(), reconfigure_problems.machines(min_nodes=2), st.data())
@settings(max_examples=40)
def test_a_partition_keeps_limits(application: Application, limits: Machine, data: st.DataObject) -> None:
    condensed_topology(
        application, limits, reconfigure_problems.on_any(data, application, limits.nodes)
    ).require(limits)


def test_a_partition_that_fits_the_switch_keeps_all_its_links() -> None:
    application = Application.from_edges([0, 1, 2, 3], [1, 2, 3, 0], [1.0] * 4)
    limits = machine(4, max_degree=2, max_edges=4)
    found = condensed_topology(application, limits, np.array([2, 0, 3, 1], np.int32))
    assert links_of(found) == {(0, 2), (0, 3), (1, 3), (1, 2)}
    line = Topology.of(4, [(0, 1), (1, 2), (2, 3)])
    assert (ring(4).beyond(line), line.beyond(ring(4)), torus(1, 4).beyond(ring(4))) == (((0, 3),), (), ())


def test_loading_kernels_is_reported_once() -> None:
    report = MagicMock()
    partition._load_kernels.cache_clear()
    best_partition._load_engine.cache_clear()
    best_partition.load_search_kernels(report)
    best_partition.load_search_kernels(report)
    assert [call.args[0] for call in report.call_args_list] == [LOADING, LOADING]


@given(topologies(min_nodes=1, max_nodes=7), st.integers(1, 9), st.integers(0, 5))
@settings(max_examples=40)
def test_gathered_are_together_and_shaken_near(topology: Topology, vertices: int, seed: int) -> None:
    node = np.arange(vertices, dtype=np.int32) % topology.nodes
    together = best_partition.gather(topology, node, np.random.default_rng(seed))
    assert (together == together[0]).all()
    assert topology.degree[together[0]] == topology.degree.max()
    moved = best_partition.shake(topology, node, np.random.default_rng(seed))
    for before, after in zip(node.tolist(), moved.tolist(), strict=True):
        assert before == after or topology.link_between(before, after) >= 0


def test_of_many_vertices_a_few_hundred_are_shaken() -> None:
    for vertices, low, high in ((1_000, 150, 250), (20_000, 300, 500)):
        node = np.zeros(vertices, np.int32)
        moved = best_partition.shake(ring(8), node, np.random.default_rng(0))
        assert low < np.count_nonzero(moved != node) < high


def test_where_links_are_slow_vertices_come_together() -> None:
    """Two cliques of four that exchange little: a node for each is best, and METIS makes four parts."""
    pairs = [(a + side, b + side) for side in (0, 4) for a, b in itertools.combinations(range(4), 2)]
    one, other = zip(*pairs, (3, 4), strict=True)
    application = Application.from_edges(one, other, [9.0] * len(pairs) + [1.0])
    limits = machine(4, max_degree=2, max_edges=4, compute_speed=8.0, link_speed=2.0)
    found = search_from_seeds(application, limits, TrialOptions(trials=20))
    assert found.throughput == 2.0
    assert np.bincount(found.solution.node_of_vertex, minlength=4).max() == 4
