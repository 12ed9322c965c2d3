"""A search on loads that keeps to part of the hosts: what holds of the smaller problem, and what it finds."""

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
from registry.model import Allocation, Fabric, Ints, Profile
from tests.support.search_problems import problem_on

RANKS, MOST = 12, 20


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(congestion_descent, "MOST_GROUPS", MOST)


def free_hosts(*, fabric: Fabric | None = None, routing: str = "shortest-paths") -> Problem:
    """Ranks that talk at random, on part of the nodes of a network (default: PERCS), in a mixed order."""
    fabric = percs(3) if fabric is None else fabric
    random = np.random.default_rng(4)
    sender, receiver = random.integers(0, RANKS, (2, 6 * RANKS))
    profile = Profile.from_edges(sender, receiver, random.random(6 * RANKS), ranks=RANKS)
    hosts = random.permutation(fabric.hosts)[:40]
    return problem_on(fabric, profile, Allocation.of(fabric, hosts.tolist(), 1), routing)


def start_of(problem: Problem) -> Ints:
    return np.random.default_rng(5).permutation(problem.hosts)[:RANKS].astype(np.int32)


def cut_down(problem: Problem, start: Ints) -> FewerHosts:
    found = fewer_hosts(problem, start, np.random.default_rng(0))
    assert found is not None
    return found


def test_so_many_hosts_are_kept_and_those_of_the_start_among_them() -> None:
    problem = free_hosts()
    start = start_of(problem)
    fewer = cut_down(problem, start)
    assert fewer.problem.hosts == len(fewer.host) == MOST
    assert np.isin(start, fewer.host).all()
    assert (fewer.outside(fewer.inside(start)) == start).all()
    assert (fewer.problem.allocation.hosts == problem.allocation.hosts[fewer.host]).all()


def test_a_placement_is_worth_the_same_in_the_smaller_problem() -> None:
    problem = free_hosts()
    number = np.arange(len(problem.link_capacity), dtype=np.float64)
    whole = replace(
        problem,
        link_capacity=1.0 + number,
        link_background=number % 5.0,
        own_distances=Distances(
            name="table", group=problem.distances.group, between=np.sqrt(problem.distances.between)
        ),
    )
    for one in (problem, whole):
        start = start_of(one)
        fewer = cut_down(one, start)
        assert score(fewer.problem, fewer.inside(start)) == pytest.approx(score(one, start))


def test_pins_hold_and_their_hosts_are_kept() -> None:
    problem = free_hosts()
    start, pins = start_of(problem), np.full(RANKS, -1)
    empty = np.setdiff1d(np.arange(problem.hosts), start)
    pins[[2, 7]] = empty[[3, 5]]
    held = replace(problem, pins=pins)
    fewer = cut_down(held, start)
    assert np.isin(pins[[2, 7]], fewer.host).all()
    assert (fewer.problem.pinned == held.pinned).all()
    assert fewer.outside(fewer.problem.pins[[2, 7]]).tolist() == pins[[2, 7]].tolist()


@pytest.mark.parametrize("fabric", [torus((6, 7)), dragonfly(2, 1, 4)], ids=["torus", "few groups"])
def test_what_fits_is_left_as_it_is(fabric: Fabric) -> None:
    problem = free_hosts(fabric=fabric)
    start = np.arange(RANKS, dtype=np.int32)
    assert fewer_hosts(problem, start, np.random.default_rng(0)) is None


def test_a_start_on_too_many_hosts_leaves_the_problem_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = free_hosts()
    monkeypatch.setattr(congestion_descent, "MOST_GROUPS", RANKS - 1)
    assert fewer_hosts(problem, start_of(problem), np.random.default_rng(0)) is None


def test_the_search_returns_hosts_of_the_whole_problem() -> None:
    problem = free_hosts()
    start = start_of(problem)
    *_, found = congestion_descent.refine(problem, start, Deadline(steps=3000), np.random.default_rng(0))
    after = score(problem, found.host_of_rank)
    assert after.congestion_seconds == pytest.approx(found.value)
    assert after.congestion_seconds < 0.8 * score(problem, start).congestion_seconds
