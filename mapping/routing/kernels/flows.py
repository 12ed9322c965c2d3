"""Links that carry the traffic of one pair of hosts, for all routings; callable from other kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.kernels.decorators import kernel
from mapping.routing.kernels.channels import Channels, Ends, new_channels, pair_channels
from mapping.routing.kernels.forwarding_tables import TableArrays, next_link
from mapping.routing.kernels.paths import NO_PATH, HopArray, Spread, new_spread, trace
from registry.model import Bools, Floats, Int8s, Ints, Longs

PATHS, ARCS, TABLES, LISTS = range(4)
"""Kinds of flows: all shortest paths of a graph, one arc to follow from each vertex, forwarding tables, or a
list for each pair."""
NO_ARC = 255
"""No arc to follow."""


class GraphArrays(NamedTuple):
    """The transit graph and the paths to the vertices that hosts are attached to."""

    arc_ptr: Longs
    arc_head: Ints
    """int64[v + 1] and int32[arcs]: Directed CSR, parallel cables bundled."""
    link_ptr: Longs
    link: Ints
    share: Floats
    """int64[arcs + 1] and int32 and float64: Rows of ``fabric.links`` in each arc and the fraction of the
    arc's bytes on each."""
    forwards: Bools
    """bool[v]."""
    vertex: Ints
    """int32[k]: Vertex where each row of ``FlowArrays.hops`` starts."""
    hops_to: HopArray
    """int8[k, v] or int16[k, v]: For `PATHS`: length of the shortest paths from every vertex to each target.
    """
    next_arc: Int8s
    """uint8[k, v]: For `ARCS`: arc to follow from every vertex to each target, counted from the vertex's
    first; `NO_ARC` if none."""


class ListArrays(NamedTuple):
    """Links of each pair, as lists."""

    ptr: Longs
    """int64[k * t + 1]: Entries of each row and target; targets of a row are adjacent."""
    link: Ints
    share: Floats
    """Rows of ``fabric.links``, each once per pair, and the fraction of the pair's bytes on each."""


class FlowArrays(NamedTuple):
    """Input of `pair_flows`."""

    kind: int
    """`PATHS`, `ARCS`, `TABLES` or `LISTS`: which of `graph`, `tables` and `lists` is used; the others are
    empty."""
    links: int
    """Rows of ``fabric.links``."""
    max_entries: int
    """Largest number of links that a pair of hosts loads."""
    max_channels: int
    """Largest number of channels of a pair of hosts."""
    ends: Ends
    hops: HopArray
    """int8[k, t] or int16[k, t]: Links from each row to each target; `NO_PATH` if the routing has no path.
    For `LISTS` the nearest whole number, used only to see which pairs are connected."""
    graph: GraphArrays
    tables: TableArrays
    row_switch: Ints
    """int32[k]: Switch of each row, for tables."""
    lid: Ints
    """int32[t]: LID of each target, for tables."""
    lists: ListArrays


class Scratch(NamedTuple):
    """Working memory of `pair_flows`, one per thread; made by `new_scratch`."""

    channels: Channels
    load: Floats
    spread: Spread


def new_scratch(flows: FlowArrays) -> Scratch:
    """Return working memory for `pair_flows`."""
    graph = flows.graph
    return Scratch(
        channels=new_channels(flows.max_channels),
        load=np.zeros(flows.links),
        spread=new_spread(len(graph.forwards), len(graph.arc_head)),
    )


@kernel
def pair_flows(
    flows: FlowArrays, scratch: Scratch, i: int, j: int, links_out: Ints, shares_out: Floats
) -> int:
    """Write the links that carry traffic from host `i` to host `j`, and the fraction of its bytes on each.

    Args:
        flows, scratch: From ``Routes.flows`` and `new_scratch`.
        i, j: Indices into ``Routes.hosts``.
        links_out (int32[>= max_entries]), shares_out (float64[>= max_entries]): Filled: rows of
            ``fabric.links``, each once (merged over rails and paths).

    Returns:
        Number of entries; 0 if ``i == j``, -1 if the routing does not connect the hosts.
    """
    if i == j:
        return 0
    channels = scratch.channels
    found = pair_channels(flows.ends, flows.hops, i, j, channels)
    if found == 0:
        return -1
    count = int(np.int64(0))
    for c in range(found):
        p, q = int(np.int64(channels.source[c])), int(np.int64(channels.port[c]))
        weight = channels.weight[c]
        count = _cables(flows.ends.up_ptr, flows.ends.up_link, flows.ends.up_share, p, weight,
                        scratch.load, links_out, count)  # fmt: skip
        row, to = int(np.int64(flows.ends.port_row[p])), int(np.int64(channels.target[c]))
        count = row_flows(flows, scratch, row, to, weight, links_out, count)
        count = _cables(flows.ends.down_ptr, flows.ends.down_link, flows.ends.down_share, q, weight,
                        scratch.load, links_out, count)  # fmt: skip
    for e in range(count):
        shares_out[e] = scratch.load[links_out[e]]
        scratch.load[links_out[e]] = 0.0
    return count


@kernel
def row_flows(
    flows: FlowArrays,
    scratch: Scratch,
    row: int,
    target: int,
    weight: float,
    links_out: Ints,
    count: int,
) -> int:
    """Add `weight` to ``scratch.load`` along the path from a row of `FlowArrays.hops` to a target.

    Links without load before are appended to `links_out`, which has `count` entries; returns the new number.
    The caller reads the loads and resets them to zero.
    """
    if flows.kind == PATHS:
        return _over_paths(flows.graph, scratch, flows.graph.vertex[row], target, weight, links_out, count)
    if flows.kind == ARCS:
        return _over_arcs(
            flows.graph, scratch.load, flows.graph.vertex[row], target, weight, links_out, count
        )
    if flows.kind == TABLES:
        switch, lid = flows.row_switch[row], flows.lid[target]
        for _ in range(flows.hops[row, target]):
            link = next_link(flows.tables, switch, lid)
            count = _add(scratch.load, link, weight, links_out, count)
            switch = flows.tables.link_switch[link]
        return count
    pair = row * flows.hops.shape[1] + target
    lists = flows.lists
    return _cables(lists.ptr, lists.link, lists.share, pair, weight, scratch.load, links_out, count)


@kernel
def _over_paths(
    graph: GraphArrays,
    scratch: Scratch,
    source: int,
    target: int,
    weight: float,
    links_out: Ints,
    count: int,
) -> int:
    """Add `weight` along all shortest paths from a vertex to a target; see `row_flows`."""
    hops, arc_head, spread, load = graph.hops_to[target], graph.arc_head, scratch.spread, scratch.load
    link_ptr, link, share = graph.link_ptr, graph.link, graph.share
    rest, paths, known, arcs = spread.amount, spread.paths, spread.known, spread.arc
    order, first = spread.order, spread.first
    far = int(np.int64(hops[source]))
    if far <= 0:
        return count
    spread.level[far], rest[source] = source, weight
    for i in range(trace(graph.arc_ptr, arc_head, graph.forwards, hops, far, spread)):
        v = order[i]
        known[v] = False
        per_path = rest[v] / paths[v]
        rest[v] = 0.0
        for k in range(first[i], first[i + 1]):
            arc = arcs[k]
            part = per_path * paths[arc_head[arc]]
            rest[arc_head[arc]] += part
            for e in range(link_ptr[arc], link_ptr[arc + 1]):
                count = _add(load, link[e], part * share[e], links_out, count)
    return count


@kernel
def _over_arcs(
    graph: GraphArrays, load: Floats, source: int, target: int, weight: float, links_out: Ints, count: int
) -> int:
    """Add `weight` along the arcs to follow from a vertex to a target; see `row_flows`."""
    arc_ptr, arc_head, onward = graph.arc_ptr, graph.arc_head, graph.next_arc[target]
    link_ptr, link, share = graph.link_ptr, graph.link, graph.share
    v = source
    while onward[v] != NO_ARC:
        arc = arc_ptr[v] + onward[v]
        count = _cables(link_ptr, link, share, arc, weight, load, links_out, count)
        v = arc_head[arc]
    return count


@kernel
def _cables(
    ptr: Longs,
    link: Ints,
    share: Floats,
    bundle: int,
    amount: float,
    load: Floats,
    links_out: Ints,
    count: int,
) -> int:
    """Add `amount` to the cables of a bundle; see `row_flows`."""
    for e in range(ptr[bundle], ptr[bundle + 1]):
        count = _add(load, link[e], amount * share[e], links_out, count)
    return count


@kernel
def _add(load: Floats, link: int, amount: float, links_out: Ints, count: int) -> int:
    if load[link] == 0.0:
        links_out[count] = link
        count += 1
    load[link] += amount
    return count


@kernel
def follow_arcs(
    graph: GraphArrays, row: Ints, target: Ints, amount: Floats, arc_load: Floats, hops: Ints
) -> None:
    """Route each demand along the arcs to follow; add to `arc_load` and fill `hops` (-1: not delivered).

    The arcs to follow must not form cycles.
    """
    arc_ptr, arc_head = graph.arc_ptr, graph.arc_head
    for d in range(len(row)):
        v, onward = graph.vertex[row[d]], graph.next_arc[target[d]]
        hops[d] = 0
        while onward[v] != NO_ARC:
            arc = arc_ptr[v] + onward[v]
            arc_load[arc] += amount[d]
            v = arc_head[arc]
            hops[d] += 1
        if v != graph.vertex[target[d]]:
            hops[d] = NO_PATH
