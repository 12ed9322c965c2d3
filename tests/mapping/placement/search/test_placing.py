"""``mapping.place`` from outside: results, guarantees, errors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mapping
from mapping.distances.cost_model import CostModel
from mapping.placement.problem.problem import Problem
from mapping.placement.search.options import SearchOptions
from mapping.placement.search.placing import place
from mapping.placement.strategies.baselines import in_order, random_placement
from mapping.selfcheck.oracles import cost, every_placement
from registry.errors import (
    DisconnectedAllocation,
    InfeasibleAllocation,
    InvalidPlacement,
    InvalidValue,
    UnknownName,
    UnreachablePair,
)
from registry.model import NO_ROUTE, Allocation, Fabric, ForwardingTables, Profile
from tests.support.infiniband_data import infiniband
from tests.support.search_problems import problems, ring, torus8


@given(problem=problems(), objective=st.sampled_from(["congestion", "hop-bytes", "dilation"]))
def test_the_best_of_all_placements_is_found_on_tiny_problems(problem: Problem, objective: str) -> None:
    fabric, profile, allocation = problem.routes.fabric, problem.profile, problem.allocation
    if profile.ranks > 4:
        return
    found = place(
        fabric,
        profile,
        allocation,
        SearchOptions(objective=objective, steps=3000),
        CostModel(routing=problem.routes.name),
    )
    kept = mapping.evaluate(fabric, profile, found, costs=CostModel(routing=problem.routes.name))
    values = []
    for hosts in every_placement(allocation.hosts.tolist(), allocation.slots.tolist(), profile.ranks):
        one = replace(found, host_of_rank=np.array(hosts))
        known = cost(fabric, profile, one, routing=problem.routes.name)
        values.append(known.congestion if objective == "congestion" else known.hop_bytes)
    reached = kept.congestion_seconds if objective == "congestion" else kept.hop_bytes
    assert reached == pytest.approx(min(values), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("objective", ["congestion", "hop-bytes", "dilation"])
def test_the_same_seed_and_steps_give_the_same_bytes(objective: str) -> None:
    fabric, profile, allocation = torus8()
    one, two, other = (
        place(fabric, profile, allocation, SearchOptions(objective=objective, steps=20_000, seed=seed))
        for seed in (4, 4, 5)
    )
    assert one.host_of_rank.tobytes() == two.host_of_rank.tobytes()
    assert one.host_of_rank.tobytes() != other.host_of_rank.tobytes()
    assert (one.steps, one.strategy, one.parameters) == (two.steps, two.strategy, two.parameters)


def test_the_torus_instance_is_a_quarter_better_on_its_objective() -> None:
    fabric, profile, allocation = torus8()
    straight = mapping.evaluate(fabric, profile, in_order(512, allocation))
    near = place(fabric, profile, allocation, SearchOptions(objective="hop-bytes", steps=600_000))
    assert mapping.evaluate(fabric, profile, near).hop_bytes < 0.75 * straight.hop_bytes
    calm = place(fabric, profile, allocation, SearchOptions(steps=300_000))
    found = mapping.evaluate(fabric, profile, calm)
    assert found.congestion_seconds < 0.7 * straight.congestion_seconds


def test_a_placement_records_how_it_was_found() -> None:
    fabric, profile, allocation = ring(8, 8)
    found = place(
        fabric,
        profile,
        allocation,
        SearchOptions(
            objective="hop-bytes", strategies=["greedy", "greedy+pair-exchange"], steps=500, seed=3
        ),
    )
    assert found.strategy in ("greedy", "greedy+pair-exchange")
    assert found.objective == "hop-bytes"
    assert found.routing == "shortest-paths"
    assert found.seed == 3
    assert found.complete
    assert found.steps == 500
    assert found.seconds > 0
    assert found.parameters == {
        "strategies": "greedy greedy+pair-exchange",
        "rails": "all-connected",
        "workers": 2,
        "limit_steps": 500,
    }


def test_seconds_are_a_limit_of_the_whole() -> None:
    fabric, profile, allocation = ring(8, 8)
    found = place(fabric, profile, allocation, SearchOptions(seconds=0.0))
    assert "exchange" not in found.strategy
    assert found.parameters["limit_seconds"] == 0.0
    assert found.steps == 0
    assert place(fabric, profile, allocation, SearchOptions(seconds=0.2)).steps > 0


def test_the_package_offers_the_function() -> None:
    assert mapping.place is place  # not a module of that name


def test_given_strategies_are_used() -> None:
    fabric, profile, allocation = ring(8, 8)
    straight = place(fabric, profile, allocation, SearchOptions(strategies=["in-order"], seconds=0.1))
    assert straight.host_of_rank.tolist() == allocation.hosts.tolist()
    mixed = place(fabric, profile, allocation, SearchOptions(strategies=["random"], seed=1))
    assert mixed.strategy == "random"
    assert sorted(mixed.host_of_rank.tolist()) == sorted(allocation.hosts.tolist())


@given(seed=st.integers(0, 50))
def test_a_start_is_never_made_worse(seed: int) -> None:
    fabric, profile, allocation = ring(8, 6)
    start = random_placement(6, allocation, seed)
    for chains in (["random"], ["pair-exchange"], None):
        found = place(
            fabric,
            profile,
            allocation,
            SearchOptions(objective="hop-bytes", strategies=chains, steps=200),
            present=start,
        )
        after, before = (mapping.evaluate(fabric, profile, one).hop_bytes for one in (found, start))
        assert after <= before


def test_a_perfect_start_is_given_back() -> None:
    fabric, profile, allocation = ring(8, 8)
    start = replace(in_order(8, allocation), host_of_rank=np.arange(8, dtype=np.int32))
    found = place(fabric, profile, allocation, SearchOptions(steps=500), present=start)
    assert found.host_of_rank.tolist() == list(range(8))
    assert found.strategy == "given"


def test_a_start_that_does_not_fit_is_refused() -> None:
    fabric, profile, allocation = ring(8, 4)
    with pytest.raises(InvalidPlacement, match="3 ranks"):
        place(fabric, profile, allocation, present=in_order(3, allocation))
    other = Allocation.of(fabric, allocation.hosts[:4].tolist())
    elsewhere = in_order(4, Allocation.of(fabric, allocation.hosts[4:].tolist()))
    with pytest.raises(InvalidPlacement):
        place(fabric, profile, other, present=elsewhere)


def test_a_profile_that_says_nothing_stays_in_order() -> None:
    fabric, _, allocation = ring(5, 5)
    for silent in (Profile.from_edges([], [], [], ranks=3), Profile.from_edges([0], [1], [0.0], ranks=3)):
        found = place(fabric, silent, allocation)
        assert found.host_of_rank.tolist() == allocation.hosts[:3].tolist()
        assert mapping.evaluate(fabric, silent, found).hop_bytes == 0.0


@pytest.mark.parametrize("slots", [1, 5])
def test_one_rank_and_one_host(slots: int) -> None:
    fabric = Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1.0)
    allocation = Allocation.of(fabric, ["b"], slots)
    profile = Profile.from_edges([], [], [], ranks=1)
    assert place(fabric, profile, allocation, SearchOptions(steps=100)).host_of_rank.tolist() == [1]


def test_all_ranks_on_one_host() -> None:
    fabric = Fabric.from_arcs(["a", "b"], [0, 1], [1, 0], 1.0)
    profile = Profile.from_edges([0, 1, 2], [1, 2, 0], [1.0, 2.0, 3.0])
    found = place(fabric, profile, Allocation.of(fabric, ["b"], 3), SearchOptions(steps=100))
    assert found.host_of_rank.tolist() == [1, 1, 1]


def test_more_ranks_than_slots_are_refused() -> None:
    fabric, profile, allocation = ring(5, 6)
    with pytest.raises(InfeasibleAllocation) as error:
        place(fabric, profile, allocation)
    assert (error.value.ranks, error.value.slots) == (6, 5)


@pytest.mark.parametrize("strategies", [None, ["in-order"], ["random"], ["greedy"]])
def test_hosts_that_no_path_joins_are_named(strategies: list[str] | None) -> None:
    fabric = Fabric.from_arcs(["a", "b", "c", "d"], [0, 1, 2, 3], [1, 0, 3, 2], 1.0)
    profile = Profile.from_edges([0], [1], [1.0], ranks=2)
    with pytest.raises(DisconnectedAllocation) as error:
        place(
            fabric, profile, Allocation.of(fabric, ["a", "c"]), SearchOptions(strategies=strategies, steps=10)
        )
    assert (error.value.source, error.value.target) == ("a", "c")


def test_hosts_that_tables_do_not_join_are_named() -> None:
    fabric = infiniband("fattree2-64-traffic")
    tables = fabric.tables
    assert tables is not None
    nowhere = ForwardingTables(
        switch_guid=tables.switch_guid,
        ports=np.full_like(tables.ports, NO_ROUTE),
        lid_guid=tables.lid_guid,
    )
    profile = Profile.from_edges([0], [1], [1.0])
    broken = replace(fabric, tables=nowhere)
    allocation = Allocation.of(broken, broken.hosts[[0, 40]].tolist())
    with pytest.raises(UnreachablePair):
        place(broken, profile, allocation, SearchOptions(steps=10), CostModel(routing="tables"))
    assert place(broken, profile, allocation, SearchOptions(steps=10)).routing == "shortest-paths"


def test_tables_are_used_where_they_are_complete() -> None:
    fabric = infiniband("ndr-dgx-minhop")  # hosts of four and more rails
    rng = np.random.default_rng(2)
    allocation = Allocation.of(fabric, rng.choice(fabric.hosts, 16, replace=False).tolist(), 2)
    grid = np.arange(32).reshape(8, 4)
    ends = [(grid, np.roll(grid, shift, axis)) for axis in (0, 1) for shift in (-1, 1)]
    source, target = (np.concatenate([end[k].ravel() for end in ends]) for k in (0, 1))
    profile = Profile.from_edges(source, target, np.ones(len(source)))
    found = place(fabric, profile, allocation, SearchOptions(steps=30_000))
    assert found.routing == "tables"
    straight = in_order(32, allocation)
    after, before = (mapping.evaluate(fabric, profile, one) for one in (found, straight))
    assert after.congestion_seconds <= before.congestion_seconds
    near = place(fabric, profile, allocation, SearchOptions(objective="dilation", steps=30_000))
    assert mapping.evaluate(fabric, profile, near).average_dilation < before.average_dilation


@pytest.mark.parametrize(
    ("wrong", "kind", "close"),
    [
        ({"objective": "congestoin"}, "objective", "congestion"),
        ({"strategies": ["greedy", "pear-exchange"]}, "strategy", "pair-exchange"),
    ],
)
def test_an_unknown_name_is_reported_with_the_closest(wrong: dict[str, Any], kind: str, close: str) -> None:
    fabric, profile, allocation = ring(5, 5)
    with pytest.raises(UnknownName) as error:
        place(fabric, profile, allocation, SearchOptions(**wrong))
    assert error.value.kind == kind
    assert error.value.close[0] == close


def test_an_unknown_routing_is_reported_with_the_closest() -> None:
    with pytest.raises(UnknownName) as error:
        place(*ring(5, 5), costs=CostModel(routing="table"))
    assert (error.value.kind, error.value.close[0]) == ("routing", "tables")


@pytest.mark.parametrize(
    "wrong", [{"seconds": -1.0}, {"seconds": float("nan")}, {"steps": -1}, {"strategies": []}]
)
def test_a_limit_or_list_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    fabric, profile, allocation = ring(5, 5)
    with pytest.raises(InvalidValue):
        place(fabric, profile, allocation, SearchOptions(**wrong))


def test_an_interrupt_while_setting_up_gives_ranks_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    fabric, profile, allocation = ring(6, 6)
    place(fabric, profile, allocation, SearchOptions(steps=1))  # kernels are warm
    monkeypatch.setattr("mapping.distances.cost_model.build_routes", interrupted)
    found = place(fabric, profile, allocation)
    assert not found.complete
    assert found.strategy == "in-order"
    assert found.host_of_rank.tolist() == allocation.hosts.tolist()
    start = random_placement(6, allocation, 0)
    kept = place(fabric, profile, allocation, present=start)
    assert kept.host_of_rank.tolist() == start.host_of_rank.tolist()


def test_an_interrupt_while_searching_gives_the_best_so_far() -> None:
    fabric, profile, allocation = ring(10, 10)
    calls = 0

    def progress(phase: str, done: float, total: float | None = None, best: float | None = None) -> None:
        nonlocal calls
        calls += 1
        if calls == 60:
            raise KeyboardInterrupt

    found = place(fabric, profile, allocation, SearchOptions(objective="hop-bytes"), progress=progress)
    assert not found.complete
    straight = mapping.evaluate(fabric, profile, in_order(10, allocation))
    assert mapping.evaluate(fabric, profile, found).hop_bytes < straight.hop_bytes
    assert found.seconds < 10.0
