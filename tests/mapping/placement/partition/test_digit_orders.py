"""Digits of hosts' positions: along the axes of a torus, or down the hierarchy of a tree."""

from __future__ import annotations

import numpy as np

from ingest.generate.fat_trees import extended_generalised_fat_tree
from ingest.generate.tori import torus
from mapping.placement.partition.digit_orders import host_digits, host_sides
from mapping.placement.problem.problem import Problem
from registry.model import Ints, Profile
from tests.mapping.placement.strategies.test_digit_permutation import butterfly, problem_of


def position_digits(problem: Problem) -> tuple[list[int], list[int], Ints]:
    digits = host_digits(*host_sides(problem), 0, np.random.default_rng(0))
    return digits.radix.tolist(), digits.stride.tolist(), digits.host


def test_digits_follow_the_axes_of_hosts_and_their_slots() -> None:
    radix, stride, host = position_digits(problem_of(torus((6, 4), slots=2), butterfly(4)))
    assert (radix, stride) == ([2, 2, 2, 2], [8, 4, 2, 1])  # 16 ranks fill no grid: digits of positions
    assert host.tolist() == np.repeat(np.arange(8), 2).tolist()
    ring = Profile.from_edges(np.arange(48), np.roll(np.arange(48), 1), np.ones(48))
    radix, stride, host = position_digits(problem_of(torus((6, 4), slots=2), ring))
    assert (radix, stride) == ([3, 2, 2, 2, 2], [16, 8, 4, 2, 1])
    assert host.tolist() == np.repeat(np.arange(24), 2).tolist()


def test_digits_follow_the_hierarchy_of_a_tree() -> None:
    fabric = extended_generalised_fat_tree((3, 5), (1, 2))
    ring = Profile.from_edges(np.arange(15), np.roll(np.arange(15), 1), np.ones(15))
    radix, stride, host = position_digits(problem_of(fabric, ring))
    assert (radix, stride) == ([5, 3], [3, 1])
    assert (host.reshape(5, 3) // 3 == host.reshape(5, 3)[:, :1] // 3).all()
