"""Hoefler and Snir's (2011) recursive bisection."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from mapping.placement.problem.problem import Problem
from mapping.placement.strategies import recursive_bisection
from registry.errors import InvalidValue, UnknownName
from registry.model import Allocation, Fabric, Profile
from tests.support.search_problems import problem_on, problems, ring
from tests.support.strategy_problems import assert_fits, cliques, leaves, rng, silent


@pytest.mark.parametrize("variant", recursive_bisection.VARIANTS)
@given(problem=problems())
def test_recursive_bisection_places_every_rank_in_every_variant(variant: str, problem: Problem) -> None:
    found = recursive_bisection.place_ranks(problem, rng(), variant=variant)
    assert_fits(problem, found)
    assert found.tobytes() == recursive_bisection.place_ranks(problem, rng(), variant=variant).tobytes()


@pytest.mark.parametrize("variant", ["paper", "whole"])
def test_recursive_bisection_puts_each_cluster_on_one_switch(variant: str) -> None:
    fabric, (profile, group) = leaves(4, 4, top=1), cliques(4, 4)
    hosts = np.random.default_rng(2).permutation(16)
    problem = problem_on(fabric, profile, Allocation.of(fabric, hosts.tolist()), "shortest-paths")
    leaf = hosts[recursive_bisection.place_ranks(problem, rng(), variant=variant)] // 4
    assert len({(int(g), int(one)) for g, one in zip(group, leaf, strict=True)}) == 4


def test_recursive_bisection_cuts_unequal_slots_to_fit() -> None:
    fabric = leaves(2, 3)
    sizes = [5, 3]
    ranks = np.repeat(np.arange(2), sizes)
    pairs = np.argwhere((ranks[:, None] == ranks[None, :]) & ~np.eye(8, dtype=bool))
    profile = Profile.from_edges(pairs[:, 0], pairs[:, 1], np.ones(len(pairs)))
    allocation = Allocation.of(fabric, range(6), [1, 1, 1, 2, 2, 1])
    problem = problem_on(fabric, profile, allocation, "shortest-paths")
    found = recursive_bisection.place_ranks(problem, rng())
    assert (found[ranks == 0] >= 3).all()
    assert (found[ranks == 1] < 3).all()


def test_recursive_bisection_cuts_a_dumbbell_at_its_bar() -> None:
    # Theorem 1: two complete graphs joined by one link; here the guest has two clusters of that size.
    half = 6
    hosts = np.random.default_rng(3).permutation(2 * half)
    side = np.argsort(hosts) // half
    inside = (side[:, None] == side[None, :]) & ~np.eye(2 * half, dtype=bool)
    bar = hosts[0], hosts[half]
    ends = [*np.argwhere(inside).tolist(), bar, bar[::-1]]
    tail, head = np.array(ends).T
    fabric = Fabric.from_arcs([f"v{v:02}" for v in range(2 * half)], tail, head, 1.0)
    profile, group = cliques(half, 2)
    problem = problem_on(fabric, profile, Allocation.of(fabric, range(2 * half)), "shortest-paths")
    found = side[recursive_bisection.place_ranks(problem, rng())]
    assert len({(int(g), int(s)) for g, s in zip(group, found, strict=True)}) == 2


def test_recursive_bisection_takes_the_slots_closest_to_the_first_host() -> None:
    fabric = leaves(4, 3)
    order = [7, 0, 6, 3, 9, 8, 1, 2, 4, 5, 10, 11]
    problem = problem_on(fabric, silent(3), Allocation.of(fabric, order), "shortest-paths")
    found = problem.allocation.hosts[recursive_bisection.place_ranks(problem, rng())]
    assert sorted(found.tolist()) == [6, 7, 8]


@pytest.mark.parametrize("options", [{"cuts": 0}, {"slack": -1.0}, {"variant": "hole"}])
def test_recursive_bisection_refuses_options_that_make_no_sense(options: dict[str, int | str]) -> None:
    problem = problem_on(*ring(9, 8), "shortest-paths")
    with pytest.raises((InvalidValue, UnknownName)):
        recursive_bisection.place_ranks(problem, rng(), **options)  # type: ignore[arg-type]
