"""Up*/down* routing, against enumeration of legal paths and the tables of the 2004 paper."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.irregular import FIGURE_3
from ingest.generate.tori import torus
from mapping.routing.catalog import build_routes
from registry.errors import DisconnectedAllocation
from registry.model import Fabric, Floats
from tests.support.flow_checks import check_flows, check_loads, graph_between, on_paths
from tests.support.small_fabrics import any_fabrics, plain_fabrics


def autonet() -> Fabric:
    """The network of Figure 3 of the 2004 paper: ten switches, taken as hosts themselves."""
    ends = np.array(FIGURE_3)
    return Fabric.from_arcs(map(str, range(10)), ends.flatten(), ends[:, ::-1].flatten(), 1.0)


def levels(graph: nx.Graph[Any], root: int | None) -> dict[int, int]:
    """Links from the roots: the one given, else in each part the vertex with most neighbours, the first."""
    found: dict[int, int] = {}
    for part in nx.connected_components(graph):
        best = min(part, key=lambda v: (-graph.degree(v), v)) if root not in part else root
        found |= nx.single_source_shortest_path_length(graph.subgraph(part), best)
    return found


def legal_paths(fabric: Fabric, source: int, target: int, root: int | None = None) -> list[list[int]]:
    """All simple paths that go up no more once they went down, over vertices that forward."""
    graph = graph_between(fabric, source, target)
    inner: nx.Graph[Any] = nx.Graph(graph_between(fabric, -1, -1))
    level = levels(inner, root)

    def up(a: int, b: int) -> bool:
        far = len(fabric)
        return (level.get(b, far), b) < (level.get(a, far), a)

    found = []
    for path in nx.all_simple_paths(graph, source, target):
        turns = [up(a, b) for a, b in itertools.pairwise(path)]
        if turns == sorted(turns, reverse=True):
            found.append(path)
    return found


@given(fabric=plain_fabrics(), data=st.data())
def test_loads_are_those_of_all_shortest_legal_paths(fabric: Fabric, data: st.DataObject) -> None:
    root = data.draw(st.sampled_from([None, *np.flatnonzero(fabric.forwards).tolist()]))
    routes = build_routes(f"up-down:root=v{root}" if root is not None else "up-down", fabric, fabric.hosts)

    def byte_between(i: int, j: int) -> Floats | None:
        paths = legal_paths(fabric, i, j, root)
        shortest = [path for path in paths if len(path) == min(map(len, paths))]
        return on_paths(fabric, shortest) if shortest else None

    check_loads(routes, byte_between, DisconnectedAllocation)


@given(fabric=any_fabrics(), rails=st.sampled_from(["all-connected", "same-rail"]))
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
    """A ring of six, where vertices 2 and 5 are linked, too."""
    ends = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (2, 5)])
    fabric = Fabric.from_arcs(map(str, range(6)), ends.flatten(), ends[:, ::-1].flatten(), 1.0)
    i, j = np.array(list(itertools.permutations(range(6), 2))).T
    by_default, *by_root = (
        build_routes(f"up-down{root}", fabric, np.arange(6)).link_bytes(i, j, np.arange(len(i)))
        for root in ("", ":root=2", ":root=5", ":root=0")
    )
    assert [np.array_equal(by_default, one) for one in by_root] == [True, False, False]


def test_legal_ways_may_be_longer_than_the_shortest() -> None:
    ring, names = torus((6,)), ("up-down:root=n0", "shortest-paths")
    found = [build_routes(name, ring, ring.hosts).distances[2, 4] for name in names]
    assert found == [4, 2]  # not down to 3 and up again
