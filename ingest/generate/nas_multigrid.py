"""Traffic of NAS MG (MPI, version 3.3 and later): borders of a periodic cube on each level of a V-cycle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ingest.generate.checks import whole
from ingest.generate.collectives import Edges, edges, joined
from registry.errors import InvalidValue
from registry.model import Bools, Longs, Profile

DOUBLE = 8
MG_POINTS = {"S": 32, "W": 128, "A": 256, "B": 256, "C": 512, "D": 1024, "E": 2048}
"""Points along each side of the cube by problem class."""
MG_CYCLES = {"S": 4, "W": 4, "A": 4, "B": 20, "C": 20, "D": 50, "E": 50}


class _Level(NamedTuple):
    inner: Longs
    """int64[3, ranks]: own points along each axis; 0 if a rank has none."""
    there: Longs
    """int64[3, 2, ranks]: the rank after and the rank before along each axis."""
    gives: Bools
    """bool[3, ranks]: whether a rank hands planes to ranks that begin to work at this level."""


def mg(ranks: int, *, points: int = MG_POINTS["D"], cycles: int = MG_CYCLES["D"]) -> Profile:
    """Return the profile of MG, V-cycles on a periodic and almost cubic grid of ranks, x numbered first.

    On each level a rank sends its borders both ways along each axis: with the restriction, the residual and
    the smoother; on the coarsest level twice, on the finest three times and twice at the start. Where a
    level has fewer points than ranks along an axis only some ranks work, those next to each other being
    further apart; on the way up they hand planes to those that join. Reductions are ignored.

    Parameters
    ----------
    ranks : int
        A power of two.
    points : int
        Along each side of the cube, a power of two; class D by default (`MG_POINTS`).
    cycles : int
        The program does one more before it starts its clock.

    Raises
    ------
    InvalidValue
    """
    whole("mg.ranks", ranks, 1)
    whole("mg.points", points, 4)
    whole("mg.cycles", cycles, 1)
    for name, value in (("ranks", ranks), ("points", points)):
        if value & (value - 1):
            raise InvalidValue(f"mg.{name}", f"is {value}, must be a power of two")
    levels = _levels(ranks, points)
    if int(levels[-1].inner.min()) < 1:
        raise InvalidValue("mg.points", f"is {points}, too few for {ranks} ranks")
    parts: list[Edges] = []
    for depth, level in enumerate(levels):
        turns = 2 if depth == 0 else 3
        times = turns * (cycles + 1) + (4 if depth == len(levels) - 1 else 0)
        parts += _borders(level, times)
        if depth:
            parts += _handed(level, cycles + 1)
    sent = joined(*parts)
    return Profile.from_edges(
        sent.source,
        sent.target,
        sent.bytes,
        ranks=ranks,
        messages=sent.messages,
        name=f"mg-{ranks}",
        application="NAS MG",
    )


def _levels(ranks: int, points: int) -> list[_Level]:
    """Return all levels, the coarsest, of two points a side, first."""
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
            # What a coarser level finds out belongs to the finer one, where the others join.
            found[-1] = found[-1]._replace(gives=(after == 0) & (inner == 1))
        ahead = me + ((place + step) % sides - place) * stride
        behind = me + ((place - step) % sides - place) * stride
        found.append(_Level(inner, np.stack((ahead, behind), axis=1), gives))
    return found[::-1]


def _borders(level: _Level, times: int) -> list[Edges]:
    """Return both borders along each axis; along y and z those of x, and of x and y, go with them."""
    n1, n2, n3 = level.inner
    works = (level.inner > 0).all(axis=0)
    planes = (n2 * n3, (n1 + 2) * n3, (n1 + 2) * (n2 + 2))
    return _sent(level, planes, np.stack((works,) * 3), (1, 1), times)


def _handed(level: _Level, times: int) -> list[Edges]:
    n1, n2, n3 = level.inner + 2
    return _sent(level, (n2 * n3, n1 * n3, n1 * n2), level.gives, (2, 1), times)


def _sent(
    level: _Level,
    planes: tuple[Longs, ...],
    senders: Bools,
    depth: tuple[int, int],
    times: int,
) -> list[Edges]:
    """Return planes of doubles along each axis, `depth` of them to the rank after and to the rank before."""
    parts = []
    for axis in range(3):
        here = np.flatnonzero(senders[axis])
        for direction in range(2):
            size = DOUBLE * times * depth[direction] * planes[axis][here]
            parts.append(edges(here, level.there[axis, direction, here], size, times))
    return parts
