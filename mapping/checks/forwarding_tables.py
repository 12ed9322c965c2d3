"""Faults of forwarding tables: broken routes, and credit loops.

A packet in the buffer at the end of a cable waits for space on the next one. If such waits form a cycle, a
credit loop, the fabric can deadlock (Dally and Seitz, "Deadlock-free message routing in multiprocessor
interconnection networks", 1987). Only the tables are checked: routing engines that use several virtual lanes
(LASH, DFSSSP, torus-2QoS) break cycles of the tables by lanes, which this check does not see.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from mapping.checks.finding import Finding, Severity, Subject, cable_text
from mapping.routing.forwarding_tables import vertex_of_switch
from mapping.routing.kernels import forwarding_tables as kernel
from mapping.routing.kernels.forwarding_tables import TableArrays
from registry.model import Fabric, Ints, Longs

SHOWN = 6
"""Largest number of cables of a cycle named in a finding."""
_WHY = {
    kernel.UNROUTED: "{switch} has no entry for the destination",
    kernel.NOT_CABLED: "{switch} sends packets to a port without a cable",
    kernel.WRONG_END: "{switch} sends packets to another device",
    kernel.LOOPS: "packets loop through {switch}",
}


def find_unreachable(subject: Subject) -> Iterator[Finding]:
    """Return findings for walks from switches with hosts to adapter LIDs, by the place where they fail."""
    fabric, tables = subject.fabric, subject.tables
    if tables is None or fabric.tables is None:
        return
    starts, lids = senders(tables), np.flatnonzero(tables.lid_port >= 0).astype(np.int32)
    counts = np.zeros((kernel.ENDS, len(tables.ports)), np.int64)
    example = np.zeros((kernel.ENDS, len(tables.ports), 2), np.int32)
    kernel.ends_of_walks(tables, lids, starts, counts, example)
    vertex = vertex_of_switch(fabric, fabric.tables)
    total = len(starts) * len(lids)
    for end, why in _WHY.items():
        for switch in np.flatnonzero(counts[end]).tolist():
            start, lid = example[end, switch].tolist()
            number, name = int(counts[end, switch]), fabric.names[vertex[switch]]
            reason, owner = why.format(switch=name), _owner(fabric, tables, lid)
            text = (
                f"{number:,} of {total:,} routes are broken: {reason}; for example the route from "
                f"{fabric.names[vertex[start]]} to LID {lid} of {owner}"
            )
            yield Finding(Severity.ERROR, name, text, number)


def senders(tables: TableArrays) -> Ints:
    """Return the switches (table rows, int32) that hosts are attached to and that are in the fabric."""
    to_hosts = np.append(tables.link_port >= 0, False)
    return np.flatnonzero(to_hosts[tables.port_link].any(axis=1)).astype(np.int32)


def _owner(fabric: Fabric, tables: TableArrays, lid: int) -> str:
    """Return the name of the host that owns a LID."""
    adapters = fabric.adapters
    port = int(tables.lid_port[lid])
    return fabric.names[int(adapters.host[adapters.port_adapter[port]])]


def find_credit_loops(subject: Subject) -> Iterator[Finding]:
    """Return one finding per group of connected cycles, with one of its shortest cycles."""
    fabric, tables = subject.fabric, subject.tables
    if tables is None:
        return
    channels = switch_channels(fabric, tables)
    graph = waiting_graph(tables, channels)
    count, component = connected_components(graph, connection="strong")
    sizes = np.bincount(component, minlength=count)
    for number in np.flatnonzero(sizes > 1).tolist():
        members = np.flatnonzero(component == number)
        cycle = [cable_text(fabric, int(channels[c])) for c in _cycle(graph, members).tolist()]
        more = f" and {len(cycle) - SHOWN} more" if len(cycle) > SHOWN else ""
        text = (
            f"{len(members)} cable directions can wait for each other in cycles (unless virtual lanes keep "
            f"them apart), such as {len(cycle)}: {'; '.join(cycle[:SHOWN])}{more}"
        )
        yield Finding(Severity.WARNING, cycle[0], text, len(members))


def switch_channels(fabric: Fabric, tables: TableArrays) -> Longs:
    """Return the links (int64[c]) from a switch with a table to another one."""
    into = tables.link_switch >= 0
    leaving = np.zeros(len(fabric.links), np.bool_)
    leaving[tables.port_link[tables.port_link >= 0]] = True
    return np.flatnonzero(into & leaving)


def waiting_graph(tables: TableArrays, channels: Longs) -> csr_array:
    """Return a sparse matrix (bool[c, c]) with an entry if a packet on one channel may wait for another."""
    channel_of_link: Ints = np.full(len(tables.link_switch), -1, np.int32)
    channel_of_link[channels] = np.arange(len(channels))
    waits = np.zeros((len(channels), 256), np.bool_)
    lids = np.flatnonzero(tables.lid_port >= 0).astype(np.int32)
    kernel.waits_for(tables, lids, senders(tables), channel_of_link, waits)
    holds, port = np.nonzero(waits)
    wanted = channel_of_link[tables.port_link[tables.link_switch[channels[holds]], port]]
    shape = (len(channels), len(channels))
    return csr_array((np.ones(len(holds), np.int8), (holds, wanted)), shape=shape)


def _cycle(graph: csr_array, members: Longs) -> Longs:
    """Return the channels of a shortest cycle through the first member of a component, in order."""
    inside = graph[members][:, members]
    order, before = breadth_first_order(inside, 0, directed=True)
    back = np.flatnonzero(inside[:, [0]].toarray().ravel())
    last = int(next(channel for channel in order.tolist() if channel in set(back.tolist())))
    path = [last]
    while path[-1] != 0:
        path.append(int(before[path[-1]]))
    cycle: Longs = members[np.array(path[::-1])]
    return cycle
