"""Next channels kept once: every segment still leads to its own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mapping.simulation import channels
from registry.model import Longs

segments = st.lists(st.lists(st.integers(0, 3), max_size=3).map(tuple), max_size=20)


def expanded(found: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Each segment's channels by way of its set, and nothing beside them."""
    first = np.r_[0, np.cumsum([len(one) for one in found], dtype=np.int64)].astype(np.int64)
    choice = np.array([channel for one in found for channel in one], np.int32)
    set_of, ptr, kept = channels._sets(first, choice)
    assert int(ptr[-1]) == len(kept)
    return [tuple(kept[ptr[number] : ptr[number + 1]].tolist()) for number in set_of.tolist()]


@given(found=segments)
def test_every_segment_keeps_its_channels_in_their_order_and_equal_ones_are_one_set(
    found: list[tuple[int, ...]],
) -> None:
    assert expanded(found) == found
    first = np.r_[0, np.cumsum([len(one) for one in found], dtype=np.int64)].astype(np.int64)
    choice = np.array([channel for one in found for channel in one], np.int32)
    _, ptr, _ = channels._sets(first, choice)
    assert len(ptr) - 1 == len(set(found))


@given(found=segments)
def test_sums_that_are_equal_by_chance_merge_nothing(found: list[tuple[int, ...]]) -> None:
    def equal(numbers: Longs) -> Longs:
        return np.ones_like(numbers)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(channels, "_mixed", equal)
        assert expanded(found) == found
