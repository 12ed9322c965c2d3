"""``mapping.place`` from outside: results, guarantees, errors; and consecutive ranks on each host."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mapping
from ingest.generate.stencils import stencil
from mapping.distances.cost_model import CostModel
from mapping.placement.problem.problem import Problem
from mapping.placement.search.placing import place
from mapping.placement.strategies.baselines import in_order, random_placement
from mapping.selfcheck.oracles import cost, every_placement
from registry.errors import InvalidPlacement, InvalidValue
from registry.model import Allocation, Fabric, Profile
from tests.support.fat_tree import fat_tree
from tests.support.infiniband_data import infiniband
from tests.support.search_problems import problems, ring, talking_torus
from tests.support.small_fabrics import given_placement


@given(problem=problems(), objective=st.sampled_from(["congestion", "hop-bytes", "dilation"]))
def test_the_best_of_all_placements_is_found_on_tiny_problems(problem: Problem, objective: str) -> None:
    fabric, profile, allocation = problem.routes.fabric, problem.profile, problem.allocation
    if profile.ranks > 4:
        return
    costs = CostModel(routing=problem.routes.name)
    found = place(fabric, profile, allocation, costs=costs, objective=objective, steps=3000)
    kept = mapping.evaluate(fabric, profile, found, costs=costs)
    values = []
    for hosts in every_placement(allocation.hosts.tolist(), allocation.slots.tolist(), profile.ranks):
        one = replace(found, host_of_rank=np.array(hosts))
        known = cost(fabric, profile, one, routing=problem.routes.name)
        values.append(known.congestion if objective == "congestion" else known.hop_bytes)
    reached = kept.congestion_seconds if objective == "congestion" else kept.hop_bytes
    assert reached == pytest.approx(min(values), rel=1e-9, abs=1e-12)


def test_the_same_seed_and_steps_give_the_same_bytes() -> None:
    problem = talking_torus((6, 7), ranks=40)
    one, two, other = (
        place(problem.routes.fabric, problem.profile, problem.allocation, steps=5000, seed=seed)
        for seed in (4, 4, 5)
    )
    assert one.host_of_rank.tobytes() == two.host_of_rank.tobytes()
    assert one.host_of_rank.tobytes() != other.host_of_rank.tobytes()
    assert (one.steps, one.strategy, one.parameters) == (two.steps, two.strategy, two.parameters)


def test_a_placement_records_how_it_was_found() -> None:
    chains = ["greedy", "greedy+pair-exchange"]
    found = place(*ring(8, 8), objective="hop-bytes", strategies=chains, steps=500, seed=3)
    assert found.strategy in chains
    assert (found.objective, found.routing, found.seed) == ("hop-bytes", "shortest-paths", 3)
    assert (found.complete, found.steps, found.seconds > 0) == (True, 500, True)
    limits = {"rails": "all-connected", "workers": 2, "limit_steps": 500}
    assert found.parameters == {"strategies": "greedy greedy+pair-exchange"} | limits


def test_without_time_there_is_no_search() -> None:
    found = place(*ring(8, 8), seconds=0.0)
    assert "exchange" not in found.strategy
    assert (found.parameters["limit_seconds"], found.steps) == (0.0, 0)


def test_given_strategies_are_used() -> None:
    fabric, profile, allocation = ring(8, 8)
    straight = place(fabric, profile, allocation, strategies=["in-order"])
    assert straight.host_of_rank.tolist() == allocation.hosts.tolist()
    mixed = place(fabric, profile, allocation, strategies=["random"], seed=1)
    assert mixed.strategy == "random"
    assert sorted(mixed.host_of_rank.tolist()) == sorted(allocation.hosts.tolist())


@pytest.mark.parametrize("strategies", [None, ["random"], ["pair-exchange"]])
def test_a_perfect_start_is_given_back(strategies: list[str] | None) -> None:
    fabric, profile, allocation = ring(8, 8)
    start = replace(in_order(8, allocation), host_of_rank=np.arange(8, dtype=np.int32))
    found = place(fabric, profile, allocation, present=start, strategies=strategies, steps=500)
    assert found.host_of_rank.tolist() == list(range(8))
    assert found.strategy.split("+")[0] == "given"


def test_tables_are_used_where_they_are_complete() -> None:
    fabric = infiniband("ndr-dgx-minhop")  # hosts of four and more rails
    rng = np.random.default_rng(2)
    allocation = Allocation.of(fabric, rng.choice(fabric.hosts, 16, replace=False).tolist(), 2)
    profile = stencil((8, 4), 5, periodic=True)
    found, straight = place(fabric, profile, allocation, steps=10_000), in_order(32, allocation)
    assert found.routing == "tables"
    after, before = (mapping.evaluate(fabric, profile, one) for one in (found, straight))
    assert after.congestion_seconds <= before.congestion_seconds


def test_an_interrupt_while_setting_up_gives_ranks_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    fabric, profile, allocation = ring(6, 6)
    place(fabric, profile, allocation, steps=1)  # kernels are warm
    monkeypatch.setattr("mapping.distances.cost_model.build_routes", interrupted)
    found = place(fabric, profile, allocation)
    assert (found.complete, found.strategy) == (False, "in-order")
    assert found.host_of_rank.tolist() == allocation.hosts.tolist()
    start = random_placement(6, allocation, 0)
    kept = place(fabric, profile, allocation, present=start)
    assert kept.host_of_rank.tolist() == start.host_of_rank.tolist()


def random_case(seed: int, hosts: int = 4, each: int = 3, used: int | None = None) -> tuple[Any, ...]:
    random = np.random.default_rng(seed)
    fabric = fat_tree(hosts=3, slow=(0, 5))
    ranks = each * (used or hosts)
    source, target = random.integers(0, ranks, (2, 4 * ranks))
    profile = Profile.from_edges(source, target, random.integers(1, 9, 4 * ranks) * 1e6, ranks=ranks)
    return fabric, profile, Allocation.of(fabric, random.permutation(fabric.hosts)[:hosts].tolist(), each)


def best_order(fabric: Fabric, profile: Profile, allocation: Allocation, objective: str) -> float:
    each = int(allocation.slots[0])
    straight = place(fabric, profile, allocation, strategies=["in-order"], steps=1)
    found = []
    for order in permutations(allocation.hosts.tolist(), profile.ranks // each):
        one = cost(fabric, profile, replace(straight, host_of_rank=np.repeat(order, each)))
        found.append(one.congestion if objective == "congestion" else one.hop_bytes)
    return float(min(found))


@pytest.mark.parametrize("objective", ["congestion", "hop-bytes"])
@pytest.mark.parametrize(("seed", "hosts", "each", "used"), [(0, 4, 3, 4), (1, 5, 2, 5), (2, 5, 2, 3)])
def test_no_order_of_hosts_is_better(objective: str, seed: int, hosts: int, each: int, used: int) -> None:
    fabric, profile, allocation = random_case(seed, hosts, each, used)
    found = place(fabric, profile, allocation, objective=objective, steps=4000, consecutive=True)
    rows = found.host_of_rank.reshape(-1, each)
    assert (rows == rows[:, :1]).all()
    assert len(set(rows[:, 0].tolist())) == used
    assert (found.parameters["consecutive"], found.allocation) == (each, allocation)
    known = cost(fabric, profile, found)
    reached = known.congestion if objective == "congestion" else known.hop_bytes
    assert reached == pytest.approx(best_order(fabric, profile, allocation, objective), rel=1e-9)


def test_each_of_a_pareto_set_is_consecutive() -> None:
    fabric, profile, allocation = random_case(4)
    for found in mapping.pareto(fabric, profile, allocation, steps=2000, consecutive=True):
        assert found.host_of_rank.tolist() == np.repeat(found.host_of_rank[::3], 3).tolist()
        assert found.allocation is allocation


def test_pinned_ranks_bring_their_group_and_a_present_placement_is_kept() -> None:
    fabric, profile, allocation = random_case(5)
    host = int(allocation.hosts[3])
    options: dict[str, Any] = {"steps": 500, "consecutive": True}
    found = place(fabric, profile, allocation, pins={4: host}, **options)
    assert found.host_of_rank[3:6].tolist() == [host] * 3
    assert found.parameters["pins"] == 1
    again = place(fabric, profile, allocation, present=found, strategies=["random"], **options)
    before, after = (mapping.evaluate(fabric, profile, one).congestion_seconds for one in (found, again))
    assert after <= before


def test_what_cannot_be_consecutive_is_refused() -> None:
    fabric, profile, allocation = random_case(6)
    options: dict[str, Any] = {"steps": 10, "consecutive": True}
    uneven = replace(allocation, slots=[3, 3, 4, 3])
    with pytest.raises(InvalidValue, match=r"has 4 slots and .* has 3: all must have the same"):
        place(fabric, profile, uneven, **options)
    with pytest.raises(InvalidValue, match="12 ranks do not fill whole hosts of 5 slots"):
        place(fabric, profile, Allocation.of(fabric, allocation.hosts.tolist(), 5), **options)
    first, second = allocation.hosts[:2].tolist()
    with pytest.raises(InvalidPlacement, match="ranks 0 to 2 are pinned on several hosts"):
        place(fabric, profile, allocation, pins={0: first, 1: second}, **options)
    hosts = np.repeat(allocation.hosts, 3)[[3, 1, 2, 0, *range(4, 12)]]
    crossed = given_placement(allocation, hosts)
    with pytest.raises(InvalidPlacement, match="ranks 0 to 2 are now on several hosts"):
        place(fabric, profile, allocation, present=crossed, **options)
    with pytest.raises(InvalidValue, match="cannot be kept"):
        mapping.remap_few(fabric, profile, allocation, present=crossed, **options)
