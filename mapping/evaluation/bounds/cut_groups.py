"""Hosts grouped by the cables that all traffic between a group and the rest must use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mapping.distances.distances import Distances
from mapping.evaluation.bounds.cables import Cables
from mapping.evaluation.bounds.network_parts import bisections, dense_parts, host_vertex, leaf_parts, tiers
from mapping.routing.routes import Routes
from registry.model import Allocation, Bools, Floats, Ints, Longs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Groups:
    """Hosts grouped by the cables that all traffic between a group and the rest must use.

    Attributes
    ----------
    name : str
        Name of the cut between the groups: ``host-cut``, ``switch-cut``, ``pod-cut`` or ``bisection``.
    place : str
        What a group is, for the proof.
    group : int64[h]
        Group of each host of the allocation, 0 to g - 1.
    slots : int64[g]
        Slots of each group.
    outwards, inwards : float64[g]
        Least seconds of a byte out of (into) the group on the worst of those cables; 0 if unlimited.
    leaving, entering : bool[m]
        True for rows of ``fabric.links`` that lead out of (into) any group.
    within_network : bool
        True if none of these is a host's own cable.
    """

    name: str
    place: str
    group: Longs
    slots: Longs
    outwards: Floats
    inwards: Floats
    leaving: Bools
    entering: Bools
    within_network: bool


def host_groups(routes: Routes, allocation: Allocation, cables: Cables) -> Groups:
    """Return groups of one host each, with its own cables."""
    ends, fabric = routes.ends, routes.fabric
    return Groups(
        name="host-cut",
        place="host",
        group=np.arange(len(allocation)),
        slots=allocation.slots.astype(np.int64),
        outwards=_host_seconds_per_byte(routes, cables, outwards=True),
        inwards=_host_seconds_per_byte(routes, cables, outwards=False),
        leaving=(ends.out_port >= 0) & cables.usable,
        entering=(ends.in_port >= 0) & cables.usable,
        within_network=bool(fabric.forwards[routes.hosts].all()),
    )


def larger_groups(routes: Routes, allocation: Allocation, cables: Cables, near: Distances) -> list[Groups]:
    """Return the leaf switches, pods, dense parts and bisections of a fabric that exist, fine to coarse."""
    vertex = host_vertex(routes)
    if vertex is None:
        return []
    parts = [
        ("switch-cut", "leaf switch", leaf_parts(routes, vertex)),
        *(("pod-cut", "pod", part) for part in tiers(routes, near, vertex)),
        ("pod-cut", "densely cabled part", dense_parts(routes)),
        *(("bisection", f"part of {n}", part) for n, part in bisections(routes, allocation, vertex)),
    ]
    found: list[Groups] = []
    for name, place, part in parts:
        groups = None if part is None else _groups(routes, allocation, cables, name, place, part, vertex)
        if groups is not None and not any(np.array_equal(groups.group, other.group) for other in found):
            found.append(groups)
    return found


def _groups(
    routes: Routes,
    allocation: Allocation,
    cables: Cables,
    name: str,
    place: str,
    part: Longs,
    vertex: Longs,
) -> Groups | None:
    """Return the hosts of each part as groups; None if all hosts are in one part."""
    fabric = routes.fabric
    mine, group = np.unique(part[vertex], return_inverse=True)
    if len(mine) < 2 or int(mine[0]) < 0:
        return None
    number = np.full(int(part.max()) + 2, -1, np.int64)  # the last entry is for -1
    number[mine] = np.arange(len(mine))
    of_vertex = number[part]
    links = fabric.links
    usable = cables.usable & fabric.network_link
    out_of, into = of_vertex[links.source], of_vertex[links.target]
    leaving, entering = (usable & (out_of != into) & (side >= 0) for side in (out_of, into))

    def rates(side: Ints | Longs, rows: Bools) -> Floats:
        capacity = np.bincount(side[rows], cables.capacity[rows], len(mine))
        return np.divide(1.0, capacity, out=np.zeros(len(mine)), where=capacity > 0)

    return Groups(
        name=name,
        place=place,
        group=group.astype(np.int64),
        slots=np.bincount(group, allocation.slots).astype(np.int64),
        outwards=rates(out_of, leaving),
        inwards=rates(into, entering),
        leaving=leaving,
        entering=entering,
        within_network=True,
    )


def _host_seconds_per_byte(routes: Routes, cables: Cables, *, outwards: bool) -> Floats:
    """Return the least time (float64[h]) of a byte sent (or received) by a host on its worst port."""
    ends = routes.ends
    port = ends.out_port if outwards else ends.in_port
    rows = (port >= 0) & cables.usable
    ports = np.bincount(port[rows], weights=cables.capacity[rows], minlength=len(ends.port_host))
    if routes.evenly_split:
        rail_of_port = np.repeat(np.arange(len(ends.rail_adapter)), np.diff(ends.port_ptr))
        host_of_rail = np.repeat(np.arange(len(ends.hosts)), np.diff(ends.rail_ptr))
        share = 1.0 / np.diff(ends.port_ptr)[rail_of_port] / np.diff(ends.rail_ptr)[ends.port_host]
        found = np.zeros(len(ends.hosts))
        limited = ports > 0
        np.maximum.at(
            found, host_of_rail[rail_of_port[limited]], (share / np.maximum(ports, 1e-300))[limited]
        )
        return found
    hosts = np.bincount(ends.port_host, weights=ports, minlength=len(ends.hosts))
    return np.divide(1.0, hosts, out=np.zeros(len(ends.hosts)), where=hosts > 0)
