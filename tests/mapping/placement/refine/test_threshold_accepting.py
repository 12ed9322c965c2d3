"""Threshold accepting: the exact maximum under exchanges, the rule of acceptance, and what it gains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.deadline import Deadline
from mapping.kernels import random_numbers
from mapping.kernels.random_numbers import state_from
from mapping.placement.kernels import threshold_accepting as kernel
from mapping.placement.problem.objective import better, score
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import threshold_accepting
from mapping.placement.strategies import recursive_bisection
from registry.model import Allocation, Floats, Ints, Profile
from tests.support.kernels import from_python
from tests.support.search_problems import Placed, placed_problems, problem_on, ring_problem, torus8_problem
from tests.support.small_fabrics import cabled, dumbbell

below = from_python(random_numbers.below)

EVERYTHING = 1e9
"""A threshold that no proposal exceeds."""


def run(
    problem: Problem, start: Ints, thresholds: tuple[float, float], *, proposals: int, inner: int, limit: int
) -> tuple[kernel.Search, int]:
    """Run the kernel with short lists of hottest links; also return how many proposals it accepted."""
    search, routes = threshold_accepting._begin(problem, start, np.random.default_rng(1))
    search = search._replace(links=search.links._replace(limit=limit))
    kernel.list_hottest(search.loads, search.links, search.value)
    unit = search.value / np.array([1.0, 1.0, problem.ranks])
    limits = np.array(thresholds)
    return search, kernel.accept_below_thresholds(search, routes.missing, proposals, inner, limits, unit)


def exact(problem: Problem, host_of_rank: Ints) -> Floats:
    found = score(problem, host_of_rank)
    return np.array([found.congestion_seconds, found.network_congestion_seconds, found.hop_bytes])


def first_difference(one: Floats, other: Floats) -> int | None:
    differs = np.abs(one - other) > kernel.SAME * np.maximum(one, other)
    return int(differs.argmax()) if differs.any() else None


def plainly(
    problem: Problem, start: Ints, *, proposals: int, inner: int, thresholds: tuple[float, float]
) -> tuple[Ints, Ints, int]:
    """Threshold accepting with all loads computed anew for each candidate; last, best, accepted."""
    state = state_from(np.random.default_rng(1))
    assignment = problem.assign_slots(start)
    rank_of_slot = assignment.rank_of_slot.tolist()
    current, accepted = start.copy(), 0
    value = exact(problem, current)
    unit = value / np.array([1.0, 1.0, problem.ranks])
    best, lowest = current, value
    for step in range(proposals):
        threshold = max(thresholds[0] - thresholds[1] * (step // inner), 0.0)
        rank, slot = below(state, problem.ranks), below(state, len(rank_of_slot))
        left, other = rank_of_slot.index(rank), rank_of_slot[slot]
        moved = current.copy()
        moved[rank] = problem.slot_host[slot]
        if other >= 0:
            moved[other] = problem.slot_host[left]
        if problem.slot_host[slot] == problem.slot_host[left]:
            continue
        new = exact(problem, moved)
        level = first_difference(new, value)
        if level is None or new[level] - value[level] < threshold * unit[level]:
            current, value, accepted = moved, new, accepted + 1
            rank_of_slot[left], rank_of_slot[slot] = other, rank
            level = first_difference(value, lowest)
            if level is not None and value[level] < lowest[level]:
                best, lowest = current, value
    return current, best, accepted


@given(
    case=placed_problems(),
    thresholds=st.sampled_from([(0.0, 0.0), (0.3, 0.07), (0.3, 0.0), (1.5, 0.5), (EVERYTHING, 0.0)]),
    limit=st.integers(1, 6),
)
def test_the_kernel_is_as_a_slow_one(case: Placed, thresholds: tuple[float, float], limit: int) -> None:
    problem, start = case
    if len(problem.bytes) == 0 or problem.hosts == 1:
        return
    last, best, accepted = plainly(problem, start, proposals=40, inner=7, thresholds=thresholds)
    search, found = run(problem, start, thresholds, proposals=40, inner=7, limit=limit)
    assert found == accepted
    assert search.assignment.host_of_rank.tolist() == last.tolist()
    assert search.best.host_of_rank.tolist() == best.tolist()
    for value, hosts in ((search.value, last), (search.best.value, best)):
        np.testing.assert_allclose(value, exact(problem, hosts), rtol=1e-6, atol=1e-9)


def test_the_value_is_exact_on_a_network_with_more_links_than_are_listed() -> None:
    problem = torus8_problem()
    start = problem.slot_host.copy()
    for limit in (1, 20, threshold_accepting.LISTED):
        search, accepted = run(problem, start, (0.05, 0.0), proposals=400, inner=20, limit=limit)
        assert accepted > 20
        np.testing.assert_allclose(search.value, exact(problem, search.assignment.host_of_rank), rtol=1e-6)


def test_the_value_of_theorem_1s_dumbbell_is_what_its_proof_says() -> None:
    """P^3 + L / P where s and t sit at the ends of the bar, which carries P times what others do."""
    ranks, fabric = 8, dumbbell(8)
    graph = [(0, 1), (1, 5), (2, 6), (3, 2), (4, 7)]  # s = 0 and t = 4 are not joined
    cut = sum(u // 4 != v // 4 for u, v in graph)
    profile = Profile.from_edges([0, *(u for u, _ in graph)], [4, *(v for _, v in graph)],
                                 [float(ranks**4)] + [1.0] * len(graph), ranks=ranks)  # fmt: skip
    problem = problem_on(fabric, profile, Allocation.of(fabric, range(ranks)))
    for hosts, least in (([0, 1], ranks**3 + cut / ranks), ([1, 0], ranks**4)):
        start = np.array([*hosts, 2, 3, 4, 5, 6, 7], np.int32)
        search, _ = threshold_accepting._begin(problem, start, np.random.default_rng(0))
        assert search.value[0] == least if hosts == [0, 1] else search.value[0] >= least


def test_others_load_counts_on_links_that_the_placement_loads() -> None:
    problem = ring_problem(8, 4)
    busy = replace(problem, link_background=np.arange(16.0))
    start = problem.slot_host[:4].copy()
    search, _ = run(busy, start, (EVERYTHING, 0.0), proposals=50, inner=5, limit=2)
    np.testing.assert_allclose(search.value, exact(busy, search.assignment.host_of_rank), rtol=1e-6)
    assert search.value[0] > exact(problem, search.assignment.host_of_rank)[0]


def test_on_a_torus_it_gains_what_the_paper_says_after_a_strategy() -> None:
    """Section 5.2: "TA improved the congestion between 2% and 9%"."""
    problem = torus8_problem()
    start = recursive_bisection.place_ranks(problem, np.random.default_rng(0))
    deadline, generator = Deadline(steps=3000), np.random.default_rng(0)
    *_, found = threshold_accepting.refine(problem, start, deadline, generator, inner=20)
    before, after = score(problem, start), score(problem, found.host_of_rank)
    assert better("congestion", after, before)
    assert after.congestion_seconds < 0.98 * before.congestion_seconds
    assert found.value == pytest.approx(after.congestion_seconds, rel=1e-6)


def test_a_hosts_own_cable_as_the_worst_link_does_not_end_the_search() -> None:
    # Two leaf switches with two hosts each: rank 0 sends so much that its own cable is the worst link.
    fabric = cabled("0-4 1-4 2-5 3-5 4-5", 4, [1.0] * 4 + [9.0])
    profile = Profile.from_edges([0, 2], [1, 3], [8.0, 3.0])
    problem = problem_on(fabric, profile, Allocation.of(fabric, [0, 2, 1, 3]))
    start = np.arange(4, dtype=np.int32)
    assert exact(problem, start).tolist() == [8.0, 11 / 9, 33.0]
    *_, found = threshold_accepting.refine(problem, start, Deadline(steps=400), np.random.default_rng(0))
    assert exact(problem, found.host_of_rank).tolist() == [8.0, 0.0, 22.0]
