"""Walks along forwarding tables: lengths, loads, where they end, and which cables wait for which."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mapping.kernels.decorators import allocating, kernel
from mapping.routing.kernels.paths import NO_PATH, HopArray
from registry.model import NO_ROUTE, Bools, Floats, Int8s, Ints, Longs


class TableArrays(NamedTuple):
    """Forwarding tables with ports and LIDs resolved to the links of a fabric."""

    ports: Int8s
    """uint8[s, lids]: Port by switch and LID."""
    port_link: Ints
    """int32[s, 256]: Row of ``fabric.links`` that leaves a switch by a port; -1 if none."""
    link_switch: Ints
    """int32[m]: Switch (row of `ports`) at the end of each link; -1 if it is none or has no table."""
    link_port: Ints
    """int32[m]: Adapter port at the end of each link; -1 if none."""
    lid_port: Ints
    """int32[lids]: Adapter port that owns each LID; -1 if none."""


@kernel
def next_link(tables: TableArrays, switch: int, lid: int) -> int:
    """Return the link by which a switch sends packets for a LID; -1 if there is none."""
    return int(tables.port_link[switch, tables.ports[switch, lid]])


@kernel
def walk_hops(tables: TableArrays, switch: int, lid: int) -> int:
    """Return the links from a switch to the port that owns a LID; -1 if the walk ends elsewhere or loops."""
    hops = 0
    while hops <= len(tables.ports):
        link = next_link(tables, switch, lid)
        if link < 0:
            return -1
        hops += 1
        if tables.link_port[link] >= 0:
            return hops if tables.link_port[link] == tables.lid_port[lid] else -1
        switch = tables.link_switch[link]
        if switch < 0:
            return -1
    return -1


@kernel
def all_hops(tables: TableArrays, switches: Ints, lids: Ints, hops: HopArray) -> None:
    """Fill ``hops`` (int16[k, t]) with the links from each of `switches` to each of `lids`."""
    for r in range(len(switches)):
        for t in range(len(lids)):
            steps = walk_hops(tables, switches[r], lids[t]) if switches[r] >= 0 else -1
            hops[r, t] = steps if steps >= 0 else NO_PATH


@kernel
def carry(
    tables: TableArrays, switch: Ints, lid: Ints, amount: Floats, link_load: Floats, hops: Ints
) -> None:
    """Route each demand from its first switch to its LID.

    Args:
        switch, lid (int32[d]):
        amount (float64[d]): Bytes.
        link_load (float64[m]): Increased.
        hops (int32[d]): Filled with the links used; -1 if the demand is not delivered, which then loads
            nothing.
    """
    for d in range(len(switch)):
        hops[d] = walk_hops(tables, switch[d], lid[d]) if switch[d] >= 0 else -1
        current = switch[d]
        for _ in range(hops[d]):
            link = next_link(tables, current, lid[d])
            link_load[link] += amount[d]
            current = tables.link_switch[link]


DELIVERED = 1
UNROUTED = 2
NOT_CABLED = 3
WRONG_END = 4
LOOPS = 5
ENDS = 6
"""Kinds of ends of a walk; 0 for none."""
_ON_WALK = 255


@allocating
def ends_of_walks(tables: TableArrays, lids: Ints, starts: Ints, counts: Longs, example: Ints) -> None:
    """Count the walks from switches to LIDs by kind of end and by the switch where they end.

    Args:
        lids (int32[t]):
        starts (int32[k]): Switches, rows of the tables.
        counts (int64[ENDS, s]): Increased. A walk that loops ends at the lowest switch of its loop.
        example (int32[ENDS, s, 2]): Start and LID of one of the walks counted there.
    """
    switches = len(tables.ports)
    kind = np.zeros(switches, np.uint8)
    where = np.zeros(switches, np.int32)
    walk = np.zeros(switches, np.int32)
    for lid in lids:
        kind[:] = 0
        for start in starts:
            current, length = start, 0
            end, last = 0, start
            while end == 0:
                if kind[current] == _ON_WALK:
                    end, last = LOOPS, _lowest(walk, length, current)
                elif kind[current] != 0:
                    end, last = kind[current], where[current]
                else:
                    kind[current] = _ON_WALK
                    walk[length] = current
                    length += 1
                    port = tables.ports[current, lid]
                    link = tables.port_link[current, port]
                    last = current
                    if link < 0:
                        end = UNROUTED if port == NO_ROUTE else (WRONG_END if port == 0 else NOT_CABLED)
                    elif tables.link_port[link] >= 0:
                        end = DELIVERED if tables.link_port[link] == tables.lid_port[lid] else WRONG_END
                    elif tables.link_switch[link] < 0:
                        end = WRONG_END
                    else:
                        current = tables.link_switch[link]
            for step in range(length):
                kind[walk[step]], where[walk[step]] = end, last
            if counts[end, last] == 0:
                example[end, last, 0], example[end, last, 1] = start, lid
            counts[end, last] += 1


@kernel
def _lowest(walk: Ints, length: int, first: int) -> int:
    """Return the lowest switch since the last visit of `first`."""
    lowest, step = first, length - 1
    while walk[step] != first:
        lowest = min(lowest, walk[step])
        step -= 1
    return lowest


@allocating
def waits_for(tables: TableArrays, lids: Ints, starts: Ints, channel_of_link: Ints, waits: Bools) -> None:
    """Mark for each cable between switches the ports that a packet on it may wait for.

    Args:
        lids (int32[t]):
        starts (int32[k]): Switches that hosts send from.
        channel_of_link (int32[m]): Number of each link from a switch to a switch; -1 for other links.
        waits (bool[channels, 256]): Set if a packet that arrives by a channel leaves by a port of the switch
            at its end.
    """
    seen = np.full(len(tables.ports), -1, np.int64)
    for number in range(len(lids)):
        lid = lids[number]
        for start in starts:
            current, came = start, -1
            while True:
                port = tables.ports[current, lid]
                link = tables.port_link[current, port]
                if link < 0 or channel_of_link[link] < 0:
                    break
                if came >= 0:
                    waits[came, port] = True
                if seen[current] == number:
                    break
                seen[current] = number
                came, current = channel_of_link[link], tables.link_switch[link]
