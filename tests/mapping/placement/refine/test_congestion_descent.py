"""Annealed exchange on congestion: what is relieved, by how many workers; incremental loads of links."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.dragonfly import dragonfly
from ingest.generate.percs import percs
from ingest.generate.tori import torus
from mapping.deadline import Deadline
from mapping.distances.distances import Distances
from mapping.placement.kernels import congestion_descent as kernel
from mapping.placement.kernels.link_loads import BYTES, TERM
from mapping.placement.problem.objective import score
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import congestion_descent
from mapping.placement.refine.congestion_descent import FewerHosts, fewer_hosts
from mapping.placement.refine.domains import Team
from mapping.placement.refine.link_loads import LoadSearch, Measured, Schedule, routes_and_grid
from registry.model import Allocation, Fabric, Floats, Ints, Profile
from tests.support import search_problems
from tests.support.search_problems import Placed, placed_problems, problem_on, talking_torus
from tests.support.small_fabrics import cabled
from tests.support.sure import sure


def last(problem: Problem, start: Ints, steps: int, *, workers: int = 1, seed: int = 0) -> Ints:
    deadline, generator = Deadline(steps=steps, workers=workers), np.random.default_rng(seed)
    *_, found = congestion_descent.refine(problem, start, deadline, generator)
    assert score(problem, found.host_of_rank).congestion_seconds == pytest.approx(found.value, rel=1e-6)
    return found.host_of_rank


def test_the_torus_instance_falls_a_third_below_in_order() -> None:
    problem = search_problems.torus8_problem()
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
def test_the_network_is_relieved_and_where_ranks_share_a_host_its_cable(
    slots: int, found: tuple[float, float]
) -> None:
    """Four hosts, two a leaf switch, leaves joined by one cable."""
    fabric = cabled("0-4 1-4 2-5 3-5 4-5", 4, [1.0, 1.0, 1.0, 1.0, 4.0])
    profile = Profile.from_edges([0, 2, 1, 3], [2, 0, 3, 1], [8.0, 8.0, 5.0, 5.0])
    problem = problem_on(fabric, profile, Allocation.of(fabric, range(4), slots))
    start = np.arange(4, dtype=np.int32)
    assert score(problem, start)[:2] == (8.0, 13.0 / 4)
    assert score(problem, last(problem, start, 5000))[:2] == found


def test_a_heavy_rank_goes_to_the_host_with_the_fast_cable() -> None:
    fabric = cabled("0-3 1-3 2-3", 3, [10.0, 2.0, 1.0])  # fast, slow and slower cables
    profile = Profile.from_edges([2, 2], [0, 1], [2.0, 1.0], ranks=3)
    problem = search_problems.on_all_hosts(fabric, profile)
    found = last(problem, problem.slot_host.copy(), 2000)
    assert found.tolist() == [1, 2, 0]
    assert score(problem, found).congestion_seconds == pytest.approx(1.0)


def test_others_load_is_avoided() -> None:
    fabric, profile, allocation = search_problems.ring(12, 6)
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
    return sure(fewer_hosts(problem, start, np.random.default_rng(0)))


def test_so_many_hosts_are_kept_and_those_of_the_start_among_them(few: Problem) -> None:
    start = start_of(few)
    fewer = cut_down(few, start)
    assert fewer.problem.hosts == len(fewer.host) == MOST
    assert np.isin(start, fewer.host).all()
    assert (fewer.outside(fewer.inside(start)) == start).all()
    assert (fewer.problem.allocation.hosts == few.allocation.hosts[fewer.host]).all()


def test_a_placement_is_worth_the_same_in_the_smaller_problem(few: Problem) -> None:
    number = np.arange(len(few.link_capacity), dtype=np.float64)
    far = Distances(name="table", group=few.distances.group, between=np.sqrt(few.distances.between))
    loaded = replace(few, link_capacity=1.0 + number, link_background=number % 5.0, own_distances=far)
    for one in (few, loaded):
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


MELTING = Schedule((2,), 1e3, 1e3, 1.0, 1e6, 40, 0.5)
"""Nearly everything is accepted."""
WARM = Schedule((2,), 0.3, 0.3, 1.0, 1.0, 40, 0.5)


def exact(problem: Problem, host_of_rank: Ints) -> Floats:
    return problem.routes.link_bytes(*problem.host_traffic(host_of_rank))


def assert_loads_are_exact(search: LoadSearch, problem: Problem, *, rtol: float = 1e-6) -> None:
    expected, of_link = exact(problem, search.assignment.host_of_rank), search.grid.of_link
    state = search.workers[0].loads.state
    known = of_link >= 0
    bytes = state[:, BYTES : BYTES + 2].reshape(-1)
    np.testing.assert_allclose(bytes[of_link[known]], expected[known], rtol=rtol, atol=1e-5)
    terms = (state[:, BYTES : BYTES + 2] * state[:, 2:4]) ** 4
    np.testing.assert_allclose(state[:, TERM : TERM + 2], terms, rtol=1e-6, atol=1e-9)
    for worker in search.workers:
        assert not worker.loads.change.any()
        assert not worker.loads.is_touched.any()


def assert_has_slots(problem: Problem, search: LoadSearch) -> None:
    """Assert that every rank has a slot of its own, and that the arrays agree."""
    assignment = search.assignment
    assert len(set(assignment.slot_of_rank.tolist())) == problem.ranks
    assert (assignment.rank_of_slot[assignment.slot_of_rank] == np.arange(problem.ranks)).all()
    assert (assignment.rank_of_slot >= 0).sum() == problem.ranks
    assert (assignment.slot_host[assignment.slot_of_rank] == assignment.host_of_rank).all()


@pytest.mark.parametrize("stored", [True, False])
@given(case=placed_problems())
def test_incremental_loads_are_exact_whether_routes_are_stored_or_not(stored: bool, case: Placed) -> None:
    problem, start = case
    if len(problem.bytes) == 0:
        return
    routes, _ = routes_and_grid(problem, **({} if stored else {"most": -1}))
    assert (routes.missing is None) is stored
    search = LoadSearch(problem, start, 1, np.random.default_rng(0))
    for schedule in (MELTING, WARM):
        measured, found = search.measure(schedule, 0.0), score(problem, search.assignment.host_of_rank)
        assert measured[:2] == pytest.approx(found[:2], rel=1e-6)
        assert_loads_are_exact(search, problem)
        worst = search.worst()
        assert worst[:2] == measured[:2]
        np.testing.assert_array_equal(worst.host_of_rank, measured.host_of_rank)
        assert_loads_are_exact(search, problem)  # nothing has changed
        search.round(Team(1), 120, schedule, 0.0)
        assert_loads_are_exact(search, problem)
        assert_has_slots(problem, search)


@given(case=search_problems.pinned(), workers=st.integers(1, 3))
def test_pinned_ranks_stay_and_every_rank_keeps_a_slot(case: Placed, workers: int) -> None:
    problem, start = case
    if len(problem.bytes) == 0:
        return
    search = LoadSearch(problem, start, workers, np.random.default_rng(0))
    with Team(workers) as team:
        for _ in range(4):
            search.measure(MELTING, 0.0)
            search.round(team, 60, MELTING, 0.0)
            assert_has_slots(problem, search)
    search.measure(MELTING, 0.0)  # makes the loads exact again
    assert_loads_are_exact(search, problem)
    held = problem.pinned
    assert (search.assignment.host_of_rank[held] == problem.pins[held]).all()


def test_many_exchanges_on_a_torus_keep_loads_exact() -> None:
    problem = talking_torus((6, 7), ranks=40)
    search = LoadSearch(problem, problem.slot_host[:40].copy(), 1, np.random.default_rng(0))
    assert search.grid.shifts.on
    search.measure(MELTING, 0.0)
    search.round(Team(1), 5000, MELTING, 0.0)
    assert search.counts[2] > 1000
    assert_loads_are_exact(search, problem)


def test_workers_move_only_ranks_of_their_domain() -> None:
    problem = talking_torus((6, 7), ranks=42)
    search = LoadSearch(problem, problem.slot_host.copy(), 2, np.random.default_rng(0))
    search.measure(MELTING, 0.0)
    before, domains = search.assignment.host_of_rank.copy(), []
    search._domains = lambda workers: domains.append(type(search)._domains(search, workers)) or domains[-1]  # type: ignore[method-assign, func-returns-value]
    with Team(2) as team:
        search.round(team, 2000, MELTING, 0.0)
    after = search.assignment.host_of_rank
    assert (before != after).any()
    assert (domains[0][before] == domains[0][after]).all()


@given(case=placed_problems())
def test_the_heat_of_a_pair_is_its_part_of_the_slope(case: Placed) -> None:
    problem, start = case
    if len(problem.bytes) == 0:
        return
    search = LoadSearch(problem, start, 1, np.random.default_rng(0))
    slope, pairs = np.random.default_rng(1).random(len(search.grid)), search._pairs
    flows = pairs._replace(source=start[pairs.source], target=start[pairs.target])
    heat = np.empty(len(pairs.source))
    routes = search.pair_routes[0]
    kernel.pair_heat(flows, routes.lookup, routes.missing, slope, search.workers[0].loads, heat)
    known = search.grid.of_link >= 0
    for e, (i, j, out, back) in enumerate(zip(*flows[:4], strict=True)):
        alone = problem.routes.link_bytes([i, j], [j, i], [out, back])
        assert heat[e] == pytest.approx(float(alone[known] @ slope[search.grid.of_link[known]]), rel=1e-6)
