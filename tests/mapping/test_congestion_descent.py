"""Annealed pair exchange on congestion: incremental loads, the flow cache, and what is relieved."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.budget import Budget
from mapping.kernels import congestion_search as kernel
from mapping.kernels.congestion_search import Flows, Loads
from mapping.kernels.flow_cache import FlowCache, new_cache
from mapping.kernels.random_numbers import state_from
from mapping.objective import score
from mapping.problem import Problem
from mapping.refine import congestion_descent
from registry.model import Allocation, Fabric, Floats, Ints, Profile
from tests.search_problems import problem_on, ring, seated, torus8

NOBODY = np.zeros(0, np.int32)
ROOMY = 1 << 20


def empty_loads(problem: Problem) -> Loads:
    m = len(problem.routes.fabric.links)
    return Loads(
        np.zeros(m), np.ones(m), np.zeros(m), np.zeros(m), np.zeros(m, np.int32), np.zeros(m, np.bool_)
    )


def room(problem: Problem) -> Flows:
    n = 4 * len(problem.source) + 4
    return Flows(np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(n))


def exact(problem: Problem, host_of_rank: Ints) -> Floats:
    return problem.routes.link_bytes(*problem.host_traffic(host_of_rank))


def exchanged(problem: Problem, start: Ints, cache: FlowCache, *, proposals: int = 150) -> tuple[Ints, Loads]:
    """Where ranks sit after some hot proposals, and the loads that were carried along."""
    guest, loads, pending, seats = (
        problem.guest(directed=True),
        empty_loads(problem),
        room(problem),
        problem.seats(start),
    )
    congestion_descent.load_all(problem, cache, loads, start)
    np.testing.assert_allclose(loads.bytes, exact(problem, start), rtol=1e-6, atol=1e-9)
    loads.scale[:] = 1.0 / problem.routes.fabric.links.capacity
    loads.term[:] = (loads.bytes * loads.scale) ** 4
    state = state_from(np.random.default_rng(0))
    kernel.exchange_on_congestion(
        proposals, 2, 1e6, 1e6, guest, cache, loads, pending, problem.hops, problem.near, seats,
        NOBODY, NOBODY, state,
    )  # fmt: skip
    return seats.host_of_rank, loads


@given(case=seated())
def test_incremental_loads_are_the_exact_ones(case: tuple[Problem, Ints]) -> None:
    problem, start = case
    if len(problem.bytes) == 0:
        return
    hosts, loads = exchanged(problem, start, new_cache(problem.routes.flows, ROOMY))
    np.testing.assert_allclose(loads.bytes, exact(problem, hosts), rtol=1e-6, atol=1e-5)
    terms = (loads.bytes * loads.scale) ** 4
    np.testing.assert_allclose(loads.term, terms, rtol=1e-9, atol=1e-9)
    assert not loads.change.any()
    assert not loads.is_touched.any()


@given(case=seated())
def test_a_cache_that_forgets_changes_nothing(case: tuple[Problem, Ints]) -> None:
    problem, start = case
    if len(problem.bytes) == 0:
        return
    small, roomy = (new_cache(problem.routes.flows, limit) for limit in (0, ROOMY))
    hosts, loads = exchanged(problem, start, small)
    expected, expected_loads = exchanged(problem, start, roomy)
    assert hosts.tobytes() == expected.tobytes()
    assert loads.bytes.tobytes() == expected_loads.bytes.tobytes()


def test_the_cache_stays_within_its_memory() -> None:
    fabric, profile, allocation = torus8()
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    cache = new_cache(problem.routes.flows, 1 << 16)
    exchanged(problem, problem.slot_host.copy(), cache, proposals=300)
    assert cache.runs.used[2] > 0  # it had to forget
    assert cache.runs.link.nbytes + cache.runs.share.nbytes <= 1 << 16


@given(case=seated())
def test_the_heat_of_a_pair_is_its_part_of_the_slope(case: tuple[Problem, Ints]) -> None:
    problem, start = case
    slope = np.random.default_rng(1).random(len(problem.routes.fabric.links))
    heat, cache = np.empty(len(problem.bytes)), new_cache(problem.routes.flows, ROOMY)
    kernel.pair_heat(problem.source, problem.target, problem.bytes, cache, start, slope, heat)
    for e, (i, j, size) in enumerate(zip(*problem.host_traffic(start), strict=True)):
        alone = problem.routes.link_bytes([i], [j], [size])
        assert heat[e] == pytest.approx(float(alone @ slope), rel=1e-6)


def test_the_torus_instance_falls_a_third_below_in_order() -> None:
    fabric, profile, allocation = torus8()
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    start = problem.slot_host.copy()
    before = score(problem, start)
    assert before.congestion_seconds == pytest.approx(1977.793, abs=1e-3)  # tests/data/bench/README.md
    *_, last = congestion_descent.refine(problem, start, Budget(steps=200_000), np.random.default_rng(0))
    after = score(problem, last.host_of_rank)
    assert after.congestion_seconds == pytest.approx(last.value, rel=1e-6)
    assert after.congestion_seconds < 0.67 * before.congestion_seconds


def two_leaves() -> tuple[Fabric, Allocation]:
    """Four hosts, two a leaf switch, leaves joined by one thin cable."""
    a, b = [0, 1, 2, 3, 4], [4, 4, 5, 5, 5]
    fabric = Fabric.from_arcs(
        ["h0", "h1", "h2", "h3", "s0", "s1"],
        a + b,
        b + a,
        [1.0, 1.0, 1.0, 1.0, 4.0] * 2,
        slots=[1, 1, 1, 1, 0, 0],
        forwards=[False] * 4 + [True] * 2,
    )
    return fabric, Allocation.of(fabric, ["h0", "h1", "h2", "h3"])


def test_the_network_is_relieved_where_a_hosts_own_cable_is_the_floor() -> None:
    fabric, allocation = two_leaves()
    profile = Profile.from_edges([0, 2, 1, 3], [2, 0, 3, 1], [8.0, 8.0, 5.0, 5.0])
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    start = problem.slot_host.copy()
    assert score(problem, start)[:2] == (8.0, 13.0 / 4)
    *_, last = congestion_descent.refine(problem, start, Budget(steps=2000), np.random.default_rng(0))
    assert score(problem, last.host_of_rank)[:2] == (8.0, 0.0)


def test_hosts_cables_are_relieved_where_ranks_can_share_a_host() -> None:
    fabric, _ = two_leaves()
    allocation = Allocation.of(fabric, ["h0", "h1", "h2", "h3"], 2)
    profile = Profile.from_edges([0, 2, 1, 3], [2, 0, 3, 1], [8.0, 8.0, 5.0, 5.0])
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    start = np.arange(4, dtype=np.int32)
    *_, last = congestion_descent.refine(problem, start, Budget(steps=5000), np.random.default_rng(0))
    assert score(problem, last.host_of_rank) == (0.0, 0.0, 0.0)


def test_a_heavy_rank_goes_to_the_host_with_the_fast_cable() -> None:
    fabric = Fabric.from_arcs(
        ["fast", "slow", "slower", "s"],
        [0, 1, 2, 3, 3, 3],
        [3, 3, 3, 0, 1, 2],
        [10.0, 2.0, 1.0, 10.0, 2.0, 1.0],
        slots=[1, 1, 1, 0],
        forwards=[False, False, False, True],
    )
    profile = Profile.from_edges([2, 2], [0, 1], [2.0, 1.0], ranks=3)
    allocation = Allocation.of(fabric, ["fast", "slow", "slower"])
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    start = problem.slot_host.copy()
    *_, last = congestion_descent.refine(problem, start, Budget(steps=2000), np.random.default_rng(0))
    assert last.host_of_rank.tolist() == [1, 2, 0]
    assert last.value == pytest.approx(1.0)


@given(steps=st.integers(1, 400))
def test_never_worse_than_its_start_after_any_number_of_steps(steps: int) -> None:
    fabric, profile, allocation = ring(7, 7)
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    best = np.argsort(allocation.hosts).astype(np.int32)  # rank r on the r-th host of the ring
    for found in congestion_descent.refine(problem, best, Budget(steps=steps), np.random.default_rng(steps)):
        assert score(problem, found.host_of_rank) == score(problem, best)
