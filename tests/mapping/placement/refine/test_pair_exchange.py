"""Annealed pair exchange on hop-bytes: gains, proposals and schedule."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.deadline import Deadline
from mapping.kernels.random_numbers import State, state_from
from mapping.placement.kernels.hop_bytes_search import SearchArrays
from mapping.placement.kernels.pair_exchange import Domain, RankState, anneal, compute_costs
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import pair_exchange
from mapping.placement.refine.domains import cut
from registry.model import Ints
from tests.support.search_problems import (
    Placed,
    brute_hop_bytes,
    placed_problems,
    ring_problem,
    torus8_problem,
)


def annealer(problem: Problem, start: Ints) -> Annealer:
    guest, assignment = problem.guest(directed=len(problem.hops.code) == 2), problem.assign_slots(start)
    ranks = problem.ranks
    rank_state = RankState(assignment.host_of_rank.copy(), np.zeros(ranks, np.int32), np.zeros(ranks))
    arrays = SearchArrays(guest, problem.hops, problem.near, assignment)
    compute_costs(arrays, rank_state)
    return Annealer(arrays, rank_state)


class Annealer(NamedTuple):
    """All that a call of the kernel on one domain needs."""

    arrays: SearchArrays
    rank_state: RankState

    def run(self, proposals: int, temperature: float, state: State) -> tuple[int, int]:
        guest, hops, _, assignment = self.arrays
        tables = guest.table if len(hops.code) == 2 else None
        movable = guest.active[~assignment.fixed[guest.active]]
        domain = Domain(np.zeros(len(hops.group), np.int8), 0, movable)
        inside, kept = anneal(proposals, temperature, self.arrays, tables, self.rank_state, domain, state)
        return int(inside), int(kept)


@given(case=placed_problems(), temperature=st.sampled_from([0.0, 1.0, 50.0]), seed=st.integers(0, 99))
def test_after_many_exchanges_every_table_and_every_cost_is_as_computed_afresh(
    case: Placed, temperature: float, seed: int
) -> None:
    problem, start = case
    search = annealer(problem, start)
    if len(search.arrays.guest.active) == 0:
        return
    inside, _ = search.run(200, temperature, state_from(np.random.default_rng(seed)))
    assert inside == 200
    rank_state, assignment = search.rank_state, search.arrays.assignment
    kept = rank_state.cost.copy()
    total = compute_costs(search.arrays, rank_state)
    np.testing.assert_allclose(kept, rank_state.cost, atol=1e-6)
    after = brute_hop_bytes(problem, rank_state.host)
    assert total == pytest.approx(after, abs=1e-6)
    assert after == pytest.approx(problem.hop_bytes(rank_state.host), abs=1e-9)
    assert (rank_state.host == problem.slot_host[assignment.slot_of_rank]).all()
    assert (assignment.rank_of_slot[assignment.slot_of_rank] == np.arange(problem.ranks)).all()
    assert (assignment.rank_of_slot >= 0).sum() == problem.ranks
    assert temperature > 0 or after <= brute_hop_bytes(problem, start) + 1e-9


def test_how_proposals_are_cut_into_calls_does_not_matter() -> None:
    problem = ring_problem(12, 9)
    ends = []
    for cuts in ([300], [1, 299], [100, 100, 100]):
        search, state = annealer(problem, problem.slot_host[:9]), state_from(np.random.default_rng(1))
        for count in cuts:
            search.run(count, 0.7, state)
        ends.append(search.rank_state.host.tolist())
    assert ends[0] == ends[1] == ends[2]


def test_domains_are_runs_of_equally_many_slots_around_their_centre() -> None:
    distance = np.array([2.0, 1.0, 0.0, 1.0, 2.0, 3.0])
    assert cut(distance, np.arange(7), 2, 2).tolist() == [1, 0, 0, 0, 1, 1]
    slots = np.r_[0, np.cumsum([1, 1, 4, 1, 1, 1])]  # half of nine: the centre's four and the next
    assert cut(distance, slots, 2, 2).tolist() == [1, 1, 0, 0, 1, 1]
    assert (cut(distance, np.arange(7), 1, 0) == 0).all()


def test_near_groups_are_those_at_the_two_nearest_distances() -> None:
    problem = ring_problem(8, 8)
    distances, near = problem.routes.distances, problem.near
    for host in range(8):
        group = problem.hops.group[host]
        first = {int(g) for g in near.group[near.start[group] : near.middle[group]]}
        second = {int(g) for g in near.group[near.middle[group] : near.end[group]]}
        assert first == {int(problem.hops.group[j]) for j in np.flatnonzero(distances[host] == 1)}
        assert second == {int(problem.hops.group[j]) for j in np.flatnonzero(distances[host] == 2)}


def last(problem: Problem, start: Ints, steps: int) -> float:
    """Return the hop-bytes that a search ends with."""
    *_, found = pair_exchange.refine(problem, start, Deadline(steps=steps), np.random.default_rng(0))
    assert found.value == problem.hop_bytes(found.host_of_rank)
    return found.value


def test_a_ring_of_ranks_is_laid_around_a_ring_of_hosts() -> None:
    problem = ring_problem(10, 10)
    assert last(problem, problem.slot_host.copy(), 50_000) == 10.0


def test_free_slots_are_used_and_ranks_share_a_host_with_room() -> None:
    problem = ring_problem(12, 2)
    far = np.array([0, int(np.argmax(problem.routes.distances[0]))], np.int32)
    assert last(problem, far, 1000) == 2.0
    assert last(ring_problem(6, 4, slots=4), np.arange(4, dtype=np.int32), 20_000) == 0.0


def test_the_torus_instance_falls_a_quarter_below_in_order() -> None:
    problem = torus8_problem()
    start = problem.slot_host.copy()
    assert problem.hop_bytes(start) == 1_759_434  # tests/data/bench/README.md
    assert last(problem, start, 500_000) < 0.75 * 1_759_434


def test_more_than_256_distances_are_rounded_a_little() -> None:
    hosts = 600
    hops = ring_problem(hosts, 4)
    group = hops.hops.group
    found = hops.hops.value[hops.hops.code[0][group[:, None], group]]
    np.fill_diagonal(found, 0.0)
    np.testing.assert_allclose(found, hops.routes.distances, atol=hosts / 2 / 254)
