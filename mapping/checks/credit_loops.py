"""Cables that may wait for each other in a circle: packets then block each other for good.

A packet in the buffer at the end of a cable waits for room on the next one. Where such waits close a
circle, the fabric can lock up (Dally and Seitz, "Deadlock-free message routing in multiprocessor
interconnection networks", 1987). Tables alone are looked at: routing engines that use several virtual
lanes (LASH, DFSSSP, torus-2QoS) break circles in the tables by lanes, which this check does not see.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from mapping.checks.finding import Finding, Severity, Subject, cable_text
from mapping.checks.reachability import senders
from mapping.routing.kernels import table_walks as kernel
from mapping.routing.kernels.tables import TableArrays
from registry.model import Fabric, Ints, Longs

NAME = "credit-loops"
SHOWN = 6
"""Cables of a circle that a finding names."""


def find(subject: Subject) -> Iterator[Finding]:
    """A finding a knot of circles, with one shortest circle of it."""
    fabric, tables = subject.fabric, subject.tables
    if tables is None:
        return
    channels = switch_channels(fabric, tables)
    graph = waiting_graph(tables, channels)
    count, knot = connected_components(graph, connection="strong")
    sizes = np.bincount(knot, minlength=count)
    for number in np.flatnonzero(sizes > 1).tolist():
        members = np.flatnonzero(knot == number)
        circle = [cable_text(fabric, int(channels[c])) for c in _circle(graph, members).tolist()]
        more = f" and {len(circle) - SHOWN} more" if len(circle) > SHOWN else ""
        text = (
            f"{len(members)} cable directions can wait for each other in circles (unless virtual lanes keep "
            f"them apart), such as {len(circle)}: {'; '.join(circle[:SHOWN])}{more}"
        )
        yield Finding(check=NAME, severity=Severity.WARNING, subject=circle[0], text=text, count=len(members))


def switch_channels(fabric: Fabric, tables: TableArrays) -> Longs:
    """int64[c]: links from a switch that has a table to another one."""
    into = tables.link_switch >= 0
    leaving = np.zeros(len(fabric.links), np.bool_)
    leaving[tables.port_link[tables.port_link >= 0]] = True
    return np.flatnonzero(into & leaving)


def waiting_graph(tables: TableArrays, channels: Longs) -> csr_array:
    """Sparse bool[c, c]: an entry where a packet on one channel may wait for another."""
    channel_of_link: Ints = np.full(len(tables.link_switch), -1, np.int32)
    channel_of_link[channels] = np.arange(len(channels))
    waits = np.zeros((len(channels), 256), np.bool_)
    lids = np.flatnonzero(tables.lid_port >= 0).astype(np.int32)
    kernel.waits_for(tables, lids, senders(tables), channel_of_link, waits)
    holds, port = np.nonzero(waits)
    wanted = channel_of_link[tables.port_link[tables.link_switch[channels[holds]], port]]
    shape = (len(channels), len(channels))
    return csr_array((np.ones(len(holds), np.int8), (holds, wanted)), shape=shape)


def _circle(graph: csr_array, members: Longs) -> Longs:
    """Channels of a shortest circle through the first member of a knot, in order."""
    inside = graph[members][:, members]
    order, before = breadth_first_order(inside, 0, directed=True)
    back = np.flatnonzero(inside[:, [0]].toarray().ravel())
    last = int(next(at for at in order.tolist() if at in set(back.tolist())))
    way = [last]
    while way[-1] != 0:
        way.append(int(before[way[-1]]))
    found: Longs = members[np.array(way[::-1])]
    return found
