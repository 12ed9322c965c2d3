"""Unsplit routes of least congestion: Ajwani et al. (2013), sections 3.1.3 and 3.2.2."""

from __future__ import annotations

from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.reconfiguration.kernels.routes import new_search, route_shortest
from mapping.reconfiguration.model.problem import Application, Level
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper.refinement import (
    Scale,
    build_guest,
    build_net,
    least_congested_path,
    longest_route,
    route_unsplit,
)
from registry.errors import InvalidValue
from tests.support.slow_local_update import (
    Case,
    Slow,
    Start,
    graph_of,
    machine_of,
    path_by_trying_all,
    start,
    started,
    topologies,
)


@given(data=st.data(), topology=topologies(least=2, most=7), flow=st.integers(0, 4))
def test_the_least_congested_path_is_the_best_of_all_paths(
    data: st.DataObject, topology: Topology, flow: int
) -> None:
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
    ("topology", "load", "source", "target", "said"),
    [
        (RING, [0, 0, 0], 0, 1, "has shape"),
        (RING, [0, 0, 0, 0], 0, 4, "target: is 4, not within 0 .. 3"),
        (RING, [0, 0, 0, 0], -1, 1, "source: is -1"),
        (Topology.of(3, [[0, 1]]), [0], 0, 2, "no path of links connects node 0 and node 2"),
    ],
)
def test_a_path_that_cannot_be_is_refused(
    topology: Topology, load: list[int], source: int, target: int, said: str
) -> None:
    with pytest.raises(InvalidValue, match=said):
        least_congested_path(topology, load, source, target, 1)


@given(given_case=started())
def test_shortest_routes_are_as_long_as_networkx_says(given_case: tuple[Case, Start]) -> None:
    case, (net, guest, state) = given_case
    search = new_search(case.topology.nodes, len(case.topology.source), state.route.shape[1])
    assert route_shortest(net, guest, state, search) == -1
    far = dict(nx.all_pairs_shortest_path_length(graph_of(case.topology)))
    for e, (one, other) in enumerate(zip(guest.source, guest.target, strict=True)):
        assert state.length[e] == far[int(state.node[one])][int(state.node[other])]


def slowly_routed(case: Case, node: list[int]) -> list[list[int]]:
    """Section 3.2.2: shortest paths, then each edge, heaviest first, where the throughput rises."""
    state = start(case, np.array(node, np.int32)).state
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
    case, (_, _, state) = given_case
    routes = [state.route[e, :count].tolist() for e, count in enumerate(state.length.tolist())]
    assert routes == slowly_routed(case, state.node.tolist())


def test_two_heavy_flows_take_different_ways_only_where_that_raises_the_throughput() -> None:
    application = Application.from_edges([0, 1, 1], [2, 2, 3], [4, 4, 1], vertex_weight=[1, 1, 1, 1])
    node = np.array([0, 0, 2, 3], np.int32)
    for compute_speed, ways in ((1000, 2), (0.01, 1)):  # where nodes are slow, links do not matter
        case = Case(application, RING, machine_of(4, compute_speed=compute_speed))
        state = start(case, node).state
        assert len({tuple(state.route[e, :2].tolist()) for e in (0, 1)}) == ways


def test_no_route_where_a_topology_falls_apart() -> None:
    application, topology = Application.from_edges([0], [1], [1]), Topology.of(3, [[0, 1]])
    guest = build_guest(Level.of(application), Scale.of(application, machine_of(3)))
    with pytest.raises(InvalidValue, match="node 1 and node 2"):
        route_unsplit(build_net(topology), guest, np.array([1, 2], np.int32), 2)


@pytest.mark.parametrize(("nodes", "room"), [(1, 1), (2, 1), (64, 63), (65, 63), (200, 199)])
def test_routes_have_room_for_the_diameter(nodes: int, room: int) -> None:
    line = np.stack((np.arange(nodes - 1), np.arange(1, nodes)), axis=1)
    chords = np.stack((np.zeros(nodes - 1, int), np.arange(1, nodes)), axis=1)  # a star
    topology = Topology.of(nodes, line if nodes > 100 else chords)
    assert longest_route(topology) == room
