"""Up*/down* routing, against enumeration of legal paths and the tables of the 2004 paper."""

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
from tests.support.flow_checks import check_flows
from tests.support.small_fabrics import adapter_fabrics, plain_fabrics

AUTONET = "0-2 0-4 0-9 1-2 1-4 1-9 2-6 3-6 3-7 3-8 4-6 5-7 5-8 5-9 7-8"


def autonet() -> Fabric:
    """The network of Figure 3 of the 2004 paper: ten switches, taken as hosts themselves."""
    ends = np.array([link.split("-") for link in AUTONET.split()], int)
    return Fabric.from_arcs([str(v) for v in range(10)], ends.flatten(), ends[:, ::-1].flatten(), 1.0)


def levels(graph: nx.Graph[Any], root: int | None) -> dict[int, int]:
    """Links from the roots: the one given, else in each part the vertex with most neighbours, the first."""
    found: dict[int, int] = {}
    for part in nx.connected_components(graph):
        best = min(part, key=lambda v: (-graph.degree(v), v)) if root not in part else root
        found |= nx.single_source_shortest_path_length(graph.subgraph(part), best)
    return found


def legal_paths(fabric: Fabric, source: int, target: int, root: int | None = None) -> list[list[int]]:
    """All simple paths that go up no more once they went down, over vertices that forward."""
    arcs = set(zip(fabric.links.source.tolist(), fabric.links.target.tolist(), strict=True))
    graph: nx.DiGraph[Any] = nx.DiGraph(sorted(arcs))
    inner: nx.Graph[Any] = nx.Graph(graph.subgraph(np.flatnonzero(fabric.forwards).tolist()))
    inner.add_nodes_from(np.flatnonzero(fabric.forwards).tolist())
    level = levels(inner, root)

    def up(a: int, b: int) -> bool:
        far = len(fabric)
        return (level.get(b, far), b) < (level.get(a, far), a)

    inside = {v for v in graph if fabric.forwards[v] or v in (source, target)}
    if source not in inside or target not in inside or source not in graph or target not in graph:
        return []
    found = []
    for path in nx.all_simple_paths(graph.subgraph(inside), source, target):
        turns = [up(a, b) for a, b in itertools.pairwise(path)]
        if turns == sorted(turns, reverse=True):
            found.append(path)
    return found


def shortest(paths: list[list[int]]) -> list[list[int]]:
    least = min(map(len, paths), default=0)
    return [path for path in paths if len(path) == least]


def shared(fabric: Fabric, paths: list[list[int]]) -> Floats:
    """Loads of a byte that all paths share equally, parallel cables by capacity."""
    loads, links = np.zeros(len(fabric.links)), fabric.links
    for path in paths:
        for a, b in itertools.pairwise(path):
            rows = (links.source == a) & (links.target == b)
            loads[rows] += links.capacity[rows] / links.capacity[rows].sum() / len(paths)
    return loads


@given(fabric=plain_fabrics(), data=st.data())
def test_loads_are_those_of_all_shortest_legal_paths(fabric: Fabric, data: st.DataObject) -> None:
    roots = np.flatnonzero(fabric.forwards).tolist()
    root = data.draw(st.sampled_from([None, *roots]))
    routes = build_routes(f"up-down:root=v{root}" if root is not None else "up-down", fabric, fabric.hosts)
    for i, j in itertools.permutations(range(len(routes.hosts)), 2):
        paths = shortest(legal_paths(fabric, int(routes.hosts[i]), int(routes.hosts[j]), root))
        if not paths:
            with pytest.raises(DisconnectedAllocation):
                routes.link_bytes([i], [j], [1.0])
            assert routes.distances[i, j] == np.inf
            continue
        load = routes.load([i], [j], [1.0])
        np.testing.assert_allclose(load.link_bytes, shared(fabric, paths), atol=1e-12)
        assert load.hops[0] == routes.distances[i, j] == len(paths[0]) - 1


@given(
    fabric=st.one_of(plain_fabrics(), adapter_fabrics()),
    rails=st.sampled_from(["all-connected", "same-rail"]),
)
def test_flows_sum_to_the_loads(fabric: Fabric, rails: str) -> None:
    check_flows(build_routes("up-down", fabric, fabric.hosts, rails=rails))


def test_table_1_of_the_2004_paper() -> None:
    paths = {"-".join(map(str, path)) for path in legal_paths(autonet(), 0, 1, 6)}
    assert paths == {"0-2-6-4-1", "0-2-1", "0-4-6-2-1", "0-4-1"}
    routes = build_routes("up-down:root=6", autonet(), np.arange(10))
    links = autonet().links
    loads = routes.link_bytes([0], [1], [1.0])
    used = {f"{links.source[row]}-{links.target[row]}": loads[row] for row in np.flatnonzero(loads)}
    assert used == {"0-2": 0.5, "2-1": 0.5, "0-4": 0.5, "4-1": 0.5}


def test_the_default_root_is_the_first_vertex_with_most_neighbours() -> None:
    fabric, pairs = autonet(), np.array(list(itertools.permutations(range(10), 2))).T
    most = np.bincount(fabric.links.source)
    assert int(most.argmax()) == 0
    by_default = build_routes("up-down", fabric, np.arange(10))
    named = build_routes("up-down:root=0", fabric, np.arange(10))
    for i, j in pairs.T.tolist():
        np.testing.assert_array_equal(
            by_default.link_bytes([i], [j], [1.0]), named.link_bytes([i], [j], [1.0])
        )
    assert by_default.name == "up-down"
    assert named.name == "up-down:root=0"


def test_legal_ways_may_be_longer_than_the_shortest() -> None:
    ring = np.arange(6)
    fabric = Fabric.from_arcs(
        [str(v) for v in ring], np.r_[ring, (ring + 1) % 6], np.r_[(ring + 1) % 6, ring], 1.0
    )
    routes = build_routes("up-down:root=0", fabric, ring)
    assert routes.distances[2, 4] == 4  # 2-3-4 would go down to 3 and up again
    assert build_routes("shortest-paths", fabric, ring).distances[2, 4] == 2


def test_a_root_that_is_no_switch_is_refused() -> None:
    with pytest.raises(UnknownName, match="switch 'six'"):
        build_routes("up-down:root=six", autonet(), [0, 1])
