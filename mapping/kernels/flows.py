"""What one pair of hosts puts on which links: for both routings, callable from other kernels.

A host's traffic to another is cut into channels: (port, port, target) with a weight. A target is what
a routing leads to: the vertex that a port hangs on (shortest paths) or one of its LIDs (tables). The
weights follow the rails rule: even over the adapter pairs that the routing connects, within one even
over its port pairs, within one even over the LIDs of the target port.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from mapping.kernels.paths import NO_PATH, HopArray
from mapping.kernels.tables import TableArrays, next_link
from registry.model import Bools, Floats, Ints, Longs


class Ends(NamedTuple):
    """Hosts, their rails (adapters), the rails' ports, the ports' cables and targets.

    Attributes
    ----------
    same_rail : bool
        Only rails of the same number talk.
    rail_ptr : int64[h + 1], rail_number : int32[r]
        Rails of each host, and their number within it.
    port_ptr : int64[r + 1], port_row : int32[p]
        Ports of each rail; row of ``FlowArrays.hops`` where a port's traffic starts, -1 nowhere.
    target_ptr : int64[p + 1], target : int32[t]
        Columns of ``FlowArrays.hops`` that stand for each port.
    up_ptr, up_link, up_share : int64[p + 1], int32, float64
        Cables from a port to the vertex that it hangs on: rows of ``fabric.links`` and the fraction of
        the port's bytes on each. Empty where the routing itself starts at the port.
    down_ptr, down_link, down_share : int64[p + 1], int32, float64
        The same towards the port.
    """

    same_rail: bool
    rail_ptr: Longs
    rail_number: Ints
    port_ptr: Longs
    port_row: Ints
    target_ptr: Longs
    target: Ints
    up_ptr: Longs
    up_link: Ints
    up_share: Floats
    down_ptr: Longs
    down_link: Ints
    down_share: Floats


class GraphArrays(NamedTuple):
    """The transit graph with all shortest paths to the vertices that hosts hang on.

    Attributes
    ----------
    arc_ptr : int64[v + 1], arc_head : int32[arcs]
        Directed CSR, parallel cables bundled.
    link_ptr : int64[arcs + 1], link : int32, share : float64
        Rows of ``fabric.links`` in each arc and the fraction of the arc's bytes on each.
    forwards : bool[v]
    vertex : int32[k]
        Vertex of each row (and column) of ``FlowArrays.hops``.
    hops_to : uint16[k, v], paths_to : float64[k, v]
        Length and number of the shortest paths from every vertex to each of them.
    """

    arc_ptr: Longs
    arc_head: Ints
    link_ptr: Longs
    link: Ints
    share: Floats
    forwards: Bools
    vertex: Ints
    hops_to: HopArray
    paths_to: Floats


class FlowArrays(NamedTuple):
    """All that `pair_flows` reads.

    Attributes
    ----------
    by_tables : bool
        Which of `graph` and `tables` is used; the other is empty.
    links : int
        Rows of ``fabric.links``.
    max_entries : int
        No pair of hosts loads more links than this.
    max_channels : int
        No pair of hosts has more channels than this.
    ends : Ends
    hops : uint16[k, t]
        Links from each row to each target; `NO_PATH` where the routing leads nowhere.
    graph : GraphArrays
    tables : TableArrays
    row_switch : int32[k]
        Switch of each row, for tables.
    lid : int32[t]
        LID of each target, for tables.
    """

    by_tables: bool
    links: int
    max_entries: int
    max_channels: int
    ends: Ends
    hops: HopArray
    graph: GraphArrays
    tables: TableArrays
    row_switch: Ints
    lid: Ints


class Channels(NamedTuple):
    """Room for the channels of a pair: source port, target port, target, weight."""

    source: Ints
    port: Ints
    target: Ints
    weight: Floats


class Scratch(NamedTuple):
    """Working memory of `pair_flows`; one a thread. Made by `new_scratch`."""

    channels: Channels
    load: Floats
    amount: Floats
    queue: Ints


def new_channels(count: int) -> Channels:
    """Room for `count` channels."""
    room = np.zeros((3, count), np.int32)
    return Channels(room[0], room[1], room[2], np.zeros(count))


def new_scratch(flows: FlowArrays) -> Scratch:
    """Working memory for `pair_flows`."""
    vertices = len(flows.graph.forwards)
    return Scratch(
        channels=new_channels(flows.max_channels),
        load=np.zeros(flows.links),
        amount=np.zeros(vertices),
        queue=np.zeros(max(vertices, 1), np.int32),
    )


@njit(cache=True, error_model="numpy")
def pair_flows(
    flows: FlowArrays, scratch: Scratch, i: int, j: int, links_out: Ints, shares_out: Floats
) -> int:
    """Links that carry what host `i` sends to host `j`, and the fraction of its bytes on each.

    Parameters
    ----------
    flows, scratch
        From ``Routes.flows`` and `new_scratch`.
    i, j : int
        Indices into ``Routes.hosts``.
    links_out : int32[>= max_entries], shares_out : float64[>= max_entries]
        Filled: rows of ``fabric.links``, each once (merged over rails and paths).

    Returns
    -------
    int
        Number of entries; 0 where ``i == j``, -1 where the routing does not connect the hosts.
    """
    if i == j:
        return 0
    channels = scratch.channels
    found = pair_channels(flows.ends, flows.hops, i, j, channels)
    if found == 0:
        return -1
    count = 0
    for c in range(found):
        p, q, weight = channels.source[c], channels.port[c], channels.weight[c]
        count = _cables(flows.ends.up_ptr, flows.ends.up_link, flows.ends.up_share, p, weight,
                        scratch.load, links_out, count)  # fmt: skip
        count = row_flows(flows, scratch, flows.ends.port_row[p], channels.target[c], weight,
                          links_out, count)  # fmt: skip
        count = _cables(flows.ends.down_ptr, flows.ends.down_link, flows.ends.down_share, q, weight,
                        scratch.load, links_out, count)  # fmt: skip
    for e in range(count):
        shares_out[e] = scratch.load[links_out[e]]
        scratch.load[links_out[e]] = 0.0
    return count


@njit(cache=True, error_model="numpy")
def pair_channels(ends: Ends, hops: HopArray, i: int, j: int, out: Channels) -> int:
    """Channels from host `i` to host `j` that the routing connects; their number, 0 for none."""
    # Arrays are taken out of the tuples once: numba counts references at every access.
    rail_ptr, rail_number, same_rail = ends.rail_ptr, ends.rail_number, ends.same_rail
    port_ptr, port_row, target_ptr, targets = ends.port_ptr, ends.port_row, ends.target_ptr, ends.target
    source, port, target, weight = out.source, out.port, out.target, out.weight
    count, rail_pairs = 0, 0
    for a in range(rail_ptr[i], rail_ptr[i + 1]):
        for b in range(rail_ptr[j], rail_ptr[j + 1]):
            if same_rail and rail_number[a] != rail_number[b]:
                continue
            first_of_rails, port_pairs = count, 0
            for p in range(port_ptr[a], port_ptr[a + 1]):
                if port_row[p] < 0:
                    continue
                for q in range(port_ptr[b], port_ptr[b + 1]):
                    first = count
                    for s in range(target_ptr[q], target_ptr[q + 1]):
                        if hops[port_row[p], targets[s]] != NO_PATH:
                            source[count], port[count], target[count] = p, q, targets[s]
                            count += 1
                    port_pairs += count > first
                    for c in range(first, count):
                        weight[c] = 1.0 / (count - first)
            rail_pairs += port_pairs > 0
            for c in range(first_of_rails, count):
                weight[c] /= port_pairs
    for c in range(count):
        weight[c] /= rail_pairs
    return count


@njit(cache=True, error_model="numpy")
def pair_hops(ends: Ends, hops: HopArray, channels: Channels, count: int) -> float:
    """Mean links of a pair's channels, hosts' own cables counted."""
    mean = 0.0
    for c in range(count):
        p, q = channels.source[c], channels.port[c]
        steps = int(hops[ends.port_row[p], channels.target[c]])
        steps += ends.up_ptr[p] < ends.up_ptr[p + 1]
        steps += ends.down_ptr[q] < ends.down_ptr[q + 1]
        mean += channels.weight[c] * steps
    return mean


@njit(cache=True, error_model="numpy")
def row_flows(
    flows: FlowArrays,
    scratch: Scratch,
    row: int,
    target: int,
    weight: float,
    links_out: Ints,
    count: int,
) -> int:
    """Add `weight` to ``scratch.load`` along the way from a row of `FlowArrays.hops` to a target.

    Appends the links that carried nothing before to `links_out`, which holds `count`; gives the new
    number. The caller takes the loads and sets them back to zero.
    """
    if flows.by_tables:
        switch, lid = flows.row_switch[row], flows.lid[target]
        for _ in range(flows.hops[row, target]):
            link = next_link(flows.tables, switch, lid)
            count = _add(scratch.load, link, weight, links_out, count)
            switch = flows.tables.link_switch[link]
        return count
    return _graph_flows(flows.graph, scratch, flows.graph.vertex[row], target, weight, links_out, count)


@njit(cache=True, error_model="numpy")
def _graph_flows(
    graph: GraphArrays,
    scratch: Scratch,
    source: int,
    target: int,
    weight: float,
    links_out: Ints,
    count: int,
) -> int:
    hops, paths, forwards = graph.hops_to[target], graph.paths_to[target], graph.forwards
    arc_ptr, arc_head = graph.arc_ptr, graph.arc_head
    link_ptr, link, share = graph.link_ptr, graph.link, graph.share
    amount, queue, load = scratch.amount, scratch.queue, scratch.load
    queue[0], amount[source] = source, weight
    tail, at = 1, 0
    while at < tail:
        u = queue[at]
        at += 1
        near = np.int64(hops[u]) - 1
        per_path = amount[u] / paths[u]
        amount[u] = 0.0
        if near < 0:
            continue
        for arc in range(arc_ptr[u], arc_ptr[u + 1]):
            v = arc_head[arc]
            if hops[v] != near or not (near == 0 or forwards[v]):
                continue
            part = per_path * paths[v]
            if amount[v] == 0.0:
                queue[tail] = v
                tail += 1
            amount[v] += part
            for e in range(link_ptr[arc], link_ptr[arc + 1]):
                if load[link[e]] == 0.0:
                    links_out[count] = link[e]
                    count += 1
                load[link[e]] += part * share[e]
    return count


@njit(cache=True, error_model="numpy")
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
    for e in range(ptr[bundle], ptr[bundle + 1]):
        count = _add(load, link[e], amount * share[e], links_out, count)
    return count


@njit(cache=True, error_model="numpy")
def _add(load: Floats, link: int, amount: float, links_out: Ints, count: int) -> int:
    if load[link] == 0.0:
        links_out[count] = link
        count += 1
    load[link] += amount
    return count


@njit(cache=True, error_model="numpy")
def count_channels(
    ends: Ends, hops: HopArray, source: Ints, target: Ints, channels: Channels, counts: Longs
) -> None:
    """Fill `counts` (int64[pairs]) with the channels of each pair of hosts."""
    for e in range(len(source)):
        counts[e] = pair_channels(ends, hops, source[e], target[e], channels)


@njit(cache=True, error_model="numpy")
def list_channels(
    ends: Ends,
    hops: HopArray,
    source: Ints,
    target: Ints,
    channels: Channels,
    first: Longs,
    out: Channels,
) -> None:
    """Write the channels of each pair of hosts at ``out[first[e]:first[e + 1]]``."""
    for e in range(len(source)):
        for c in range(pair_channels(ends, hops, source[e], target[e], channels)):
            at = first[e] + c
            out.source[at], out.port[at] = channels.source[c], channels.port[c]
            out.target[at], out.weight[at] = channels.target[c], channels.weight[c]


@njit(cache=True, error_model="numpy")
def add_cables(ptr: Longs, link: Ints, share: Floats, port: Ints, amount: Floats, load: Floats) -> None:
    """Add each amount to the cables of its port."""
    for e in range(len(port)):
        for at in range(ptr[port[e]], ptr[port[e] + 1]):
            load[link[at]] += amount[e] * share[at]


@njit(cache=True, error_model="numpy")
def mean_hops(ends: Ends, hops: HopArray, channels: Channels, distances: Floats) -> None:
    """Fill `distances` (float64[h, h]) with the mean hops of each pair of hosts; inf for none."""
    for i in range(len(distances)):
        for j in range(len(distances)):
            if i == j:
                distances[i, j] = 0.0
                continue
            count = pair_channels(ends, hops, i, j, channels)
            distances[i, j] = pair_hops(ends, hops, channels, count) if count > 0 else np.inf


@njit(cache=True, error_model="numpy")
def first_unconnected(ends: Ends, hops: HopArray, channels: Channels) -> tuple[int, int]:
    """The first ordered pair of hosts that no channel joins; (-1, -1) where there is none."""
    hosts = len(ends.rail_ptr) - 1
    for i in range(hosts):
        for j in range(hosts):
            if i != j and pair_channels(ends, hops, i, j, channels) == 0:
                return i, j
    return -1, -1
