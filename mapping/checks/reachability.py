"""Walks along the forwarding tables that do not arrive: unreachable pairs and loops."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mapping.checks.finding import Finding, Severity, Subject
from mapping.routing.forwarding_tables import vertex_of_switch
from mapping.routing.kernels import forwarding_tables as kernel
from mapping.routing.kernels.forwarding_tables import TableArrays
from registry.model import Fabric, Ints

NAME = "reachability"
_WHY = {
    kernel.UNROUTED: "{switch} has no route for it",
    kernel.NOT_CABLED: "{switch} sends it to a port without a cable",
    kernel.WRONG_END: "{switch} sends it to another device",
    kernel.LOOPS: "it loops through {switch}",
}


def find(subject: Subject) -> Iterator[Finding]:
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
            reason = why.format(switch=name)
            text = (
                f"{number} of {total} paths from a switch with hosts to a LID do not arrive: {reason}; "
                f"for example from {fabric.names[vertex[start]]} to LID {lid} of {owner(fabric, tables, lid)}"
            )
            yield Finding(check=NAME, severity=Severity.ERROR, subject=name, text=text, count=number)


def senders(tables: TableArrays) -> Ints:
    """Return the switches (table rows, int32) that hosts are attached to and that are in the fabric."""
    to_hosts = np.append(tables.link_port >= 0, False)
    return np.flatnonzero(to_hosts[tables.port_link].any(axis=1)).astype(np.int32)


def owner(fabric: Fabric, tables: TableArrays, lid: int) -> str:
    """Return the name of the host that owns a LID."""
    adapters = fabric.adapters
    port = int(tables.lid_port[lid])
    return fabric.names[int(adapters.host[adapters.port_adapter[port]])]
