"""Proposals for a switch in use: where searches begin, what is certified, and what is weighed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.papers.circuits.enumeration import maximal_topologies
from mapping.reconfiguration.bounds import PINNED_NAMES, pinned_bound, pinned_bounds
from mapping.reconfiguration.model.problem import Application, Machine
from mapping.reconfiguration.model.solution import SearchResult
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper.refinement import least_congested_path
from mapping.reconfiguration.paper.seed_topology import repair_topology, ring
from mapping.reconfiguration.plan import next_circuits as next_circuits_module
from mapping.reconfiguration.plan.next_circuits import direct_circuits, next_circuits
from mapping.reconfiguration.search.best_partition import local_reroute, route_partition
from mapping.reconfiguration.search.local_search import TrialOptions
from registry.errors import InvalidValue
from tests.support.reconfigure_problems import applications, every_pair, links_of, machine, machines

HEAVY = Application.from_edges([0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 3], [1.0] * 5 + [10.0])
"""A path of six, whose opposite ends of a ring exchange most."""


def on_any(data: st.DataObject, application: Application, nodes: int) -> list[int]:
    """Any node for each vertex."""
    count = application.vertices
    return data.draw(st.lists(st.integers(0, nodes - 1), min_size=count, max_size=count))


@given(applications(), machines(), st.data())
@settings(max_examples=80)
def test_direct_circuits_keep_the_limits(
    application: Application, limits: Machine, data: st.DataObject
) -> None:
    node = on_any(data, application, limits.nodes)
    made = direct_circuits(application, limits, node)
    made.require(limits)
    assert links_of(made) == links_of(direct_circuits(application, limits, node))


def test_pairs_that_exchange_most_get_direct_circuits() -> None:
    """Three pairs far apart on six nodes, each with two ports: all three are joined."""
    heavy = Application.from_edges([0, 1, 2, 0], [3, 4, 5, 1], [9.0, 8.0, 7.0, 0.0], connected=False)
    made = direct_circuits(heavy, machine(6, max_degree=2, max_edges=6), range(6))
    assert {(0, 3), (1, 4), (2, 5)} <= links_of(made)
    assert made.connected()


@given(applications(), machines(min_nodes=2, max_nodes=6), st.data())
@settings(max_examples=80)
def test_no_proposal_is_above_the_certified_bounds(
    application: Application, limits: Machine, data: st.DataObject
) -> None:
    node = on_any(data, application, limits.nodes)
    present = repair_topology(ring(limits.nodes), limits, np.random.default_rng(0))
    bounds = pinned_bounds(application, limits, node)
    assert [bound.name for bound in bounds] == list(PINNED_NAMES)
    found = next_circuits(
        application, limits, present, node, TrialOptions(trials=40), reconfiguration_seconds=1.0
    )
    lowest = pinned_bound(application, limits, node)
    assert lowest.throughput == min(bound.throughput for bound in bounds)
    assert found.found.throughput <= lowest.throughput * (1 + 1e-9)


@given(applications(max_vertices=5, max_more=6), machines(min_nodes=4, max_nodes=4), st.data())
@settings(max_examples=40)
def test_no_topology_at_all_is_above_the_certified_bounds(
    application: Application, limits: Machine, data: st.DataObject
) -> None:
    node = on_any(data, application, 4)
    bound = pinned_bound(application, limits, node).throughput * (1 + 1e-9)
    for topology in maximal_topologies(limits):
        assert route_partition(application, topology, limits, node).communication_throughput <= bound


def test_bounds_are_what_their_proofs_say() -> None:
    """Four vertices on four nodes of two ports, all pairs exchange 1: 12 bytes leave, 4 circuits carry 8."""
    limits = machine(4, max_degree=2, max_edges=4, link_speed=6.0)
    found = {bound.name: bound.throughput for bound in pinned_bounds(every_pair(4), limits, range(4))}
    assert found["heaviest-flow"] == 6.0  # a circuit carries 1
    assert found["node-ports"] == pytest.approx(6.0 / 1.5)  # two circuits carry 3
    assert found["shared-port"] == pytest.approx(6.0 / 2.0)  # of three flows two share a port
    assert found["distances"] == pytest.approx(6.0 / 2.0)  # four pairs are one circuit away, two are two
    best = next_circuits(every_pair(4), limits, ring(4), range(4), reconfiguration_seconds=0.0)
    assert (
        best.found.throughput == 2.0
    )  # of a ring of four one link carries three pairs, which they do not see


def test_where_nothing_flows_nothing_limits() -> None:
    alone = Application.from_edges([0], [1], [5.0])
    bounds = pinned_bounds(alone, machine(3), [2, 2])
    assert {bound.throughput for bound in bounds} == {math.inf}
    found = next_circuits(alone, machine(3), ring(3), [2, 2], reconfiguration_seconds=1.0)
    assert (found.gain, found.found.throughput) == (1.0, math.inf)
    assert links_of(found.found.topology) == links_of(ring(3))


def test_circuits_of_a_far_present_topology_are_left_behind() -> None:
    """Twelve pairs of opposite nodes on a ring of 24: a circuit for nearly each, as no few changes would."""
    nodes = 24
    half = nodes // 2
    opposite = Application.from_edges(range(half), range(half, nodes), [1.0] * half, connected=False)
    limits = machine(nodes, max_degree=3, max_edges=nodes + half)
    found = next_circuits(
        opposite, limits, ring(nodes), range(nodes), TrialOptions(trials=20), reconfiguration_seconds=1.0
    )
    assert found.found.throughput == 1.0
    own = {(node, node + half) for node in range(half)} & links_of(found.found.topology)
    assert len(own) >= half - 2  # a flow or two may take the ring, which carries nothing else
    assert links_of(ring(nodes)) <= links_of(found.found.topology)
    trail = found.found.trail
    assert found.present is not None
    assert [one.number for one in trail] == list(range(len(trail)))
    assert trail[0].throughput == found.present.throughput
    assert trail[-1].best == 1.0
    assert found.gain == pytest.approx(1.0 / trail[0].throughput)


def test_without_known_circuits_there_is_no_gain() -> None:
    found = next_circuits(every_pair(4), machine(4), None, range(4), reconfiguration_seconds=1.0)
    assert found.present is None
    assert math.isnan(found.gain)
    assert math.isnan(found.break_even_seconds)


def test_what_ranks_compute_limits_the_gain() -> None:
    heavy = Application.from_edges([0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 3], [1.0] * 5 + [10.0])
    limits = machine(6, max_degree=3, max_edges=7)

    def proposed(**more: Any) -> Any:
        return next_circuits(heavy, limits, ring(6), range(6), reconfiguration_seconds=1.0, **more)

    free = proposed()
    now = free.present.throughput
    capped = proposed(compute_throughput=now * 1.05)
    assert free.gain > 1.05
    assert capped.gain == pytest.approx(1.05)
    assert capped.break_even_seconds > free.break_even_seconds
    idle = proposed(compute_throughput=now / 2)
    assert (idle.gain, idle.break_even_seconds) == (1.0, math.inf)
    assert links_of(idle.found.topology) == links_of(ring(6))


def test_an_unknown_time_of_the_change_leaves_the_gain_alone() -> None:
    heavy = Application.from_edges([0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 3], [1.0] * 5 + [10.0])
    found = next_circuits(
        heavy, machine(6, max_degree=3, max_edges=7), ring(6), range(6), reconfiguration_seconds=None
    )
    assert found.gain > 1.0
    assert math.isnan(found.break_even_seconds)


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan])
def test_a_throughput_of_computing_that_cannot_be_is_refused(wrong: float) -> None:
    with pytest.raises(InvalidValue, match="compute_throughput: is"):
        next_circuits(
            every_pair(3),
            machine(3),
            None,
            range(3),
            reconfiguration_seconds=None,
            compute_throughput=wrong,
        )


def test_an_interrupt_of_the_first_search_keeps_what_it_had() -> None:
    def interrupt(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        if best is not None:
            raise KeyboardInterrupt

    heavy = Application.from_edges([0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 3], [1.0] * 5 + [10.0])
    found = next_circuits(
        heavy,
        machine(6, max_degree=3, max_edges=7),
        ring(6),
        range(6),
        reconfiguration_seconds=0.0,
        progress=interrupt,
    )
    assert not found.found.complete
    assert found.gain > 1.0


@pytest.mark.parametrize("what", ["route_partition", "local_reroute"])
def test_an_interrupt_between_searches_keeps_what_the_first_one_found(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Routes of the second topology are being made, or those of the first search settled."""
    real, calls = getattr(next_circuits_module, what), []

    def interrupted(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == (2 if what == "route_partition" else 1):
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(next_circuits_module, what, interrupted)
    limits = machine(6, max_degree=3, max_edges=7)
    found = next_circuits(
        HEAVY, limits, ring(6), range(6), TrialOptions(trials=0), reconfiguration_seconds=1.0
    )
    assert not found.found.complete
    assert found.present is not None
    assert found.found.throughput >= found.present.throughput


@pytest.mark.parametrize("seconds", [math.nan, -1.0])
def test_a_time_to_search_that_cannot_be_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidValue, match="seconds: is"):
        next_circuits(
            HEAVY, machine(6), ring(6), range(6), TrialOptions(seconds=seconds), reconfiguration_seconds=None
        )


@given(applications(), machines(min_nodes=2, max_nodes=6), st.data())
@settings(max_examples=80)
def test_relieving_never_loses_and_leaves_no_flow_with_a_better_way(
    application: Application, limits: Machine, data: st.DataObject
) -> None:
    node = on_any(data, application, limits.nodes)
    topology = repair_topology(ring(limits.nodes), limits, np.random.default_rng(1))
    found = route_partition(application, topology, limits, node)
    again = local_reroute(application, topology, limits, found)
    assert again.throughput >= found.throughput
    for edge in np.flatnonzero(application.weight > 0).tolist():
        way = again.route[again.route_ptr[edge] : again.route_ptr[edge + 1]]
        if len(way) == 0:
            continue
        flow, load = float(application.weight[edge]), again.link_load.copy()
        worst = load[way].max()
        load[way] -= flow
        ends = (int(node[application.source[edge]]), int(node[application.target[edge]]))
        other = least_congested_path(topology, np.maximum(load, 0.0), *ends, flow)
        assert load[other].max() + flow >= worst * (1 - 1e-9)


def test_links_that_are_equally_hot_are_relieved_one_by_one() -> None:
    """In each of two squares two flows share a link: either square alone relieved leaves the other as hot."""
    square = [(0, 1), (1, 2), (2, 3), (0, 3)]
    topology = Topology.of(8, [*square, *((one + 4, other + 4) for one, other in square), (3, 7)])
    twice = Application.from_edges(
        [0, 0, 4, 4], [2, 1, 6, 5], [2.0] * 4, vertex_weight=np.ones(8), connected=False
    )
    found = route_partition(twice, topology, machine(8, max_degree=3, max_edges=9), range(8))
    assert found.throughput == 1 / 2


def test_circuits_that_are_not_needed_are_not_moved() -> None:
    """On a ring of eight one pair needs a circuit; that another search would move more does not show."""
    nodes = 8
    ring_pairs = [(node, (node + 1) % nodes) for node in range(nodes)]
    sender, receiver = zip(*ring_pairs, (0, 4), strict=True)
    heavy = Application.from_edges(sender, receiver, [1.0] * nodes + [10.0])
    limits = machine(nodes, max_degree=4, max_edges=12)
    found = next_circuits(heavy, limits, ring(nodes), range(nodes), reconfiguration_seconds=1.0)
    assert found.found.throughput == pytest.approx(1 / 10)
    assert links_of(found.found.topology) == links_of(ring(nodes)) | {(0, 4)}


def test_an_interrupt_while_moves_become_fewer_keeps_the_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("mapping.reconfiguration.plan.few_moves.route_partition", interrupted)
    heavy = Application.from_edges([0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 3], [1.0] * 5 + [10.0])
    limits = machine(6, max_degree=3, max_edges=7)
    found = next_circuits(heavy, limits, ring(6), range(6), reconfiguration_seconds=1.0)
    assert found.gain > 1.0
    assert not found.found.complete


def test_other_circuits_of_equal_throughput_leave_the_present_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """One flow between opposite nodes of a ring has no higher throughput over a circuit of its own."""
    flow = Application.from_edges([0], [2], [1.0], vertices=4, connected=False)
    limits = machine(4, max_degree=2, max_edges=4)
    direct = Topology.of(4, [(0, 2), (0, 1), (2, 3), (1, 3)])

    def found_direct(one: Any, two: Any, start: SearchResult, *rest: Any, **options: Any) -> SearchResult:
        return replace(start, topology=direct, solution=route_partition(flow, direct, limits, range(4)))

    monkeypatch.setattr(next_circuits_module, "improve", found_direct)
    plan = next_circuits(flow, limits, ring(4), range(4), reconfiguration_seconds=1.0)
    assert plan.present is not None
    assert plan.found.throughput == plan.present.throughput
    assert plan.found.topology.pairs.tolist() == ring(4).pairs.tolist()
    assert plan.gain == 1.0
