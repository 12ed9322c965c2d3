"""Routes of all pairs of hosts, computed at once if they fit in memory, else on first use.

Numbering of links for congestion searches: both directions adjacent, links with proportional loads as one.

A cell is a directed link; cell ``c ^ 1`` is the opposite direction. Links whose loads are proportional in
every placement (an edge switch's cables to interchangeable switches above) are one cell with the capacity of
the tightest. On a torus cells are numbered by vertex and direction, so that routes can be shifted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mapping.deadline import each
from mapping.placement.kernels import pair_routes as kernel
from mapping.placement.kernels.pair_routes import Hosts, Lookup, Origin, Shifts, Table
from mapping.placement.problem import Problem
from mapping.routing.kernels.flows import PATHS, FlowArrays, new_scratch
from mapping.routing.shortest_paths import ShortestPaths
from mapping.routing.tori import Torus, torus_coordinates
from registry.model import Bools, Fabric, Floats, Ints, Longs

MOST_MERGED = 640
"""Most attachments for which proportional loads are searched, which routes all their pairs."""
SAME = 1e-9
"""Ratios of loads closer than this, relatively, are equal."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LinkGrid:
    """Numbering of a problem's links."""

    of_link: Ints
    """int32[m]: Cell of each row of ``fabric.links``; -1 if the cell of another link represents both."""
    capacity: Floats
    background: Floats
    """float64[c]: Bytes/s, and bytes of other jobs; 1 and 0 if no link has the cell."""
    network: Bools
    """bool[c]: True unless the cell is a host's own cable."""
    both_ways: bool
    """True if routes of opposite directions are the same, reversed."""
    shifts: Shifts

    def __len__(self) -> int:
        return len(self.capacity)

    def only(self, cables: Longs, of_link: Ints) -> LinkGrid:
        """Return the grid of some cables (pairs of cells) in another order.

        Args:
            of_link (int32[m]): New cell of each link.
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

    Args:
        merge: True: links with proportional loads are one cell, and links without load have none; False:
            every link has its own cell.
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


ListRoutes = Callable[[Origin, int, int, Ints, kernel.CellArray, kernel.Shares], tuple[int, int]]
"""`kernel.list_routes`, or a kernel with the same parameters."""
MOST_KEYS = 1 << 22
"""Most pairs whose routes are computed at once."""
MOST_ENTRIES = 48 << 20
"""Most entries in memory, of 8 bytes."""
SAMPLE = 512
"""Number of pairs from which the length of routes is estimated."""
CHUNK = 1 << 22
"""Number of entries of a buffer."""


class PairRoutes(NamedTuple):
    """Routes of all pairs; one object per thread unless the table is complete."""

    hosts: Hosts
    table: Table
    origin: Origin
    """What routes are computed from."""

    @property
    def lookup(self) -> Lookup:
        """What searches read."""
        return Lookup(self.hosts, self.table, self.origin.shifts)

    @property
    def missing(self) -> Origin | None:
        """What routes are computed from that the table lacks, or None if it is complete."""
        return None if self.table.mode[kernel.COMPLETE] else self.origin


class _Extent(NamedTuple):
    """What is listed for all pairs, and whether it fits in memory.

    `grain` is the number of keys that must be listed together.
    """

    hosts: Hosts
    origin: Origin
    list_routes: ListRoutes
    keys: int
    grain: int
    fits: bool


def build_pair_routes(
    flows: FlowArrays, grid: LinkGrid, limit: int, *, most: int = MOST_ENTRIES
) -> PairRoutes:
    """Return the cells that each pair of hosts loads.

    Args:
        limit: Memory in bytes for routes that are computed on first use; a route of any pair always fits.
        most: Most entries of a complete table; below 0 none is complete.
    """
    extent = _extent(flows, grid, most)
    if extent.fits:
        table = _complete(extent.origin, extent.list_routes, extent.keys, extent.grain)
    else:
        table = _empty(extent.origin, extent.keys, limit)
    return PairRoutes(extent.hosts, table, extent.origin)


def routes_fit(flows: FlowArrays, grid: LinkGrid) -> bool:
    """Return True if the routes of all pairs fit in memory, estimated from some of them.

    If so, the kernel that lists them is loaded.
    """
    extent = _extent(flows, grid, MOST_ENTRIES)
    if extent.fits:
        none = np.zeros(1, np.int32), np.zeros(0, np.uint32), np.zeros(0, np.float32)
        extent.list_routes(extent.origin, 0, 0, *none)
    return extent.fits


def _extent(flows: FlowArrays, grid: LinkGrid, most: int) -> _Extent:
    by_row = by_attachment(flows)
    hosts = _hosts(flows, grid.of_link, by_row)
    rows, width = flows.hops.shape if by_row else (len(hosts.row), len(hosts.row))
    origin = _origin(flows, grid, by_row, int(width))
    keys, grain = int(rows) * int(width), 1
    list_routes: ListRoutes = kernel.list_routes
    if grid.shifts.on:
        keys = len(grid.shifts.pair)
    elif flows.kind == PATHS and grid.both_ways:
        list_routes, grain = kernel.list_path_routes, int(width)
    fits = keys <= MOST_KEYS and _expected(origin, int(rows) * int(width), keys) <= most
    return _Extent(hosts, origin, list_routes, keys, grain, fits)


def of_another_thread(pair_routes: PairRoutes, limit: int) -> PairRoutes:
    """Return the same routes for another thread."""
    mode = pair_routes.table.mode
    if mode[kernel.COMPLETE]:
        return pair_routes
    keys = len(pair_routes.table.where) // kernel.ENTRY if mode[kernel.DIRECT] else 1 << 62
    origin = _of_own(pair_routes.origin)
    return pair_routes._replace(origin=origin, table=_empty(origin, keys, limit))


def _of_own(origin: Origin) -> Origin:
    return origin._replace(
        scratch=new_scratch(origin.flows), link=origin.link.copy(), share=origin.share.copy()
    )


def _hosts(flows: FlowArrays, cell: Ints, by_row: bool) -> Hosts:
    ends = flows.ends
    ports = ends.port_ptr[ends.rail_ptr]
    if by_row:
        up, down = cell[ends.up_link].astype(np.uint32), cell[ends.down_link].astype(np.uint32)
        targets = ends.target_ptr[ports]
        return Hosts(
            ends.port_row.astype(np.int64), ends.target[targets[:-1]].astype(np.int64),
            ends.up_ptr, up, ends.up_share, ends.down_ptr, down, ends.down_share,
        )  # fmt: skip
    own = np.arange(len(ports) - 1)
    none, nothing, zero = np.zeros(len(ports), np.int64), np.zeros(0, np.uint32), np.zeros(0)
    return Hosts(own, own, none, nothing, zero, none, nothing, zero)


def _origin(flows: FlowArrays, grid: LinkGrid, by_row: bool, width: int) -> Origin:
    longest = max(flows.max_entries, 1)
    return Origin(
        by_row=by_row,
        both_ways=grid.both_ways,
        width=width,
        flows=flows,
        scratch=new_scratch(flows),
        link=np.empty(longest, np.int32),
        share=np.empty(longest),
        cell_of_link=grid.of_link,
        shifts=grid.shifts,
    )


def _expected(origin: Origin, pairs: int, keys: int) -> float:
    """Estimate the number of entries of the routes of a number of keys from some pairs."""
    chosen = np.unique(np.linspace(0, pairs - 1, min(pairs, SAMPLE)).astype(np.int64))
    room = np.empty(2 * len(origin.link), np.uint32), np.empty(2 * len(origin.link), np.float32)
    length = np.zeros(pairs, np.int32)
    one = origin._replace(both_ways=False, shifts=no_shifts())
    total = sum(kernel.list_routes(one, key, key + 1, length, *room)[1] for key in chosen.tolist())
    return total / max(len(chosen), 1) * keys


def _complete(origin: Origin, list_routes: ListRoutes, keys: int, grain: int) -> Table:
    """Return a table of all routes; `grain` is the number of keys that must be listed together."""

    def listed(piece: tuple[int, int]) -> tuple[Ints, list[tuple[kernel.CellArray, kernel.Shares]]]:
        at, end = piece
        own, length, size = _of_own(origin), np.zeros(keys, np.int32), max(CHUNK, 2 * len(origin.link))
        found = []
        while at < end:
            cell, share = np.empty(size, np.uint32), np.empty(size, np.float32)
            at, used = list_routes(own, at, end, length, cell, share)
            found.append((cell[:used].copy(), share[:used].copy()))
            size *= 1 if used else 2
        return length[piece[0] : piece[1]], found

    half = int(keys // grain * (0.7 if origin.both_ways else 0.5)) * grain
    parts = each(listed, [(0, half), (half, keys)])
    length = np.concatenate([part[0] for part in parts])
    chunks = [chunk for part in parts for chunk in part[1]]
    return Table(
        where=np.r_[0, np.cumsum(length, dtype=np.int64)],
        cell=np.concatenate([cell for cell, _ in chunks]),
        share=np.concatenate([share for _, share in chunks]),
        mode=_mode(origin, complete=True, direct=True),
    )


def _empty(origin: Origin, keys: int, limit: int) -> Table:
    """Return a table without routes: a place for every key if that fits, else places shared by hashing."""
    longest = len(origin.link)
    direct = keys * 24 <= limit
    places = max(keys, 1) if direct else 1 << max(4, (limit // 96).bit_length() - 1)
    pool = max(min(limit // 8, keys * longest), 4 * longest)  # both routes of a pair fit wherever they begin
    where = np.zeros((places, kernel.ENTRY), np.int64)
    where[:, 0] = -1
    return Table(
        where=where.reshape(-1),
        cell=np.empty(pool, np.uint32),
        share=np.empty(pool, np.float32),
        mode=_mode(origin, complete=False, direct=direct),
    )


def _mode(origin: Origin, *, complete: bool, direct: bool) -> Longs:
    return np.array([complete, direct, origin.both_ways, origin.width, 0, 0], np.int64)


def most_used_first(pair_routes: PairRoutes, grid: LinkGrid) -> tuple[PairRoutes, LinkGrid]:
    """Renumber cables by how many routes use them; unchanged if the table is not complete.

    Many cables are used by few routes, and so stay out of the processor's cache.
    """
    hosts, table = pair_routes.hosts, pair_routes.table
    if not table.mode[kernel.COMPLETE] or grid.shifts.on:
        return pair_routes, grid
    count = np.bincount(table.cell >> 1, minlength=len(grid) // 2)
    for cell in (hosts.up_cell, hosts.down_cell):
        count += np.bincount(cell >> 1, minlength=len(count))
    cables = np.argsort(-count, kind="stable")[: np.count_nonzero(count)]
    place = np.full(len(count), -1)
    place[cables] = np.arange(len(cables))
    renumbered = np.where(np.repeat(place, 2) < 0, -1, 2 * np.repeat(place, 2) + np.tile([0, 1], len(count)))
    as_cell = renumbered.astype(np.uint32)
    of_link = np.append(renumbered, -1)[grid.of_link].astype(np.int32)
    origin = pair_routes.origin._replace(cell_of_link=of_link)
    hosts = hosts._replace(up_cell=as_cell[hosts.up_cell], down_cell=as_cell[hosts.down_cell])
    table = table._replace(cell=as_cell[table.cell])
    return pair_routes._replace(hosts=hosts, table=table, origin=origin), grid.only(cables, of_link)
