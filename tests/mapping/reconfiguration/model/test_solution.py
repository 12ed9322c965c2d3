"""Loads and throughput of a partition and its routes: Ajwani et al. (2013), section 2.2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from mapping.reconfiguration.model.problem import Application
from mapping.reconfiguration.model.solution import evaluate
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper.refinement import flat_routes
from registry.errors import InvalidValue
from tests.support.slow_local_update import Case, Slow, Start, machine_of, performance_vector, started

RING = Topology.of(4, [[0, 1], [1, 2], [2, 3], [0, 3]])  # rows 01, 03, 12, 23


@given(given_case=started())
def test_a_solution_has_the_loads_and_throughputs_of_its_routes(given_case: tuple[Case, Start]) -> None:
    case, (_, _, state) = given_case
    ptr = np.concatenate(([0], np.cumsum(state.length)))
    solution = evaluate(*case, state.node, ptr, flat_routes(state))
    slow = Slow(case, state, True)
    vector = [float(1 / load) if load else np.inf for load in slow.vector(slow.node, slow.routes)]
    np.testing.assert_allclose(performance_vector(solution, case.machine), vector)
    assert solution.throughput == min(solution.compute_throughput, solution.communication_throughput)
    assert solution.throughput == performance_vector(solution, case.machine)[0]
    assert solution.link_load.tolist() == [float(load) for load in slow.link_load(slow.routes)]
    assert solution.node_load.sum() == case.application.vertex_weight.sum()


PAIR = Application.from_edges([0], [1], [2], vertex_weight=[1, 3])


@pytest.mark.parametrize(
    ("node", "ptr", "route", "said"),
    [
        ([0, 1], [0, 0], [], "route of edge 0: it ends on node 0, not on node 1"),
        ([0, 1], [0, 1], [2], "route of edge 0: link 0 does not continue"),
        ([0, 1], [0, 1], [1], "it ends on node 3"),
        ([0, 1], [0, 2], [0], "route_ptr: is 2 at 1"),
        ([0, 1], [1, 1], [0], "does not rise from 0"),
        ([0, 1], [0, 1, 1], [0], "has 3 entries, not 2"),
        ([0, 4], [0, 1], [0], "node_of_vertex: is 4 at 1, not within 0 .. 3"),
        ([0], [0, 1], [0], "has 1 entries, not 2"),
        ([0, 1], [0, 1], [4], "route: is 4 at 0"),
        ([0, 0.5], [0, 1], [0], "whole numbers"),
    ],
)
def test_a_solution_that_does_not_fit_is_refused(node: Any, ptr: Any, route: Any, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        evaluate(PAIR, RING, machine_of(4), node, ptr, route)


def test_a_solution_needs_a_topology_of_the_machine() -> None:
    with pytest.raises(InvalidValue, match="is 4, the machine has 5"):
        evaluate(PAIR, RING, machine_of(5), [0, 1], [0, 1], [0])


def test_nothing_to_carry_leaves_communication_without_bound() -> None:
    solution = evaluate(PAIR, RING, machine_of(4, compute_speed=8), [2, 2], [0, 0], [])
    assert (solution.compute_throughput, solution.communication_throughput) == (2.0, np.inf)
    assert solution.throughput == 2.0
    assert not solution.node_load.flags.writeable
