"""Algorithm 3 of the 2011 paper: a pair's path is a shortest one, the least loaded when its turn comes."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.routing.catalog import build_routes
from registry.errors import DisconnectedAllocation, UnknownName
from registry.model import Fabric, Floats
from tests.support.small_fabrics import plain_fabrics


def ways(fabric: Fabric, source: int, target: int) -> list[list[int]]:
    """All shortest paths, by vertices."""
    arcs = zip(fabric.links.source.tolist(), fabric.links.target.tolist(), strict=True)
    graph: nx.DiGraph[Any] = nx.DiGraph(sorted(set(arcs)))
    graph.add_nodes_from(range(len(fabric)))
    inside = [v for v in graph if fabric.forwards[v] or v in (source, target)]
    try:
        return list(nx.all_shortest_paths(graph.subgraph(inside), source, target))
    except nx.NetworkXNoPath:
        return []


def rows(fabric: Fabric, way: list[int]) -> list[np.ndarray[Any, Any]]:
    """Rows of ``fabric.links`` of each step."""
    links = fabric.links
    return [np.flatnonzero((links.source == a) & (links.target == b)) for a, b in itertools.pairwise(way)]


def carried(fabric: Fabric, way: list[int], size: float) -> Floats:
    loads = np.zeros(len(fabric.links))
    for step in rows(fabric, way):
        capacity = fabric.links.capacity[step]
        loads[step] += size * capacity / capacity.sum()
    return loads


@given(fabric=plain_fabrics(), data=st.data())
def test_each_pair_adds_its_bytes_to_a_least_loaded_shortest_path(
    fabric: Fabric, data: st.DataObject
) -> None:
    routes = build_routes("least-loaded", fabric, fabric.hosts)
    connected = np.argwhere(np.isfinite(routes.distances) & (routes.distances > 0))
    if not len(connected):
        return
    chosen = connected[data.draw(st.lists(st.integers(0, len(connected) - 1), min_size=1, max_size=10))]
    sizes = np.array(
        data.draw(st.lists(st.integers(1, 9), min_size=len(chosen), max_size=len(chosen))), float
    )
    before = np.zeros(len(fabric.links))
    for turn, (i, j) in enumerate(chosen.tolist()):
        pairs = chosen[: turn + 1]
        load = routes.load(pairs[:, 0], pairs[:, 1], sizes[: turn + 1])
        every = ways(fabric, int(routes.hosts[i]), int(routes.hosts[j]))
        seconds = before / fabric.links.capacity
        cost = [sum(seconds[step[0]] for step in rows(fabric, way)) for way in every]
        taken = [
            np.allclose(load.link_bytes, before + carried(fabric, way, sizes[turn]), atol=1e-9)
            for way in every
        ]
        assert any(took and cost[w] <= min(cost) + 1e-9 for w, took in enumerate(taken))
        assert load.hops[turn] == len(every[0]) - 1
        before = load.link_bytes


def diamond() -> Fabric:
    """a to d by b or by c."""
    ends = np.array([(0, 1), (1, 3), (0, 2), (2, 3)])
    return Fabric.from_arcs(list("abcd"), ends[:, [0, 1]].flatten(), ends[:, [1, 0]].flatten(), 1.0)


def loads(text: str, sizes: list[float]) -> list[float]:
    """Bytes on a-b and a-c where a sends to d once for each size."""
    fabric, pairs = diamond(), len(sizes)
    routes = build_routes(text, fabric, [0, 3])
    found = routes.link_bytes([0] * pairs, [1] * pairs, sizes)
    return [
        float(found[(fabric.links.source == 0) & (fabric.links.target == middle)].sum()) for middle in (1, 2)
    ]


def test_pairs_take_their_turn_as_given_or_heaviest_first() -> None:
    assert loads("least-loaded", [1.0, 2.0, 3.0]) == [4.0, 2.0]
    assert loads("least-loaded:order=heaviest", [1.0, 2.0, 3.0]) == [3.0, 3.0]


def test_small_loads_count_beside_any_number_of_hops() -> None:
    """What the paper's large weight on every link loses in 64 bits."""
    assert loads("least-loaded", [0.2, 0.2, 1e17, 0.2]) == [0.2 + 1e17, 0.4]


def test_hosts_that_no_path_joins_are_named() -> None:
    fabric = Fabric.from_arcs(["a", "b", "lonely"], [0, 1], [1, 0], 1.0)
    with pytest.raises(DisconnectedAllocation, match="'b' to host 'lonely'"):
        build_routes("least-loaded", fabric, [0, 1, 2]).link_bytes([0, 1], [1, 2], [1.0, 1.0])


def test_another_order_is_refused() -> None:
    with pytest.raises(UnknownName, match="heaviest"):
        build_routes("least-loaded:order=heavy", diamond(), [0, 3])
