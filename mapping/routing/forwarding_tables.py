"""Routes by the forwarding tables of the switches, from LID to LID.

A table gives the port by which a packet for a LID leaves a switch; the load is put on that port's cable. A
port with LMC > 0 owns several LIDs, and traffic to it is divided evenly over them.

Forwarding tables as a subnet manager might repair them after a change of the cables: an approximation.

Entries that still lead to their LID stay. A broken entry takes the first link of a shortest path, of several
the port with the fewest LIDs so far, LIDs in ascending order, as OpenSM's min-hop routing chooses ports. A
switch at the end of an added cable moves LIDs to it: those that get a shorter path, and of those with an
equally long one as many as balance its ports. If nothing changed, the tables stay as they are.

A real subnet manager computes all entries anew by its own algorithm (fat-tree, up*/down*, Nue, ...), so its
tables may differ; neither deadlocks nor service levels are considered.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from mapping.deadline import each
from mapping.routing.kernels import forwarding_tables as kernel
from mapping.routing.kernels.channels import Ends
from mapping.routing.kernels.flows import TABLES, FlowArrays
from mapping.routing.kernels.forwarding_tables import TableArrays, all_hops
from mapping.routing.kernels.paths import NO_PATH, HopArray
from mapping.routing.network import EndPoints, empty, empty_flow_arrays, end_points
from mapping.routing.routes import ALL_CONNECTED, SAME_RAIL, Routes
from registry.errors import InvalidValue, UnreachablePair
from registry.model import NO_ROUTE, SWITCH, Bools, Fabric, Floats, ForwardingTables, Int8s, Ints, Longs


def build(fabric: Fabric, hosts: ArrayLike, *, rails: str = ALL_CONNECTED) -> TableRoutes:
    """Return routes by ``fabric.tables``."""
    if fabric.tables is None:
        raise InvalidValue("Fabric.tables", "no forwarding tables are known")
    return TableRoutes(fabric, fabric.tables, end_points(fabric, hosts), rails)


def complete(fabric: Fabric) -> bool:
    """Return True if the fabric has tables that connect every ordered pair of hosts with a cable."""
    if fabric.tables is None:
        return False
    ends = np.concatenate((fabric.links.source, fabric.links.target))
    cabled = fabric.hosts[np.isin(fabric.hosts, ends)]
    return len(cabled) > 0 and build(fabric, cabled).connected


def bound_tables(fabric: Fabric) -> TableArrays:
    """Return the fabric's tables (not None) with ports and LIDs resolved to its links and adapter ports."""
    assert fabric.tables is not None
    return _bind(fabric, fabric.tables, *_lids(fabric, fabric.tables))


def vertex_of_switch(fabric: Fabric, tables: ForwardingTables) -> Ints:
    """Return the vertex (int32[s]) of each switch that has a table; -1 if it is not in the fabric."""
    vertex_of = {int(fabric.guid[v]): v for v in fabric.switches.tolist() if fabric.guid[v]}
    return np.array([vertex_of.get(guid, -1) for guid in tables.switch_guid.tolist()], np.int32)


class TableRoutes(Routes):
    """Routes along forwarding tables."""

    name = "tables"

    def __init__(self, fabric: Fabric, tables: ForwardingTables, ends: EndPoints, rails: str) -> None:
        port_id = _port_at(fabric, ends.port_adapter, ends.port_number)
        lid_ptr, lids = _lids(fabric, tables)
        self._tables = _bind(fabric, tables, lid_ptr, lids)
        first_switch = _first_switch(fabric, ends, self._tables)
        switch, row = np.unique(first_switch, return_inverse=True)
        self._switch: Ints = switch.astype(np.int32)
        counts = np.append(np.diff(lid_ptr), 0)[port_id]
        begin = np.repeat(np.append(lid_ptr[:-1], 0)[port_id], counts)
        target_ptr = np.r_[0, np.cumsum(counts)]
        self._lid: Ints = lids[begin + np.arange(len(begin)) - np.repeat(target_ptr[:-1], counts)]
        up = np.flatnonzero(ends.out_port >= 0)
        up = up[np.argsort(ends.out_port[up], kind="stable")]
        arrays = Ends(
            same_rail=rails == SAME_RAIL,
            rail_ptr=ends.rail_ptr,
            rail_number=ends.rail_number,
            port_ptr=ends.port_ptr,
            port_row=np.where(first_switch >= 0, row, -1).astype(np.int32),
            target_ptr=target_ptr,
            target=np.arange(len(self._lid), dtype=np.int32),
            up_ptr=np.searchsorted(ends.out_port[up], np.arange(len(port_id) + 1)),
            up_link=up.astype(np.int32),
            up_share=np.ones(len(up)),
            down_ptr=np.zeros(len(port_id) + 1, np.int64),
            down_link=empty(0),
            down_share=empty(0, dtype=np.float64),
        )
        super().__init__(fabric, ends, arrays, rails)

    @cached_property
    def _hops(self) -> HopArray:
        hops = np.empty((len(self._switch), len(self._lid)), np.int16)
        each(
            lambda rows: kernel.all_hops(self._tables, self._switch[rows], self._lid, hops[rows]),
            [slice(first, first + 64) for first in range(0, len(hops), 64)],
        )
        return hops.astype(np.int8) if int(hops.max(initial=0)) <= 127 else hops

    def _carry(self, row: Ints, target: Ints, amount: Floats) -> tuple[Floats, Ints]:
        loads, steps = np.zeros(len(self.fabric.links)), np.empty(len(row), np.int32)
        switch = np.append(self._switch, -1).astype(np.int32)[row]
        kernel.carry(self._tables, switch, self._lid[target], amount, loads, steps)
        return loads, steps

    def _part_on(self, row: Ints, target: Ints, link: int) -> Floats:
        switch = np.append(self._switch, -1).astype(np.int32)[row]
        return crosses_link(self._tables, switch, self._lid[target], link).astype(np.float64)

    def _flows(self) -> FlowArrays:
        links = len(self.fabric.links)
        longest = int(self._hops.max(initial=0)) + 1
        most = min(links, self.max_channels * longest)
        flows = empty_flow_arrays(TABLES, links, most, self.max_channels, self._arrays, self._hops)
        return flows._replace(tables=self._tables, row_switch=self._switch, lid=self._lid)

    def _unconnected(self, i: int, j: int) -> UnreachablePair:
        names = self.fabric.names
        return UnreachablePair(names[self.hosts[i]], names[self.hosts[j]], self._why(i, j))

    def _why(self, i: int, j: int) -> str:
        """Return the reason why two hosts are not connected: the end of the first walk between them."""
        ends, lids = self._arrays, self._lid
        ports = ends.port_ptr[ends.rail_ptr]
        rows = [row for row in ends.port_row[ports[i] : ports[i + 1]].tolist() if row >= 0]
        targets = lids[ends.target_ptr[ports[j]] : ends.target_ptr[ports[j + 1]]].tolist()
        if not rows:
            return "the source has no cable to a switch with a table"
        if not targets:
            return "the target has no LID"
        return self._end_of_walk(int(self._switch[rows[0]]), int(targets[0]))

    def _end_of_walk(self, switch: int, lid: int) -> str:
        """Return in words where the walk from a switch to a LID ends."""
        fabric, tables = self.fabric, self._tables
        for _ in range(len(tables.ports) + 1):
            vertex = int(self._switch_vertex[switch])
            port = int(tables.ports[switch, lid])
            link = int(tables.port_link[switch, port])
            if link < 0:
                reason = "has no route" if port == NO_ROUTE else f"has no cable at port {port}"
                return f"switch {fabric.names[vertex]!r} {reason} for LID {lid}"
            switch = int(tables.link_switch[link])
            if switch < 0:
                end = fabric.names[fabric.links.target[link]]
                return f"the path to LID {lid} ends at {end!r}"
        return f"the path to LID {lid} loops through {fabric.names[vertex]!r}"

    @cached_property
    def _switch_vertex(self) -> Ints:
        tables = self.fabric.tables
        assert tables is not None
        return vertex_of_switch(self.fabric, tables)


def _bind(fabric: Fabric, tables: ForwardingTables, lid_ptr: Longs, lids: Ints) -> TableArrays:
    """Return tables with ports and LIDs resolved to the fabric's links and adapter ports."""
    links, count = fabric.links, len(tables.switch_guid)
    vertex = vertex_of_switch(fabric, tables)
    switch_of = np.full(len(fabric), -1, np.int32)
    switch_of[vertex[vertex >= 0]] = np.flatnonzero(vertex >= 0)
    leaving = switch_of[links.source]
    rows = np.flatnonzero((leaving >= 0) & (links.source_port > 0) & (links.source_port < NO_ROUTE))
    port_link = np.full((count, 256), -1, np.int32)
    port_link[leaving[rows], links.source_port[rows]] = rows
    lid_port = np.full(len(tables.lid_guid), -1, np.int32)
    lid_port[lids] = np.repeat(np.arange(len(lid_ptr) - 1), np.diff(lid_ptr))
    return TableArrays(
        ports=np.array(tables.ports),
        port_link=port_link,
        link_switch=np.where(fabric.kind[links.target] == SWITCH, switch_of[links.target], -1),
        link_port=_port_at(fabric, links.target_adapter, links.target_port),
        lid_port=lid_port,
    )


def _lids(fabric: Fabric, tables: ForwardingTables) -> tuple[Longs, Ints]:
    """Return the LIDs of each adapter port, as CSR: those of its GUID in the tables, else those of the scan.

    The scan's LIDs are used for a port that the tables do not name, if no other device of the fabric owns
    them (simulators number port GUIDs in their own way). Walks check later that the tables lead to the port.
    If the tables name only the first LID of a port with LMC > 0, the unnamed LIDs after it belong to the port
    too.
    """
    adapters = fabric.adapters
    owner = _owner_by_guid(fabric, tables)
    named = np.flatnonzero(owner >= 0)
    first = adapters.port_lid.astype(np.int64)
    first[owner[named][::-1]] = named[::-1]  # keeps the lowest LID of a port
    by_scan = np.ones(len(first), np.bool_)
    by_scan[owner[named]] = False
    for port in np.flatnonzero(first > 0).tolist():
        lids = np.arange(first[port], min(first[port] + (1 << int(adapters.port_lmc[port])), len(owner)))
        free = owner[lids] == _NOBODY
        owner[lids[free & (by_scan[port] | (tables.lid_guid[lids] == 0))]] = port
    owned = np.flatnonzero(owner >= 0)
    owned = owned[np.argsort(owner[owned], kind="stable")]
    ptr = np.searchsorted(owner[owned], np.arange(len(first) + 1))
    return ptr, owned.astype(np.int32)


_NOBODY, _SWITCH = -1, -2


def _owner_by_guid(fabric: Fabric, tables: ForwardingTables) -> Longs:
    """Return the owner (int64[lids]) of each LID in the tables: an adapter port, `_SWITCH` or `_NOBODY`."""
    port_guid = fabric.adapters.port_guid
    order = np.argsort(port_guid, kind="stable")
    place = np.searchsorted(port_guid[order], tables.lid_guid)
    port = np.append(order, _NOBODY)[place]
    found = np.append(port_guid, np.uint64(0))[port] == tables.lid_guid
    owner = np.where(found & (tables.lid_guid > 0), port, _NOBODY)
    owner[np.isin(tables.lid_guid, fabric.guid[fabric.guid > 0])] = _SWITCH
    return owner


def _port_at(fabric: Fabric, adapter: Ints, number: Ints) -> Ints:
    """Return the indices (int32) of the adapter ports with these adapters and numbers; -1 if missing."""
    adapters = fabric.adapters
    width = int(max(adapters.port_number.max(initial=0), number.max(initial=0))) + 2
    keys = adapters.port_adapter.astype(np.int64) * width + adapters.port_number
    order = np.argsort(keys, kind="stable")
    wanted = np.where((adapter >= 0) & (number >= 0), adapter.astype(np.int64) * width + number, -1)
    index = np.minimum(np.searchsorted(keys[order], wanted), max(len(keys) - 1, 0))
    if not len(keys):
        return np.full(len(wanted), -1, np.int32)
    return np.where(keys[order][index] == wanted, order[index], -1).astype(np.int32)


def _first_switch(fabric: Fabric, ends: EndPoints, tables: TableArrays) -> Ints:
    """Return the switch (table row, int32[p]) at the end of each end point's only cable; -1 if none."""
    rows = np.flatnonzero(ends.out_port >= 0)
    port = ends.out_port[rows]
    first = np.full(len(ends.port_host), -1, np.int32)
    first[port] = tables.link_switch[rows]
    first[np.bincount(port, minlength=len(first)) > 1] = -1
    return first


def crosses_link(tables: TableArrays, switch: Ints, lid: Ints, link: int) -> Bools:
    """Return True (bool[d]) for each walk from a switch to a LID that uses a link, wherever the walk ends."""
    crosses = np.zeros(len(switch), np.bool_)
    current, walking = switch.astype(np.int64), np.flatnonzero(switch >= 0)
    for _ in range(len(tables.ports) + 1):
        if not len(walking):
            break
        row = tables.port_link[current[walking], tables.ports[current[walking], lid[walking]]]
        walking, row = walking[row >= 0], row[row >= 0]
        crosses[walking] |= row == link
        current[walking] = tables.link_switch[row]
        walking = walking[current[walking] >= 0]
    return crosses


PORTS = 256


def repair_tables(fabric: Fabric, added: Longs) -> Fabric:
    """Return a changed fabric with its tables repaired.

    Args:
        fabric: The fabric after the change with the tables from before it.
        added (int64[k]): Rows of ``fabric.links`` that the change added.

    Raises:
        InvalidValue: The fabric has no tables.
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
