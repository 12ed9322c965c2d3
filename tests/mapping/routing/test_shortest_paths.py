"""Loads over all hop-shortest paths, against enumeration and against the 2011 paper."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.routing import shortest_paths
from mapping.selfcheck.oracles import shortest_path_route
from registry.errors import DisconnectedAllocation
from registry.model import Fabric, Floats
from tests.support.flow_checks import check_flows, check_loads, on_links
from tests.support.infiniband_data import infiniband
from tests.support.small_fabrics import adapter_fabrics, cabled, plain_fabrics


@given(
    fabric=st.one_of(adapter_fabrics(), plain_fabrics()),
    rails=st.sampled_from(["all-connected", "same-rail"]),
)
def test_loads_hops_and_flows_are_those_of_enumerated_paths(fabric: Fabric, rails: str) -> None:
    routes = shortest_paths.build(fabric, fabric.hosts, rails=rails)

    def byte_between(i: int, j: int) -> Floats | None:
        return on_links(fabric, shortest_path_route(fabric, i, j, rails))

    check_loads(routes, byte_between, DisconnectedAllocation)
    check_flows(routes)


@pytest.mark.parametrize("name", ["ndr-dgx-minhop", "irregular-16sw-updown"])
def test_flows_on_real_fabrics_sum_to_the_loads(name: str) -> None:
    fabric = infiniband(name)
    check_flows(shortest_paths.build(fabric, np.random.default_rng(2).choice(fabric.hosts, 8, replace=False)))


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
    links = fabric.links
    rows = zip(links.source.tolist(), links.target.tolist(), links.capacity.tolist(), strict=True)
    by_link = dict(zip(rows, loads.tolist(), strict=True))
    assert by_link == {(0, 1, 1): 8, (0, 2, 1): 8, (1, 3, 1): 2, (1, 3, 3): 6, (2, 3, 1): 8}


def test_hosts_do_not_carry_others_traffic() -> None:
    """Host 2 is on the switches of both others; the way around over three switches is longer."""
    routes = shortest_paths.build(cabled("0-3 3-2 2-4 4-1 3-5 5-4", 3), [0, 1, 2])
    assert routes.distances[0, 1] == 4
    assert routes.distances[0, 2] == 2
