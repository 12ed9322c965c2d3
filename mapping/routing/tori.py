"""Dimension-order routing on tori and meshes: one axis after the other, each in the shorter direction.

If both directions around a ring of even size are equally short, the upward one is used. Sources: the example
in Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel architectures", 2011,
section 2.3; Dally and Towles, "Principles and Practices of Interconnection Networks", 2004, section 8.4.
Parallel cables are one link, shared in proportion to capacity.

Recognition of grids: products of lines, rings and complete graphs, and coordinates of their vertices.

Tori and meshes are such products, and so are the graphs of applications: borders exchanged on a grid of ranks
(lines and rings), butterflies (lines of two), and all-to-all along the rows and columns of a grid (complete
graphs).

Two vertices on one line of a Cartesian product that are not neighbours, but have a common one, have just
that; across a corner they have two. In a complete graph all neighbours are neighbours of each other. So
lines are followed from one vertex, the other vertices are found square by square, and then every link is
checked.

Recognition of tori and meshes, and coordinates of their vertices.

A torus or mesh is the Cartesian product of rings and lines (`mapping.routing.tori`).

A ring of four is the product of two lines of two. If a network has several of these, the pairing of lines
depends on the numbering; all pairings are equivalent except for the coordinates.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mapping.deadline import each
from mapping.routing.kernels import dimension_order as kernel
from mapping.routing.kernels.flows import ARCS, NO_ARC, FlowArrays, GraphArrays, follow_arcs
from mapping.routing.kernels.paths import HopArray
from mapping.routing.network import EndPoints, Network, arcs_with, attach, empty_flow_arrays, graph_arrays
from mapping.routing.routes import ALL_CONNECTED
from mapping.routing.shortest_paths import ShortestPaths
from registry.errors import InvalidValue
from registry.model import Bools, Fabric, Floats, Int8s, Ints, Longs

Near = Callable[[int], frozenset[int]]
"""Function that returns the neighbours of a vertex."""


def product_coordinates(vertices: int, links: Longs) -> Longs | None:
    """Return coordinates (int64[v, d]) in a product of lines, rings and complete graphs, or None.

    Coordinates follow lines and rings; in a complete graph the order is that of the numbers. A ring of four
    is the product of two lines of two. Axes are ordered so that vertices numbered row by row, the last axis
    fastest, keep their order, and the first vertex with the fewest links has coordinates zero.

    Other graphs take little time: the lines through one vertex must fit the number of vertices.

    Args:
        links (int64[l, 2]): Pairs of different vertices, each pair once.
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


class Torus(NamedTuple):
    """Coordinates in a torus or mesh."""

    coordinates: Ints
    """int32[n, d]: Coordinates of each vertex of the fabric; -1 if it does not forward."""
    sizes: Ints
    """int32[d]: Vertices along each axis, at least 2."""
    wraps: Bools
    """bool[d]: True if an axis is a ring (of at least 3), False for a line."""

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


AXES = "xyzabcdefghi"
"""Names of the axes in the option `order`."""
AT_ONCE = 256
"""Goals per piece of parallel work."""


def build(fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED, order: str = "") -> DimensionOrder:
    """Return routes by dimension order.

    The forwarding vertices must be a torus or mesh, and each port of a host attached to only one of them.

    Args:
        order: Axes by the letters of `AXES`, in the order of travel, such as ``zyx`` (default: the order of
            ``fabric.coordinates``, or the one that `torus_coordinates` finds).
    """
    torus = torus_coordinates(fabric)
    if torus is None:
        raise InvalidValue("dimension-order", "the fabric is neither a torus nor a mesh")
    names = AXES[: len(torus.sizes)]
    if sorted(order or names) != sorted(names):
        raise InvalidValue("dimension-order.order", f"{order!r} does not name each of {names!r} once")
    ends, network = attach(fabric, hosts)
    odd = ends.port_host[~network.arcs.forwards[network.port_vertex]]
    if len(odd):
        name = fabric.names[ends.hosts[odd[0]]]
        raise InvalidValue("dimension-order", f"host {name!r} is not attached to one vertex of the torus")
    axes = np.array([names.index(axis) for axis in order or names], np.int32)
    return DimensionOrder(fabric, ends, network, rails, torus, axes)


class DimensionOrder(ShortestPaths):
    """Routes by dimension order; each pair has one shortest path."""

    name = "dimension-order"

    def __init__(
        self, fabric: Fabric, ends: EndPoints, network: Network, rails: str, torus: Torus, axes: Ints
    ) -> None:
        super().__init__(fabric, ends, network, rails)
        self._place: Ints = torus.coordinates[fabric.forwards]  # of the network's vertices
        self._torus = torus
        self._axes = axes

    @cached_property
    def _hops(self) -> HopArray:
        hops = np.empty((len(self._vertex),) * 2, np.int16)

        def fill(first: int) -> None:
            rows = slice(first, first + AT_ONCE)
            sizes, wraps = self._torus.sizes, self._torus.wraps
            kernel.fill_distances(self._place, sizes, wraps, self._vertex[rows], self._vertex, hops[rows])

        each(fill, range(0, len(hops), AT_ONCE))
        return hops.astype(np.int8) if int(hops.max(initial=0)) <= 127 else hops

    @cached_property
    def _next_arc(self) -> Int8s:
        """Arc to follow from every vertex to the vertex of each row (uint8[k, v])."""
        found = np.empty((len(self._vertex), len(self._place)), np.uint8)
        torus, step_arc = self._torus, self._step_arc()

        def fill(first: int) -> None:
            rows = slice(first, first + AT_ONCE)
            kernel.fill_next_arcs(
                self._place, torus.sizes, torus.wraps, self._axes, step_arc, self._vertex[rows], found[rows]
            )

        each(fill, range(0, len(found), AT_ONCE))
        return found

    def _step_arc(self) -> Int8s:
        """Return the arc of each step (uint8[v, d, 2]), counted from the vertex's first arc."""
        arcs, place, sizes = self._network.arcs, self._place.astype(np.int64), self._torus.sizes
        tail = np.repeat(np.arange(len(arcs.forwards)), np.diff(arcs.out_ptr))
        step = place[arcs.head] - place[tail]
        axis = np.abs(step).argmax(axis=1)
        length = step[np.arange(len(step)), axis]
        up = (length == 1) | (length < -1)  # from the last vertex of a ring to its first
        step_arc = np.zeros((len(arcs.forwards), len(sizes), 2), np.uint8)
        step_arc[tail, axis, up.astype(int)] = np.arange(len(tail)) - arcs.out_ptr[tail]
        return step_arc

    def _carry(self, row: Ints, target: Ints, amount: Floats) -> tuple[Floats, Ints]:
        arc_load, hops = np.zeros(len(self._network.arcs.head)), np.empty(len(row), np.int32)
        follow_arcs(self._graph, row, target, amount, arc_load, hops)
        return self._on_links(arc_load), hops

    def _part_on(self, row: Ints, target: Ints, link: int) -> Floats:
        arcs, share = arcs_with(self._network.cables, link)
        over = np.zeros(len(self._network.arcs.head))
        over[arcs] = share
        return fraction_along_arcs(self._graph, over, row, target)

    def _flows(self) -> FlowArrays:
        links = len(self.fabric.links)
        flows = empty_flow_arrays(ARCS, links, links, self.max_channels, self._arrays, self._hops)
        return flows._replace(graph=self._graph)

    @cached_property
    def _graph(self) -> GraphArrays:
        none = np.zeros((0, 0), self._hops.dtype)
        return graph_arrays(self._network, self._vertex, hops_to=none, next_arc=self._next_arc)


def fraction_along_arcs(graph: GraphArrays, over: Floats, row: Ints, target: Ints) -> Floats:
    """Return the fraction (float64[d]) of each demand that crosses a link, with one arc to follow per vertex.

    Args:
        over (float64[arcs]): Fraction of each arc's bytes on the link.
        row, target (int32[d]): Indices into ``graph.vertex`` and ``graph.next_arc``.
    """
    fraction, vertex = np.zeros(len(row)), graph.vertex[row].astype(np.int64)
    walking = np.arange(len(row))
    while len(walking):
        onward = graph.next_arc[target[walking], vertex[walking]]
        walking, onward = walking[onward != NO_ARC], onward[onward != NO_ARC]
        arc = graph.arc_ptr[vertex[walking]] + onward
        fraction[walking] += over[arc]
        vertex[walking] = graph.arc_head[arc]
    return fraction
