"""The co-optimising loop: what it returns, its trail, when it stops; against bounds and the true optimum."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.papers.circuits.enumeration import MOST_NODES, maximal_topologies, optimum
from ingest.generate.streams import stream_graph
from mapping.reconfiguration.bounds import throughput_bound
from mapping.reconfiguration.model.problem import Application, Machine
from mapping.reconfiguration.model.solution import SearchResult, evaluate
from mapping.reconfiguration.paper import loop
from mapping.reconfiguration.paper.loop import LoopOptions, co_optimise
from mapping.reconfiguration.paper.seed_topology import chordal_ring, torus
from registry.errors import InvalidValue, UnknownName
from tests.support.reconfigure_problems import applications, every_pair, links_of, machine, machines


def streams(vertices: int, seed: int = 0) -> Application:
    graph = stream_graph(vertices, seed=seed)
    return Application.from_edges(
        graph.source, graph.target, graph.edge_weight, vertex_weight=graph.vertex_weight
    )


PAPER = Machine(nodes=16, max_degree=4, max_edges=32, compute_speed=1000.0, link_speed=10.0)
"""Of the paper's Table 2, row 9."""


def same(one: SearchResult, other: SearchResult) -> bool:
    arrays = ("node_of_vertex", "route_ptr", "route", "node_load", "link_load")
    return (
        one.trail == other.trail
        and links_of(one.topology) == links_of(other.topology)
        and all(
            getattr(one.solution, name).tobytes() == getattr(other.solution, name).tobytes()
            for name in arrays
        )
    )


@given(applications(), machines(), st.integers(0, 3), st.sampled_from(["condensed", "torus", "ring"]))
@settings(max_examples=60)
def test_what_is_found_is_within_the_limits_and_is_what_it_says(
    application: Application, limits: Machine, seed: int, name: str
) -> None:
    found = co_optimise(application, limits, LoopOptions(seed_topology=name, seed=seed, patience=3))
    found.topology.require(limits)
    solution = found.solution
    again = evaluate(
        application, found.topology, limits, solution.node_of_vertex, solution.route_ptr, solution.route
    )
    assert again.throughput == found.throughput
    assert found.complete
    assert found.throughput <= throughput_bound(application, limits).throughput * (1 + 1e-9)
    assert same(
        found, co_optimise(application, limits, LoopOptions(seed_topology=name, seed=seed, patience=3))
    )


def test_the_trail_has_every_iteration_and_ends_after_so_many_without_gain() -> None:
    found = co_optimise(streams(100), PAPER, LoopOptions(patience=6, seed=1))
    trail = found.trail
    assert [one.number for one in trail] == list(range(len(trail)))
    assert (trail[0].removed, trail[0].inserted) == ((), ())
    best = itertools.accumulate((one.throughput for one in trail), max)
    assert [one.best for one in trail] == pytest.approx(list(best))
    assert found.throughput == trail[-1].best == trail[found.best_iteration].throughput
    assert len(trail) == found.best_iteration + 1 + 6
    assert found.improvement == found.throughput / trail[0].throughput >= 1.0
    for one in trail:
        assert one.throughput == min(one.compute_throughput, one.communication_throughput)
        slower = "compute" if one.compute_throughput <= one.communication_throughput else "communication"
        assert one.bottleneck == slower
        assert one.seconds >= 0


def test_each_topology_is_the_one_before_after_its_swap() -> None:
    seeds = chordal_ring(16, 4)
    found = co_optimise(streams(100), PAPER, LoopOptions(seed_topology=seeds, patience=5, seed=2))
    links: set[Any] = links_of(seeds)
    for one in found.trail:
        gone = {tuple(sorted(pair)) for pair in one.removed}
        come = {tuple(sorted(pair)) for pair in one.inserted}
        assert gone <= links
        assert not come & links
        links = links - gone | come
        assert len(links) == one.links == 32
        if one.number == found.best_iteration:
            assert links == links_of(found.topology)


def test_seeds_differ_in_what_they_find() -> None:
    found = [co_optimise(streams(100), PAPER, LoopOptions(patience=3, seed=seed)) for seed in (0, 0, 1)]
    assert same(found[0], found[1])
    assert not same(found[0], found[2])


def test_no_patience_is_the_seed_topology_alone() -> None:
    found = co_optimise(streams(60), PAPER, LoopOptions(seed_topology=torus(4, 4), patience=0))
    assert len(found.trail) == 1
    assert found.improvement == 1.0
    assert links_of(found.topology) == links_of(torus(4, 4))


def test_no_time_begins_no_iteration() -> None:
    assert len(co_optimise(streams(60), PAPER, LoopOptions(seconds=0.0)).trail) == 1


def test_an_interrupt_keeps_the_best_so_far_and_marks_it_incomplete() -> None:
    reports: list[tuple[str, float, float | None]] = []

    def interrupt(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        reports.append((phase, done, best))
        if done == 2:
            raise KeyboardInterrupt

    whole = co_optimise(streams(100), PAPER, LoopOptions(patience=2, seed=1))
    found = co_optimise(streams(100), PAPER, LoopOptions(patience=50, seed=1), progress=interrupt)
    assert not found.complete
    assert [done for _, done, _ in reports] == [0, 1, 2]
    assert whole.trail[:3] == found.trail
    assert found.throughput == found.trail[-1].best
    found.topology.require(PAPER)


def test_an_interrupt_before_anything_was_found_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "place_and_route", interrupt)
    with pytest.raises(KeyboardInterrupt):
        co_optimise(streams(60), PAPER)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patience": -1}, "patience: is -1"),
        ({"skip": 1.0}, "skip: is 1.0"),
        ({"skip": math.nan}, "skip: is nan"),
        ({"seed": -1}, "seed: is -1"),
        ({"seconds": math.nan}, "seconds: is nan"),
        ({"seed_topology": torus(3, 3)}, "has 9 nodes, the machine has 16"),
    ],
)
def test_parameters_that_cannot_be_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        co_optimise(streams(20), PAPER, LoopOptions(**options))


def test_an_unknown_seed_topology_is_refused() -> None:
    with pytest.raises(UnknownName, match="there is no seed topology 'kautz'"):
        co_optimise(streams(20), PAPER, LoopOptions(seed_topology="kautz"))


def test_one_node_does_all_and_two_share() -> None:
    line = Application.from_edges([0], [1], [1.0], vertex_weight=[3.0, 1.0])
    alone = co_optimise(line, machine(1, max_degree=0, max_edges=0))
    assert (alone.throughput, alone.solution.communication_throughput) == (0.25, math.inf)
    shared = co_optimise(line, machine(2, max_degree=1, max_edges=1, link_speed=5.0))
    assert shared.throughput == pytest.approx(1 / 3)


def test_nodes_stay_empty_where_links_are_too_slow() -> None:
    """The rule of section 4.1: as links slow down, few partitions with little traffic across are best."""
    slow = replace(PAPER, compute_speed=100.0, link_speed=1e-6)
    found = co_optimise(streams(100), slow, LoopOptions(patience=3))
    assert len(np.unique(found.solution.node_of_vertex)) < 16


@given(applications(max_vertices=6, max_more=3), machines(max_nodes=4), st.integers(0, 2))
@settings(max_examples=60)
def test_no_search_beats_the_optimum_nor_the_optimum_its_bounds(
    application: Application, limits: Machine, seed: int
) -> None:
    best = optimum(application, limits)
    best.topology.require(limits)
    found = co_optimise(application, limits, LoopOptions(seed=seed, patience=4))
    assert found.throughput <= best.solution.throughput * (1 + 1e-9)
    assert best.solution.throughput <= throughput_bound(application, limits).throughput * (1 + 1e-9)


@given(applications(min_vertices=2, max_vertices=4, max_more=1), machines(min_nodes=2, max_nodes=3))
@settings(max_examples=40)
def test_the_optimum_is_that_of_a_plain_loop(application: Application, limits: Machine) -> None:
    assert optimum(application, limits).solution.throughput == pytest.approx(plain(application, limits))


def plain(application: Application, limits: Machine) -> float:
    """Throughput by trying every topology, every node of every vertex, every path of every edge.

    There are three nodes at most: a path is a link, or leads through the third.
    """
    found, nodes = 0.0, range(limits.nodes)
    sizes = application.weight.tolist()
    for topology in maximal_topologies(limits):
        links = links_of(topology)
        for where in itertools.product(nodes, repeat=application.vertices):
            load = np.bincount(where, weights=application.vertex_weight)
            ways = []
            for u, v in zip(application.source.tolist(), application.target.tolist(), strict=True):
                paths = ways_between(where[u], where[v], limits.nodes)
                ways.append([path for path in paths if path <= links])
            for chosen in itertools.product(*ways):
                carried = dict.fromkeys(links, 0.0)
                for size, path in zip(sizes, chosen, strict=True):
                    for link in path:
                        carried[link] += size
                slow = [limits.compute_speed / one for one in load if one > 0]
                slow += [limits.link_speed / one for one in carried.values() if one > 0]
                found = max(found, min(slow, default=math.inf))
    return found


def ways_between(one: int, other: int, nodes: int) -> list[set[Any]]:
    """Links of all paths between two of three nodes."""
    if one == other:
        return [set()]
    through = [k for k in range(nodes) if k not in (one, other)]
    ends = [[(one, other)], *([(one, k), (k, other)] for k in through)]
    return [{tuple(sorted(link)) for link in path} for path in ends]


def test_the_optimum_of_too_large_an_instance_is_refused() -> None:
    with pytest.raises(InvalidValue, match=f"6 are more than the {MOST_NODES}"):
        optimum(streams(4), machine(6))
    with pytest.raises(InvalidValue, match="vertex_weight: 9 are more than the 8"):
        optimum(streams(9), machine(4))
    complete = every_pair(6)
    with pytest.raises(InvalidValue, match="source: 15 are more than the 12"):
        optimum(complete, machine(4))


@given(machines(max_nodes=4))
def test_maximal_topologies_are_within_the_limits_and_take_no_link_more(limits: Machine) -> None:
    found = maximal_topologies(limits)
    assert found
    assert len({frozenset(links_of(topology)) for topology in found}) == len(found)
    for topology in found:
        topology.require(limits)
        for one, other in itertools.combinations(range(limits.nodes), 2):
            if topology.link_between(one, other) < 0:
                with pytest.raises(InvalidValue):
                    topology.changed(added=[(one, other)]).require(limits)
