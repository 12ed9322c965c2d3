"""What cannot be placed is an error that names the offender; what can only be placed one way is placed so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import mapping
from mapping.distances.cost_model import CostModel
from mapping.distances.distance_tables import DistanceTable
from mapping.placement.case import PlacementCase
from mapping.placement.problem.problem import Problem
from mapping.placement.search.options import SearchOptions
from mapping.routing.catalog import build_routes
from registry.errors import (
    DisconnectedAllocation,
    InfeasibleAllocation,
    InvalidPlacement,
    InvalidValue,
    UnknownName,
    UnreachablePair,
)
from registry.model import NO_ROUTE, Allocation, Fabric, ForwardingTables, Ints, Profile
from tests.support.infiniband_data import infiniband
from tests.support.search_problems import problems, ring

OBJECTIVES = ["congestion", "hop-bytes", "mapping-coefficient", "2*congestion+hop-bytes", "max-dilation"]


def two_islands() -> Fabric:
    return Fabric.from_arcs(["a", "b", "c", "d"], [0, 1, 2, 3], [1, 0, 3, 2], 1.0)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_hosts_that_no_path_joins_are_named(objective: str) -> None:
    fabric = two_islands()
    talking = Profile.from_edges([0], [1], [1.0])
    with pytest.raises(DisconnectedAllocation, match=r"'a'.*'c'"):
        mapping.place(
            fabric, talking, Allocation.of(fabric, ["a", "c"]), SearchOptions(objective=objective, steps=9)
        )


def test_a_host_that_only_sends_is_named() -> None:
    fabric = Fabric.from_arcs(["a", "b", "c"], [0, 1, 2], [1, 0, 1], 1.0)
    with pytest.raises(DisconnectedAllocation) as error:
        mapping.place(
            fabric,
            Profile.from_edges([0], [1], [1.0]),
            Allocation.of(fabric, list("abc")),
            SearchOptions(steps=9),
        )
    assert (error.value.source, error.value.target) == ("a", "c")


def test_more_ranks_than_slots_are_counted() -> None:
    fabric, profile, allocation = ring(5, 6)
    with pytest.raises(InfeasibleAllocation, match="6 ranks do not fit on 5 slots of 5 hosts: give more"):
        mapping.place(fabric, profile, allocation)


@pytest.mark.parametrize("capacity", [0.0, -1.0, float("nan"), float("inf")])
def test_a_link_without_a_capacity_is_no_fabric(capacity: float) -> None:
    with pytest.raises(InvalidValue) as error:
        Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], [1.0, capacity])
    assert error.value.field == "Links.capacity"


@pytest.mark.parametrize("taken", [0.0, -1.0, float("nan")])
def test_a_problem_whose_links_have_nothing_left_is_refused(taken: float) -> None:
    fabric, profile, allocation = ring(5, 5)
    routes = build_routes("shortest-paths", fabric, allocation.hosts)
    left = fabric.links.capacity.copy()
    left[3] = taken
    with pytest.raises(InvalidValue, match=r"link n\d\d -> n\d\d"):
        Problem(profile=profile, allocation=allocation, routes=routes, link_capacity=left)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("ranks", [1, 4])
def test_a_guest_without_edges_stays_in_order(ranks: int, objective: str) -> None:
    fabric, _, allocation = ring(5, 5)
    silent = Profile.from_edges([], [], [], ranks=ranks)
    found = mapping.place(fabric, silent, allocation, SearchOptions(objective=objective, steps=50))
    assert found.host_of_rank.tolist() == allocation.hosts[:ranks].tolist()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_guest_in_two_parts_is_placed(objective: str) -> None:
    fabric, _, allocation = ring(8, 8)
    pairs = Profile.from_edges([0, 1, 2, 3], [4, 5, 6, 7], np.ones(4), ranks=8)
    found = mapping.place(fabric, pairs, allocation, SearchOptions(objective=objective, steps=4000))
    assert mapping.evaluate(fabric, pairs, found).hop_bytes == 4.0  # every pair next to each other


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_all_ranks_on_the_one_host(objective: str) -> None:
    fabric, profile, _ = ring(5, 4)
    found = mapping.place(
        fabric, profile, Allocation.of(fabric, [3], 4), SearchOptions(objective=objective, steps=50)
    )
    assert found.host_of_rank.tolist() == [3, 3, 3, 3]
    assert mapping.evaluate(fabric, profile, found).congestion_seconds == 0.0


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_bytes_that_are_no_number_are_no_profile(value: float) -> None:
    with pytest.raises(InvalidValue) as error:
        Profile.from_edges([0, 1], [1, 0], [1.0, value])
    assert error.value.field == "Profile.bytes"


def table(values: object) -> DistanceTable:
    return DistanceTable(names=("n00", "n01", "n02"), values=np.array(values, np.float64))


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([[0, 1, 2], [1, 0, 1], [3, 1, 0]], r"'n00' to 'n02', 2, differs"),
        ([[0, 1, 2], [1, 0, float("nan")], [2, 1, 0]], r"'n01' to 'n02', nan, is not a number"),
        ([[0, 1, 2], [1, 0, 1], [2, float("inf"), 0]], r"'n02' to 'n01', inf, is not finite"),
        ([[0, -1, 2], [-1, 0, 1], [2, 1, 0]], r"'n00' to 'n01', -1, is below zero"),
        ([[0, 1, 2], [1, 5, 1], [2, 1, 0]], r"'n01' to 'n01', 5, is within one host"),
    ],
)
def test_a_table_of_distances_that_makes_no_sense_is_refused_by_its_hosts(values: object, says: str) -> None:
    fabric, profile, _ = ring(3, 3)
    allocation = Allocation.of(fabric, [0, 1, 2])
    with pytest.raises(InvalidValue, match=says):
        mapping.place(
            fabric,
            profile,
            allocation,
            SearchOptions(steps=9),
            CostModel(distance="table", table=table(values)),
        )


def test_a_table_of_distances_by_direction_is_taken_where_it_is_meant() -> None:
    fabric, profile, _ = ring(3, 3)
    allocation = Allocation.of(fabric, [0, 1, 2])
    costs = CostModel(distance="table", table=table([[0, 1, 2], [1, 0, 1], [3, 1, 0]]), one_way=True)
    case = PlacementCase(fabric=fabric, profile=profile, allocation=allocation, costs=costs)
    problem = case.problem()
    assert problem.distances.of([0, 2], [2, 0]).tolist() == [2.0, 3.0]


def test_a_host_that_the_table_of_distances_lacks_is_named() -> None:
    fabric, profile, _ = ring(4, 3)
    symmetric = table([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    with pytest.raises(UnknownName, match="n03"):
        mapping.place(
            fabric,
            profile,
            Allocation.of(fabric, [0, 1, 3]),
            SearchOptions(steps=9),
            CostModel(distance="table", table=symmetric),
        )


def tables_that(break_at: str) -> tuple[Fabric, Ints]:
    """A fabric whose tables loop between two switches, or lack a destination, and the hosts concerned."""
    fabric = infiniband("fattree2-64-traffic")
    tables, links = fabric.tables, fabric.links
    assert tables is not None
    ports = tables.ports.copy()
    hosts = fabric.hosts[[0, 40]]
    lid = int(fabric.adapters.port_lid[np.flatnonzero(fabric.adapters.host == hosts[1])[0]])
    if break_at == "lack":
        ports[:, lid] = NO_ROUTE
    else:
        switches = fabric.switches.tolist()
        between = fabric.network_link
        for switch in switches:  # every switch sends it on to some other switch, for ever
            row = np.flatnonzero(between & (links.source == switch))[0]
            ports[switches.index(switch), lid] = links.source_port[row]
    broken = ForwardingTables(switch_guid=tables.switch_guid, ports=ports, lid_guid=tables.lid_guid)
    return replace(fabric, tables=broken), hosts.astype(np.int32)


@pytest.mark.parametrize(("break_at", "says"), [("lack", "has no route for LID"), ("loop", "loop")])
def test_forwarding_tables_that_do_not_deliver_name_the_hosts_and_the_fault(break_at: str, says: str) -> None:
    fabric, hosts = tables_that(break_at)
    allocation = Allocation.of(fabric, hosts.tolist())
    with pytest.raises(UnreachablePair, match=says) as error:
        mapping.place(
            fabric,
            Profile.from_edges([0], [1], [1.0]),
            allocation,
            SearchOptions(steps=9),
            CostModel(routing="tables"),
        )
    assert (error.value.source, error.value.target) == tuple(fabric.names[host] for host in hosts)
    assert (
        mapping.place(fabric, Profile.from_edges([0], [1], [1.0]), allocation, SearchOptions(steps=9)).routing
        != "tables"
    )


@pytest.mark.parametrize(
    ("pins", "says"),
    [
        ({7: "n00"}, "rank 7"),
        ({-1: "n00"}, "rank -1"),
        ({0: "n04"}, "rank 0 cannot be pinned to n04"),
        ({0: "n01", 2: "n01"}, "ranks 0, 2 are pinned to host n01, which has 1 slots"),
    ],
)
def test_a_pin_that_does_not_fit_is_named(pins: dict[int, str], says: str) -> None:
    fabric, profile, _ = ring(5, 3)
    with pytest.raises(InvalidPlacement, match=says):
        mapping.place(fabric, profile, Allocation.of(fabric, [0, 1, 2]), SearchOptions(steps=9), pins=pins)


def test_a_pin_to_an_unknown_host_is_an_error() -> None:
    fabric, profile, allocation = ring(5, 3)
    with pytest.raises(UnknownName) as error:
        mapping.place(fabric, profile, allocation, SearchOptions(steps=9), pins={0: "n0x"})
    assert error.value.name == "n0x"


def test_all_ranks_pinned_are_where_they_are_pinned() -> None:
    fabric, profile, allocation = ring(5, 5)
    pins = {rank: f"n{(2 * rank) % 5:02}" for rank in range(5)}
    found = mapping.place(fabric, profile, allocation, SearchOptions(steps=500), pins=pins)
    assert [fabric.names[host] for host in found.host_of_rank] == list(pins.values())


@pytest.mark.parametrize(
    "wrong",
    [{"seconds": -1.0}, {"seconds": float("inf")}, {"steps": -1}, {"workers": 0}, {"strategies": []},
     {"objective": "0*congestion"}, {"objective": "x*hop-bytes"}, {"strategies": ["greedy:starts"]},
     {"strategies": ["greedy:starts=few"]}],
)  # fmt: skip
def test_options_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    fabric, profile, allocation = ring(5, 5)
    with pytest.raises(InvalidValue):
        mapping.place(fabric, profile, allocation, SearchOptions(**wrong))


@pytest.mark.parametrize(
    ("wrong", "close"),
    [
        ({"objective": "congestion,hopbytes"}, "hop-bytes"),
        ({"strategies": ["greedy:begins=3"]}, None),
        ({"strategies": ["greedy:start_=3"]}, "start"),
        ({"executor": "thread"}, "threads"),
        (CostModel(distance="link"), "links"),
        (CostModel(rails="same-rails"), "same-rail"),
    ],
)
def test_unknown_names_are_reported_with_the_closest(wrong: Any, close: str | None) -> None:
    fabric, profile, allocation = ring(5, 5)
    costs = wrong if isinstance(wrong, CostModel) else CostModel()
    options = SearchOptions(workers=2, steps=20, **(wrong if isinstance(wrong, dict) else {}))
    with pytest.raises(UnknownName) as error:
        mapping.place(fabric, profile, allocation, options, costs)
    assert close is None or close in error.value.close


@given(problem=problems())
def test_pairs_of_ranks_have_the_bytes_of_both_directions(problem: Problem) -> None:
    expected: dict[tuple[int, int], float] = {}
    profile = problem.profile
    for a, b, size in zip(profile.sender, profile.partner, profile.bytes, strict=True):
        if a != b and size > 0:
            pair = (min(a, b), max(a, b))
            expected[pair] = expected.get(pair, 0.0) + size
    low, high, total = problem.both_ways
    found = dict(zip(zip(low.tolist(), high.tolist(), strict=True), total.tolist(), strict=True))
    assert found == pytest.approx(expected)
