"""Compare routes with independent paths, and the flows of single pairs, as search kernels use them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import networkx as nx
import numpy as np
import pytest

from mapping.routing.kernels.flows import new_scratch, pair_flows
from mapping.routing.routes import Routes
from mapping.selfcheck.oracles import Route
from registry.model import Fabric, Floats


def loads_by_flows(routes: Routes, i: int, j: int) -> Floats | None:
    """Return the loads of one byte from `pair_flows`, or None if the hosts are not connected."""
    flows = routes.flows
    scratch = new_scratch(flows)
    links, shares = np.zeros(flows.max_entries, np.int32), np.zeros(flows.max_entries)
    for _ in range(2):  # the second call finds the scratch as the first left it
        count = pair_flows(flows, scratch, i, j, links, shares)
    if count < 0:
        return None
    assert len(set(links[:count].tolist())) == count
    loads = np.zeros(len(routes.fabric.links))
    loads[links[:count]] = shares[:count]
    return loads


def check_flows(routes: Routes) -> None:
    for i, j in np.ndindex(len(routes.hosts), len(routes.hosts)):
        loads = loads_by_flows(routes, i, j)
        if not np.isfinite(routes.distances[i, j]):
            assert loads is None
            continue
        assert loads is not None
        np.testing.assert_allclose(loads, routes.link_bytes([i], [j], [1.0]), atol=1e-12)
        np.testing.assert_allclose(loads.sum(), routes.distances[i, j])
        for row in {0, int(loads.argmax())}:
            np.testing.assert_allclose(routes.on_link([i], [j], [1.0], row), loads[row], atol=1e-12)


def check_loads(
    routes: Routes, byte_between: Callable[[int, int], Floats | None], lost: type[Exception]
) -> None:
    """Compare loads, hops and distances of all pairs of hosts with the loads of one byte.

    Args:
        byte_between: Function of two vertices that returns the loads of one byte, or None if no path joins
            them.
        lost: Error of a pair that no path joins.
    """
    group, between = routes.grouped_hops()
    assert group.dtype == np.int32
    assert between.shape == (group.max() + 1,) * 2
    assert not np.diagonal(between)[np.bincount(group) == 1].any()
    connected = True
    for i, j in itertools.permutations(range(len(routes.hosts)), 2):
        expected = byte_between(int(routes.hosts[i]), int(routes.hosts[j]))
        hops = np.inf if expected is None else expected.sum()
        np.testing.assert_allclose([routes.distances[i, j], between[group[i], group[j]]], hops)
        if expected is None:
            connected = False
            with pytest.raises(lost):
                routes.link_bytes([i], [j], [1.0])
            continue
        load = routes.load([i], [j], [8.0])
        np.testing.assert_allclose(load.link_bytes, 8.0 * expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(load.hops, [hops])
    assert routes.connected == connected


def on_links(fabric: Fabric, route: Route | None) -> Floats | None:
    if route is None:
        return None
    loads = np.zeros(len(fabric.links))
    for row, part in route:
        loads[row] += part
    return loads


def on_paths(fabric: Fabric, paths: Sequence[Sequence[int]]) -> Floats:
    """Return the loads of one byte that paths (vertices) share equally, parallel cables by capacity."""
    loads, links = np.zeros(len(fabric.links)), fabric.links
    for path in paths:
        for a, b in itertools.pairwise(path):
            rows = (links.source == a) & (links.target == b)
            loads[rows] += links.capacity[rows] / links.capacity[rows].sum() / len(paths)
    return loads


def graph_between(fabric: Fabric, source: int, target: int) -> nx.DiGraph[Any]:
    """Return the graph of two vertices and all others that forward."""
    arcs = zip(fabric.links.source.tolist(), fabric.links.target.tolist(), strict=True)
    graph: nx.DiGraph[Any] = nx.DiGraph(sorted(set(arcs)))
    graph.add_nodes_from(range(len(fabric)))
    return graph.subgraph([v for v in graph if fabric.forwards[v] or v in (source, target)])


def shortest_ways(fabric: Fabric, source: int, target: int) -> list[list[int]]:
    try:
        return list(nx.all_shortest_paths(graph_between(fabric, source, target), source, target))
    except nx.NetworkXNoPath:
        return []
