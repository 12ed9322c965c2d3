"""Several jobs placed together: one disconnected guest, taken apart again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mapping
from mapping.placement.problem.together import join, split
from mapping.placement.strategies.random import random_placement
from registry.errors import InvalidPlacement, InvalidValue
from registry.model import Allocation, Profile
from tests.support.search_problems import ring
from tests.support.small_fabrics import profiles


@given(parts=st.lists(profiles(), min_size=1, max_size=3))
def test_the_joined_guest_is_the_parts_one_after_another(parts: list[Profile]) -> None:
    whole, first = join(parts), 0
    assert whole.ranks == sum(part.ranks for part in parts)
    assert whole.pairs == sum(part.pairs for part in parts)
    for part in parts:
        mine = (whole.sender >= first) & (whole.sender < first + part.ranks)
        assert (whole.sender[mine] - first).tolist() == part.sender.tolist()
        assert (whole.partner[mine] - first).tolist() == part.partner.tolist()
        assert whole.bytes[mine].tolist() == part.bytes.tolist()
        assert whole.messages[mine].tolist() == part.messages.tolist()
        first += part.ranks


@given(parts=st.lists(profiles(), min_size=1, max_size=3), seed=st.integers(0, 9))
def test_the_parts_of_a_placement_load_links_as_the_whole_does(parts: list[Profile], seed: int) -> None:
    fabric, _, _ = ring(6, 6)
    allocation = Allocation.of(fabric, [3, 0, 5, 2], [3, 4, 4, 1])
    whole = join(parts)
    placement = random_placement(whole.ranks, allocation, seed)
    pieces = split(placement, [part.ranks for part in parts])
    assert np.concatenate([p.host_of_rank for p in pieces]).tolist() == placement.host_of_rank.tolist()
    together = mapping.evaluate(fabric, whole, placement).link_bytes
    alone = [mapping.evaluate(fabric, *of).link_bytes for of in zip(parts, pieces, strict=True)]
    np.testing.assert_allclose(np.sum(alone, axis=0), together)


def test_jobs_that_are_placed_together_keep_apart() -> None:
    fabric, circle, _ = ring(12, 6)
    allocation = Allocation.of(fabric, [0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11])
    found = mapping.place(fabric, join([circle, circle]), allocation, objective="hop-bytes", steps=20_000)
    for part in split(found, [6, 6]):
        hops = mapping.evaluate(fabric, circle, part).hop_bytes
        assert hops == 10.0  # a run of six hosts: five edges of one hop and one of five


def test_a_job_counts_as_often_as_it_repeats() -> None:
    _, circle, _ = ring(4, 4)
    assert join([circle, circle], times=[1, 3]).bytes.tolist() == [1.0] * 4 + [3.0] * 4


def test_ranks_without_a_recording_stay_marked() -> None:
    profile = Profile.from_edges([0], [1], [1.0], ranks=3, missing_ranks=(2,))
    assert join([profile, profile]).missing_ranks == (2, 5)


@pytest.mark.parametrize("times", [[1.0], [1.0, 0.0], [1.0, float("nan")]])
def test_times_that_make_no_sense_are_refused(times: list[float]) -> None:
    _, circle, _ = ring(4, 4)
    with pytest.raises(InvalidValue):
        join([circle, circle], times=times)
    with pytest.raises(InvalidValue):
        join([])


def test_parts_that_are_not_the_whole_are_refused() -> None:
    _, _, allocation = ring(5, 5)
    whole = random_placement(5, allocation, 0)
    for ranks in ([2, 2], [5, 0], []):
        with pytest.raises(InvalidPlacement):
            split(whole, ranks)
