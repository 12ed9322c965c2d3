"""Random numbers of kernels."""

from __future__ import annotations

import numpy as np

from mapping.kernels.random_numbers import below, exponential, state_from


def test_random_numbers_are_uniform_and_repeatable() -> None:
    state, again = (state_from(np.random.default_rng(5)) for _ in range(2))
    drawn = np.array([below(state, 7) for _ in range(7000)])
    assert [below(again, 7) for _ in range(20)] == drawn[:20].tolist()
    np.testing.assert_allclose(np.bincount(drawn, minlength=7) / 7000, 1 / 7, atol=0.02)
    waits = np.array([exponential(state) for _ in range(20_000)])
    assert (waits >= 0).all()
    np.testing.assert_allclose([waits.mean(), waits.var()], 1.0, atol=0.06)
