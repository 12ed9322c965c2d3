"""Assignment of ranks to hosts with several coordinates, each axis by one coordinate of the ranks."""

from __future__ import annotations

import numpy as np

from registry.model import Floats, Ints

ANGLES = 24
"""Number of angles of a quarter turn that are tried for two vectors."""
SWEEPS = 3
"""Number of times that all pairs of more than two vectors are rotated."""


def assign_by_coordinates(coordinates: Floats, axes: Ints, slot_host: Ints) -> Ints:
    """Return int32[ranks]: hosts such that the order of ranks along each axis is that of a coordinate.

    Parameters
    ----------
    coordinates : float64[ranks, d]
    axes : int32[h, d or more]
        Coordinates of each host.
    slot_host : int32[s]
        Host of each slot; slots farthest along the first axis stay free.
    """
    places = axes[slot_host]
    slots = np.lexsort(tuple(places.T[::-1]))[: len(coordinates)]
    ranks = np.argsort(coordinates[:, 0], kind="stable")
    for axis in range(1, coordinates.shape[1]):
        slab = np.r_[0, np.cumsum(np.any(np.diff(places[slots][:, :axis], axis=0) != 0, axis=1))]
        ranks = ranks[np.lexsort((coordinates[ranks, axis], slab))]
    host_of_rank = np.empty(len(ranks), np.int32)
    host_of_rank[ranks] = slot_host[slots]
    return host_of_rank


def aligned(vectors: Floats, count: int) -> Floats:
    """Return float64[ranks, k]: vectors of which the first `count` are rotated towards the axes of a grid.

    If eigenvalues of a Laplacian are equal, as on a square grid, the solver returns any mixture of their
    vectors. Cosines along the axes have a lower fourth moment than mixtures of them: for each pair of vectors
    the angle with the lowest sum is used.
    """
    size = np.sqrt((vectors**2).mean(axis=0))
    turned = vectors / np.where(size > 0, size, 1.0)
    count = min(count, turned.shape[1])
    pairs = [(one, other) for one in range(count) for other in range(one + 1, count)]
    for one, other in pairs * (SWEEPS if count > 2 else 1):
        turned[:, [one, other]] = min(
            (_rotated(turned[:, [one, other]], step / ANGLES * np.pi / 2) for step in range(ANGLES)),
            key=lambda both: round(float((both**4).sum()), 6),
        )
    return turned


def _rotated(both: Floats, angle: float) -> Floats:
    cos, sin = np.cos(angle), np.sin(angle)
    found: Floats = both @ np.array([[cos, -sin], [sin, cos]])
    return found
