"""Annealed exchange on congestion: which links are relieved, by how many workers, on how many hosts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ingest.generate.dragonfly import dragonfly
from ingest.generate.percs import percs
from ingest.generate.tori import torus
from mapping.deadline import Deadline
from mapping.distances.distances import Distances
from mapping.placement.problem.objective import score
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import congestion_descent
from mapping.placement.refine.congestion_descent import FewerHosts, fewer_hosts
from mapping.placement.refine.link_loads import LoadSearch, Measured, Schedule
from registry.model import Allocation, Fabric, Ints, Profile
from tests.support.search_problems import on_all_hosts, problem_on, ring, talking_torus, torus8_problem


def last(problem: Problem, start: Ints, steps: int, *, workers: int = 1, seed: int = 0) -> Ints:
    deadline, generator = Deadline(steps=steps, workers=workers), np.random.default_rng(seed)
    *_, found = congestion_descent.refine(problem, start, deadline, generator)
    assert score(problem, found.host_of_rank).congestion_seconds == pytest.approx(found.value, rel=1e-6)
    return found.host_of_rank


def test_the_torus_instance_falls_a_third_below_in_order() -> None:
    problem = torus8_problem()
    start = problem.slot_host.copy()
    before = score(problem, start)
    assert before.congestion_seconds == pytest.approx(1977.793, abs=1e-3)  # tests/data/bench/README.md
    after = score(problem, last(problem, start, 100_000))
    assert after.congestion_seconds < 0.6 * before.congestion_seconds


def test_two_workers_find_about_what_one_finds() -> None:
    problem = talking_torus((6, 7), ranks=40)
    start = problem.slot_host[:40].copy()
    one, two = (
        np.mean([score(problem, last(problem, start, 20_000, workers=w, seed=s))[0] for s in range(3)])
        for w in (1, 2)
    )
    assert two < 1.1 * one


@pytest.mark.parametrize(("slots", "found"), [(1, (8.0, 0.0)), (2, (0.0, 0.0))])
def test_the_network_is_relieved_and_hosts_cables_too_where_ranks_can_share_a_host(
    slots: int, found: tuple[float, float]
) -> None:
    """Four hosts, two a leaf switch, leaves joined by one cable."""
    a, b = [0, 1, 2, 3, 4], [4, 4, 5, 5, 5]
    forwards = [False] * 4 + [True] * 2
    fabric = Fabric.from_arcs([*"abcdst"], a + b, b + a, [1.0, 1.0, 1.0, 1.0, 4.0] * 2,
                              slots=[1, 1, 1, 1, 0, 0], forwards=forwards)  # fmt: skip
    profile = Profile.from_edges([0, 2, 1, 3], [2, 0, 3, 1], [8.0, 8.0, 5.0, 5.0])
    problem = problem_on(fabric, profile, Allocation.of(fabric, [*"abcd"], slots))
    start = np.arange(4, dtype=np.int32)
    assert score(problem, start)[:2] == (8.0, 13.0 / 4)
    assert score(problem, last(problem, start, 5000))[:2] == found


def test_a_heavy_rank_goes_to_the_host_with_the_fast_cable() -> None:
    capacity = [10.0, 2.0, 1.0, 10.0, 2.0, 1.0]  # fast, slow and slower cables
    fabric = Fabric.from_arcs([*"abcs"], [0, 1, 2, 3, 3, 3], [3, 3, 3, 0, 1, 2], capacity,
                              slots=[1, 1, 1, 0], forwards=[False, False, False, True])  # fmt: skip
    profile = Profile.from_edges([2, 2], [0, 1], [2.0, 1.0], ranks=3)
    problem = on_all_hosts(fabric, profile)
    found = last(problem, problem.slot_host.copy(), 2000)
    assert found.tolist() == [1, 2, 0]
    assert score(problem, found).congestion_seconds == pytest.approx(1.0)


def test_others_load_is_avoided() -> None:
    fabric, profile, allocation = ring(12, 6)
    problem = problem_on(fabric, profile, allocation)
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


RANKS, MOST = 12, 20


def free_hosts(fabric: Fabric) -> Problem:
    """Random traffic on part of the nodes of a network, in a mixed order."""
    random = np.random.default_rng(4)
    sender, receiver = random.integers(0, RANKS, (2, 6 * RANKS))
    profile = Profile.from_edges(sender, receiver, random.random(6 * RANKS), ranks=RANKS)
    hosts = random.permutation(fabric.hosts)[:40]
    return problem_on(fabric, profile, Allocation.of(fabric, hosts.tolist(), 1))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Problem:
    """A problem of which a search keeps 20 hosts."""
    monkeypatch.setattr(congestion_descent, "MOST_GROUPS", MOST)
    return free_hosts(percs(3))


def start_of(problem: Problem) -> Ints:
    return np.random.default_rng(5).permutation(problem.hosts)[:RANKS].astype(np.int32)


def cut_down(problem: Problem, start: Ints) -> FewerHosts:
    found = fewer_hosts(problem, start, np.random.default_rng(0))
    assert found is not None
    return found


def test_so_many_hosts_are_kept_and_those_of_the_start_among_them(few: Problem) -> None:
    start = start_of(few)
    fewer = cut_down(few, start)
    assert fewer.problem.hosts == len(fewer.host) == MOST
    assert np.isin(start, fewer.host).all()
    assert (fewer.outside(fewer.inside(start)) == start).all()
    assert (fewer.problem.allocation.hosts == few.allocation.hosts[fewer.host]).all()


def test_a_placement_is_worth_the_same_in_the_smaller_problem(few: Problem) -> None:
    number = np.arange(len(few.link_capacity), dtype=np.float64)
    whole = replace(
        few,
        link_capacity=1.0 + number,
        link_background=number % 5.0,
        own_distances=Distances(
            name="table", group=few.distances.group, between=np.sqrt(few.distances.between)
        ),
    )
    for one in (few, whole):
        start = start_of(one)
        fewer = cut_down(one, start)
        assert score(fewer.problem, fewer.inside(start)) == pytest.approx(score(one, start))


def test_pins_hold_and_their_hosts_are_kept(few: Problem) -> None:
    start, pins = start_of(few), np.full(RANKS, -1)
    empty = np.setdiff1d(np.arange(few.hosts), start)
    pins[[2, 7]] = empty[[3, 5]]
    held = replace(few, pins=pins)
    fewer = cut_down(held, start)
    assert np.isin(pins[[2, 7]], fewer.host).all()
    assert (fewer.problem.pinned == held.pinned).all()
    assert fewer.outside(fewer.problem.pins[[2, 7]]).tolist() == pins[[2, 7]].tolist()


@pytest.mark.parametrize("fabric", [torus((6, 7)), dragonfly(2, 1, 4)], ids=["torus", "few groups"])
@pytest.mark.usefixtures("few")
def test_what_fits_is_left_as_it_is(fabric: Fabric) -> None:
    start = np.arange(RANKS, dtype=np.int32)
    assert fewer_hosts(free_hosts(fabric), start, np.random.default_rng(0)) is None


def test_a_start_on_too_many_hosts_leaves_the_problem_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = free_hosts(percs(3))
    monkeypatch.setattr(congestion_descent, "MOST_GROUPS", RANKS - 1)
    assert fewer_hosts(problem, start_of(problem), np.random.default_rng(0)) is None


def test_the_search_returns_hosts_of_the_whole_problem(few: Problem) -> None:
    start = start_of(few)
    *_, found = congestion_descent.refine(few, start, Deadline(steps=3000), np.random.default_rng(0))
    after = score(few, found.host_of_rank)
    assert after.congestion_seconds == pytest.approx(found.value)
    assert after.congestion_seconds < 0.8 * score(few, start).congestion_seconds
