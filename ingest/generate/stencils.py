"""Ranks on a grid that exchange borders: plain stencils, LULESH, HPCG, Sweep3D and SNAP.

Sweep3D and SNAP, of discrete-ordinates transport, sweep the mesh for each of eight octants of directions,
from one corner of a two-dimensional grid of ranks to the opposite one, in blocks (Koch, Baker and Alcouffe
1992), so that every rank sends to each neighbour what leaves its part of the mesh in four octants. They
differ in what they decompose and send:

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

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ingest.generate.checks import each, whole, wholes
from ingest.generate.collectives import Edges, edges, expand, joined
from registry.errors import InvalidValue
from registry.model import Longs, Profile

REACH = {(2, 5): 1, (2, 9): 2, (3, 7): 1, (3, 27): 3, (3, 19): 2}
"""Largest number of coordinates in which neighbours differ, by dimensions and points of a stencil."""
DOUBLE = 8
HPCG_LEVELS = 4


def stencil(
    sides: Sequence[int],
    points: int,
    *,
    periodic: bool = False,
    bytes: float | Sequence[float] = 1.0,
    seed: int | None = None,
) -> Profile:
    """Return the profile of ranks on a grid, each of which sends to its neighbours.

    Ranks are numbered in lexicographic order, the last coordinate fastest. Of ``n_i`` ranks along dimension i
    a stencil of ``2 d + 1`` points that is not periodic has ``2 * sum_i (n_i - 1) * prod_{j != i} n_j``
    pairs, one of ``3 ** d`` points ``prod_i (3 n_i - 2) - prod_i n_i``.

    Args:
        sides: Number of ranks along each of two or three dimensions.
        points: 5 or 9 in two dimensions; 7, 19 or 27 in three.
        periodic: Whether the last rank of a dimension is next to the first. If a side is 2, both neighbours
            are the same rank, which receives the bytes of both.
        bytes: Bytes to a neighbour, by the number of coordinates in which it differs: across a face, then an
            edge, then a corner.
        seed: Number the ranks at random.
    """
    sides = wholes("stencil.sides", sides, 1)
    known = [count for dimensions, count in sorted(REACH) if dimensions == len(sides)]
    if points not in known:
        raise InvalidValue("stencil.points", f"is {points}, must be one of {known} for {len(sides)} sides")
    size = each("stencil.bytes", bytes, REACH[len(sides), points])
    parts = [
        edges(here, there, size[differs - 1], 0)
        for step, here, there in _neighbours(sides, periodic)
        if (differs := np.count_nonzero(step)) <= len(size)
    ]
    name = f"stencil{points}-{'x'.join(map(str, sides))}"
    profile = joined(*parts).profile(prod(sides), name, f"{points}-point stencil")
    return profile if seed is None else shuffled(profile, seed)


def shuffled(profile: Profile, seed: int) -> Profile:
    """Return the same traffic between ranks that are numbered at random."""
    return renumbered(profile, np.random.default_rng(seed).permutation(profile.ranks))


def renumbered(profile: Profile, order: Longs) -> Profile:
    """Return the same traffic with ``order[r]`` as the new number of rank r; `order` is a permutation."""
    order = np.asarray(order)
    if not np.array_equal(np.sort(order), np.arange(profile.ranks)):
        raise InvalidValue("renumbered.order", f"must be a permutation of 0 .. {profile.ranks - 1}")
    sent = edges(order[profile.sender], order[profile.partner], profile.bytes, profile.messages)
    return sent.profile(profile.ranks, profile.name, profile.application)


def lulesh(side: int, *, size: int = 30, iterations: int = 100) -> Profile:
    """Return the profile of LULESH 2, shock hydrodynamics on ``side ** 3`` ranks (columns numbered first).

    All 26 neighbours get the masses of shared nodes once, and three forces of each of these nodes in every
    iteration. Neighbours with a lower plane, else row, else column also get positions and velocities, six
    numbers per node. Three gradients of elements are sent across each face.

    Args:
        side: Number of ranks along each side of the cube.
        size: Number of elements along each side of a rank's cube (``-s``).
    """
    whole("lulesh.side", side, 1, 256)
    whole("lulesh.size", size, 1)
    whole("lulesh.iterations", iterations, 1)
    parts = []
    for step, here, there in _neighbours((side, side, side)):
        shared = [size + 1 for place in step if place == 0]
        doubles = prod(shared) * (1 + 3 * iterations)
        messages = 1 + iterations
        if step < (0, 0, 0):
            doubles += prod(shared) * 6 * iterations
            messages += iterations
        if len(shared) == 2:
            doubles += 3 * size * size * iterations
            messages += iterations
        parts.append(edges(here, there, DOUBLE * doubles, messages))
    return joined(*parts).profile(side**3, f"lulesh-{side**3}", "LULESH")


def hpcg(
    grid: tuple[int, int, int],
    *,
    points: tuple[int, int, int] = (104, 104, 104),
    cycles: int = 50,
    products: int = 51,
) -> Profile:
    """Return the profile of HPCG, conjugate gradients with a multigrid preconditioner and a 27-point stencil.

    A product and a sweep of the smoother exchange borders with all 26 neighbours. A V-cycle does three on
    each level except the coarsest, where it does one; each level has half the points along each axis.

    Args:
        grid: Number of ranks along x, y and z, x numbered first.
        points: Size of a rank's part of the mesh; divisible by 8.
        cycles: Number of V-cycles: one per iteration.
        products: Number of products on the finest level outside V-cycles: one per iteration and per set of
            50.
    """
    sides = wholes("hpcg.grid", grid, 1)
    mesh = tuple(whole("hpcg.points", count, 8) for count in points)
    if any(count % (1 << HPCG_LEVELS - 1) for count in mesh):
        raise InvalidValue("hpcg.points", f"is {mesh}, must be divisible by {1 << HPCG_LEVELS - 1}")
    whole("hpcg.cycles", cycles, 1)
    whole("hpcg.products", products, 0)
    times = [3 * cycles + products, *(3 * cycles,) * (HPCG_LEVELS - 2), cycles]
    parts = []
    for step, here, there in _neighbours(sides[::-1]):
        doubles = 0
        for level, count in enumerate(times):
            axes = [points >> level for points, moved in zip(reversed(mesh), step, strict=True) if not moved]
            doubles += prod(axes) * count
        parts.append(edges(here, there, DOUBLE * doubles, sum(times)))
    return joined(*parts).profile(prod(sides), f"hpcg-{'x'.join(map(str, sides))}", "HPCG")


def _neighbours(
    sides: tuple[int, ...], periodic: bool = False
) -> Iterator[tuple[tuple[int, ...], Longs, Longs]]:
    """Yield each direction of a grid with the ranks that have a neighbour there, and these neighbours.

    Ranks are numbered in lexicographic order, the last coordinate fastest.
    """
    place = np.stack(np.unravel_index(np.arange(prod(sides)), sides))
    for step in product((-1, 0, 1), repeat=len(sides)):
        if any(step):
            moved = place + np.array(step)[:, None]
            inside = (moved >= 0) & (moved < np.array(sides)[:, None])
            here = np.flatnonzero(inside.all(axis=0) | periodic)
            yield step, here, np.ravel_multi_index(tuple(moved[:, here]), sides, mode="wrap")


INTEGER = 4
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

    Args:
        grid: Number of ranks along x and y.
        mesh: Number of points of the whole mesh; what x and y leave over goes to the first ranks, one point
            each.
        planes: Number of planes along z in a message (``mk``); the last message of an octant has as many.
        angles: Number of angles per octant.
        block: Number of angles in a message (``mmi``); divides `angles`.
        reductions: True for the two all-reduces of an iteration, too: of corrected cells and of the largest
            error.
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

    Args:
        grid: Number of ranks along y and z (``npey``, ``npez``).
        points: Size of a rank's own part of the mesh.
        chunk: Number of points along x in a message (``ichunk``); divides ``points[0]``.
        angles, groups: Number of angles per octant, and of energy groups.
        iterations: Number of inner iterations in which all groups are swept.
        reductions: True for the all-reduce of an inner iteration, too: of every group's largest change.
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
