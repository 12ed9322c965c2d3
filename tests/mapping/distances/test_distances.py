"""Conventions of distance, and a user's own table: reading, and what is refused."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.tori import torus
from mapping.distances.distance_tables import DistanceTable, read_distance_table
from mapping.distances.distances import CONVENTIONS, LINKS, SWITCHES, Distances, WholeDistances, distances
from mapping.routing import shortest_paths
from mapping.routing.catalog import build_routes
from mapping.routing.routes import Routes
from registry.errors import InputError, InvalidValue, UnknownName
from registry.model import Fabric
from tests.support.small_fabrics import adapter_fabrics, plain_fabrics, table_fabrics


def routes() -> Routes:
    """Hosts a and b on one switch, c on another."""
    tails, heads, slots = [0, 1, 2, 3], [3, 3, 4, 4], [1, 1, 1, 0, 0]
    fabric = Fabric.from_arcs(list("abcst"), tails + heads, heads + tails, 1.0, slots=slots, forwards=False)
    return shortest_paths.build(fabric, [0, 1, 2])


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


@given(
    fabric=st.one_of(plain_fabrics(), adapter_fabrics(), table_fabrics()),
    name=st.sampled_from([LINKS, SWITCHES]),
)
def test_distances_in_a_byte_each_are_those_in_eight(fabric: Fabric, name: str) -> None:
    routes = build_routes("shortest-paths" if fabric.tables is None else "tables", fabric, fabric.hosts)
    group, between = routes.grouped_hops()
    expected = Distances(name=name, group=group, between=np.maximum(between - (name == SWITCHES), 0.0))
    found, hosts = distances(name, routes), np.arange(len(fabric.hosts))
    assert (found.name, found.groups, found.symmetric) == (name, expected.groups, expected.symmetric)
    np.testing.assert_array_equal(found.of(hosts[:, None], hosts), expected.of(hosts[:, None], hosts))
    np.testing.assert_array_equal(found.between, expected.between)
    np.testing.assert_array_equal(found.matrix(), expected.matrix())


def test_hosts_of_one_port_have_distances_of_a_byte_that_survive_pickling_unless_they_are_means() -> None:
    ring, at = torus((6,)), np.arange(6)
    found = distances(SWITCHES, build_routes("shortest-paths", ring, at))
    assert isinstance(found, WholeDistances)
    again = pickle.loads(pickle.dumps(found))
    assert again.of(0, at).tolist() == [0, 0, 1, 2, 1, 0]
    codes, value = again.codes
    np.testing.assert_array_equal(value[codes], again.between)
    assert build_routes("valiant", ring, at).grouped_links() is None


def test_hosts_of_one_group_differ_from_a_host_and_itself() -> None:
    found = Distances(name="links", group=[0, 0, 1], between=[[2.0, 4.0], [3.0, 0.0]])  # type: ignore[arg-type]
    assert found.of([0, 0, 0, 2], [0, 1, 2, 0]).tolist() == [0.0, 2.0, 4.0, 3.0]
    assert found.matrix().tolist() == [[0, 2, 4], [2, 0, 4], [3, 3, 0]]
    assert not found.symmetric
    between = found.between_slots(np.array([1, 1, 2], np.int32))
    assert between.tolist() == [[0, 2, 3, 3], [2, 0, 3, 3], [3, 3, 0, 0], [3, 3, 0, 0]]


@pytest.mark.parametrize(
    ("group", "between", "message"), [([0, 1], [[1.0]], "must be from 0 to 0"), ([0], [1.0], "shape")]
)
def test_groups_outside_the_distances_are_refused(group: Any, between: Any, message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Distances(name="links", group=group, between=between)


ONE_WAY = np.array([[0, 1, 2], [3, 0, 4], [5, 6, 0]])


@pytest.mark.parametrize(
    ("name", "table", "error", "message"),
    [
        ("table", np.zeros((2, 3)), InvalidValue, r"shape \(3, 3\)"),
        ("table", np.array([["0"] * 3] * 3), InvalidValue, "must be numbers"),
        ("table", [[0, 1, 2], [1, 0, np.nan], [2, 1, 0]], InvalidValue, "'b' to 'c', nan, is not a number"),
        ("table", [[0, 1, 2], [1, 0, 2], [np.inf, 1, 0]], InvalidValue, "'c' to 'a', inf, is not finite"),
        ("table", [[0, -1, 2], [1, 0, 2], [2, 1, 0]], InvalidValue, "'a' to 'b', -1, is below zero"),
        ("table", [[0, 1, 2], [1, 7, 1], [2, 1, 0]], InvalidValue, "'b' to 'b', 7, is within one host"),
        ("table", ONE_WAY, InvalidValue, "'a' to 'b', 1, differs from that of the other direction"),
        ("table", DistanceTable(names=("a", "b"), values=np.zeros((2, 2))), UnknownName, "'c'"),
        ("table", None, InvalidValue, "needs a table"),
        ("links", ONE_WAY, InvalidValue, "not for 'links'"),
        ("switch", None, UnknownName, "switches"),
    ],
)
def test_a_table_with_a_fault_is_refused_by_the_hosts_names(
    name: str, table: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        distances(name, routes(), table=np.array(table) if isinstance(table, list) else table)
    assert len(set(CONVENTIONS)) == 5


def test_a_one_way_table_is_accepted_with_that_option() -> None:
    found = distances("table", routes(), table=ONE_WAY, one_way=True)
    np.testing.assert_array_equal(found.matrix(), ONE_WAY)
    assert not found.symmetric


def written(folder: Path, text: str) -> Path:
    path = folder / "distances.csv"
    path.write_text(text)
    return path


def test_a_csv_table_is_taken_by_host_name_in_any_order(tmp_path: Path) -> None:
    path = written(tmp_path, "host,c,x,b,a\na,2,9,1,0\n\nb,3,9,0,1\nx,9,0,9,9\nc,0,9,3,2\n")
    found = distances("table", routes(), table=read_distance_table(path))
    assert found.matrix().tolist() == [[0, 1, 2], [1, 0, 3], [2, 3, 0]]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", None, "empty"),
        ("host,a,a\n", 1, "a name of its own"),
        ("host,a,b\na,0\n", 2, "1 distances for 2 hosts in 'a'"),
        ("host,a,b\na,0,x\n", 2, "is not a distance in 'x'"),
        ("host,a,b\na,0,nan\n", 2, "is not a distance in 'nan'"),
        ("host,a,b\na,0,1\na,0,1\n", 3, "second row"),
        ("host,a,b\na,0,1\n", None, "no row for host 'b'"),
    ],
)
def test_a_faulty_file_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int | None, message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_distance_table(written(tmp_path, text))
    assert caught.value.line == line


def test_a_row_without_a_column_no_file_another_shape_and_a_name_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="'bb'"):
        read_distance_table(written(tmp_path, "host,a,b\nbb,0,1\n"))
    with pytest.raises(InputError, match="cannot read"):
        read_distance_table(tmp_path / "none.csv")
    with pytest.raises(InvalidValue, match=r"\(1, 1\) for 2 hosts"):
        DistanceTable(names=("a", "b"), values=np.zeros((1, 1)))
    with pytest.raises(InvalidValue, match="'a' occurs twice"):
        DistanceTable(names=("a", "a"), values=np.zeros((2, 2)))
