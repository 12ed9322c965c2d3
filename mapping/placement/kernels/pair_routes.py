"""Routes of pairs of hosts over the cells of a search, in memory: congestion searches read them all the time.

A cell is a directed link of the search (`mapping.placement.methods.pair_routes`); cell ``c ^ 1`` is the
opposite direction. A route is a list of (cell, share). If every host has one channel, routes lead from switch
to switch, without the hosts' own cables, for all hosts attached there; otherwise from host to host. If the
opposite direction uses the same cables with the same shares, one route serves both. On a torus one route
serves all pairs the same step apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mapping.kernels.decorators import allocating, inner, kernel
from mapping.routing.kernels.flows import FlowArrays, Scratch, pair_flows, row_flows
from mapping.routing.kernels.paths import trace
from registry.model import Floats, Ints, Longs

CellArray = NDArray[np.uint32]
Shares = NDArray[np.float32]

WAYS = 4
"""Adjacent places that a key may have if the table has fewer places than there are keys."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint32(1)


class Hosts(NamedTuple):
    """Attachment of hosts to the network."""

    row: Longs
    target: Longs
    """int64[h]: Key of a host as sender and as receiver."""
    up_ptr: Longs
    up_cell: CellArray
    up_share: Floats
    """int64[h + 1], uint32, float64: Cables of a host towards the network."""
    down_ptr: Longs
    down_cell: CellArray
    down_share: Floats
    """int64[h + 1], uint32, float64: Cables towards the host."""


class Shifts(NamedTuple):
    """Coordinates on a torus, in three axes (more are combined, fewer padded); empty on other networks."""

    on: bool
    place: Longs
    """int64[k, 3]: Coordinates of each row."""
    minus: Longs
    """int64[3, a, a]: Step from one place to another along an axis, in parts of the key that are added."""
    step: Longs
    """int64[3, a, a]: The same as a place."""
    plus: CellArray
    """uint32[3, a, a]: From a place and a step to the first cell of the vertex there, in parts that are
    added."""
    vertex_place: Longs
    """int64[v, 3]: Coordinates of each vertex, the last axis fastest."""
    per_vertex: int
    """Number of cells of a vertex."""
    pair: Longs
    """int64[keys]: Some pair of rows that step apart, as ``row * k + target``; -1 if there is none."""


class Table(NamedTuple):
    """Routes by key; changed in place unless complete."""

    where: Longs
    """If complete, ``where[k]:where[k + 1]`` is the route of key ``k``. Otherwise three numbers per entry:
    key (-1 none), begin of its route (counted over all entries ever written), its length."""
    cell: CellArray
    share: Shares
    """uint32[p] and float32[p]: The pool; a share is a fraction of the pair's bytes. On a torus `cell` holds
    the step (8 bits an axis) and the cell within the vertex."""
    mode: Longs
    """int64[6]: `COMPLETE`: 1 if all routes are there; otherwise they are computed on first use, and the
    oldest are overwritten. `DIRECT`: 1 if a key is its own place. `BOTH_WAYS`: 1 if routes serve both
    directions. `WIDTH`: number of targets. `WRITTEN`: entries ever written, with those skipped at the pool's
    end. `COMPUTED`: routes computed."""


COMPLETE, DIRECT, BOTH_WAYS, WIDTH, WRITTEN, COMPUTED = range(6)
ENTRY = 3
"""Numbers per entry of ``Table.where``."""


class Origin(NamedTuple):
    """Source of the routes."""

    by_row: bool
    """True if keys are rows and targets of `FlowArrays.hops`, False if they are hosts."""
    both_ways: bool
    width: int
    """Number of targets."""
    flows: FlowArrays
    scratch: Scratch
    """For `pair_flows` and `row_flows`."""
    link: Ints
    share: Floats
    """Buffer for one route."""
    cell_of_link: Ints
    """int32[m]: -1 if the cell of another link represents both."""
    shifts: Shifts


class Lookup(NamedTuple):
    """Routes of all pairs as searches read them."""

    hosts: Hosts
    table: Table
    shifts: Shifts


@inner
def first_place(places: int, key: int) -> int:
    """Return the first of the places that a key may have."""
    return int(np.int64((np.uint64(key) * _SPREAD) >> np.uint64(20)) & (places - 1)) & ~(WAYS - 1)


@inner
def place_of(direct: bool, where: Longs, oldest: int, key: int) -> int:
    """Return the place of a key whose route is in the table, else -1."""
    if direct:
        return key if where[ENTRY * key] >= 0 and where[ENTRY * key + 1] >= oldest else -1
    base = first_place(len(where) // ENTRY, key)
    for at in range(base, base + WAYS):
        if where[ENTRY * at] == key:
            return at if where[ENTRY * at + 1] >= oldest else -1
    return -1


@kernel
def ready(lookup: Lookup, origin: Origin, source: Ints, target: Ints, begin: int, end: int) -> bool:
    """Compute the routes of these flows that the table lacks; return True if it then has them all."""
    hosts, table, shifts = lookup
    mode, where, computed, size = table.mode, table.where, table.mode[COMPUTED], len(table.cell)
    for again in range(2):
        for f in range(begin, end):
            for turn in range(1 if mode[BOTH_WAYS] else 2):
                i, j = (source[f], target[f]) if turn == 0 else (target[f], source[f])
                row, to = hosts.row[i], hosts.target[j]
                if mode[BOTH_WAYS] and row == to:
                    continue
                if shifts.on:
                    key = np.int64(0)
                    for axis in range(3):
                        key += shifts.minus[axis, shifts.place[row, axis], shifts.place[to, axis]]
                else:
                    if mode[BOTH_WAYS] and row < to:
                        row, to = to, row
                    key = row * mode[WIDTH] + to
                if place_of(mode[DIRECT] > 0, where, int(mode[WRITTEN]) - size, int(key)) < 0:
                    if again == 1:
                        return False
                    fill(origin, table, int(row), int(to), int(key))
        if mode[COMPUTED] == computed:
            return True
    return True


@kernel
def fill(origin: Origin, table: Table, row: int, target: int, key: int) -> None:
    """Compute the route of a key that the table lacks, and store it."""
    count, shifts = _compute(origin, row, target), origin.shifts
    mode, where, size, kept = table.mode, table.where, len(table.cell), 0
    if mode[WRITTEN] % size + count > size:
        mode[WRITTEN] += size - mode[WRITTEN] % size
    at, first = _free_place(mode[DIRECT] > 0, where, key), mode[WRITTEN]
    begin = first % size
    for e in range(count):
        cell = origin.cell_of_link[origin.link[e]]
        if cell >= 0:
            table.cell[begin + kept] = _step_of(shifts, row, cell) if shifts.on else np.uint32(cell)
            table.share[begin + kept] = origin.share[e]
            kept += 1
    where[ENTRY * at], where[ENTRY * at + 1], where[ENTRY * at + 2] = key, first, kept
    mode[WRITTEN] += kept
    mode[COMPUTED] += 1


@inner
def _compute(origin: Origin, row: int, target: int) -> int:
    """Fill ``origin.link`` and ``origin.share`` with the route of a pair; return its number of entries."""
    link, share, load = origin.link, origin.share, origin.scratch.load
    if not origin.by_row:
        return max(pair_flows(origin.flows, origin.scratch, row, target, link, share), 0)
    count = row_flows(origin.flows, origin.scratch, row, target, 1.0, link, int(np.int64(0)))
    for e in range(count):
        share[e] = load[link[e]]
        load[link[e]] = 0.0
    return count


@inner
def _step_of(shifts: Shifts, row: int, cell: int) -> np.uint32:
    """Return a cell relative to a row."""
    vertex = cell // shifts.per_vertex
    packed = (cell % shifts.per_vertex) << 24
    for axis in range(3):
        here, there = shifts.place[row, axis], shifts.vertex_place[vertex, axis]
        packed |= shifts.step[axis, here, there] << (8 * axis)
    return np.uint32(packed)


@inner
def _free_place(direct: bool, where: Longs, key: int) -> int:
    """Return a place for a key: its own, or the one of its places that was written longest ago."""
    if direct:
        return key
    base = first_place(len(where) // ENTRY, key)
    best = base
    for at in range(base, base + WAYS):
        if where[ENTRY * at] == key:
            return at
        if where[ENTRY * best] >= 0 and (
            where[ENTRY * at] < 0 or where[ENTRY * at + 1] < where[ENTRY * best + 1]
        ):
            best = at
    return best


@kernel
def list_routes(
    origin: Origin, begin: int, end: int, length: Ints, cell: CellArray, share: Shares
) -> tuple[int, int]:
    """Write the routes of keys `begin` to `end` one after the other, while there is room for any route.

    On a torus a key is a step, and its route that of some pair that step apart.

    Args:
        length (int32[keys]): Filled.
        cell (uint32[p]), share (float32[p]): Filled.

    Returns:
        The next key, and the entries written.
    """
    width, used, longest, cell_of_link = origin.width, 0, len(origin.link), origin.cell_of_link
    shifts, both_ways = origin.shifts, origin.both_ways
    for key in range(begin, end):
        if used + longest > len(cell):
            return key, used
        pair = shifts.pair[key] if shifts.on else key
        row, target, start = pair // width, pair % width, used
        if (shifts.on and pair >= 0) or (not shifts.on and (not both_ways or row > target)):
            for e in range(_compute(origin, row, target)):
                at = cell_of_link[origin.link[e]]
                if at >= 0:
                    cell[used] = _step_of(shifts, row, at) if shifts.on else np.uint32(at)
                    share[used] = origin.share[e]
                    used += 1
        length[key] = used - start
    return end, used


@allocating
def list_path_routes(
    origin: Origin, begin: int, end: int, length: Ints, cell: CellArray, share: Shares
) -> tuple[int, int]:
    """`list_routes` over all shortest paths that are the same in both directions, for whole rows of keys.

    Paths to a row are traced once for all rows below it.
    """
    graph, spread, width, used = origin.flows.graph, origin.scratch.spread, origin.width, 0
    known, order = spread.known, spread.order
    position, queue = np.empty((2, len(graph.forwards)), np.int32)
    for goal in range(begin // width, end // width):
        furthest, started = int(np.int64(0)), used
        for row in range(goal):
            v = graph.vertex[row]
            far = int(graph.hops_to[goal, v])
            spread.later[v], spread.level[far] = spread.level[far], v
            furthest = max(furthest, far)
        count = trace(graph.arc_ptr, graph.arc_head, graph.forwards, graph.hops_to[goal], furthest, spread)
        longest = 0
        for at in range(count):
            known[order[at]] = False
            position[order[at]] = at
        for k in range(spread.first[count]):
            longest += graph.link_ptr[spread.arc[k] + 1] - graph.link_ptr[spread.arc[k]]
        for row in range(width):
            if row < goal and used + longest > len(cell):
                return goal * width, started
            first = used
            if row < goal:
                used = _walk(origin, position, queue, graph.vertex[row], cell, share, used)
            length[goal * width + row] = used - first
    return end, used


@inner
def _walk(
    origin: Origin, position: Ints, queue: Ints, source: int, cell: CellArray, share: Shares, used: int
) -> int:
    """Write the route to a vertex from the goal that was traced last; return the new number of entries."""
    graph, spread, cell_of_link = origin.flows.graph, origin.scratch.spread, origin.cell_of_link
    rest, paths, first, arcs, head = spread.amount, spread.paths, spread.first, spread.arc, graph.arc_head
    link_ptr, link, part_of = graph.link_ptr, graph.link, graph.share
    queue[0], rest[source] = source, 1.0
    at, tail = 0, 1
    while at < tail:
        v = queue[at]
        at += 1
        per_path = rest[v] / paths[v]
        rest[v] = 0.0
        for k in range(first[position[v]], first[position[v] + 1]):
            arc = arcs[k]
            u = head[arc]
            part = per_path * paths[u]
            if rest[u] == 0.0:
                queue[tail] = u
                tail += 1
            rest[u] += part
            for e in range(link_ptr[arc], link_ptr[arc + 1]):
                to = cell_of_link[link[e]]
                if to >= 0:
                    # Paths lead from the vertex to the goal; the route is that of the opposite direction.
                    cell[used], share[used] = np.uint32(to) ^ _ONE, part * part_of[e]
                    used += 1
    return used
