"""Numbering of links; and hosts cut into domains for threads, and what searches in them promise."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.fat_trees import three_level
from ingest.generate.tori import hypercube, mesh, torus
from mapping.deadline import Deadline
from mapping.placement.problem.problem import Problem
from mapping.placement.refine import domains, pair_exchange
from mapping.placement.refine.domains import Team, cut, near_pairs
from mapping.placement.refine.link_grid import build_link_grid
from registry.model import Allocation, Fabric, Profile
from tests.support.search_problems import everything_on, problem_on, problems, ring_problem, torus8_problem


@pytest.mark.parametrize("fabric", [torus((4, 3)), mesh((3, 4)), three_level(4)])
def test_opposite_directions_are_adjacent_cells(fabric: Fabric) -> None:
    cell, links = build_link_grid(everything_on(fabric), merge=False).of_link, fabric.links
    of_ends = {ends: int(cell[row]) for row, ends in enumerate(zip(links.source, links.target, strict=True))}
    assert len(set(cell.tolist())) == len(links)
    assert all(of_ends[b, a] == other ^ 1 for (a, b), other in of_ends.items())


def test_background_keeps_links_apart() -> None:
    problem = everything_on(three_level(4))
    busy = np.zeros(len(problem.routes.fabric.links))
    busy[np.flatnonzero(problem.routes.fabric.network_link)[3]] = 5.0
    grid = build_link_grid(replace(problem, link_background=busy))
    assert (grid.of_link >= 0).all()
    assert grid.background.sum() == 5.0


@given(slots=st.lists(st.integers(1, 4), min_size=1, max_size=12), workers=st.integers(1, 5), data=st.data())
def test_every_host_is_in_one_domain_and_domains_by_distance_differ_by_less_than_a_host(
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
    centre_out = [distance[domain == worker] for worker in range(workers) if (domain == worker).any()]
    assert all(inner.max() <= outer.min() for inner, outer in pairwise(centre_out))


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
    problem = problem_on(fabric, profile, allocation)
    cuts = pair_exchange._Domains(problem, np.random.default_rng(0), 2)
    neighbours = [np.flatnonzero(row == row[row > 0].min()) for row in problem.distances.matrix()]
    for _ in range(10):
        domain = cuts.next()
        assert [int((domain[near] != domain[host]).sum()) for host, near in enumerate(neighbours)] == [1] * 64


@pytest.mark.parametrize("workers", [2, 3])
def test_threads_that_really_run_do_not_change_a_byte(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = torus8_problem()
    ends = []
    for cores in (1, 2, 8):
        monkeypatch.setattr(domains, "cores", lambda cores=cores: cores)
        deadline = Deadline(steps=100_000, workers=workers)
        start, generator = problem.slot_host.copy(), np.random.default_rng(5)
        *_, found = pair_exchange.refine(problem, start, deadline, generator)
        assert found.value == problem.hop_bytes(found.host_of_rank) < problem.hop_bytes(start)
        assert sorted(found.host_of_rank.tolist()) == list(range(512))
        ends.append(found.host_of_rank.tobytes())
    assert ends[0] == ends[1] == ends[2]


def test_a_team_hands_back_results_in_order_whoever_is_first() -> None:
    with Team(5) as team:
        assert team.run(lambda worker: worker * worker) == [0, 1, 4, 9, 16]


def test_few_proposals_a_rank_improve_and_do_not_spoil() -> None:
    problem = ring_problem(64, 60)
    start = np.random.default_rng(0).permutation(problem.slot_host)[:60]
    *_, found = pair_exchange.refine(problem, start, Deadline(steps=30 * 60), np.random.default_rng(0))
    assert problem.hop_bytes(found.host_of_rank) < 0.8 * problem.hop_bytes(start)
