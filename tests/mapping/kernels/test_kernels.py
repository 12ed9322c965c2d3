"""What kernels share: a heap, random numbers, and the time spent on compiling them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from mapping.kernels.compiling import Compiling
from mapping.kernels.heap import drop_first, put_in
from mapping.kernels.random_numbers import below, exponential, state_from


def double(x: Any) -> Any:
    return 2 * x


def test_compiling_a_function_takes_time_and_calling_it_again_takes_none() -> None:
    compiled: Any = njit(double)
    with Compiling() as first:
        assert compiled(3) == 6
    with Compiling() as again:
        assert compiled(4) == 8
    assert first.seconds > 0
    assert again.seconds == 0


def test_a_compilation_within_another_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 14.0])
    monkeypatch.setattr("mapping.kernels.compiling.time.perf_counter", lambda: next(clock))
    measured, event = Compiling(), Any
    for step in (measured.on_start, measured.on_start, measured.on_end, measured.on_end):
        step(event)  # type: ignore[arg-type]
    assert measured.seconds == 4.0


@given(keys=st.lists(st.integers(0, 20), min_size=1, max_size=30))
def test_keys_come_out_of_the_heap_in_rising_order_with_their_numbers(keys: list[int]) -> None:
    key, value = np.empty(len(keys)), np.empty(len(keys), np.int32)
    for size, new in enumerate(keys):
        put_in(key, value, size, float(new), size)
    taken = []
    for left in range(len(keys) - 1, -1, -1):
        taken.append(int(value[0]))
        assert keys[taken[-1]] == key[0]
        drop_first(key, value, left)
    assert [keys[number] for number in taken] == sorted(keys)
    assert sorted(taken) == list(range(len(keys)))


def test_random_numbers_are_uniform_and_repeatable() -> None:
    state, again = (state_from(np.random.default_rng(5)) for _ in range(2))
    drawn = np.array([below(state, 7) for _ in range(7000)])
    assert [below(again, 7) for _ in range(20)] == drawn[:20].tolist()
    np.testing.assert_allclose(np.bincount(drawn, minlength=7) / 7000, 1 / 7, atol=0.02)
    waits = np.array([exponential(state) for _ in range(20_000)])
    assert (waits >= 0).all()
    np.testing.assert_allclose([waits.mean(), waits.var()], 1.0, atol=0.06)
