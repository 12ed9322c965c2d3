"""Consecutive ranks on each host: the best of all orders of hosts, evaluated with the ranks themselves."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest

import mapping
from mapping.launchers.catalog import write
from mapping.selfcheck.oracles import cost
from registry.errors import InvalidPlacement, InvalidValue
from registry.model import Allocation, Fabric, Placement, Profile
from tests.support.fat_tree import fat_tree


def random_case(seed: int, hosts: int = 4, each: int = 3, used: int | None = None) -> tuple[Any, ...]:
    """A fabric with two slow cables, random traffic, and hosts in random order."""
    random = np.random.default_rng(seed)
    fabric = fat_tree(hosts=3, slow=(0, 5))
    ranks = each * (used or hosts)
    source, target = random.integers(0, ranks, (2, 4 * ranks))
    profile = Profile.from_edges(source, target, random.integers(1, 9, 4 * ranks) * 1e6, ranks=ranks)
    return fabric, profile, Allocation.of(fabric, random.permutation(fabric.hosts)[:hosts].tolist(), each)


def best_order(fabric: Fabric, profile: Profile, allocation: Allocation, objective: str) -> float:
    """The least cost of all orders of hosts, each with consecutive ranks."""
    each = int(allocation.slots[0])
    straight = mapping.place(fabric, profile, allocation, strategies=["in-order"], steps=1)
    found = []
    for order in permutations(allocation.hosts.tolist(), profile.ranks // each):
        one = cost(fabric, profile, replace(straight, host_of_rank=np.repeat(order, each)))
        found.append(one.congestion if objective == "congestion" else one.hop_bytes)
    return float(min(found))


@pytest.mark.parametrize("objective", ["congestion", "hop-bytes"])
@pytest.mark.parametrize(("seed", "hosts", "each", "used"), [(0, 4, 3, 4), (1, 5, 2, 5), (2, 5, 2, 3)])
def test_no_order_of_hosts_is_better(objective: str, seed: int, hosts: int, each: int, used: int) -> None:
    fabric, profile, allocation = random_case(seed, hosts, each, used)
    found = mapping.place(fabric, profile, allocation, objective=objective, steps=4000, consecutive=True)
    rows = found.host_of_rank.reshape(-1, each)
    assert (rows == rows[:, :1]).all()
    assert len(set(rows[:, 0].tolist())) == used
    assert (found.parameters["consecutive"], found.allocation) == (each, allocation)
    known = cost(fabric, profile, found)
    reached = known.congestion if objective == "congestion" else known.hop_bytes
    assert reached == pytest.approx(best_order(fabric, profile, allocation, objective), rel=1e-9)
    evaluation = mapping.evaluate(fabric, profile, found, bounds=True)
    assert evaluation.congestion_seconds == pytest.approx(known.congestion)
    assert evaluation.hop_bytes == pytest.approx(known.hop_bytes)
    for metric, bound in evaluation.bounds.items():
        assert bound.value <= getattr(evaluation, metric) * (1 + 1e-9)


def test_launchers_with_consecutive_ranks_take_the_placement() -> None:
    fabric, profile, allocation = random_case(3)
    found = mapping.place(fabric, profile, allocation, steps=500, consecutive=True)
    hosts = [fabric.names[host] for host in found.host_of_rank[::3]]
    assert write("torchrun-rank-order", found, fabric) == "".join(f"{host}\n" for host in hosts)
    assert write("deepspeed-hostfile", found, fabric) == "".join(f"{host} slots=3\n" for host in hosts)


def test_each_of_a_pareto_set_is_consecutive() -> None:
    fabric, profile, allocation = random_case(4)
    for found in mapping.pareto(fabric, profile, allocation, steps=2000, consecutive=True):
        assert found.host_of_rank.tolist() == np.repeat(found.host_of_rank[::3], 3).tolist()
        assert found.allocation is allocation


def test_pinned_ranks_bring_their_group_and_a_present_placement_is_kept() -> None:
    fabric, profile, allocation = random_case(5)
    host = int(allocation.hosts[3])
    options: dict[str, Any] = {"steps": 500, "consecutive": True}
    found = mapping.place(fabric, profile, allocation, pins={4: host}, **options)
    assert found.host_of_rank[3:6].tolist() == [host] * 3
    assert found.parameters["pins"] == 1
    again = mapping.place(fabric, profile, allocation, present=found, strategies=["random"], **options)
    before, after = (mapping.evaluate(fabric, profile, one).congestion_seconds for one in (found, again))
    assert after <= before


def test_what_cannot_be_consecutive_is_refused() -> None:
    fabric, profile, allocation = random_case(6)
    options: dict[str, Any] = {"steps": 10, "consecutive": True}
    uneven = replace(allocation, slots=[3, 3, 4, 3])
    with pytest.raises(InvalidValue, match=r"has 4 slots and .* has 3: all must have the same"):
        mapping.place(fabric, profile, uneven, **options)
    with pytest.raises(InvalidValue, match="12 ranks do not fill whole hosts of 5 slots"):
        mapping.place(fabric, profile, Allocation.of(fabric, allocation.hosts.tolist(), 5), **options)
    first, second = allocation.hosts[:2].tolist()
    with pytest.raises(InvalidPlacement, match="ranks 0 to 2 are pinned on several hosts"):
        mapping.place(fabric, profile, allocation, pins={0: first, 1: second}, **options)
    hosts = np.repeat(allocation.hosts, 3)[[3, 1, 2, 0, *range(4, 12)]]
    crossed = Placement(host_of_rank=hosts, allocation=allocation, strategy="given")
    with pytest.raises(InvalidPlacement, match="ranks 0 to 2 are now on several hosts"):
        mapping.place(fabric, profile, allocation, present=crossed, **options)
    with pytest.raises(InvalidValue, match="cannot be kept"):
        mapping.remap_few(fabric, profile, allocation, present=crossed, **options)


def test_traffic_that_stays_on_hosts_needs_no_order() -> None:
    fabric, _, allocation = random_case(7)
    inside = Profile.from_edges([0, 3], [1, 5], [1e6, 1e6], ranks=12)
    found = mapping.place(fabric, inside, allocation, steps=10, consecutive=True)
    assert mapping.evaluate(fabric, inside, found).congestion_seconds == 0.0
