"""Refinement of a partition and its routes: Ajwani et al. (2013), section 3.2.3."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.reconfiguration.kernels import local_update
from mapping.reconfiguration.kernels.routes import PartitionState
from mapping.reconfiguration.kernels.workspace import new_workspace
from mapping.reconfiguration.model.problem import Application, Level
from mapping.reconfiguration.model.solution import evaluate
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper.partition import coarsen
from mapping.reconfiguration.paper.refinement import (
    BOUND,
    WHOLE,
    Refinement,
    Scale,
    build_guest,
    build_net,
    flat_routes,
    longest_route,
    project,
    refine,
    route_unsplit,
    set_loads,
)
from registry.errors import InvalidValue
from tests.support.slow_local_update import (
    Case,
    Start,
    cases,
    machine_of,
    performance_vector,
    started,
)


def refined(start: Start, depth: int | None, thorough: bool, steps: int = 1 << 62) -> int:
    """Return the number of steps of a refinement that does, or does not, route moved flows again."""
    work = new_workspace(*start, thorough)
    return int(local_update.refine(work, len(start.state.load) if depth is None else depth, steps))


@pytest.mark.parametrize("thorough", [False, True])
@given(given_case=started(), depth=st.integers(1, 4))
def test_a_bounded_search_makes_the_first_steps_of_the_whole_one(
    thorough: bool, given_case: tuple[Case, Start], depth: int
) -> None:
    _, (net, guest, state) = given_case
    node, route, length, load = (array.copy() for array in state)
    whole = PartitionState(
        node.astype(np.int32), route.astype(np.int32), length.astype(np.int32), load.astype(float)
    )
    made = refined(Start(net, guest, state), depth, thorough)
    assert refined(Start(net, guest, whole), None, thorough, made) == made
    assert all(np.array_equal(getattr(state, one), getattr(whole, one)) for one in PartitionState._fields)


def vector_of(case: Case, state: PartitionState) -> list[float]:
    ptr = np.concatenate(([0], np.cumsum(state.length)))
    solution = evaluate(*case, state.node, ptr, flat_routes(state))
    return [float(one) for one in performance_vector(solution, case.machine)]


@pytest.mark.parametrize("thorough", [False, True])
@given(given_case=started(whole=False), depth=st.none() | st.integers(1, 4))
def test_whatever_the_weights_a_refinement_ends_with_true_loads_and_no_worse_throughput(
    thorough: bool, given_case: tuple[Case, Start], depth: int | None
) -> None:
    case, (net, guest, state) = given_case
    before = vector_of(case, state)
    refined(Start(net, guest, state), depth, thorough)
    kept = state.load.copy()
    set_loads(net, guest, state)
    assert kept.tobytes() == state.load.tobytes()
    assert vector_of(case, state)[0] >= before[0] * (1 - 1e-12)


@given(case=cases(whole=False))
def test_seconds_on_the_grid_are_those_of_the_weights(case: Case) -> None:
    scale = Scale.of(case.application, case.machine)
    guest = build_guest(Level.of(case.application), scale)
    ratio = case.machine.compute_speed / case.machine.link_speed
    total = max(case.application.vertex_weight.sum(), case.application.weight.sum() * ratio)
    for value, weight in (
        (guest.vertex, case.application.vertex_weight),
        (guest.flow, case.application.weight * ratio),
    ):
        np.testing.assert_allclose(value / scale.vertex, weight, rtol=1e-12, atol=1e-15 * total)
        assert (np.rint(value / scale.unit) * scale.unit == value).all()
    assert max(guest.vertex.sum(), guest.flow.sum()) <= scale.unit * (2.0**52 + 32)


def test_whole_weights_and_speeds_are_not_rounded() -> None:
    application = Application.from_edges([0, 1], [1, 2], [11, 13], vertex_weight=[3, 5, 7])
    scale = Scale.of(application, machine_of(2, compute_speed=100, link_speed=500))
    guest = build_guest(Level.of(application), scale)
    assert (guest.vertex * 11 * 100 == guest.flow[0] * np.array([3, 5, 7.0]) * 500).all()


def test_edges_of_a_vertex_are_listed_from_the_heaviest() -> None:
    application = Application.from_edges([0, 0, 0, 1], [1, 2, 3, 2], [1, 5, 5, 9])
    guest = build_guest(Level.of(application), Scale.of(application, machine_of(2)))
    assert guest.edge[: guest.first[1]].tolist() == [1, 2, 0]
    assert guest.edge[guest.first[1] : guest.first[2]].tolist() == [3, 0]


def ring(size: int, weight: Any = 1.0) -> Application:
    vertex = np.arange(size)
    return Application.from_edges(vertex, (vertex + 1) % size, np.broadcast_to(weight, size))


@pytest.mark.parametrize("expansion", ["lowest", "highest"])
def test_projection_keeps_every_load(expansion: str) -> None:
    rng = np.random.default_rng(1)
    application = ring(400, rng.integers(1, 9, 400).astype(float))
    topology, machine = Topology.of(4, [[0, 1], [1, 2], [2, 3], [0, 3], [0, 2]]), machine_of(4)
    levels = coarsen(application, 4, expansion=expansion)
    assert len(levels[-1].vertex_weight) == 100
    net, scale = build_net(topology), Scale.of(application, machine)
    node = rng.integers(0, 4, 100).astype(np.int32)
    state = route_unsplit(net, build_guest(levels[-1], scale), node, longest_route(topology))
    before = state.load
    for fine, coarse in zip(reversed(levels[:-1]), reversed(levels[1:]), strict=True):
        state = project(net, build_guest(fine, scale), state, coarse)
        assert (state.load == before).all()
    ptr = np.concatenate(([0], np.cumsum(state.length)))
    evaluate(application, topology, machine, state.node, ptr, flat_routes(state))  # routes join


def test_a_vertex_leaves_the_heavy_node_and_a_flow_the_hot_link() -> None:
    topology, machine = Topology.of(3, [[0, 1], [1, 2], [0, 2]]), machine_of(3)
    application = Application.from_edges([0, 1], [1, 2], [4, 4], vertex_weight=[5, 5, 5])
    case = Case(application, topology, machine)
    net = build_net(topology)
    guest = build_guest(Level.of(application), Scale.of(application, machine))
    state = route_unsplit(net, guest, np.zeros(3, np.int32), longest_route(topology))
    assert vector_of(case, state)[0] == 1 / 15
    assert refine(net, guest, state, Refinement(depth=None)) == 2
    assert sorted(state.node.tolist()) == [0, 1, 2]
    assert vector_of(case, state)[0] == 1 / 5


@pytest.mark.parametrize("options", [{"depth": -1}, {"steps": -1}])
def test_a_search_of_less_than_no_depth_or_steps_is_refused(options: dict[str, Any]) -> None:
    application, topology = ring(4), Topology.of(2, [[0, 1]])
    guest = build_guest(Level.of(application), Scale.of(application, machine_of(2)))
    state = route_unsplit(build_net(topology), guest, np.zeros(4, np.int32), 1)
    with pytest.raises(InvalidValue, match=f"{next(iter(options.values()))}, must"):
        refine(build_net(topology), guest, state, Refinement(**options))


@pytest.mark.parametrize(("vertices", "same_as"), [(WHOLE, None), (WHOLE + 1, BOUND)])
def test_by_default_small_graphs_are_searched_whole_and_large_ones_to_a_bound(
    vertices: int, same_as: int | None
) -> None:
    rng = np.random.default_rng(3)
    application = ring(vertices, rng.integers(1, 9, vertices).astype(float))
    topology = Topology.of(6, [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [0, 5]])
    net, scale = build_net(topology), Scale.of(application, machine_of(6, link_speed=50))
    guest, node = build_guest(Level.of(application), scale), rng.integers(0, 6, vertices).astype(np.int32)
    found = [route_unsplit(net, guest, node.copy(), 5) for _ in range(3)]
    other = None if same_as else BOUND
    made = [
        refine(net, guest, one, Refinement(depth=depth))
        for one, depth in zip(found, (0, same_as, other), strict=True)
    ]
    assert made[0] == made[1]
    assert found[0].route.tobytes() == found[1].route.tobytes()
    assert (made[0] < made[2]) == (same_as == BOUND)
