"""Unsplit routes and the compiled local update against slow ones (Ajwani et al. 2013, 3.1.3 and 3.2)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.reconfiguration.kernels import local_update
from mapping.reconfiguration.kernels.routes import PartitionState, new_search, route_shortest
from mapping.reconfiguration.kernels.workspace import NONE, Step, compare, new_workspace
from mapping.reconfiguration.model.problem import Application, Level
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper import refinement
from mapping.reconfiguration.paper.refinement import least_congested_path, route_unsplit
from registry.errors import InvalidValue
from tests.support import slow_local_update as oracle
from tests.support.slow_local_update import Case, Slow, Start, machine_of, path_by_trying_all, started


def routes_of(state: PartitionState) -> list[list[int]]:
    return [state.route[e, :count].tolist() for e, count in enumerate(state.length.tolist())]


@pytest.mark.parametrize("thorough", [True, False])
@given(given_case=started())
def test_each_step_is_the_best_until_none_is_better(thorough: bool, given_case: tuple[Case, Start]) -> None:
    case, (net, guest, state) = given_case
    slow = Slow(case, state, thorough)
    work = new_workspace(net, guest, state, thorough)
    for _ in range(15):
        found = bool(local_update.find_best(work, len(state.load)))
        number = slow.make_best()
        assert (int(work.best.number[0]) if found else NONE) == number
        if not found:
            break
        local_update.make_best(work)
        assert slow.node == state.node.tolist()
        assert slow.routes == routes_of(state)


@pytest.mark.parametrize("thorough", [True, False])
@pytest.mark.parametrize("link_speed", [1.0, 4.0, 30.0])
@pytest.mark.parametrize("seed", range(2))
def test_what_is_known_to_be_stuck_changes_no_step(thorough: bool, link_speed: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ends, weight = rng.integers(0, 120, (2, 260)), rng.lognormal(0, 1, 260)
    weights: dict[str, Any] = {"vertex_weight": rng.lognormal(0, 1, 120), "connected": False}
    application = Application.from_edges(ends[0], ends[1], weight, **weights)
    nodes = np.arange(9)
    topology = Topology.of(9, np.concatenate([np.stack((nodes, (nodes + by) % 9), 1) for by in (1, 3)]))
    net, scale = (
        refinement.build_net(topology),
        refinement.Scale.of(application, machine_of(9, link_speed=link_speed)),
    )
    guest, node = (
        refinement.build_guest(Level.of(application), scale),
        rng.integers(0, 9, 120).astype(np.int32),
    )
    made = []
    for known in (True, False):
        state = route_unsplit(net, guest, node.copy(), 8)
        work = new_workspace(net, guest, state, thorough)
        if not known:
            work = work._replace(memo=work.memo._replace(until=np.zeros((0, 0))))
        steps: list[int] = []
        while len(steps) < 60 and local_update.find_best(work, len(state.load)):
            steps.append(int(work.best.number[0]))
            local_update.make_best(work)
        made.append(steps)
    assert made[0] == made[1]
    assert made[0]


def step_of(before: list[int], after: list[int]) -> Step:
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    old = np.array(sorted((old for old, _ in changed), reverse=True), float)
    new = np.array(sorted((new for _, new in changed), reverse=True), float)
    return Step(np.zeros(1, np.int64), np.full(1, len(changed)), old, new)


@given(data=st.data(), size=st.integers(1, 8))
def test_comparing_what_changes_is_comparing_whole_sorted_vectors(data: st.DataObject, size: int) -> None:
    loads = st.lists(st.integers(0, 4), min_size=size, max_size=size)
    now, one, other = data.draw(loads), data.draw(loads), data.draw(loads)
    first, second = sorted(one, reverse=True), sorted(other, reverse=True)
    sign = int(compare(step_of(now, one), step_of(now, other)))
    assert np.sign(sign) == (first > second) - (first < second)


@given(data=st.data(), topology=oracle.topologies(least=2, most=7), flow=st.integers(0, 4))
def test_the_least_congested_path_is_the_best(data: st.DataObject, topology: Topology, flow: int) -> None:
    size, last = len(topology.source), topology.nodes - 1
    load = data.draw(st.lists(st.integers(0, 6), min_size=size, max_size=size))
    source, target = data.draw(st.integers(0, last)), data.draw(st.integers(0, last))
    found = least_congested_path(topology, load, source, target, flow)
    slow = path_by_trying_all(topology, [Fraction(one) for one in load], source, target, Fraction(flow))
    assert found.tolist() == slow
    assert found.dtype == np.int32


RING = Topology.of(4, [[0, 1], [1, 2], [2, 3], [0, 3]])  # rows 01, 03, 12, 23


def test_a_path_goes_round_a_hot_link_and_through_one_that_it_cannot_avoid() -> None:
    assert least_congested_path(RING, [5, 0, 0, 0], 0, 1, 1).tolist() == [1, 3, 2]
    assert least_congested_path(RING, [5, 0, 0, 5], 0, 1, 1).tolist() == [0]
    assert least_congested_path(RING, [0, 0, 0, 0], 0, 2, 1).tolist() == [0, 2]
    assert least_congested_path(RING, [9, 9, 9, 9], 3, 3, 1).tolist() == []


@pytest.mark.parametrize(
    ("topology", "load", "source", "target", "message"),
    [
        (RING, [0, 0, 0], 0, 1, "has shape"),
        (RING, [0, 0, 0, 0], 0, 4, "target: is 4, not within 0 .. 3"),
        (RING, [0, 0, 0, 0], -1, 1, "source: is -1"),
        (Topology.of(3, [[0, 1]]), [0], 0, 2, "no path of links connects node 0 and node 2"),
    ],
)
def test_a_path_that_cannot_be_is_refused(
    topology: Topology, load: list[float], source: int, target: int, message: str
) -> None:
    with pytest.raises(InvalidValue, match=message):
        least_congested_path(topology, load, source, target, 1)


def slowly_routed(case: Case, node: list[int]) -> list[list[int]]:
    """Section 3.2.2: shortest paths, then each edge, heaviest first, where the throughput rises."""
    state = oracle.start(case, np.array(node, np.int32)).state
    slow = Slow(case, state, True)
    free = [Fraction(0)] * len(case.topology.source)
    slow.routes = [
        path_by_trying_all(case.topology, free, node[one], node[other], Fraction(0))
        for one, other in slow.ends
    ]
    for e in sorted(range(len(slow.ends)), key=lambda e: (-slow.flow[e], e)):
        routes = slow.rerouted(e)
        if slow.vector(slow.node, routes)[0] < slow.vector(slow.node, slow.routes)[0]:
            slow.routes = routes
    return slow.routes


@given(given_case=started())
def test_unsplit_routing_is_shortest_paths_relieved_by_falling_weight(given_case: tuple[Case, Start]) -> None:
    case, (net, guest, state) = given_case
    assert routes_of(state) == slowly_routed(case, state.node.tolist())
    search = new_search(case.topology.nodes, len(case.topology.source), state.route.shape[1])
    assert route_shortest(net, guest, state, search) == -1
    far = dict(nx.all_pairs_shortest_path_length(oracle.graph_of(case.topology)))
    for e, (one, other) in enumerate(zip(guest.source, guest.target, strict=True)):
        assert state.length[e] == far[int(state.node[one])][int(state.node[other])]


def test_two_heavy_flows_take_different_ways_only_where_that_raises_the_throughput() -> None:
    application = Application.from_edges([0, 1, 1], [2, 2, 3], [4, 4, 1], vertex_weight=[1, 1, 1, 1])
    node = np.array([0, 0, 2, 3], np.int32)
    for compute_speed, ways in ((1000, 2), (0.01, 1)):  # where nodes are slow, links do not matter
        case = Case(application, RING, machine_of(4, compute_speed=compute_speed))
        state = oracle.start(case, node).state
        assert len({tuple(state.route[e, :2].tolist()) for e in (0, 1)}) == ways
    apart = Case(Application.from_edges([0], [1], [1]), Topology.of(3, [[0, 1]]), machine_of(3))
    with pytest.raises(InvalidValue, match="node 1 and node 2"):
        oracle.start(apart, np.array([1, 2], np.int32))


@pytest.mark.parametrize(("nodes", "room"), [(1, 1), (2, 1), (64, 63), (65, 63), (200, 199)])
def test_routes_have_room_for_the_diameter(nodes: int, room: int) -> None:
    node = np.arange(1, nodes)
    before = node - 1 if nodes > 100 else np.zeros(nodes - 1, int)  # a line, or a star
    assert refinement.longest_route(Topology.of(nodes, np.stack((before, node), axis=1))) == room
