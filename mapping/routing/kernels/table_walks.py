"""Where all walks along forwarding tables end, and which cables wait for which."""

from __future__ import annotations

import numpy as np
from numba import njit

from mapping.routing.kernels.tables import TableArrays
from registry.model import NO_ROUTE, Bools, Ints, Longs

DELIVERED = 1
UNROUTED = 2
NOT_CABLED = 3
WRONG_END = 4
LOOPS = 5
ENDS = 6
"""Kinds of ends, with 0 for none."""
_ON_WALK = 255


@njit(cache=True, nogil=True)
def ends_of_walks(tables: TableArrays, lids: Ints, starts: Ints, counts: Longs, example: Ints) -> None:
    """Count by kind of end, and by the switch where they end, the walks from switches to LIDs.

    Parameters
    ----------
    lids : int32[t]
    starts : int32[k]
        Switches, rows of the tables.
    counts : int64[ENDS, s]
        Added to. A walk that loops ends at the lowest switch of its loop.
    example : int32[ENDS, s, 2]
        Start and LID of a walk that is counted there.
    """
    switches = len(tables.ports)
    kind = np.zeros(switches, np.uint8)
    where = np.zeros(switches, np.int32)
    walk = np.zeros(switches, np.int32)
    for lid in lids:
        kind[:] = 0
        for start in starts:
            at, length = start, 0
            end, last = 0, start
            while end == 0:
                if kind[at] == _ON_WALK:
                    end, last = LOOPS, _lowest(walk, length, at)
                elif kind[at] != 0:
                    end, last = kind[at], where[at]
                else:
                    kind[at] = _ON_WALK
                    walk[length] = at
                    length += 1
                    port = tables.ports[at, lid]
                    link = tables.port_link[at, port]
                    last = at
                    if link < 0:
                        end = UNROUTED if port == NO_ROUTE else (WRONG_END if port == 0 else NOT_CABLED)
                    elif tables.link_port[link] >= 0:
                        end = DELIVERED if tables.link_port[link] == tables.lid_port[lid] else WRONG_END
                    elif tables.link_switch[link] < 0:
                        end = WRONG_END
                    else:
                        at = tables.link_switch[link]
            for step in range(length):
                kind[walk[step]], where[walk[step]] = end, last
            if counts[end, last] == 0:
                example[end, last, 0], example[end, last, 1] = start, lid
            counts[end, last] += 1


@njit(cache=True, nogil=True)
def _lowest(walk: Ints, length: int, first: int) -> int:
    """Lowest switch from the last visit of `first` on."""
    lowest, step = first, length - 1
    while walk[step] != first:
        lowest = min(lowest, walk[step])
        step -= 1
    return lowest


@njit(cache=True, nogil=True)
def waits_for(tables: TableArrays, lids: Ints, starts: Ints, channel_of_link: Ints, waits: Bools) -> None:
    """Mark which cables between switches a packet may hold while it waits for which.

    Parameters
    ----------
    lids : int32[t]
    starts : int32[k]
        Switches that hosts send from.
    channel_of_link : int32[m]
        Number of each link that leads from a switch to a switch; -1 others.
    waits : bool[channels, 256]
        Set where a packet that came by a channel leaves by a port of the switch at its end.
    """
    seen = np.full(len(tables.ports), -1, np.int64)
    for number in range(len(lids)):
        lid = lids[number]
        for start in starts:
            at, came = start, -1
            while True:
                port = tables.ports[at, lid]
                link = tables.port_link[at, port]
                if link < 0 or channel_of_link[link] < 0:
                    break
                if came >= 0:
                    waits[came, port] = True
                if seen[at] == number:
                    break
                seen[at] = number
                came, at = channel_of_link[link], tables.link_switch[link]
