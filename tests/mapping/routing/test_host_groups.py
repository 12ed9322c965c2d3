"""Distances between groups of hosts that are interchangeable."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mapping.routing import forwarding_tables, shortest_paths
from mapping.routing.routes import Routes
from mapping.selfcheck.oracles import Route, shortest_path_route, table_route
from registry.model import Fabric
from tests.support.small_fabrics import adapter_fabrics, plain_fabrics, table_fabrics

RAILS = st.sampled_from(["all-connected", "same-rail"])


def length(route: Route | None) -> float:
    return np.inf if route is None else sum(part for _, part in route)


def check(routes: Routes, expected: np.ndarray) -> None:
    group, between = routes.grouped_hops()
    assert group.dtype == np.int32
    assert between.shape == (group.max() + 1,) * 2
    for i, j in np.ndindex(expected.shape):
        if i != j:
            np.testing.assert_allclose(between[group[i], group[j]], expected[i, j])
    alone = np.bincount(group) == 1
    assert not np.diagonal(between)[alone].any()


@given(fabric=st.one_of(adapter_fabrics(), plain_fabrics()), rails=RAILS)
def test_hops_between_groups_are_those_of_enumerated_shortest_paths(fabric: Fabric, rails: str) -> None:
    hosts = fabric.hosts.tolist()
    expected = [[length(shortest_path_route(fabric, i, j, rails)) for j in hosts] for i in hosts]
    check(shortest_paths.build(fabric, hosts, rails=rails), np.array(expected))


@given(fabric=st.one_of(table_fabrics(), table_fabrics(broken=True)), rails=RAILS)
def test_hops_between_groups_are_those_of_walked_tables(fabric: Fabric, rails: str) -> None:
    hosts = fabric.hosts.tolist()
    expected = [[length(table_route(fabric, i, j, rails)) if i != j else 0 for j in hosts] for i in hosts]
    check(forwarding_tables.build(fabric, hosts, rails=rails), np.array(expected))


def test_hosts_on_one_switch_are_one_group() -> None:
    hosts = np.arange(6)
    leaf = 6 + hosts // 3
    fabric = Fabric.from_arcs(
        [f"h{h}" for h in hosts] + ["s", "t"],
        np.r_[hosts, leaf, 6, 7],
        np.r_[leaf, hosts, 7, 6],
        1.0,
        slots=[1] * 6 + [0] * 2,
        forwards=False,
    )
    group, between = shortest_paths.build(fabric, hosts[::-1]).grouped_hops()
    assert group.tolist() == [0, 0, 0, 1, 1, 1]
    assert between.tolist() == [[2, 3], [3, 2]]
