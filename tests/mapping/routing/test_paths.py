"""Searches of many goals at once, and loads that do not depend on threads."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.tori import torus
from mapping.routing import shortest_paths
from mapping.routing.kernels.paths import Goals
from mapping.routing.network import end_points, transit_network
from mapping.routing.paths import hops_to, spread
from registry.errors import InvalidValue
from registry.model import Fabric


def random_fabric(vertices: int, arcs: int, seed: int, *, forwards: float = 1.0) -> Fabric:
    """Random one-way arcs; some vertices may not forward."""
    rng = np.random.default_rng(seed)
    source, target = rng.integers(0, vertices, (2, arcs))
    apart = source != target
    return Fabric.from_arcs(
        [f"v{v:03}" for v in range(vertices)],
        source[apart],
        target[apart],
        1.0,
        forwards=rng.random(vertices) < forwards,
    )


@given(seed=st.integers(0, 999), arcs=st.integers(90, 600), forwards=st.sampled_from([1.0, 0.7]))
def test_hops_of_more_goals_than_a_word_has_bits_are_those_of_networkx(
    seed: int, arcs: int, forwards: float
) -> None:
    fabric = random_fabric(90, arcs, seed, forwards=forwards)
    network = transit_network(fabric, end_points(fabric, np.arange(90, dtype=np.int32)))
    vertices = len(network.arcs.forwards)
    goals = Goals(np.arange(vertices, dtype=np.int32), np.full(vertices, -1, np.int32))
    found = hops_to(network.arcs, goals)
    assert found.dtype == np.int8
    tails = np.repeat(np.arange(vertices), np.diff(network.arcs.out_ptr)).tolist()
    graph: nx.DiGraph[Any] = nx.DiGraph(zip(tails, network.arcs.head.tolist(), strict=True))
    graph.add_nodes_from(range(vertices))
    inner = [v for v in range(vertices) if network.arcs.forwards[v]]
    for goal in range(0, vertices, 7):
        inside = graph.subgraph([*inner, goal]).reverse(copy=False)
        near = nx.single_source_shortest_path_length(inside, goal)
        expected = [near.get(v, -1) for v in range(vertices)]
        for start in set(range(vertices)) - {*inner, goal}:
            expected[start] = 1 + min((near[v] for v in graph.successors(start) if v in near), default=-2)
        np.testing.assert_array_equal(found[goal], expected)


@pytest.mark.parametrize("vertices", [255, 256])
def test_lengths_too_long_for_a_byte_are_stored_in_two(vertices: int) -> None:
    at = np.arange(vertices)
    routes = shortest_paths.build(torus((vertices,)), at)
    ahead = (at - at[:, None]) % vertices
    np.testing.assert_array_equal(routes.distances, np.minimum(ahead, vertices - ahead))
    load = routes.load([0, 3], [vertices // 2, 2], [4.0, 1.0])
    assert load.hops.tolist() == [vertices // 2, 1]
    assert load.link_bytes.sum() == 4 * (vertices // 2) + 1
    assert routes.flows.hops.dtype == (np.int8 if vertices // 2 <= 127 else np.int16)


def test_more_paths_than_can_be_counted_are_refused() -> None:
    """A chain of 1,100 diamonds, each with two ways: 2 ** 1,100 paths."""
    first = 3 * np.arange(1_100)
    tails, heads = (
        np.r_[first, first, first + 1, first + 2],
        np.r_[first + 1, first + 2, first + 3, first + 3],
    )
    chain = Fabric.from_arcs([f"v{v:04}" for v in range(3_301)], tails, heads, 1.0)
    with pytest.raises(InvalidValue, match="more paths than"):
        shortest_paths.build(chain, [0, 3_300]).link_bytes([0], [1], [1.0])


def test_loads_are_the_same_to_the_last_bit_with_any_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fabric = random_fabric(700, 4_000, 1)
    network = transit_network(fabric, end_points(fabric, np.arange(700, dtype=np.int32)))
    rng = np.random.default_rng(2)
    goals = Goals(np.arange(700, dtype=np.int32), np.full(700, -1, np.int32))
    start, goal = rng.integers(0, 700, (2, 5_000)).astype(np.int32)
    amount = rng.random(5_000)
    known = hops_to(network.arcs, goals)
    found = []
    for cores in (1, 2, 5):
        monkeypatch.setattr("mapping.threads.cores", lambda cores=cores: cores)
        found.append(spread(network.arcs, goals, start, goal, amount))
        found.append(spread(network.arcs, goals, start, goal, amount, known))
    for loads, length in found[1:]:
        np.testing.assert_array_equal(loads, found[0][0])
        np.testing.assert_array_equal(length, found[0][1])
