"""What all routings have in common, their names and small parts, and routes by a user's table of paths."""

from __future__ import annotations

import itertools
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mapping
from ingest.generate.direct import mesh
from mapping.distances.cost_model import CostModel
from mapping.placement.methods.baselines import in_order
from mapping.placement.search import SearchOptions
from mapping.routing import shortest_paths
from mapping.routing.catalog import ROUTINGS, Routing, build_routes
from mapping.routing.network import host_traffic, packets
from mapping.routing.routes import PathTable, read_path_table, routes_by
from registry import errors
from registry.errors import DisconnectedAllocation, InvalidValue, UnknownName, UnreachablePair
from registry.model import Allocation, Fabric, Floats, Placement, Profile
from tests.support.flow_checks import check_flows, check_loads, graph_between, on_paths
from tests.support.search_problems import ring
from tests.support.small_fabrics import any_fabrics, cabled, given_placement, plain_fabrics

PROFILE = Profile.from_edges([0, 0, 1, 2], [1, 2, 3, 0], [5.0, 7.0, 2.0, 4.0], messages=[1, 2, 1, 1], ranks=4)
ALLOCATION = Allocation(hosts=np.array([0, 1], np.int32), slots=np.array([2, 2], np.int32))


def placed(hosts: list[int]) -> Placement:
    return given_placement(ALLOCATION, hosts)


def test_traffic_of_ranks_is_summed_by_hosts_without_that_within_a_host() -> None:
    found = host_traffic(PROFILE, placed([0, 0, 1, 1]), packet_bytes=4.0)
    columns = found.source, found.target, found.bytes, found.rank_pairs, found.messages, found.packets
    assert np.column_stack(columns).tolist() == [[0, 1, 9, 2, 3, 3], [1, 0, 4, 1, 1, 1]]
    assert found.total_messages == 5
    unknown = Profile.from_edges([0], [1], [5.0], ranks=2)  # in an unknown number of messages
    assert np.isnan(host_traffic(unknown, placed([0, 1])).total_messages)


def test_a_message_is_at_least_one_packet() -> None:
    assert packets(PROFILE, 100.0).tolist() == [1, 2, 1, 1]


@pytest.mark.parametrize("size", [0.0, -1.0, float("nan"), float("inf")])
def test_another_number_of_ranks_and_packets_of_no_size_are_refused(size: float) -> None:
    with pytest.raises(errors.InvalidPlacement):
        host_traffic(PROFILE, placed([0, 1]))
    with pytest.raises(InvalidValue, match="above zero"):
        packets(PROFILE, size)


def test_hosts_on_one_switch_are_one_group() -> None:
    fabric = cabled("0-6 1-6 2-6 3-7 4-7 5-7 6-7", 6)
    found = shortest_paths.build(fabric, fabric.hosts[::-1]).grouped_hops()
    assert [one.tolist() for one in found] == [[0, 0, 0, 1, 1, 1], [[2, 3], [3, 2]]]


NAMES = [entry.name for entry in ROUTINGS]


def test_routes_are_named_by_the_canonical_text() -> None:
    assert [str(Routing.parse(name)) for name in NAMES] == NAMES
    for routing in ("shortest-paths", Routing.parse("shortest-paths")):
        assert build_routes(routing, mesh((2,)), [0, 1]).name == "shortest-paths"
    assert build_routes("up-down:root=n0", mesh((2,)), [0, 1]).name == "up-down:root=n0"


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("table", UnknownName, "tables"),
        ("tables", InvalidValue, "no forwarding tables"),
        ("shortest-paths:paths=3", UnknownName, "shortest-paths has none"),
        ("shortest-paths:paths", InvalidValue, "KEY=VALUE"),
        ("shortest-paths:rails=same-rail", UnknownName, "rails"),
        ("ugal:share=1.5", InvalidValue, "from 0 to 1"),
        ("valiant:share=nan", InvalidValue, r"valiant\.share"),
        ("ugal:minimal=shortest", UnknownName, "shortest-paths"),
        ("ugal:minimal=tables", InvalidValue, "forwarding tables"),
        ("ecmp:paths=0", InvalidValue, "below 1"),
        ("ecmp:seed=-1", InvalidValue, "seed"),
        ("least-loaded:order=heavy", UnknownName, "heaviest"),
        ("up-down:root=six", UnknownName, "switch 'six'"),
        ("dimension-order:order=xx", InvalidValue, "each of 'xy' once"),
        ("dimension-order:order=xyz", InvalidValue, "each of 'xy' once"),
        ("dimension-order:order=x", InvalidValue, "each of 'xy' once"),
        ("dimension-order:order=xz", InvalidValue, "each of 'xy' once"),
        ("path-table", InvalidValue, "is empty: give the path"),
    ],
)
def test_unknown_names_and_options_are_refused(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build_routes(text, mesh((2, 2)), [1, 2])


def text_of(name: str, folder: Path) -> str:
    """The routing on the ring; a table of paths goes around one way only."""
    if name != "path-table":
        return name
    rows = ["source,target,probability,path"]
    for i, j in itertools.permutations(range(8), 2):
        way = [f"n{(i + step) % 8:02}" for step in range((j - i) % 8 + 1)]
        rows.append(f"n{i:02},n{j:02},1,{'>'.join(way)}")
    path = folder / "paths.csv"
    path.write_text("\n".join(rows))
    return f"path-table:file={path}"


@pytest.mark.parametrize("name", [name for name in NAMES if name != "tables"])
def test_a_search_ends_no_worse_than_in_order(name: str, tmp_path: Path) -> None:
    fabric, profile, allocation = ring(8, 8)
    costs = CostModel(routing=text_of(name, tmp_path))
    start = in_order(profile.ranks, allocation)
    found = mapping.place(fabric, profile, allocation, SearchOptions(steps=500), costs)
    assert found.routing == costs.routing
    before, after = (mapping.evaluate(fabric, profile, one, costs=costs) for one in (start, found))
    assert after.routing == costs.routing
    assert after.congestion_seconds <= before.congestion_seconds


@pytest.mark.parametrize(
    "routing", ["shortest-paths", "ecmp:paths=2", "valiant", "ugal:share=0.6", "up-down"]
)
@given(fabric=any_fabrics(), data=st.data())
def test_loads_of_many_pairs_are_the_sum_of_each(routing: str, fabric: Fabric, data: st.DataObject) -> None:
    routes = build_routes(routing, fabric, fabric.hosts)
    if not routes.connected:
        return
    hosts = st.integers(0, len(fabric.hosts) - 1)
    pairs = data.draw(st.lists(st.tuples(hosts, hosts, st.integers(0, 9)), max_size=6))
    i, j, size = (np.array([pair[k] for pair in pairs], np.int64) for k in range(3))
    try:
        apart = [routes.load([a], [b], [c]) for a, b, c in pairs]
    except DisconnectedAllocation:  # from some host no switch is reached, or from no switch some host
        assert routing in ("valiant", "ugal:share=0.6")
        return
    found = routes.load(i, j, size)
    np.testing.assert_allclose(found.link_bytes, sum(one.link_bytes for one in apart), atol=1e-12)
    np.testing.assert_allclose(found.hops, [one.hops[0] for one in apart])
    np.testing.assert_allclose(found.hops, routes.distances[i, j])
    assert found.link_bytes.sum() == pytest.approx(size @ found.hops)


@pytest.mark.parametrize("routing", ["shortest-paths", "ecmp", "least-loaded", "valiant", "ugal", "up-down"])
def test_hosts_that_no_path_joins_are_named_whatever_they_send(routing: str) -> None:
    fabric = Fabric.from_arcs(list("abcd"), [0, 1, 2, 3], [1, 0, 3, 2], 1.0)
    routes = build_routes(routing, fabric, [0, 1, 3])
    with pytest.raises(DisconnectedAllocation, match="'b' to host 'd'") as caught:
        routes.link_bytes([0, 1], [1, 2], [1.0, 0.0])
    assert (caught.value.source, caught.value.target) == ("b", "d")
    with pytest.raises(DisconnectedAllocation, match="'a' to host 'd'"):
        routes.require_connected()
    assert not routes.connected


def test_an_index_that_is_no_host_and_an_unknown_rails_rule_are_refused() -> None:
    with pytest.raises(InvalidValue, match=r"must be from 0 to 1"):
        shortest_paths.build(mesh((2,)), [0, 1]).link_bytes([2], [0], [1.0])
    with pytest.raises(UnknownName, match="same-rail"):
        shortest_paths.build(mesh((2,)), [0, 1], rails="same-rails")


Paths = list[tuple[float, list[int]]]


@st.composite
def tables(draw: st.DrawFn) -> tuple[Fabric, Paths]:
    fabric = draw(plain_fabrics())
    paths: Paths = []
    for i, j in itertools.permutations(fabric.hosts.tolist(), 2):
        ways = list(itertools.islice(nx.all_simple_paths(graph_between(fabric, i, j), i, j), 3))
        if draw(st.booleans()) and ways:
            drawn: list[int] = draw(st.lists(st.integers(1, 5), min_size=len(ways), max_size=len(ways)))
            weights = np.array(drawn)
            paths += list(zip((weights / weights.sum()).tolist(), ways, strict=True))
    return fabric, draw(st.permutations(paths))


def table_of(paths: Paths) -> PathTable:
    return PathTable(
        probability=np.array([part for part, _ in paths], np.float64),
        ptr=np.r_[0, np.cumsum([len(way) for _, way in paths], dtype=np.int64)],
        vertex=np.array([v for _, way in paths for v in way], np.int32),
    )


@given(case=tables(), data=st.data())
def test_loads_are_the_sum_over_paths(case: tuple[Fabric, Paths], data: st.DataObject) -> None:
    fabric, paths = case
    hosts = data.draw(st.permutations(fabric.hosts.tolist()))[: max(2, len(fabric.hosts) - 1)]
    routes = routes_by(table_of(paths), fabric, hosts)

    def byte_between(i: int, j: int) -> Floats | None:
        ours = [part * on_paths(fabric, [way]) for part, way in paths if (way[0], way[-1]) == (i, j)]
        return np.sum(ours, axis=0) if ours else None

    check_loads(routes, byte_between, UnreachablePair)
    check_flows(routes)


SQUARE = Fabric.from_arcs(list("abcd"), [0, 1, 2, 3, 1, 2, 3, 0], [1, 2, 3, 0, 0, 1, 2, 3], 1.0)
"""Four hosts in a circle: a - b - c - d - a."""
HEAD = "source,target,probability,path\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "paths.csv"
    path.write_text(HEAD + text)
    return path


def test_a_file_is_read_by_its_option(tmp_path: Path) -> None:
    path = written(tmp_path, "a,c,0.25,a>b>c\nc,a,1,c > d > a\n\na,c,0.75,a>d>c\n")
    routes = build_routes(f"path-table:file={path}", SQUARE, [0, 2])
    assert routes.name == f"path-table:file={path}"
    loads, links = routes.link_bytes([0, 1], [1, 0], [8.0, 1.0]), SQUARE.links
    used = {(int(links.source[row]), int(links.target[row])): loads[row] for row in np.flatnonzero(loads)}
    assert used == {(0, 1): 2, (1, 2): 2, (0, 3): 6, (3, 2): 6, (2, 3): 1, (3, 0): 1}


def test_a_pair_that_is_missing_is_named(tmp_path: Path) -> None:
    routes = build_routes(f"path-table:file={written(tmp_path, 'a,c,1,a>b>c')}", SQUARE, [0, 2])
    with pytest.raises(UnreachablePair, match=r"'c' to host 'a'.*the table of paths has no path"):
        routes.require_connected()
    assert routes.link_bytes([0], [1], [1.0]).sum() == 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a,c,0.5,a>b>c\na,c,0.4,a>d>c", "'a' to 'c' belongs to a pair whose probabilities do not sum to 1"),
        ("a,c,1,a>c", "a>c from 'a' to 'c' uses a link that the fabric does not have"),
        ("a,a,1,a>b>a", "leads from a host to itself"),
        ("a,c,2,a>b>c\na,c,-1,a>d>c", "has a probability outside 0 to 1"),
        ("a,c,nan,a>b>c", "has a probability outside 0 to 1"),
    ],
)
def test_a_table_that_cannot_be_is_refused_with_the_path(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(InvalidValue, match=why):
        build_routes(f"path-table:file={written(tmp_path, text)}", SQUARE, [0, 2])


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("a,c,1", 2, "found 3 columns, expected 4"),
        ("a,c,1,a>b>c\na,d,1,a>b>c", 3, "does not lead from 'a' to 'd'"),
        ("a,c,much,a>b>c", 2, "is not a probability"),
        ("a,c,1,", 2, "does not lead"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(tmp_path: Path, text: str, line: int, why: str) -> None:
    with pytest.raises(errors.InputError, match=why) as caught:
        read_path_table(written(tmp_path, text), SQUARE)
    assert caught.value.line == line


def test_a_path_through_a_host_that_does_not_forward_is_refused() -> None:
    fabric = Fabric.from_arcs(list("abc"), [0, 1, 1, 2], [1, 0, 2, 1], 1.0, forwards=False)
    with pytest.raises(InvalidValue, match="a vertex that does not forward"):
        routes_by(table_of([(1.0, [0, 1, 2])]), fabric, [0, 2])


def test_an_unknown_vertex_a_rails_rule_and_no_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="'x'"):
        read_path_table(written(tmp_path, "a,c,1,a>x>c"), SQUARE)
    text = f"path-table:file={written(tmp_path, 'a,c,1,a>b>c')}"
    with pytest.raises(InvalidValue, match="same-rail"):
        build_routes(text, SQUARE, [0, 2], rails="same-rail")
    with pytest.raises(errors.InputError, match="cannot read"):
        build_routes(f"path-table:file={tmp_path / 'none.csv'}", SQUARE, [0, 2])
