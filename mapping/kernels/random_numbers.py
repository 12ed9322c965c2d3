"""Random numbers inside kernels: SplitMix64 on a state that the caller owns.

A search is cut into chunks by time, so its random numbers must not depend on the cuts: the whole state is one
uint64 that is passed to the kernels and back. Source: Steele, Lea and Flood, "Fast splittable pseudorandom
number generators" (OOPSLA 2014), figure 17 with the finaliser of their section 6.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mapping.kernels.decorators import inner

State = NDArray[np.uint64]

GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def state_from(generator: np.random.Generator) -> State:
    """Return a state (uint64[1]) drawn from a generator."""
    return generator.integers(0, 1 << 64, size=1, dtype=np.uint64)


@inner
def mixed(word: np.uint64) -> np.uint64:
    """Return a word of which every bit depends on all bits of another."""
    z = (word ^ (word >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return np.uint64(z ^ (z >> np.uint64(31)))


@inner
def next_word(state: State) -> np.uint64:
    """Return 64 random bits."""
    state[0] += GAMMA
    return mixed(state[0])


@inner
def below(state: State, n: int) -> int:
    """Return a whole number in 0 .. n - 1, for n < 2**31; the bias below 2**-32 * n does not matter here."""
    return int(np.int64(((next_word(state) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32)))


@inner
def exponential(state: State) -> float:
    """Return an exponentially distributed number of mean 1."""
    return -math.log((np.float64(next_word(state) >> np.uint64(11)) + 1.0) * 2.0**-53)
