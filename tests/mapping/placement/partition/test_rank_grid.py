"""Coordinates of ranks in the grid that their traffic forms."""

from __future__ import annotations

import itertools
import math
from unittest.mock import MagicMock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.nas import lu
from ingest.generate.stencils import shuffled, stencil
from ingest.generate.tori import torus
from mapping.placement.partition.rank_grid import rank_coordinates
from mapping.placement.problem.problem import Problem
from mapping.routing import products
from registry.model import Allocation, Longs, Profile
from tests.support.search_problems import problem_on, torus8


def problem_of(profile: Profile) -> Problem:
    """Return the profile on a ring; coordinates of ranks do not depend on hosts."""
    fabric = torus((max(profile.ranks, 3),))
    allocation = Allocation.of(fabric, fabric.hosts[: profile.ranks].tolist())
    return problem_on(fabric, profile, allocation, "shortest-paths")


def check(places: Longs | None, sides: list[int], number: Longs, periodic: bool = False) -> None:
    """Ranks are neighbours in their coordinates if they are in the grid; a ring of four may be two axes."""
    assert places is not None
    assert len(np.unique(places, axis=0)) == len(places)
    assert np.prod(places.max(axis=0) + 1) == len(places)
    grid = np.array(list(itertools.product(*map(range, sides))))
    true = _steps(np.abs(grid[:, None] - grid), np.array(sides), periodic) == 1
    away = np.abs(places[number][:, None] - places[number])
    around = (away == places.max(axis=0)) & (places.max(axis=0) > 1) & periodic
    found = ((away > 0).sum(axis=2) == 1) & ((away == 1) | around).any(axis=2)
    assert (true == found).all()


def _steps(away: Longs, sides: Longs, periodic: bool) -> Longs:
    steps: Longs = (np.minimum(away, sides - away) if periodic else away).sum(axis=2)
    return steps


@given(sides=st.lists(st.integers(2, 7), min_size=2, max_size=3), full=st.booleans(), seed=st.integers(0, 99))
def test_a_shuffled_stencil_is_recognised_exactly(sides: list[int], full: bool, seed: int) -> None:
    points = {2: (5, 9), 3: (7, 27)}[len(sides)][full]
    weights = {5: (9,), 9: (9, 2), 7: (9,), 27: (64, 8, 1)}[points]
    number = np.random.default_rng(seed).permutation(math.prod(sides))
    profile = stencil(sides, points, bytes=weights, seed=seed)
    check(rank_coordinates(problem_of(profile)), sides, number)


@given(sides=st.lists(st.integers(3, 7), min_size=2, max_size=3), seed=st.integers(0, 99))
def test_a_shuffled_stencil_around_a_torus_is_recognised_exactly(sides: list[int], seed: int) -> None:
    number = np.random.default_rng(seed).permutation(math.prod(sides))
    profile = stencil(sides, 2 * len(sides) + 1, periodic=True, seed=seed)
    check(rank_coordinates(problem_of(profile)), sides, number, periodic=True)


def noisy(seed: int) -> Profile:
    """Return 6 x 5 x 4 ranks, shuffled: each axis has its own bytes, one way more, and all send a little."""
    generator = np.random.default_rng(seed)
    rank = np.arange(120).reshape(6, 5, 4)
    parts = [
        (np.delete(rank, -1, axis).ravel(), np.delete(rank, 0, axis).ravel(), bytes)
        for axis, bytes in enumerate((90.0, 40.0, 70.0))
    ]
    parts.append((*generator.integers(0, 120, (2, 600)), 1.0))
    source, target, size = (np.concatenate([np.broadcast_to(part[k], part[0].shape) for part in parts])
                            for k in range(3))  # fmt: skip
    apart = source != target
    return shuffled(Profile.from_edges(source[apart], target[apart], size[apart], ranks=120), seed)


def test_axes_with_different_bytes_and_other_light_traffic_form_a_grid() -> None:
    check(rank_coordinates(problem_of(noisy(5))), [6, 5, 4], np.random.default_rng(5).permutation(120))


def test_a_shuffled_wave_front_is_recognised() -> None:
    places = rank_coordinates(problem_of(shuffled(lu(64), 3)))
    check(places, [8, 8], np.random.default_rng(3).permutation(64))


def test_numbers_row_by_row_are_kept() -> None:
    places = rank_coordinates(problem_of(stencil((6, 3, 5), 27, bytes=(9, 3, 1))))
    assert places is not None
    assert places.tolist() == [list(place) for place in itertools.product(range(6), range(3), range(5))]


@given(seed=st.integers(0, 2**32 - 1), ranks=st.integers(5, 40))
def test_random_traffic_is_no_grid(seed: int, ranks: int) -> None:
    generator = np.random.default_rng(seed)
    source, target = generator.integers(0, ranks, (2, 6 * ranks))
    apart = source != target
    size = generator.uniform(1, 2, np.count_nonzero(apart))
    found = rank_coordinates(problem_of(Profile.from_edges(source[apart], target[apart], size, ranks=ranks)))
    if found is not None:  # by chance a line or ring of few ranks
        assert found.shape[1] == 1


def test_irregular_traffic_and_silent_ranks_are_no_grid() -> None:
    fabric, profile, allocation = torus8()
    assert rank_coordinates(problem_on(fabric, profile, allocation, "shortest-paths")) is None
    assert rank_coordinates(problem_of(Profile.from_edges([], [], [], ranks=4))) is None
    line = Profile.from_edges([0, 1, 2], [1, 2, 3], [1.0, 1.0, 1.0], ranks=5)  # rank 4 is silent
    assert rank_coordinates(problem_of(line)) is None


@pytest.mark.parametrize("partners", [6, 26])
def test_few_of_many_ranks_that_are_no_grid_are_looked_at(
    partners: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(partners)
    source = np.repeat(np.arange(4096), partners)
    target = (source + generator.integers(1, 4096, len(source))) % 4096
    problem = problem_of(Profile.from_edges(source, target, generator.uniform(1, 9, len(source)), ranks=4096))
    followed = MagicMock(side_effect=products._straight)
    monkeypatch.setattr(products, "_straight", followed)
    assert rank_coordinates(problem) is None
    assert 0 < followed.call_count < 4096
