"""Compute rank correlations with bootstrap intervals: Spearman's rho and Kendall's tau-b."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata

from registry.model import Floats, Longs

INTERVAL = (2.5, 97.5)
"""Percentiles of resamples between which a coefficient is given."""


def spearman(x: Floats, y: Floats) -> Floats:
    """Return Spearman's rho along the last axis, ties sharing their ranks; 0 if all values are equal."""
    a, b = (np.asarray(rankdata(values, axis=-1), np.float64) for values in (x, y))
    a, b = (ranks - ranks.mean(axis=-1, keepdims=True) for ranks in (a, b))
    return _over((a * b).sum(axis=-1), (a * a).sum(axis=-1), (b * b).sum(axis=-1))


def kendall(x: Floats, y: Floats) -> Floats:
    """Return Kendall's tau-b along the last axis; 0 if all values are equal."""
    a, b = (_signs(np.asarray(values, np.float64)) for values in (x, y))
    return _over(_summed(a, b), _summed(a, a), _summed(b, b))


def draws(n: int, many: int, generator: np.random.Generator) -> Longs:
    """Return resamples of cases with replacement (int64[many, n])."""
    return generator.integers(n, size=(many, n))


def interval(values: Floats) -> tuple[float, float]:
    """Return the ends of the interval of resampled values."""
    low, high = np.percentile(values, INTERVAL)
    return float(low), float(high)


def _over(both: Floats, one: Floats, other: Floats) -> Floats:
    scale = np.sqrt(one * other)
    return np.divide(both, scale, out=np.zeros_like(scale), where=scale > 0)


def _signs(values: Floats) -> np.ndarray:
    return np.sign(values[..., :, None] - values[..., None, :]).astype(np.int8)


def _summed(one: np.ndarray, other: np.ndarray) -> Floats:
    return np.asarray((one * other).sum(axis=(-2, -1), dtype=np.int64), np.float64)
