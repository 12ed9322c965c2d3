"""Traffic of NAS MG (MPI, version 3.3 and later): borders of a periodic cube on each level of a V-cycle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ingest.generate.checks import power_of_two, whole
from ingest.generate.collectives import Edges, edges, joined
from registry.errors import InvalidValue
from registry.model import Bools, Longs, Profile

DOUBLE = 8
MG_POINTS = {"S": 32, "W": 128, "A": 256, "B": 256, "C": 512, "D": 1024, "E": 2048}
"""Number of points along each side of the cube, by problem class."""
MG_CYCLES = {"S": 4, "W": 4, "A": 4, "B": 20, "C": 20, "D": 50, "E": 50}


class _Level(NamedTuple):
    inner: Longs
    """int64[3, ranks]: number of own points along each axis; 0 if a rank has none."""
    there: Longs
    """int64[3, 2, ranks]: the next and the previous rank along each axis."""
    gives: Bools
    """bool[3, ranks]: True if a rank sends planes to ranks that start working at this level."""


def mg(ranks: int, *, points: int = MG_POINTS["D"], cycles: int = MG_CYCLES["D"]) -> Profile:
    """Return the profile of MG, V-cycles on a periodic and almost cubic grid of ranks, x numbered first.

    On each level a rank sends its borders in both directions along each axis: with the restriction, the
    residual and the smoother; on the coarsest level twice, on the finest three times and twice at the start.
    If a level has fewer points than ranks along an axis, only some ranks work, and neighbours are further
    apart; on the way up they send planes to the ranks that join. Reductions are ignored.

    Parameters
    ----------
    ranks : int
        Number of ranks, a power of two.
    points : int
        Number of points along each side of the cube, a power of two; default: class D.
    cycles : int
        Number of V-cycles; the program does one more before it starts its clock.
    """
    whole("mg.ranks", ranks, 1)
    whole("mg.points", points, 4)
    whole("mg.cycles", cycles, 1)
    power_of_two("mg.ranks", ranks)
    power_of_two("mg.points", points)
    levels = _levels(ranks, points)
    if int(levels[-1].inner.min()) < 1:
        raise InvalidValue("mg.points", f"is {points}, too few for {ranks} ranks")
    parts: list[Edges] = []
    for depth, level in enumerate(levels):
        turns = 2 if depth == 0 else 3
        times = turns * (cycles + 1) + (4 if depth == len(levels) - 1 else 0)
        parts += _borders(level, times)
        if depth:
            parts += _joining(level, cycles + 1)
    return joined(*parts).profile(ranks, f"mg-{ranks}", "NAS MG")


def _levels(ranks: int, points: int) -> list[_Level]:
    """Return all levels, the coarsest (two points per side) first."""
    bits = ranks.bit_length() - 1
    split = (bits // 3, (bits - bits // 3) // 2)
    sides = np.array([1 << split[0], 1 << split[1], ranks >> (split[0] + split[1])])[:, None]
    me = np.arange(ranks)
    stride = np.array([1, sides[0, 0], sides[0, 0] * sides[1, 0]])[:, None]
    place = me // stride % sides
    step = np.ones_like(place)
    found: list[_Level] = []
    gives = np.zeros(place.shape, np.bool_)
    for depth in range(points.bit_length() - 1):
        size = points >> depth
        inner = (place + 1) * size // sides - place * size // sides
        after = (step + place + 1) * size // sides - (step + place) * size // sides
        step = np.where((inner == 0) | (after == 0), 2 * step, step)
        if found:
            # Computed with the coarser level, but done at the finer one, where the others join.
            found[-1] = found[-1]._replace(gives=(after == 0) & (inner == 1))
        ahead = me + ((place + step) % sides - place) * stride
        behind = me + ((place - step) % sides - place) * stride
        found.append(_Level(inner, np.stack((ahead, behind), axis=1), gives))
    return found[::-1]


def _borders(level: _Level, times: int) -> list[Edges]:
    """Return both borders along each axis; along y they include those of x, along z those of x and y."""
    n1, n2, n3 = level.inner
    works = (level.inner > 0).all(axis=0)
    planes = (n2 * n3, (n1 + 2) * n3, (n1 + 2) * (n2 + 2))
    return _sent(level, planes, np.stack((works,) * 3), (1, 1), times)


def _joining(level: _Level, times: int) -> list[Edges]:
    """Return the planes that ranks send to those that start working at this level."""
    n1, n2, n3 = level.inner + 2
    return _sent(level, (n2 * n3, n1 * n3, n1 * n2), level.gives, (2, 1), times)


def _sent(
    level: _Level,
    planes: tuple[Longs, ...],
    senders: Bools,
    depth: tuple[int, int],
    times: int,
) -> list[Edges]:
    """Return planes of doubles along each axis, `depth` of them to the next and to the previous rank."""
    parts = []
    for axis in range(3):
        here = np.flatnonzero(senders[axis])
        for direction in range(2):
            size = DOUBLE * times * depth[direction] * planes[axis][here]
            parts.append(edges(here, level.there[axis, direction, here], size, times))
    return parts
