"""Which pairs of ranks load a link: against enumeration by networkx, and against the exact loads."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mapping.distances.cost_model import CostModel
from mapping.routing.catalog import build_routes
from mapping.routing.path_table import PathTable, routes_by
from mapping.selfcheck import oracles
from mapping.traffic.job_loads import rank_pairs
from registry.errors import AlmanacError, InvalidValue
from registry.model import Allocation, Fabric, Placement, Profile
from tests.support.small_fabrics import adapter_fabrics, allocations, plain_fabrics, profiles, table_fabrics

EXACT = ("shortest-paths", "up-down", "least-loaded", "least-loaded:order=heaviest", "ecmp:paths=3,seed=5")
ADAPTIVE = ("valiant", "ugal:share=0.3", "ugal:share=0.4,minimal=tables")


@st.composite
def placed(draw: st.DrawFn, fabric: Fabric) -> tuple[Profile, Placement]:
    profile = draw(profiles(max_ranks=6))
    allocation = draw(allocations(fabric, profile.ranks))
    slots = draw(st.permutations(allocation.host_of_slot.tolist()))
    placement = Placement(
        host_of_rank=np.array(slots[: profile.ranks]), allocation=allocation, strategy="given"
    )
    return profile, placement


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
        assert route is not None
        for row, part in route:
            if size * part > 0:
                wanted[row][int(rank), int(partner)] = size * part
    for row, pairs in wanted.items():
        found = rank_pairs(fabric, profile, placement, row, CostModel(routing=routing, rails=rails))
        carried = dict(
            zip(zip(found.sender.tolist(), found.receiver.tolist(), strict=True), found.bytes, strict=True)
        )
        assert carried == pytest.approx(pairs)
        assert found.pairs == len(pairs)


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_pairs_on_all_shortest_paths_are_those_of_enumeration(data: st.DataObject) -> None:
    fabric = data.draw(st.one_of(plain_fabrics(), adapter_fabrics()))
    rails = data.draw(st.sampled_from(["all-connected", "same-rail"]))
    check_against_enumeration(fabric, *data.draw(placed(fabric)), "shortest-paths", rails)


@settings(deadline=None, max_examples=30)
@given(st.data())
def test_pairs_on_forwarding_tables_are_those_of_walks(data: st.DataObject) -> None:
    fabric = data.draw(table_fabrics())
    rails = data.draw(st.sampled_from(["all-connected", "same-rail"]))
    check_against_enumeration(fabric, *data.draw(placed(fabric)), "tables", rails)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_pairs_of_every_link_sum_to_its_load_on_every_routing(data: st.DataObject) -> None:
    fabric = data.draw(st.one_of(plain_fabrics(), adapter_fabrics(), table_fabrics()))
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


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_what_a_pair_puts_on_a_link_is_its_load_alone_where_pairs_do_not_depend_on_each_other(
    data: st.DataObject,
) -> None:
    fabric = data.draw(st.one_of(plain_fabrics(), adapter_fabrics(), table_fabrics()))
    routing = data.draw(st.sampled_from(["shortest-paths", "up-down", "ecmp:paths=2", *ADAPTIVE]))
    assume("tables" not in routing or fabric.tables is not None)
    routes = build_routes(routing, fabric, fabric.hosts)
    assume(routes.connected)
    source, target = np.indices((len(fabric.hosts),) * 2).reshape(2, -1)
    alone = [routes.link_bytes([i], [j], [7.0]) for i, j in zip(source, target, strict=True)]
    for row in range(len(fabric.links)):
        found = routes.on_link(source, target, np.full(len(source), 7.0), row)
        np.testing.assert_allclose(found, [load[row] for load in alone], atol=1e-12)


def test_pairs_follow_dimension_order_and_a_table_of_paths() -> None:
    side = 4
    at = np.arange(side * side)
    x, y = at % side, at // side
    ends = [(at, (x + 1) % side + y * side), (at, x + (y + 1) % side * side)]
    source = np.concatenate([a for a, _ in ends] + [b for _, b in ends])
    target = np.concatenate([b for _, b in ends] + [a for a, _ in ends])
    fabric = Fabric.from_arcs([f"n{v:02}" for v in at], source, target, 2.0)
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
    placement = Placement(
        host_of_rank=np.array([0, 0, 1, 1]), allocation=Allocation.of(fabric, ["a", "b"], 4), strategy="given"
    )
    found = rank_pairs(fabric, profile, placement, 0, most=2)
    assert (found.sender.tolist(), found.receiver.tolist()) == ([1, 0], [3, 2])
    assert (found.pairs, found.total_bytes) == (3, 19.0)


def test_an_unknown_row_is_refused() -> None:
    fabric = Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1.0)
    profile = Profile.from_edges([0], [1], [1.0])
    placement = Placement(
        host_of_rank=np.array([0, 1]), allocation=Allocation.of(fabric, ["a", "b"]), strategy="given"
    )
    for row in (-1, 2):
        with pytest.raises(InvalidValue, match="is not from 0 to 1"):
            rank_pairs(fabric, profile, placement, row)
