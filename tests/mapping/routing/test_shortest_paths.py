"""Loads over all hop-shortest paths, against enumeration and against the 2011 paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.routing import shortest_paths
from mapping.selfcheck.oracles import shortest_path_route
from registry.errors import DisconnectedAllocation, InvalidValue, UnknownName
from registry.model import Fabric
from tests.support.small_fabrics import adapter_fabrics, plain_fabrics

FABRICS = st.one_of(adapter_fabrics(), plain_fabrics())


@given(fabric=FABRICS, rails=st.sampled_from(["all-connected", "same-rail"]))
def test_loads_are_those_of_enumerated_paths(fabric: Fabric, rails: str) -> None:
    routes = shortest_paths.build(fabric, fabric.hosts, rails=rails)
    for i, j in np.ndindex(len(routes.hosts), len(routes.hosts)):
        if i == j:
            continue
        route = shortest_path_route(fabric, int(routes.hosts[i]), int(routes.hosts[j]), rails)
        if route is None:
            with pytest.raises(DisconnectedAllocation):
                routes.link_bytes([i], [j], [1.0])
            assert routes.distances[i, j] == np.inf
            continue
        expected = np.zeros(len(fabric.links))
        for row, part in route:
            expected[row] += 8.0 * part
        load = routes.load([i], [j], [8.0])
        np.testing.assert_allclose(load.link_bytes, expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(load.hops, [expected.sum() / 8.0])
        np.testing.assert_allclose(routes.distances[i, j], expected.sum() / 8.0)


@given(fabric=FABRICS, data=st.data())
def test_loads_of_many_pairs_are_the_sum_of_each(fabric: Fabric, data: st.DataObject) -> None:
    routes = shortest_paths.build(fabric, fabric.hosts)
    connected = np.argwhere(np.isfinite(routes.distances))
    chosen = connected[data.draw(st.lists(st.integers(0, len(connected) - 1), min_size=1, max_size=8))]
    sizes = np.arange(1.0, len(chosen) + 1)
    together = routes.load(chosen[:, 0], chosen[:, 1], sizes)
    apart = [routes.load([i], [j], [w]) for (i, j), w in zip(chosen, sizes, strict=True)]
    np.testing.assert_allclose(together.link_bytes, sum(load.link_bytes for load in apart), atol=1e-12)
    np.testing.assert_allclose(together.hops, [load.hops[0] for load in apart])


def dumbbell(p: int) -> Fabric:
    """Two complete graphs of p / 2 vertices, joined between their vertices 0 by a link of capacity p."""
    half = p // 2
    arcs = [(a, b) for a in range(p) for b in range(p) if a != b and a // half == b // half]
    capacity = [1.0] * len(arcs) + [float(p)] * 2
    source, target = zip(*arcs, (0, half), (half, 0), strict=True)
    return Fabric.from_arcs([f"v{v}" for v in range(p)], source, target, capacity)


@given(p=st.sampled_from([4, 6, 8]), data=st.data())
def test_theorem_1_dumbbell_of_the_2011_paper(p: int, data: st.DataObject) -> None:
    """Congestion is P^3 + (edges cut) / P with s and t at the ends of the bar, else at least P^4."""
    pairs = st.tuples(st.integers(0, p - 1), st.integers(0, p - 1))
    edges = data.draw(st.sets(pairs.filter(lambda pair: pair[0] < pair[1])))
    place = np.array(data.draw(st.permutations(range(p))))  # vertex of each process; s = 0, t = 1
    if data.draw(st.booleans()):
        for process, end in ((0, 0), (1, p // 2)):
            place[[process, place.tolist().index(end)]] = end, place[process]
    weights = dict.fromkeys(edges, 1.0)
    weights[0, 1] = weights.get((0, 1), 0.0) + p**4
    source, target = np.array(sorted(weights)).T
    size = np.array([weights[edge] for edge in sorted(weights)])
    fabric = dumbbell(p)
    routes = shortest_paths.build(fabric, np.arange(p))
    both = np.r_[source, target], np.r_[target, source]
    loads = routes.link_bytes(place[both[0]], place[both[1]], np.r_[size, size])
    congestion = (loads / fabric.links.capacity).max()
    if {int(place[0]), int(place[1])} == {0, p // 2}:
        cut = sum((place[a] < p // 2) != (place[b] < p // 2) for a, b in edges)
        assert congestion == pytest.approx(p**3 + cut / p)
    else:
        assert congestion >= p**4


def test_the_diamond_splits_in_half_and_parallel_cables_by_capacity() -> None:
    # 0 -> 1, 2 -> 3, and 1 -> 3 by two cables of 1 and 3 bytes/s
    fabric = Fabric.from_arcs(list("abcd"), [0, 0, 1, 1, 2], [1, 2, 3, 3, 3], [1, 1, 1, 3, 1])
    routes = shortest_paths.build(fabric, [0, 3])
    loads = routes.link_bytes([0], [1], [16.0])
    by_link = {
        (int(s), int(t), float(c)): float(x)
        for s, t, c, x in zip(
            fabric.links.source, fabric.links.target, fabric.links.capacity, loads, strict=True
        )
    }
    assert by_link == {(0, 1, 1): 8, (0, 2, 1): 8, (1, 3, 1): 2, (1, 3, 3): 6, (2, 3, 1): 8}


def test_hosts_on_one_leaf_are_two_hops_apart() -> None:
    fabric = Fabric.from_arcs(
        ["a", "b", "s"], [0, 1, 2, 2], [2, 2, 0, 1], 1.0, slots=[1, 1, 0], forwards=False
    )
    assert shortest_paths.build(fabric, [0, 1]).distances.tolist() == [[0, 2], [2, 0]]


def test_hosts_do_not_carry_others_traffic() -> None:
    # a - m - b where m is a host on both switches; the way around over three switches is longer
    fabric = Fabric.from_arcs(
        ["a", "b", "m", "s", "t", "u"],
        [0, 3, 3, 2, 2, 4, 4, 1, 3, 5, 5, 4],
        [3, 0, 2, 3, 4, 2, 1, 4, 5, 3, 4, 5],
        1.0,
        slots=[1, 1, 1, 0, 0, 0],
        forwards=False,
    )
    routes = shortest_paths.build(fabric, [0, 1, 2])
    assert routes.distances[0, 1] == 4
    assert routes.distances[0, 2] == 2


def test_a_disconnected_pair_is_named() -> None:
    fabric = Fabric.from_arcs(["a", "b", "lonely"], [0, 1], [1, 0], 1.0)
    routes = shortest_paths.build(fabric, [0, 1, 2])
    with pytest.raises(DisconnectedAllocation, match="'b' to host 'lonely'") as caught:
        routes.link_bytes([0, 1], [1, 2], [1.0, 0.0])
    assert (caught.value.source, caught.value.target) == ("b", "lonely")
    with pytest.raises(DisconnectedAllocation, match="'a' to host 'lonely'"):
        routes.require_connected()
    assert not routes.connected


def test_traffic_within_a_host_loads_nothing() -> None:
    fabric = Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1.0)
    load = shortest_paths.build(fabric, [0, 1]).load([0, 1], [0, 0], [5.0, 3.0])
    assert load.link_bytes.tolist() == [0.0, 3.0]
    assert load.hops.tolist() == [0.0, 1.0]


def test_no_traffic_at_all_is_a_load_of_nothing() -> None:
    fabric = Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1.0)
    load = shortest_paths.build(fabric, [0]).load([], [], [])
    assert load.link_bytes.tolist() == [0.0, 0.0]


def test_an_index_that_is_no_host_is_refused() -> None:
    fabric = Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1.0)
    with pytest.raises(InvalidValue, match=r"must be from 0 to 1"):
        shortest_paths.build(fabric, [0, 1]).link_bytes([2], [0], [1.0])


def test_an_unknown_rails_rule_is_refused_with_the_known_ones() -> None:
    fabric = Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1.0)
    with pytest.raises(UnknownName, match="same-rail"):
        shortest_paths.build(fabric, [0, 1], rails="same-rails")
