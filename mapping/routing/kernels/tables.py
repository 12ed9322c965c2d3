"""Walks along forwarding tables."""

from __future__ import annotations

from typing import NamedTuple

from numba import njit

from mapping.routing.kernels.paths import NO_PATH, HopArray
from registry.model import Floats, Int8s, Ints


class TableArrays(NamedTuple):
    """Forwarding tables bound to the links of a fabric.

    Attributes
    ----------
    ports : uint8[s, lids]
        Port by switch and LID.
    port_link : int32[s, 256]
        Row of ``fabric.links`` that leaves a switch by a port; -1 none.
    link_switch : int32[m]
        Switch (row of `ports`) at the far end of each link; -1 none, or one without a table.
    link_port : int32[m]
        Adapter port at the far end of each link; -1 none.
    lid_port : int32[lids]
        Adapter port that owns each LID; -1 none.
    """

    ports: Int8s
    port_link: Ints
    link_switch: Ints
    link_port: Ints
    lid_port: Ints


@njit(cache=True, nogil=True)
def next_link(tables: TableArrays, switch: int, lid: int) -> int:
    """Link by which a switch sends what is for a LID; -1 where it sends it nowhere."""
    return int(tables.port_link[switch, tables.ports[switch, lid]])


@njit(cache=True, nogil=True)
def walk_hops(tables: TableArrays, switch: int, lid: int) -> int:
    """Links from a switch to the port that owns a LID; -1 where the walk ends elsewhere or loops."""
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


@njit(cache=True, nogil=True)
def all_hops(tables: TableArrays, switches: Ints, lids: Ints, hops: HopArray) -> None:
    """Fill ``hops`` (int16[k, t]) with the walks from each of `switches` to each of `lids`."""
    for r in range(len(switches)):
        for t in range(len(lids)):
            steps = walk_hops(tables, switches[r], lids[t]) if switches[r] >= 0 else -1
            hops[r, t] = steps if steps >= 0 else NO_PATH


@njit(cache=True, nogil=True)
def carry(
    tables: TableArrays, switch: Ints, lid: Ints, amount: Floats, link_load: Floats, hops: Ints
) -> None:
    """Walk each demand from its first switch to its LID.

    Parameters
    ----------
    switch, lid : int32[d]
    amount : float64[d]
        Bytes.
    link_load : float64[m]
        Added to.
    hops : int32[d]
        Filled with the links walked; -1 where the walk delivers nothing, which then loads nothing.
    """
    for d in range(len(switch)):
        hops[d] = walk_hops(tables, switch[d], lid[d]) if switch[d] >= 0 else -1
        at = switch[d]
        for _ in range(hops[d]):
            link = next_link(tables, at, lid[d])
            link_load[link] += amount[d]
            at = tables.link_switch[link]
