"""Forwarding tables as a subnet manager might repair them after a change of the cables: an approximation.

Entries that still lead to their LID stay. A broken entry takes the first link of a shortest path, of several
the port with the fewest LIDs so far, LIDs in ascending order, as OpenSM's min-hop routing chooses ports. A
switch at the end of an added cable moves LIDs to it: those that get a shorter path, and of those with an
equally long one as many as balance its ports. If nothing changed, the tables stay as they are.

A real subnet manager computes all entries anew by its own algorithm (fat-tree, up*/down*, Nue, ...), so its
tables may differ; neither deadlocks nor service levels are considered.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from mapping.routing.forwarding_tables import bound_tables
from mapping.routing.kernels.forwarding_tables import TableArrays, all_hops
from mapping.routing.kernels.paths import NO_PATH
from registry.errors import InvalidValue
from registry.model import Bools, Fabric, Floats, Int8s, Ints, Longs

PORTS = 256


def repair_tables(fabric: Fabric, added: Longs) -> Fabric:
    """Return a changed fabric with its tables repaired.

    Parameters
    ----------
    fabric : Fabric
        The fabric after the change with the tables from before it.
    added : int64[k]
        Rows of ``fabric.links`` that the change added.

    Raises
    ------
    InvalidValue
        The fabric has no tables.
    """
    if fabric.tables is None:
        raise InvalidValue("Fabric.tables", "no forwarding tables are known")
    bound = bound_tables(fabric)
    lids = np.flatnonzero(bound.lid_port >= 0).astype(np.int32)
    ports = np.array(fabric.tables.ports)
    _replace_broken(bound, lids, ports)
    _use_added(fabric, bound._replace(ports=ports), lids, ports, added)
    return replace(fabric, tables=replace(fabric.tables, ports=ports))


def _hops(bound: TableArrays, lids: Ints) -> Longs:
    """Return the links (int64[s, lids]) from each switch to each LID; `NO_PATH` if the walk fails."""
    hops = np.empty((len(bound.ports), len(lids)), np.int16)
    all_hops(bound, np.arange(len(bound.ports), dtype=np.int32), lids, hops)
    return hops.astype(np.int64)


def _replace_broken(bound: TableArrays, lids: Ints, ports: Int8s) -> None:
    """Replace in `ports` the entries whose walk fails although its LID can be reached."""
    leaf, last_port = _ends(bound, lids)
    distance = _distances(bound)
    reachable: Bools = (leaf >= 0) & np.isfinite(distance[:, leaf])
    broken = (_hops(bound, lids) == NO_PATH) & reachable
    for switch in np.flatnonzero(broken.any(axis=1)).tolist():
        out = np.flatnonzero(bound.port_link[switch] >= 0)
        following = bound.link_switch[bound.port_link[switch, out]]
        nearer = (following >= 0)[:, None] & (distance[following] == distance[switch] - 1)
        used = np.bincount(ports[switch, lids[~broken[switch]]], minlength=PORTS).tolist()
        candidates: dict[int, list[int]] = {}
        for number in np.flatnonzero(broken[switch]).tolist():
            end = int(leaf[number])
            if end == switch:
                port = int(last_port[number])
            else:
                if end not in candidates:
                    candidates[end] = out[nearer[:, end]].tolist()
                port = min(candidates[end], key=used.__getitem__)
            ports[switch, lids[number]] = port
            used[port] += 1


def _use_added(fabric: Fabric, bound: TableArrays, lids: Ints, ports: Int8s, added: Longs) -> None:
    """Move LIDs in `ports` to added links between switches, at the switch that each link leaves.

    A LID moves only if its path gets no longer, by lengths from before all moves: each step of a new path
    shortens this length, so no walk can loop.
    """
    if not len(added):
        return
    hops = _hops(bound, lids)
    for row in added.tolist():
        following = int(bound.link_switch[row])
        switches, numbers = np.nonzero(bound.port_link == row)
        if following < 0 or not len(switches):
            continue
        switch, port = int(switches[0]), int(numbers[0])
        over, now = hops[following] + 1, hops[switch]
        possible = hops[following] != NO_PATH
        ports[switch, lids[possible & (over < now)]] = port
        _balance(ports[switch], lids, np.flatnonzero(possible & (over == now)), port)


def _balance(entries: Int8s, lids: Ints, movable: Longs, port: int) -> None:
    """Move LIDs to a port, each time from the port with most, until it has as many as they."""
    used = np.bincount(entries[lids], minlength=PORTS).tolist()
    waiting: dict[int, list[int]] = {}
    for number in movable[::-1].tolist():
        waiting.setdefault(int(entries[lids[number]]), []).append(int(lids[number]))
    waiting.pop(port, None)
    while waiting:
        fullest = max(waiting, key=lambda one: (used[one], -one))
        if used[fullest] <= used[port] + 1:
            return
        entries[waiting[fullest].pop()] = port
        used[fullest] -= 1
        used[port] += 1
        if not waiting[fullest]:
            del waiting[fullest]


def _ends(bound: TableArrays, lids: Ints) -> tuple[Longs, Longs]:
    """Return the switch (int64[lids]) that each LID's port is cabled to, and the port there; -1 if none."""
    switch, port = np.nonzero(bound.port_link >= 0)
    owner = bound.link_port[bound.port_link[switch, port]]
    rows = np.flatnonzero(owner >= 0)
    count = int(bound.lid_port.max(initial=-1)) + 1
    rows = rows[owner[rows] < count]
    found = np.full((2, count), -1, np.int64)
    found[0, owner[rows]], found[1, owner[rows]] = switch[rows], port[rows]
    return found[0, bound.lid_port[lids]], found[1, bound.lid_port[lids]]


def _distances(bound: TableArrays) -> Floats:
    """Return the links (float64[s, s]) of the shortest paths between switches; inf if there is none."""
    switch, port = np.nonzero(bound.port_link >= 0)
    following = bound.link_switch[bound.port_link[switch, port]]
    inner = following >= 0
    count = len(bound.ports)
    graph = csr_array((np.ones(int(inner.sum())), (switch[inner], following[inner])), shape=(count, count))
    found: Floats = np.asarray(shortest_path(graph, method="D", unweighted=True))
    return found
