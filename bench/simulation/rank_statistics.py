"""Rank correlation, and how sure it is: Spearman's rho and Kendall's tau-b, with bootstrap intervals."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from registry.model import Floats, Longs

INTERVAL = (2.5, 97.5)
"""Percentiles of resamples between which a coefficient is given."""


def spearman(x: Floats, y: Floats) -> Floats:
    """Spearman's rho along the last axis, equal values sharing their ranks; 0 where all of one are equal."""
    a, b = (np.asarray(rankdata(values, axis=-1), np.float64) for values in (x, y))
    a, b = (ranks - ranks.mean(axis=-1, keepdims=True) for ranks in (a, b))
    return _over((a * b).sum(axis=-1), (a * a).sum(axis=-1), (b * b).sum(axis=-1))


def kendall(x: Floats, y: Floats) -> Floats:
    """Kendall's tau-b along the last axis; 0 where all of one are equal."""
    a, b = (_signs(np.asarray(values, np.float64)) for values in (x, y))
    return _over(_summed(a, b), _summed(a, a), _summed(b, b))


def draws(n: int, many: int, generator: np.random.Generator) -> Longs:
    """int64[many, n]: resamples of so many cases with replacement."""
    return generator.integers(n, size=(many, n))


def interval(values: Floats) -> tuple[float, float]:
    """The ends of the interval of resampled values."""
    low, high = np.percentile(values, INTERVAL)
    return float(low), float(high)


def _over(both: Floats, one: Floats, other: Floats) -> Floats:
    scale = np.sqrt(one * other)
    return np.divide(both, scale, out=np.zeros_like(scale), where=scale > 0)


def _signs(values: Floats) -> np.ndarray:
    return np.sign(values[..., :, None] - values[..., None, :]).astype(np.int8)


def _summed(one: np.ndarray, other: np.ndarray) -> Floats:
    return np.asarray((one * other).sum(axis=(-2, -1), dtype=np.int64), np.float64)
