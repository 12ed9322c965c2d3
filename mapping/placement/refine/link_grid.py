"""Numbering of links for congestion searches: both directions adjacent, links with proportional loads as one.

A cell is a directed link; cell ``c ^ 1`` is the opposite direction. Links whose loads are proportional in
every placement (an edge switch's cables to interchangeable switches above) are one cell with the capacity of
the tightest. On a torus cells are numbered by vertex and direction, so that routes can be shifted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from mapping.placement.kernels.pair_routes import Shifts
from mapping.placement.problem.problem import Problem
from mapping.routing.kernels.flows import FlowArrays
from mapping.routing.shortest_paths import ShortestPaths
from mapping.routing.torus import Torus, torus_coordinates
from registry.model import Bools, Fabric, Floats, Ints, Longs

MOST_MERGED = 640
"""Most attachments for which proportional loads are searched, which routes all their pairs."""
SAME = 1e-9
"""Ratios of loads closer than this, relatively, are equal."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LinkGrid:
    """Numbering of a problem's links.

    Attributes
    ----------
    of_link : int32[m]
        Cell of each row of ``fabric.links``; -1 if the cell of another link represents both.
    capacity, background : float64[c]
        Bytes/s, and bytes of other jobs; 1 and 0 if no link has the cell.
    network : bool[c]
        True unless the cell is a host's own cable.
    both_ways : bool
        True if routes of opposite directions are the same, reversed.
    shifts : Shifts
    """

    of_link: Ints
    capacity: Floats
    background: Floats
    network: Bools
    both_ways: bool
    shifts: Shifts

    def __len__(self) -> int:
        return len(self.capacity)

    def only(self, cables: Longs, of_link: Ints) -> LinkGrid:
        """Return the grid of some cables (pairs of cells) in another order.

        Parameters
        ----------
        of_link : int32[m]
            New cell of each link.
        """
        kept = (2 * cables[:, None] + np.arange(2)).reshape(-1)
        return replace(
            self,
            of_link=of_link,
            capacity=self.capacity[kept],
            background=self.background[kept],
            network=self.network[kept],
        )


def build_link_grid(problem: Problem, *, merge: bool = True) -> LinkGrid:
    """Number the links of a problem.

    Parameters
    ----------
    merge : bool
        True: links with proportional loads are one cell, and links without load have none; False: every
        link has its own cell.
    """
    routes, flows = problem.routes, problem.routes.flows
    mirror = _mirror(routes.fabric) if isinstance(routes, ShortestPaths) and by_attachment(flows) else None
    if mirror is None:
        return _numbered(problem, 2 * np.arange(len(routes.fabric.links)), both_ways=False)
    shifted = _on_torus(problem)
    if shifted is not None:
        return shifted
    keep = _one_of_proportional(problem, mirror) if merge else np.ones(len(mirror), np.bool_)
    cable = np.minimum(np.arange(len(mirror)), mirror)
    cable, place = np.unique(cable[keep], return_inverse=True)
    cell = np.full(len(mirror), -1)
    cell[keep] = 2 * place + (np.flatnonzero(keep) > mirror[keep])
    return _numbered(problem, cell, both_ways=True)


def by_attachment(flows: FlowArrays) -> bool:
    """Return True if every host has one channel to every other, so that routes are stored by attachment."""
    ports = flows.ends.port_ptr[flows.ends.rail_ptr]
    targets = flows.ends.target_ptr[ports]
    return bool((np.diff(ports) == 1).all() and (np.diff(targets) == 1).all())


def no_shifts() -> Shifts:
    """Return the empty shifts of networks other than tori."""
    none = np.zeros((3, 1, 1), np.int64)
    place = np.zeros((1, 3), np.int64)
    return Shifts(False, place, none, none, none.astype(np.uint32), place, 1, np.zeros(1, np.int64))


def _numbered(
    problem: Problem, cell: Longs, *, both_ways: bool, shifts: Shifts | None = None, grid: int = 0
) -> LinkGrid:
    """Return the grid for a cell number per link."""
    rows = np.flatnonzero(cell >= 0)
    grid = max(grid, 2 * (int(cell.max(initial=-1)) // 2 + 1))
    capacity, background, network = np.ones(grid), np.zeros(grid), np.zeros(grid, np.bool_)
    capacity[cell[rows]] = problem.link_capacity[rows]
    background[cell[rows]] = problem.link_background[rows]
    network[cell[rows]] = problem.routes.fabric.network_link[rows]
    return LinkGrid(
        of_link=cell.astype(np.int32),
        capacity=capacity,
        background=background,
        network=network,
        both_ways=both_ways,
        shifts=no_shifts() if shifts is None else shifts,
    )


def _mirror(fabric: Fabric) -> Longs | None:
    """Return int64[m]: the link of the same capacity in the opposite direction; None if one has none."""
    links = fabric.links
    there = np.lexsort((links.capacity, links.target, links.source))
    back = np.lexsort((links.capacity, links.source, links.target))
    same = (
        np.array_equal(links.source[there], links.target[back])
        and np.array_equal(links.target[there], links.source[back])
        and np.array_equal(links.capacity[there], links.capacity[back])
    )
    if not same:
        return None
    mirror = np.empty(len(links), np.int64)
    mirror[there] = back
    return mirror


def _one_of_proportional(problem: Problem, mirror: Longs) -> Bools:
    """Return bool[m]: of links that always need the same time, the first and its opposite direction.

    The loads of all pairs of attachments with random bytes are proportional, up to rounding, only if those of
    every pair are: a coincidence has probability zero.
    """
    everything, routes = np.ones(len(mirror), np.bool_), problem.routes
    _, host = np.unique(routes.flows.ends.port_row, return_index=True)
    attached = len(routes.flows.ends.up_link) > 0
    if not attached or len(host) > MOST_MERGED or bool(problem.link_background.any()):
        return everything
    source, target = np.repeat(host, len(host)), np.tile(host, len(host))
    apart = source != target
    source, target = source[apart], target[apart]
    random = np.random.default_rng(0)
    seconds = [
        routes.link_bytes(source, target, 0.5 + random.random(len(source))) / problem.link_capacity
        for _ in range(2)
    ]
    label = _equal_rows(np.stack(seconds, axis=1))
    label = _pair_labels(label, label[mirror])
    first = np.zeros(len(mirror), np.bool_)
    first[np.unique(label, return_index=True)[1]] = True
    keep = first | first[mirror] | ~routes.fabric.network_link
    idle = (seconds[0] == 0) & (seconds[0][mirror] == 0)
    kept: Bools = keep & ~(idle & routes.fabric.network_link)
    return kept


def _equal_rows(values: Floats) -> Longs:
    """Return int64[m]: the same number for rows that are equal up to rounding."""
    label = np.zeros(len(values), np.int64)
    for column in values.T:
        order = np.lexsort((column, label))
        step = np.diff(column[order]) > SAME * np.abs(column[order][1:])
        found = np.empty(len(label), np.int64)
        found[order] = np.r_[0, np.cumsum(step | (np.diff(label[order]) > 0))]
        label = found
    return label


def _pair_labels(one: Longs, other: Longs) -> Longs:
    key: Longs = one * (int(other.max(initial=0)) + 1) + other
    return np.unique(key, return_inverse=True)[1].astype(np.int64)


def _on_torus(problem: Problem) -> LinkGrid | None:
    """Return the grid by vertex and direction if the network is a torus of single cables, else None."""
    fabric, flows = problem.routes.fabric, problem.routes.flows
    torus = torus_coordinates(fabric)
    transit = np.flatnonzero(fabric.forwards)
    if torus is None or not bool(torus.wraps.all()) or int(flows.graph.vertex.max()) >= len(transit):
        return None
    rows = np.flatnonzero(fabric.network_link)
    axes, size = _three_axes(torus)
    if len(rows) != 2 * len(transit) * len(torus.sizes) or int(size.max()) > 255 or len(torus.sizes) > 127:
        return None
    place = _combined(torus.coordinates[transit].astype(np.int64), torus, axes)
    number = (place[:, 0] * size[1] + place[:, 1]) * size[2] + place[:, 2]
    vertex = np.full(len(fabric), -1)
    vertex[transit] = number
    source, target = fabric.links.source[rows], fabric.links.target[rows]
    moved = torus.coordinates[target] - torus.coordinates[source]
    axis = np.argmax(moved != 0, axis=1)
    onward = moved[np.arange(len(rows)), axis] % torus.sizes[axis] == 1
    cell = np.full(len(fabric.links), -1)
    per_vertex = 2 * len(torus.sizes)
    cell[rows] = vertex[np.where(onward, source, target)] * per_vertex + 2 * axis + ~onward
    own = np.flatnonzero(~fabric.network_link)
    cell[own] = len(transit) * per_vertex + 2 * np.arange(len(own))
    vertex_place = np.empty_like(place)
    vertex_place[number] = place
    shifts = _shifts(torus, axes, size, per_vertex, place[flows.graph.vertex], vertex_place)
    return _numbered(problem, cell, both_ways=True, shifts=shifts)


def _three_axes(torus: Torus) -> tuple[list[list[int]], Longs]:
    """Return the axes that are combined into each of three, and the sizes of the three."""
    axes: list[list[int]] = [[], [], []]
    size = np.ones(3, np.int64)
    for axis in np.argsort(-torus.sizes, kind="stable").tolist():
        least = int(np.argmin(size))
        axes[least].append(axis)
        size[least] *= int(torus.sizes[axis])
    return axes, size


def _combined(places: Longs, torus: Torus, axes: list[list[int]]) -> Longs:
    found = np.zeros((len(places), 3), np.int64)
    for at, together in enumerate(axes):
        for axis in together:
            found[:, at] = found[:, at] * int(torus.sizes[axis]) + places[:, axis]
    return found


def _shifts(
    torus: Torus, axes: list[list[int]], size: Longs, per_vertex: int, place: Longs, vertex_place: Longs
) -> Shifts:
    """Return the tables that shift routes over a torus."""
    most = int(size.max())
    stride = np.array([size[1] * size[2], size[2], 1])
    step, plus = np.zeros((3, most, most), np.int64), np.zeros((3, most, most), np.int64)
    for at, together in enumerate(axes):
        sizes = [int(torus.sizes[axis]) for axis in together] or [1]
        parts = np.unravel_index(np.arange(int(size[at])), sizes)
        away = [(part[None, :] - part[:, None]) % n for part, n in zip(parts, sizes, strict=True)]
        after = [(part[None, :] + part[:, None]) % n for part, n in zip(parts, sizes, strict=True)]
        step[at, : size[at], : size[at]] = np.ravel_multi_index(away, sizes)
        plus[at, : size[at], : size[at]] = np.ravel_multi_index(after, sizes) * stride[at]
    minus = step * stride[:, None, None]
    cells = (plus * per_vertex).astype(np.uint32)
    pair = _pair_of_each_step(place, minus, len(vertex_place))
    return Shifts(True, place, minus, step, cells, vertex_place, per_vertex, pair)


def _pair_of_each_step(place: Longs, minus: Longs, steps: int) -> Longs:
    """Return some pair of rows for each step, as ``row * rows + target``; -1 if there is none."""
    pair = np.full(steps, -1)
    for start in range(len(place)):
        key = sum(minus[axis, place[start, axis], place[:, axis]] for axis in range(3))
        new = pair[key] < 0
        pair[key[new]] = start * len(place) + np.flatnonzero(new)
        if bool((pair >= 0).all()):
            break
    return pair
