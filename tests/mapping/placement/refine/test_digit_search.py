"""Further orders of digits: they are used where they help, and given up where they do not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.support.structured import fft, halving
from ingest.generate.tori import mesh, torus
from mapping.deadline import Deadline
from mapping.placement.problem.objective import score
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import Candidate, digit_search, pair_exchange
from mapping.placement.refine.digit_search import CONGESTION, FIRST, HOP_BYTES, NEAR, WAYS
from registry.model import Ints, Profile
from tests.support.search_problems import on_all_hosts

METRICS = st.sampled_from([*WAYS])


def mixed(problem: Problem, seed: int = 0) -> Ints:
    return np.random.default_rng(seed).permutation(problem.slot_host)[: problem.ranks].astype(np.int32)


def scattered_partners() -> Problem:
    """64 ranks with random partners: no order of digits is good."""
    generator = np.random.default_rng(1)
    source, target = (generator.integers(0, 64, 128) for _ in range(2))
    apart = source != target
    profile = Profile.from_edges(source[apart], target[apart], np.ones(apart.sum()), ranks=64)
    return on_all_hosts(torus((8, 8)), profile)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_transform_is_placed_as_well_as_possible_from_any_start(workers: int) -> None:
    problem = on_all_hosts(mesh((16, 16)), fft((16, 16)))
    best = problem.hop_bytes(problem.slot_host)  # in order, proved by the bound `projection`
    deadline = Deadline(steps=10**6, workers=workers)
    *_, found = digit_search.refine(problem, mixed(problem), deadline, np.random.default_rng(0))
    assert found.value == problem.hop_bytes(found.host_of_rank) == pytest.approx(best)
    assert sorted(found.host_of_rank.tolist()) == list(range(256))
    assert deadline.taken <= 3 * WAYS[HOP_BYTES].patience * WAYS[HOP_BYTES].tries  # ended by itself


def test_it_ends_at_once_where_no_order_is_near_the_start() -> None:
    problem = scattered_partners()
    generator, start = np.random.default_rng(0), mixed(problem)
    *_, good = pair_exchange.refine(problem, start, Deadline(steps=100_000), generator)
    deadline = Deadline(steps=10**6, workers=1)
    found = list(digit_search.refine(problem, good.host_of_rank, deadline, generator))
    assert deadline.taken == FIRST * WAYS[HOP_BYTES].tries
    assert len(found) == FIRST
    assert found[-1].value == good.value
    assert np.array_equal(found[-1].host_of_rank, good.host_of_rank)
    assert NEAR * good.value < problem.hop_bytes(start)


def test_with_pinned_ranks_or_nothing_sent_nothing_is_tried() -> None:
    problem = on_all_hosts(mesh((4, 4)), fft((4, 4)))
    pins = np.full(16, -1, np.int32)
    pins[3] = 7
    silent = on_all_hosts(mesh((4,)), Profile.from_edges([], [], [], ranks=4))
    for case in (problem.with_pins(pins), silent):
        deadline = Deadline(steps=1000)
        assert not list(digit_search.refine(case, mixed(case), deadline, np.random.default_rng(0)))
        assert deadline.taken == 0


def measured(problem: Problem, hosts: Ints, on: str) -> tuple[float, ...]:
    return score(problem, hosts)[:2] if on == CONGESTION else (problem.hop_bytes(hosts),)


@given(steps=st.integers(0, 2000), workers=st.integers(1, 3), seed=st.integers(0, 9), on=METRICS)
def test_never_worse_than_its_start_and_the_same_for_a_seed(
    steps: int, workers: int, seed: int, on: str
) -> None:
    problem = scattered_partners() if seed % 2 else on_all_hosts(mesh((4, 6)), fft((6, 4)))
    start, ends = mixed(problem, seed), []
    for _ in range(2):
        deadline, generator = Deadline(steps=steps, workers=workers), np.random.default_rng(seed)
        found = list(digit_search.refine(problem, start, deadline, generator, on=on))
        assert deadline.taken <= steps
        values = [measured(problem, start, on)[0]]
        for one in found:
            known = (one.value, one.network_congestion_seconds) if on == CONGESTION else (one.value,)
            assert known == measured(problem, one.host_of_rank, on)
            values.append(one.value)
        assert all(later <= one for one, later in itertools.pairwise(values))
        ends.append([one.host_of_rank.tobytes() for one in found])
    assert ends[0] == ends[1]


def test_the_best_order_by_congestion_is_another_one() -> None:
    """Recursive halving on a torus: with the fewest hop-bytes a link has more than one pair."""
    problem = on_all_hosts(torus((4, 8, 8)), halving(256))
    ends = {}
    for on in WAYS:
        deadline, generator = Deadline(steps=10**6), np.random.default_rng(0)
        *_, found = digit_search.refine(problem, mixed(problem), deadline, generator, on=on)
        assert deadline.taken < 10**6
        ends[on] = score(problem, found.host_of_rank)
        known = ends[on].hop_bytes if on == HOP_BYTES else ends[on].congestion_seconds
        assert found.value == known
    assert ends[CONGESTION].congestion_seconds == float(problem.bytes.max())
    assert ends[HOP_BYTES].congestion_seconds > 1.05 * ends[CONGESTION].congestion_seconds
    assert ends[HOP_BYTES].hop_bytes < ends[CONGESTION].hop_bytes


def test_a_tie_is_decided_by_the_links_of_the_network() -> None:
    none = np.zeros(1, np.int32)
    other = Candidate(none, "congestion_seconds", 2.0, 1.0)
    for value, network, better in ((2.0, 0.5, True), (2.0, 1.0, False), (2.1, 0.5, False), (1.9, 3.0, True)):
        one = Candidate(none, "congestion_seconds", value, network)
        assert digit_search._is_better(one, other) is better
