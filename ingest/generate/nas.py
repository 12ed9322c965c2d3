"""Traffic of the NAS Parallel Benchmarks (MPI, version 3.3 and later).

Pairs and bytes follow the programs' own decompositions and message sizes; BT, SP and CG equal recordings of
real runs to the byte (tests/ingest/test_generate_profiles.py). The few collectives of BT, SP, CG and
LU are ignored. FT, IS and EP consist of collectives: all-to-alls are sent pair by pair, all-reduces by
recursive doubling, as Open MPI does at the sizes of these programs; FT and EP equal recordings except for a
few bytes at their start and end. If a docstring does not say otherwise, the defaults are those of class D.
"""

from __future__ import annotations

from math import isqrt
from typing import NamedTuple

import numpy as np

from ingest.generate.checks import power_of_two, whole
from ingest.generate.collectives import Algorithm, Edges, edges, expand, joined
from registry.errors import InvalidValue
from registry.model import Bools, Longs, Profile

DOUBLE, INTEGER, COMPLEX = 8, 4, 16
SIZES = {"S": 12, "W": 24, "A": 64, "B": 102, "C": 162, "D": 408, "E": 1020}
"""Number of points along each side of the grid, by problem class; BT, SP and LU differ only for class W."""
CG_ROWS = {"S": 1400, "W": 7000, "A": 14000, "B": 75000, "C": 150000, "D": 1500000, "E": 9000000}
"""Number of rows of CG's matrix, by problem class."""
CG_ITERATIONS = {"S": 15, "W": 15, "A": 15, "B": 75, "C": 75, "D": 100, "E": 100}
INNER = 25
"""Number of steps of the conjugate gradient method in an iteration of CG."""
FT_POINTS = {
    "S": (64, 64, 64), "W": (128, 128, 32), "A": (256, 256, 128), "B": (512, 256, 256),
    "C": (512, 512, 512), "D": (2048, 1024, 1024), "E": (4096, 2048, 2048),
}  # fmt: skip
"""Number of points along x, y, z, by problem class."""
FT_STEPS = {"S": 6, "W": 6, "A": 6, "B": 20, "C": 20, "D": 25, "E": 25}
IS_KEYS = {"S": 1 << 16, "W": 1 << 20, "A": 1 << 23, "B": 1 << 25, "C": 1 << 27, "D": 1 << 31}
IS_BUCKETS, IS_TESTS = 1024, 5
EP_BYTES, EP_REDUCTIONS = 13 * DOUBLE, 4
"""Two sums, ten counts and a time."""
_DOUBLING: Algorithm = "recursive-doubling"


def bt(ranks: int, *, points: int = SIZES["D"], steps: int = 250) -> Profile:
    """Return the profile of BT, a block-tridiagonal solver on ``q * q`` ranks, each with q cells of a grid.

    A rank sends to six others, the successor and predecessor along each dimension of a twisted torus. All
    six get the borders of a step (five variables, two layers, from all cells except the last or first of a
    line); successors get the blocks of the forward elimination, predecessors those of the substitution.

    Args:
        ranks: Number of ranks, a square.
        points: Number of points along each side of the grid.
        steps: Number of time steps. The program does one more before it starts its clock, and computes the
            right-hand side once more to verify.
    """
    cells = _Cells("bt", ranks, points)
    block = (points // cells.side + 1) ** 2 * (cells.side - 1)
    forward = np.full((3, ranks), 30 * block)
    return cells.profile("NAS BT", steps, forward, forward // 6)


def sp(ranks: int, *, points: int = SIZES["D"], steps: int = 500) -> Profile:
    """Return the profile of SP, a scalar penta-diagonal solver with the pairs of BT.

    Args:
        ranks: Number of ranks, a square.
        points: Number of points along each side of the grid.
    """
    cells = _Cells("sp", ranks, points)
    return cells.profile("NAS SP", steps, 22 * cells.faces(inner=True), 10 * cells.faces(False, inner=True))


def cg(ranks: int, *, rows: int = CG_ROWS["D"], iterations: int = CG_ITERATIONS["D"]) -> Profile:
    """Return the profile of CG, conjugate gradients with a random matrix on an almost square grid of ranks.

    A rank exchanges its part of a vector with the ranks of its row whose column differs in one bit, and
    sends it to its partner across the grid's diagonal; a rank on the diagonal sends it to itself.

    Args:
        ranks: Number of ranks, a power of two.
        rows: Number of rows of the matrix.
        iterations: Number of outer iterations; the program does one more before it starts its clock.
    """
    whole("cg.ranks", ranks, 1)
    whole("cg.rows", rows, ranks)
    whole("cg.iterations", iterations, 1)
    power_of_two("cg.ranks", ranks)
    bits = ranks.bit_length() - 1
    down = 1 << bits // 2
    across = ranks // down
    me = np.arange(ranks)
    row, column = me // across, me % across
    strip = rows // down + (row < rows % down)
    part, rest = (strip, strip) if down == across else ((strip + 1 - me % 2) // 2, (strip + me % 2) // 2)
    half = me // 2
    swap = me % down * down + row if down == across else 2 * (half % down * down + half // down) + me % 2
    products = (iterations + 1) * (INNER + 1)
    # Two dot products per step, one before and one after; the last message of an iteration has two scalars.
    scalars = DOUBLE * (iterations + 1) * (2 * INNER + 2 + 2)
    count = (iterations + 1) * (2 * INNER + 3) + products
    parts = [edges(me, swap, products * DOUBLE * part, products)]
    for bit in range(bits - bits // 2):
        sent = rest if bit == 0 else part
        partner = row * across + (column ^ 1 << bit)
        parts.append(edges(me, partner, products * DOUBLE * sent + scalars, count))
    return joined(*parts).profile(ranks, f"cg-{ranks}", "NAS CG")


def lu(
    ranks: int,
    *,
    points: int = SIZES["D"],
    steps: int = 300,
    grid: tuple[int, int] | None = None,
    with_start: bool = False,
) -> Profile:
    """Return the profile of LU, symmetric successive over-relaxation on a grid of ranks that is not periodic.

    Every step sends, plane by plane, five variables of the rows of points along a border: south and east in
    the lower sweep, north and west in the upper one; and then two layers of each border to all sides.

    Args:
        points: Number of points along each side of the grid.
        grid: Number of ranks along x, which are numbered first, and along y; default: as in the program,
            powers of two, the first equal to the second or twice as large.
        with_start: Whether to include the step that the program does before it starts its clock, with its
            borders. Then all messages are those of a recording except for at most two of some 200 bytes, with
            which the program integrates over a surface at the end.
    """
    whole("lu.ranks", ranks, 1)
    if grid is None:
        if ranks & (ranks - 1):
            raise InvalidValue("lu.grid", f"{ranks} is no power of two: give the grid")
        bits = ranks.bit_length() - 1
        grid = 1 << bits - bits // 2, 1 << bits // 2
    wide, high = (whole("lu.grid", side, 1) for side in grid)
    if wide * high != ranks:
        raise InvalidValue("lu.grid", f"{wide} x {high} is not {ranks}")
    whole("lu.points", points, max(wide, high, 3))
    whole("lu.steps", steps, 1)
    me = np.arange(ranks)
    parts = []
    for axis, stride in ((0, 1), (1, wide)):
        place, side = (me % wide, wide) if axis == 0 else (me // wide, high)
        across, sides = (me // wide, high) if axis == 0 else (me % wide, wide)
        border = points // sides + (across < points % sides)
        inner = border - (across == 0) - (across == sides - 1)
        # Borders are also exchanged once before the steps, and for the residual after the last step.
        sweeps, exchanges = (steps + 1, steps + 4) if with_start else (steps, steps + 1)
        size = DOUBLE * (5 * inner * (points - 2) * sweeps + 10 * border * points * exchanges)
        near = me[place < side - 1]
        count = (points - 2) * sweeps + exchanges
        parts.append(edges(near, near + stride, size[near], count))
        parts.append(edges(near + stride, near, size[near], count))
    return joined(*parts).profile(ranks, f"lu-{ranks}", "NAS LU")


def ft(ranks: int, *, points: tuple[int, int, int] = FT_POINTS["D"], steps: int = FT_STEPS["D"]) -> Profile:
    """Return the profile of FT, Fourier transforms in three dimensions, each a transposition by all-to-all.

    Up to as many ranks as points along z, all ranks exchange with all. More ranks form rows of ``ranks / z``
    neighbours and columns of z, and each transform has an all-to-all in both.

    Args:
        ranks: Number of ranks, a power of two.
        points: Number of points along x, y and z.
        steps: Number of time steps; two more transforms are done before.
    """
    whole("ft.ranks", ranks, 1)
    x, y, z = (whole("ft.points", count, 1) for count in points)
    times = whole("ft.steps", steps, 1) + 2
    if ranks & (ranks - 1) or (ranks > z and ranks % z):
        raise InvalidValue("ft.ranks", f"is {ranks}, must be a power of two and fit the {z} points along z")
    own = COMPLEX * x * y * z / ranks
    me = np.arange(ranks)
    if ranks <= z:
        groups = [me[None, :]]
    else:
        across = ranks // z
        groups = [me.reshape(-1, across), me.reshape(-1, across).T]
    parts = [expand("all-to-all", group, own).repeated(times) for group in groups if group.shape[1] > 1]
    return joined(*parts).profile(ranks, f"ft-{ranks}", "NAS FT")


def integer_sort(ranks: int, *, keys: int = IS_KEYS["D"], iterations: int = 10) -> Profile:
    """Return the profile of IS: iterations sum the sizes of buckets and send every key to its bucket's rank.

    Keys are distributed evenly here; those of the program are sums of four random numbers, so that the bytes
    of a pair differ by chance, but not their sum.

    Args:
        ranks: Number of ranks, a power of two.
        keys: Number of keys in all.
        iterations: Number of iterations; the program does one more before it starts its clock.
    """
    whole("is.ranks", ranks, 1)
    whole("is.keys", keys, ranks, 1 << 40)
    times = whole("is.iterations", iterations, 1) + 1
    power_of_two("is.ranks", ranks)
    me = np.arange(ranks)
    sizes = expand("all-reduce", me, INTEGER * (IS_BUCKETS + IS_TESTS), algorithm=_DOUBLING)
    counts = expand("all-to-all", me, INTEGER * ranks)
    moved = expand("all-to-all", me, INTEGER * keys / ranks)
    checked = edges(me[:-1], me[1:], INTEGER)
    sent = joined(sizes.repeated(times), counts.repeated(times), moved.repeated(times), checked)
    return sent.profile(ranks, f"is-{ranks}", "NAS IS")


def ep(ranks: int) -> Profile:
    """Return the profile of EP, random numbers and four reductions of 104 bytes in all at the end."""
    whole("ep.ranks", ranks, 1)
    sent = expand("all-reduce", np.arange(ranks), EP_BYTES, algorithm=_DOUBLING)
    return sent._replace(messages=sent.messages * EP_REDUCTIONS).profile(ranks, f"ep-{ranks}", "NAS EP")


class _Cells:
    """The multipartition of BT and SP: cell c of rank (i, j) is at (i + c, j - c, c), modulo q."""

    def __init__(self, program: str, ranks: int, points: int) -> None:
        self.ranks = whole(f"{program}.ranks", ranks, 1)
        self.side = isqrt(ranks)
        if self.side**2 != ranks:
            raise InvalidValue(f"{program}.ranks", f"is {ranks}, must be a square")
        whole(f"{program}.points", points, self.side)
        self._program = program
        i, j = np.arange(ranks) % self.side, np.arange(ranks) // self.side
        cell = np.arange(self.side)[:, None]
        self._place = np.stack(np.broadcast_arrays((i + cell) % self.side, (j - cell) % self.side, cell))
        self._length = points // self.side + (self._place < points % self.side)
        self._successor = np.stack(
            (_at(i + 1, j, self.side), _at(i, j + 1, self.side), _at(i - 1, j + 1, self.side))
        )
        self._predecessor = np.stack(
            (_at(i - 1, j, self.side), _at(i, j - 1, self.side), _at(i + 1, j - 1, self.side))
        )

    def faces(self, forward: bool = True, *, inner: bool = False) -> Longs:
        """Return the number of points of faces with a cell behind them, by dimension (int64[3, ranks]).

        `inner` excludes points on the border of the whole grid.
        """
        last = self.side - 1
        length = self._length - (inner * ((self._place == 0).astype(int) + (self._place == last)))
        found = []
        for axis in range(3):
            face = np.prod(np.delete(length, axis, axis=0), axis=0)
            found.append((face * (self._place[axis] != (last if forward else 0))).sum(axis=0))
        return np.stack(found)

    def profile(self, application: str, steps: int, forward: Longs, backward: Longs) -> Profile:
        """Return the profile; `forward` and `backward` are doubles per step, dimension and rank."""
        whole(f"{self._program}.steps", steps, 1)
        ahead = DOUBLE * (10 * self.faces() * (steps + 2) + forward * (steps + 1))
        back = DOUBLE * (10 * self.faces(False) * (steps + 2) + backward * (steps + 1))
        me = np.arange(self.ranks)
        messages = steps + 2 + (steps + 1) * (self.side - 1)
        parts = (self._successor, ahead), (self._predecessor, back)
        sent = joined(*(edges(me, others, size, messages) for others, size in parts))
        return sent.profile(self.ranks, f"{self._program}-{self.ranks}", application)


def _at(i: Longs, j: Longs, side: int) -> Longs:
    return i % side + j % side * side


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

    Args:
        ranks: Number of ranks, a power of two.
        points: Number of points along each side of the cube, a power of two; default: class D.
        cycles: Number of V-cycles; the program does one more before it starts its clock.
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
