"""Programs of discrete-ordinates transport on a grid of ranks: Sweep3D and SNAP.

Both sweep the mesh for each of eight octants of directions, from one corner of a two-dimensional grid of
ranks to the opposite one, in blocks (Koch, Baker and Alcouffe 1992), so that every rank sends to each
neighbour what leaves its part of the mesh in four octants. They differ in what they decompose and send:

=====================  ===================================  =============================================
..                     Sweep3D 2.2b                         SNAP
=====================  ===================================  =============================================
decomposed axes        x (ranks numbered first) and y       y (ranks numbered first) and z
parts of the mesh      any, the first ranks get the rest    equal
a message              some planes and angles               some cells along x, all angles, one group
all-reduce, iteration  4 and 8 bytes                        8 bytes per energy group
=====================  ===================================  =============================================

Sources: ``decomp.f``, ``sweep.f``, ``flux_err.f`` and ``input.150`` of Sweep3D; ``plib.F90``,
``thrd_comm.f90``, ``inner.f90`` and ``qasnap/benchmark/inp`` of SNAP.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ingest.generate.checks import whole
from ingest.generate.collectives import Edges, edges, expand, joined
from registry.errors import InvalidValue
from registry.model import Longs, Profile

DOUBLE, INTEGER = 8, 4
OCTANTS = 4
"""Number of octants of directions that leave through a face."""
_DOUBLING: Literal["recursive-doubling"] = "recursive-doubling"


def sweep3d(
    grid: tuple[int, int],
    *,
    mesh: tuple[int, int, int] = (150, 150, 150),
    planes: int = 30,
    angles: int = 6,
    block: int = 2,
    iterations: int = 1,
    reductions: bool = True,
) -> Profile:
    """Return the profile of Sweep3D on ``grid[0] x grid[1]`` ranks along x and y, x numbered first.

    Parameters
    ----------
    grid : (int, int)
        Number of ranks along x and y.
    mesh : (int, int, int)
        Number of points of the whole mesh; what x and y leave over goes to the first ranks, one point each.
    planes : int
        Number of planes along z in a message (``mk``); the last message of an octant has as many.
    angles : int
        Number of angles per octant.
    block : int
        Number of angles in a message (``mmi``); divides `angles`.
    reductions : bool
        True for the two all-reduces of an iteration, too: of corrected cells and of the largest error.
    """
    wide, high = _sides("sweep3d", grid)
    x, y, z = (whole("sweep3d.mesh", points, 1) for points in mesh)
    for name, points, ranks in (("x", x, wide), ("y", y, high)):
        if points < ranks:
            raise InvalidValue("sweep3d.mesh", f"has {points} points along {name}, fewer than {ranks} ranks")
    for name, count in (("planes", planes), ("angles", angles), ("block", block), ("iterations", iterations)):
        whole(f"sweep3d.{name}", count, 1)
    if angles % block:
        raise InvalidValue("sweep3d.block", f"is {block}, must divide the {angles} angles")
    messages = OCTANTS * (angles // block) * -(-z // planes) * iterations
    point = DOUBLE * planes * block * messages
    sent = [_faces((wide, high), point * _shares(y, high), point * _shares(x, wide), messages)]
    if reductions:
        summed = expand("all-reduce", np.arange(wide * high), INTEGER + DOUBLE, algorithm=_DOUBLING)
        sent.append(summed._replace(messages=2 * summed.messages).repeated(iterations))
    return joined(*sent).profile(wide * high, f"sweep3d-{wide}x{high}", "Sweep3D")


def snap(
    grid: tuple[int, int],
    *,
    points: tuple[int, int, int] = (64, 8, 8),
    chunk: int = 16,
    angles: int = 48,
    groups: int = 1,
    iterations: int = 1,
    reductions: bool = True,
) -> Profile:
    """Return the profile of SNAP on ``grid[0] x grid[1]`` ranks along y and z, y numbered first.

    Parameters
    ----------
    grid : (int, int)
        Number of ranks along y and z (``npey``, ``npez``).
    points : (int, int, int)
        Size of a rank's own part of the mesh.
    chunk : int
        Number of points along x in a message (``ichunk``); divides ``points[0]``.
    angles, groups : int
        Number of angles per octant, and of energy groups.
    iterations : int
        Number of inner iterations in which all groups are swept.
    reductions : bool
        True for the all-reduce of an inner iteration, too: of every group's largest change.
    """
    wide, high = _sides("snap", grid)
    x, y, z = (whole("snap.points", count, 1) for count in points)
    for name, count in (("chunk", chunk), ("angles", angles), ("groups", groups), ("iterations", iterations)):
        whole(f"snap.{name}", count, 1)
    if x % chunk:
        raise InvalidValue("snap.chunk", f"is {chunk}, must divide the {x} points along x")
    messages = OCTANTS * (x // chunk) * groups * iterations
    point = DOUBLE * angles * chunk * messages
    sent = [_faces((wide, high), np.full(high, point * z), np.full(wide, point * y), messages)]
    if reductions:
        summed = expand("all-reduce", np.arange(wide * high), DOUBLE * groups, algorithm=_DOUBLING)
        sent.append(summed.repeated(iterations))
    return joined(*sent).profile(wide * high, f"snap-{wide}x{high}", "SNAP")


def _sides(program: str, grid: tuple[int, int]) -> tuple[int, int]:
    wide, high = (whole(f"{program}.grid", side, 1) for side in grid)
    whole(f"{program}.grid", wide * high, 1)
    return wide, high


def _shares(points: int, ranks: int) -> Longs:
    """Return the number of points of each rank along one dimension."""
    return points // ranks + (np.arange(ranks) < points % ranks)


def _faces(grid: tuple[int, int], along: ArrayLike, across: ArrayLike, messages: int) -> Edges:
    """Return what neighbours on a grid send each other.

    `along` are the bytes between neighbours of the first dimension, by row; `across` those between rows, by
    column.
    """
    rank = np.arange(grid[0] * grid[1]).reshape(grid[::-1])
    pairs = (
        (rank[:, :-1], rank[:, 1:], np.asarray(along)[:, None]),
        (rank[:-1], rank[1:], np.asarray(across)[None, :]),
    )
    both = [(one, other, size) for a, b, size in pairs for one, other in ((a, b), (b, a))]
    return joined(*(edges(one, other, size, messages) for one, other, size in both))
