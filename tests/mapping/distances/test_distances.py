"""Conventions of distance, a user's own table, equivalent distances, and other jobs' load."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.papers.mapping.autonet import TABLE_2
from ingest.generate.direct import autonet, torus
from mapping.cost.metrics import evaluate
from mapping.distances.cost_model import Background, CostModel
from mapping.distances.distances import (
    CONVENTIONS,
    LINKS,
    SWITCHES,
    Distances,
    DistanceTable,
    WholeDistances,
    distances,
    read_distance_table,
)
from mapping.routing import shortest_paths
from mapping.routing.catalog import build_routes
from mapping.routing.routes import Routes
from mapping.selfcheck.oracles import resistance, shortest_path_route, table_route
from registry.errors import InputError, InvalidValue, UnknownName
from registry.model import Allocation, Evaluation, Fabric, Placement, Profile
from tests.support.search_problems import placed_problems
from tests.support.small_fabrics import any_fabrics, given_placement, table_fabrics


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


@given(fabric=st.one_of(any_fabrics(), table_fabrics()), name=st.sampled_from([LINKS, SWITCHES]))
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
def test_faulty_tables_name_their_hosts(name: str, table: Any, error: type[Exception], message: str) -> None:
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
def test_a_faulty_file_is_refused_by_line(tmp_path: Path, text: str, line: int | None, message: str) -> None:
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


@pytest.mark.parametrize("routing", ["shortest-paths", "tables"])
@given(data=st.data())
def test_equivalent_distances_are_those_of_networkx(routing: str, data: st.DataObject) -> None:
    tables = routing == "tables"
    fabric = data.draw(table_fabrics() if tables else any_fabrics())
    routes, find = build_routes(routing, fabric, fabric.hosts), table_route if tables else shortest_path_route
    found = {name: distances(name, routes).matrix() for name in ("equivalent", "equivalent+2")}
    for i, j in itertools.permutations(range(len(fabric.hosts)), 2):
        source, target = int(fabric.hosts[i]), int(fabric.hosts[j])
        route = find(fabric, source, target)
        rows = sorted({row for row, part in route or [] if part > 0})
        for name, matrix in found.items():
            if route is None:
                assert matrix[i, j] == np.inf
            else:
                wanted = resistance(fabric, rows, source, target, own_cables=name == "equivalent+2")
                assert matrix[i, j] == pytest.approx(wanted, abs=1e-9)


def by_up_down(name: str, hosts_each: int) -> Distances:
    """The 10 switches of Orduña et al. 2004, Figure 3, with hosts on each; up*/down* from root 6."""
    fabric = autonet(hosts=hosts_each)
    return distances(name, build_routes("up-down:root=switch6", fabric, fabric.hosts))


def test_the_published_table_of_equivalent_distances() -> None:
    """Orduña et al. 2004, Table 2."""
    found = by_up_down("equivalent", 1)
    np.testing.assert_allclose(found.matrix(), TABLE_2, atol=1e-12)
    assert found.symmetric


def test_processors_are_two_further_than_their_switches_and_zero_within_a_host() -> None:
    """Orduña et al. 2004, section 4."""
    found = by_up_down("equivalent+2", 2)
    wanted = np.kron(np.array(TABLE_2), np.ones((2, 2))) + 2 - 2 * np.eye(20)
    np.testing.assert_allclose(found.matrix(), wanted, atol=1e-12)
    assert len(found.between) == 10


def line() -> tuple[Fabric, Placement, Placement]:
    """Hosts a - b - c in a line of cables of 2 bytes/s; a placement on a and b, one on a and c."""
    fabric = Fabric.from_arcs(list("abc"), [0, 1, 1, 2], [1, 0, 2, 1], 2.0)
    near, far = (Allocation.of(fabric, hosts) for hosts in (["a", "b"], ["a", "c"]))
    first, second = (given_placement(on, on.hosts) for on in (near, far))
    return fabric, first, second


OURS = Profile.from_edges([0], [1], [6.0])
THEIRS = Profile.from_edges([0, 1], [1, 0], [1.0, 9.0])


def others() -> tuple[Fabric, Placement, Evaluation]:
    fabric, near, far = line()
    return fabric, near, evaluate(fabric, THEIRS, far)


def test_bytes_of_others_are_added_where_we_load_a_link_as_often_as_they_repeat() -> None:
    fabric, ours, theirs = others()
    found = evaluate(fabric, OURS, ours, costs=CostModel(background=Background.added([theirs])))
    assert found.congestion_seconds == found.mean_congestion_seconds == (6 + 1) / 2
    assert found.hop_bytes == 6.0
    assert found.link_bytes.tolist() == [6.0, 0.0, 0.0, 0.0]
    assert found.background == "added: 20 bytes of 1 other job on all links"
    both = Background.added([theirs, theirs], times=[1.0, 3.0])
    assert evaluate(fabric, OURS, ours, costs=CostModel(background=both)).congestion_seconds == (6 + 4) / 2


def test_capacity_is_reduced_by_the_rates_of_others_but_not_below_the_floor() -> None:
    fabric, ours, theirs = others()
    found = evaluate(fabric, OURS, ours, costs=CostModel(background=Background.reduced([theirs], 2.0)))
    assert found.congestion_seconds == 6 / (2 - 0.5)
    assert found.background == (
        "reduced: the capacity that 1 other job leaves, at least 0.01 of each link (2 links at that)"
    )
    full = Background.reduced([theirs], 0.25, floor=0.1)
    np.testing.assert_allclose(full.capacity(fabric), [0.2, 0.2, 0.2, 0.2])
    assert full.floored(fabric) == 4
    found = evaluate(fabric, OURS, ours, costs=CostModel(background=full))
    assert found.congestion_seconds == pytest.approx(30.0)


def test_a_link_with_exactly_the_floor_left_is_not_counted_as_floored() -> None:
    """Of 2 bytes/s the floor keeps 0.5: 1.5 in use leave just that, only more is cut off by the floor."""
    fabric, _, _ = line()
    load = np.array([1.5, np.nextafter(1.5, 2.0), 1.0, 2.0])
    background = Background(kind="reduced", load=load, floor=0.25)
    assert background.floored(fabric) == 2
    assert background.capacity(fabric).tolist() == [0.5, 0.5, 1.0, 0.5]
    assert background.description(fabric).endswith("(2 links at that)")


@given(case=placed_problems(), data=st.data())
def test_no_other_load_changes_nothing_and_more_never_helps(case: tuple, data: st.DataObject) -> None:  # type: ignore[type-arg]
    problem, hosts = case
    fabric, allocation, m = problem.routes.fabric, problem.allocation, len(problem.routes.fabric.links)
    placement = given_placement(allocation, allocation.hosts[hosts])
    load = np.array(data.draw(st.lists(st.integers(0, 9), min_size=m, max_size=m)), np.float64)

    def beside(background: Background | None) -> Evaluation:
        costs = CostModel(routing=problem.routes.name, background=background)
        return evaluate(fabric, problem.profile, placement, costs=costs)

    alone, capacity = beside(None), fabric.links.capacity
    for kind, slow in (
        ("added", (alone.link_bytes + load) / capacity),
        ("reduced", alone.link_bytes / np.maximum(capacity - load, 0.01 * capacity)),
    ):
        same, worse = (beside(Background(kind=kind, load=one)) for one in (np.zeros(m), load))
        assert same.congestion_seconds == alone.congestion_seconds
        assert worse.congestion_seconds >= alone.congestion_seconds
        assert worse.congestion_seconds == pytest.approx(slow[alone.link_bytes > 0].max(initial=0.0))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kind": "more"}, "must be 'added' or 'reduced'"),
        ({"load": np.array([0.0, -1.0])}, "-1 on link 1"),
        ({"load": np.array([np.nan])}, "nan on link 0"),
        ({"load": np.zeros((1, 1))}, "2 dimensions"),
        ({"floor": 0.0}, "must be above 0"),
        ({"floor": 1.5}, "at most 1"),
    ],
)
def test_what_is_no_load_is_refused(changed: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidValue, match=message):
        Background(**{"kind": "added", "load": np.zeros(4)} | changed)  # type: ignore[arg-type]


def test_a_background_of_another_fabric_or_of_nobody_is_refused() -> None:
    fabric, ours, theirs = others()
    with pytest.raises(InvalidValue, match="3 entries for 4 links"):
        evaluate(fabric, OURS, ours, costs=CostModel(background=Background(kind="added", load=np.zeros(3))))
    with pytest.raises(InvalidValue, match="at least one other job"):
        Background.added([])
    with pytest.raises(InvalidValue, match="period"):
        Background.reduced([theirs], 0.0)
