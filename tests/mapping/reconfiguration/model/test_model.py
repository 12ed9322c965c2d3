"""Applications, machines, topologies and solutions of circuit plans (Ajwani et al. 2013, section 2.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.reconfiguration.model.problem import Application
from mapping.reconfiguration.model.solution import evaluate
from mapping.reconfiguration.model.topology import Topology
from mapping.reconfiguration.paper.refinement import flat_routes
from registry.errors import InvalidValue
from registry.model import Profile
from tests.support.reconfigure_problems import graph_of, links_of, machine, topologies
from tests.support.slow_local_update import Case, Slow, Start, machine_of, performance_vector, started

NAN = float("nan")


def test_both_directions_and_repeats_of_an_edge_are_summed_and_loops_left_out() -> None:
    found = Application.from_edges([0, 1, 1, 2, 2], [1, 0, 0, 2, 1], [1.0, 2.0, 4.0, 99.0, 8.0])
    assert (found.source.tolist(), found.target.tolist()) == ([0, 1], [1, 2])
    assert (found.weight.tolist(), found.vertex_weight.tolist()) == ([7.0, 8.0], [1.0, 1.0, 1.0])
    profile = Profile.from_edges([0, 1, 2], [1, 0, 0], [3.0, 4.0, 5.0])
    found = Application.of_profile(profile, [2.0, 0.0, 1.0])
    assert (found.source.tolist(), found.target.tolist()) == ([0, 0], [1, 2])
    assert (found.weight.tolist(), found.vertex_weight.tolist()) == ([7.0, 5.0], [2.0, 0.0, 1.0])


def test_a_disconnected_application_is_refused_naming_a_vertex_unless_it_is_allowed() -> None:
    with pytest.raises(InvalidValue, match="vertex 2 and vertex 0: the application has 2"):
        Application.from_edges([0, 2], [1, 3], [1.0, 1.0])
    found = Application.from_edges([0, 2], [1, 3], [1.0, 1.0], connected=False)
    assert (found.vertices, found.edges) == (4, 2)
    idle = Profile.from_edges([0], [1], [1.0], ranks=3)
    with pytest.raises(InvalidValue, match="vertex 2 and vertex 0"):
        Application.of_profile(idle)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vertex_weight": []}, "at least one vertex"),
        ({"vertex_weight": [1.0, -2.0, 1.0]}, "vertex_weight: is -2.0 at 1"),
        ({"vertex_weight": [1.0, 1.0, NAN]}, "vertex_weight: is nan at 2"),
        ({"weight": [1.0, float("inf")]}, r"Application.weight: is inf at 1"),
        ({"weight": [1.0]}, "has 1 entries, not 2"),
        ({"source": [0, 2], "target": [1, 2]}, "row 1 connects 2 and 2"),
        ({"source": [0, 2], "target": [1, 1]}, "row 1 connects 2 and 1"),
        ({"target": [1, 3]}, "row 1 connects 1 and 3"),
        ({"source": [0, 0], "target": [2, 1]}, "row 1, 0 and 1, repeats or goes back"),
        ({"source": [0, 0], "target": [1, 1]}, "row 1, 0 and 1, repeats or goes back"),
    ],
)
def test_rows_and_weights_that_cannot_be_are_named(change: dict[str, Any], message: str) -> None:
    good = Application.from_edges([0, 1], [1, 2], [1.0, 2.0])
    with pytest.raises(InvalidValue, match=message):
        replace(good, **change)


@pytest.mark.parametrize(
    ("edges", "more", "message"),
    [
        (([0, 1], [1, 2], [1.0, NAN]), {}, "weight: is nan at 1"),
        (([0, 1], [1, 2], [1.0]), {}, "weight: has 1 entries, not 2"),
        (([0, 1], [1], [1.0, 1.0]), {}, "differ in length: 2 and 1"),
        (([0, -1], [1, 2], [1.0, 1.0]), {}, "source: is -1 at 1, not within 0 .. 2"),
        (([0, 1], [1, 5], [1.0, 1.0]), {"vertices": 3}, "target: is 5 at 1, not within 0 .. 2"),
        (([0, 1], [1, 2], [1.0, 1.0]), {"vertices": 4, "vertex_weight": [1.0]}, "has 1 entries, not 4"),
        (([0.5], [1], [1.0]), {}, "whole numbers"),
    ],
)
def test_edges_that_cannot_be_are_named(edges: Any, more: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Application.from_edges(*edges, **more)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": 0}, "nodes: is 0, must be at least 1"),
        ({"nodes": 999_999_999, "max_edges": 1 << 40}, "nodes: is 999999999, must be at most 16384"),
        ({"nodes": 2.5}, "nodes: is 2.5, must be a whole number"),
        ({"max_degree": 1}, "max_degree: is 1, must be at least 2: fewer links do not connect 6 nodes"),
        ({"max_edges": 4}, "max_edges: is 4, must be at least 5"),
        ({"compute_speed": 0.0}, "compute_speed: is 0.0, must be finite and above zero"),
        ({"compute_speed": NAN}, "compute_speed: is nan"),
        ({"link_speed": -1.0}, "link_speed: is -1.0"),
        ({"link_speed": float("inf")}, "link_speed: is inf"),
    ],
)
def test_a_machine_refuses_what_cannot_join_its_nodes_or_work(change: dict[str, Any], message: str) -> None:
    good = machine(6, max_degree=2, max_edges=5)
    machine(2, max_degree=1, max_edges=1)
    machine(1, max_degree=0, max_edges=0)
    with pytest.raises(InvalidValue, match=message):
        replace(good, **change)


@given(topologies(connected=False))
def test_degrees_components_and_neighbours_are_those_of_networkx(topology: Topology) -> None:
    graph = graph_of(topology)
    assert topology.degree.tolist() == [degree for _, degree in graph.degree]
    assert topology.connected() == nx.is_connected(graph)
    parts = {frozenset(np.flatnonzero(topology.components() == k).tolist()) for k in topology.components()}
    assert parts == {frozenset(part) for part in nx.connected_components(graph)}
    indptr, node, link = topology.neighbours
    for one in range(topology.nodes):
        around = node[indptr[one] : indptr[one + 1]].tolist()
        assert sorted(around) == sorted(graph.neighbors(one))
        for other, row in zip(around, link[indptr[one] : indptr[one + 1]].tolist(), strict=True):
            assert topology.link_between(one, other) == topology.link_between(other, one) == row
    for one in range(topology.nodes):
        for other in range(topology.nodes):
            assert (topology.link_between(one, other) >= 0) == graph.has_edge(one, other)
    every = np.argwhere(np.ones((topology.nodes, topology.nodes), bool))
    alone = [topology.link_between(one, other) for one, other in every.tolist()]
    assert topology.rows_between(every).tolist() == alone


@given(topologies(min_nodes=2), st.data())
def test_links_go_and_come(topology: Topology, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, topology.links - 1))
    ends = tuple(topology.pairs[row].tolist())
    less = topology.changed([row])
    assert links_of(less) == links_of(topology) - {ends}
    assert links_of(less.changed(added=[ends[::-1]])) == links_of(topology)
    assert links_of(less.changed(range(less.links), [ends])) == {ends}
    assert links_of(topology.changed(added=[ends])) == links_of(topology)
    label = topology.components([row])
    assert (label == label[0]).all() == nx.is_connected(graph_of(less))


@pytest.mark.parametrize(("crossed", "ends"), [(False, ((0, 2), (1, 3))), (True, ((0, 3), (1, 2)))])
def test_a_swap_exchanges_ends_of_two_links(crossed: bool, ends: object) -> None:
    """Figure 2: links {0, 1} and {2, 3}."""
    assert Topology.of(4, [(0, 1), (2, 3)]).swap_ends(0, 1, crossed) == ends


def test_links_that_cannot_be_are_refused() -> None:
    line = Topology.of(3, [(2, 1), (0, 1), (1, 0)])
    assert links_of(line) == {(0, 1), (1, 2)}
    with pytest.raises(InvalidValue, match="connects node 2 with itself"):
        line.changed(added=[(2, 2)])
    with pytest.raises(InvalidValue, match=r"is 3 at 2, not within 0 \.\. 2"):
        line.changed(added=[(0, 3)])
    with pytest.raises(InvalidValue, match="nodes: is 0"):
        Topology(nodes=0, source=np.zeros(0, np.int32), target=np.zeros(0, np.int32))
    for array in (line.source, line.neighbours.node):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


def test_a_topology_beyond_a_machine_is_named() -> None:
    star = Topology.of(4, [(0, 1), (0, 2), (0, 3)])
    star.require(machine(4, max_degree=3))
    with pytest.raises(InvalidValue, match="node 0 has 3 links, max_degree is 2"):
        star.require(machine(4, max_degree=2))
    with pytest.raises(InvalidValue, match="has 4 links, max_edges is 3"):
        star.changed(added=[(1, 2)]).require(machine(4, max_edges=3))
    with pytest.raises(InvalidValue, match="nodes: is 4, the machine has 5"):
        star.require(machine(5))
    with pytest.raises(InvalidValue, match="no path of links connects node 3 and node 0"):
        star.changed([2]).require(machine(4))


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
    ("node", "ptr", "route", "message"),
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
def test_a_solution_that_does_not_fit_is_refused(node: Any, ptr: Any, route: Any, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        evaluate(PAIR, RING, machine_of(4), node, ptr, route)


def test_a_topology_of_another_machine_is_refused_and_nothing_to_carry_has_no_bound() -> None:
    with pytest.raises(InvalidValue, match="is 4, the machine has 5"):
        evaluate(PAIR, RING, machine_of(5), [0, 1], [0, 1], [0])
    solution = evaluate(PAIR, RING, machine_of(4, compute_speed=8), [2, 2], [0, 0], [])
    assert (solution.compute_throughput, solution.communication_throughput) == (2.0, np.inf)
    assert solution.throughput == 2.0
    assert not solution.node_load.flags.writeable
