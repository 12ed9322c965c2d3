"""Numbers of nodes that keep circuits: never fewer than without them, all where the topology is the same."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mapping.reconfiguration.model.problem import Application
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper.loop import LoopOptions, co_optimise
from mapping.reconfiguration.paper.seed_topology import chordal_ring, ring, torus
from mapping.reconfiguration.plan import few_moves
from mapping.reconfiguration.plan.few_moves import best_labels, relabel_nodes
from mapping.service.circuit_search import CircuitSearchOptions, plan_circuits
from mapping.service.circuits import CircuitPlanCase
from registry.model import Longs
from tests.support.reconfigure_problems import every_pair, links_of, machine


def under(number: Longs, topology: Topology) -> Topology:
    return Topology.of(topology.nodes, number[topology.pairs])


def kept(present: Topology, topology: Topology) -> int:
    return len(links_of(present) & links_of(topology))


@st.composite
def two_topologies(draw: st.DrawFn) -> tuple[Topology, Topology]:
    nodes = draw(st.integers(2, 6))
    pairs = st.sets(st.sampled_from(list(itertools.combinations(range(nodes), 2))), min_size=1)
    one, other = (Topology.of(nodes, sorted(draw(pairs))) for _ in range(2))
    return one, other


@given(two_topologies())
@settings(deadline=None)
def test_numbers_are_near_the_best_of_all(two: tuple[Topology, Topology]) -> None:
    present, topology = two
    number = best_labels(present, topology)
    assert sorted(number.tolist()) == list(range(present.nodes))
    found = kept(present, under(number, topology))
    orders = itertools.permutations(range(present.nodes))
    best = max(kept(present, under(np.array(order), topology)) for order in orders)
    assert kept(present, topology) <= found <= best
    assert found == best  # on six nodes the starts reach it


@pytest.mark.parametrize(
    "same", [ring(12), torus(4, 4), chordal_ring(16, 3)], ids=["ring", "torus", "chords"]
)
def test_the_same_topology_under_other_numbers_moves_nothing(same: Topology) -> None:
    for seed in range(5):
        other = under(np.random.default_rng(seed).permutation(same.nodes), same)
        assert links_of(under(best_labels(same, other), other)) == links_of(same)
    assert best_labels(same, same).tolist() == list(range(same.nodes))


def test_no_exchange_of_two_nodes_keeps_more_on_larger_topologies() -> None:
    generator = np.random.default_rng(3)
    present = torus(5, 6)
    topology = Topology.of(30, generator.integers(0, 15, (60, 2)) * [1, 1] + [0, 15])
    number = best_labels(present, topology)
    found = kept(present, under(number, topology))
    assert found > kept(present, topology)
    for one, other in itertools.combinations(range(30), 2):
        exchange_nodes = number.copy()
        exchange_nodes[[one, other]] = exchange_nodes[[other, one]]
        assert kept(present, under(exchange_nodes, topology)) <= found
    assert best_labels(present, topology).tolist() == number.tolist()


def test_too_many_nodes_keep_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_moves, "MOST_NODES", 3)
    assert best_labels(ring(4), Topology.of(4, [(0, 2), (1, 3), (0, 3)])).tolist() == [0, 1, 2, 3]


def test_a_renamed_result_is_as_good_and_its_trail_leads_to_it() -> None:
    application, limits = every_pair(9), machine(6, max_degree=3, max_edges=8, link_speed=3.0)
    found = co_optimise(application, limits, LoopOptions(patience=6, seed=2))
    present = under(np.array([3, 5, 0, 2, 1, 4]), found.topology)
    again = relabel_nodes(application, limits, present, found)
    used = np.bincount(again.solution.route, minlength=again.topology.links) > 0
    assert {tuple(pair) for pair in again.topology.pairs[used].tolist()} <= links_of(present)
    assert again.throughput == found.throughput
    assert sorted(again.solution.link_load.tolist()) == sorted(found.solution.link_load.tolist())
    assert sorted(again.solution.node_load.tolist()) == sorted(found.solution.node_load.tolist())
    now = links_of(again.topology)
    for one in reversed(again.trail[again.best_iteration + 1 :]):
        assert one.links == len(now)
    back = links_of(again.topology)
    for one in reversed(again.trail[1 : again.best_iteration + 1]):
        inserted, removed = (
            {(min(pair), max(pair)) for pair in pairs} for pairs in (one.inserted, one.removed)
        )
        assert inserted <= back
        back = back - inserted | removed
    assert len(back) == again.trail[0].links


def test_a_plan_moves_no_more_than_what_is_missing() -> None:
    """For a ring of kernels with a chord, where circuits are a ring in another order: one circuit comes."""
    application = Application.from_edges([*range(6), 0], [1, 2, 3, 4, 5, 0, 3], np.ones(7))
    limits = machine(6, max_degree=3, max_edges=7, link_speed=1.0, compute_speed=1.0)
    present = under(np.array([0, 3, 1, 5, 2, 4]), ring(6))
    case = CircuitPlanCase(application=application, machine=limits, present=present)
    plan = plan_circuits(case, CircuitSearchOptions(trials=50)).plan
    assert plan.removed == ()
    assert len(plan.inserted) == 1
    assert (plan.throughput, plan.present_throughput) == (1.0, 0.5)
