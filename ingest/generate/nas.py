"""Point-to-point traffic of the NAS Parallel Benchmarks BT, SP, CG and LU (MPI, version 3.3 and later).

Pairs and bytes follow the programs' own decompositions and message sizes; BT, SP and CG equal recordings of
real runs to the byte (tests/ingest/test_generate_nas.py). Collectives, of which there are few, are ignored.
"""

from __future__ import annotations

from math import isqrt

import numpy as np

from ingest.generate.checks import whole
from registry.errors import InvalidValue
from registry.model import Longs, Profile

DOUBLE = 8
SIZES = {"S": 12, "W": 24, "A": 64, "B": 102, "C": 162, "D": 408, "E": 1020}
"""Points along each side of the grid by problem class; BT, SP and LU differ for class W alone."""
CG_ROWS = {"S": 1400, "W": 7000, "A": 14000, "B": 75000, "C": 150000, "D": 1500000, "E": 9000000}
"""Rows of CG's matrix by problem class."""
CG_ITERATIONS = {"S": 15, "W": 15, "A": 15, "B": 75, "C": 75, "D": 100, "E": 100}
INNER = 25
"""Steps of the conjugate gradient method in an iteration of CG."""


def bt(ranks: int, *, points: int = SIZES["D"], steps: int = 250) -> Profile:
    """Return the profile of BT, a block-tridiagonal solver on ``q * q`` ranks, each with q cells of a grid.

    A rank sends to six others, the successor and predecessor along each dimension of a twisted torus. All
    six get the borders of a step (five variables, two layers, from all cells but the last or first of a
    line); successors get the blocks of the forward elimination, predecessors those of the substitution.

    Parameters
    ----------
    ranks : int
        A square.
    points : int
        Along each side of the grid; class D by default (`SIZES`).
    steps : int
        Time steps. The program does one more before it starts its clock, and computes the right-hand side
        once more to verify.

    Raises
    ------
    InvalidValue
    """
    cells = _Cells("bt", ranks, points)
    block = (points // cells.side + 1) ** 2 * (cells.side - 1)
    forward = np.full((3, ranks), 30 * block)
    return cells.profile("NAS BT", steps, forward, forward // 6)


def sp(ranks: int, *, points: int = SIZES["D"], steps: int = 500) -> Profile:
    """Return the profile of SP, a scalar penta-diagonal solver with the pairs of BT.

    Parameters
    ----------
    ranks, points, steps
        As for `bt`.
    """
    cells = _Cells("sp", ranks, points)
    return cells.profile("NAS SP", steps, 22 * cells.faces(inner=True), 10 * cells.faces(False, inner=True))


def cg(ranks: int, *, rows: int = CG_ROWS["D"], iterations: int = CG_ITERATIONS["D"]) -> Profile:
    """Return the profile of CG, conjugate gradients with a random matrix on an almost square grid of ranks.

    A rank exchanges its part of a vector with the ranks of its row whose column differs in one bit, and
    sends it to its partner across the grid's diagonal; a rank on the diagonal sends it to itself.

    Parameters
    ----------
    ranks : int
        A power of two.
    rows : int
        Of the matrix; class D by default (`CG_ROWS`).
    iterations : int
        Outer ones; the program does one more before it starts its clock.
    """
    whole("cg.ranks", ranks, 1)
    whole("cg.rows", rows, ranks)
    whole("cg.iterations", iterations, 1)
    if ranks & (ranks - 1):
        raise InvalidValue("cg.ranks", f"is {ranks}, must be a power of two")
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
    # Scalars: two dot products a step, one before, one after; the last message of an iteration holds two.
    scalars = DOUBLE * (iterations + 1) * (2 * INNER + 2 + 2)
    count = (iterations + 1) * (2 * INNER + 3) + products
    edges = [(me, swap, products * DOUBLE * part, np.full(ranks, products))]
    for bit in range(bits - bits // 2):
        sent = rest if bit == 0 else part
        partner = row * across + (column ^ 1 << bit)
        edges.append((me, partner, products * DOUBLE * sent + scalars, np.full(ranks, count)))
    source, target, size, messages = (np.concatenate(part) for part in zip(*edges, strict=True))
    return Profile.from_edges(
        source, target, size, ranks=ranks, messages=messages, name=f"cg-{ranks}", application="NAS CG"
    )


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

    Parameters
    ----------
    ranks : int
    points, steps
        As for `bt`.
    grid : (int, int), optional
        Ranks along x, which are numbered one after the other, and along y. Default: as in the program,
        powers of two, the first equal to the second or twice as large.
    with_start : bool
        Also the step that the program does before it starts its clock, and the borders it exchanges with it:
        with them all messages are those of a recording, but for at most two of some 200 bytes, with which
        it integrates over a surface in the end.
    """
    whole("lu.ranks", ranks, 1)
    if grid is None:
        if ranks & (ranks - 1):
            raise InvalidValue("lu.grid", f"{ranks} is no power of two: say which grid")
        bits = ranks.bit_length() - 1
        grid = 1 << bits - bits // 2, 1 << bits // 2
    wide, high = (whole("lu.grid", side, 1) for side in grid)
    if wide * high != ranks:
        raise InvalidValue("lu.grid", f"{wide} x {high} is not {ranks}")
    whole("lu.points", points, max(wide, high, 3))
    whole("lu.steps", steps, 1)
    me = np.arange(ranks)
    edges = []
    for axis, stride in ((0, 1), (1, wide)):
        place, side = (me % wide, wide) if axis == 0 else (me // wide, high)
        across, sides = (me // wide, high) if axis == 0 else (me % wide, wide)
        border = points // sides + (across < points % sides)
        inner = border - (across == 0) - (across == sides - 1)
        # Borders are also exchanged once before the steps, and for the residual after the last.
        sweeps, exchanges = (steps + 1, steps + 4) if with_start else (steps, steps + 1)
        size = DOUBLE * (5 * inner * (points - 2) * sweeps + 10 * border * points * exchanges)
        near = me[place < side - 1]
        edges += [(near, near + stride, size[near]), (near + stride, near, size[near])]
    source, target, sent = (np.concatenate(part) for part in zip(*edges, strict=True))
    return Profile.from_edges(
        source,
        target,
        sent,
        ranks=ranks,
        messages=np.full(len(source), (points - 2) * sweeps + exchanges),
        name=f"lu-{ranks}",
        application="NAS LU",
    )


class _Cells:
    """The multipartition of BT and SP: cell c of rank (i, j) stands at (i + c, j - c, c), modulo q."""

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
        """Return the points of faces with a cell behind them, along each dimension (int64[3, ranks]).

        `inner` leaves out points on the border of the whole grid.
        """
        last = self.side - 1
        length = self._length - (inner * ((self._place == 0).astype(int) + (self._place == last)))
        found = []
        for axis in range(3):
            face = np.prod(np.delete(length, axis, axis=0), axis=0)
            found.append((face * (self._place[axis] != (last if forward else 0))).sum(axis=0))
        return np.stack(found)

    def profile(self, application: str, steps: int, forward: Longs, backward: Longs) -> Profile:
        """Return all steps; `forward` and `backward` are doubles a rank sends along each dimension in one."""
        whole(f"{self._program}.steps", steps, 1)
        ahead = DOUBLE * (10 * self.faces() * (steps + 2) + forward * (steps + 1))
        back = DOUBLE * (10 * self.faces(False) * (steps + 2) + backward * (steps + 1))
        me = np.tile(np.arange(self.ranks), 6)
        return Profile.from_edges(
            me,
            np.r_[self._successor.ravel(), self._predecessor.ravel()],
            np.r_[ahead.ravel(), back.ravel()],
            ranks=self.ranks,
            messages=np.full(len(me), steps + 2 + (steps + 1) * (self.side - 1)),
            name=f"{self._program}-{self.ranks}",
            application=application,
        )


def _at(i: Longs, j: Longs, side: int) -> Longs:
    return i % side + j % side * side
