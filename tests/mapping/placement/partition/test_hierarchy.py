"""The hierarchy of hosts by their distances, and its levels."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mapping.placement.partition.hierarchy import (
    LARGEST,
    Branch,
    factors,
    hierarchy,
    levels_of,
    prime_factors,
)
from registry.model import Profile
from tests.mapping.placement.strategies.test_layout import leaves_of_four
from tests.support.search_problems import problem_on


def test_hosts_in_a_mixed_order_are_clustered_by_leaf_switch() -> None:
    fabric, allocation = leaves_of_four()
    profile = Profile.from_edges([0], [1], [1.0], ranks=2)
    top = hierarchy(problem_on(fabric, profile, allocation, "shortest-paths"))
    found = sorted(sorted((allocation.hosts[part.hosts] // 4).tolist()) for part in top.parts)
    assert found == [[leaf] * 4 for leaf in range(4)]


def test_levels_number_parts_by_room_and_split_many_parts_by_factors() -> None:
    hosts = np.arange(14, dtype=np.int32)
    leaf = [Branch(1.0, (), hosts[begin:end]) for begin, end in ((0, 1), (1, 4), (4, 6), (6, 8))]
    below = Branch(2.0, tuple(leaf[2:]), hosts[4:8])
    top = Branch(
        3.0, (leaf[0], leaf[1], below, *(Branch(0.0, (), hosts[k : k + 2]) for k in (8, 10, 12))), hosts
    )
    levels = levels_of(top, np.ones(14, np.int64))
    # room 1, 3, 4, 2, 2, 2: numbers 5, 1, 0, 2, 3, 4 as 3 x 2; the third part's two halves one level lower
    assert levels[[0, 1, 4, 6, 8, 10, 12]].tolist() == [
        [2, 1, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 1, 0], [2, 0, 0],
    ]  # fmt: skip
    assert levels_of(leaf[1], np.ones(14, np.int64)).shape == (14, 0)


@given(parts=st.integers(2, 5000))
def test_factors_are_small_fall_and_have_room_for_all_parts(parts: int) -> None:
    sides = factors(parts)
    assert list(sides) == sorted(sides, reverse=True)
    assert max(sides) <= LARGEST
    assert parts <= np.prod(sides) <= 1.2 * parts + 1


def test_prime_factors_are_found_from_the_smallest() -> None:
    assert [prime_factors(number) for number in (1, 2, 12, 97, 300)] == [
        (),
        (2,),
        (2, 2, 3),
        (97,),
        (2, 2, 3, 5, 5),
    ]
