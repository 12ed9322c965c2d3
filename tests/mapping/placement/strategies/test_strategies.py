"""Strategies that need little, and all of the 2011 paper against each other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.placement.catalog import STRATEGIES, Chain
from mapping.placement.problem.objective import score
from mapping.placement.problem.problem import Problem
from mapping.placement.strategies import greedy, local_random, rcm, recursive_bisection
from mapping.placement.strategies.baselines import place_at_random, place_in_turn
from registry.errors import AlmanacError
from registry.model import Allocation, Profile
from tests.support.search_problems import problem_on, problems, ring, torus8
from tests.support.strategy_problems import cliques, leaves, rng, silent


def shuffled_torus8() -> Problem:
    """The 512-rank finite-element guest on an 8 x 8 x 8 torus, its ranks numbered at random."""
    fabric, profile, allocation = torus8()
    number = np.random.default_rng(0).permutation(profile.ranks)
    mixed = Profile.from_edges(
        number[profile.sender], number[profile.partner], profile.bytes, ranks=profile.ranks
    )
    return problem_on(fabric, mixed, allocation, "shortest-paths")


@pytest.mark.parametrize(
    ("block", "expected"),
    [(1, [0, 1, 2, 0, 2, 2]), (2, [0, 0, 1, 2, 2, 2]), (9, [0, 0, 1, 2, 2, 2])],
)
def test_round_robin_deals_blocks_over_hosts_and_skips_full_ones(block: int, expected: list[int]) -> None:
    fabric, _, _ = ring(5, 5)
    problem = problem_on(fabric, silent(6), Allocation.of(fabric, [3, 0, 4], [2, 1, 4]), "shortest-paths")
    assert place_in_turn(problem, rng(), block=block).tolist() == expected


@given(problem=problems(), block=st.integers(1, 3))
def test_round_robin_is_dealing_one_block_after_the_other(problem: Problem, block: int) -> None:
    room, host = problem.allocation.slots.tolist(), 0
    dealt: list[int] = []
    while len(dealt) < problem.ranks:
        given_now = min(room[host], block)
        room[host] -= given_now
        dealt += [host] * given_now
        host = (host + 1) % len(room)
    assert place_in_turn(problem, rng(), block=block).tolist() == dealt[: problem.ranks]


def test_round_robin_over_switches_sends_neighbouring_ranks_to_different_switches() -> None:
    fabric = leaves(3, 2)
    allocation = Allocation.of(fabric, [2, 3, 0, 4, 5, 1])
    problem = problem_on(fabric, silent(6), allocation, "shortest-paths")
    found = allocation.hosts[place_in_turn(problem, rng(), over="switches")]
    assert found.tolist() == [2, 0, 4, 3, 1, 5]


def test_random_with_locality_puts_the_heaviest_ranks_on_one_random_switch() -> None:
    fabric, (profile, group) = leaves(4, 3), cliques(3, 4)
    problem = problem_on(fabric, profile, Allocation.of(fabric, range(12)), "shortest-paths")
    switches = set()
    for seed in range(20):
        switch = local_random.place_ranks(problem, np.random.default_rng(seed)) // 3
        for one in range(4):
            assert len(set(switch[group == one].tolist())) == 1
        switches.add(tuple(switch[np.flatnonzero(group == one)[0]] for one in range(4)))
    assert len(switches) > 10


def test_random_with_locality_puts_the_rest_anywhere() -> None:
    fabric, (profile, group) = leaves(4, 3), cliques(3, 4)
    problem = problem_on(fabric, profile, Allocation.of(fabric, range(12)), "shortest-paths")
    together = np.zeros(4)
    for seed in range(40):
        switch = local_random.place_ranks(problem, np.random.default_rng(seed), share=0.25) // 3
        together += [len(set(switch[group == one].tolist())) == 1 for one in range(4)]
    assert together[3] == 40  # the group that talks most
    assert (together[:3] < 20).all()


def test_random_with_locality_in_blocks_keeps_pairs_on_neighbours_of_a_ring() -> None:
    fabric, _, _ = ring(12, 12)
    profile, _ = cliques(2, 6)
    problem = problem_on(fabric, profile, Allocation.of(fabric, range(12)), "shortest-paths")
    placed = [local_random.place_ranks(problem, np.random.default_rng(s), block=2) for s in range(10)]
    local = np.mean([score(problem, one).hop_bytes for one in placed])
    anywhere = np.mean([score(problem, place_at_random(problem, np.random.default_rng(s))).hop_bytes
                        for s in range(10)])  # fmt: skip
    assert local < 0.75 * anywhere


def test_on_a_torus_the_strategies_gain_what_the_paper_says() -> None:
    """Section 5.3.1 and Figure 5a, on 8^3; "initial" behaves like random there.

    Dilation 9.00 initially, 7.02 by RCM (-22%), 4.50 by recursive bisection (-50%). Greedy takes congestion
    down by 27 to 32%, of which threshold accepting has 2 to 9; it is the best of many starts (section 4.2).
    Its dilation is 9.03, which is that of ``near=start``.
    """
    problem = shuffled_torus8()
    initial = score(problem, problem.slot_host[: problem.ranks])
    by_rcm = score(problem, rcm.place_ranks(problem, rng()))
    recursive = score(problem, recursive_bisection.place_ranks(problem, rng()))
    many = score(problem, greedy.place_ranks(problem, rng(), starts=32, by="congestion"))
    assert 0.73 < by_rcm.hop_bytes / initial.hop_bytes < 0.83
    assert recursive.hop_bytes / initial.hop_bytes < 0.50
    assert recursive.congestion_seconds < 0.90 * initial.congestion_seconds
    assert 0.68 < many.congestion_seconds / initial.congestion_seconds < 0.80
    assert many.hop_bytes < 0.60 * initial.hop_bytes
    start = score(problem, greedy.place_ranks(problem, rng(), near="start"))
    assert 0.95 < start.hop_bytes / initial.hop_bytes < 1.05  # 9.03 of 9.00, in the authors' library


@pytest.mark.parametrize(
    "text",
    [
        "greedy:starts=4,near=sender,by=congestion",
        "recursive-bisection:variant=whole,cuts=2,slack=0.1",
        "rcm:variant=paper,root=least-degree",
        "round-robin:block=2,over=switches",
        "random-local:block=4,share=0.5",
        "in-order+threshold-accepting:first=0.001,inner=20",
    ],
)
def test_options_are_written_in_chains(text: str) -> None:
    assert str(Chain.parse(text)) == text
    with pytest.raises(AlmanacError):
        Chain.parse(text.split(":")[0] + ":nonsense=1")


def test_every_strategy_of_the_2011_paper_is_in_the_catalog() -> None:
    about = [entry.about for entry in STRATEGIES if "Hoefler and Snir 2011" in entry.about]
    assert len(about) == 4
