"""Annealed exchange on congestion: which links are relieved, with one worker and several."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.deadline import Deadline
from mapping.placement.problem.objective import score
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import congestion_descent
from mapping.placement.refine.link_loads import LoadSearch, Measured, Schedule
from registry.model import Allocation, Fabric, Ints, Profile
from tests.support.search_problems import problem_on, ring, talking_torus, torus8


def last(problem: Problem, start: Ints, steps: int, *, workers: int = 1, seed: int = 0) -> Ints:
    deadline, generator = Deadline(steps=steps, workers=workers), np.random.default_rng(seed)
    *_, found = congestion_descent.refine(problem, start, deadline, generator)
    assert score(problem, found.host_of_rank).congestion_seconds == pytest.approx(found.value, rel=1e-6)
    return found.host_of_rank


def test_the_torus_instance_falls_a_third_below_in_order() -> None:
    fabric, profile, allocation = torus8()
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    start = problem.slot_host.copy()
    before = score(problem, start)
    assert before.congestion_seconds == pytest.approx(1977.793, abs=1e-3)  # tests/data/bench/README.md
    after = score(problem, last(problem, start, 200_000))
    assert after.congestion_seconds < 0.6 * before.congestion_seconds


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_same_seed_steps_and_workers_give_the_same_placement(workers: int) -> None:
    problem = talking_torus((6, 7), ranks=40)
    start = problem.slot_host[:40].copy()
    found = [last(problem, start, 20_000, workers=workers, seed=seed).tobytes() for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]


def test_two_workers_find_about_what_one_finds() -> None:
    problem = talking_torus((6, 7), ranks=40)
    start = problem.slot_host[:40].copy()
    one, two = (
        np.mean([score(problem, last(problem, start, 20_000, workers=w, seed=s))[0] for s in range(3)])
        for w in (1, 2)
    )
    assert two < 1.1 * one


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
    assert score(problem, last(problem, start, 2000))[:2] == (8.0, 0.0)


def test_hosts_cables_are_relieved_where_ranks_can_share_a_host() -> None:
    fabric, _ = two_leaves()
    allocation = Allocation.of(fabric, ["h0", "h1", "h2", "h3"], 2)
    profile = Profile.from_edges([0, 2, 1, 3], [2, 0, 3, 1], [8.0, 8.0, 5.0, 5.0])
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    found = score(problem, last(problem, np.arange(4, dtype=np.int32), 5000))
    assert found[:3] == (0.0, 0.0, 0.0)


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
    found = last(problem, problem.slot_host.copy(), 2000)
    assert found.tolist() == [1, 2, 0]
    assert score(problem, found).congestion_seconds == pytest.approx(1.0)


def test_others_load_is_avoided() -> None:
    fabric, profile, allocation = ring(12, 6)
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    start = np.argsort(allocation.hosts)[:6].astype(np.int32)  # side by side from n00 on
    busy = np.where(np.isin(fabric.links.source, range(5)) & np.isin(fabric.links.target, range(5)), 3.0, 0.0)
    loaded = replace(problem, link_background=busy)
    assert score(loaded, start).congestion_seconds == 4.0
    assert score(loaded, last(loaded, start, 20_000)).congestion_seconds < 3.0


@pytest.mark.parametrize("workers", [1, 2])
def test_few_ranks_are_searched_in_several_runs(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, begins = talking_torus((6, 7), ranks=40), list[Ints]()
    start = problem.slot_host[:40].copy()
    ends, measure = [list[Measured]()], LoadSearch.measure

    def begin(search: LoadSearch, placement: Ints) -> None:
        begins.append(placement)
        ends.append([])
        search.assignment = problem.assign_slots(placement)

    def measured(search: LoadSearch, schedule: Schedule, fraction: float) -> Measured:
        found = measure(search, schedule, fraction)
        ends[-1].append(found)
        return found

    monkeypatch.setattr(congestion_descent, "RUN", 500)
    monkeypatch.setattr(LoadSearch, "begin", begin)
    monkeypatch.setattr(LoadSearch, "measure", measured)
    found = last(problem, start, 4 * 40 * 500, workers=workers)
    assert [one.tolist() for one in begins] == [start.tolist()] * 3
    first = [run[0].host_of_rank.tolist() for run in ends]
    assert first == [start.tolist()] * 4
    lowest = [min(one.congestion_seconds for one in run) for run in ends]
    assert len(set(lowest)) > 1
    assert score(problem, found).congestion_seconds == pytest.approx(min(lowest), rel=1e-6)


def test_runs_have_equal_parts_of_the_limit_and_every_other_one_is_hotter() -> None:
    schedule = Schedule((2,), 0.5, 0.1, 0.9, 0.5, 40, 0.5)
    runs, deadline = congestion_descent.Runs(ranks=3, schedule=schedule), Deadline(steps=150_000)
    deadline.taken = 1000
    assert (runs.fraction(deadline), runs.count) == (1000 / 150_000, 0)  # too early to know the speed
    hottest = [runs.schedule.hottest]
    for end in (75_000, 150_000):
        deadline.taken = end - 37_500
        assert runs.fraction(deadline) == 0.5
        deadline.taken = end
        assert (runs.fraction(deadline), runs.count) == (1.0, 2)
        assert runs.next() is (end < 150_000)
        hottest.append(runs.schedule.hottest)
    assert hottest == pytest.approx([0.5, 1.5, 0.5])


@given(steps=st.integers(1, 400), workers=st.integers(1, 2))
def test_never_worse_than_its_start_after_any_number_of_steps(steps: int, workers: int) -> None:
    fabric, profile, allocation = ring(7, 7)
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    best = np.argsort(allocation.hosts).astype(np.int32)  # rank r on the r-th host of the ring
    deadline = Deadline(steps=steps, workers=workers)
    for found in congestion_descent.refine(problem, best, deadline, np.random.default_rng(steps)):
        assert score(problem, found.host_of_rank) == score(problem, best)
