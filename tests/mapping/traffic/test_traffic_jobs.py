"""Which pairs of ranks load a link, and how scattered jobs are: against enumeration, and by hand."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ingest.generate.tori import torus
from mapping.distances.cost_model import CostModel
from mapping.routing.catalog import build_routes
from mapping.routing.path_table import PathTable, routes_by
from mapping.selfcheck import oracles
from mapping.traffic.fragmentation import Neighbours
from mapping.traffic.job_loads import rank_pairs
from registry.errors import AlmanacError, DisconnectedAllocation, InvalidValue
from registry.model import Allocation, Fabric, Placement, Profile
from tests.support.small_fabrics import any_fabrics, given_placement, placements, profiles, table_fabrics
from tests.support.sure import sure
from tests.support.traffic_jobs import two_leaves

EXACT = ("shortest-paths", "up-down", "least-loaded", "least-loaded:order=heaviest", "ecmp:paths=3,seed=5")
ADAPTIVE = ("valiant", "ugal:share=0.3", "ugal:share=0.4,minimal=tables")


@st.composite
def placed(draw: st.DrawFn, fabric: Fabric) -> tuple[Profile, Placement]:
    profile = draw(profiles(max_ranks=6))
    return profile, draw(placements(fabric, profile))


def check_against_enumeration(
    fabric: Fabric, profile: Profile, placement: Placement, routing: str, rails: str
) -> None:
    find = {"shortest-paths": oracles.shortest_path_route, "tables": oracles.table_route}[routing]
    wanted: dict[int, dict[tuple[int, int], float]] = {row: {} for row in range(len(fabric.links))}
    for rank, partner, size in zip(profile.sender, profile.partner, profile.bytes, strict=True):
        ends = int(placement.host_of_rank[rank]), int(placement.host_of_rank[partner])
        if ends[0] == ends[1]:
            continue
        route = find(fabric, *ends, rails)
        assume(route is not None)
        for row, part in sure(route):
            if size * part > 0:
                wanted[row][int(rank), int(partner)] = size * part
    for row, pairs in wanted.items():
        found = rank_pairs(fabric, profile, placement, row, CostModel(routing=routing, rails=rails))
        rows = zip(found.sender.tolist(), found.receiver.tolist(), strict=True)
        assert dict(zip(rows, found.bytes, strict=True)) == pytest.approx(pairs)
        assert found.pairs == len(pairs)


@pytest.mark.parametrize("routing", ["shortest-paths", "tables"])
@settings(max_examples=30)
@given(data=st.data())
def test_pairs_on_links_are_those_of_enumeration(routing: str, data: st.DataObject) -> None:
    fabric = data.draw(table_fabrics() if routing == "tables" else any_fabrics())
    rails = data.draw(st.sampled_from(["all-connected", "same-rail"]))
    check_against_enumeration(fabric, *data.draw(placed(fabric)), routing, rails)


@settings(max_examples=40)
@given(st.data())
def test_pairs_of_every_link_sum_to_its_load_on_every_routing(data: st.DataObject) -> None:
    fabric = data.draw(st.one_of(any_fabrics(), table_fabrics()))
    routing = data.draw(st.sampled_from(EXACT + ADAPTIVE))
    assume("tables" not in routing or fabric.tables is not None)
    profile, placement = data.draw(placed(fabric))
    for row in range(len(fabric.links)):
        try:
            found = rank_pairs(fabric, profile, placement, row, CostModel(routing=routing))
        except AlmanacError:
            assume(False)
        assert float(found.bytes.sum()) == pytest.approx(found.total_bytes)
        assert (found.bytes > 0).all()


@settings(max_examples=40)
@given(st.data())
def test_what_an_independent_pair_puts_on_a_link_is_its_load_alone(data: st.DataObject) -> None:
    fabric = data.draw(st.one_of(any_fabrics(), table_fabrics()))
    routing = data.draw(st.sampled_from(["shortest-paths", "up-down", "ecmp:paths=2", *ADAPTIVE]))
    assume("tables" not in routing or fabric.tables is not None)
    routes = build_routes(routing, fabric, fabric.hosts)
    assume(routes.connected)
    source, target = np.indices((len(fabric.hosts),) * 2).reshape(2, -1)
    try:
        alone = [routes.link_bytes([i], [j], [7.0]) for i, j in zip(source, target, strict=True)]
    except DisconnectedAllocation:  # by one-way links some host is not reached over another switch
        assert routing in ADAPTIVE
        return
    for row in range(len(fabric.links)):
        found = routes.on_link(source, target, np.full(len(source), 7.0), row)
        np.testing.assert_allclose(found, [load[row] for load in alone], atol=1e-12)


def test_pairs_follow_dimension_order_and_a_table_of_paths() -> None:
    fabric = torus([4, 4], capacity=2.0)
    at = np.arange(16)
    rng = np.random.default_rng(3)
    for routes in (
        build_routes("dimension-order:order=yx", fabric, at),
        routes_by(every_shortest_path(fabric), fabric, at),
    ):
        i, j = rng.integers(0, len(at), (2, 50))
        size = rng.integers(1, 9, 50).astype(float)
        loads = routes.link_bytes(i, j, size)
        for row in range(len(fabric.links)):
            found = routes.on_link(i, j, size, row)
            assert float(found.sum()) == pytest.approx(loads[row])
            for pair in np.flatnonzero(found)[:5].tolist():
                alone = routes.link_bytes([i[pair]], [j[pair]], [size[pair]])
                assert found[pair] == pytest.approx(alone[row])


def every_shortest_path(fabric: Fabric) -> PathTable:
    graph: nx.DiGraph[Any] = nx.DiGraph(
        list(zip(fabric.links.source.tolist(), fabric.links.target.tolist(), strict=True))
    )
    ways = [
        (1 / len(paths), path)
        for i, j in itertools.permutations(range(len(fabric)), 2)
        for paths in [list(nx.all_shortest_paths(graph, i, j))]
        for path in paths
    ]
    return PathTable(
        probability=np.array([part for part, _ in ways]),
        ptr=np.r_[0, np.cumsum([len(path) for _, path in ways])],
        vertex=np.array([v for _, path in ways for v in path], np.int32),
    )


def test_the_largest_pairs_come_first_and_the_rest_still_counts() -> None:
    fabric = Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1.0, slots=4)
    profile = Profile.from_edges([0, 1, 0], [2, 3, 3], [5.0, 9.0, 5.0], ranks=4)
    placement = given_placement(Allocation.of(fabric, ["a", "b"], 4), [0, 0, 1, 1])
    found = rank_pairs(fabric, profile, placement, 0, most=2)
    assert (found.sender.tolist(), found.receiver.tolist()) == ([1, 0], [3, 2])
    assert (found.pairs, found.total_bytes) == (3, 19.0)
    for row in (-1, 2):
        with pytest.raises(InvalidValue, match="is not from 0 to 1"):
            rank_pairs(fabric, profile, placement, row)


@given(any_fabrics(), st.data())
def test_groups_touched_and_the_fewest_that_hold_as_many_hosts(fabric: Fabric, data: st.DataObject) -> None:
    hosts = data.draw(st.lists(st.sampled_from(fabric.hosts.tolist()), min_size=1, unique=True))
    links = fabric.links
    leaves = {
        host: frozenset(
            int(far)
            for near, far in zip(links.source, links.target, strict=True)
            if near == host and fabric.forwards[far] and not fabric.forwards[host]
        )
        or frozenset({-1 - host})
        for host in fabric.hosts.tolist()
    }
    groups = set(leaves.values())
    sizes = {group: sum(one == group for one in leaves.values()) for group in groups}
    fewest = next(
        count
        for count in range(1, len(groups) + 1)
        if max(sum(sizes[one] for one in some) for some in itertools.combinations(groups, count))
        >= len(hosts)
    )
    found = Neighbours.of(fabric).fragmentation(hosts)
    assert (found.groups, found.fewest) == (len({leaves[host] for host in hosts}), fewest)
    assert found.times >= 1.0


def test_hosts_under_one_switch_are_whole_and_under_two_are_scattered() -> None:
    fabric = two_leaves()
    for hosts, groups, times in ((["a0", "a1"], 1, 1.0), (["a0", "b0", "a0"], 2, 2.0)):
        found = Neighbours.of(fabric).fragmentation(fabric.vertices(hosts))
        assert (found.groups, found.fewest, found.times) == (groups, 1, times)
    ring = Fabric.from_arcs(list("abc"), [0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2], 1.0)
    assert Neighbours.of(ring).fragmentation([0, 2]).times == 1.0  # nodes of a direct network


def test_no_hosts_switches_and_unknown_vertices_are_refused() -> None:
    neighbours = Neighbours.of(two_leaves())
    for hosts, fault in (
        ([], "at least one"),
        ([4], "must not contain a switch"),
        ([0, 6], "must be from 0 to"),
        ([-1], "must be from 0 to"),
    ):
        with pytest.raises(InvalidValue, match=fault):
            neighbours.fragmentation(np.array(hosts, int))
