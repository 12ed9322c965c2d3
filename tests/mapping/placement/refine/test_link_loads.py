"""Searches on link loads: incremental loads, and domains of several workers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.placement.kernels import congestion_descent as kernel
from mapping.placement.kernels.link_loads import BYTES, TERM
from mapping.placement.problem.objective import score
from mapping.placement.problem.problem import Problem
from mapping.placement.refine.domains import Team
from mapping.placement.refine.link_loads import LoadSearch, Schedule, routes_and_grid
from registry.model import Floats, Ints
from tests.support.search_problems import Placed, pinned, placed_problems, talking_torus

MELTING = Schedule((2,), 1e3, 1e3, 1.0, 1e6, 40, 0.5)
"""Nearly everything is accepted."""
WARM = Schedule((2,), 0.3, 0.3, 1.0, 1.0, 40, 0.5)


def exact(problem: Problem, host_of_rank: Ints) -> Floats:
    return problem.routes.link_bytes(*problem.host_traffic(host_of_rank))


def assert_loads_are_exact(search: LoadSearch, problem: Problem, *, rtol: float = 1e-6) -> None:
    """Assert that the loads of the search are those of the routing."""
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


@given(case=pinned(), workers=st.integers(1, 3))
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
