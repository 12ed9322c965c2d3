"""Traffic of LULESH and HPCG: borders of cubes of points, sent to up to 26 neighbouring cubes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

import numpy as np

from ingest.generate.checks import whole, wholes
from ingest.generate.collectives import Edges, edges, joined
from registry.errors import InvalidValue
from registry.model import Longs, Profile

DOUBLE = 8
HPCG_LEVELS = 4


def lulesh(side: int, *, size: int = 30, iterations: int = 100) -> Profile:
    """Return the profile of LULESH 2, shock hydrodynamics on ``side ** 3`` ranks (columns numbered first).

    Once all 26 neighbours get the masses of shared nodes; every iteration they get three forces of them.
    Those before in the numbering (the ones with a lower plane, else row, else column) also get positions and
    velocities, six numbers a node; across a face go three gradients of its elements.

    Parameters
    ----------
    side : int
        Ranks along each side; the program wants a cube.
    size : int
        Elements along each side of a rank's cube (``-s``).
    iterations : int
        ``-i``.

    Raises
    ------
    InvalidValue
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
    return _profile(joined(*parts), side**3, f"lulesh-{side**3}", "LULESH")


def hpcg(
    grid: tuple[int, int, int],
    *,
    points: tuple[int, int, int] = (104, 104, 104),
    cycles: int = 50,
    products: int = 51,
) -> Profile:
    """Return the profile of HPCG, conjugate gradients with a multigrid preconditioner and a 27-point stencil.

    A product or a sweep of the smoother exchanges borders with all 26 neighbours. A V-cycle does three on
    each level but the coarsest, where it does one; each level has half the points along each axis.

    Parameters
    ----------
    grid : (int, int, int)
        Ranks along x, y and z, x numbered first.
    points : (int, int, int)
        Of a rank's part of the mesh; divisible by 8.
    cycles : int
        V-cycles: one an iteration.
    products : int
        Products on the finest level outside V-cycles: one an iteration and one a set of 50.

    Raises
    ------
    InvalidValue
    """
    sides = wholes("hpcg.grid", grid, 1)
    mesh = tuple(whole("hpcg.points", count, 8) for count in points)
    if any(count % (1 << HPCG_LEVELS - 1) for count in mesh):
        raise InvalidValue("hpcg.points", f"is {mesh}, must be divisible by {1 << HPCG_LEVELS - 1}")
    whole("hpcg.cycles", cycles, 1)
    whole("hpcg.products", products, 0)
    times = [3 * cycles + products, *(3 * cycles,) * (HPCG_LEVELS - 2), cycles]
    parts = []
    for step, here, there in _neighbours((sides[2], sides[1], sides[0])):
        doubles = 0
        for level, count in enumerate(times):
            axes = [points >> level for points, moved in zip(reversed(mesh), step, strict=True) if not moved]
            doubles += prod(axes) * count
        parts.append(edges(here, there, DOUBLE * doubles, sum(times)))
    name = f"hpcg-{'x'.join(map(str, sides))}"
    return _profile(joined(*parts), prod(sides), name, "HPCG")


def _neighbours(sides: tuple[int, int, int]) -> Iterator[tuple[tuple[int, ...], Longs, Longs]]:
    """Yield each of 26 directions with the ranks that have a neighbour there, and these neighbours."""
    place = np.stack(np.unravel_index(np.arange(prod(sides)), sides))
    for step in product((-1, 0, 1), repeat=3):
        if any(step):
            moved = place + np.array(step)[:, None]
            here = np.flatnonzero(((moved >= 0) & (moved < np.array(sides)[:, None])).all(axis=0))
            yield step, here, np.ravel_multi_index(tuple(moved[:, here]), sides)


def _profile(sent: Edges, ranks: int, name: str, application: str) -> Profile:
    return Profile.from_edges(
        sent.source,
        sent.target,
        sent.bytes,
        ranks=ranks,
        messages=sent.messages,
        name=name,
        application=application,
    )
