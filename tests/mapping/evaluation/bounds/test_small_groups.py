"""Bytes that small groups keep and send, against every grouping of few ranks."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.generate.stencils import stencil
from mapping.evaluation.bounds import small_groups
from mapping.evaluation.bounds.guest_graph import guest_arrays
from mapping.evaluation.bounds.small_groups import SmallGroups
from registry.model import Floats, Profile
from tests.support.small_fabrics import profiles

GRID = stencil((4, 4), 5)
"""Ranks on a square, each of which sends 1 byte to each of its neighbours."""


def groupings(profile: Profile, slots: list[int]) -> list[np.ndarray]:
    """Every way to put ranks into groups of limited size: the group of each rank."""
    every = (np.array(one) for one in itertools.product(range(len(slots)), repeat=profile.ranks))
    return [one for one in every if (np.bincount(one, minlength=len(slots)) <= slots).all()]


def sent_by_groups(profile: Profile, group: np.ndarray) -> Floats:
    """Bytes that the group of each rank sends to other groups."""
    apart = group[profile.sender] != group[profile.partner]
    leaving = np.bincount(group[profile.sender][apart], profile.bytes[apart], int(group.max()) + 1)
    return np.asarray(leaving[group], np.float64)


def of(profile: Profile) -> SmallGroups:
    return SmallGroups(guest_arrays(profile))


def sent(profile: Profile) -> Floats:
    return np.bincount(profile.sender, profile.bytes, profile.ranks).astype(np.float64)


@given(profile=profiles(min_ranks=2, max_ranks=6), data=st.data())
def test_no_grouping_sends_less_than_small_groups_prove(profile: Profile, data: st.DataObject) -> None:
    slots = data.draw(st.lists(st.integers(1, 4), min_size=2, max_size=3))
    while sum(slots) < profile.ranks:
        slots[0] += 1
    every = groupings(profile, slots)
    least = min(float(profile.bytes[one[profile.sender] != one[profile.partner]].sum()) for one in every)
    assert of(profile).crossing(np.array(slots)) <= least * (1 + 1e-9) + 1e-9
    leaving = of(profile).leaving(np.array(slots), sent(profile))
    if leaving is not None:
        of_rank = np.min([sent_by_groups(profile, one) for one in every], axis=0)
        assert (leaving <= of_rank * (1 + 1e-9) + 1e-9).all()


@given(profile=profiles(min_ranks=2, max_ranks=7), size=st.integers(2, 4))
def test_the_best_group_of_each_rank_is_the_best_of_all_subsets(profile: Profile, size: int) -> None:
    """The least bytes out of any group with a rank, if the other ranks may be anywhere."""
    slots = np.full(profile.ranks, size)
    found = of(profile).leaving(slots, sent(profile))
    expected = np.full(profile.ranks, np.inf)
    for count in range(1, size + 1):
        for chosen in itertools.combinations(range(profile.ranks), count):
            inside = np.isin(np.arange(profile.ranks), chosen)
            out = profile.bytes[inside[profile.sender] & ~inside[profile.partner]].sum()
            expected[list(chosen)] = np.minimum(expected[list(chosen)], out)
    if found is not None:
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_four_in_a_square_keep_the_most_of_a_grid() -> None:
    """Of the 24 edges of a 4 x 4 grid four squares keep 16, both ways; three each of a rank's partners 24."""
    assert of(GRID).crossing(np.full(4, 4)) == pytest.approx(16.0)
    assert of(GRID).crossing(np.full(8, 2)) == pytest.approx(48.0 - 16.0)


def test_groups_without_free_slots_have_further_ranks() -> None:
    """A corner's square sends 4. With free slots a corner alone sends 2, each of the middle still 4."""
    full = of(GRID).leaving(np.full(4, 4), sent(GRID))
    free = of(GRID).leaving(np.full(16, 4), sent(GRID))
    assert full is not None
    assert free is not None
    assert full.min() == full[5] == 4.0
    assert free[0] == 2.0
    assert free[5] == 4.0


def test_a_slot_more_is_used_by_the_ranks_that_gain_most() -> None:
    """A triangle and five ranks without partners: a group of three keeps all, groups of two one edge."""
    profile = Profile.from_edges([0, 1, 2], [1, 2, 0], [9.0, 9.0, 9.0], ranks=8)
    assert of(profile).crossing(np.array([3, 2, 2, 1])) == pytest.approx(0.0)
    assert of(profile).crossing(np.array([2, 2, 2, 2])) >= 9.0
    assert of(profile).crossing(np.array([2, 1, 1, 1, 1, 1, 1])) == pytest.approx(18.0)


def test_nothing_is_proved_if_there_are_too_many_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of(GRID).crossing(np.full(2, 9)) == 0.0
    monkeypatch.setattr(small_groups, "MAX_ENUMERATED", 50)
    few = of(GRID)
    assert few.crossing(np.full(4, 4)) == 0.0
    assert few.leaving(np.full(4, 4), np.zeros(16)) is None
