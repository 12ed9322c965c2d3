"""Routes of all pairs of hosts, computed at once if they fit in memory, else on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mapping.placement.kernels import pair_routes as kernel
from mapping.placement.kernels.pair_routes import Hosts, Lookup, Origin, Table
from mapping.placement.refine.link_grid import LinkGrid, by_attachment, no_shifts
from mapping.routing.kernels.flows import PATHS, FlowArrays, new_scratch
from mapping.threads import each
from registry.model import Ints, Longs

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
    """Routes of all pairs; one object per thread unless the table is complete.

    Attributes
    ----------
    origin : Origin
        What routes are computed from.
    """

    hosts: Hosts
    table: Table
    origin: Origin

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

    Parameters
    ----------
    limit : int
        Memory in bytes for routes that are computed on first use; a route of any pair always fits.
    most : int
        Most entries of a complete table; below 0 none is complete.
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
