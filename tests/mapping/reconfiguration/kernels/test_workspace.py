"""Comparison of steps by the loads that they change, with the comparison of whole sorted vectors."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mapping.reconfiguration.kernels.workspace import Step, compare


def step_of(before: list[int], after: list[int]) -> Step:
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    old = np.array(sorted((old for old, _ in changed), reverse=True), float)
    new = np.array(sorted((new for _, new in changed), reverse=True), float)
    return Step(np.zeros(1, np.int64), np.full(1, len(changed)), old, new)


@given(data=st.data(), size=st.integers(1, 8))
def test_comparing_what_changes_is_comparing_whole_sorted_vectors(data: st.DataObject, size: int) -> None:
    loads = st.lists(st.integers(0, 4), min_size=size, max_size=size)
    now, one, other = data.draw(loads), data.draw(loads), data.draw(loads)
    first, second = sorted(one, reverse=True), sorted(other, reverse=True)
    sign = int(compare(step_of(now, one), step_of(now, other)))
    assert np.sign(sign) == (first > second) - (first < second)
