"""Problems, topologies and solutions of circuit plans (Ajwani et al. 2013), and upper bounds."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.papers.circuits.enumeration import optimum
from mapping.circuits import bounds
from mapping.circuits.bounds import BALANCE, HEAVIEST_VERTEX, PIGEONHOLE, PORTS, throughput_bound
from mapping.circuits.paper_partition import flat_routes
from mapping.circuits.problem import Application, Machine, Topology
from mapping.circuits.solution import evaluate
from registry.errors import InvalidValue
from registry.model import Profile
from tests.support.reconfigure_problems import applications, graph_of, links_of, machine, machines, topologies
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
    every = np.argwhere(np.ones((topology.nodes, topology.nodes), bool))
    alone = [topology.link_between(one, other) for one, other in every.tolist()]
    assert [row >= 0 for row in alone] == [graph.has_edge(*ends) for ends in every.tolist()]
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


def of(graph: nx.Graph[int], weight: list[float] | None = None) -> Application:
    one, other = zip(*graph.edges, strict=True)
    return Application.from_edges(one, other, np.ones(len(one)), vertex_weight=weight, vertices=len(graph))


def by_name(application: Application, limits: Machine) -> dict[str, float]:
    return {bound.name: bound.throughput for bound in bounds.throughput_bounds(application, limits)}


def test_balance_the_heaviest_vertex_and_pigeonholes_bound_what_nodes_compute() -> None:
    fast = machine(2, max_degree=1, link_speed=1e9, compute_speed=6.0)
    found = by_name(of(nx.path_graph(5), [5.0, 4.0, 4.0, 1.0, 1.0]), fast)
    assert found[BALANCE] == bounds.loose_bound(of(nx.path_graph(5), [3.0] * 5), fast) == 12 / 15
    assert found[HEAVIEST_VERTEX] == 6 / 5
    assert found[PIGEONHOLE] == 6 / 8  # of 5, 4 and 4 two share a node


def test_things_above_a_third_that_leave_no_room_are_packed() -> None:
    """What balance allows and whole things do not: two of the four heaviest share one of three nodes."""
    fast = machine(3, link_speed=1e9)
    assert throughput_bound(of(nx.path_graph(6), [5.0, 4.0, 5.0, 4.0, 5.0, 4.0]), fast).throughput == 1 / 9
    tight = of(nx.path_graph(5), [6.0, 6.0, 6.0, 3.0, 3.0])
    assert throughput_bound(tight, fast).throughput == pytest.approx(1 / 9)
    odd = of(nx.path_graph(4), [7.0, 7.0, 7.0, 3.0])  # balance: 8, heaviest: 7, truly 10
    assert by_name(odd, fast)[PIGEONHOLE] == 1 / 10
    # below 21 the largest is alone, and its node and that of the next leave no room for both 7
    alone = by_name(of(nx.path_graph(4), [14.0, 12.0, 7.0, 7.0]), machine(2, max_degree=1, link_speed=1e9))
    assert alone[bounds.PACKING] == pytest.approx(1 / 21, rel=1e-5)


def test_edges_that_no_link_could_carry_hold_their_ends_together_and_pairs_are_packed() -> None:
    pair = Application.from_edges([0], [1], [10.0], vertex_weight=[3.0, 3.0])
    slow = machine(2, max_degree=1, link_speed=1.0)
    found = by_name(pair, slow)
    assert found[BALANCE] == found[HEAVIEST_VERTEX] == found[PIGEONHOLE] == 1 / 3
    assert found[bounds.HEAVY_EDGES] == pytest.approx(1 / 6, rel=1e-5)
    assert optimum(pair, slow).solution.throughput == pytest.approx(1 / 6)
    # three pairs held together by heavy edges do not fit on two nodes as three halves would
    ends, weight = ([0, 2, 4, 1, 3], [1, 3, 5, 2, 4]), [9.0, 9.0, 9.0, 0.1, 0.1]
    found = by_name(Application.from_edges(*ends, weight), machine(2, max_degree=1, link_speed=2.0))
    assert found[BALANCE] == 1 / 3
    assert found[bounds.PACKING] == pytest.approx(1 / 4, rel=1e-5)


def test_what_exceeds_the_ports_of_a_cluster_or_the_links_of_the_switch_is_found() -> None:
    """The centre of a star of eight leaves: with five of them, load 6, three leave through two ports."""
    star = of(nx.star_graph(8), [1.0] * 9)
    limits = machine(4, max_degree=2, link_speed=0.25)
    found = by_name(star, limits)
    assert found[PORTS] < found[PIGEONHOLE]
    assert found[PORTS] == pytest.approx(1 / 6, rel=0.02)
    # what all nodes send is bounded by the links of the switch
    found = by_name(of(nx.complete_graph(12)), machine(6, max_degree=5, max_edges=6, link_speed=1.0))
    assert found[bounds.LINKS] < min(value for name, value in found.items() if name != bounds.LINKS)
    assert found[bounds.LINKS] == pytest.approx(1 / 3, rel=0.01)  # a node of load C sends 12 - C, up to C * C


def test_no_work_is_bounded_by_nothing_and_one_node_reaches_the_balance() -> None:
    idle = Application.from_edges([0], [1], [1.0], vertex_weight=[0.0, 0.0])
    assert throughput_bound(idle, machine(2, max_degree=1)).throughput == math.inf
    found = by_name(of(nx.path_graph(3)), machine(1, max_degree=0, max_edges=0))
    assert set(found) == {BALANCE, HEAVIEST_VERTEX, PIGEONHOLE}
    assert min(found.values()) == 1 / 3


@given(applications(max_vertices=6, max_more=4), machines(max_nodes=4))
def test_no_bound_is_below_the_true_optimum(application: Application, limits: Machine) -> None:
    best = optimum(application, limits).solution.throughput
    found = bounds.throughput_bounds(application, limits)
    for bound in found:
        assert bound.throughput >= best * (1 - 1e-9), bound
        assert bound.proof
    names = [bound.name for bound in found]
    assert names == [name for name in bounds.NAMES if name in names]


@given(applications(min_vertices=2, max_vertices=7), machines(min_nodes=2, max_nodes=4))
def test_no_node_with_a_cluster_sends_less_than_the_bound(application: Application, limits: Machine) -> None:
    total = float(application.vertex_weight.sum())
    if total == 0:
        return
    throughput = limits.compute_speed / total * 1.7
    found = bounds.clusters(application, limits, throughput)
    count = len(found.weight)
    for cluster in range(count):
        least = math.inf
        for size in range(1, count + 1):
            for chosen in itertools.combinations(range(count), size):
                inside = np.isin(np.arange(count), chosen)
                if inside[cluster] and found.weight[inside].sum() <= found.node_limit:
                    cut = found.flow[inside[found.source] != inside[found.target]].sum()
                    least = min(least, float(cut))
        assert bounds.min_outgoing(found, cluster) <= least * (1 + 1e-9) + 1e-9
