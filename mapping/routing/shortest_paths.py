"""All shortest paths of a pair share its traffic equally; parallel cables are one path, shared by capacity.

Source: Hoefler and Snir, "Generic topology mapping strategies for large-scale parallel architectures",
2011, equations 3 to 5, computed by searches from the goals, path counting and forward accumulation.

Shortest paths of many demands: path lengths, loads of arcs, and the fraction that crosses one arc.

Work is cut into pieces for threads. The pieces, and so the results to the last bit, do not depend on the
number of threads.

Equal-cost multipath: the flows of a pair of hosts are hashed onto shortest paths.

At every switch a hash of flow and switch selects one of all cables on shortest paths to the destination, each
with the same probability (Hopps, "Analysis of an equal-cost multi-path algorithm", RFC 2992). The bytes of a
pair are divided into equal flows. Hash functions of real switches are not published; a seed selects one here.
"""

from __future__ import annotations

import itertools
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from mapping.deadline import each
from mapping.routing.kernels import paths as kernel
from mapping.routing.kernels.channels import Channels, Ends
from mapping.routing.kernels.flows import PATHS, FlowArrays
from mapping.routing.kernels.paths import AT_ONCE, ArcArrays, Goals, HopArray, fill_hops
from mapping.routing.kernels.single_paths import ArcCables, HashedFlows, carry_hashed
from mapping.routing.network import EndPoints, Network, arcs_with, attach, empty_flow_arrays, graph_arrays
from mapping.routing.routes import ALL_CONNECTED, SAME_RAIL, Routes
from registry.errors import DisconnectedAllocation, InvalidValue
from registry.model import Bools, Fabric, Floats, Ints, Longs

GOALS_AT_ONCE = 256
"""Goals to which paths are counted at once."""
PIECES = 8
"""Largest number of pieces of demands; each has its own loads, which are added in order."""


def hops_to(arcs: ArcArrays, goals: Goals) -> HopArray:
    """Return the links from every vertex to each goal (int8[k, v] or int16[k, v]); `NO_PATH` for none."""
    rows = len(goals.vertex)
    dtype: type[np.int8 | np.int16]
    for dtype in (np.int8, np.int16):
        hops: HopArray = np.empty((rows, len(arcs.forwards)), dtype)

        def fill(first: int, hops: HopArray = hops) -> bool:
            some = slice(first, first + AT_ONCE)
            return fill_hops(arcs, goals.vertex[some], goals.twin[some], hops[some])

        if all(each(fill, range(0, rows, AT_ONCE))):
            break
    return hops


def spread(
    arcs: ArcArrays, goals: Goals, start: Ints, goal: Ints, amount: Floats, known: HopArray | None = None
) -> tuple[Floats, Ints]:
    """Divide demands evenly over all their shortest paths.

    Args:
        start (int32[d]): Vertex where each demand starts.
        goal (int32[d]): Index into `goals` of the place where it ends.
        amount (float64[d]): Bytes.
        known: Result of `hops_to` for these goals; by default the goals in use are searched from.

    Returns:
        length: Links of each demand's paths; -1 if there is none.

    Raises:
        InvalidValue: A pair has more paths than can be counted.
    """
    order = np.argsort(goal, kind="stable")
    present, first = np.unique(goal[order], return_index=True)
    first = np.append(first, len(goal)).astype(np.int64)
    start, amount = np.ascontiguousarray(start[order], np.int32), amount[order].astype(np.float64)
    length = np.empty(len(goal), np.int32)

    def carry(begin: int, end: int, load: Floats, buffer: kernel.Spread) -> None:
        rows = present[begin:end]
        some = Goals(goals.vertex[rows], goals.twin[rows])
        hops = hops_to(arcs, some) if known is None else known[rows]
        part = slice(first[begin], first[end])
        ptr: Longs = first[begin : end + 1] - first[begin]
        kernel.carry(arcs, hops, ptr, start[part], amount[part], buffer, load, length[part])

    def piece(batches: range) -> Floats:
        load, buffer = np.zeros(len(arcs.head)), kernel.new_spread(len(arcs.forwards), len(arcs.head))
        for begin in batches:
            carry(begin, min(begin + AT_ONCE, len(present)), load, buffer)
        return load

    arc_load = np.zeros(len(arcs.head))
    for load in each(piece, _cut(range(0, len(present), AT_ONCE))):
        arc_load += load
    if not bool(np.isfinite(arc_load).all()):
        raise InvalidValue("shortest-paths", "a pair has more paths than a 64-bit number counts (1e308)")
    back = np.empty(len(goal), np.int32)
    back[order] = length
    return arc_load, back


def _cut(batches: range) -> list[range]:
    """Return at most `PIECES` ranges of nearly equal length."""
    pieces = min(PIECES, len(batches))
    ends = [len(batches) * piece // pieces for piece in range(pieces + 1)] if pieces else [0]
    return [batches[a:b] for a, b in itertools.pairwise(ends)]


def fraction_over_arc(arcs: ArcArrays, arc: int, start: Ints, goals: Goals, goal: Ints) -> Floats:
    """Return the fraction (float64[d]) of all shortest paths from each start to its goal that uses an arc.

    The number of paths from s to g over the arc from u to v is the number of paths from s to u times the
    number from v to g, and 0 if that route is longer than the shortest.

    Args:
        arc: Index into ``arcs.head``.
        start (int32[d]): Vertices.
        goal (int32[d]): Rows of `goals`.
    """
    tail = int(np.searchsorted(arcs.out_ptr, arc, side="right")) - 1
    head = int(arcs.head[arc])
    graph = _adjacency(arcs)
    to_tail = hops_to(arcs, Goals(np.array([tail], np.int32), np.array([-1], np.int32)))
    paths_to_tail = _count_paths(graph, arcs.forwards, to_tail)[0]
    near = to_tail[0].astype(np.int64)
    may = (near[start] >= 0) & (arcs.forwards[tail] | (start == tail))
    fraction = np.zeros(len(start))
    wanted = np.unique(goal[may])
    for begin in range(0, len(wanted), GOALS_AT_ONCE):
        rows = wanted[begin : begin + GOALS_AT_ONCE]
        far = hops_to(arcs, Goals(goals.vertex[rows], goals.twin[rows]))
        some = np.flatnonzero(may & (goal >= rows[0]) & (goal <= rows[-1]))
        row, tails = np.searchsorted(rows, goal[some]), start[some]
        onward = far[row, head].astype(np.int64)
        on = (onward >= 0) & (near[tails] + 1 + onward == far[row, tails])
        on &= arcs.forwards[head] | (onward == 0)
        some, row, tails = some[on], row[on], tails[on]
        if len(some):
            used, row = np.unique(row, return_inverse=True)
            counts = _count_paths(graph, arcs.forwards, far[used])
            fraction[some] = paths_to_tail[tails] * counts[row, head] / counts[row, tails]
    return fraction


def _adjacency(arcs: ArcArrays) -> csr_array:
    """Return the arcs as a sparse matrix [v, v] of ones, by tail and head."""
    vertices = len(arcs.forwards)
    return csr_array((np.ones(len(arcs.head)), arcs.head, arcs.out_ptr), shape=(vertices, vertices))


def _count_paths(graph: csr_array, forwards: Bools, hops: HopArray) -> Floats:
    """Return the number of shortest paths from every vertex to each goal (float64[k, v]), level by level."""
    counts: Floats = (hops == 0).astype(np.float64)
    for level in range(1, int(hops.max(initial=0)) + 1):
        through = (hops == level - 1) & (forwards | (level == 1))
        onward = (graph @ np.where(through, counts, 0.0).T).T
        counts = np.where(hops == level, onward, counts)
    return counts


def build(fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED) -> ShortestPaths:
    """Return routes over all shortest paths."""
    return ShortestPaths(fabric, *attach(fabric, hosts), rails)


class ShortestPaths(Routes):
    """Routes over all shortest paths of a network between end points.

    Args:
        network: Several arcs may represent one cable, as in a layered graph whose vertices are states of a
            path.
        twin (int32[v]): Another vertex at which paths to the same place may end, by vertex where paths start;
            -1 if none.
    """

    name = "shortest-paths"

    def __init__(
        self, fabric: Fabric, ends: EndPoints, network: Network, rails: str, twin: Ints | None = None
    ) -> None:
        vertex, row = np.unique(network.port_vertex, return_inverse=True)
        self._network = network
        self._vertex: Ints = vertex.astype(np.int32)
        none = np.full(len(vertex), -1, np.int32)
        self._goals = Goals(self._vertex, none if twin is None else twin[vertex].astype(np.int32))
        up, down = network.up, network.down
        arrays = Ends(
            same_rail=rails == SAME_RAIL,
            rail_ptr=ends.rail_ptr,
            rail_number=ends.rail_number,
            port_ptr=ends.port_ptr,
            port_row=row.astype(np.int32),
            target_ptr=np.arange(len(row) + 1),
            target=row.astype(np.int32),
            up_ptr=up.ptr,
            up_link=up.link,
            up_share=up.share,
            down_ptr=down.ptr,
            down_link=down.link,
            down_share=down.share,
        )
        super().__init__(fabric, ends, arrays, rails)

    @cached_property
    def _hops_to(self) -> HopArray:
        """Links from every vertex of the network to each row's vertex."""
        return hops_to(self._network.arcs, self._goals)

    @cached_property
    def _hops(self) -> HopArray:
        table, arcs = self._hops_to, self._network.arcs
        if np.array_equal(arcs.out_ptr, arcs.in_ptr) and np.array_equal(arcs.head, arcs.tail):
            every = len(self._vertex) == len(arcs.forwards)  # symmetric: no need to transpose the table
            return table if every else np.ascontiguousarray(table[:, self._vertex])
        return np.ascontiguousarray(table[:, self._vertex].T)

    @cached_property
    def _target_class(self) -> Longs:
        return np.arange(len(self._vertex))  # each is the only one with 0 hops from itself

    def _carry(self, row: Ints, target: Ints, amount: Floats) -> tuple[Floats, Ints]:
        table = self.__dict__.get("_hops_to")  # searching from a few goals is faster than from all
        arc_load, hops = spread(self._network.arcs, self._goals, self._vertex[row], target, amount, table)
        return self._on_links(arc_load), hops

    def _part_on(self, row: Ints, target: Ints, link: int) -> Floats:
        """Return the fraction (float64[d]) of each demand that crosses a link."""
        found, network = np.zeros(len(row)), self._network
        for arc, share in zip(*arcs_with(network.cables, link), strict=True):
            found += share * fraction_over_arc(network.arcs, int(arc), self._vertex[row], self._goals, target)
        return found

    def _on_links(self, arc_load: Floats) -> Floats:
        """Return the loads of the rows of ``fabric.links`` (float64[m]) from loads of arcs."""
        cables = self._network.cables
        part = np.repeat(arc_load, np.diff(cables.ptr)) * cables.share
        return np.bincount(cables.link, weights=part, minlength=len(self.fabric.links)).astype(np.float64)

    def _flows(self) -> FlowArrays:
        links = len(self.fabric.links)
        flows = empty_flow_arrays(PATHS, links, links, self.max_channels, self._arrays, self._hops)
        return flows._replace(graph=graph_arrays(self._network, self._vertex, hops_to=self._hops_to))

    def _unconnected(self, i: int, j: int) -> DisconnectedAllocation:
        names = self.fabric.names
        return DisconnectedAllocation(names[self.hosts[i]], names[self.hosts[j]])


def build_ecmp(
    fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED, paths: int = 1, seed: int = 0
) -> Ecmp:
    """Return routes with flows hashed onto shortest paths.

    Args:
        paths: Flows of each pair of hosts between two ports; at least 1.
        seed: Seed of the hash, 0 to 2**62.
    """
    if paths < 1:
        raise InvalidValue("ecmp.paths", f"{paths} is below 1")
    if not 0 <= seed < 1 << 62:
        raise InvalidValue("ecmp.seed", f"{seed} is not from 0 to 2**62")
    return Ecmp(fabric, hosts, rails, paths, seed)


class Ecmp(ShortestPaths):
    """Routes whose flows use one shortest path each.

    `load` is exact for the seed. `flows`, which searches use, are those of all shortest paths: the mean over
    all seeds, if every switch has the same number of cables on shortest paths, else an approximation.
    """

    def __init__(self, fabric: Fabric, hosts: ArrayLike, rails: str, paths: int, seed: int) -> None:
        super().__init__(fabric, *attach(fabric, hosts), rails)
        self.name = f"ecmp:paths={paths},seed={seed}"
        self.paths = paths
        self.seed = seed

    def _crossing(self, channels: Channels, amount: Floats, link: int) -> Floats:
        """Return the bytes of each channel on a link; routes only channels with a shortest path over it."""
        crossing = super()._crossing(channels, amount, link)
        for index in np.flatnonzero(crossing).tolist():
            own = slice(index, index + 1)
            one = Channels._make(column[own] for column in channels)
            crossing[index] = self._carry_channels(one, amount[own])[0][link]
        return crossing

    def _carry_channels(self, channels: Channels, amount: Floats) -> tuple[Floats, Ints]:
        """Route channels; see `Routes`. A pair that occurs twice uses the same paths."""
        port_host = self.ends.port_host
        first_port = np.searchsorted(port_host, port_host)  # of each port's host
        key = self._key(port_host[channels.source], port_host[channels.port])
        key += (channels.source - first_port[channels.source]) * 256
        key += channels.port - first_port[channels.port]
        row = self._arrays.port_row[channels.source]
        return self._carry_hashed(row, channels.target, key, amount)

    def _key(self, source: Ints, target: Ints) -> Longs:
        """Return the hash key (int64) of the flows from one host to another, from the hosts' vertices."""
        vertices = len(self.fabric)
        return (self.hosts[source].astype(np.int64) * vertices + self.hosts[target]) * 65536

    def _carry_hashed(self, row: Ints, target: Ints, key: Longs, amount: Floats) -> tuple[Floats, Ints]:
        cables, order = self._network.cables, np.argsort(target, kind="stable")
        first = np.searchsorted(target[order], np.arange(len(self._vertex) + 1))
        loads, steps = np.zeros(len(self.fabric.links)), np.empty(len(row), np.int32)
        bundles = ArcCables(cables.ptr, cables.link, self.fabric.links.cables)
        flows = HashedFlows(first, self._vertex[row[order]], key[order], amount[order], self.paths, self.seed)
        steps[order] = carry_hashed(self._network.arcs, bundles, self._vertex, flows, loads)
        return loads, steps
