"""Our own search beyond the paper's loop, and proposals for a switch that is in use."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.papers.circuits.enumeration import maximal_topologies
from mapping.reconfiguration.bounds import throughput_bound
from mapping.reconfiguration.model.problem import Application, Machine
from mapping.reconfiguration.model.solution import SearchResult, evaluate
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper.loop import LoopOptions, co_optimise
from mapping.reconfiguration.paper.seed_topology import repair_topology, ring
from mapping.reconfiguration.plan.next_circuits import break_even_seconds, next_circuits
from mapping.reconfiguration.search import best_partition, local_search
from mapping.reconfiguration.search.best_partition import route_partition
from mapping.reconfiguration.search.local_search import TrialOptions, improve, search_from_seeds
from registry.errors import InvalidValue
from tests.support.reconfigure_problems import (
    applications,
    every_pair,
    links_of,
    machine,
    machines,
    topologies,
)


def same(one: SearchResult, other: SearchResult) -> bool:
    return (
        one.trail == other.trail
        and links_of(one.topology) == links_of(other.topology)
        and one.solution.node_of_vertex.tobytes() == other.solution.node_of_vertex.tobytes()
        and one.solution.route.tobytes() == other.solution.route.tobytes()
    )


def consistent(application: Application, limits: Machine, found: SearchResult) -> None:
    found.topology.require(limits)
    solution = found.solution
    again = evaluate(
        application, found.topology, limits, solution.node_of_vertex, solution.route_ptr, solution.route
    )
    assert again.throughput == found.throughput == found.trail[-1].best
    assert [one.number for one in found.trail] == list(range(len(found.trail)))


@given(applications(), machines(), st.integers(0, 3))
@settings(max_examples=60)
def test_improving_keeps_the_limits_and_never_loses(
    application: Application, limits: Machine, seed: int
) -> None:
    start = co_optimise(application, limits, LoopOptions(seed_topology="ring", patience=1))
    found = improve(application, limits, start, TrialOptions(trials=130, seed=seed))
    consistent(application, limits, found)
    assert found.complete
    assert found.throughput >= start.throughput
    assert found.throughput <= throughput_bound(application, limits).throughput * (1 + 1e-9)
    assert found.trail[: len(start.trail)] == start.trail
    assert same(found, improve(application, limits, start, TrialOptions(trials=130, seed=seed)))


def test_the_best_of_several_seeds_is_at_least_as_good_as_each() -> None:
    rows = np.random.default_rng(0).integers(0, 40, (2, 80))
    tree = np.arange(1, 40)
    application = Application.from_edges(np.r_[rows[0], tree], np.r_[rows[1], tree // 2], np.ones(119))
    limits = machine(8, max_degree=3, link_speed=0.5)
    found = search_from_seeds(
        application, limits, TrialOptions(trials=50), seed_topologies=("condensed", "ring")
    )
    consistent(application, limits, found)
    for name in ("condensed", "ring"):
        alone = co_optimise(application, limits, LoopOptions(seed_topology=name, expansion="highest"))
        assert found.throughput >= alone.throughput
    with pytest.raises(InvalidValue, match="seed_topologies: are none"):
        search_from_seeds(application, limits, seed_topologies=())


def test_free_ports_are_used() -> None:
    """Four vertices that all talk, on a path: three links become six."""
    complete = every_pair(4)
    limits = machine(4, max_degree=3, max_edges=6, link_speed=1.0, compute_speed=1.0)
    path = Topology.of(4, [(0, 1), (1, 2), (2, 3)])
    start = co_optimise(complete, limits, LoopOptions(seed_topology=path, patience=0))
    found = improve(complete, limits, start, TrialOptions(trials=200))
    assert found.throughput == 1.0
    assert found.topology.links == 6


def test_an_interrupt_keeps_the_best_so_far() -> None:
    complete = every_pair(6)
    limits = machine(6, max_degree=4)
    start = co_optimise(complete, limits, LoopOptions(seed_topology="ring", patience=0))

    def interrupt(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        raise KeyboardInterrupt

    improve(complete, limits, start, TrialOptions(trials=1))  # loads kernels, which is reported too
    found = improve(complete, limits, start, progress=interrupt)
    assert not found.complete
    assert found.throughput > start.throughput
    consistent(complete, limits, found)


def test_an_interrupt_as_another_seed_begins_keeps_what_the_first_one_gave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    complete, limits = every_pair(6), machine(6, max_degree=4)

    def interrupted(*given: Any, **options: Any) -> SearchResult:
        if given[2].seed_topology == "torus":
            raise KeyboardInterrupt
        return co_optimise(*given, **options)

    monkeypatch.setattr(local_search, "co_optimise", interrupted)
    found = search_from_seeds(complete, limits, seed_topologies=("ring", "torus"))
    assert not found.complete
    assert (
        replace(found, complete=True).trail
        == co_optimise(complete, limits, LoopOptions(seed_topology="ring", expansion="highest")).trail
    )
    with pytest.raises(KeyboardInterrupt):
        search_from_seeds(complete, limits, seed_topologies=("torus", "ring"))


def test_an_interrupt_before_our_own_search_has_begun_keeps_what_the_loop_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    complete, limits = every_pair(6), machine(6, max_degree=4)
    start = co_optimise(complete, limits, LoopOptions(seed_topology="ring", patience=0))
    monkeypatch.setattr(best_partition, "coarsen", interrupted)
    found = improve(complete, limits, start)
    assert not found.complete
    assert same(replace(found, complete=True), start)


def test_no_time_and_no_trials_change_nothing() -> None:
    pair = Application.from_edges([0], [1], [1.0])
    start = co_optimise(pair, machine(4))
    assert same(improve(pair, machine(4), start, TrialOptions(seconds=0.0)), start)
    assert same(improve(pair, machine(4), start, TrialOptions(trials=0)), start)
    with pytest.raises(InvalidValue, match="trials: is -1"):
        improve(pair, machine(4), start, TrialOptions(trials=-1))
    with pytest.raises(InvalidValue, match="seed: is -2"):
        improve(pair, machine(4), start, TrialOptions(seed=-2))


@given(applications(), topologies(min_nodes=2, max_nodes=6), st.data())
@settings(max_examples=60)
def test_a_proposal_leaves_vertices_where_they_are(
    application: Application, topology: Topology, data: st.DataObject
) -> None:
    limits = data.draw(machines(min_nodes=topology.nodes, max_nodes=topology.nodes))
    present = repair_topology(topology, limits, np.random.default_rng(0))
    node = data.draw(
        st.lists(
            st.integers(0, topology.nodes - 1),
            min_size=application.vertices,
            max_size=application.vertices,
        )
    )
    found = next_circuits(
        application, limits, present, node, TrialOptions(trials=60), reconfiguration_seconds=0.5
    )
    found.found.topology.require(limits)
    assert found.present is not None
    assert found.found.solution.node_of_vertex.tolist() == found.present.node_of_vertex.tolist() == node
    assert found.gain >= 1.0
    if found.gain == 1.0:
        assert links_of(found.found.topology) == links_of(present)
        assert found.break_even_seconds == math.inf
    else:
        after = found.break_even_seconds
        assert found.gain * (after - 0.5) == pytest.approx(after)


def test_a_circuit_is_proposed_where_two_hosts_talk_far_apart() -> None:
    """Opposite nodes of a ring of six exchange most: they get a circuit of their own."""
    limits = machine(6, max_degree=3, max_edges=7)
    heavy = Application.from_edges([0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 3], [1.0] * 5 + [10.0])
    found = next_circuits(heavy, limits, ring(6), range(6), reconfiguration_seconds=0.01)
    assert (0, 3) in links_of(found.found.topology)
    assert found.gain > 1.0
    assert found.found.throughput == pytest.approx(1 / 10)


@given(applications(max_vertices=4, max_more=3), machines(min_nodes=4, max_nodes=4))
@settings(max_examples=30)
def test_a_proposal_is_no_better_than_the_best_of_all_topologies(
    application: Application, limits: Machine
) -> None:
    """Routes on each maximal topology, by every path: here only the best sum of all flows over links."""
    present = repair_topology(ring(4), limits, np.random.default_rng(0))
    found = next_circuits(
        application,
        limits,
        present,
        range(application.vertices),
        TrialOptions(trials=60),
        reconfiguration_seconds=0.0,
    )
    most = max(topology.links for topology in maximal_topologies(limits))
    total = float(application.weight.sum())
    if total > 0:
        assert found.found.throughput <= limits.link_speed * most / total * (1 + 1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reconfiguration_seconds": -1.0}, "reconfiguration_seconds: is -1.0"),
        ({"reconfiguration_seconds": math.nan}, "reconfiguration_seconds: is nan"),
        ({"node_of_vertex": [0]}, "node_of_vertex: has 1 entries, not 2"),
        ({"node_of_vertex": [0, 4]}, "node_of_vertex: is 4 at 1, not within 0 .. 3"),
        ({"present": ring(5)}, "nodes: is 5, the machine has 4"),
    ],
)
def test_what_cannot_be_is_named(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "present": ring(4),
        "node_of_vertex": [0, 1],
        "reconfiguration_seconds": 1.0,
    }
    pair = Application.from_edges([0], [1], [1.0])
    next_circuits(pair, machine(4), **good)
    with pytest.raises(InvalidValue, match=message):
        next_circuits(pair, machine(4), **good | change)


def test_break_even_follows_the_gain() -> None:
    assert break_even_seconds(2.0, 3.0) == 6.0
    assert break_even_seconds(1.0, 3.0) == math.inf
    assert break_even_seconds(math.inf, 3.0) == 3.0


def test_routes_of_vertices_that_stay_join_their_nodes() -> None:
    pair = Application.from_edges([0], [1], [2.0])
    found = route_partition(pair, ring(5), machine(5, link_speed=4.0), [0, 2])
    assert (len(found.route), found.communication_throughput) == (2, 2.0)
