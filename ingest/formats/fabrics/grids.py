"""Links between neighbours of a mesh or torus with known positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

Position = tuple[int, ...]


class Step(NamedTuple):
    """A link of a grid: two positions, and True if it closes a ring."""

    a: Position
    b: Position
    wraps: bool


def grid_links(positions: Sequence[Position], sizes: Sequence[int], wrap: Sequence[bool]) -> Iterator[Step]:
    """Yield the links between neighbours along each axis, each once.

    A link exists if both positions exist. Along an axis that wraps, the last position is beside the first:
    with two positions there are two links between them, with one position none.

    Parameters
    ----------
    positions : sequence of tuple of int
        Different positions, each from 0 to `sizes` - 1.
    sizes : sequence of int
        Size of each axis.
    wrap : sequence of bool
        True for axes that close to rings.
    """
    there = set(positions)
    for position in positions:
        for axis, size in enumerate(sizes):
            beside = (position[axis] + 1) % size
            wraps = beside == 0
            if size == 1 or (wraps and not wrap[axis]):
                continue
            other = (*position[:axis], beside, *position[axis + 1 :])
            if other in there:
                yield Step(position, other, wraps)
