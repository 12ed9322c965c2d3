"""Recognition of tori and meshes, and coordinates of their vertices.

A torus or mesh is the Cartesian product of rings and lines (`mapping.routing.products`).

A ring of four is the product of two lines of two. If a network has several of these, the pairing of lines
depends on the numbering; all pairings are equivalent except for the coordinates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.routing.products import product_coordinates
from registry.model import Bools, Fabric, Ints, Longs


class Torus(NamedTuple):
    """Coordinates in a torus or mesh.

    Attributes
    ----------
    coordinates : int32[n, d]
        Coordinates of each vertex of the fabric; -1 if it does not forward.
    sizes : int32[d]
        Vertices along each axis, at least 2.
    wraps : bool[d]
        True if an axis is a ring (of at least 3), False for a line.
    """

    coordinates: Ints
    sizes: Ints
    wraps: Bools

    def of_hosts(self, fabric: Fabric, hosts: Ints) -> Ints:
        """Return int32[h, d]: the coordinates of hosts (vertices), or of the lowest switch of each."""
        switch = np.where(fabric.forwards[fabric.neighbour], fabric.neighbour, len(fabric))
        lowest = np.full(len(fabric), len(fabric))
        np.minimum.at(lowest, np.repeat(np.arange(len(fabric)), np.diff(fabric.indptr)), switch)
        at = np.where(fabric.forwards[hosts], hosts, np.minimum(lowest[hosts], len(fabric) - 1))
        return self.coordinates[at]


def torus_coordinates(fabric: Fabric) -> Torus | None:
    """Return the coordinates of the forwarding vertices if their links form a torus or mesh, else None.

    ``fabric.coordinates`` are used if they fit the links; otherwise coordinates are found from the links.
    Then axes are ordered so that vertices numbered row by row, the last axis fastest, keep their order, and
    the first vertex with the fewest links has coordinates zero.
    """
    forwards = np.flatnonzero(fabric.forwards)
    if fabric.coordinates is None and _too_many_links(fabric, len(forwards)):
        return None
    links = _links_between(fabric)
    if fabric.coordinates is not None:
        given = _product(fabric.coordinates[forwards].astype(np.int64), links)
        if given is not None:
            return _on_fabric(fabric, *given)
    places = product_coordinates(len(forwards), links)
    found = None if places is None else _product(_with_rings_of_four(places), links)
    return None if found is None else _on_fabric(fabric, *found)


def _links_between(fabric: Fabric) -> Longs:
    """Return the pairs of forwarding vertices (int64[l, 2]), numbered among these, that are linked."""
    number = np.cumsum(fabric.forwards) - 1
    rows = fabric.network_link
    ends = np.stack((number[fabric.links.source[rows]], number[fabric.links.target[rows]]), axis=1)
    ends = np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1)
    pairs = np.unique(ends[:, 0] * len(number) + ends[:, 1])
    return np.stack((pairs // len(number), pairs % len(number)), axis=1).astype(np.int64)


def _too_many_links(fabric: Fabric, vertices: int) -> bool:
    """Return True if a vertex has more neighbours than possible in a torus: two per ring of three."""
    inner = np.r_[0, np.cumsum(fabric.forwards[fabric.neighbour])][fabric.indptr]
    return bool(np.diff(inner)[fabric.forwards].max(initial=0) > 2 * np.log2(max(vertices, 2)))


def _on_fabric(fabric: Fabric, places: Longs, sizes: Longs, wraps: Bools) -> Torus:
    """Return a `Torus` from the coordinates of the forwarding vertices."""
    coordinates = np.full((len(fabric), len(sizes)), -1, np.int32)
    coordinates[fabric.forwards] = places
    return Torus(coordinates, sizes.astype(np.int32), wraps)


def _product(places: Longs, links: Longs) -> tuple[Longs, Longs, Bools] | None:
    """Return coordinates, sizes and rings if the links are exactly those of a torus or mesh, else None."""
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


def _with_rings_of_four(places: Longs) -> Longs:
    """Return coordinates with each two axes of size two, the fastest first, as one ring of four vertices."""
    twos = np.flatnonzero(places.max(axis=0) == 1)[::-1]
    places = places.copy()
    for a, b in zip(twos[:-1:2], twos[1::2], strict=True):
        places[:, a] += places[:, b] * (3 - 2 * places[:, a])
        places[:, b] = 0
    return places
