"""Annealed pair exchange on hop-bytes: gains, proposals and schedule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.budget import Budget
from mapping.kernels.hop_bytes_search import exchange_gain, exchange_pairs, near_hosts, sit
from mapping.kernels.random_numbers import below, exponential, state_from
from mapping.problem import Problem
from mapping.refine import pair_exchange
from registry.model import Ints
from tests.search_problems import problem_on, ring, seated, torus8


def brute_hop_bytes(problem: Problem, host_of_rank: Ints) -> float:
    """Pair of ranks by pair of ranks."""
    profile, distances = problem.profile, problem.routes.distances
    return sum(
        float(size * distances[host_of_rank[a], host_of_rank[b]])
        for a, b, size in zip(profile.sender, profile.partner, profile.bytes, strict=True)
    )


@given(case=seated(), data=st.data())
def test_a_gain_is_the_difference_of_exact_sums(case: tuple[Problem, Ints], data: st.DataObject) -> None:
    problem, start = case
    seats = problem.seats(start)
    guest = problem.guest(directed=len(problem.hops.code) == 2)
    rank = data.draw(st.integers(0, problem.ranks - 1))
    slot = data.draw(st.integers(0, len(problem.slot_host) - 1))
    here, there = int(start[rank]), int(problem.slot_host[slot])
    gain = exchange_gain(guest, problem.hops, seats, rank, int(seats.rank_of_slot[slot]), here, there)
    sit(seats, rank, slot)
    change = brute_hop_bytes(problem, seats.host_of_rank) - brute_hop_bytes(problem, start)
    if here != there:
        assert gain == pytest.approx(change, abs=1e-9)


@given(case=seated(), temperature=st.sampled_from([0.0, 1.0, 50.0]), seed=st.integers(0, 99))
def test_many_exchanges_add_up_and_keep_every_table_in_step(
    case: tuple[Problem, Ints], temperature: float, seed: int
) -> None:
    problem, start = case
    seats, guest = problem.seats(start), problem.guest(directed=len(problem.hops.code) == 2)
    if len(guest.active) == 0:
        return
    state = state_from(np.random.default_rng(seed))
    change = exchange_pairs(200, temperature, guest, problem.hops, problem.near, seats, state)
    after = brute_hop_bytes(problem, seats.host_of_rank)
    assert after == pytest.approx(brute_hop_bytes(problem, start) + change, abs=1e-6)
    assert after == pytest.approx(problem.hop_bytes(seats.host_of_rank), abs=1e-9)
    assert (seats.host_of_rank == problem.slot_host[seats.slot_of_rank]).all()
    assert (seats.rank_of_slot[seats.slot_of_rank] == np.arange(problem.ranks)).all()
    assert (seats.rank_of_slot >= 0).sum() == problem.ranks
    assert temperature > 0 or change <= 0


def test_how_proposals_are_cut_into_calls_does_not_matter() -> None:
    fabric, profile, allocation = ring(12, 9)
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    guest, ends = problem.guest(directed=False), []
    for cuts in ([300], [1, 299], [100, 100, 100]):
        seats, state = problem.seats(problem.slot_host[:9]), state_from(np.random.default_rng(1))
        for count in cuts:
            exchange_pairs(count, 0.7, guest, problem.hops, problem.near, seats, state)
        ends.append(seats.host_of_rank.tolist())
    assert ends[0] == ends[1] == ends[2]


def test_near_hosts_are_the_two_nearest_distance_classes() -> None:
    fabric, profile, allocation = ring(8, 8)
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    distances = problem.routes.distances
    near = near_hosts(problem.hops, False, 256)
    for i in range(8):
        assert set(near.host[near.start[i] : near.middle[i]]) == set(np.flatnonzero(distances[i] == 1))
        assert set(near.host[near.middle[i] : near.end[i]]) == set(np.flatnonzero(distances[i] == 2))
    shared = near_hosts(problem.hops, True, 256)
    assert shared.host[shared.start[3] : shared.middle[3]].tolist() == [3]
    cut = near_hosts(problem.hops, False, 1)
    assert (cut.end - cut.start == 2).all()


def test_a_ring_of_ranks_is_laid_around_a_ring_of_hosts() -> None:
    fabric, profile, allocation = ring(10, 10)
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    start = problem.slot_host.copy()
    *_, last = pair_exchange.refine(problem, start, Budget(steps=100_000), np.random.default_rng(0))
    assert last.value == 10.0
    assert problem.hop_bytes(last.host_of_rank) == 10.0


def test_free_slots_are_used() -> None:
    fabric, profile, allocation = ring(12, 2)
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    far = np.array([0, int(np.argmax(problem.routes.distances[0]))], np.int32)
    *_, last = pair_exchange.refine(problem, far, Budget(steps=1000), np.random.default_rng(0))
    assert last.value == 2.0


def test_ranks_that_talk_share_a_host_with_room() -> None:
    fabric, profile, allocation = ring(6, 4, slots=4)
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    apart = np.arange(4, dtype=np.int32)
    *_, last = pair_exchange.refine(problem, apart, Budget(steps=20_000), np.random.default_rng(0))
    assert last.value == 0.0


def test_the_torus_instance_falls_a_quarter_below_in_order() -> None:
    fabric, profile, allocation = torus8()
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    start = problem.slot_host.copy()
    assert problem.hop_bytes(start) == 1_759_434  # tests/data/bench/README.md
    *_, last = pair_exchange.refine(problem, start, Budget(steps=1_000_000), np.random.default_rng(0))
    assert last.value < 0.75 * 1_759_434


def test_more_than_256_distances_are_told_apart_nearly() -> None:
    hosts = 600
    fabric, profile, allocation = ring(hosts, 4)
    hops = problem_on(fabric, profile, allocation, "shortest-paths")
    found = hops.hops.value[hops.hops.code[0]]
    np.testing.assert_allclose(found, hops.routes.distances, atol=hosts / 2 / 255)


def test_random_numbers_are_uniform_and_repeatable() -> None:
    state, again = (state_from(np.random.default_rng(5)) for _ in range(2))
    drawn = np.array([below(state, 7) for _ in range(7000)])
    assert [below(again, 7) for _ in range(20)] == drawn[:20].tolist()
    np.testing.assert_allclose(np.bincount(drawn, minlength=7) / 7000, 1 / 7, atol=0.02)
    waits = np.array([exponential(state) for _ in range(20_000)])
    assert (waits >= 0).all()
    np.testing.assert_allclose([waits.mean(), waits.var()], 1.0, atol=0.06)
