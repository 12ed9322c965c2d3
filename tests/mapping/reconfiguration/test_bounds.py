"""Upper bounds on the throughput: each argument where it is tight; none below what can be reached."""

from __future__ import annotations

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from bench.papers.circuits.enumeration import optimum
from mapping.reconfiguration.bounds import (
    BALANCE,
    HEAVIEST_VERTEX,
    HEAVY_EDGES,
    LINKS,
    NAMES,
    PACKING,
    PIGEONHOLE,
    PORTS,
    clusters,
    loose_bound,
    min_outgoing,
    throughput_bound,
    throughput_bounds,
)
from mapping.reconfiguration.model.problem import Application, Machine
from tests.support.reconfigure_problems import applications, machine, machines


def of(graph: nx.Graph[int], weight: list[float] | None = None) -> Application:
    """All edges weigh 1."""
    one, other = zip(*graph.edges, strict=True)
    return Application.from_edges(one, other, np.ones(len(one)), vertex_weight=weight, vertices=len(graph))


def by_name(application: Application, limits: Machine) -> dict[str, float]:
    return {bound.name: bound.throughput for bound in throughput_bounds(application, limits)}


def test_balance_the_heaviest_vertex_and_pigeonholes_bound_what_nodes_compute() -> None:
    fast = machine(2, max_degree=1, link_speed=1e9, compute_speed=6.0)
    found = by_name(of(nx.path_graph(5), [5.0, 4.0, 4.0, 1.0, 1.0]), fast)
    assert found[BALANCE] == loose_bound(of(nx.path_graph(5), [3.0] * 5), fast) == 12 / 15
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


def test_edges_that_no_link_could_carry_hold_their_ends_together_and_pairs_are_packed() -> None:
    pair = Application.from_edges([0], [1], [10.0], vertex_weight=[3.0, 3.0])
    slow = machine(2, max_degree=1, link_speed=1.0)
    found = by_name(pair, slow)
    assert found[BALANCE] == found[HEAVIEST_VERTEX] == found[PIGEONHOLE] == 1 / 3
    assert found[HEAVY_EDGES] == pytest.approx(1 / 6, rel=1e-5)
    assert optimum(pair, slow).solution.throughput == pytest.approx(1 / 6)
    # three pairs held together by heavy edges do not fit on two nodes as three halves would
    ends, weight = ([0, 2, 4, 1, 3], [1, 3, 5, 2, 4]), [9.0, 9.0, 9.0, 0.1, 0.1]
    found = by_name(Application.from_edges(*ends, weight), machine(2, max_degree=1, link_speed=2.0))
    assert found[BALANCE] == 1 / 3
    assert found[PACKING] == pytest.approx(1 / 4, rel=1e-5)


def test_what_exceeds_the_ports_of_a_cluster_or_the_links_of_the_switch_is_found() -> None:
    """The centre of a star of eight leaves: with five of them, load 6, three leave through two ports."""
    star = of(nx.star_graph(8), [1.0] * 9)
    limits = machine(4, max_degree=2, link_speed=0.25)
    found = by_name(star, limits)
    assert found[PORTS] < found[PIGEONHOLE]
    assert found[PORTS] == pytest.approx(1 / 6, rel=0.02)
    # what all nodes send is bounded by the links of the switch
    found = by_name(of(nx.complete_graph(12)), machine(6, max_degree=5, max_edges=6, link_speed=1.0))
    assert found[LINKS] < min(value for name, value in found.items() if name != LINKS)


def test_no_work_is_bounded_by_nothing_and_one_node_reaches_the_balance() -> None:
    idle = Application.from_edges([0], [1], [1.0], vertex_weight=[0.0, 0.0])
    assert throughput_bound(idle, machine(2, max_degree=1)).throughput == math.inf
    found = by_name(of(nx.path_graph(3)), machine(1, max_degree=0, max_edges=0))
    assert set(found) == {BALANCE, HEAVIEST_VERTEX, PIGEONHOLE}
    assert min(found.values()) == 1 / 3


@given(applications(max_vertices=6, max_more=4), machines(max_nodes=4))
def test_no_bound_is_below_the_true_optimum(application: Application, limits: Machine) -> None:
    best = optimum(application, limits).solution.throughput
    bounds = throughput_bounds(application, limits)
    for bound in bounds:
        assert bound.throughput >= best * (1 - 1e-9), bound
        assert bound.proof
    found = {bound.name for bound in bounds}
    assert [bound.name for bound in bounds] == [name for name in NAMES if name in found]


@given(applications(min_vertices=2, max_vertices=7), machines(min_nodes=2, max_nodes=4))
def test_no_node_with_a_cluster_sends_less_than_the_bound(application: Application, limits: Machine) -> None:
    total = float(application.vertex_weight.sum())
    if total == 0:
        return
    throughput = limits.compute_speed / total * 1.7
    found = clusters(application, limits, throughput)
    count = len(found.weight)
    for cluster in range(count):
        least = math.inf
        for size in range(1, count + 1):
            for chosen in itertools.combinations(range(count), size):
                inside = np.isin(np.arange(count), chosen)
                if inside[cluster] and found.weight[inside].sum() <= found.node_limit:
                    cut = found.flow[inside[found.source] != inside[found.target]].sum()
                    least = min(least, float(cut))
        assert min_outgoing(found, cluster) <= least * (1 + 1e-9) + 1e-9
