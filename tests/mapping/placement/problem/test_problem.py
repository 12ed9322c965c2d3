"""What cannot be placed is an error that names the offender; what can only be placed one way is placed so."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import mapping
from mapping.distances.cost_model import CostModel
from mapping.distances.distance_tables import DistanceTable
from mapping.placement.case import PlacementCase
from mapping.placement.problem.problem import Memo, Problem
from registry.errors import (
    DisconnectedAllocation,
    InfeasibleAllocation,
    InvalidPlacement,
    InvalidValue,
    UnknownName,
    UnreachablePair,
)
from registry.model import NO_ROUTE, Allocation, Fabric, Profile
from tests.support.infiniband_data import infiniband
from tests.support.search_problems import problems, ring, ring_problem

OBJECTIVES = ["congestion", "hop-bytes", "mapping-coefficient", "2*congestion+hop-bytes", "max-dilation"]


PAIR = Profile.from_edges([0], [1], [1.0])


def test_hosts_that_no_path_joins_are_named() -> None:
    islands = Fabric.from_arcs(list("abcd"), [0, 1, 2, 3], [1, 0, 3, 2], 1.0)
    only_sends = Fabric.from_arcs(list("abc"), [0, 1, 2], [1, 0, 1], 1.0)
    options: list[dict[str, Any]] = [{"objective": objective} for objective in OBJECTIVES]
    options += [{"strategies": strategy} for strategy in (["in-order"], ["random"], ["greedy"])]
    cases = [(islands, ["a", "c"], option) for option in options] + [(only_sends, ["a", "b", "c"], {})]
    for fabric, hosts, option in cases:
        with pytest.raises(DisconnectedAllocation, match=r"'a'.*'c'") as error:
            mapping.place(fabric, PAIR, Allocation.of(fabric, hosts), steps=9, **option)
        assert (error.value.source, error.value.target) == ("a", "c")


def test_more_ranks_than_slots_are_counted() -> None:
    with pytest.raises(InfeasibleAllocation, match="6 ranks do not fit on 5 slots of 5 hosts: give") as error:
        mapping.place(*ring(5, 6))
    assert (error.value.ranks, error.value.slots) == (6, 5)


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf")])
def test_capacities_and_bytes_that_are_no_number_are_refused(value: float) -> None:
    with pytest.raises(InvalidValue) as error:
        Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], [1.0, value])
    assert error.value.field == "Links.capacity"
    with pytest.raises(InvalidValue) as error:
        Profile.from_edges([0, 1], [1, 0], [1.0, value])
    assert error.value.field == "Profile.bytes"


@pytest.mark.parametrize("taken", [0.0, -1.0, float("nan")])
def test_a_problem_whose_links_have_nothing_left_is_refused(taken: float) -> None:
    problem = ring_problem(5, 5)
    left = problem.link_capacity.copy()
    left[3] = taken
    with pytest.raises(InvalidValue, match=r"link n\d\d -> n\d\d"):
        replace(problem, link_capacity=left)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_what_can_be_placed_one_way_only_is_placed_so(objective: str) -> None:
    fabric, circle, allocation = ring(5, 4)
    for ends in ([], [0]):  # nobody sends, or no bytes
        for ranks in (1, 4) if not ends else (4,):
            silent = Profile.from_edges(ends, ends, [0.0] * len(ends), ranks=ranks)
            found = mapping.place(fabric, silent, allocation, objective=objective, steps=50)
            assert found.host_of_rank.tolist() == allocation.hosts[:ranks].tolist()
    found = mapping.place(fabric, circle, Allocation.of(fabric, [3], 4), objective=objective, steps=50)
    assert found.host_of_rank.tolist() == [3, 3, 3, 3]
    assert mapping.evaluate(fabric, circle, found).congestion_seconds == 0.0


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_guest_in_two_parts_is_placed(objective: str) -> None:
    fabric, _, allocation = ring(8, 8)
    pairs = Profile.from_edges([0, 1, 2, 3], [4, 5, 6, 7], np.ones(4), ranks=8)
    found = mapping.place(fabric, pairs, allocation, objective=objective, steps=4000)
    assert mapping.evaluate(fabric, pairs, found).hop_bytes == 4.0  # every pair next to each other


def table(values: object) -> DistanceTable:
    return DistanceTable(names=("n00", "n01", "n02"), values=np.array(values, np.float64))


def test_a_table_of_distances_is_taken_by_direction_where_it_is_meant_and_its_faults_are_named() -> None:
    fabric, profile, allocation = ring(3, 3)
    by_direction = table([[0, 1, 2], [1, 0, 1], [3, 1, 0]])
    costs = CostModel(distance="table", table=by_direction, one_way=True)
    case = PlacementCase(fabric=fabric, profile=profile, allocation=allocation, costs=costs)
    assert case.problem().distances.of(*np.argsort(allocation.hosts)[[[0, 2], [2, 0]]]).tolist() == [2.0, 3.0]
    for wrong, says in (
        (by_direction, r"'n00' to 'n02', 2, differs"),
        (table([[0, 1, 2], [1, 0, np.nan], [2, 1, 0]]), r"'n01' to 'n02', nan, is not a number"),
    ):
        with pytest.raises(InvalidValue, match=says):
            mapping.place(*ring(3, 3), costs=CostModel(distance="table", table=wrong), steps=9)
    with pytest.raises(UnknownName, match="n03"):
        mapping.place(*ring(4, 4), costs=replace(costs, one_way=False), steps=9)


def test_forwarding_tables_that_do_not_deliver_name_the_hosts_and_the_fault() -> None:
    fabric = infiniband("fattree2-64-traffic")
    tables, hosts = fabric.tables, fabric.hosts[[0, 40]]
    assert tables is not None
    ports = tables.ports.copy()
    to_last = fabric.adapters.host[fabric.adapters.port_adapter] == hosts[1]
    ports[:, fabric.adapters.port_lid[to_last]] = NO_ROUTE
    broken = replace(fabric, tables=replace(tables, ports=ports))
    allocation = Allocation.of(broken, hosts.tolist())
    with pytest.raises(UnreachablePair, match="has no route for LID") as error:
        mapping.place(broken, PAIR, allocation, costs=CostModel(routing="tables"), steps=9)
    assert (error.value.source, error.value.target) == tuple(fabric.names[host] for host in hosts)
    assert mapping.place(broken, PAIR, allocation, steps=9).routing == "shortest-paths"


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
        mapping.place(fabric, profile, Allocation.of(fabric, [0, 1, 2]), steps=9, pins=pins)


def test_all_ranks_pinned_are_where_they_are_pinned() -> None:
    fabric, profile, allocation = ring(5, 5)
    pins = {rank: f"n{(2 * rank) % 5:02}" for rank in range(5)}
    found = mapping.place(fabric, profile, allocation, steps=500, pins=pins)
    assert [fabric.names[host] for host in found.host_of_rank] == list(pins.values())


@pytest.mark.parametrize(
    ("wrong", "kind", "close"),
    [
        ({"objective": "congestion,hopbytes"}, "objective", "hop-bytes"),
        ({"strategies": ["greedy", "pear-exchange"]}, "strategy", "pair-exchange"),
        ({"executor": "thread"}, "executor", "threads"),
        ({"pins": {0: "n0x"}}, "host", "n04"),
        ({"costs": CostModel(routing="table")}, "routing", "tables"),
        ({"costs": CostModel(distance="link")}, "distance convention", "links"),
        ({"costs": CostModel(rails="same-rails")}, "rails rule", "same-rail"),
    ],
)
def test_unknown_names_are_reported_with_the_closest(wrong: dict[str, Any], kind: str, close: str) -> None:
    with pytest.raises(UnknownName) as error:
        mapping.place(*ring(5, 5), workers=2, steps=20, **wrong)
    assert (error.value.kind, error.value.close[0]) == (kind, close)


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


def test_a_value_is_made_once_by_whoever_asks_first() -> None:
    kept, together, made = Memo(), Barrier(4), []

    def make() -> object:
        made.append(1)
        return object()

    def ask(_: int) -> object:
        together.wait(10)
        return kept.once("value", make)

    with ThreadPoolExecutor(4) as pool:
        values = list(pool.map(ask, range(4)))
    assert len(made) == 1
    assert all(value is values[0] for value in values)
    assert kept.once("other", lambda: 3) == 3


def test_an_error_is_not_kept_and_a_copy_begins_empty() -> None:
    kept = Memo()
    with pytest.raises(ZeroDivisionError):
        kept.once("value", lambda: 1 // 0)
    assert kept.once("value", lambda: 5) == 5
    assert kept.once("value", lambda: 7) == 5
    assert pickle.loads(pickle.dumps(kept)).once("value", lambda: 7) == 7
