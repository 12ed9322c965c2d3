"""Changes of links that relieve a bottleneck: free ports, lightest links, limits of the machine."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mapping.reconfiguration.model.problem import Application, Machine
from mapping.reconfiguration.model.solution import Solution
from mapping.reconfiguration.model.topology import Pair, Topology
from mapping.reconfiguration.paper.seed_topology import repair_topology, ring
from mapping.reconfiguration.search.best_partition import route_partition
from mapping.reconfiguration.search.edge_exchange import choose_ends, exchange_edges
from tests.support.reconfigure_problems import applications, links_of, machine, machines

HEAVY = Application.from_edges([0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 3], [1.0] * 5 + [10.0])
"""A path of six, whose opposite ends of a ring exchange most."""


def routed(application: Application, topology: Topology, limits: Machine) -> Solution:
    return route_partition(application, topology, limits, np.arange(application.vertices) % limits.nodes)


def test_free_ports_take_a_direct_link() -> None:
    limits = machine(6, max_degree=3, max_edges=7)
    change = exchange_edges(ring(6), routed(HEAVY, ring(6), limits), limits, (0, 3), np.random.default_rng(0))
    assert change is not None
    assert (change.removed, change.inserted) == ((), ((0, 3),))
    assert links_of(change.topology) == links_of(ring(6)) | {(0, 3)}


def test_without_a_free_link_one_that_disconnects_nothing_makes_room() -> None:
    limits = machine(6, max_degree=3, max_edges=6)
    solution = routed(HEAVY, ring(6), limits)
    found = [exchange_edges(ring(6), solution, limits, (0, 3), np.random.default_rng(k)) for k in range(20)]
    changes = [change for change in found if change is not None]
    assert changes
    for change in changes:
        assert len(change.removed) == len(change.inserted) == 1
        assert (0, 3) in links_of(change.topology)


def test_full_nodes_lose_a_link_each_and_their_free_neighbours_are_linked() -> None:
    limits = machine(6, max_degree=2, max_edges=6)
    solution = routed(HEAVY, ring(6), limits)
    found = [exchange_edges(ring(6), solution, limits, (0, 3), np.random.default_rng(k)) for k in range(20)]
    made: set[tuple[Pair, ...]] = {change.inserted for change in found if change is not None}
    assert made
    assert made <= {((0, 3), (1, 4)), ((0, 3), (2, 5)), ((0, 3), (1, 2)), ((0, 3), (4, 5))}


def test_the_ends_of_a_flow_over_the_most_loaded_link_are_chosen() -> None:
    limits = machine(6, max_degree=3, max_edges=7)
    solution = routed(HEAVY, ring(6), limits)
    flows = HEAVY.source, HEAVY.target
    drawn = {choose_ends(ring(6), solution, flows, np.random.default_rng(k)) for k in range(40)}
    assert drawn == {None, (0, 3)}  # None is a swap, one time in three


@given(applications(min_vertices=2), machines(min_nodes=2), st.integers(0, 9))
def test_every_change_keeps_the_limits_and_is_what_it_reports(
    application: Application, limits: Machine, seed: int
) -> None:
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
