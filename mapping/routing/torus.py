"""Tori and meshes: whether a network is one, and where its vertices are.

A torus or mesh is the Cartesian product of circles and lines. Along a line of a product, a vertex and the
next but one have one neighbour in common; across a corner they have two. So lines are followed from one
vertex, and the rest is filled in square by square; then every link is checked.

A circle of four is the product of two lines of two: where a network has several of these, which are taken
together is a matter of numbering, and all ways are alike but for the names of places.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from registry.model import Bools, Fabric, Ints, Longs


class Torus(NamedTuple):
    """Places in a torus or mesh.

    Attributes
    ----------
    coordinates : int32[n, d]
        Of each vertex of the fabric; -1 for those that do not forward.
    sizes : int32[d]
        Vertices along each axis, at least 2.
    wraps : bool[d]
        Whether an axis is a circle, of at least 3, and not a line.
    """

    coordinates: Ints
    sizes: Ints
    wraps: Bools


def torus_coordinates(fabric: Fabric) -> Torus | None:
    """Places of the vertices that forward, where these and their links are a torus or mesh; else None.

    ``fabric.coordinates`` are taken where they fit; otherwise places are found from the links. Then axes
    are ordered so that vertices numbered row by row, the last axis fastest, keep their order, and the
    first vertex of fewest links is at zero.
    """
    forwards = np.flatnonzero(fabric.forwards)
    if fabric.coordinates is None and _too_many_links(fabric, len(forwards)):
        return None
    links = _links_between(fabric)
    if fabric.coordinates is not None:
        given = _product(fabric.coordinates[forwards].astype(np.int64), links)
        if given is not None:
            return _on_fabric(fabric, *given)
    found = _recognise(len(forwards), links)
    return None if found is None else _on_fabric(fabric, *found)


def _links_between(fabric: Fabric) -> Longs:
    """int64[l, 2]: pairs of forwarding vertices, by number among these, that are joined either way."""
    number = np.cumsum(fabric.forwards) - 1
    rows = fabric.network_link
    ends = np.stack((number[fabric.links.source[rows]], number[fabric.links.target[rows]]), axis=1)
    ends = np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1)
    pairs = np.unique(ends[:, 0] * len(number) + ends[:, 1])
    return np.stack((pairs // len(number), pairs % len(number)), axis=1).astype(np.int64)


def _too_many_links(fabric: Fabric, vertices: int) -> bool:
    """Whether a vertex has more neighbours than any in a torus of so many vertices: two a circle of three."""
    inner = np.r_[0, np.cumsum(fabric.forwards[fabric.neighbour])][fabric.indptr]
    return bool(np.diff(inner)[fabric.forwards].max(initial=0) > 2 * np.log2(max(vertices, 2)))


def _on_fabric(fabric: Fabric, places: Longs, sizes: Longs, wraps: Bools) -> Torus:
    coordinates = np.full((len(fabric), len(sizes)), -1, np.int32)
    coordinates[fabric.forwards] = places
    return Torus(coordinates, sizes.astype(np.int32), wraps)


def _product(places: Longs, links: Longs) -> tuple[Longs, Longs, Bools] | None:
    """The places with sizes and circles, if the links are exactly those of a torus or mesh on them."""
    if not len(places) or places.shape[1] == 0:
        return None
    places = places - places.min(axis=0)
    used = places.max(axis=0) > 0
    places = places[:, used]
    sizes = places.max(axis=0) + 1
    if not len(sizes) or int(np.prod(sizes.astype(object))) != len(places):
        return None
    if len(np.unique(np.ravel_multi_index(tuple(places.T), tuple(sizes)))) != len(places):
        return None
    step = np.abs(places[links[:, 0]] - places[links[:, 1]])
    axis, length = step.argmax(axis=1), step.max(axis=1, initial=0)
    around = (length == sizes[axis] - 1) & (length > 1)
    if not bool(((step > 0).sum(axis=1) == 1).all() and ((length == 1) | around).all()):
        return None
    rows = len(places) // sizes
    lines = np.bincount(axis[~around], minlength=len(sizes))
    circles = np.bincount(axis[around], minlength=len(sizes))
    if not bool((lines == rows * (sizes - 1)).all() and ((circles == rows) | (circles == 0)).all()):
        return None
    return places, sizes, circles > 0


def _recognise(vertices: int, links: Longs) -> tuple[Longs, Longs, Bools] | None:
    degree = np.bincount(links.reshape(-1), minlength=vertices)
    if vertices < 2 or int(degree.min()) == 0:
        return None
    near: list[set[int]] = [set() for _ in range(vertices)]
    for a, b in links.tolist():
        near[a].add(b)
        near[b].add(a)
    lines = _lines(near, int(np.argmin(degree)))
    if int(np.prod([len(line) for line in lines], dtype=object)) != vertices:
        return None
    places = _fill(near, lines)
    return None if places is None else _product(places, links)


def _lines(near: list[set[int]], corner: int) -> list[list[int]]:
    """The line of each axis from a corner, the slowest axis first."""
    left = sorted(near[corner])
    lines: list[list[int]] = []
    pairs: list[list[int]] = []
    while left:
        line = [corner, left.pop(0)]
        while (onward := _straight(near, line[-2], line[-1])) not in (None, corner):
            assert onward is not None
            if len(line) >= len(near) or onward in line:
                return []  # no product: a line that ends in a loop
            line.append(onward)
        if onward == corner and line[-1] in left:
            left.remove(line[-1])
        (lines if len(line) > 2 else pairs).append(line)
    while len(pairs) > 1:
        (_, a), (_, b) = pairs.pop(0), pairs.pop(0)
        across = sorted((near[a] & near[b]) - {corner})
        if not across:
            return []
        lines.append([corner, a, across[0], b])
    return sorted(lines + pairs, key=lambda line: -line[1])


def _straight(near: list[set[int]], before: int, at: int) -> int | None:
    """The vertex after `at` on the line that comes from `before`: they have no other neighbour in common."""
    for onward in sorted(near[at]):
        if onward != before and len(near[before] & near[onward]) == 1:
            return onward
    return None


def _fill(near: list[set[int]], lines: list[list[int]]) -> Longs | None:
    """int64[v, d]: places by the fourth corner of squares, from the lines along the axes."""
    sizes = [len(line) for line in lines]
    vertex_at: dict[tuple[int, ...], int] = {}
    places = np.full((len(near), len(lines)), -1, np.int64)
    for place in itertools.product(*(range(size) for size in sizes)):
        away = [axis for axis, at in enumerate(place) if at]
        if len(away) < 2:
            vertex = lines[away[0]][place[away[0]]] if away else lines[0][0]
        else:
            a, b = (_before(place, axis) for axis in away[:2])
            last = vertex_at[_before(a, away[1])]
            corners = (near[vertex_at[a]] & near[vertex_at[b]]) - {last}
            if len(corners) != 1:
                return None
            vertex = corners.pop()
        vertex_at[place] = vertex
        places[vertex] = place
    return places if int(places.min()) >= 0 else None


def _before(place: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*place[:axis], place[axis] - 1, *place[axis + 1 :])
