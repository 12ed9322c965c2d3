"""Discrete-ordinates transport by wave fronts over a grid of ranks: Sweep3D and SNAP (Li et al. 2020, 5.1).

Both decompose two of three dimensions (Koch, Baker and Alcouffe 1992): each of eight octants of directions
is swept from one corner of the grid of ranks to the opposite one, so that every rank sends, to each of its
up to four neighbours, what leaves its part of the mesh in four octants.
"""

from __future__ import annotations

import numpy as np

from ingest.generate.checks import whole
from registry.model import Profile

DOUBLE = 8
OCTANTS = 4
"""Octants of directions that leave through a face."""


def sweep3d(
    grid: tuple[int, int],
    *,
    points: tuple[int, int, int] = (5, 5, 400),
    angles: int = 6,
    iterations: int = 1,
) -> Profile:
    """Return the profile of Sweep3D on ``grid[0] x grid[1]`` ranks along x and y, x numbered first.

    Parameters
    ----------
    grid : (int, int)
    points : (int, int, int)
        Of a rank's own part of the mesh.
    angles : int
        Of an octant.
    iterations : int

    Raises
    ------
    InvalidValue
    """
    x, y, z = _points("sweep3d", points)
    per_point = _per_point("sweep3d", angles, 1, iterations)
    return _mesh("sweep3d", "Sweep3D", grid, y * z * per_point, x * z * per_point)


def snap(
    grid: tuple[int, int],
    *,
    points: tuple[int, int, int] = (64, 8, 8),
    angles: int = 48,
    groups: int = 1,
    iterations: int = 1,
) -> Profile:
    """Return the profile of SNAP on ``grid[0] x grid[1]`` ranks along y and z, y numbered first.

    Parameters
    ----------
    grid, points, angles, iterations
        As for `sweep3d`.
    groups : int
        Energy groups.
    """
    x, y, z = _points("snap", points)
    per_point = _per_point("snap", angles, groups, iterations)
    return _mesh("snap", "SNAP", grid, x * z * per_point, x * y * per_point)


def _points(program: str, points: tuple[int, int, int]) -> tuple[int, int, int]:
    x, y, z = (whole(f"{program}.points", count, 1) for count in points)
    return x, y, z


def _per_point(program: str, angles: int, groups: int, iterations: int) -> int:
    """Return bytes that leave through a point of a face."""
    whole(f"{program}.angles", angles, 1)
    whole(f"{program}.groups", groups, 1)
    whole(f"{program}.iterations", iterations, 1)
    return DOUBLE * OCTANTS * angles * groups * iterations


def _mesh(program: str, application: str, grid: tuple[int, int], first: int, second: int) -> Profile:
    """Return four neighbours; `first` and `second` are the bytes sent along each dimension of the grid."""
    wide, high = (whole(f"{program}.grid", side, 1) for side in grid)
    ranks = whole(f"{program}.grid", wide * high, 1)
    me = np.arange(ranks)
    edges = []
    for place, side, stride, size in ((me % wide, wide, 1, first), (me // wide, high, wide, second)):
        near = me[place < side - 1]
        sent = np.full(len(near), size)
        edges += [(near, near + stride, sent), (near + stride, near, sent)]
    source, target, sent = (np.concatenate(part) for part in zip(*edges, strict=True))
    return Profile.from_edges(
        source, target, sent, ranks=ranks, name=f"{program}-{wide}x{high}", application=application
    )
