"""Forwarding tables with random faults, and slow walks along them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mapping.routing.forwarding_tables import bound_tables
from mapping.routing.kernels.forwarding_tables import TableArrays
from registry.model import NO_ROUTE, Fabric, ForwardingTables
from tests.support.infiniband_data import infiniband


def tables_of(fabric: Fabric) -> ForwardingTables:
    assert fabric.tables is not None
    return fabric.tables


def broken(name: str, seed: int, entries: int = 40) -> Fabric:
    """A real fabric with some entries of its tables changed at random."""
    fabric = infiniband(name)
    generator = np.random.default_rng(seed)
    tables = tables_of(fabric)
    ports = np.array(tables.ports)
    row, lid = (
        generator.integers(len(ports), size=entries),
        generator.integers(1, ports.shape[1], size=entries),
    )
    ports[row, lid] = generator.choice([NO_ROUTE, 0, 1, 2, 3, 5, 7, 9, 200], size=entries)
    return replace(fabric, tables=replace(tables, ports=ports))


def walk(bound: TableArrays, start: int, lid: int) -> tuple[str, list[int]]:
    """How a walk from a switch (row of the tables) ends, and the links that it takes; step by step."""
    taken, seen = list[int](), set[int]()
    at = start
    while at not in seen:
        seen.add(at)
        port = int(bound.ports[at, lid])
        link = int(bound.port_link[at, port])
        if link < 0:
            return ("unrouted" if port == NO_ROUTE else "wrong" if port == 0 else "not cabled"), taken
        taken.append(link)
        if bound.link_port[link] >= 0:
            return ("delivered" if bound.link_port[link] == bound.lid_port[lid] else "wrong"), taken
        if bound.link_switch[link] < 0:
            return "wrong", taken
        at = int(bound.link_switch[link])
    return "loops", taken


def all_walks(fabric: Fabric) -> Iterator[tuple[str, list[int]]]:
    """Walks from all switches that a host hangs on to all LIDs of adapters."""
    bound = bound_tables(fabric)
    leaves = {
        s
        for s in range(len(bound.ports))
        for link in bound.port_link[s]
        if link >= 0 and bound.link_port[link] >= 0
    }
    for start in sorted(leaves):
        for lid in np.flatnonzero(bound.lid_port >= 0).tolist():
            yield walk(bound, start, lid)
