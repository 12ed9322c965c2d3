"""Hosts cut into domains for threads, and what searches in them promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.tori import hypercube
from mapping.deadline import Deadline
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import domains, pair_exchange
from mapping.placement.refine.domains import Team, cut, near_pairs
from registry.model import Allocation, Ints, Profile
from tests.support.search_problems import pinned, problem_on, problems, ring, torus8
from tests.support.strategy_problems import assert_fits


@given(
    slots=st.lists(st.integers(1, 4), min_size=1, max_size=12),
    workers=st.integers(1, 5),
    data=st.data(),
)
def test_every_host_is_in_one_domain_and_domains_differ_by_less_than_a_host_in_slots(
    slots: list[int], workers: int, data: st.DataObject
) -> None:
    hosts = len(slots)
    distance = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=hosts, max_size=hosts)), float)
    domain = cut(distance, np.r_[0, np.cumsum(slots)], workers, centre=data.draw(st.integers(0, hosts - 1)))
    assert len(domain) == hosts
    assert ((domain >= 0) & (domain < workers)).all()
    taken = np.bincount(domain, weights=slots, minlength=workers)
    assert taken.sum() == sum(slots)
    assert (np.abs(taken - sum(slots) / workers) < max(slots)).all()


@given(distance=st.lists(st.integers(0, 5), min_size=1, max_size=12), workers=st.integers(1, 4))
def test_domains_follow_each_other_by_distance(distance: list[int], workers: int) -> None:
    far = np.array(distance, float)
    domain = cut(far, np.arange(len(far) + 1), workers, centre=0)
    for before in range(workers - 1):
        inner, outer = far[domain <= before], far[domain > before]
        assert not len(inner) or not len(outer) or inner.max() <= outer.min()


@given(problem=problems(), seed=st.integers(0, 9))
def test_near_pairs_are_at_the_least_distance_of_their_first_host(problem: Problem, seed: int) -> None:
    random = np.random.default_rng(seed).integers(1 << 62, size=(2, 20))
    one, other = near_pairs(problem.near, random)
    distances = problem.distances.matrix()
    alone = problem.hosts == 1
    assert len(one) == len(other)
    assert not (alone and len(one))
    for a, b in zip(one.tolist(), other.tolist(), strict=True):
        others = np.delete(distances[a], a)
        assert a == b or distances[a, b] == others.min()


def test_two_domains_of_a_hypercube_are_cubes() -> None:
    fabric = hypercube(6)
    allocation = Allocation.of(fabric, fabric.hosts.tolist())
    profile = Profile.from_edges([0], [1], [1.0], ranks=64)
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    cuts = pair_exchange._Domains(problem, np.random.default_rng(0), 2)
    neighbours = [np.flatnonzero(row == row[row > 0].min()) for row in problem.distances.matrix()]
    for _ in range(10):
        domain = cuts.next()
        assert [int((domain[near] != domain[host]).sum()) for host, near in enumerate(neighbours)] == [1] * 64


@given(case=pinned(), workers=st.integers(2, 3))
def test_pinned_ranks_never_move_and_no_slot_is_taken_twice(case: tuple[Problem, Ints], workers: int) -> None:
    problem, start = case
    value = problem.hop_bytes(start)
    for found in pair_exchange.refine(
        problem, start, Deadline(steps=500, workers=workers), np.random.default_rng(0)
    ):
        held = problem.pinned
        assert (found.host_of_rank[held] == problem.pins[held]).all()
        assert_fits(problem, found.host_of_rank)
        assert problem.hop_bytes(found.host_of_rank) <= value + 1e-9


@pytest.mark.parametrize("workers", [2, 3])
def test_threads_that_really_run_do_not_change_a_byte(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fabric, profile, allocation = torus8()
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    ends = []
    for cores in (1, 2, 8):
        monkeypatch.setattr(domains, "cores", lambda cores=cores: cores)
        deadline = Deadline(steps=100_000, workers=workers)
        *_, found = pair_exchange.refine(
            problem, problem.slot_host.copy(), deadline, np.random.default_rng(5)
        )
        ends.append(found.host_of_rank.tobytes())
    assert ends[0] == ends[1] == ends[2]


def test_a_team_hands_back_results_in_order_whoever_is_first() -> None:
    with Team(5) as team:
        assert team.run(lambda worker: worker * worker) == [0, 1, 4, 9, 16]


def test_few_proposals_a_rank_improve_and_do_not_spoil() -> None:
    fabric, profile, allocation = ring(64, 60)
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    start = np.random.default_rng(0).permutation(problem.slot_host)[:60]
    *_, found = pair_exchange.refine(problem, start, Deadline(steps=30 * 60), np.random.default_rng(0))
    assert problem.hop_bytes(found.host_of_rank) < 0.8 * problem.hop_bytes(start)
