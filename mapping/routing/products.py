"""Recognition of grids: products of lines, rings and complete graphs, and coordinates of their vertices.

Tori and meshes are such products, and so are the graphs of applications: borders exchanged on a grid of ranks
(lines and rings), butterflies (lines of two), and all-to-all along the rows and columns of a grid (complete
graphs).

Two vertices on one line of a Cartesian product that are not neighbours, but have a common one, have just
that; across a corner they have two. In a complete graph all neighbours are neighbours of each other. So
lines are followed from one vertex, the other vertices are found square by square, and then every link is
checked.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache

import numpy as np

from registry.model import Longs

Near = Callable[[int], frozenset[int]]
"""Function that returns the neighbours of a vertex."""


def product_coordinates(vertices: int, links: Longs) -> Longs | None:
    """Return coordinates (int64[v, d]) in a product of lines, rings and complete graphs, or None.

    Coordinates follow lines and rings; in a complete graph the order is that of the numbers. A ring of four
    is the product of two lines of two. Axes are ordered so that vertices numbered row by row, the last axis
    fastest, keep their order, and the first vertex with the fewest links has coordinates zero.

    Other graphs take little time: the lines through one vertex must fit the number of vertices.

    Parameters
    ----------
    links : int64[l, 2]
        Pairs of different vertices, each pair once.
    """
    degree = np.bincount(links.reshape(-1), minlength=vertices)
    if vertices < 2 or int(degree.min()) == 0:
        return None
    near = _neighbours(vertices, links)
    lines = _lines(near, int(np.argmin(degree)), vertices)
    if int(np.prod([len(line) for line in lines], dtype=object)) != vertices:
        return None
    places = _fill(near, lines, vertices)
    return places if places is not None and _is_product(places, links) else None


def _neighbours(vertices: int, links: Longs) -> Near:
    ends = np.concatenate([links, links[:, ::-1]])
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    first = np.searchsorted(ends[:, 0], np.arange(vertices + 1)).tolist()

    @cache
    def near(vertex: int) -> frozenset[int]:
        return frozenset(ends[first[vertex] : first[vertex + 1], 1].tolist())

    return near


def _lines(near: Near, corner: int, vertices: int) -> list[list[int]]:
    """Return the vertices of each axis through a corner, the slowest axis first; no axes if it is no product.

    The next vertex of an axis is a neighbour of the one before.
    """
    left = sorted(near(corner))
    lines: list[list[int]] = []
    while left:
        second = left.pop(0)
        line, common = [corner, second], near(corner) & near(second)
        if len(common) > 1:  # all neighbours of each other
            line += sorted(common)
            left = [vertex for vertex in left if vertex not in common]
        else:
            while (onward := _straight(near, line[-2], line[-1])) not in (None, corner):
                assert onward is not None
                if len(line) >= vertices or onward in line:
                    return []  # the line ends in a loop
                line.append(onward)
            if onward == corner and line[-1] in left:
                left.remove(line[-1])
        lines.append(line)
    return sorted(lines, key=lambda line: -line[1])


def _straight(near: Near, before: int, vertex: int) -> int | None:
    """Return the vertex after `vertex` on the line from `before`: it shares no other neighbour with it."""
    for onward in sorted(near(vertex)):
        if onward != before and len(near(before) & near(onward)) == 1:
            return onward
    return None


def _fill(near: Near, lines: list[list[int]], vertices: int) -> Longs | None:
    """Return coordinates (int64[v, d]): each vertex is the fourth corner of a square; lines are given."""
    sizes = [len(line) for line in lines]
    vertex_at: dict[tuple[int, ...], int] = {}
    places = np.full((vertices, len(lines)), -1, np.int64)
    for place in itertools.product(*(range(size) for size in sizes)):
        away = [axis for axis, index in enumerate(place) if index]
        if len(away) < 2:
            vertex = lines[away[0]][place[away[0]]] if away else lines[0][0]
        else:
            a, b = (_before(place, axis) for axis in away[:2])
            last = vertex_at[_before(a, away[1])]
            corners = (near(vertex_at[a]) & near(vertex_at[b])) - {last}
            if len(corners) != 1:
                return None
            (vertex,) = corners
        vertex_at[place] = vertex
        places[vertex] = place
    return places if int(places.min()) >= 0 else None


def _before(place: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*place[:axis], place[axis] - 1, *place[axis + 1 :])


def _is_product(places: Longs, links: Longs) -> bool:
    """Return True if each link is along one axis, and all rows of an axis have the same links.

    All vertices have different coordinates, which fill a box.
    """
    sizes = places.max(axis=0) + 1
    one, other = np.minimum(*places[links.T]), np.maximum(*places[links.T])
    differs = one != other
    if not bool((differs.sum(axis=1) == 1).all()):
        return False
    axis, row = differs.argmax(axis=1), np.arange(len(links))
    link = (axis * sizes.max() + one[row, axis]) * sizes.max() + other[row, axis]
    first, count = np.unique(link, return_index=True, return_counts=True)[1:]
    axis, length = axis[first], (other - one).max(axis=1)[first]
    in_all_rows = bool((count == (len(places) // sizes)[axis]).all())
    return in_all_rows and all(_is_simple(length[axis == own], int(size)) for own, size in enumerate(sizes))


def _is_simple(length: Longs, size: int) -> bool:
    """Return True if links of these lengths form a line, a ring or a complete graph."""
    longer = length[length > 1]
    if len(longer) == 0 or len(length) == size * (size - 1) // 2:
        return True
    return len(length) == size and longer.tolist() == [size - 1]
