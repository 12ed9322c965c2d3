"""Recognition of the grid that ranks form by their traffic, however they are numbered."""

from __future__ import annotations

import numpy as np

from mapping.placement.problem.problem import Problem
from mapping.routing.products import product_coordinates
from registry.model import Floats, Longs

MOST_PAIRS = 1_000_000
"""Most pairs of ranks that are looked at: a tenth of a second."""
CLASSES = 8
"""Most classes of weights that are tried, each with all heavier ones."""
EQUAL = 1e-9
"""Two weights closer than this, relatively, are equal: sums of the same bytes in another order."""


def rank_coordinates(problem: Problem) -> Longs | None:
    """Return coordinates (int64[ranks, d]) of ranks in a grid that their heaviest pairs form, or None.

    A grid is a product of lines, rings and complete graphs (`mapping.routing.products`). Ranks exchange more
    across faces of a grid than across edges and corners, and than in collectives: so pairs are sorted by
    their bytes in both directions, and cut where these fall most. The heaviest pairs that form a grid count.
    """
    ranks = problem.ranks
    if len(problem.bytes) > MOST_PAIRS:
        return None
    low, high, size = problem.both_ways
    if len(size) < ranks - 1:
        return None
    order = np.argsort(-size, kind="stable")
    links = np.stack((low[order], high[order]), axis=1).astype(np.int64)
    for end in _cuts(size[order], ranks - 1):
        places = product_coordinates(ranks, links[:end])
        if places is not None:
            return places
    return None


def _cuts(size: Floats, fewest: int) -> list[int]:
    """Return the numbers of heaviest pairs to try, ascending: all, and up to where sizes fall most.

    Parameters
    ----------
    size : float64[pairs]
        Descending.
    fewest : int
        Least number of pairs.
    """
    falls = size[:-1] / size[1:]
    ends = np.flatnonzero(falls > 1 + EQUAL) + 1
    ends = ends[ends >= fewest]
    largest = ends[np.argsort(-falls[ends - 1], kind="stable")[: CLASSES - 1]]
    return [*np.sort(largest).tolist(), len(size)]
