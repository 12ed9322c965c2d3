"""Proposals for a switch in use, few moves of circuits, and our own search with nodes exchanged."""

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

from bench.papers.circuits.enumeration import maximal_topologies
from mapping.circuits import local_search, paper_partition, paper_seeds, search
from mapping.circuits import plan as few_moves
from mapping.circuits import plan as planning
from mapping.circuits.bounds import PINNED_NAMES, pinned_bound, pinned_bounds, throughput_bound
from mapping.circuits.local_search import TrialOptions, improve, search_from_seeds
from mapping.circuits.paper import LoopOptions, co_optimise
from mapping.circuits.paper_partition import LOADING, least_congested_path
from mapping.circuits.paper_seeds import repair_topology, ring, torus
from mapping.circuits.plan import best_labels, drop_unused_circuits, next_circuits, relabel_nodes
from mapping.circuits.problem import Application, LinkChange, Machine, Topology
from mapping.circuits.search import (
    choose_ends,
    exchange_edges,
    exchange_nodes,
    local_reroute,
    route_partition,
)
from mapping.circuits.solution import SearchResult, Solution
from mapping.cost.metrics import evaluate as judged
from mapping.distances.cost_model import CostModel
from mapping.placement.place import place
from mapping.questions.circuits import CircuitPlanCase, CircuitSearchOptions, plan_circuits
from registry.errors import InvalidValue
from registry.model import Allocation, Ints, Longs, Placement
from tests.support import reconfigure_problems
from tests.support.reconfigure_problems import HEAVY, applications, links_of, machine
from tests.support.search_problems import InterruptAt
from tests.support.small_fabrics import given_placement
from tests.support.sure import sure

LIMITS = machine(6, max_degree=3, max_edges=7)
FEW = TrialOptions(trials=60)


def proposed(options: TrialOptions | None = None, **more: Any) -> planning.NextCircuits:
    given: dict[str, Any] = {"reconfiguration_seconds": 1.0} | more
    return next_circuits(reconfigure_problems.HEAVY, LIMITS, ring(6), range(6), options or FEW, **given)


@given(applications(), reconfigure_problems.machines(), st.data())
def test_direct_circuits_keep_limits(application: Application, limits: Machine, data: st.DataObject) -> None:
    node = reconfigure_problems.on_any(data, application, limits.nodes)
    made = planning.direct_circuits(application, limits, node)
    made.require(limits)
    assert links_of(made) == links_of(planning.direct_circuits(application, limits, node))


def test_pairs_that_exchange_most_get_direct_circuits() -> None:
    """Three pairs far apart on six nodes, each with two ports: all three are joined."""
    heavy = Application.from_edges([0, 1, 2, 0], [3, 4, 5, 1], [9.0, 8.0, 7.0, 0.0], connected=False)
    made = planning.direct_circuits(heavy, machine(6, max_degree=2, max_edges=6), range(6))
    assert {(0, 3), (1, 4), (2, 5)} <= links_of(made)
    assert made.connected()


@given(applications(), reconfigure_problems.topologies(min_nodes=2, max_nodes=6), st.data())
def test_a_proposal_keeps_vertices_limits_and_what_is_there_and_to_the_certified_bounds(
    application: Application, topology: Topology, data: st.DataObject
) -> None:
    limits = data.draw(reconfigure_problems.machines(min_nodes=topology.nodes, max_nodes=topology.nodes))
    present = repair_topology(topology, limits, np.random.default_rng(0))
    node = reconfigure_problems.on_any(data, application, limits.nodes)
    found = next_circuits(application, limits, present, node, FEW, reconfiguration_seconds=0.5)
    found.found.topology.require(limits)
    for solution in (found.found.solution, sure(found.present)):
        assert solution.node_of_vertex.tolist() == node.tolist()
    assert found.gain >= 1.0
    if found.gain == 1.0:
        assert links_of(found.found.topology) == links_of(present)
        assert found.break_even_seconds == math.inf
    else:
        after = found.break_even_seconds
        assert found.gain * (after - 0.5) == pytest.approx(after)
    bounds = pinned_bounds(application, limits, node)
    assert [bound.name for bound in bounds] == list(PINNED_NAMES)
    lowest = pinned_bound(application, limits, node)
    assert lowest.throughput == min(bound.throughput for bound in bounds)
    assert found.found.throughput <= lowest.throughput * (1 + 1e-9)


@given(
    applications(max_vertices=5, max_more=6),
    reconfigure_problems.machines(min_nodes=4, max_nodes=4),
    st.data(),
)
@settings(max_examples=40)
def test_no_topology_is_above_bounds(application: Application, limits: Machine, data: st.DataObject) -> None:
    node = reconfigure_problems.on_any(data, application, 4)
    bound = pinned_bound(application, limits, node).throughput * (1 + 1e-9)
    for topology in maximal_topologies(limits):
        assert route_partition(application, topology, limits, node).communication_throughput <= bound


def test_bounds_are_what_their_proofs_say() -> None:
    """Four vertices on four nodes of two ports, all pairs exchange 1: 12 bytes leave, 4 circuits carry 8."""
    limits = machine(4, max_degree=2, max_edges=4, link_speed=6.0)
    found = {
        bound.name: bound.throughput
        for bound in pinned_bounds(reconfigure_problems.every_pair(4), limits, range(4))
    }
    assert found["heaviest-flow"] == 6.0  # a circuit carries 1
    assert found["node-ports"] == pytest.approx(6.0 / 1.5)  # two circuits carry 3
    assert found["shared-port"] == pytest.approx(6.0 / 2.0)  # of three flows two share a port
    assert found["distances"] == pytest.approx(6.0 / 2.0)  # four pairs are one circuit away, two are two
    more = pinned_bounds(reconfigure_problems.every_pair(4), replace(limits, max_edges=6), range(4))
    assert [bound.throughput for bound in more] == list(found.values())  # ports allow four circuits
    # three circuits: three pairs are two circuits away, and no flows share a port
    tree = machine(4, max_degree=3, max_edges=3, link_speed=6.0)
    three = pinned_bounds(reconfigure_problems.every_pair(4), tree, range(4))
    assert [bound.throughput for bound in three] == pytest.approx([6.0, 6.0, np.inf, 6.0 / 3.0])
    # eight nodes of two ports: 2, 2, 2 and 1 of the others are 1, 2, 3 and 4 circuits away
    wide = machine(8, max_degree=2, max_edges=8, link_speed=8.0)
    assert pinned_bounds(reconfigure_problems.every_pair(8), wide, range(8))[-1].throughput == pytest.approx(
        1
    )
    best = next_circuits(
        reconfigure_problems.every_pair(4), limits, ring(4), range(4), FEW, reconfiguration_seconds=0.0
    )
    assert best.found.throughput == 2.0  # of a ring of four one link carries three pairs: they do not see it


def test_circuits_of_a_far_present_topology_are_left_behind() -> None:
    """Twelve pairs of opposite nodes on a ring of 24: a circuit for nearly each, as no few changes would."""
    opposite = Application.from_edges(range(12), range(12, 24), [1.0] * 12, connected=False)
    limits, options = machine(24, max_degree=3, max_edges=36), TrialOptions(trials=20)
    found = next_circuits(opposite, limits, ring(24), range(24), options, reconfiguration_seconds=1.0)
    assert found.found.throughput == 1.0
    own = {(node, node + 12) for node in range(12)} & links_of(found.found.topology)
    assert len(own) >= 10  # a flow or two may take the ring, which carries nothing else
    assert links_of(ring(24)) <= links_of(found.found.topology)
    trail = found.found.trail
    assert [one.number for one in trail] == list(range(len(trail)))
    assert trail[0].throughput == sure(found.present).throughput
    assert trail[-1].best == 1.0
    assert found.gain == pytest.approx(1.0 / trail[0].throughput)


def test_the_gain_is_known_as_far_as_flows_circuits_and_times_are() -> None:
    alone = Application.from_edges([0], [1], [5.0])
    bounds = pinned_bounds(alone, machine(3), [2, 2])
    assert {bound.throughput for bound in bounds} == {math.inf}
    still = next_circuits(alone, machine(3), ring(3), [2, 2], reconfiguration_seconds=1.0)
    assert (still.gain, still.found.throughput) == (1.0, math.inf)
    assert links_of(still.found.topology) == links_of(ring(3))
    unknown = next_circuits(
        reconfigure_problems.every_pair(4), machine(4), None, range(4), reconfiguration_seconds=1.0
    )
    assert (unknown.present, math.isnan(unknown.gain)) == (None, True)
    no_time = proposed(reconfiguration_seconds=None)
    assert no_time.gain > 1.0
    assert math.isnan(unknown.break_even_seconds + no_time.break_even_seconds)
    assert [planning.break_even_seconds(gain, 3.0) for gain in (2.0, 1.0, math.inf)] == [6.0, math.inf, 3.0]


def test_what_ranks_compute_limits_the_gain() -> None:
    free = proposed()
    now = sure(free.present).throughput
    capped = proposed(compute_throughput=now * 1.05)
    assert free.gain > 1.05
    assert capped.gain == pytest.approx(1.05)
    assert capped.break_even_seconds > free.break_even_seconds
    idle = proposed(compute_throughput=now / 2)
    assert (idle.gain, idle.break_even_seconds) == (1.0, math.inf)
    assert links_of(idle.found.topology) == links_of(ring(6))


@pytest.mark.parametrize(
    ("what", "call", "trials"),
    [
        ("plan.route_partition", 2, 0),  # routes of the second topology are being made
        ("plan.local_reroute", 1, 0),  # those of the first search are being settled
        ("plan.route_partition", 2, None),  # moves become fewer
    ],
)
def test_an_interrupt_keeps_what_was_found(
    what: str, call: int, trials: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = getattr(search, what.split(".")[1]), []

    def interrupted(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == call:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(f"mapping.circuits.{what}", interrupted)
    found = proposed(None if trials is None else TrialOptions(trials=trials))
    assert not found.found.complete
    assert found.found.throughput >= sure(found.present).throughput
    assert trials is not None or found.gain > 1.0


def test_an_interrupt_of_the_first_search_keeps_what_it_had() -> None:
    def interrupt(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        if best is not None:
            raise KeyboardInterrupt

    found = proposed(progress=interrupt)
    assert (found.found.complete, found.gain > 1.0) == (False, True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reconfiguration_seconds": -1.0}, "reconfiguration_seconds: is -1.0"),
        ({"reconfiguration_seconds": math.nan}, "reconfiguration_seconds: is nan"),
        ({"node_of_vertex": [0]}, "node_of_vertex: has 1 entries, not 2"),
        ({"node_of_vertex": [0, 4]}, "node_of_vertex: is 4 at 1, not within 0 .. 3"),
        ({"present": ring(5)}, "nodes: is 5, the machine has 4"),
        ({"compute_throughput": 0.0}, "compute_throughput: is"),
        ({"compute_throughput": -1.0}, "compute_throughput: is"),
        ({"compute_throughput": math.nan}, "compute_throughput: is"),
    ],
)
def test_what_cannot_be_is_named(change: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"present": ring(4), "node_of_vertex": [0, 1], "reconfiguration_seconds": 1.0}
    pair = Application.from_edges([0], [1], [1.0])
    with pytest.raises(InvalidValue, match=message):
        next_circuits(pair, machine(4), **good | change)


@given(applications(), reconfigure_problems.machines(min_nodes=2, max_nodes=6), st.data())
def test_relieving_leaves_no_better(application: Application, limits: Machine, data: st.DataObject) -> None:
    node = reconfigure_problems.on_any(data, application, limits.nodes)
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
        one, other = int(node[application.source[edge]]), int(node[application.target[edge]])
        better = least_congested_path(topology, np.maximum(load, 0.0), one, other, flow)
        assert load[better].max() + flow >= worst * (1 - 1e-9)


def test_links_that_are_equally_hot_are_relieved_one_by_one() -> None:
    """In each of two squares two flows share a link: either square alone relieved leaves the other as hot."""
    square = [(0, 1), (1, 2), (2, 3), (0, 3)]
    topology = Topology.of(8, [*square, *((one + 4, other + 4) for one, other in square), (3, 7)])
    ends = [0, 0, 4, 4], [2, 1, 6, 5]
    twice = Application.from_edges(*ends, [2.0] * 4, vertex_weight=np.ones(8), connected=False)
    found = route_partition(twice, topology, machine(8, max_degree=3, max_edges=9), range(8))
    assert found.throughput == 1 / 2
    pair = Application.from_edges([0], [1], [2.0])
    found = route_partition(pair, ring(5), machine(5, link_speed=4.0), [0, 2])
    assert (len(found.route), found.communication_throughput) == (2, 2.0)


def test_circuits_that_are_not_needed_are_not_moved() -> None:
    """On a ring of eight one pair needs a circuit; that another search would move more does not show."""
    heavy = Application.from_edges([*range(8), 0], [*range(1, 8), 0, 4], [1.0] * 8 + [10.0])
    limits = machine(8, max_degree=4, max_edges=12)
    found = next_circuits(heavy, limits, ring(8), range(8), FEW, reconfiguration_seconds=1.0)
    assert found.found.throughput == pytest.approx(1 / 10)
    assert links_of(found.found.topology) == links_of(ring(8)) | {(0, 4)}


def test_other_circuits_of_equal_throughput_leave_the_present_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """One flow between opposite nodes of a ring has no higher throughput over a circuit of its own."""
    flow = Application.from_edges([0], [2], [1.0], vertices=4, connected=False)
    limits = machine(4, max_degree=2, max_edges=4)
    direct = Topology.of(4, [(0, 2), (0, 1), (2, 3), (1, 3)])

    def found_direct(one: Any, two: Any, start: SearchResult, *rest: Any, **options: Any) -> SearchResult:
        return replace(start, topology=direct, solution=route_partition(flow, direct, limits, range(4)))

    monkeypatch.setattr(planning, "improve", found_direct)
    plan = next_circuits(flow, limits, ring(4), range(4), reconfiguration_seconds=1.0)
    assert plan.found.throughput == sure(plan.present).throughput
    assert plan.found.topology.pairs.tolist() == ring(4).pairs.tolist()
    assert plan.gain == 1.0


def under(number: Longs, topology: Topology) -> Topology:
    return Topology.of(topology.nodes, number[topology.pairs])


def kept(present: Topology, topology: Topology) -> int:
    return len(links_of(present) & links_of(topology))


@st.composite
def two_topologies(draw: st.DrawFn) -> tuple[Topology, Topology]:
    nodes = draw(st.integers(2, 6))
    pairs = st.sets(st.sampled_from(list(itertools.combinations(range(nodes), 2))), min_size=1)
    return Topology.of(nodes, sorted(draw(pairs))), Topology.of(nodes, sorted(draw(pairs)))


@given(two_topologies())
@settings(max_examples=30)
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
    "same", [ring(12), torus(4, 4), paper_seeds.chordal_ring(16, 3)], ids=["ring", "torus", "chord"]
)
def test_the_same_topology_under_other_numbers_moves_nothing(same: Topology) -> None:
    for seed in range(5):
        other = under(np.random.default_rng(seed).permutation(same.nodes), same)
        assert links_of(under(best_labels(same, other), other)) == links_of(same)
    assert best_labels(same, same).tolist() == list(range(same.nodes))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_moves, "MOST_NODES", same.nodes - 1)  # beyond, nodes keep their numbers
        assert best_labels(same, other).tolist() == list(range(same.nodes))


def test_no_exchange_of_two_nodes_keeps_more_on_larger_topologies() -> None:
    generator = np.random.default_rng(3)
    present = torus(5, 6)
    topology = Topology.of(30, generator.integers(0, 15, (60, 2)) * [1, 1] + [0, 15])
    number = best_labels(present, topology)
    found = kept(present, under(number, topology))
    assert found > kept(present, topology)
    for pair in itertools.combinations(range(30), 2):
        exchanged = number.copy()
        exchanged[[*pair]] = exchanged[[*reversed(pair)]]
        assert kept(present, under(exchanged, topology)) <= found
    assert best_labels(present, topology).tolist() == number.tolist()


def test_a_renamed_result_is_as_good_and_its_trail_leads_to_it() -> None:
    application = reconfigure_problems.every_pair(9)
    limits = machine(6, max_degree=3, max_edges=8, link_speed=3.0)
    found = co_optimise(application, limits, LoopOptions(patience=6, seed=2))
    present = under(np.array([3, 5, 0, 2, 1, 4]), found.topology)
    again = relabel_nodes(application, limits, present, found)
    used = np.bincount(again.solution.route, minlength=again.topology.links) > 0
    assert {tuple(pair) for pair in again.topology.pairs[used].tolist()} <= links_of(present)
    assert again.throughput == found.throughput
    for name in ("link_load", "node_load"):
        load = getattr(again.solution, name)
        assert sorted(load.tolist()) == sorted(getattr(found.solution, name).tolist())
    links = links_of(again.topology)
    assert {one.links for one in again.trail[again.best_iteration + 1 :]} <= {len(links)}
    for step in reversed(again.trail[1 : again.best_iteration + 1]):
        inserted, removed = ({(min(p), max(p)) for p in pairs} for pairs in (step.inserted, step.removed))
        assert inserted <= links
        links = links - inserted | removed
    assert len(links) == again.trail[0].links


def test_unused_circuits_stay_where_the_present_ones_would_leave_a_node_out() -> None:
    flow = Application.from_edges([0], [1], [1.0], vertices=4, connected=False)
    limits, present = machine(4, max_degree=2, max_edges=3), Topology.of(4, [(0, 2), (1, 2), (1, 3)])
    path = Topology.of(4, [(0, 1), (1, 2), (2, 3)])
    found = next_circuits(flow, limits, path, range(4), FEW, reconfiguration_seconds=None).found
    found = replace(found, topology=path, solution=route_partition(flow, path, limits, range(4)))
    assert drop_unused_circuits(flow, limits, present, found) is found


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
    monkeypatch.setattr(search, "coarsen", interrupt)  # before our own search has begun
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
    flows = search.traffic(application, node, topology.nodes)
    costs = CostModel(routing="shortest-paths")
    return judged(search.network(topology), flows, placement, costs=costs).congestion_seconds


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


@given(applications(min_vertices=3), reconfigure_problems.topologies(min_nodes=2, max_nodes=7), st.data())
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

    monkeypatch.setattr(search, "place", interrupted)
    path = Application.from_edges([0, 1, 2], [1, 2, 3], [1.0, 1.0, 1.0])
    with pytest.raises(KeyboardInterrupt):
        exchange_nodes(path, ring(4), np.array([0, 2, 1, 3], np.int32))


@given(applications(), reconfigure_problems.machines(min_nodes=2), st.data())
@settings(max_examples=40)
def test_a_partition_keeps_limits(application: Application, limits: Machine, data: st.DataObject) -> None:
    paper_seeds.condensed_topology(
        application, limits, reconfigure_problems.on_any(data, application, limits.nodes)
    ).require(limits)


def test_a_partition_that_fits_the_switch_keeps_all_its_links() -> None:
    application = Application.from_edges([0, 1, 2, 3], [1, 2, 3, 0], [1.0] * 4)
    limits = machine(4, max_degree=2, max_edges=4)
    found = paper_seeds.condensed_topology(application, limits, np.array([2, 0, 3, 1], np.int32))
    assert links_of(found) == {(0, 2), (0, 3), (1, 3), (1, 2)}
    line = Topology.of(4, [(0, 1), (1, 2), (2, 3)])
    assert (ring(4).beyond(line), line.beyond(ring(4)), torus(1, 4).beyond(ring(4))) == (((0, 3),), (), ())


def test_loading_kernels_is_reported_once() -> None:
    report = MagicMock()
    paper_partition._load_kernels.cache_clear()
    search._load_engine.cache_clear()
    search.load_search_kernels(report)
    search.load_search_kernels(report)
    assert [call.args[0] for call in report.call_args_list] == [LOADING, LOADING]


@given(reconfigure_problems.topologies(min_nodes=1, max_nodes=7), st.integers(1, 9), st.integers(0, 5))
@settings(max_examples=40)
def test_gathered_are_together_and_shaken_near(topology: Topology, vertices: int, seed: int) -> None:
    node = np.arange(vertices, dtype=np.int32) % topology.nodes
    together = search.gather(topology, node, np.random.default_rng(seed))
    assert (together == together[0]).all()
    assert topology.degree[together[0]] == topology.degree.max()
    moved = search.shake(topology, node, np.random.default_rng(seed))
    for before, after in zip(node.tolist(), moved.tolist(), strict=True):
        assert before == after or topology.link_between(before, after) >= 0


def test_of_many_vertices_a_few_hundred_are_shaken() -> None:
    for vertices, low, high in ((1_000, 150, 250), (20_000, 300, 500)):
        node = np.zeros(vertices, np.int32)
        moved = search.shake(ring(8), node, np.random.default_rng(0))
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
