"""The heap of kernels gives keys in rising order, each with its number."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mapping.kernels.heap import drop_first, put_in


def test_the_least_key_comes_first_with_its_number() -> None:
    key, value = np.empty(3), np.empty(3, np.int32)
    for size, (new_key, new) in enumerate([(5.0, 7), (2.0, 8), (4.0, 9)]):
        put_in(key, value, size, new_key, new)
    assert (key[0], value[0]) == (2.0, 8)
    drop_first(key, value, 2)
    assert (key[0], value[0]) == (4.0, 9)
    drop_first(key, value, 1)
    assert (key[0], value[0]) == (5.0, 7)


@given(keys=st.lists(st.integers(0, 20), min_size=1, max_size=30))
def test_keys_come_in_rising_order(keys: list[int]) -> None:
    key, value = np.empty(len(keys)), np.empty(len(keys), np.int32)
    for size, new in enumerate(keys):
        put_in(key, value, size, float(new), size)
    taken = []
    for left in range(len(keys) - 1, -1, -1):
        assert keys[value[0]] == key[0]
        taken.append(int(key[0]))
        drop_first(key, value, left)
    assert taken == sorted(keys)
