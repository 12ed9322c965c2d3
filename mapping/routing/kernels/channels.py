"""Splitting of a pair's bytes over adapters, ports and LIDs: channels (port, port, target) with weights.

A target is the destination of a routing: the vertex that a port is attached to (paths of a graph) or one of
its LIDs (tables). The weights follow the rails rule: even over the adapter pairs that the routing connects,
within one even over its port pairs, within one even over the LIDs of the target port.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.kernels.decorators import kernel
from mapping.routing.kernels.paths import NO_PATH, HopArray
from registry.model import Bools, Floats, Int8s, Ints, Longs


class Ends(NamedTuple):
    """Hosts, their rails (adapters), the rails' ports, and the ports' cables and targets."""

    same_rail: bool
    """True if only rails of the same number communicate."""
    rail_ptr: Longs
    rail_number: Ints
    """int64[h + 1] and int32[r]: Rails of each host, and their number within it."""
    port_ptr: Longs
    port_row: Ints
    """int64[r + 1] and int32[p]: Ports of each rail; row of ``FlowArrays.hops`` where a port's traffic
    starts, -1 if none."""
    target_ptr: Longs
    target: Ints
    """int64[p + 1] and int32[t]: Columns of ``FlowArrays.hops`` for each port."""
    up_ptr: Longs
    up_link: Ints
    up_share: Floats
    """int64[p + 1], int32, float64: Cables from a port to the vertex that it is attached to: rows of
    ``fabric.links`` and the fraction of the port's bytes on each. Empty if the routing itself starts at the
    port."""
    down_ptr: Longs
    down_link: Ints
    down_share: Floats
    """int64[p + 1], int32, float64: The same in the direction of the port."""


class Channels(NamedTuple):
    """Buffer for the channels of a pair: source port, target port, target, weight."""

    source: Ints
    port: Ints
    target: Ints
    weight: Floats


def new_channels(count: int) -> Channels:
    """Return a buffer for `count` channels."""
    buffer = np.zeros((3, count), np.int32)
    return Channels(buffer[0], buffer[1], buffer[2], np.zeros(count))


@kernel
def pair_channels(ends: Ends, hops: HopArray, i: int, j: int, out: Channels) -> int:
    """Write the channels from host `i` to host `j` that the routing connects; return their number."""
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


@kernel
def pair_hops(ends: Ends, hops: HopArray, channels: Channels, count: int) -> float:
    """Return the mean links of a pair's channels, including the hosts' own cables."""
    mean = 0.0
    for c in range(count):
        p, q = channels.source[c], channels.port[c]
        steps = int(hops[ends.port_row[p], channels.target[c]])
        steps += ends.up_ptr[p] < ends.up_ptr[p + 1]
        steps += ends.down_ptr[q] < ends.down_ptr[q + 1]
        mean += channels.weight[c] * steps
    return mean


@kernel
def count_channels(
    ends: Ends, hops: HopArray, source: Ints, target: Ints, channels: Channels, counts: Longs
) -> None:
    """Fill `counts` (int64[pairs]) with the number of channels of each pair of hosts."""
    for e in range(len(source)):
        counts[e] = pair_channels(ends, hops, source[e], target[e], channels)


@kernel
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
            k = first[e] + c
            out.source[k], out.port[k] = channels.source[c], channels.port[c]
            out.target[k], out.weight[k] = channels.target[c], channels.weight[c]


@kernel
def add_cables(ptr: Longs, link: Ints, share: Floats, port: Ints, amount: Floats, load: Floats) -> None:
    """Add each amount to the cables of its port."""
    for e in range(len(port)):
        for k in range(ptr[port[e]], ptr[port[e] + 1]):
            load[link[k]] += amount[e] * share[k]


@kernel
def mean_hops(
    ends: Ends, hops: HopArray, channels: Channels, host: Ints, other: Ints, distances: Floats
) -> None:
    """Fill `distances` (float64[n, n]) with the mean hops between `host`; inf if not connected.

    The diagonal holds the hops from ``host[a]`` to ``other[a]``; 0 if they are the same host.
    """
    for a in range(len(host)):
        for b in range(len(host)):
            i, j = host[a], host[b] if a != b else other[b]
            if i == j:
                distances[a, b] = 0.0
                continue
            count = pair_channels(ends, hops, i, j, channels)
            distances[a, b] = pair_hops(ends, hops, channels, count) if count > 0 else np.inf


@kernel
def first_unconnected(ends: Ends, hops: HopArray, channels: Channels) -> tuple[int, int]:
    """Return the first ordered pair of hosts without a channel, or (-1, -1)."""
    hosts = len(ends.rail_ptr) - 1
    for i in range(hosts):
        for j in range(hosts):
            if i != j and pair_channels(ends, hops, i, j, channels) == 0:
                return i, j
    return -1, -1


@kernel
def single_codes(hops: HopArray, row: Ints, target: Ints, up: Bools, down: Bools, links: Int8s) -> None:
    """Fill `links` (uint8[n, m]) with the links from each row to each target; all must be connected."""
    for a in range(len(row)):
        for b in range(len(target)):
            links[a, b] = hops[row[a], target[b]] + up[a] + down[b]


@kernel
def single_hops(hops: HopArray, row: Ints, target: Ints, up: Bools, down: Bools, distances: Floats) -> None:
    """Fill `distances` (float64[n, m]) with the links from each row to each target; inf if not connected.

    Args:
        row (int32[n]): Rows of `hops`; -1 if none.
        target (int32[m]): Columns of `hops`.
        up, down (bool[n], bool[m]): True if a cable of the host's own is counted.
    """
    for a in range(len(row)):
        for b in range(len(target)):
            steps = hops[row[a], target[b]] if row[a] >= 0 else NO_PATH
            distances[a, b] = steps + up[a] + down[b] if steps != NO_PATH else np.inf
