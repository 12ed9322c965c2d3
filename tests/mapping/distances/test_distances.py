"""Conventions of distance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.distances.distances import CONVENTIONS, Distances, distances
from mapping.routing import shortest_paths
from mapping.routing.routes import Routes
from mapping.selfcheck.oracles import shortest_path_route
from registry.errors import InvalidValue, UnknownName
from registry.model import Fabric
from tests.support.small_fabrics import adapter_fabrics, plain_fabrics


def two_leaves() -> Fabric:
    """Hosts a and b on one switch, c on another."""
    tails, heads = [0, 1, 2, 3], [3, 3, 4, 4]
    slots = [1, 1, 1, 0, 0]
    return Fabric.from_arcs(list("abcst"), tails + heads, heads + tails, 1.0, slots=slots, forwards=False)


def routes() -> Routes:
    return shortest_paths.build(two_leaves(), [0, 1, 2])


@pytest.mark.parametrize(
    ("name", "near", "far"),
    [("links", 2, 3), ("switches", 1, 2), ("equivalent", 0, 1), ("equivalent+2", 2, 3)],
)
def test_each_convention_counts_its_own_way(name: str, near: float, far: float) -> None:
    found = distances(name, routes())
    assert found.name == name
    np.testing.assert_allclose(found.matrix(), [[0, near, far], [near, 0, far], [far, far, 0]])
    assert found.symmetric
    assert len(found) == 3


@given(fabric=st.one_of(adapter_fabrics(), plain_fabrics()))
def test_links_are_those_of_a_slow_count(fabric: Fabric) -> None:
    found = distances("links", shortest_paths.build(fabric, fabric.hosts))
    hosts = range(len(fabric.hosts))
    for i in hosts:
        for j in hosts:
            route = shortest_path_route(fabric, int(fabric.hosts[i]), int(fabric.hosts[j])) if i != j else []
            wanted = np.inf if route is None else sum(part for _, part in route)
            assert found.of(i, j) == pytest.approx(wanted)
            assert found.matrix()[i, j] == pytest.approx(wanted)


def test_hosts_of_one_group_differ_from_a_host_and_itself() -> None:
    found = Distances(name="links", group=[0, 0, 1], between=[[2.0, 4.0], [3.0, 0.0]])  # type: ignore[arg-type]
    assert found.of([0, 0, 0, 2], [0, 1, 2, 0]).tolist() == [0.0, 2.0, 4.0, 3.0]
    assert found.matrix().tolist() == [[0, 2, 4], [2, 0, 4], [3, 3, 0]]
    assert not found.symmetric
    between = found.between_slots(np.array([1, 1, 2], np.int32))
    assert between.tolist() == [[0, 2, 3, 3], [2, 0, 3, 3], [3, 3, 0, 0], [3, 3, 0, 0]]


def test_an_unknown_convention_is_refused_with_the_closest_names() -> None:
    with pytest.raises(UnknownName, match="switches"):
        distances("switch", routes())
    assert len(set(CONVENTIONS)) == 5


ONE_WAY = np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0]])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros((2, 3)), r"shape \(3, 3\)"),
        (np.array([["0"] * 3] * 3), "must be numbers"),
        (np.array([[0, 1, 2], [1, 0, np.nan], [2, 1, 0]]), "'b' to 'c', nan, is not a number"),
        (np.array([[0, 1, 2], [1, 0, 2], [np.inf, 1, 0]]), "'c' to 'a', inf, is not finite"),
        (np.array([[0, -1, 2], [1, 0, 2], [2, 1, 0]]), "'a' to 'b', -1, is below zero"),
        (np.array([[0, 1, 2], [1, 7, 1], [2, 1, 0]]), "'b' to 'b', 7, is within one host"),
        (ONE_WAY, "'a' to 'b', 1, differs from that of the other direction"),
    ],
)
def test_a_table_with_a_fault_is_refused_by_the_hosts_names(table: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        distances("table", routes(), table=table)


def test_a_one_way_table_is_accepted_with_that_option() -> None:
    found = distances("table", routes(), table=ONE_WAY, one_way=True)
    np.testing.assert_array_equal(found.matrix(), ONE_WAY)
    assert not found.symmetric


def test_a_table_goes_with_its_own_name_only() -> None:
    with pytest.raises(InvalidValue, match="needs a table"):
        distances("table", routes())
    with pytest.raises(InvalidValue, match="not for 'links'"):
        distances("links", routes(), table=ONE_WAY)


def test_groups_outside_the_distances_are_refused() -> None:
    with pytest.raises(InvalidValue, match="must be from 0 to 0"):
        Distances(name="links", group=[0, 1], between=[[1.0]])  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match="shape"):
        Distances(name="links", group=[0], between=[1.0])  # type: ignore[arg-type]
